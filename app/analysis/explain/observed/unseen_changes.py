"""Changes of an object after its last recorded state, of which no state was recorded."""

from collections.abc import Iterator, Sequence
from itertools import dropwhile, groupby

from app.analysis.explain import questions, sources
from app.analysis.explain.reasons import Reason
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.doubts import Affects, Doubt
from app.domain.log.records import Loss

GONE = "whether it is gone was not recorded"

REQUESTS_MAX = 6
"""The number of writes without content that are told of one object."""


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


def requests(observed: Sequence[Event]) -> list[Reason]:
    """The last writes since the newest state of an object, or before its deletion, without content.

    They show who wrote the object, and when. Equal ones in a row are told once.
    """
    gaps = _gaps([*dropwhile(lambda event: event.type is EventType.OBJECT_DELETED, observed)])
    runs = [[*run] for _, run in groupby(gaps, lambda gap: (gap.stamp.verb, gap.stamp.actor.user))]
    reasons = []
    for run in runs[:REQUESTS_MAX]:
        text = f"{run[0].stamp.verb} {sources.by(run[0])}, without its content"
        text += f", the last of {len(run)} in a row" if len(run) > 1 else ""
        revision = run[0].revision
        reasons.append(Reason(text=text, revision=revision, about=run[0].key, is_kept=True))
    if (left := len(runs) - REQUESTS_MAX) > 0:
        reasons.append(Reason(text=f"and before that, others: {left}"))
    return reasons


def _gaps(observed: Sequence[Event]) -> Iterator[Event]:
    for event in observed:
        if event.is_about_object:
            return
        if event.type is EventType.GAP_OBSERVED:
            yield event


def _losses(gap: Event) -> tuple[str, ...]:
    return () if gap.stamp.origin is None else gap.stamp.origin.losses
