"""A stored history looked at for the incidents of the gallery."""

from dataclasses import replace

from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import Sighting
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.controllers import registry
from app.domain.log import Revision
from app.domain.objects import profile as profiles
from app.service.replays.verifying import switches_of

PAGE = 5_000
"""Events that are read at once."""


async def scan(store: Store, name: str, moment: str) -> list[Sighting]:
    """What the history shows, up to `moment` (empty: its end)."""
    info = await find_history(store, name)
    until = await find_revision(store, info, moment, option="--at")
    profile = profiles.from_settings(info.settings)
    quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
    # What the release is known to do wrong is what is looked for.
    switches = replace(switches_of(profile, quirks), distinct_by_last=False, rules_unseen=False)
    scanning = Scan(switches)
    after = Revision(0)
    while after < until:
        events = await store.log.read(info.id, after=after, limit=PAGE, until=until)
        if not events:
            break
        scanning.follow(events)
        after = events[-1].revision
    return scanning.found()
