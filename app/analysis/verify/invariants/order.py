"""The order of a write of a pod and of another object, of which one has no version.

A binding is answered without a version, and so are some deletions. Their place among the writes of
other objects is a guess from their times. Writes of the same object that have a version bound it.
Parity: history-formats.md 4.5.
"""

from app.analysis.verify.invariants.cluster import losses_of
from app.analysis.verify.invariants.known import KnownPod
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE
from app.domain.log import Event
from app.domain.log.records import Loss


def may_be_swapped(pod: KnownPod, one: Event, other: Event) -> bool:
    """Whether only its time placed one of two writes before or after the other one.

    `one` came before `other`, as recorded. API servers date what they answer, so times that are
    less apart than clocks may differ tell no order. Where times contradict the order, no two clocks
    do; but two writes of the same user have the same clock, right or corrected, unless only one of
    them was corrected.
    """
    corrected = [Loss.TIMES_CONTRADICT in losses_of(each) for each in (one, other)]
    is_one_clock = one.stamp.actor.user == other.stamp.actor.user and len(set(corrected)) == 1
    guessed = [each.key for each in (one, other) if Loss.NO_RV in losses_of(each)]
    if guessed and any(corrected) and not is_one_clock:
        return True
    return (
        one.key != other.key
        and pod.key in guessed
        and pod.placed <= one.revision
        and other.stamp.time - one.stamp.time < CLOCK_TOLERANCE
    )
