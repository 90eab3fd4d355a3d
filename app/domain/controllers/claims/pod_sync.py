"""Pod sync, one look at one pod: claims to create, names to write to its status, reservations.

Parity: controllers.md 2.1 and 2.2.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.domain.controllers import pods
from app.domain.controllers.claims import templates
from app.domain.controllers.gates import Gates
from app.domain.controllers.pods import ClaimEntry, PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key, is_of, pod_key
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    PatchObject,
    PatchType,
    UpdateObject,
    WriteOptions,
)
from app.domain.values import api_resources, well_known
from app.domain.values.fields import meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject, JsonView

MANAGER = WriteOptions(field_manager="kube-controller-manager")
APPLIER = WriteOptions(field_manager="ResourceClaimController", force=True)


class PodWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One write that the pod needs next."""

    command: Command
    entry: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncFailure:
    """A problem that prevents the sync of the pod; the text is reported in an Event."""

    entry: str
    text: str


Step: TypeAlias = PodWrite | SyncFailure | None


def needs_work(
    objects: ObjectsReader,
    pod: PodFacts,
    quirks: ControllerQuirks = ControllerQuirks(),
    is_reserved: Callable[[NamespacedName, Uid], bool] = lambda place, uid: False,
) -> bool:
    """True when syncing the pod could do something (controllers.md 2.1).

    `is_reserved` says of a claim, without reading it, that it is reserved for a pod with that uid.
    """
    if pod.is_deleting or _is_left_alone(pod, quirks):
        return False
    for entry in pod.entries:
        named = pods.entry_claim(pod, entry)
        if named.problem:
            if entry.template:
                return True
            continue
        if named.name is None or is_reserved((pod.namespace, named.name), pod.uid):
            continue
        claim = objects.get(claim_key(pod.namespace, named.name))
        if claim is None:
            if entry.template:
                return True
            continue
        if named.needs_owner and not pods.is_for_pod(claim, pod):
            continue
        if pod.node and _lacks_reservation(claim, pod):
            return True
    return False


def next_step(
    objects: ObjectsReader,
    pod: PodFacts,
    gates: Gates,
    quirks: ControllerQuirks,
    spent: Collection[str] = (),
) -> Step:
    """The next write for the pod, or the failure that prevents it; None when it needs none.

    The entries that are `spent` get no more claims.
    """
    if pod.is_deleting or _is_left_alone(pod, quirks):
        return None
    fresh: list[tuple[str, str]] = []
    for entry in pod.entries:
        if not entry.template or _is_settled(objects, pod, entry):
            continue
        orphan = _find_orphan(objects, pod, entry)
        if orphan:
            fresh.append((entry.name, orphan))
            continue
        if entry.name in spent:
            continue
        return _create(objects, pod, entry, gates)
    if fresh:
        return PodWrite(command=_apply_names(pod, fresh, quirks))
    if pod.node:
        return next(_reservations(objects, pod), None)
    return None


def enter_names(
    pod: PodFacts, fresh: Sequence[tuple[str, str]], quirks: ControllerQuirks
) -> PodWrite | None:
    """The write that adds claims (pairs of entry and name) to the pod's status; None without."""
    return PodWrite(command=_apply_names(pod, fresh, quirks)) if fresh else None


def claims_made_for(
    objects: ObjectsReader, pod: PodFacts, entry: ClaimEntry
) -> Iterator[ObjectKey]:
    """The claims that this pod controls and that were created for this entry."""
    for key in objects.dependents(pod.uid):
        if not is_of(key, api_resources.RESOURCE_CLAIMS):
            continue
        claim = objects.get(key)
        if claim is None or meta.controller_uid(claim) != pod.uid:
            continue
        if meta.annotation(claim, well_known.POD_CLAIM_NAME) == entry.name:
            yield key


def lacks_template(entry: ClaimEntry) -> SyncFailure:
    """The problem of an entry whose template does not exist."""
    text = (
        f'resource claim template "{entry.template}": '
        f'resourceclaimtemplate.resource.k8s.io "{entry.template}" not found'
    )
    return SyncFailure(entry=entry.name, text=text)


def _is_left_alone(pod: PodFacts, quirks: ControllerQuirks) -> bool:
    # Upstream does not check the phase (C8, C22), so pod sync and claim sync race with each other.
    return pod.is_done and not (quirks.c8 or quirks.c22)


def _is_settled(objects: ObjectsReader, pod: PodFacts, entry: ClaimEntry) -> bool:
    for name, claim_name in pod.generated:
        if name != entry.name:
            continue
        if claim_name is None:
            return True
        claim = objects.get(claim_key(pod.namespace, claim_name))
        return claim is not None and pods.is_for_pod(claim, pod)
    return False


def _find_orphan(objects: ObjectsReader, pod: PodFacts, entry: ClaimEntry) -> str:
    return next((key.name for key in claims_made_for(objects, pod, entry)), "")


def _create(objects: ObjectsReader, pod: PodFacts, entry: ClaimEntry, gates: Gates) -> Step:
    template = objects.get(
        ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, pod.namespace, entry.template)
    )
    if template is None:
        return lacks_template(entry)
    if disabled := templates.disabled_feature(template, gates):
        return SyncFailure(entry=entry.name, text=disabled)
    command = CreateObject(
        key=claim_key(pod.namespace, ""),
        version="v1",
        tree=templates.claim_from(template, pod, entry),
        options=MANAGER,
    )
    return PodWrite(command=command, entry=entry.name)


def _apply_names(
    pod: PodFacts, fresh: Sequence[tuple[str, str]], quirks: ControllerQuirks
) -> PatchObject:
    # Parity: controllers.md 2.2; upstream applies only the new names, which may drop earlier ones
    # (C9). All names of entries that still exist are sent here, unless the switch reproduces the
    # drop. A dropped name is written again together with the others, because dropping those in
    # turn would never end.
    names = dict(fresh)
    replaces = any(name in names for name, _ in pod.generated)
    if not (quirks.c9 and replaces):
        known = {name for name, _ in fresh}
        entries = {entry.name for entry in pod.entries}
        kept = [(n, c) for n, c in pod.generated if c and n in entries and n not in known]
        names = dict(kept) | names
    order = [entry.name for entry in pod.entries if entry.name in names]
    body: JsonObject = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "status": {
            "resourceClaimStatuses": [
                {"name": name, "resourceClaimName": names[name]} for name in order
            ]
        },
    }
    return PatchObject(
        key=pod_key(pod.namespace, pod.name),
        version="v1",
        type=PatchType.APPLY,
        body=body,
        subresource="status",
        options=APPLIER,
    )


def _lacks_reservation(claim: JsonView, pod: PodFacts) -> bool:
    return (
        pods.is_allocated(claim)
        and not pods.is_reserved_for(claim, pod.uid)
        and pods.has_room(claim)
    )


def _reservations(objects: ObjectsReader, pod: PodFacts) -> Iterator[PodWrite]:
    """The missing reservations of a pod whose generated claims are its own."""
    for named in pods.named_claims(pod):
        key = claim_key(pod.namespace, named.name or "")
        claim = objects.get(key)
        if claim is None or not _lacks_reservation(claim, pod):
            continue
        reserved = [*(claim["status"].get("reservedFor") or ()), pods.consumer_of(pod)]
        tree = {**claim, "status": {**claim["status"], "reservedFor": reserved}}
        command = UpdateObject(
            key=key, version="v1", tree=tree, subresource="status", options=MANAGER
        )
        yield PodWrite(command=command, entry=named.entry.name)
