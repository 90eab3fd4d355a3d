"""Pages of the timeline: filtered, the newest entries first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from app.analysis.chronicle import Chronicle
from app.domain.log import ObjectKey, Revision, records
from app.domain.log.projection import Row
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant
from projections import timeline_kinds
from projections.timeline import Entry
from projections.timeline_kinds import DECISION


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The entries wanted; empty fields match everything.

    `kind` is that of the entry; `resource`, `namespace` and `name` are those of its subject.
    `actor` and `text` are parts of the shown author and of the text, in any case. Decisions are
    left out unless requested by `decisions` or as the kind.
    """

    kind: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    actor: str = ""
    text: str = ""
    decisions: bool = False

    def takes(self, entry: Entry) -> bool:
        """Whether an entry matches."""
        subject = entry.subject
        if entry.kind == DECISION and not self.decisions and self.kind != DECISION:
            return False
        return (
            self.kind in ("", entry.kind)
            and self.resource in ("", subject.resource)
            and self.namespace in ("", subject.namespace)
            and self.name in ("", subject.name)
            and self.actor.lower() in records.shown_author(entry.actor, entry.kind).lower()
            and self.text.lower() in entry.text.lower()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBounds:
    """The bounds of a page: at most `rows_max` entries, of at most `scanned_max` examined."""

    rows_max: int = 100
    scanned_max: int = 30_000


class TimelinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries, the newest first, as of `revision`.

    `next` is the revision before which the next page continues, 0 when there is none. `examined` is
    the last revision read from the log; `note` says so when more is left.
    """

    history: str
    revision: Revision
    examined: Revision
    items: tuple[dict[str, Any], ...]
    next: Revision = Revision(0)
    note: str = ""


def read(
    history: str,
    chronicle: Chronicle,
    until: Revision,
    wanted: Filter,
    visible: Callable[[list[Row]], list[Row]],
    *,
    before: Revision = Revision(0),
    limit: int,
    bounds: PageBounds,
) -> TimelinePage:
    """Reads one page of entries up to `until`, or before `before` if that is given.

    `visible` removes the rows that the reader may not see.
    """
    end = until if not before else Revision(min(until, before - 1))
    numbers = chronicle.numbers(kind=wanted.kind)
    limit = max(1, min(limit, bounds.rows_max))
    items: list[dict[str, Any]] = []
    following = Revision(0)
    for scanned, entry in enumerate(chronicle.newest(numbers, until=end)):
        if len(items) == limit or scanned == bounds.scanned_max:
            following = Revision(entry.revision + 1)
            break
        if wanted.takes(entry):
            items += (_item(row) for row in visible([chronicle.row(entry)]))
    return TimelinePage(
        history=history,
        revision=until,
        examined=Revision(min(chronicle.revision, until)),
        note=chronicle.unread(until),
        items=tuple(items),
        next=following,
    )


def unrecorded(chronicle: Chronicle, page: TimelinePage) -> frozenset[Revision]:
    """The revisions of the entries of a page about objects that were not stored by then.

    A Kubernetes Event, a refused write or a decision may be about an object that no log has.
    """
    return frozenset(
        item["revision"]
        for item in page.items
        if timeline_kinds.is_of_another_event(item["kind"])
        and not is_recorded(chronicle, subject_of(item), item["revision"])
    )


def is_recorded(chronicle: Chronicle, key: ObjectKey, until: Revision) -> bool:
    """Whether an object was stored up to a revision, and not only named by what is about it."""
    return any(
        not timeline_kinds.is_of_another_event(entry.kind)
        for entry in chronicle.about(key, until=until)
    )


def kinds_of(page: TimelinePage) -> list[str]:
    """The kinds of the entries of a page, sorted."""
    return sorted({item["kind"] for item in page.items})


def subject_of(item: dict[str, Any]) -> ObjectKey:
    """The object that an entry is about."""
    return ObjectKey(item["api_group"], item["resource"], item["namespace"], item["name"])


def _item(row: Row) -> dict[str, Any]:
    time = row["time"]
    return {**row, "time": timestamps.micro_text(Instant(time)) if isinstance(time, int) else ""}
