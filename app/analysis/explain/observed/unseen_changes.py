"""Changes of an object after its last recorded state, of which no state was recorded."""

from collections.abc import Iterator, Sequence

from app.analysis.explain import questions
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.doubts import Affects, Doubt
from app.domain.log.records import Loss

GONE = "whether it is gone was not recorded"


def may_be_gone(observed: Sequence[Event]) -> bool:
    """Whether a deletion that may have ended the object is the last that is known of it.

    `observed` are the states of the object and the requests about it, newest first.
    """
    return any(Loss.NO_DELETE_STATE.value in _losses(gap) for gap in _gaps(observed))


def doubts(key: ObjectKey, observed: Sequence[Event]) -> list[Doubt]:
    """A doubt about the object for each gap since its last state."""
    return [
        Doubt(
            code=Loss.GAP.value,
            affects=Affects.CONTENT,
            kind=questions.subject_of(key),
            count=0,
            text=str(gap.object.get("message", "")),
        )
        for gap in _gaps(observed)
    ]


def _gaps(observed: Sequence[Event]) -> Iterator[Event]:
    for event in observed:
        if event.is_about_object:
            return
        if event.type is EventType.GAP_OBSERVED:
            yield event


def _losses(gap: Event) -> tuple[str, ...]:
    return () if gap.stamp.origin is None else gap.stamp.origin.losses
