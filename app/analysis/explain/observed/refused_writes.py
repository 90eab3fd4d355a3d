"""Refused writes of an object, which only an audit log shows."""

from collections.abc import Iterator, Sequence

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason
from app.domain.log import Event, refusals


def newest(observed: Sequence[Event]) -> Event | None:
    """The newest refusal since the object last changed; `observed` are newest first."""
    for event in observed:
        if event.is_about_object:
            return None
        if refusals.is_refusal(event):
            return event
    return None


def reasons(observed: Sequence[Event]) -> Iterator[Reason]:
    """The newest write that was refused since the object last changed, and how many were."""
    event = newest(observed)
    if event is None:
        return
    since = next((one.revision for one in observed if one.is_about_object), 0)
    alike = [
        one
        for one in observed
        if one.revision > since
        and refusals.is_refusal(one)
        and refusals.message(one) == refusals.message(event)
    ]
    times = f", {len(alike)} times since its last change" if len(alike) > 1 else ""
    text = f"{sentence(event)}{times}"
    yield Reason(text=text, revision=event.revision, about=event.key, is_kept=True)


def sentence(event: Event) -> str:
    """The refusal of a write as a sentence."""
    verb = refusals.verb(event)
    what = f"an {verb}" if verb[0] in "aeiou" else f"a {verb}"
    return f"{what} {sources.by(event)} was refused: {refusals.message(event)}"
