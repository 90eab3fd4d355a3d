"""Rebuilding views: drop the rows, fold the log again, and say whether the same came out.

`same` is the promise of the design (same log, same views): the state hash found again at the
revision of the old checkpoint equals the one stored there. The stored rows themselves can be
compared as well, which finds rows that somebody changed by hand.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain.errors import LogUnavailable
from app.domain.log import HistoryId, Revision
from app.domain.log.projection import Projection, Row, RowKey, hash_rows
from app.ports import EventLog, ViewStore
from app.service import folding, snapshots
from app.service.folding import FoldingBounds, MakeViews

Progress = Callable[[str, Revision, Revision], None]
"""Told of a view's name, the revision folded and the revision to reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """One view before and after.

    `hash_again` is the state hash of the new fold at `revision_before`. `same` is None when there
    was nothing to compare with, `rows_same` when the rows were not compared.
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
    """Rebuild the named views (all for none) up to the head, one after the other.

    With `check_rows` the rows in the store are read and compared before they are dropped. Raises
    LogUnavailable when another process writes the same view meanwhile.
    """
    head = (await log.head(history)).revision
    return [
        await _rebuild_one(
            view,
            log=log,
            views=views,
            history=history,
            head=head,
            bounds=bounds,
            check_rows=check_rows,
            progress=progress,
        )
        for view in make()
        if not names or view.name in names
    ]


async def _rebuild_one(
    view: Projection,
    *,
    log: EventLog,
    views: ViewStore,
    history: HistoryId,
    head: Revision,
    bounds: FoldingBounds,
    check_rows: bool,
    progress: Progress,
) -> Rebuilt:
    before = await views.checkpoint(history, view.name, view.version)
    revision_before = before.revision if before is not None else Revision(0)
    stored = await _stored_hash(views, history, view) if check_rows and before else None
    await views.clear(history, view.name, view.version)
    written, hash_again, last = Revision(0), "", b""
    while view.revision < head:
        # A page ends at the old checkpoint, so that the hash can be taken there.
        stop = revision_before if view.revision < revision_before else head
        limit = bounds.page_max
        events = await log.read(history, after=view.revision, limit=limit, until=stop)
        if not events:
            break
        folding.fold(view, events)
        if not await folding.write_rows(views, history, view, written, turn_max=bounds.turn_max):
            raise LogUnavailable(
                f"another process is writing the view {view.name!r}; stop its projector and "
                "try again"
            )
        written, last = view.revision, events[-1].hash
        if view.revision == revision_before:
            hash_again = view.state_hash()
        progress(view.name, view.revision, head)
    if written:
        place = (view.name, view.version)
        await snapshots.keep(views, history, place, view.revision, last, view.dump())
    return Rebuilt(
        projection=view.name,
        version=view.version,
        revision_before=revision_before,
        hash_before=before.state_hash if before is not None else "",
        hash_again=hash_again,
        same=None if before is None else hash_again == before.state_hash,
        rows_same=None if stored is None else stored == hash_again,
        revision=view.revision,
        state_hash=view.state_hash(),
    )


async def _stored_hash(views: ViewStore, history: HistoryId, view: Projection) -> str:
    """The hash of the rows as the store has them."""
    found: list[tuple[str, RowKey, Row]] = []
    for table in view.tables():
        for row in await views.rows(history, table.name):
            key: list[str | int] = []
            for column in table.key:
                part = row[column]
                assert isinstance(part, str | int), "key columns are text or integers"
                key.append(part)
            found.append((table.name, tuple(key), dict(row)))
    return hash_rows(found)
