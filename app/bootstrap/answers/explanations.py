"""Explanations of one history at one moment, for the command line."""

from app.analysis.blast.compare import BlastBounds
from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import ObjectExplanation, Question, key_of
from app.analysis.views import LiveViews
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import NotFound
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.service.explaining import Explainer
from app.settings import Settings


async def why(
    store: Store, settings: Settings, name: str, moment: str, question: Question
) -> ObjectExplanation:
    """The answer as of `moment` (empty: now). Raises NotFound, InputError."""
    info = await find_history(store, name)
    profile = profiles.from_settings(info.settings)
    async with open_histories(store, settings) as histories:
        revision = await find_revision(store, info, moment, option="--at")
        explainer = Explainer(
            store.log,
            info,
            await histories.at(name, revision),
            CelCompiler(),
            profile,
            views_at=lambda revision: histories.at(name, revision),
            bounds=explain_bounds(settings),
            blast_bounds=blast_bounds(settings),
        )
        try:
            return await explainer.why(question)
        except NotFound as problem:
            others = await _histories_with(store, info, question)
            if not others:
                raise
            text = f"{problem.message}; history {', '.join(others)} has it"
            raise NotFound(text, resource=problem.resource) from problem


async def _histories_with(store: Store, info: HistoryInfo, question: Question) -> list[str]:
    """Other histories in which there is, or was, what a question is about."""
    key = key_of(question)
    names: list[str] = []
    for other in await store.log.histories():
        if other.id != info.id:
            head = await store.log.head(other.id)
            if await store.log.read_object(other.id, key, until=head.revision, limit=1):
                names.append(other.name)
    return names


def explain_bounds(settings: Settings) -> ExplainBounds:
    """How much is looked at for one question."""
    return ExplainBounds(
        steps_max=settings.explain_steps_max,
        followed_nodes_max=settings.explain_followed_nodes_max,
        quirk_nodes_max=settings.explain_quirk_nodes_max,
        help_nodes_max=settings.help_nodes_max,
        help_changes_max=settings.help_changes_max,
        help_tries_max=settings.help_tries_max,
    )


def blast_bounds(settings: Settings) -> BlastBounds:
    """The bounds of an answer about a change."""
    return BlastBounds(
        changes_max=settings.blast_changes_max,
        listed_max=settings.blast_listed_max,
        waiting_max=settings.blast_waiting_max,
    )


async def views_at(store: Store, settings: Settings, name: str, moment: str) -> LiveViews:
    """The views of a history as of `moment` (empty: now)."""
    info = await find_history(store, name)
    async with open_histories(store, settings) as histories:
        revision = await find_revision(store, info, moment, option="--at")
        return await histories.at(name, revision)
