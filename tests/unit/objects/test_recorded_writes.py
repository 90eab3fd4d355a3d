"""Every recorded write of a real control plane, decided again by our rules.

Each request of an audit log is decided against the objects as they were recorded; then the
recorded answer is taken over, so that one difference does not cause the next. Times differ by up
to a second, because an audit record tells when the answer was sent.
"""

import copy
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.domain.errors import Rejected
from app.domain.log import Actor, ObjectKey, Stamp
from app.domain.objects import registry, validation
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    FieldValidation,
    ImportObject,
    PatchObject,
    PatchType,
    Propagation,
    UpdateObject,
    WriteOptions,
)
from app.domain.values import json_tree, timestamps
from tests import draws
from tests.shared_data import shared_path
from tests.unit.objects.builders import World, release

GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DRAResourcePoolStatus",
)
"""What the recordings switched on; the rest had the defaults of 1.36."""

VERBS = frozenset({"create", "update", "patch", "delete"})
TIMES = frozenset({"deletionTimestamp", "creationTimestamp", "lastTransitionTime", "time",
                   "timeAdded", "uid", "resourceVersion", "selfLink"})  # fmt: skip
"""Fields that differ between two runs and are left out of the comparison."""


@dataclass
class Recorded:
    """One write of the audit log, as a command."""

    kind: Kind
    key: ObjectKey
    version: str
    code: int
    request: Any
    answer: dict[str, Any]
    stamp: Stamp
    command: Command
    text: str
    message: str


@dataclass
class Tally:
    """The results: equal answers, and the description of each difference."""

    same: int = 0
    refused_alike: int = 0
    races: int = 0
    differences: list[str] = field(default_factory=list)


def options(record: dict[str, Any], query: dict[str, str]) -> WriteOptions:
    """The options of a request, from its query and body."""
    body = record.get("requestObject") or {}
    dry = "dryRun" in query or (isinstance(body, dict) and bool(body.get("dryRun")))
    return WriteOptions(
        field_manager=query.get("fieldManager", ""),
        force=query.get("force") == "true",
        dry_run=dry,
        field_validation=FieldValidation(query.get("fieldValidation", "Warn")),
    )


def patch_type(record: dict[str, Any], query: dict[str, str]) -> PatchType:
    """The audit log does not tell content types; bodies and clients do."""
    body = record["requestObject"]
    if isinstance(body, list):
        return PatchType.JSON
    if "apiVersion" in body and "kind" in body and "force" in query:
        return PatchType.APPLY
    return PatchType.STRATEGIC


def command_of(
    record: dict[str, Any], kind: Kind, place: ObjectKey, version: str
) -> Command | None:
    """The command that a record is; None for requests that are no write of an object."""
    ref = record["objectRef"]
    query = {
        name: values[0] for name, values in parse_qs(urlsplit(record["requestURI"]).query).items()
    }
    how = options(record, query)
    body = record.get("requestObject")
    subresource = ref.get("subresource", "")
    asked = place._replace(group=ref.get("apiGroup", ""))
    match record["verb"]:
        case "create" if subresource == "binding":
            node, uid = body["target"]["name"], body["metadata"].get("uid", "")
            return BindPod(key=place, node=node, uid=uid, options=how)
        case "create" if not subresource:
            name = (body.get("metadata") or {}).get("name", "")
            return CreateObject(
                key=asked._replace(name=name), version=version, tree=body, options=how
            )
        case "update":
            return UpdateObject(
                key=asked, version=version, tree=body, subresource=subresource, options=how
            )
        case "patch":
            return PatchObject(
                key=asked, version=version, type=patch_type(record, query), body=body,
                subresource=subresource, options=how,
            )  # fmt: skip
        case "delete":
            body = body or {}
            wanted = body.get("preconditions") or {}
            policy = body.get("propagationPolicy")
            return DeleteObject(
                key=asked,
                version=version,
                grace_seconds=body.get("gracePeriodSeconds"),
                propagation=Propagation(policy) if policy else None,
                uid=wanted.get("uid", ""),
                resource_version=wanted.get("resourceVersion", ""),
                options=how,
            )
        case _:
            return None


def writes(history: str) -> Iterator[Recorded]:
    """The writes of a recording in the order in which they were answered."""
    with gzip.open(shared_path("histories", history, "audit.jsonl.gz")) as lines:
        records = [json.loads(line) for line in lines]
    for record in sorted(records, key=lambda each: str(each["stageTimestamp"])):
        ref = record.get("objectRef") or {}
        if record["stage"] != "ResponseComplete" or record["verb"] not in VERBS:
            continue
        if "requestObject" not in record and record["verb"] != "delete":
            continue
        group, version = ref.get("apiGroup", ""), ref.get("apiVersion", "v1")
        kind = registry.find(group, ref.get("resource", ""))
        if kind is None or kind.kind == "Lease":
            continue
        namespace = ref.get("namespace", "") if kind.namespaced else ""
        place = ObjectKey(kind.group, kind.plural, namespace, ref.get("name", ""))
        command = command_of(record, kind, place, version)
        if command is None:
            continue
        answer = record.get("responseObject") or {}
        uid = json_tree.text(answer, "metadata", "uid")
        yield Recorded(
            kind=kind,
            key=place,
            version=registry.api_version(group, version),
            code=record["responseStatus"]["code"],
            request=record.get("requestObject"),
            answer=answer,
            stamp=Stamp(
                time=timestamps.parse(record["stageTimestamp"]),
                actor=Actor(user=record["user"]["username"], agent=record.get("userAgent", "")),
                verb=record["verb"],
                uid=uid or "00000000-0000-4000-8000-000000000000",
            ),
            command=command,
            text=f"{record['verb']} {kind.plural}/{ref.get('subresource', '')} {place.name}",
            message=record["responseStatus"].get("message", ""),
        )


def comparable(tree: Any, *, generated: bool) -> Any:
    """A tree without what differs between two runs."""
    if isinstance(tree, dict):
        return {
            key: comparable(value, generated=False)
            for key, value in tree.items()
            if key not in TIMES and not (generated and key == "name")
        }
    return [comparable(item, generated=False) for item in tree] if isinstance(tree, list) else tree


def view(tree: dict[str, Any], recorded: Recorded, *, managers: bool) -> Any:
    """What is compared of an answer: sorted entries of managers, times and names left out."""
    found = copy.deepcopy(tree)
    metadata = found.get("metadata", {})
    entries = metadata.pop("managedFields", [])
    generated = isinstance(recorded.command, CreateObject) and not recorded.command.key.name
    head = comparable(metadata, generated=generated)
    if managers:
        head["managedFields"] = sorted(
            (comparable(entry, generated=False) for entry in entries),
            key=lambda entry: json.dumps(entry, sort_keys=True),
        )
    return {**comparable(found, generated=False), "metadata": head}


def take_over(world: World, recorded: Recorded, rules: Rules) -> None:
    """Bring the world to the recorded state after the write."""
    answer = recorded.answer
    if isinstance(recorded.command, BindPod):
        version = (world.get(recorded.key) or {}).get("metadata", {}).get("resourceVersion")
        decided = lifecycle.decide(world, recorded.command, recorded.stamp, rules)
        for event in world.append(decided.drafts):
            event.object["metadata"]["resourceVersion"] = version
        return
    if answer.get("kind") != recorded.kind.kind:
        if isinstance(recorded.command, DeleteObject):
            world.last.pop(recorded.key, None)
        return
    storage = recorded.kind.storage_api_version
    tree = conversion.convert(answer, recorded.kind, answer["apiVersion"], storage)
    metadata = answer["metadata"]
    ended = (
        not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not json_tree.texts(tree, "spec", "finalizers")
        and (isinstance(recorded.command, DeleteObject) or "deletionTimestamp" in metadata)
    )
    place = recorded.key._replace(name=metadata["name"])
    command = ImportObject(
        operation="DELETED" if ended else "MODIFIED", key=place, uid=metadata["uid"], tree=tree
    )
    for event in world.append(lifecycle.decide(world, command, recorded.stamp, rules).drafts):
        event.object["metadata"]["resourceVersion"] = metadata["resourceVersion"]


def check_write(world: World, recorded: Recorded, rules: Rules, tally: Tally) -> None:
    """Decide one write and compare."""
    try:
        decided = lifecycle.decide(world, recorded.command, recorded.stamp, rules)
    except Rejected as refusal:
        if refusal.code == recorded.code == 409 and "StorageError" in recorded.message:
            tally.races += 1
        elif (refusal.code, refusal.message) == (recorded.code, recorded.message):
            tally.refused_alike += 1
        else:
            tally.differences.append(
                f"{recorded.text}: {refusal.message!r} for {recorded.code} {recorded.message!r}"
            )
        return
    if recorded.code >= 300:
        tally.differences.append(f"{recorded.text}: accepted for {recorded.message!r}")
        return
    if recorded.answer.get("kind") == recorded.kind.kind:
        assert decided.tree is not None
        storage = recorded.kind.storage_api_version
        ours = conversion.convert(decided.tree, recorded.kind, storage, recorded.version)
        managers = "managedFields" in recorded.answer.get("metadata", {})
        expected = view(recorded.answer, recorded, managers=managers)
        if view(ours, recorded, managers=managers) != expected:
            tally.differences.append(f"{recorded.text}: another answer")
            return
    tally.same += 1


EXPECTED = {
    # history: equal answers, equal refusals, known differences
    "a-quickstart": (228, 8, 10),  # one CEL text; the rest follows a deletion of a collection
    "b-mig-partitions": (853, 47, 1),  # a patch answered after the pod's deletion was
    "c-multihost-tpu": (259, 8, 1),  # an update answered before the one that it builds on
    "e-taints": (489, 12, 1),  # a write between look-up and deletion
    "e-taints-rules-ignored": (540, 13, 1),  # the same
    "i-soak-short": (4977, 47, 3),  # the same
    "j-api-versions": (81, 8, 0),
}
"""What is reached. The known differences come from the order of an audit log: it tells when an
answer was sent, not when the write took place. Deletions of collections are not replayed here."""


SHORT = ("a-quickstart", "c-multihost-tpu", "j-api-versions")
"""The recordings of each run; each of the others has several hundred writes or thousands."""


@pytest.mark.parametrize(
    "history", [name if name in SHORT else draws.by_day(name) for name in EXPECTED]
)
def test_recorded_writes_are_answered_alike(history: str) -> None:
    rules = Rules(
        profile=Profile(version="1.36", gates=dict.fromkeys(GATES, True)),
        schemas=release("1.36"),
        validate_create=validation.validate_create,
        validate_update=validation.validate_update,
    )
    world = World()
    tally = Tally()
    for recorded in writes(history):
        check_write(world, recorded, rules, tally)
        dry = getattr(recorded.command, "options", WriteOptions()).dry_run
        if recorded.code < 300 and not dry:
            take_over(world, recorded, rules)
    same, refused, differences = EXPECTED[history]
    report = "\n".join(tally.differences[:20])
    assert tally.same >= same, f"{tally.same} equal answers\n{report}"
    assert tally.refused_alike >= refused, f"{tally.refused_alike} equal refusals\n{report}"
    assert len(tally.differences) <= differences, f"{len(tally.differences)}\n{report}"
