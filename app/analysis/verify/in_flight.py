"""Allocations that may be in flight when another one is decided: chosen, and not seen as written.

A real scheduler decides before it writes, several pods in a row, and writes them in any order. So
an allocation that is written a little later may have been chosen already, and a release that was
written a little earlier may not have been seen yet.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from app.analysis.verify.allocation_index import AllocationIndex, Written, is_placed
from app.analysis.verify.invariants.queues import WAIT_MAX
from app.analysis.views import LiveViews
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant
from projections import outlines

WINDOW = 15 * SECOND
"""How long before its write an allocation may have been chosen, besides the wait for a limit."""


class AllocationsInFlight:
    """The allocations about an event that may be in flight, while a log is folded."""

    def __init__(self, index: AllocationIndex, views: LiveViews) -> None:
        self._index = index
        self._views = views
        self._next = 0
        self._freed: deque[Written] = deque()
        self._new: dict[ObjectKey, Instant] = {}
        self.is_chosen_anew = False
        """Whether the one who allocates is asked as one who took over after the nomination."""

    @property
    def made(self) -> Revision:
        """The revision that made the claim of the last written allocation; 0 if not known."""
        return self._index.made_at(self._next)

    def chosen_by(self, event: Event) -> Revision:
        """The nomination before which the allocation that an event writes was chosen, or 0."""
        return Revision(0) if self.is_chosen_anew else self._index.chosen_by(event.revision)

    def decided_from(self, event: Event) -> Instant:
        """The earliest instant at which the allocation that an event writes may be chosen."""
        chosen = self._index.chosen_from(event.revision)
        return Instant(event.stamp.time - WINDOW) if chosen is None else chosen

    def is_entered_later(self, event: Event, pod: str, claims: Iterable[str]) -> bool:
        """Whether a pod or its claims were made when the allocation of an event was chosen."""
        chosen = self.chosen_by(event)
        return 0 < chosen < self._index.entered(pod, claims)

    def not_yet_freed(self, event: Event) -> list[Written]:
        """The allocations that were given back after the allocation of an event was chosen."""
        chosen = self.chosen_by(event)
        if not chosen:
            return []
        return [
            other
            for other in self._freed
            if other.revision > chosen and other.is_placed and self._may_be_assumed(event, other)
        ]

    @property
    def written_later(self) -> set[str]:
        """The uids of the claims that are allocated after the last event."""
        return {other.uid for other in self._index.written[self._next :]}

    def note(self, event: Event, held: JsonObject | None, allocation: JsonObject | None) -> None:
        """Remember what was freed, and leave allocations behind that are not in flight any more."""
        if held is not None and allocation is None:
            self._note_freed(event, held)
        elif held is None and allocation is not None:
            self._new[event.key] = event.stamp.time
            while self._next < len(self._index.written):
                if self._index.written[self._next].revision > event.revision:
                    break
                self._next += 1

    def is_new(self, event: Event, key: ObjectKey) -> bool:
        """Whether a claim was allocated so shortly before that another choice may not know it."""
        since = min(event.stamp.time - WINDOW, self.decided_from(event))
        return self._new.get(key, Instant(0)) >= since

    def another(
        self, event: Event, recorded: JsonObject, again: JsonObject, assumed: list[Written]
    ) -> Written | None:
        """The next allocation to assume in force: one that holds what was chosen differently.

        First those that hold a device chosen now and not then, then any of the same pools; of
        these the nearest write after the event, then the latest release before it.
        """
        chosen = devices_of(again) - devices_of(recorded)
        pools = {device[:2] for device in chosen}
        revisions = {(other.key, other.revision) for other in assumed}
        candidates = [
            other
            for other in (*self._later(event), *self._before(event))
            if (other.key, other.revision) not in revisions and self._may_be_assumed(event, other)
        ]
        for other in candidates:
            if chosen & devices_of(other.allocation):
                return other
        for other in candidates:
            if pools & {device[:2] for device in devices_of(other.allocation)}:
                return other
        return None

    def _may_be_assumed(self, event: Event, other: Written) -> bool:
        """Not the claim itself, none that holds devices now, none that others are yet to make."""
        if other.key == event.key:
            return False
        present = self._views.objects.get(other.key)
        if present is None or meta.uid(present) != other.uid:
            return other.revision < event.revision or not other.made
        return dra.allocation(present) is None

    def _later(self, event: Event) -> Iterator[Written]:
        """Allocations written after the event within the window, in order.

        One of a claim or pod that was made after the nomination for the event was chosen later.
        """
        chosen = self.chosen_by(event)
        for number in range(self._next, len(self._index.written)):
            other = self._index.written[number]
            if other.time > event.stamp.time + WINDOW + WAIT_MAX:
                return
            if 0 < chosen < other.entered:
                continue
            if other.decided_from <= event.stamp.time:
                yield other

    def _before(self, event: Event) -> Iterator[Written]:
        """Allocations that were freed before the event within the window, the latest first.

        A scheduler that knows a claim knows all writes of claims before it: one watch shows both.
        """
        made, since = self.made, self.decided_from(event)
        for other in reversed(self._freed):
            if other.time < since:
                return
            if other.revision > made or not other.is_placed:
                yield other

    def _note_freed(self, event: Event, held: JsonObject) -> None:
        freed = Written(
            revision=event.revision,
            time=event.stamp.time,
            key=event.key,
            uid=event.uid,
            allocation=held,
            is_placed=is_placed(event),
        )
        self._freed.append(freed)
        while self._freed[0].time < event.stamp.time - WINDOW - WAIT_MAX:
            self._freed.popleft()


def devices_of(allocation: JsonView) -> set[DeviceId]:
    """The devices of an allocation."""
    return {result.id for result in dra.results_of(allocation)}


def is_about_claim(event: Event) -> bool:
    """Whether an event is a write of a ResourceClaim."""
    return event.is_about_object and event.key[:2] == api_resources.RESOURCE_CLAIMS


def allocation_written(event: Event) -> JsonObject | None:
    """The allocation that a claim has after an event about it, if any."""
    if event.type is EventType.OBJECT_DELETED or b'"allocation"' not in event.body:
        return None
    if outlines.claim(event.body).status.allocation is None:
        return None
    allocation: JsonObject = dra.allocation(event.object)
    return allocation
