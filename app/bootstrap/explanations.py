"""Explanations of one history at one moment, for the command line."""

from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.objects import profile as profiles
from app.service.explaining import Answer, Explainer, Question
from app.service.views import LiveViews
from app.settings import Settings


async def why(
    store: Store, settings: Settings, name: str, moment: str, question: Question
) -> Answer:
    """The answer as of `moment` (empty: now). Raises NotFound, InputError."""
    info = await find_history(store, name)
    views = await views_at(store, settings, name, moment)
    profile = profiles.from_settings(info.settings)
    return await Explainer(store.log, info, views, CelCompiler(), profile).why(question)


async def views_at(store: Store, settings: Settings, name: str, moment: str) -> LiveViews:
    """The views of a history as of `moment` (empty: now)."""
    info = await find_history(store, name)
    async with open_histories(store, settings) as histories:
        if not moment:
            moment = str((await store.log.head(info.id)).revision)
        return await histories.at(name, moment)
