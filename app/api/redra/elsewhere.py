"""Where else an object is that a history lacks, for who has mistaken the history."""

from app.analysis.explain.questions import key_of
from app.api.redra.answers import Asked, question_of
from app.domain.errors import NotFound
from app.service.explaining.explainer import NAMES_MAX
from app.service.histories import Histories


async def named(problem: NotFound, asked: Asked, histories: Histories) -> NotFound:
    """The problem with the names of other histories that have, or had, what the question is about.

    What is missing may be something else, such as the node that a question is confined to.
    """
    key = key_of(question_of(asked))
    if problem.resource != key.resource or problem.name not in ("", key.name):
        return problem
    names: list[str] = []
    log = asked.runtime.log
    for other in await histories.all():
        if other.id != asked.runtime.info.id:
            until = (await log.head(other.id)).revision
            if await log.read_object(other.id, key, until=until, limit=1):
                names.append(other.name)
            elif key.namespace:
                kind = (key.group, key.resource)
                known = await log.keys(other.id, kind, until=until, limit=NAMES_MAX)
                places = [each.namespace for each in known if each.name == key.name]
                names += [f"{other.name} (in namespace {place})" for place in places]
    if not names:
        return problem
    text = f"{problem.message}; history {', '.join(names)} has it"
    return NotFound(text, resource=problem.resource)
