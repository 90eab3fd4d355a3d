"""The chronicle of a history for pages: its timeline by object and by kind, and its invariants.

The chronicle folds every event once and can also answer for any earlier revision, because it only
grows: the timeline up to a revision is a prefix of the timeline up to a later one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from app.analysis.recordings import uncertainty, unfitting
from app.analysis.spans import Spans
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation
from app.analysis.verify.invariants.stock import Evictor
from app.domain.log import Event, ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.log.pages import Page
from app.domain.log.projection import Row
from app.domain.values.timestamps import Instant
from projections.timeline import Entry, TimelineProjection


def unread(read: Revision, until: Revision) -> str:
    """The note that an answer rests on a part of the log up to a revision; empty if on all."""
    if read >= until:
        return ""
    return (
        f"not complete: the log was read up to revision {read} of {until}; what only later events "
        "show may be missing; ask again for the rest"
    )


class Chronicle:
    """Folds a log from its first event on.

    Example: pod `a` is created at 3 and bound at 8, pod `b` is created at 5: `about(a)` gives the
    entries 3 and 8, `of_kind("PodCreated")` the entries 3 and 5, `about(a, until=7)` only 3.
    """

    def __init__(
        self,
        switches: Switches = Switches(),
        lacking: frozenset[str] = frozenset(),
        *,
        is_recorded: bool = True,
    ) -> None:
        self._is_recorded = is_recorded
        self._timeline = TimelineProjection()
        self._watch = InvariantWatch(switches, lacking)
        self.spans = Spans()
        self._times: list[Instant] = []
        self._by_subject: dict[ObjectKey, list[int]] = {}
        self._by_kind: dict[str, list[int]] = {}

    @property
    def revision(self) -> Revision:
        """The revision last folded."""
        return self._timeline.revision

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, in the order of the log."""
        return self._timeline.entries

    @property
    def revisions(self) -> Sequence[Revision]:
        """The revision of each entry; none of the entries is decompressed."""
        return self._timeline.revisions

    @property
    def times(self) -> Sequence[Instant]:
        """The cluster time of each entry, never earlier than that of its predecessor."""
        return self._times

    def row(self, entry: Entry) -> Row:
        """An entry with its cause, as in the timeline's table."""
        return self._timeline.row_of(entry)

    def unread(self, until: Revision) -> str:
        """The note that an answer rests on a part of the log up to a revision; empty if on all."""
        return unread(self.revision, until)

    def kinds(self) -> list[str]:
        """The kinds of the existing entries, sorted."""
        return sorted(self._by_kind)

    def fold(self, events: Sequence[Event]) -> None:
        """Applies the next events of the log."""
        page = Page(events)
        entries = self._timeline.entries
        count = len(entries)
        self._timeline.fold_page(page)
        for event in events:
            self.spans.fold(event)
        for number in range(count, len(entries)):
            self._index(number, entries[number])
        self._watch.follow_page(page)

    def until(self, revision: Revision) -> int:
        """The number of entries up to a revision."""
        return bisect_right(self._timeline.revisions, revision)

    def about(self, key: ObjectKey, *, until: Revision) -> list[Entry]:
        """The entries about one object up to a revision."""
        return self._up_to(self._by_subject.get(key, ()), until)

    def of_kind(self, kind: str, *, until: Revision) -> list[Entry]:
        """The entries of one kind up to a revision."""
        return self._up_to(self._by_kind.get(kind, ()), until)

    def count_of_kind(self, kind: str, *, until: Revision) -> int:
        """The number of entries of one kind up to a revision; none of them is decompressed."""
        return bisect_left(self._by_kind.get(kind, ()), self.until(until))

    def newest(self, numbers: Sequence[int] | None, *, until: Revision) -> Iterator[Entry]:
        """Entries backwards from the newest up to a revision; all, or those with the numbers."""
        entries = self.entries
        end = self.until(revision=until)
        if numbers is None:
            for number in range(end - 1, -1, -1):
                yield entries[number]
            return
        for place in range(bisect_left(numbers, end) - 1, -1, -1):
            yield entries[numbers[place]]

    def numbers(self, *, kind: str = "", subject: ObjectKey | None = None) -> Sequence[int] | None:
        """The numbers of the entries of a kind or about an object; None if neither is given."""
        if subject is not None:
            return self._by_subject.get(subject, ())
        return self._by_kind.get(kind, ()) if kind else None

    def violations(self, *, until: Revision, now: Instant = Instant(0)) -> list[Violation]:
        """The violations of invariants that began up to a revision, as judged at `now`."""
        return [each for each in self._watch.violations(now) if each.begin.revision <= until]

    def doubts(self, recorded: tuple[Doubt, ...], *, until: Revision) -> tuple[Doubt, ...]:
        """The doubts of the recording, and one where its objects do not fit each other.

        Then something is missing, though its kind is not known: what was not recorded once
        may be there still. Of what redra wrote itself nothing is missing.
        """
        if not self._is_recorded:
            return recorded
        signs = unfitting.messages(self.violations(until=until))
        return uncertainty.with_unfitting(recorded, signs)

    def evictors(self, revision: Revision) -> tuple[Evictor, ...]:
        """The taints that evicted the pod that was marked at a revision; empty if not known."""
        return self._watch.evictors.get(revision, ())

    def _up_to(self, numbers: Sequence[int], until: Revision) -> list[Entry]:
        end = bisect_left(numbers, self.until(until))
        entries = self.entries
        return [entries[number] for number in numbers[:end]]

    def _index(self, number: int, entry: Entry) -> None:
        self._by_subject.setdefault(entry.subject, []).append(number)
        self._by_kind.setdefault(entry.kind, []).append(number)
        last = self._times[-1] if self._times else Instant(0)
        self._times.append(max(Instant(entry.time), last))
