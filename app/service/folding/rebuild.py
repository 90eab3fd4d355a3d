"""Rebuilding of views: drops the rows, folds the log again, and compares the result.

`same` is the promise of the design (same log, same views): the new state hash at the revision of
the old checkpoint equals the hash stored there. The stored rows can be compared as well, which
finds rows that were changed by hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from app.domain.errors import LogUnavailable
from app.domain.log import HistoryId, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Projection, dumped
from app.ports import ALL_ROWS, Checkpoint, EventLog, ViewStore
from app.service.folding import kept_chronicles, projecting, snapshots
from app.service.folding.projecting import FoldingBounds, MakeViews

Progress = Callable[[str, Revision, Revision], None]
"""Called with a view's name, the revision folded and the revision to reach."""

PAUSE_SECONDS = 0.1
"""Pause before a view is rebuilt again, doubled each time: a projector can reach the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The rebuild of one view, with the state before and after.

    `hash_again` is the state hash of the new fold at `revision_before`. `same` is None when there
    was no checkpoint to compare with. `rows_same` is None when the rows were not compared.
    """

    projection: str
    version: int
    revision_before: Revision
    hash_before: str
    hash_again: str
    same: bool | None
    rows_same: bool | None
    revision: Revision
    state_hash: str


def _silent(name: str, revision: Revision, until: Revision) -> None:
    """Report nothing."""


async def rebuild(
    *,
    log: EventLog,
    views: ViewStore,
    history: HistoryId,
    make: MakeViews,
    bounds: FoldingBounds,
    names: Sequence[str] = (),
    check_rows: bool = False,
    progress: Progress = _silent,
) -> list[Rebuilt]:
    """Rebuild the named views (all when none is named) up to the head, one after the other.

    With all views, the kept chronicle goes, too: a server makes it again.

    With `check_rows`, the rows in the store are read and compared before they are dropped. When
    another process writes the same view meanwhile, as a projector does that has not reached the
    head, the view is rebuilt again. Raises LogUnavailable after `rebuild_tries_max` times.
    """
    rebuilt = []
    work = _Rebuilding(log, views, history, make, bounds, progress)
    for name in [view.name for view in make() if not names or view.name in names]:
        rebuilt.append(await work.run(name, check_rows=check_rows))
    if not names:
        await kept_chronicles.remove(views, history)
    return rebuilt


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """The state before the rebuild: the checkpoint, and the hash of the rows if compared."""

    checkpoint: Checkpoint | None
    rows_hash: str | None

    @property
    def revision(self) -> Revision:
        return Revision(0) if self.checkpoint is None else self.checkpoint.revision


@dataclass(frozen=True, slots=True)
class _Rebuilding:
    """Rebuilds views of one history."""

    log: EventLog
    views: ViewStore
    history: HistoryId
    make: MakeViews
    bounds: FoldingBounds
    progress: Progress

    async def run(self, name: str, *, check_rows: bool) -> Rebuilt:
        before = None
        for tries in range(self.bounds.rebuild_tries_max):
            if tries:
                await anyio.sleep(PAUSE_SECONDS * 2 ** (tries - 1))
            view = next(view for view in self.make() if view.name == name)
            before = before or await self._read_before(view, check_rows=check_rows)
            rebuilt = await self._fold(view, before)
            if rebuilt is not None:
                return rebuilt
        raise LogUnavailable(
            f"another process is writing the view {name!r}; stop its projector and try again"
        )

    async def _read_before(self, view: Projection, *, check_rows: bool) -> _Before:
        """The state before."""
        place = (self.history, view.name, view.version)
        if not check_rows:
            return _Before(checkpoint=await self.views.checkpoint(*place), rows_hash=None)
        stored = await self.views.hash_rows(*place, rows_max=ALL_ROWS)
        rows_hash = None if stored.checkpoint is None else stored.hash
        return _Before(checkpoint=stored.checkpoint, rows_hash=rows_hash)

    async def _fold(self, view: Projection, before: _Before) -> Rebuilt | None:
        """Drop the rows, fold and write up to the head; None when another process wrote."""
        head = (await self.log.head(self.history)).revision
        await self.views.clear(self.history, view.name, view.version)
        written, hash_again, last = Revision(0), "", b""
        while view.revision < head:
            # A page ends at the old checkpoint, so that the hash can be taken there.
            stop = before.revision if view.revision < before.revision else head
            events = await self.log.read(
                self.history, after=view.revision, limit=self.bounds.page_max, until=stop
            )
            if not events:
                break
            projecting.fold(view, Page(events))
            if not await projecting.write_rows(
                self.views, self.history, view, written, turn_max=self.bounds.turn_max
            ):
                return None
            written, last = view.revision, events[-1].hash
            if view.revision == before.revision:
                hash_again = view.state_hash()
            self.progress(view.name, view.revision, head)
        if written:
            view_id = (view.name, view.version)
            await snapshots.keep(
                self.views, self.history, view_id, view.revision, last, dumped(view)
            )
        stored = before.checkpoint
        return Rebuilt(
            projection=view.name,
            version=view.version,
            revision_before=before.revision,
            hash_before=stored.state_hash if stored is not None else "",
            hash_again=hash_again,
            same=None if stored is None else hash_again == stored.state_hash,
            rows_same=None if before.rows_hash is None else before.rows_hash == hash_again,
            revision=view.revision,
            state_hash=view.state_hash(),
        )
