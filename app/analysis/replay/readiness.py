"""The waits for the recorded pace in a run of the unchanged world.

A changed world has no recording of its own. An act at an instant at which the controller would not
act in the unchanged world follows from the change, and does not wait. Acts common to both worlds
keep the recorded pace.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping

from app.analysis.replay import tolerances
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
