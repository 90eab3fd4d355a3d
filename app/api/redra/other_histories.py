"""Other histories that have a missing object, for users who named the wrong history."""

from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.reasons import NAMES_MAX
from app.api.redra.inquiries import Inquiry, subject_of
from app.domain.errors import NotFound
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.log.event import KeyFilter
from app.domain.values import counts
from app.ports import EventLog
from app.service.histories import Histories


async def named(
    problem: NotFound, inquiry: Inquiry, histories: Histories, bounds: ExplainBounds
) -> NotFound:
    """The problem with the names of other histories that have, or had, the object in question.

    Another object may be missing, such as the node in the question; then the problem is unchanged.
    At most `histories_max` other histories are searched, until more have it than can be named.
    """
    key = await subject_of(inquiry)
    if problem.resource != key.resource or problem.name not in ("", key.name):
        return problem
    names: list[str] = []
    others = [each for each in await histories.all() if each.id != inquiry.runtime.info.id]
    searched = others[: bounds.histories_max]
    for number, other in enumerate(searched, 1):
        if place := await _place(inquiry.runtime.log, other, key, bounds.places_max):
            names.append(place)
        if len(names) > NAMES_MAX:
            is_all = number == len(others)
            break
    else:
        is_all = len(searched) == len(others)
    if not names:
        return problem
    noun, verb = ("history", "has") if len(names) == 1 else ("histories", "have")
    text = f"{problem.message}; {noun} {_listed(names, is_all=is_all)} {verb} it"
    return NotFound(text, resource=problem.resource)


async def _place(log: EventLog, other: HistoryInfo, key: ObjectKey, places_max: int) -> str:
    """The name of a history that has an object, with other namespaces in which it is; or empty."""
    until = (await log.head(other.id)).revision
    if await log.read_object(other.id, key, until=until, limit=1):
        return other.name
    if not key.namespace:
        return ""
    wanted = KeyFilter(*key[:2], name=key.name)
    known = await log.keys(other.id, wanted, until=until, limit=places_max)
    if not known:
        return ""
    noun = counts.plural(len(known), "namespace")
    places = _listed([each.namespace for each in known], is_all=len(known) < places_max)
    return f"{other.name} (in {noun} {places})"


def _listed(names: list[str], *, is_all: bool) -> str:
    """The first names and the number of others, with "at least" when not all were searched."""
    shown = ", ".join(names[:NAMES_MAX])
    left = len(names) - NAMES_MAX
    if left <= 0:
        return shown
    return f"{shown} and {'' if is_all else 'at least '}{left} more"
