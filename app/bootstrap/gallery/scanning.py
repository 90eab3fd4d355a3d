"""A stored history looked at for the incidents of the gallery."""

from app.analysis.scan.sightings import Sighting
from app.bootstrap.stores import Store, find_history, find_revision
from app.service.replays import scanning


async def scan(store: Store, name: str, moment: str) -> list[Sighting]:
    """What the history shows, up to `moment` (empty: its end)."""
    info = await find_history(store, name)
    until = await find_revision(store, info, moment, option="--at")
    return await scanning.scan(store.log, info, until)
