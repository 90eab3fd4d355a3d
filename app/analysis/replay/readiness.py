"""The waits for the recorded pace in a run of the unchanged world.

A changed world has no recording of its own. An act at an instant at which the controller would not
act in the unchanged world follows from the change, and does not wait. Acts common to both worlds
keep the recorded pace. Attempts that a recording does not show have none.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping

from app.analysis.replay import tolerances
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.log import Event, EventType
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import Instant

WITH_WORK = frozenset(("claims",))
"""The queues whose controllers also look at keys without work.

Such a look does not wait: the next recorded act may follow from a later event.
"""

_OPEN = Instant(2**62)


class Readiness:
    """The waits of one run: of queue keys, of attempts whose result was deferred, and of plans.

    `starts` maps controllers to the instants at which they started: all their keys waited for that.
    """

    def __init__(self, starts: Mapping[str, Instant]) -> None:
        self._starts = starts
        self._waits: dict[tuple[str, tuple[str, ...]], list[tuple[Instant, Instant]]]
        self._waits = defaultdict(list)
        self._put_off: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)
        self._work: dict[tuple[str, tuple[str, ...]], list[tuple[Instant, Instant]]]
        self._work = defaultdict(list)
        self._under_way: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)
        self._placeable: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)

    def note(self, queue: str, key: tuple[str, ...], ready: Instant, due: Instant) -> None:
        """Notes that a key was ready at `ready` and had to wait until `due`."""
        _extend(self._waits[queue, key], ready, due)

    def note_work(self, queue: str, key: tuple[str, ...], now: Instant) -> None:
        """Notes that a key of a queue in `WITH_WORK` has something to do from now on."""
        _open(self._work[queue, key], now)

    def note_no_work(self, queue: str, key: tuple[str, ...], now: Instant) -> None:
        """Notes that nothing is left to do for a key."""
        _close(self._work.get((queue, key), []), now)

    def note_placeable(self, pod: str, now: Instant, *, is_placeable: bool) -> None:
        """Notes whether a pod (a uid) could be placed from now on, although nobody tries it."""
        if is_placeable:
            _open(self._placeable[pod], now)
        else:
            _close(self._placeable.get(pod, []), now)

    def note_put_off(self, pod: str, tried: Instant, due: Instant) -> None:
        """Notes that the result of an attempt for a pod (a uid) did not count."""
        _extend(self._put_off[pod], tried, due)

    def note_under_way(self, controller: str, made: Instant, stored: Instant) -> None:
        """Notes that a controller made a plan at `made` which was stored later."""
        self._under_way[controller].append((made, stored))

    def under_way_until(self, controller: str, now: Instant) -> Instant | None:
        """When the plan was stored that the controller had under way now; None without one."""
        plans = self._under_way.get(controller, [])
        number = bisect_right(plans, (now, _OPEN)) - 1
        return plans[number][1] if number >= 0 and plans[number][1] > now else None

    def was_waiting(self, queue: str, key: tuple[str, ...], now: Instant) -> bool:
        """Whether the key waited at about this instant, for work that it had by then."""
        if queue in WITH_WORK and not _covers(self._work.get((queue, key), []), now):
            return False
        start = self._starts.get(queue.partition("/")[0])
        if start is not None and now <= start:
            return True
        return _covers(self._waits.get((queue, key), []), now)

    def was_put_off(self, pod: str, now: Instant) -> bool:
        """Whether a result for the pod was put off at about this instant."""
        return _covers(self._put_off.get(pod, []), now)

    def was_placeable(self, pod: str, now: Instant) -> bool:
        """Whether the pod could be placed at about this instant, and was not tried."""
        return _covers(self._placeable.get(pod, []), now)


class QuietAttempts:
    """Attempts that a recording does not show, in a changed world and in its control.

    An attempt that fails for a reason which is stated already writes nothing. So between two
    recorded attempts a pod may have been tried many times, each time in vain, and a run of the
    recording leaves these attempts out. In a changed world one of them may place the pod: there
    they are made, and one counts only if it places the pod and would not place it in the unchanged
    world. The control makes them, too, and notes what they would have done: it is the run without
    `control`, and keeps its notes in `readiness`.
    """

    def __init__(self, readiness: Readiness, control: Readiness | None) -> None:
        self._readiness = readiness
        self._control = control
        self._refused: set[str] = set()
        self._until: dict[str, Instant] = {}

    def follow(self, event: Event) -> None:
        """Notes which pods are refused and may be tried again."""
        is_there = event.type is not EventType.OBJECT_DELETED
        if is_there and not meta.is_deleting(event.object) and core.is_refused(event.object):
            self._refused.add(event.uid)
        else:
            self._refused.discard(event.uid)

    def begins(self, pod: str, now: Instant, due: Instant) -> bool:
        """Whether a pod (a uid) that may be tried now is tried quietly until a recorded attempt.

        A pod in the queue is tried after its back-off, so a later attempt is not the next one.
        """
        is_next = due <= now + tolerances.TABLE.unseen_try
        if is_next or pod not in self._refused:
            return False
        self._until[pod] = due
        return True

    def is_on(self, pod: str) -> bool:
        """Whether the attempt that is made for a pod is quiet."""
        return pod in self._until

    def end(self, pod: str) -> Instant | None:
        """The instant of the recorded attempt that a quiet one came before; None for others."""
        return self._until.pop(pod, None)

    def counts(self, pod: str, tried: AttemptOutcome, now: Instant) -> bool:
        """Whether the outcome of a quiet attempt follows from the change."""
        is_placeable = bool(tried.node) or tried.moves_others
        if self._control is None:
            self._readiness.note_placeable(pod, now, is_placeable=is_placeable)
            return False
        return is_placeable and not self._control.was_placeable(pod, now)


def _open(spans: list[tuple[Instant, Instant]], now: Instant) -> None:
    if not spans or spans[-1][1] < _OPEN:
        spans.append((now, _OPEN))


def _close(spans: list[tuple[Instant, Instant]], now: Instant) -> None:
    if spans and spans[-1][1] == _OPEN:
        spans[-1] = (spans[-1][0], now)


def _extend(waits: list[tuple[Instant, Instant]], since: Instant, due: Instant) -> None:
    if waits and since <= waits[-1][1]:
        waits[-1] = (waits[-1][0], Instant(max(due, waits[-1][1])))
    else:
        waits.append((since, due))


def _covers(waits: list[tuple[Instant, Instant]], now: Instant) -> bool:
    return any(since - tolerances.TABLE.unseen <= now <= due for since, due in waits)
