"""The materialising projector: reads the log in pages, folds, writes rows and checkpoints.

Every view has its own checkpoint, so one may be rebuilt while the others continue. A version of a
view that was never written is folded from the start. If rows of another version exist, they stay
until the new version has reached the head, and are then replaced in one step. State and rows are
never out of step: rows and checkpoint are one write. When a write finds another checkpoint (another
projector was faster), the projector reads its state again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import anyio.lowlevel

from app.domain.errors import ChainBroken
from app.domain.log import Event, Head, HistoryId, Revision, chain
from app.domain.log.event import EVENTS_PAGE
from app.domain.log.pages import Page
from app.domain.log.projection import Projection, Row, RowKey, dumped
from app.ports import EventLog, ViewStore
from app.service.folding import snapshots

MakeViews = Callable[[], Sequence[Projection]]
"""Gives fresh, empty instances of all views, as `projections.all_projections` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldingBounds:
    """Bounds of one projector.

    `page_max` events are read at once (and their rows written in one step). After `turn_max` events
    or rows the projector yields to the loop. A snapshot is due every `snapshot_every` events. It is
    kept when the log is quiet, or at the latest after `SNAPSHOT_LATE` times as many events. A view
    whose rebuild meets another writer is rebuilt again, at most `rebuild_tries_max` times in all.
    """

    page_max: int = EVENTS_PAGE
    turn_max: int = 500
    snapshot_every: int = 50_000
    rebuild_tries_max: int = 6


SNAPSHOT_LATE = 8
"""The multiple of `snapshot_every` for which a busy projector waits for a quiet moment."""


@dataclass(slots=True, kw_only=True)
class _Followed:
    """A view being materialised, with the revisions of its rows and of its last snapshot.

    `hash` is the hash of the last folded event, empty before the first one. `hidden` is true while
    the rows of another version must stay.
    """

    view: Projection
    written: Revision
    kept: Revision
    hash: bytes = b""
    hidden: bool = False

    def take_over(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events that the view has not folded yet; the caller folds them now.

        Raises ChainBroken when they do not continue the events that the view has folded.
        """
        seen = self.view.revision
        if events and events[0].revision <= seen:
            known = seen - events[0].revision
            if known < len(events) and self.hash and events[known].hash != self.hash:
                raise ChainBroken(seen, "the log holds another event than was folded")
            events = events[known + 1 :]
        if events:
            if self.hash:
                chain.check_event(events[0], self.hash, Revision(seen + 1))
            self.hash = events[-1].hash
        return events


class Projector:
    """Materialises the views of one history. `open` first, then `step` whenever the log grew."""

    def __init__(
        self,
        *,
        log: EventLog,
        views: ViewStore,
        history: HistoryId,
        make: MakeViews,
        bounds: FoldingBounds,
    ) -> None:
        self._log = log
        self._store = views
        self._history = history
        self._make = make
        self._bounds = bounds
        self._followed: dict[str, _Followed] = {}

    async def open(self) -> None:
        """Load every view: from its newest snapshot, then from the log up to its checkpoint."""
        for view in self._make():
            self._followed[view.name] = await self._open(view)

    def revisions(self) -> Mapping[str, Revision]:
        """The revision up to which each view is written, by name."""
        return {name: followed.written for name, followed in self._followed.items()}

    async def step(self) -> int:
        """Fold and write one page for the views that are furthest behind.

        Returns the number of events that were read; 0 means that every view is at the head. Raises
        ChainBroken when the log is no longer the one that was folded: open another projector then.
        """
        after = min(
            (followed.view.revision for followed in self._followed.values()), default=Revision(0)
        )
        events = await self._log.read(self._history, after=after, limit=self._bounds.page_max)
        if not events:
            await self._check_end()
        chain.check_linked(events, after=after, hash=b"")
        await self.take(events, at_head=len(events) < self._bounds.page_max)
        return len(events)

    async def take(self, events: Sequence[Event], *, at_head: bool) -> None:
        """Fold and write events from any source; events before them are read from the log first.

        A gap before the events arises when another process had written a view and its state was
        loaded again.
        """
        pages = [Page(part) for part in parts_of(events, self._bounds.turn_max)]
        for name in list(self._followed):
            await self._advance(name, events, pages, at_head=at_head)

    async def catch_up(self) -> None:
        """Step until every view is at the head."""
        while await self.step():
            pass

    async def _check_end(self) -> None:
        """Raise ChainBroken when the log ends before the folded events, or with another event."""
        stored = await self._log.head(self._history)
        for followed in self._followed.values():
            revision = followed.view.revision
            if followed.hash and stored.revision <= revision:
                chain.check_same_end(Head(revision=revision, hash=followed.hash), stored)

    async def rest(self) -> None:
        """Keep the snapshots that are due; called while the log is quiet."""
        for followed in self._followed.values():
            if followed.written - followed.kept >= self._bounds.snapshot_every:
                await self._keep(followed)

    async def _advance(
        self, name: str, events: Sequence[Event], pages: Sequence[Page], *, at_head: bool
    ) -> None:
        """Fold the events into a view, and write its rows; `pages` are the same events."""
        followed = self._followed[name]
        view = followed.view
        if events and events[0].revision > view.revision + 1:
            before = Revision(events[0].revision - 1)
            await self._fold_until(followed, before)
        new = followed.take_over(events)
        if len(new) < len(events):
            pages = [Page(part) for part in parts_of(new, self._bounds.turn_max)]
        for page in pages:
            fold(view, page)
            await anyio.lowlevel.checkpoint()
        if followed.hidden and not at_head:
            return
        if view.revision == followed.written:
            return
        turn = self._bounds.turn_max
        if not await write_rows(self._store, self._history, view, followed.written, turn_max=turn):
            fresh = next(view for view in self._make() if view.name == name)
            self._followed[name] = await self._open(fresh)
            return
        followed.written = view.revision
        followed.hidden = False
        if followed.written - followed.kept >= self._bounds.snapshot_every * SNAPSHOT_LATE:
            await self._keep(followed)

    async def _keep(self, followed: _Followed) -> None:
        view = followed.view
        view_id = (view.name, view.version)
        revision, last, state = view.revision, followed.hash, dumped(view)
        await snapshots.keep(self._store, self._history, view_id, revision, last, state)
        followed.kept = revision

    async def _open(self, view: Projection) -> _Followed:
        checkpoint = await self._store.checkpoint(self._history, view.name, view.version)
        if checkpoint is None:
            others = await self._store.checkpoints(self._history)
            hidden = any(
                checkpoint_of_view.projection == view.name for checkpoint_of_view in others
            )
            return _Followed(view=view, written=Revision(0), kept=Revision(0), hidden=hidden)
        followed = await self._load(view, checkpoint.revision)
        # Rows that are taken before their hash is computed count as hashed: once, and not again
        # with the first write.
        view.take_changed()
        if view.revision == checkpoint.revision and view.state_hash() == checkpoint.state_hash:
            return followed
        # The rows were written by a fold with another meaning (a changed fold of the same version,
        # another log before a restore): they are dropped and made again from the log.
        await self._store.clear(self._history, view.name, view.version)
        fresh = next(made for made in self._make() if made.name == view.name)
        return _Followed(view=fresh, written=Revision(0), kept=Revision(0))

    async def _load(self, view: Projection, until: Revision) -> _Followed:
        """Bring an empty view to `until`, the revision of its rows, from a snapshot and the log."""
        followed = _Followed(view=view, written=until, kept=Revision(0))
        snapshot = await snapshots.load(
            self._store, self._log, self._history, (view.name, view.version), until=until
        )
        if snapshot is not None:
            followed.kept, followed.hash, state = snapshot
            view.load(state)
        await self._fold_until(followed, until)
        return followed

    async def _fold_until(self, followed: _Followed, until: Revision) -> None:
        view, limit = followed.view, self._bounds.page_max
        while view.revision < until:
            events = await self._log.read(
                self._history, after=view.revision, limit=limit, until=until
            )
            if not events:
                return
            fold(view, Page(followed.take_over(events)))


def fold(view: Projection, page: Page) -> None:
    """Fold the events that the view has not seen."""
    events, seen = page.events, view.revision
    if events and events[0].revision <= seen:
        page = Page([event for event in events if event.revision > seen])
    view.fold_page(page)


def parts_of(events: Sequence[Event], size: int) -> Iterator[Sequence[Event]]:
    """The events in parts of at most `size`."""
    return (events[first : first + size] for first in range(0, len(events), size))


async def write_rows(
    store: ViewStore,
    history: HistoryId,
    view: Projection,
    after: Revision,
    *,
    turn_max: int,
) -> bool:
    """Write the rows changed since the last call; False when the checkpoint is not at `after`."""
    made = 0
    upserts: dict[str, list[Row]] = {}
    deletes: dict[str, list[RowKey]] = {}
    for table, keys in view.take_changed().items():
        for key in sorted(keys):
            row = view.row(table, key)
            if row is None:
                deletes.setdefault(table, []).append(key)
            else:
                upserts.setdefault(table, []).append(row)
            made += 1
            if made % turn_max == 0:
                await anyio.lowlevel.checkpoint()
    return await store.write(
        history,
        view.name,
        view.version,
        after=after,
        revision=view.revision,
        state_hash=view.state_hash(),
        upserts=upserts,
        deletes=deletes,
    )
