"""Answers for commands, computed without the API's code and equal to its answers byte for byte.

Importing the application takes longer than most answers. A query that fails is passed on to the
application, whose error is better: it names where a missing object exists, or why a history is
broken.
"""

from contextlib import suppress
from functools import partial

import msgspec

from app.analysis.explain.questions import Question, placed
from app.analysis.views import compiler_of
from app.bootstrap.answers import relative
from app.bootstrap.answers.bounds import blast_bounds, explain_bounds
from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.errors import InputError, LogError, Rejected
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from app.service.histories import Histories
from app.settings import Settings


async def ask(store: Store, settings: Settings, query: ServedQuery) -> bytes:
    """The answer to a query, from the application if necessary. Raises InputError, Rejected."""
    if query.part == "why" and query.body is None and not query.is_page:
        async with open_histories(store, settings) as histories:
            with suppress(InputError, Rejected, LogError):
                answer = await _why(store, settings, histories, query)
                return await relative.with_meanings(store, query, answer)
    from app.bootstrap.answers import served

    return await served.ask(store, settings, query)


async def _why(store: Store, settings: Settings, histories: Histories, query: ServedQuery) -> bytes:
    info = await find_history(store, query.history)
    revision = await find_revision(store, info, query.at, option="--at")
    runtime = await histories.open(info.name)
    views = runtime.views
    if query.at or views.revision != revision:
        views = await histories.at(info.name, revision)
    explainer = Explainer(
        runtime.log,
        await runtime.as_of(revision),
        views,
        compiler_of(views.profile),
        views.profile,
        past=PastMoments(
            views=partial(histories.at, info.name), devices=partial(histories.devices_at, info.name)
        ),
        bounds=explain_bounds(settings),
        blast_bounds=blast_bounds(settings),
    )
    now = await runtime.time_of(revision, query.at)
    answer = await explainer.why(_question(query), now)
    return msgspec.json.encode(answer.to_json())


def _question(query: ServedQuery) -> Question:
    parameters = query.parameters
    kind = parameters.get("kind", "")
    namespace, name = placed(
        kind, parameters.get("name", ""), parameters.get("namespace") or "default"
    )
    return Question(
        kind=kind,
        namespace=namespace,
        name=name,
        node=parameters.get("node", ""),
        help=parameters.get("help") == "true",
    )
