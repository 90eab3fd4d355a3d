"""The audit of a kept chronicle: the comparison with one that is folded from the log.

A server answers questions about what happened from the stretches that the newest state of a kept
chronicle names, and folds on from that state. Whoever writes the database can alter them with their
digests. So the chronicle is folded anew: each stretch is compared where it ends, and what the state
holds of the timeline and of the invariants by what both make of the rest of the log.
"""

from collections.abc import Callable, Sequence

from anyio import lowlevel

from app.analysis.chronicle import Chronicle
from app.analysis.keeping import comparing, forms
from app.domain.log import Event, Revision
from app.domain.values.timestamps import Instant
from app.service.folding.kept_chronicles import CHANGES, ENTRIES, ChronicleStore

TURN_MAX = 100
"""Events that are folded before other tasks run."""

_LATE = Instant(2**60)
"""An instant at which each violation that may have ended in time has not."""


class ChronicleAudit:
    """Compares a kept chronicle while it takes the events of a history in order, from the first on.

    `begin_chronicle` makes one that has folded nothing, as a server does. `problems` are sentences.
    """

    def __init__(self, store: ChronicleStore, begin_chronicle: Callable[[], Chronicle]) -> None:
        self._store = store
        self._begin_chronicle = begin_chronicle
        self._anew = begin_chronicle()
        self._kept: Chronicle | None = None
        self._ends: list[Revision] = []
        self._compared = 0
        self._entries: list[bytes] = []
        self._changes: list[bytes] = []
        self.problems: list[str] = []

    @property
    def is_needed(self) -> bool:
        """Whether a server would begin with something that is kept."""
        return self._kept is not None

    async def begin(self, until: Revision) -> None:
        """Read what is kept up to a revision."""
        newest = await self._store.newest(self._begin_chronicle(), until)
        if newest is None:
            return
        _, keeping = newest
        kept, again = await self._store.restored(self._begin_chronicle, keeping.revision)
        entries = await self._store.parts(ENTRIES, keeping.stretches)
        changes = await self._store.parts(CHANGES, keeping.stretches)
        if entries is None or changes is None or again.revision != keeping.revision:
            # A part is missing, altered without its digest, or no part: servers use none of them.
            return
        self._kept, self._entries, self._changes = kept, entries, changes
        self._ends = [revision for revision, _ in keeping.stretches]

    async def take(self, events: Sequence[Event]) -> None:
        """Fold events, and compare a stretch where it ends."""
        if self._kept is None:
            return
        begin, next_end = 0, self._next_end()
        for end, event in enumerate(events, start=1):
            is_end = event.revision == next_end
            if is_end or end - begin == TURN_MAX or end == len(events):
                self._fold(self._kept, events[begin:end])
                begin = end
                if is_end:
                    self._compare_stretch()
                    next_end = self._next_end()
                await lowlevel.checkpoint()

    def finish(self) -> None:
        """Compare what both chronicles say at the end of the log."""
        kept, anew = self._kept, self._anew
        if kept is None or self.problems or kept.revision != anew.revision:
            return
        last = anew.revision
        said = [
            (
                each.violations(until=last, now=_LATE),
                each.doubts((), until=last),
                each.all_evictors,
                [each.row(entry) for entry in each.entries[anew.until(self._ends[-1]) :]],
            )
            for each in (kept, anew)
        ]
        rest, changes = kept.stretch().changes, anew.stretch().changes
        if said[0] != said[1] or not comparing.are_same_changes(forms.dump(rest), changes):
            self._note(self._ends[-1])

    def _fold(self, kept: Chronicle, events: Sequence[Event]) -> None:
        self._anew.fold(events)
        if events[-1].revision <= kept.revision or self.problems:
            return
        try:
            kept.fold(events)
        except Exception:
            # Any error means that the value is not a state of a chronicle.
            self._note(self._ends[-1])

    def _next_end(self) -> Revision | None:
        """The end of the stretch under way; None after the last one."""
        return self._ends[self._compared] if self._compared < len(self._ends) else None

    def _compare_stretch(self) -> None:
        number, stretch = self._compared, self._anew.stretch()
        self._compared += 1
        if not (
            comparing.are_same_entries(self._entries[number], stretch.entries)
            and comparing.are_same_changes(self._changes[number], stretch.changes)
        ):
            self._note(self._ends[number])
        self._anew.note_kept(stretch)

    def _note(self, revision: Revision) -> None:
        self.problems.append(
            f"the kept chronicle up to revision {revision} is not that of the log; "
            "`redra rebuild` removes it, and a server makes it again"
        )
