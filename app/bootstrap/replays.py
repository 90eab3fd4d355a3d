"""Replays: of a history of the store, or of files, which are imported into memory first."""

from collections.abc import Callable
from pathlib import Path

from app.bootstrap.histories import rules_of, views_of
from app.bootstrap.recordings import Recording, import_history
from app.bootstrap.stores import Store, find_history
from app.domain.controllers import registry
from app.domain.errors import RevisionTooLarge
from app.domain.log import HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.domain.values import timestamps
from app.service import replaying
from app.service.histories import parse_moment
from app.service.replaying import FoldReport, ReplayBounds, VerifyReport
from app.service.views import compiler_of, features_of
from app.settings import Settings

Progress = Callable[[str, Revision, Revision], None]

REPLAYED = "replayed"
"""The name that a file's history has while it is replayed in memory."""


async def load_files(store: Store, settings: Settings, paths: tuple[Path, ...]) -> str:
    """Import files into a store in memory; returns the name of the history."""
    wanted = Recording(paths=paths)
    await import_history(store, settings, wanted, REPLAYED, lambda _done, _total: None)
    return REPLAYED


async def fold(
    store: Store, settings: Settings, name: str, moment: str, progress: Progress
) -> FoldReport:
    """Rebuild every view up to a moment (empty: all of it)."""
    info = await find_history(store, name)
    return await replaying.fold(
        store.log,
        info,
        until=await _until(store, info, moment),
        views=views_of(profiles.from_settings(info.settings))(),
        bounds=_bounds(settings),
        progress=progress,
    )


async def verify(
    store: Store, settings: Settings, name: str, moment: str, progress: Progress
) -> VerifyReport:
    """Check the chain and the invariants, and decide every decision again."""
    info = await find_history(store, name)
    rules = rules_of(info)
    compiler = compiler_of(rules.profile)
    options = registry.options_from(info.settings)
    return await replaying.verify(
        store.log,
        info,
        until=await _until(store, info, moment),
        rules=rules,
        controllers=registry.controllers(
            rules.profile, features_of(rules.profile), compiler, options
        ),
        compiler=compiler,
        bounds=_bounds(settings),
        quirks=options.allocator_quirks,
        progress=progress,
    )


async def _until(store: Store, info: HistoryInfo, moment: str) -> Revision:
    head = await store.log.head(info.id)
    if not moment:
        return head.revision
    found = parse_moment(moment)
    if not moment.isdigit():
        return await store.log.revision_at(info.id, timestamps.Instant(found))
    if found > head.revision:
        raise RevisionTooLarge(f"revision {found} does not exist: the last is {head.revision}")
    return Revision(found)


def _bounds(settings: Settings) -> ReplayBounds:
    return ReplayBounds(page_max=settings.projector_batch_max)
