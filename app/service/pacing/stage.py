"""The stage: the history in which a replay is shown, a fork of the recording that clients write to.

It is named after the recording, and each recording has at most one. Playing again continues in the
same history. A move backwards appends, in one step, the changes that restore the objects to their
recorded state, with `ReplaySought` at the end. So a revision never means two states, and a client
that follows from before the move must list again (410).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec import structs

from app.domain.errors import InputError
from app.domain.log import REPLAYS, Event, EventType, HistoryInfo, ObjectKey, Origin, Revision
from app.domain.log.event import EVENTS_PAGE, Actor
from app.domain.objects.write.commands import Command, ImportObject, RecordFact
from app.domain.objects.write.replaying import rebasing
from app.domain.values import timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import forking, history_creation, moments
from app.service.forking import ForkSwitches
from projections.objects import ObjectsProjection

SUFFIX = "~paced"
"""The suffix that makes a recording's name the name of its replay. Users cannot give such names."""

PLAYER = Actor(user="redra:replay")
"""The actor that moves a replay to another moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTarget:
    """A state of the recording: the objects at `revision`, whose time is `time`."""

    revision: Revision
    time: Instant


def name_of(history: str) -> str:
    """The name of the replay of a recording."""
    return f"{history}{SUFFIX}"


async def make(
    log: EventLog, parent: HistoryInfo, begin: StageTarget, created: Instant
) -> HistoryInfo:
    """Make the history of a replay that begins at a revision of the recording."""
    end = await forking.end_at(log, parent, begin.revision)
    settings = await forking.settings_of(log, parent, end, ForkSwitches())
    fork = partial(
        forking.make_fork,
        log,
        parent=parent,
        end=end,
        seed=parent.seed,
        settings={**settings, "paced": True},
        created=created,
        actor=PLAYER,
    )
    async with history_creation.unfinished(log, name_of(parent.name), fork) as info:
        return info


async def first_state(log: EventLog, parent: HistoryInfo) -> StageTarget:
    """The default beginning of a replay: the objects when the recording began.

    Those are the objects of the events at its first instant, or of all events of the first list.
    """
    first: Event | None = None
    last: Event | None = None
    after = Revision(0)
    while events := await log.read(parent.id, after=after, limit=EVENTS_PAGE):
        for event in events:
            first = first or event
            is_listed = event.stamp.verb == "baseline"
            if last is not None and event.stamp.time > first.stamp.time and not is_listed:
                return StageTarget(revision=last.revision, time=last.stamp.time)
            last = event
        after = events[-1].revision
    if last is None:
        raise InputError(f"history {parent.name} has no events to replay")
    return StageTarget(revision=last.revision, time=last.stamp.time)


async def turn(
    log: EventLog,
    parent: HistoryInfo,
    target: StageTarget,
    present: ObjectsProjection,
    shown: Callable[[ObjectKey, JsonObject], JsonObject],
    *,
    objects_max: int,
    changes_max: int,
) -> list[Command]:
    """The commands that restore the present objects to a state of the recording.

    Raises InputError for too many objects, or more than `changes_max` changes and deletions.
    """
    commands: list[Command] = []
    deletions: list[Command] = []
    keys: set[ObjectKey] = set()

    def expect_room() -> None:
        if len(commands) + len(deletions) > changes_max:
            raise InputError(
                f"the move to revision {target.revision} of {parent.name} changes more than "
                f"{changes_max} objects",
                cure="move to a nearer moment, delete the replay to start again, or raise "
                "REDRA_REPLAY_CHANGES_MAX",
            )

    async for event in moments.objects_at(log, parent, target.revision, objects_max):
        keys.add(event.key)
        tree = shown(event.key, event.object)
        current = present.get(event.key)
        if current is None or not rebasing.is_same(current, tree):
            commands.append(
                ImportObject(
                    operation="ADDED" if current is None else "MODIFIED",
                    key=event.key,
                    uid=event.uid,
                    tree=tree,
                    origin=origin_of(event, parent),
                )
            )
            expect_room()
    for group, resource in present.resources():
        for event in list(present.events(group, resource)):
            if event.key not in keys:
                deletions.append(
                    ImportObject(
                        operation="DELETED",
                        key=event.key,
                        uid=event.uid or meta.uid(event.object),
                        tree=event.object,
                    )
                )
                expect_room()
    time = timestamps.micro_text(target.time)
    body: JsonObject = {
        "history": parent.name,
        "revision": target.revision,
        "time": time,
        "objects": len(commands) + len(deletions),
        "message": f"shown from revision {target.revision} of {parent.name} on, which is of {time}",
    }
    fact = RecordFact(type=EventType.REPLAY_SOUGHT.value, key=REPLAYS, body=body)
    return [*deletions, *commands, fact]


def origin_of(event: Event, parent: HistoryInfo) -> Origin:
    """The origin of a shown event: its own origin, with the revision where it was recorded."""
    origin = event.stamp.origin
    if origin is None:
        return Origin(
            source=f"history {parent.name}",
            resource_version=str(event.revision),
            replayed=event.revision,
        )
    # The request came and was answered in the recording's time, which may be shifted.
    return structs.replace(origin, asked=0, answered=0, replayed=event.revision)
