"""The same commands through every writer: what they do may not depend on who decides them.

The group writer, the loop of replays and the hypothetical cluster of a proposal begin with the same
namespace at the same instant. Their uids are drawn from different sources, so uids and the names
generated from them are compared by the object that has them.
"""

import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from app.adapters.uids import DerivedUids
from app.analysis.blast.world import World, freeze
from app.bootstrap.rules import rules_for
from app.domain.errors import Rejected
from app.domain.log import Actor, Event, HistoryInfo, ObjectKey, Stamp
from app.domain.objects.kinds.secret_values import ENCRYPTED
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write import eviction
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    ImportObject,
    PatchObject,
    PatchType,
    Propagation,
    UpdateObject,
    WriteOptions,
    verb_of,
)
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.service.replays.reconciling import ReplayTimeline
from tests.unit.objects.test_secret_values import Cipher
from tests.unit.service.builders import START, namespace, running_history

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AUTHOR = Actor(user="redra:blast", groups=("system:masters",), agent="redra")
"""Who proposes changes to a hypothetical cluster; here the writer everywhere."""
APPLIER = WriteOptions(field_manager="kubectl", force=True)
WRITERS = ("group writer", "timeline", "world")

Step = Callable[[ObjectsReader], Command]


class Path:
    """One writer: `write` gives the answer's tree, `objects` are as the writes have left them."""

    def __init__(
        self,
        objects: Callable[[], ObjectsReader],
        write: Callable[[Command], Awaitable[JsonObject | None]],
    ) -> None:
        self._objects = objects
        self.write = write
        self.answers: list[JsonObject | str | None] = []
        self.keys: dict[ObjectKey, None] = {}

    @property
    def objects(self) -> ObjectsReader:
        return self._objects()

    async def run(self, steps: list[Step]) -> None:
        """Every step after the other; a refusal is an answer."""
        for step in steps:
            command = step(self.objects)
            try:
                answer = await self.write(command)
            except Rejected as refusal:
                self.answers.append(f"{type(refusal).__name__}: {refusal.message}")
                continue
            self.answers.append(answer)
            written = json_tree.text(answer or {}, "metadata", "name")
            self.keys[command.key._replace(name=command.key.name or written)] = None

    def events(self) -> list[Event]:
        found = [self.objects.event(key) for key in self.keys]
        return [event for event in found if event is not None]


@asynccontextmanager
async def path_of(name: str, rules: Rules) -> AsyncIterator[Path]:
    if name == "group writer":
        async with running_history(own_rules=rules) as history:
            await history.submit(namespace("default"), actor=AUTHOR)

            async def submit(command: Command) -> JsonObject | None:
                return (await history.submit(command, actor=AUTHOR)).tree

            yield Path(lambda: history.views.objects, submit)
        return
    line = ReplayTimeline(rules=rules, uids=DerivedUids(3), start=START)
    line.submit(namespace("default"), actor=AUTHOR)
    if name == "timeline":

        async def append(command: Command) -> JsonObject | None:
            return line.submit(command, actor=AUTHOR).tree

        yield Path(lambda: line.views.objects, append)
        return
    world = World(freeze(line.views, HistoryInfo(id=1, name="default"), rules, line.now))

    async def imagine(command: Command) -> JsonObject | None:
        return world.apply(command, verb_of(command)).tree

    yield Path(lambda: world.objects, imagine)


def key(resource: str, name: str, group: str = "") -> ObjectKey:
    return ObjectKey(group, resource, "default", name)


def tree(kind: str, name: str, api_version: str = "v1", **fields: object) -> JsonObject:
    metadata = {"name": name} if name else {"generateName": "made-"}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**metadata, "namespace": "default"},
        **fields,
    }


def create(resource: str, body: JsonObject, group: str = "", version: str = "v1") -> Step:
    name = json_tree.text(body, "metadata", "name")
    made = CreateObject(key=key(resource, name, group), version=version, tree=body)
    return lambda _: msgspec.structs.replace(made, tree=json_tree.copy(body))


def always(command: Command) -> Step:
    return lambda _: command


def patch(place: ObjectKey, body: JsonObject, subresource: str = "") -> Step:
    merged = PatchObject(
        key=place, version="v1", type=PatchType.MERGE, body=body, subresource=subresource
    )
    return always(merged)


def applied(place: ObjectKey, body: JsonObject, version: str = "v1") -> Step:
    return lambda _: PatchObject(
        key=place,
        version=version,
        type=PatchType.APPLY,
        body=json_tree.copy(body),
        options=APPLIER,
    )


def replaced(place: ObjectKey, version: str = "v1", **fields: object) -> Step:
    def command(objects: ObjectsReader) -> Command:
        present = json_tree.copy(objects.get(place) or {})
        return UpdateObject(key=place, version=version, tree={**present, **fields})

    return command


POD = key("pods", "p")
MAP = key("configmaps", "m")
CLAIM = key("resourceclaims", "c", "resource.k8s.io")
CONTAINERS = [{"name": "main", "image": "busybox:1"}]
DEVICES = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}]}
PATIENT = {"spec": {"containers": CONTAINERS, "terminationGracePeriodSeconds": 20}}


def evicted(objects: ObjectsReader) -> Command:
    """The deletion that an eviction comes to, as its subresource decides it."""
    permission = eviction.judge(objects, POD, START)
    return DeleteObject(key=POD, resource_version=permission.resource_version)


STORIES: dict[str, list[Step]] = {
    "create": [create("configmaps", tree("ConfigMap", "m", data={"a": "1"}))],
    "create with a generated name": [create("configmaps", tree("ConfigMap", ""))],
    "create what is there": [create("configmaps", tree("ConfigMap", "m"))] * 2,
    "apply that creates": [
        applied(MAP, tree("ConfigMap", "m", data={"a": "1"})),
        applied(MAP, tree("ConfigMap", "m", data={"a": "2"})),
    ],
    "apply that creates a claim": [
        applied(
            CLAIM,
            tree("ResourceClaim", "c", "resource.k8s.io/v1", spec={"devices": DEVICES}),
        ),
    ],
    "apply after a deletion": [
        applied(MAP, tree("ConfigMap", "m", data={"a": "1"})),
        always(DeleteObject(key=MAP)),
        applied(MAP, tree("ConfigMap", "m", data={"a": "2"})),
    ],
    "replacement that creates": [
        always(
            UpdateObject(
                key=key("endpoints", "e"), version="v1", tree=tree("Endpoints", "e", subsets=[])
            )
        )
    ],
    "replacement of what is not there": [
        always(UpdateObject(key=MAP, version="v1", tree=tree("ConfigMap", "m")))
    ],
    "update": [
        create("configmaps", tree("ConfigMap", "m", data={"a": "1"})),
        replaced(MAP, data={"a": "2"}),
        replaced(MAP),
    ],
    "patch": [
        create("pods", tree("Pod", "p", **PATIENT)),
        patch(POD, {"metadata": {"labels": {"a": "1"}}, "spec": {"activeDeadlineSeconds": 5}}),
    ],
    "status": [
        create("pods", tree("Pod", "p", **PATIENT)),
        patch(POD, {"status": {"phase": "Running"}}, subresource="status"),
    ],
    "binding": [
        create("pods", tree("Pod", "p", **PATIENT)),
        always(BindPod(key=POD, node="n1")),
    ],
    "deletion with a finalizer": [
        create(
            "configmaps",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": "m",
                    "namespace": "default",
                    "finalizers": ["example.com/wait"],
                },
            },
        ),
        always(DeleteObject(key=MAP, propagation=Propagation.FOREGROUND)),
        patch(MAP, {"metadata": {"labels": {"a": "1"}}}),
    ],
    "the last finalizer": [
        create("configmaps", tree("ConfigMap", "m")),
        patch(MAP, {"metadata": {"finalizers": ["example.com/wait"]}}),
        always(DeleteObject(key=MAP)),
        patch(MAP, {"metadata": {"finalizers": None}}),
    ],
    "deletion with grace": [
        create("pods", tree("Pod", "p", **PATIENT)),
        always(BindPod(key=POD, node="n1")),
        patch(POD, {"status": {"phase": "Running"}}, subresource="status"),
        always(DeleteObject(key=POD)),
    ],
    "eviction": [
        create("pods", tree("Pod", "p", **PATIENT)),
        always(BindPod(key=POD, node="n1")),
        evicted,
    ],
    "a secret": [
        create("secrets", tree("Secret", "s", data={"a": "d29yZA=="})),
        patch(key("secrets", "s"), {"stringData": {"b": "other"}}),
        applied(key("secrets", "t"), tree("Secret", "t", data={"c": "dGhpcmQ="})),
    ],
    "a dry run": [
        lambda _: CreateObject(
            key=MAP,
            version="v1",
            tree=tree("ConfigMap", "m"),
            options=WriteOptions(dry_run=True),
        )
    ],
    "a recorded state": [
        always(
            ImportObject(
                operation="ADDED",
                key=MAP,
                uid="recorded",
                tree=tree("ConfigMap", "m"),
            )
        )
    ],
}


def rules() -> Rules:
    return dataclasses.replace(rules_for(Profile()), secrets=Cipher())


def comparable(path: Path) -> str:
    """All that a path gave, with uids and generated names by the order of their objects."""
    stored = [
        (event.type, tuple(event.key), event.uid, bare(event.stamp), event.object)
        for event in path.events()
    ]
    text = repr((path.answers, stored))
    for place, event in enumerate(path.events()):
        if event.uid:
            text = text.replace(event.uid, f"<uid {place}>")
        if event.key.name.startswith("made-"):
            text = text.replace(event.key.name, f"<name {place}>")
    return UID.sub("<uid>", text)


def bare(stamp: Stamp) -> tuple[object, ...]:
    """A stamp without the request that it came with, which only a server has."""
    return stamp.actor, stamp.time, stamp.verb, stamp.uid, stamp.cause, stamp.observed, stamp.origin


async def told(name: str, story: str) -> Path:
    async with path_of(name, rules()) as path:
        await path.run(STORIES[story])
        return path


@pytest.mark.parametrize("story", STORIES)
async def test_the_same_commands_give_the_same_objects_through_every_writer(story: str) -> None:
    paths = {name: await told(name, story) for name in WRITERS}
    given = {name: comparable(path) for name, path in paths.items()}
    assert given["timeline"] == given["group writer"]
    assert given["world"] == given["group writer"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    "story", sorted(STORIES.keys() - {"a recorded state", "replacement of what is not there"})
)
async def test_every_new_object_has_a_uid_of_its_own(name: str, story: str) -> None:
    path = await told(name, story)
    uids = [json_tree.text(event.object, "metadata", "uid") for event in path.events()]
    assert all(UID.fullmatch(uid) for uid in uids)
    assert len(set(uids)) == len(uids)
    assert [event.uid for event in path.events()] == uids


@pytest.mark.parametrize("name", WRITERS)
async def test_values_of_secrets_are_protected_in_what_every_writer_stores(name: str) -> None:
    path = await told(name, "a secret")
    values = [
        value
        for event in path.events()
        for value in json_tree.mapping(event.object, "data").values()
    ]
    assert len(values) == 3
    assert all(str(value).startswith(ENCRYPTED) for value in values)
    answered = [answer["data"] for answer in path.answers if isinstance(answer, dict)]
    assert answered[1] == {"a": "d29yZA==", "b": "b3RoZXI="}


@pytest.mark.parametrize("name", WRITERS)
async def test_an_apply_over_an_object_keeps_its_uid_and_draws_none(name: str) -> None:
    path = await told(name, "apply that creates")
    [event] = path.events()
    first, second = path.answers
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["metadata"]["uid"] == second["metadata"]["uid"] == event.uid
    assert event.stamp.uid == ""


@pytest.mark.parametrize("name", WRITERS)
async def test_a_deletion_that_waits_says_since_when(name: str) -> None:
    path = await told(name, "deletion with a finalizer")
    [event] = path.events()
    assert event.object["metadata"]["deletionTimestamp"]
    assert event.object["metadata"]["finalizers"] == ["example.com/wait", "foregroundDeletion"]
