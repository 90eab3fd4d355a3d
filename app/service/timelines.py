"""The timeline of a history, folded from its log."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, replace

import anyio.lowlevel
import msgspec

from app.analysis.scope import Scope, Selector, no_kind
from app.domain.errors import InputError, RevisionTooLarge
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row
from app.domain.objects import registry
from app.domain.values import selectors, timestamps
from app.domain.values.selectors import SelectorError
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments
from projections.timeline import TimelineProjection
from projections.timeline_kinds import DECISION

FINDING = "Finding"
"""The kind of rows for findings: things that are wrong in a history."""

_TURN_MAX = 100
"""Events that are folded before the reader yields to the loop: a few milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """The requested part of a timeline, as users write it; empty fields do not restrict it.

    `subject` is `KIND/NAME`, `since` and `until` are moments, `device` is `DRIVER/POOL/NAME` or the
    end of that, `labels` a label selector. Recorded decisions are left out unless `decisions` is
    set or kinds are requested.
    """

    namespace: str = ""
    name: str = ""
    subject: str = ""
    kinds: frozenset[str] = frozenset()
    device: str = ""
    node: str = ""
    labels: str = ""
    since: str = ""
    until: str = ""
    decisions: bool = False


async def check_until(log: EventLog, info: HistoryInfo, wanted: TimelineRequest) -> None:
    """Raise InputError when the requested part ends at a revision that does not exist yet."""
    if moments.is_revision(wanted.until):
        try:
            await moments.find_revision(log, info, wanted.until)
        except RevisionTooLarge as problem:
            raise InputError(problem.message, place="--until") from problem


async def scope_of(log: EventLog, info: HistoryInfo, wanted: TimelineRequest) -> Scope:
    """The scope of a request, whose moments are not relative.

    Raises InputError for an invalid kind, moment or selector, and for an object of another name.
    """
    group = resource = place = ""
    name = wanted.name
    if wanted.subject:
        group, resource, place, name = _object(wanted.subject)
        if wanted.name not in ("", name):
            raise InputError(
                f"the object {wanted.subject} has another name than {wanted.name!r}",
                cure="leave out the name",
            )
    since, until = wanted.since, wanted.until
    first, final = (int(text) if moments.is_revision(text) else 0 for text in (since, until))
    scope = Scope(
        since=None if first or not since else moments.parse_instant(since),
        until=None if final or not until else moments.parse_instant(until),
        first=first,
        final=final,
        kinds=wanted.kinds,
        group=group,
        resource=resource,
        name=name,
        place=place,
        namespace=wanted.namespace,
        device=wanted.device,
        node=wanted.node,
        labels=wanted.labels.strip(),
    )
    try:
        selectors.parse_labels(scope.labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {scope.labels!r}") from problem
    if since and until and await _is_upside_down(log, info, scope):
        raise InputError(
            f"the start {since} is not before the end {until}", cure="give the earlier one first"
        )
    return scope


async def _is_upside_down(log: EventLog, info: HistoryInfo, scope: Scope) -> bool:
    """Whether the beginning of the scope is after its end."""
    if scope.since is not None and scope.until is not None:
        return scope.since > scope.until
    if scope.until is not None:
        return scope.first > await log.revision_at(info.id, scope.until)
    if scope.since is not None:
        return Revision(scope.final) < await log.revision_at(info.id, Instant(scope.since - 1))
    return scope.first > scope.final


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """A read part of a log: its last revision, and the times of its first and last event.

    The times are empty before the first event.
    """

    revision: Revision = Revision(0)
    began: str = ""
    ended: str = ""


class TimelineReader:
    """Reads the rows of one timeline in order, from its beginning and as it grows.

    `page_max` events are read at a time. Findings are separate rows
    (`app/service/replays/findings.py`).
    """

    def __init__(self, log: EventLog, info: HistoryInfo, scope: Scope, *, page_max: int) -> None:
        self._log = log
        self._info = info
        self._has_only_findings = scope.kinds == {FINDING}
        self._scope = replace(scope, kinds=scope.kinds - {FINDING})
        self._page_max = page_max
        self._view = TimelineProjection()
        self._selector = Selector(self._scope)
        self.revision = Revision(0)
        self._began = self._ended = Instant(0)

    @property
    def extent(self) -> Extent:
        """The part of the log that was read."""
        if not self.revision:
            return Extent()
        began, ended = (timestamps.micro_text(each) for each in (self._began, self._ended))
        return Extent(revision=self.revision, began=began, ended=ended)

    @property
    def is_over(self) -> bool:
        """Whether no later event can be in the scope."""
        scope, entries = self._scope, self._view.entries
        if scope.final:
            return self.revision >= scope.final
        return scope.until is not None and bool(entries) and entries[-1].time > scope.until

    async def read(self) -> list[Row]:
        """The rows up to the present end of the history that were not returned before."""
        return [row async for page in self.pages() for row in page]

    async def pages(self) -> AsyncGenerator[list[Row], None]:
        """The same rows, grouped by the page of events they come from; a group may be empty."""
        head = await self._log.head(self._info.id)
        while self.revision < head.revision:
            events = await self._log.read(
                self._info.id, after=self.revision, until=head.revision, limit=self._page_max
            )
            if not events:
                return
            rows: list[Row] = []
            for first in range(0, len(events), _TURN_MAX):
                rows += self._rows(events[first : first + _TURN_MAX])
                await anyio.lowlevel.checkpoint()
            if not self.revision:
                self._began = events[0].stamp.time
            self.revision, self._ended = events[-1].revision, events[-1].stamp.time
            yield rows

    def _rows(self, events: Sequence[Event]) -> list[Row]:
        entries = self._view.entries
        count = len(entries)
        self._view.fold_page(Page(events))
        selected = self._selector.select(events, entries[count:])
        return [] if self._has_only_findings else [self._view.row_of(each) for each in selected]

    @property
    def knows_all_names(self) -> bool:
        """Whether every requested name has occurred in the events read so far."""
        return self._selector.knows_all_names

    def check(self) -> None:
        """Raise InputError for a name that has not occurred, naming the nearest ones."""
        self._selector.check()


async def timeline(
    log: EventLog, info: HistoryInfo, *, page_max: int, scope: Scope = Scope()
) -> list[Row]:
    """The rows of the timeline of a history that are in the scope, in order.

    `page_max` events are read at a time. Raises InputError for a name that does not occur. Findings
    are separate rows (`app/service/replays/findings.py`).
    """
    reader = TimelineReader(log, info, scope, page_max=page_max)
    rows = await reader.read()
    reader.check()
    return rows


def shown(rows: Iterable[Row], wanted: TimelineRequest) -> list[Row]:
    """The rows for output: times in RFC 3339, decisions only where they are requested."""
    with_decisions = wanted.decisions or bool(wanted.kinds)
    return [
        {**row, "time": timestamps.micro_text(Instant(row["time"]))}
        for row in rows
        if with_decisions or row["kind"] != DECISION
    ]


def _object(text: str) -> tuple[str, str, str, str]:
    """Group, resource, namespace (perhaps empty) and name of `KIND/[NAMESPACE/]NAME`."""
    kind, slash, name = text.partition("/")
    known = registry.named(kind)
    if not slash or not name:
        raise InputError(
            f"{text!r} does not name an object", cure="write it as KIND/NAME, as in pod/web"
        )
    if not known:
        raise no_kind(kind)
    namespace, _, short = name.rpartition("/") if known[0].namespaced else ("", "", name)
    return known[0].group, known[0].plural, namespace, short
