"""The showing of recorded events: each becomes a command, with the object as recorded before it.

Times are shifted if the replay shifts them. The shown objects are remembered: a difference from
them is a change by clients.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision, replays
from app.domain.log.replays import ConflictReason
from app.domain.objects import history_kinds
from app.domain.objects.kinds import secret_values
from app.domain.objects.schema import corrections, structural
from app.domain.objects.write.commands import ReplayEvent
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import moments
from app.service.pacing import stage
from app.service.pacing.shifting import TimeMap, shifted
from app.service.pacing.stage import StageTarget
from app.service.runtime import HistoryRuntime

_SHOWN = frozenset(
    {
        EventType.OBJECT_CREATED,
        EventType.OBJECT_UPDATED,
        EventType.OBJECT_DELETED,
        EventType.GAP_OBSERVED,
        EventType.REQUEST_OBSERVED,
        EventType.HISTORY_IMPORTED,
    }
)
"""The types of events that are shown. Decisions are not: they name revisions of the recording."""


@dataclass(slots=True)
class Shown:
    """The events shown since the last turn: counts, conflicts, and the recorded objects.

    `recorded` has the last recorded state of each shown object that still exists in the recording.
    `held` are the objects that could not be shown because another object had the name.
    """

    events: int = 0
    conflicts: int = 0
    listed: deque[Event] = field(default_factory=deque)
    recorded: dict[ObjectKey, JsonObject] = field(default_factory=dict)
    held: dict[ObjectKey, Event] = field(default_factory=dict)

    def remember(self, recorded: Mapping[ObjectKey, JsonObject | None]) -> None:
        """Store the recorded states of objects; None means a deleted object, which is removed."""
        for key, tree in recorded.items():
            if tree is None:
                self.recorded.pop(key, None)
            else:
                self.recorded[key] = tree


class Showing:
    """Makes commands of recorded events, and counts their results since the last turn."""

    def __init__(
        self,
        log: EventLog,
        parent: HistoryInfo,
        times: TimeMap,
        *,
        shifts: bool,
        conflicts_max: int,
        objects_max: int,
    ) -> None:
        self.shown = Shown()
        self.times = times
        self.shifts = shifts
        self._log = log
        self._parent = parent
        self._conflicts_max = conflicts_max
        self._objects_max = objects_max

    async def commands(
        self, runtime: HistoryRuntime, events: Sequence[Event]
    ) -> tuple[list[ReplayEvent], dict[ObjectKey, JsonObject | None]]:
        """The commands that show events, and the recorded objects after these events."""
        recorded: dict[ObjectKey, JsonObject | None] = {}
        commands = [
            await self._command(runtime, event, recorded)
            for event in events
            if event.type in _SHOWN
        ]
        return commands, recorded

    def count(
        self,
        commands: Sequence[ReplayEvent],
        last: Sequence[Event | None],
        events: Sequence[Event],
    ) -> None:
        """Take in the results of commands: the last event of each, None where nothing changed."""
        shown = self.shown
        by_revision = {event.revision: event for event in events}
        for command, event in zip(commands, last, strict=True):
            shown.events += 1
            shown.held.pop(command.key, None)
            if event is None or event.type is not EventType.CONFLICT_OBSERVED:
                continue
            shown.conflicts += 1
            shown.listed.append(event)
            if len(shown.listed) > self._conflicts_max:
                shown.listed.popleft()
            if replays.conflict_of(event).conflict == ConflictReason.OTHER_OBJECT:
                shown.held[command.key] = by_revision[Revision(command.origin.replayed)]

    def take_free(self, runtime: HistoryRuntime) -> list[ReplayEvent]:
        """The commands that show recorded objects whose names have become free."""
        free = [key for key in self.shown.held if runtime.views.objects.event(key) is None]
        commands = []
        for key in free:
            event = self.shown.held.pop(key)
            tree = self.shown.recorded.get(key)
            if tree is not None:
                commands.append(self._made(runtime, event, tree))
        return commands

    def as_shown(self, runtime: HistoryRuntime, key: ObjectKey, tree: JsonObject) -> JsonObject:
        """The recorded object with decrypted Secret values, and shifted times if enabled."""
        rules = runtime.rules
        if rules.secrets is not None and secret_values.is_secret(key):
            tree = secret_values.revealed(key, tree, rules.secrets)
        if not self.shifts:
            return tree
        kind = history_kinds.find(runtime.views.objects, key.group, key.resource)
        schemas = rules.schemas
        loose = schemas.root(corrections.LOOSE)
        node = loose if kind is None else structural.storage_node(schemas, kind)
        return shifted(node, tree, self.times)

    async def turn(self, runtime: HistoryRuntime, target: StageTarget) -> None:
        """Take in a turn: the objects are those of another moment, and counts start again."""
        self.shown = Shown()
        if not self.shifts:
            return
        # Later on, the same times would be shifted to other instants.
        objects = moments.objects_at(self._log, self._parent, target.revision, self._objects_max)
        async for event in objects:
            tree = self.as_shown(runtime, event.key, event.object)
            self.shown.recorded[event.key] = tree

    async def _command(
        self, runtime: HistoryRuntime, event: Event, recorded: dict[ObjectKey, JsonObject | None]
    ) -> ReplayEvent:
        tree, before = event.object, None
        if event.is_about_object:
            tree = self.as_shown(runtime, event.key, event.object)
            before = await self._before(runtime, event, recorded)
            is_gone = event.type is EventType.OBJECT_DELETED
            recorded[event.key] = None if is_gone else tree
        stamp = event.stamp
        return ReplayEvent(
            type=event.type,
            key=event.key,
            uid=event.uid,
            tree=tree,
            before=before,
            time=self.times.shown(stamp.time),
            actor=stamp.actor,
            verb=stamp.verb,
            request_id=stamp.request_id,
            origin=stage.origin_of(event, self._parent),
        )

    async def _before(
        self, runtime: HistoryRuntime, event: Event, recorded: dict[ObjectKey, JsonObject | None]
    ) -> JsonObject | None:
        """The recorded state of the object before an event."""
        key = event.key
        if key in recorded:
            return recorded[key]
        if key in self.shown.recorded:
            return self.shown.recorded[key]
        if event.type is EventType.OBJECT_CREATED:
            # Nothing was there: a log has a deletion before it creates an object once more.
            return None
        until = Revision(event.revision - 1)
        last = await moments.last_state(self._log, self._parent.id, key, until)
        if last is None or last.type is EventType.OBJECT_DELETED:
            return None
        return self.as_shown(runtime, key, last.object)

    def _made(self, runtime: HistoryRuntime, event: Event, tree: JsonObject) -> ReplayEvent:
        """The command that shows an object which could not be shown at its recorded event."""
        return ReplayEvent(
            type=EventType.OBJECT_CREATED,
            key=event.key,
            uid=meta.uid(tree),
            tree=tree,
            before=None,
            time=runtime.clock.now(),
            actor=event.stamp.actor,
            verb=event.stamp.verb,
            request_id=event.stamp.request_id,
            origin=stage.origin_of(event, self._parent),
        )
