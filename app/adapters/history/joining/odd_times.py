"""Times of a request that contradict other times of the recording, or those of its object."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import overload

from app.adapters.history import times
from app.domain.log.records import Loss, Op, Record
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant


def contradict(record: Record, settled: Instant | None) -> bool:
    """True if the times of a request contradict other times by more than the clock skew.

    Either its instant in log order is before the request, so a later change was answered earlier,
    or after the response, so its own time is an outlier; or the response is before the creation of
    its object, or before the allocation or deletion that it shows; or the object was deleted before
    its creation; or the request that created it is after that creation.
    """
    requested, answered = record.asked_at, record.observed_at
    is_guess = Loss.NO_RV in record.losses
    if not is_guess and requested is not None and settled is not None:
        earliest = requested - times.CLOCK_SKEW
        if settled < earliest:
            return True
    if answered is not None and times.is_allocated_after(record.object or {}, answered):
        return True
    if answered is not None and settled is not None and answered < settled - times.CLOCK_SKEW:
        return True
    created = times.creation(record.object or {})
    if created is None or answered is None:
        return False
    if answered < created - times.CLOCK_SKEW:
        return True
    ended = times.deletion(record.object or {})
    if ended is not None and not _is_between(ended, created, answered):
        return True
    # An object records the second of its creation.
    latest = created + timestamps.SECOND + times.CLOCK_SKEW
    return record.op is Op.ADDED and requested is not None and requested > latest


def _is_between(ended: Instant, created: Instant, answered: Instant) -> bool:
    """Whether a deletion is between a creation and an answer, as far as clocks tell.

    The server that deletes has the clock of neither, and the times in objects are whole seconds.
    """
    skew = times.CLOCK_SKEW + timestamps.SECOND
    return created - skew <= ended <= answered + skew


Request = tuple[int | None, int | None]
"""When a request came and when it was answered, in microseconds; None if that is not known."""

_UNKNOWN = -(2**63)


class PackedRequests(Sequence[Request]):
    """Requests in 16 bytes each, because a recording may have millions of them."""

    def __init__(self, requests: Iterable[Request] = ()) -> None:
        self._times = array("q")
        for pair in requests:
            self._times.extend(_UNKNOWN if time is None else time for time in pair)

    def __len__(self) -> int:
        return len(self._times) // 2

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | Sequence[Request]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        at = 2 * range(len(self))[index]
        requested, answered = self._times[at], self._times[at + 1]
        return (
            None if requested == _UNKNOWN else requested,
            None if answered == _UNKNOWN else answered,
        )


_WITNESSES_MIN = 2
"""So many times that agree with all others outweigh one that contradicts them: of two that
contradict each other, either may be wrong."""


def outliers(requests: Sequence[Request]) -> frozenset[int]:
    """The places of answers that alone are too early, of requests (asked, answered) in log order.

    A change was requested before each later one was answered. An answer is an outlier if several
    earlier changes were requested after it, none of which any other answer contradicts.

    Example: requested at 10, 20 and 30 s, answered at 11, 21, 31 and 5 s. Only the last answer
    contradicts the requests, so that change is dated wrong, and not the two before it.
    """
    least = second = _NEVER
    """The least answer so far, from the end, and the one after it."""
    place = -1
    alone: dict[int, int] = {}
    tangled: list[int] = []
    for number in range(len(requests) - 1, -1, -1):
        requested, time = requests[number]
        latest = _latest(requested)
        if second < latest:
            tangled.append(number)
        elif least < latest:
            alone[place] = alone.get(place, 0) + 1
        if time is None:
            continue
        if time < least:
            least, second, place = time, least, number
        else:
            second = min(second, time)
    candidates = sorted(number for number, count in alone.items() if count >= _WITNESSES_MIN)
    latest, chosen = -_NEVER, []
    for number in candidates:
        while tangled and tangled[-1] < number:
            latest = max(latest, _latest(requests[tangled.pop()][0]))
        if (requests[number][1] or 0) >= latest:
            chosen.append(number)
    return frozenset(chosen)


def too_early(
    requests: Sequence[Request], times_of: Sequence[tuple[int | None, bool]]
) -> frozenset[int]:
    """The places of changes without versions with exact times before earlier requests."""
    newest: list[int] = []
    places = []
    for number, ((requested, answered), (time, is_exact)) in enumerate(
        zip(requests, times_of, strict=True)
    ):
        if answered is None and is_exact and time is not None:
            if len(newest) == _WITNESSES_MIN and time < newest[0]:
                places.append(number)
        elif requested is not None:
            newest = sorted((*newest, _latest(requested)))[-_WITNESSES_MIN:]
    return frozenset(places)


def before_creation(
    places: Collection[int],
    times_of: Sequence[tuple[int | None, bool]],
    creations: Iterable[tuple[str, int | None]],
) -> Iterator[int]:
    """Those of some places whose times are before the creation of their object.

    `creations` are the keys of all changes, and when their objects were created, if they show it.
    Such a change lies after the creation wherever its time is. So its time dates no other change.
    """
    made: dict[str, int] = {}
    for number, (key, created) in enumerate(creations if places else ()):
        if created is not None:
            made[key] = created
        time = times_of[number][0]
        if number in places and time is not None and time < made.get(key, 0) - times.CLOCK_SKEW:
            yield number


_NEVER = 2**62


def _latest(requested: int | None) -> int:
    """The instant before which an answer contradicts a request; before all without one."""
    return -_NEVER if requested is None else requested - times.CLOCK_SKEW
