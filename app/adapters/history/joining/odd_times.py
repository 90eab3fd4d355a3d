"""Times of a request that contradict other times of the recording, or those of its object."""

from app.adapters.history import times
from app.domain.log.records import Loss, Op, Record
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant


def contradict(record: Record, settled: Instant | None) -> bool:
    """True if the times of a request contradict other times by more than the clock skew.

    Either its instant in log order is before the request, so a later change was answered earlier;
    or the response is before the creation of its object, or before the allocation or deletion that
    it shows; or the object was deleted before its creation; or the request that created it is after
    that creation.
    """
    requested, answered = record.asked_at, record.observed_at
    is_guess = Loss.NO_RV in record.losses
    if not is_guess and requested is not None and settled is not None:
        earliest = requested - times.CLOCK_SKEW
        if settled < earliest:
            return True
    if answered is not None and times.is_allocated_after(record.object or {}, answered):
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
