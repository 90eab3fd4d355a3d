"""The audit of kept states: the comparison with states folded from the log.

A server begins with the newest kept state whose digest is right, and a projector with that of each
view, so a state that was altered together with its digest would be shown as the truth although the
log is intact. The same holds for rows of view tables that were altered together with the hash in
their checkpoint. So each view of which something is kept is folded again, from the log alone: its
state is compared wherever one is kept, and its hash at the revision of its checkpoint. Whether the
stored rows have the hash of the checkpoint is asked by `view_audit`.

Where other processes verify parts of the history, the audit is made while they do.

The cost is one fold of the views of which something is kept, beside the events that a verification
reads anyway, and the memory of their last states.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from anyio import lowlevel

from app.domain.log import Event, HistoryId, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Projection
from app.ports import Checkpoint, EventLog, ViewStore
from app.service.folding import snapshots
from app.service.folding.projecting import MakeViews
from app.service.replays import view_audit
from app.service.replays.chronicle_audit import ChronicleAudit

AUDIT_COST, CHRONICLE_COST = 33, 40
"""Microseconds that views and a kept chronicle take for each event, as `Division` counts them."""

STATES_MAX = 1_000
"""The most kept states of a view that are compared, newest first."""


@dataclass(slots=True, kw_only=True)
class _Audited:
    """A view that is folded again; `states` are the revisions of its kept states."""

    view: Projection
    checkpoint: Checkpoint | None
    states: frozenset[Revision]

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def place(self) -> tuple[str, int]:
        return (self.view.name, self.view.version)

    @property
    def compared_revisions(self) -> frozenset[Revision]:
        """The revisions at which something is compared."""
        own = self.checkpoint
        return self.states if own is None else self.states | {own.revision}


class SnapshotAudit:
    """Compares kept states while it takes the events of a history in order, from the first on.

    `make` gives the views as the history's settings make them, `chronicle` audits the kept one.
    `problems` are sentences about states that differ.
    """

    def __init__(
        self, views: ViewStore, history: HistoryId, make: MakeViews, chronicle: ChronicleAudit
    ) -> None:
        self._views = views
        self._chronicle = chronicle
        self._history = history
        self._make = make
        self._audited: list[_Audited] = []
        self.problems: list[str] = []

    async def begin(self, log: EventLog, until: Revision) -> None:
        """Find what is kept up to a revision."""
        await self._chronicle.begin(until)
        stored = await self._views.checkpoints(self._history)
        checkpoints = {(each.projection, each.version): each for each in stored}
        # After the checkpoints: a history that is written meanwhile only grows.
        head = (await log.head(self._history)).revision
        for view in self._make():
            own = checkpoints.get((view.name, view.version))
            if own is not None and not 0 < own.revision <= head:
                self.problems.append(
                    f"the rows of the view {view.name} are said to be at revision {own.revision}, "
                    f"and the log ends at {head}; `redra rebuild` makes them again"
                )
            if own is not None and not 0 < own.revision <= until:
                own = None
            states = await self._states(view, until)
            if own is not None or states:
                self._audited.append(_Audited(view=view, checkpoint=own, states=states))

    @property
    def cost(self) -> int:
        """The microseconds that it takes for each event."""
        return AUDIT_COST + (CHRONICLE_COST if self._chronicle.is_needed else 0)

    async def finish(self, pages: AsyncIterator[Sequence[Event]] | None, *, to_end: bool) -> None:
        """Take all events unless each was taken already; at the log's end, compare the tables."""
        if pages is not None:
            async for events in pages:
                await self.take(Page(events))
                await lowlevel.checkpoint()
        self._chronicle.finish()
        self.problems += self._chronicle.problems
        if to_end:
            await self.compare_tables()

    async def take(self, events: Page) -> None:
        """Fold events, and compare the result wherever something is kept."""
        await self._chronicle.take(events.events)
        for part in self._parts(events.events):
            # Others may have split the page already.
            page = events if len(part) == len(events.events) else Page(part)
            end = part[-1].revision
            for audited in list(self._audited):
                is_folded = self._fold(audited, page)
                if is_folded and end in audited.compared_revisions:
                    await self._compare(audited, part[-1])
                if not is_folded or end >= max(audited.compared_revisions):
                    self._audited.remove(audited)
            for event in part:
                event.forget_tree()

    async def compare_tables(self) -> None:
        """Compare the rows of the view tables with the hashes kept with them."""
        async for view in view_audit.audit(self._views, self._history):
            if view.rows is view_audit.Rows.ALTERED:
                self.problems.append(
                    f"the rows of {' or '.join(view.tables)} are not those that redra wrote; "
                    "`redra rebuild` makes them again"
                )

    async def _states(self, view: Projection, until: Revision) -> frozenset[Revision]:
        """The revisions of the newest kept states of a view."""
        states: set[Revision] = set()
        place = (view.name, view.version)
        while len(states) < STATES_MAX and until > 0:
            kept = await self._views.load_snapshot(self._history, *place, until=until)
            if kept is None or kept[0] < 1:
                break
            states.add(kept[0])
            until = Revision(kept[0] - 1)
        return frozenset(states)

    def _parts(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """The events in parts that end where something is compared."""
        wanted = {revision for each in self._audited for revision in each.compared_revisions}
        begin = 0
        for end, event in enumerate(events, start=1):
            if event.revision in wanted or end == len(events):
                if not self._audited:
                    return
                yield events[begin:end]
                begin = end

    def _fold(self, audited: _Audited, page: Page) -> bool:
        """Fold a page; false, and a problem, for a view that cannot be folded."""
        try:
            audited.view.fold_page(page)
            audited.view.take_changed()
        except Exception as problem:
            # Content that an author of events put there; no server folds it either.
            self.problems.append(
                f"the view {audited.name} cannot be folded after revision "
                f"{page.events[0].revision - 1}: {type(problem).__name__}"
            )
            return False
        return True

    async def _compare(self, audited: _Audited, event: Event) -> None:
        own = audited.checkpoint
        if (
            own is not None
            and own.revision == event.revision
            and own.state_hash != audited.view.state_hash()
        ):
            self.problems.append(
                f"the rows of the view {audited.name} at revision {event.revision} are not those "
                "of the log; `redra rebuild` makes them again"
            )
        if event.revision in audited.states:
            await self._compare_state(audited, event)

    async def _compare_state(self, audited: _Audited, event: Event) -> None:
        place = audited.place
        kept = await self._views.load_snapshot(self._history, *place, until=event.revision)
        if kept is None or kept[0] != event.revision:
            return
        parts = snapshots.parts_of(kept[1], place)
        if parts is None or parts.hash != event.hash:
            # Servers do not use this state: it is from an older program, or from another log.
            return
        if parts.is_altered or not self._is_same(audited, parts):
            self.problems.append(
                f"the stored state at revision {event.revision} of the view {audited.name} is not "
                "that of the log; `redra rebuild` makes it again"
            )

    def _is_same(self, audited: _Audited, parts: snapshots.Parts) -> bool:
        loaded = next(view for view in self._make() if view.name == audited.name)
        try:
            loaded.load(parts.state)
            dump = loaded.dump()
        except Exception:
            # Any error means that the value is not a state.
            return False
        return loaded.revision == audited.view.revision and dump == audited.view.dump()
