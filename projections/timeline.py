"""The timeline: one row per interesting event, with its subject, actor and cause.

An event is interesting when it changes something that a person follows: a pod is placed, a claim
gets devices, a slice loses a device, a rule begins to evict. Heartbeats, managed fields and
repeated status writes are not interesting. The tables of `timeline_kinds` define what is
interesting. This module keeps the last followed state of each object, gets the name of the change
from `timeline_kinds`, and appends it.

After a gap of an object, its next recorded state shows what the lost writes did, too: that entry
has a doubt. It has no author where the recorded write cannot have made the change.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import cast

import msgspec

from app.domain.log import Event, EventType, ObjectKey, Origin, Revision, doubts
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.log.records import BASELINE_VERB, IMPORTER_USER, Loss, TimeQuality
from app.domain.objects import registry
from app.domain.values import timestamps
from app.domain.values.fields import core
from app.domain.values.timestamps import SECOND, Instant, TimestampError
from projections import outlines, timeline_kinds
from projections.loading import shared
from projections.packed import Block, PackedList
from projections.row_changes import AppendedRows, PagedView
from projections.tables import TIMELINE
from projections.timeline_kinds import WARNING, Description, FollowedKind, State, States, cut

_CHANGES = {
    "Pod": "Created Scheduled Unschedulable Evicted Phase Finished DeletionAsked Deleted",
    "Claim": "Created Allocated Deallocated Reallocated Reserved Released Reported DeletionAsked "
    "Deleted",
    "Slice": "Published Changed Deleted",
    "Rule": "Created Changed Status Deleted",
    "Node": "Created Ready NotReady Changed Deleted",
    **dict.fromkeys(
        ("Namespace", "Class", "Template", "Patch", "Object"),
        "Created Changed DeletionAsked Deleted",
    ),
}

KINDS = timeline_kinds.OF_OTHER_EVENTS | {
    word + change for word, changes in _CHANGES.items() for change in changes.split()
}
"""The kinds of entries that a timeline may have, whether or not a history has them."""

PLAIN_MAX = 20_000
"""The latest entries, which are not compressed."""

LOADED_AT_ONCE = 1_000
"""Entries that are decoded at once when a state is loaded."""


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One row; its subject is the event's key, or the object that a Kubernetes Event is about."""

    revision: Revision
    time: int
    kind: str
    subject: ObjectKey
    text: str
    actor: str
    verb: str
    cause: int
    doubt: str = ""


class TimelineProjection(PagedView):
    """Folds the events that a person follows.

    Example: a pod is created at 3 and bound to n1 at 8 because claim `c` got devices at 7: rows
    3 `PodCreated`, 7 `ClaimAllocated`, 8 `PodScheduled` with text `to n1`.
    """

    name = "timeline"
    version = 11

    def __init__(self) -> None:
        self.revision = Revision(0)
        self._entries = PackedList(Entry, PLAIN_MAX)
        self._revisions = array("q")
        self._states: dict[ObjectKey, State] = {}
        self._gaps: dict[ObjectKey, list[Revision]] = {}
        self._changes = AppendedRows(TIMELINE.name, self._key, self._row)

    def _take(self, page: Page) -> None:
        """Append an entry for each interesting event."""
        new: list[Entry] = []
        for event, decided in page.decisions(outlines.decision):
            subject = timeline_kinds.subject_of_decision(event, decided)
            new.append(_entry(event, subject, timeline_kinds.describe_decision(decided)))
        for event in page.facts:
            if event.type is EventType.DECISION_RECORDED:
                continue
            if event.type is EventType.GAP_OBSERVED and event.key.name:
                self._gaps.setdefault(event.key, []).append(event.revision)
            saying = timeline_kinds.describe_fact(event)
            if saying is not None:
                new.append(_entry(event, timeline_kinds.subject_of_fact(event), saying))
        for place, splits in page.kinds.items():
            if place[1] == "events":
                for event, _ in splits:
                    saying = _describe_event_object(event)
                    if saying is not None:
                        subject = _subject_of_event_object(event)
                        new.append(_entry(event, subject, saying))
                continue
            kind = timeline_kinds.kind_of(place)
            if kind is not None:
                self._follow(kind, kind.states(page, place), new)
        # Entries were made one kind at a time; the log's order must be restored.
        new.sort(key=_revision)
        self._append(new)

    def _follow(self, kind: FollowedKind, states: States, new: list[Entry]) -> None:
        """Append an entry for each followed change of the objects of one kind."""
        known, describe, gaps = self._states, kind.describe, self._gaps
        for event, state in states:
            key = event.key
            after_gap = self._ends_gap(event) if gaps else False
            if state is None:
                known.pop(key, None)
                new.append(_entry(event, key, (f"{kind.word}Deleted", "")))
                continue
            old = known.get(key)
            if state != old:
                known[key] = state
                saying = describe(old, state)
                if saying is not None:
                    new.append(_entry(event, key, saying, after_gap and old is not None))

    def begin(self, last: Sequence[Event]) -> None:
        """Take in the last events of objects before the first fold of them, without entries.

        Gaps that follow them count, too.
        """
        page = Page(last)
        for place in page.kinds:
            kind = None if place[1] == "events" else timeline_kinds.kind_of(place)
            if kind is not None:
                for event, state in kind.states(page, place):
                    if state is not None:
                        self._states[event.key] = state
        for event in page.facts:
            if event.type is EventType.GAP_OBSERVED:
                self._gaps.setdefault(event.key, []).append(event.revision)

    def _ends_gap(self, event: Event) -> bool:
        """Whether the object of an event had a gap since the event before it."""
        gaps = self._gaps.get(event.key, [])
        later = [revision for revision in gaps if revision > event.revision]
        if later:
            self._gaps[event.key] = later
        else:
            self._gaps.pop(event.key, None)
        return len(later) < len(gaps)

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries in the order of the log; the sequence grows while folding goes on."""
        return self._entries

    @property
    def revisions(self) -> Sequence[Revision]:
        """The revision of each entry."""
        return cast(Sequence[Revision], self._revisions)

    def tables(self) -> tuple[Table, ...]:
        """One row per interesting event."""
        return (TIMELINE,)

    def take_changed(self) -> dict[str, set[RowKey]]:
        """Keys of the rows appended since the last call."""
        return self._changes.take(len(self._entries))

    def row(self, table: str, key: RowKey) -> Row | None:
        """The row of the event at that revision, None when it is not interesting."""
        number = self._find(int(key[0]))
        return None if number is None or table != TIMELINE.name else self._changes.row(number)

    def state_hash(self) -> str:
        """The hash over all rows."""
        return self._changes.state_hash(len(self._entries))

    def dump(self) -> bytes:
        """All entries in order, the state of each object, and its open gaps, sorted by key."""
        return _encoder.encode((self.revision, list(self._entries), *self._present()))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, entries, states, gaps = _snapshot.decode(state)
        for first in range(0, len(entries), LOADED_AT_ONCE):
            part = map(_decode_entry, entries[first : first + LOADED_AT_ONCE])
            # The others are compressed at once.
            is_plain = first + LOADED_AT_ONCE > len(entries) - PLAIN_MAX
            self._append([*(map(shared, part) if is_plain else part)])
        self._states = dict(shared(_decode_state(state)) for state in states)
        self._gaps = dict(gaps)

    def dump_present(self) -> bytes:
        """The state without the entries."""
        return _encoder.encode((self.revision, *self._present()))

    def load_present(self, state: bytes) -> None:
        """Restore what `dump_present` gave; the entries are those of `entries_from`."""
        self.revision, states, gaps = _snapshot_present.decode(state)
        self._states = dict(states)
        self._gaps = dict(gaps)

    def seal(self) -> int:
        """Compress all entries; returns the number of blocks."""
        return self._entries.seal()

    def entries_from(self, block: int) -> list[Block]:
        """The blocks of entries from a number on."""
        return self._entries.blocks(block)

    def extend_packed(self, blocks: Sequence[Block], revisions: Sequence[int]) -> None:
        """Append blocks of entries, with the revision of each entry."""
        self._entries.extend_packed(blocks)
        self._revisions.extend(revisions)

    def _present(self) -> tuple[object, object]:
        return sorted(self._states.items(), key=_first), sorted(self._gaps.items(), key=_first)

    def _append(self, entries: Sequence[Entry]) -> None:
        self._entries.extend(entries)
        self._revisions.extend([entry.revision for entry in entries])

    def _find(self, revision: int) -> int | None:
        number = bisect_left(self._revisions, revision)
        is_known = number < len(self._revisions) and self._revisions[number] == revision
        return number if is_known else None

    def _key(self, number: int) -> RowKey:
        return (self._revisions[number],)

    def _row(self, number: int) -> Row:
        return self.row_of(self._entries[number])

    def row_of(self, entry: Entry) -> Row:
        """The row of an entry."""
        subject = entry.subject
        return {
            "revision": entry.revision,
            "time": entry.time,
            "kind": entry.kind,
            "api_group": subject.group,
            "resource": subject.resource,
            "namespace": subject.namespace,
            "name": subject.name,
            "text": entry.text,
            "actor": entry.actor,
            "verb": entry.verb,
            "cause": entry.cause,
            "because": self._because(entry.cause),
            "doubt": entry.doubt,
        }

    def _because(self, cause: int) -> str:
        number = self._find(cause) if cause else None
        return "" if number is None else named(self._entries[number])


def named(entry: Entry) -> str:
    """The text that names an entry as the cause of another one."""
    return f"{entry.kind} {entry.subject}"


def _entry(
    event: Event,
    subject: ObjectKey,
    description: Description,
    is_late: bool = False,
) -> Entry:
    """The entry of an event; with `is_late`, lost writes may have made the change before it."""
    stamp = event.stamp
    text, user = description[1], stamp.actor.user
    unsure = Loss.GAP.value if is_late else ""
    # Only an imported event has doubts of its own.
    if stamp.origin is not None:
        late = (unsure,) if is_late else ()
        text, user, unsure = _imported(event, description, stamp.origin, late)
    return Entry(
        event.revision,
        stamp.time,
        description[0],
        subject,
        text,
        user,
        stamp.verb,
        stamp.cause,
        unsure,
    )


def _imported(
    event: Event, description: Description, origin: Origin, late: tuple[str, ...]
) -> tuple[str, str, str]:
    """The text, author and doubts of the entry of an imported event."""
    text, user = description[1], event.stamp.actor.user
    unsure = doubts.of_event(event)
    if description[0] == timeline_kinds.WRITE_REFUSED:
        # A refusal has the whole message, whatever it shows of the object that was sent.
        unsure = tuple(loss for loss in unsure if loss != doubts.PARTIAL)
    if Loss.PRINTED.value in unsure:
        text = timeline_kinds.of_printed(text)
    if origin.time_quality == TimeQuality.NONE.value:
        # The event has the time of the one before it, or of the import.
        unsure = (*unsure, Loss.NO_TIME.value)
    if Loss.SYNTHETIC_DELETE.value in origin.losses:
        unsure = (*unsure, Loss.SYNTHETIC_DELETE.value)
    unsure = (*unsure, *late)
    if timeline_kinds.is_by_own_request(description[0]) and doubts.is_change(event):
        # No update or patch makes this change: the request that made it was lost.
        user = IMPORTER_USER
        unsure = (*unsure, Loss.COLLAPSED.value)
    return text, user, ",".join(unsure)


_revision = attrgetter("revision")


def _first(item: tuple[ObjectKey, object]) -> ObjectKey:
    return item[0]


_encoder = msgspec.msgpack.Encoder()
_snapshot = msgspec.msgpack.Decoder(
    tuple[
        Revision,
        list[msgspec.Raw],
        list[msgspec.Raw],
        list[tuple[ObjectKey, list[Revision]]],
    ]
)
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_state = msgspec.msgpack.Decoder(tuple[ObjectKey, State]).decode
_snapshot_present = msgspec.msgpack.Decoder(
    tuple[Revision, list[tuple[ObjectKey, State]], list[tuple[ObjectKey, list[Revision]]]]
)


def _describe_event_object(event: Event) -> Description | None:
    """The text of a Kubernetes Event that warns, when it is created; repetitions are not shown.

    An Event that a recorder listed has the time of the list; the text says when it was last seen.
    """
    if event.type is not EventType.OBJECT_CREATED or b'"Warning"' not in event.body:
        return None
    event_object = outlines.event_object(event.body)
    if event_object.type != "Warning":
        return None
    text, end = f"{event_object.reason}: {event_object.message or event_object.note}", ""
    last = _last_seen(event_object) if event.stamp.verb == BASELINE_VERB else None
    if last is not None and last // SECOND < event.stamp.time // SECOND:
        end = f" (last seen at {timestamps.seconds_text(last)})"
    return WARNING, cut(text, end)


def _last_seen(event_object: core.EventObject) -> Instant | None:
    series = "" if event_object.series is None else event_object.series.last_observed_time
    for text in (series, event_object.last_timestamp, event_object.event_time):
        try:
            if text:
                return timestamps.parse(text)
        except TimestampError:
            continue
    return None


def _subject_of_event_object(event: Event) -> ObjectKey:
    """The object that a Kubernetes Event is about.

    The Events of cluster-scoped objects are in a namespace, which some components write into the
    reference, too.
    """
    event_object = outlines.event_object(event.body)
    about = (
        event_object.involved_object
        if event_object.involved_object.name
        else event_object.regarding
    )
    group, _, _ = about.api_version.rpartition("/")
    for kind in registry.find_name(about.kind):
        if kind.group == group:
            namespace = about.namespace if kind.namespaced else ""
            return ObjectKey(group, kind.plural, namespace, about.name)
    noun = about.kind.lower()
    plural = noun + ("es" if noun.endswith("s") else "s")
    return ObjectKey(group, plural, about.namespace, about.name)
