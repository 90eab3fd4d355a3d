"""The chronicle of a history for pages: its timeline by object and by kind, and its invariants.

The chronicle folds every event once and can also answer for any earlier revision, because it only
grows: the timeline up to a revision is a prefix of the timeline up to a later one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from app.analysis.chosen_spans import ChosenSpans
from app.analysis.keeping import forms, graphs, kept_watch, span_changes, subjects
from app.analysis.keeping.forms import KeptChanges, KeptEntries, KeptState, KeptStretch
from app.analysis.keeping.graphs import UnknownForm
from app.analysis.keeping.span_changes import SpanChange
from app.analysis.keeping.subjects import SubjectIndex
from app.analysis.keeping.topics import TopicIndex
from app.analysis.recordings import mismatched_objects, uncertainty
from app.analysis.spans import Spans
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation
from app.analysis.verify.invariants.stock import Evictor
from app.domain.log import Event, ObjectKey, Revision
from app.domain.log.doubts import Doubt
from app.domain.log.pages import Page
from app.domain.log.projection import Row
from app.domain.values.timestamps import Instant
from projections.packed import PackedList
from projections.timeline import Entry, TimelineProjection

CHANGES_PLAIN_MAX = 2_000
"""The latest changes of states over time, which are not compressed."""


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
        self._switches, self._lacking = switches, lacking
        self._timeline = TimelineProjection()
        self._watch = InvariantWatch(switches, lacking)
        self._times = array("q")
        self._by_kind: dict[str, array[int]] = {}
        # Objects with entries since the last stretch that was kept; of earlier ones an index.
        self._by_subject: dict[ObjectKey, list[int]] = {}
        self._indexes: list[SubjectIndex] = []
        self._last = span_changes.BEGINNING
        self._changes = PackedList(SpanChange, CHANGES_PLAIN_MAX)
        self._topics = TopicIndex()
        self._chosen = ChosenSpans(self._changes, self._topics)
        self._lacks_changes = False
        self._spans = Spans()
        self._applied, self._is_applied = 0, False
        # Entries of earlier stretches that are not held here.
        self._before = 0
        # What was kept: the revision, entries held here, their blocks, and the blocks of changes.
        self._kept = (Revision(0), 0, 0, 0)

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
        return cast(Sequence[Instant], self._times)

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
        changes: list[SpanChange] = []
        for event in events:
            change = span_changes.change_of(event, self._last)
            self._last = event.revision, event.stamp.time
            if change is not None:
                changes.append(change)
        self._changes.extend(changes)
        self._topics.add(changes)
        self._chosen.forget(changes)
        if self._is_applied:
            for change in changes:
                self._spans.apply(change)
        for number in range(count, len(entries)):
            self._index(number, entries[number])
        self._watch.follow_page(page)

    def until(self, revision: Revision) -> int:
        """The number of entries up to a revision."""
        return bisect_right(self._timeline.revisions, revision)

    def about(self, key: ObjectKey, *, until: Revision) -> list[Entry]:
        """The entries about one object up to a revision."""
        return self._up_to(self._about(key), until)

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
            return self._about(subject)
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
        signs = mismatched_objects.messages(self.violations(until=until))
        return uncertainty.with_unfitting(recorded, signs)

    def evictors(self, revision: Revision) -> tuple[Evictor, ...]:
        """The taints that evicted the pod that was marked at a revision; empty if not known."""
        return self._watch.evictors.get(revision, ())

    @property
    def all_evictors(self) -> Mapping[Revision, tuple[Evictor, ...]]:
        """The taints that evicted pods, by the revisions at which these were marked."""
        return self._watch.evictors

    @property
    def states(self) -> Spans | ChosenSpans:
        """The states over time of all objects if they were worked out, else of chosen ones."""
        if self._is_applied:
            return self._spans
        assert not self._lacks_changes, "the changes of earlier stretches are read first"
        return self._chosen

    def states_in_steps(self, steps: Iterable[None] = ()) -> Iterator[None]:
        """Work out what `states` begins with, then go through the steps of a question.

        Other tasks may run after each step.
        """
        return self._chosen.begin_question(steps)

    @property
    def spans(self) -> Spans:
        """The states of all objects over time, worked out when a question asks."""
        for _ in self.spans_in_steps():
            pass
        return self._spans

    def spans_in_steps(self) -> Iterator[None]:
        """Work the states out that `spans` returns; other tasks may run after each step."""
        while not self._is_applied:
            assert not self._lacks_changes, "the changes of earlier stretches are read first"
            for piece in self._changes.pieces(self._applied):
                for change in piece:
                    self._spans.apply(change)
                applied = self._applied = self._applied + len(piece)
                yield
                if self._is_applied or self._applied != applied:
                    break  # Another caller went on meanwhile.
            else:
                self._is_applied = self._applied == len(self._changes)

    def _about(self, key: ObjectKey) -> Sequence[int]:
        """The numbers of the entries about an object."""
        latest = self._by_subject.get(key, ())
        if not self._indexes:
            return latest
        place = subjects.place_of(key)
        return [*(each for index in self._indexes for each in index.numbers(place)), *latest]

    def _up_to(self, numbers: Sequence[int], until: Revision) -> list[Entry]:
        end = bisect_left(numbers, self.until(until))
        entries = self.entries
        return [entries[number] for number in numbers[:end]]

    def _index(self, number: int, entry: Entry) -> None:
        number += self._before
        self._by_subject.setdefault(entry.subject, []).append(number)
        of_kind = self._by_kind.get(entry.kind)
        if of_kind is None:
            of_kind = self._by_kind[entry.kind] = array("I")
        of_kind.append(number)
        last = self._times[-1] if self._times else Instant(0)
        self._times.append(max(Instant(entry.time), last))

    @property
    def lacks_changes(self) -> bool:
        """Whether changes of states are missing that were kept with earlier stretches."""
        return self._lacks_changes

    @property
    def can_be_kept(self) -> bool:
        """Whether the state may be kept here: not in the middle of a list of objects."""
        return not self._watch.is_listing

    def stretch(self) -> KeptStretch:
        """The part to keep of the stretch since the last one."""
        after, count, blocks, changed = self._kept
        first = count + self._before
        self._timeline.seal()
        self._changes.seal()
        entries = KeptEntries(
            after=after,
            count=first,
            entries=self._timeline.entries_from(blocks),
            revisions=forms.packed(array("q", self._timeline.revisions[count:])),
            times=forms.packed(self._times[count:]),
            kinds={
                kind: forms.packed(numbers[begin:])
                for kind, numbers in self._by_kind.items()
                if (begin := bisect_left(numbers, first)) < len(numbers)
            },
            subjects=subjects.indexed(self._by_subject),
        )
        changes = KeptChanges(
            after=after, changes=self._changes.blocks(changed), topics=self._topics.kept()
        )
        return KeptStretch(entries=entries, changes=changes)

    def state(self, stretches: Sequence[tuple[Revision, bytes]]) -> KeptState:
        """The part to keep besides the stretches, of which the last one ends here."""
        watch = graphs.dump(self._watch, kept_watch.FORMS)
        return KeptState(
            conditions=self._conditions(self.revision),
            count=self._before + len(self._times),
            stretches=tuple(stretches),
            last=self._last,
            timeline=self._timeline.dump_present(),
            watch=forms.compressed(watch),
            watch_bytes=len(watch),
        )

    def note_kept(self, stretch: KeptStretch) -> None:
        """Let the next stretch begin here."""
        self._indexes.append(SubjectIndex(stretch.entries.subjects))
        self._by_subject = {}
        self._topics.note_kept(stretch.changes.topics)
        self._note_kept()

    def fits(self, state: KeptState, revision: Revision) -> bool:
        """Whether a state was kept under the conditions that this chronicle has up to there."""
        return state.conditions == self._conditions(revision)

    def go_on_from(self, state: KeptState, stretches: Sequence[KeptEntries] | None) -> None:
        """Restore what was kept; nothing has been folded yet. Raises UnknownForm.

        Without stretches, no question about what was kept is answered, and further stretches can
        be kept. The changes of states over time are missing until `take_changes` gives them.
        """
        watch = graphs.load(forms.decompressed(state.watch), kept_watch.FORMS)
        self._timeline.load_present(state.timeline)
        if self.revision != state.stretches[-1][0]:
            raise UnknownForm("the kept timeline is that of another revision")
        if stretches is None:
            self._before = state.count
        else:
            self._take_stretches(state, stretches)
        self._last = state.last
        self._lacks_changes = True
        self._watch = watch
        kept_watch.expect(watch, self._switches, self.revision)
        self._note_kept()

    def _take_stretches(self, state: KeptState, stretches: Sequence[KeptEntries]) -> None:
        after = Revision(0)
        for (revision, _), each in zip(state.stretches, stretches, strict=True):
            if (each.after, each.count) != (after, len(self._times)):
                raise UnknownForm("the kept stretches do not follow each other")
            after = revision
            self._take_entries(each)
        if len(self._times) != state.count:
            raise UnknownForm("kept entries are missing")

    def _take_entries(self, kept: KeptEntries) -> None:
        self._timeline.extend_packed(kept.entries, forms.unpacked("q", kept.revisions))
        self._times.extend(forms.unpacked("q", kept.times))
        for kind, numbers in kept.kinds.items():
            self._by_kind.setdefault(kind, array("I")).extend(forms.unpacked("I", numbers))
        self._indexes.append(SubjectIndex(kept.subjects))

    def take_changes(self, stretches: Sequence[KeptChanges]) -> None:
        """Take the changes that were kept with the stretches before the first one folded here."""
        changes = PackedList(SpanChange, CHANGES_PLAIN_MAX)
        for each in stretches:
            changes.extend_packed(each.changes)
        before = changes.seal()
        self._changes.seal()
        changes.extend_packed(self._changes.blocks(0))
        self._topics.put_before([each.topics for each in stretches])
        self._changes, self._lacks_changes = changes, False
        self._chosen = ChosenSpans(changes, self._topics)
        after, count, blocks, changed = self._kept
        self._kept = after, count, blocks, before + changed

    def _note_kept(self) -> None:
        blocks, changed = self._timeline.seal(), self._changes.seal()
        self._kept = self.revision, len(self._times), blocks, changed

    def _conditions(self, revision: Revision) -> str:
        known = tuple(each for each in self._switches.later if each[0] <= revision)
        switches = replace(self._switches, later=known)
        return f"{switches} {sorted(self._lacking)} {self._is_recorded}"
