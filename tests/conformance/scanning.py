"""The scan of a stored history for the incidents of the gallery."""

from app.analysis.scan.sightings import ScanReport
from app.bootstrap.stores import Store, find_history, find_revision
from app.service import moments
from app.service.replays import scanning
from app.settings import Settings


async def scan(store: Store, settings: Settings, name: str, moment: str) -> ScanReport:
    """Scan a history for incidents, up to `moment` (empty: its end)."""
    info = await find_history(store, name)
    until = await find_revision(store, info, moment, option="--at")
    info = await moments.history_at(store.log, info, until)
    return await scanning.scan(store.log, info, until, attempts_max=settings.scan_attempts_max)
