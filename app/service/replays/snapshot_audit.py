"""The audit of kept states: the comparison with states folded from the log.

A server begins with the newest kept state whose digest is right, so a state that was altered
together with its digest would be served as the truth although the log is intact. The objects are
folded again, from the log alone, up to the last kept state. The rows of view tables are compared
with the hash that was kept when they were written (`view_audit`).
"""

from collections.abc import Iterable

from app.domain.log import Event, HistoryId, Revision
from app.ports import ViewStore
from app.service.folding import snapshots
from app.service.replays import view_audit
from projections.objects import ObjectsProjection

STATES_MAX = 1_000
"""The most kept states that are compared, newest first."""


class SnapshotAudit:
    """Compares kept states while it takes the events of a history in order, from the first on.

    `problems` are sentences about states that differ.
    """

    def __init__(self, views: ViewStore, history: HistoryId) -> None:
        self._views = views
        self._history = history
        self._folded = ObjectsProjection(1, tells_changes=False)
        self._place = (self._folded.name, self._folded.version)
        self._wanted: set[Revision] = set()
        self._last = Revision(0)
        self.problems: list[str] = []

    async def begin(self, until: Revision) -> None:
        """Find the kept states up to a revision."""
        until_next = until
        while len(self._wanted) < STATES_MAX and until_next > 0:
            kept = await self._views.load_snapshot(self._history, *self._place, until=until_next)
            if kept is None or kept[0] < 1:
                break
            self._wanted.add(kept[0])
            until_next = Revision(kept[0] - 1)
        self._last = max(self._wanted, default=Revision(0))

    async def take(self, events: Iterable[Event]) -> None:
        """Fold events, and compare the result wherever a state is kept."""
        for event in events:
            if event.revision > self._last:
                return
            self._folded.fold(event)
            if event.revision in self._wanted:
                await self._compare(event)

    async def compare_tables(self) -> None:
        """Compare the rows of the view tables with the hashes kept with them."""
        async for view in view_audit.audit(self._views, self._history):
            if view.rows is view_audit.Rows.ALTERED:
                self.problems.append(
                    f"the rows of {' or '.join(view.tables)} are not those that redra wrote; "
                    "`redra rebuild` makes them again"
                )

    async def _compare(self, event: Event) -> None:
        kept = await self._views.load_snapshot(self._history, *self._place, until=event.revision)
        if kept is None or kept[0] != event.revision:
            return
        parts = snapshots.parts_of(kept[1], self._place)
        if parts is None or parts.hash != event.hash:
            # Servers do not use this state: it is from an older program, or from another log.
            return
        if parts.is_altered or not self._is_same(parts.state):
            self.problems.append(
                f"the stored state at revision {event.revision} is not that of the log; "
                "`redra rebuild` makes it again"
            )

    def _is_same(self, state: bytes) -> bool:
        loaded = ObjectsProjection(1, tells_changes=False)
        try:
            loaded.load(state)
        except Exception:
            # Any error means that the value is not a state.
            return False
        return loaded.revision == self._folded.revision and loaded.dump() == self._folded.dump()
