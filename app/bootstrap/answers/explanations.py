"""Explanations of one history at one moment, for the command line."""

from app.analysis.views import LiveViews
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import Store, find_history, find_revision
from app.settings import Settings


async def views_at(store: Store, settings: Settings, name: str, moment: str) -> LiveViews:
    """The views of a history at `moment` (empty: now)."""
    info = await find_history(store, name)
    async with open_histories(store, settings) as histories:
        revision = await find_revision(store, info, moment, option="--at")
        return await histories.at(name, revision)
