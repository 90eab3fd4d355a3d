"""Records with times that contradict others, and the differences that depend on these times.

A clock that is wrong contradicts others in many places: nobody knows then when anything was done. A
single record, or the records of a single object, tell nothing of other times. What is dated by them
is in doubt, and what may have been decided by the state that they show, at about that time.

Example: of five requests in the order of their versions, the second one came at 50 s, and the
others are answered at 10 s, 11 s, 12 s and 13 s. Its time contradicts those of the last three,
which agree with each other: it was stored between 10 s and 11 s, and its own time is wrong.
"""

from collections.abc import Collection
from dataclasses import dataclass

from app.analysis.replay.instants import skew_shown
from app.analysis.replay.unsure.dependence import TAINTS, Read
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE, IN_FLIGHT
from app.domain.log import Event, ObjectKey
from app.domain.log.records import Loss
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A record: its object, its request, and the instants between which it was stored.

    Others could see it from `known` on; `before` is the same of the record before it.
    """

    key: ObjectKey
    uid: str
    revision: int
    requested: int
    answered: int
    before: Instant
    known: Instant


class OddTimes:
    """Follows a recording event by event, in its order; `conclude` ends it.

    With `is_doubted`, the fidelity report says that there are such times.
    """

    def __init__(self, *, is_doubted: bool) -> None:
        self.are_everywhere = is_doubted
        self._odd: list[_Record] = []
        self._earlier: dict[int, list[_Record]] = {}
        # The records that were answered before a later one of them was asked, by its revision.
        self._latest = 0
        self._known = Instant(0)
        self._skew = self._odd_skew = 0

    def note(self, event: Event, known: Instant) -> None:
        """Processes an event that others could see from instant `known` on."""
        before, self._known = self._known, known
        origin = event.stamp.origin
        is_odd = origin is not None and Loss.TIMES_CONTRADICT in origin.losses
        if is_odd:
            self._odd_skew = max(self._odd_skew, skew_shown(event))
        else:
            self._skew = max(self._skew, skew_shown(event))
        if origin is None or not (event.is_about_object and self.are_everywhere):
            return
        answered = origin.answered
        is_early = 0 < answered < self._latest - CLOCK_TOLERANCE
        if not (is_early or is_odd):
            return
        record = _Record(
            key=event.key,
            uid=event.uid,
            revision=event.revision,
            requested=origin.asked,
            answered=answered,
            before=before,
            known=known,
        )
        for each in self._odd if is_early else ():
            if answered < each.requested - CLOCK_TOLERANCE:
                self._earlier.setdefault(each.revision, []).append(record)
        if is_odd:
            self._odd.append(record)
            self._latest = max(self._latest, origin.asked)

    def conclude(self) -> None:
        """Decides whether the times of one accident are wrong, or those of a clock.

        Of two records that contradict each other alone, either may be wrong.
        """
        late = [each for each in self._odd if each.revision in self._earlier]
        if len(late) > 1 or len({each.key for each in self._odd}) != 1:
            return
        self.are_everywhere = False
        for each in late:
            early = self._earlier[each.revision]
            self._odd += early if len(early) == 1 else ()

    @property
    def skew(self) -> int:
        """The least difference between the clocks of servers, in microseconds.

        The wrong time of a single accident shows nothing of clocks.
        """
        return max(self._skew, self._odd_skew if self.are_everywhere else 0)

    @property
    def revisions(self) -> Collection[int]:
        """The revisions of the events with such times, or whose times contradict theirs."""
        return {each.revision for each in self._odd}

    def concern(
        self,
        uids: Collection[str],
        keys: Collection[ObjectKey],
        began: Instant,
        read: Read | None,
    ) -> bool:
        """Whether a difference that began at an instant depends on such a time.

        It is about the objects with these uids and keys, and may depend on what `read` says, None
        for any object.
        """
        return self.are_everywhere or any(
            each.uid in uids
            or any(key == each.key or _is_in(key, each.key) for key in keys)
            or _may_cause(each, began, read)
            for each in self._odd
        )


def _may_cause(odd: _Record, began: Instant, read: Read | None) -> bool:
    """Whether something that depends on all objects of some kinds depends on that time."""
    if began < odd.before or (read is not None and odd.key[:2] not in read.kinds):
        return False
    # Taints evict by the time at which they were added.
    is_dated = read is not None and odd.key[:2] in TAINTS
    return is_dated or began <= odd.known + IN_FLIGHT


def _is_in(key: ObjectKey, place: ObjectKey) -> bool:
    """Whether an object is in a namespace, with which it ends."""
    return place[:2] == api_resources.NAMESPACES and key.namespace == place.name
