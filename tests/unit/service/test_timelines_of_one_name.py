"""Is the timeline of one object, which is looked up in the log, a part of the whole timeline?"""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.scope import Scope
from app.domain.errors import InputError
from app.domain.log import Event, EventType, Head, ObjectKey, Revision
from app.domain.log.replays import CONFLICTS
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from app.service import timelines
from app.service.folding import keyed_events
from tests import whole_timelines
from tests.imports import import_once
from tests.shared_data import shared_path
from tests.unit.analysis.test_scope import CountingLog, crossed, ended_story, with_gaps

_PODS, _CLAIMS = api_resources.PODS, api_resources.RESOURCE_CLAIMS

_OTHERS = 700
"""Events of other objects, so that few events are about any one."""


def scope_of(kind: tuple[str, str], name: str, place: str = "", **more: Any) -> Scope:
    return Scope(group=kind[0], resource=kind[1], name=name, place=place, **more)


def drawn(chance: random.Random, model: Event) -> Event:
    """An event that is about an object under the key of another one, or about none of the story."""
    namespace, name = chance.choice("ab"), chance.choice(("pod-a", "pod-b", "claim", "n1", "n2"))
    kind = chance.choice(("Pod", "ResourceClaim", "Node"))
    version = {"Pod": "v1", "Node": "v1"}.get(kind, "resource.k8s.io/v1")
    about = {"apiVersion": version, "kind": kind, "name": name, "namespace": namespace}
    body: dict[str, Any] = {"metadata": {"name": "x"}}
    type = EventType.OBJECT_CREATED
    match chance.randrange(20):
        case 0 | 1:
            group = chance.choice(("", "events.k8s.io"))
            key = ObjectKey(group, "events", chance.choice("ab"), f"e{chance.randrange(30)}")
            body |= {chance.choice(("involvedObject", "regarding")): about, "reason": "Failed"}
            body |= {"type": chance.choice(("Warning", "Warning", "Normal"))}
            type = chance.choice(
                (type, type, type, EventType.OBJECT_UPDATED, EventType.OBJECT_DELETED)
            )
        case 2:
            type, key = (
                EventType.CONFLICT_OBSERVED,
                CONFLICTS._replace(namespace=namespace, name=name),
            )
            group, resource = chance.choice((_PODS, _CLAIMS))
            subject = {"group": group, "resource": resource, "namespace": namespace, "name": name}
            body = {**subject, "message": "not shown"}
        case _:
            key = ObjectKey(*_CLAIMS, "a", f"other-{chance.randrange(25)}")
    tree = msgspec.json.encode(body)
    return msgspec.structs.replace(model, type=type, key=key, body=tree, tree=None)


def mixed(seed: int) -> list[Event]:
    """The events of a story between events that are drawn; causes lie anywhere before."""
    chance = random.Random(seed)
    story: Sequence[Event] = crossed(ended_story(), seed) if seed else ended_story()
    events = [*story, *(drawn(chance, chance.choice(story)) for _ in range(_OTHERS))]
    order = sorted([*range(len(story)), *(chance.randrange(len(story)) for _ in range(_OTHERS))])
    placed = iter(events[len(story) :])
    following = iter(story)
    before = -1
    together: list[Event] = []
    for place in order:
        together.append(next(placed) if place == before else next(following))
        before = place
    numbered = [
        msgspec.structs.replace(event, revision=Revision(number))
        for number, event in enumerate(together, 1)
    ]
    return with_gaps(numbered, seed, in_order=seed % 2 == 0)


def wanted_of(events: Sequence[Event]) -> list[Scope]:
    late = events[len(events) * 2 // 3]
    return [
        scope_of(_PODS, "pod-a", "a"),
        scope_of(_PODS, "pod-a", "b"),
        scope_of(_PODS, "pod-a"),
        scope_of(_PODS, "pod-b", namespace="b"),
        scope_of(_PODS, "pod-a", namespace="b"),
        scope_of(_CLAIMS, "claim"),
        scope_of(_CLAIMS, "claim", "b", kinds=frozenset(("Warning", "Decision"))),
        scope_of(api_resources.NODES, "n2"),
        scope_of(api_resources.NODES, "n1", namespace="a"),
        scope_of(api_resources.DEVICE_TAINT_RULES, "rule-n1"),
        scope_of(_PODS, "pod-a", first=late.revision),
        scope_of(_PODS, "pod-a", final=late.revision),
        scope_of(_PODS, "pod-a", until=late.stamp.time),
        scope_of(_PODS, "pod-a", since=late.stamp.time),
        scope_of(_CLAIMS, "other-7"),
        scope_of(_PODS, "pod-a", node="n1"),
        scope_of(_PODS, "pod-c"),
    ]


async def history(events: Sequence[Event], *, is_recorded: bool) -> tuple[CountingLog, Any]:
    log = CountingLog(MemoryStore())
    settings = {"recorded": is_recorded}
    info = await log.create_history("h", seed=1, settings=settings, created=Instant(0))
    await log.append(info.id, expected=Head(), events=events)
    return log, info


async def answer(log: MemoryLog, info: Any, scope: Scope) -> tuple[Any, ...]:
    """Rows, extent, and what a name that does not occur is answered."""
    reader = timelines.TimelineReader(log, info, scope, page_max=50)
    rows = await reader.read()
    try:
        await reader.check()
    except InputError as problem:
        return rows, reader.extent, str(problem)
    return rows, reader.extent, ""


async def test_looked_up_timeline_is_the_folded_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: dict[int, int] = {}
    kinds: set[str] = set()
    for seed in range(6):
        events = mixed(seed)
        log, info = await history(events, is_recorded=seed % 2 == 1)
        for number, scope in enumerate(wanted_of(events)):
            with monkeypatch.context() as patch:
                patch.setattr(keyed_events, "_EVENTS_MAX", 0)
                folded = await answer(log, info, scope)
            log.count = 0
            assert await answer(log, info, scope) == folded, (seed, scope)
            # The first event, the last one, and a cause for each row.
            looked_up[number] = looked_up.get(number, 0) + (log.count <= 2 + len(folded[0]))
            kinds.update(row["kind"] for row in folded[0])
    assert {"Warning", "Decision", "PodScheduled", "GapObserved", "ConflictObserved"} <= kinds
    folded_only = {number for number, count in looked_up.items() if count < 3}
    # A node of a namespace, a node of a pod, and a name that does not occur: these need the whole.
    assert folded_only == {8, 15, 16}


async def test_timeline_that_was_looked_up_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        events = mixed(seed)
        middle = len(events) // 2
        for scope in wanted_of(events):
            if scope.first or scope.final or scope.since is not None or scope.until is not None:
                continue
            rows: list[list[Any]] = []
            for most in (0, 1_000):
                monkeypatch.setattr(keyed_events, "_EVENTS_MAX", most)
                log, info = await history(events[:middle], is_recorded=False)
                reader = timelines.TimelineReader(log, info, scope, page_max=50)
                read = await reader.read()
                head = await log.head(info.id)
                await log.append(info.id, expected=head, events=events[middle:])
                rows.append([*read, *await reader.read(), reader.extent])
            assert rows[0] == rows[1], (seed, scope)


async def test_timelines_of_objects_of_a_recording_are_looked_up() -> None:
    log = MemoryLog(MemoryStore())
    path = shared_path("histories", "e-taints")
    info = (await import_once(log, [path], name="h")).history
    whole = await whole_timelines.timeline(log, info, page_max=500)
    assert {"Warning", "PodScheduled"} <= {row["kind"] for row in whole}
    subjects = {
        ObjectKey(row["api_group"], row["resource"], row["namespace"], row["name"]) for row in whole
    }
    for subject in sorted(subjects)[::4]:
        scope = scope_of((subject.group, subject.resource), subject.name, subject.namespace)
        events = await keyed_events.of_one_name(log, info.id, scope, until=Revision(658), most=82)
        assert events is not None
        reader = timelines.TimelineReader(log, info, scope, page_max=500)
        assert await reader.read() == [
            row
            for row in whole
            if subject == (row["api_group"], row["resource"], row["namespace"], row["name"])
        ]
