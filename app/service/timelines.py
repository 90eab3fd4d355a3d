"""The timeline of a history, folded from its log."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import anyio.lowlevel
import msgspec

from app.analysis.scope import Scope, Selector, no_kind
from app.domain.errors import InputError, RevisionTooLarge
from app.domain.log import Event, HistoryId, HistoryInfo, ObjectKey, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row
from app.domain.objects import registry
from app.domain.values import selectors, timestamps
from app.domain.values.selectors import SelectorError
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments
from app.service.folding import keyed_events
from projections.timeline import TimelineProjection, named
from projections.timeline_kinds import DECISION

FINDING = "Finding"
"""The kind of rows for findings: things that are wrong in a history."""

_TURN_MAX = 100
"""Events that are folded before the reader yields to the loop: a few milliseconds."""

_EVENTS_FOR_A_ROW = (16, 256)
"""The numbers of events at the end of a log that are read for each of the last rows, in turn."""

_MORE = 16
"""The factor by which more events of an object are read when none of the newest is about it."""

_EVENTS_FOR_A_LOOK = 8
"""The number of events that are read in order in the time in which one is looked up by its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRequest:
    """The requested part of a timeline, as users write it; empty fields do not restrict it.

    `subject` is `KIND/NAME`, `since` and `until` are moments, `device` is `DRIVER/POOL/NAME` or the
    end of that, `author` a part of the author, `labels` a label selector. Recorded decisions are
    left out unless `decisions` is set or kinds are requested.
    """

    namespace: str = ""
    name: str = ""
    subject: str = ""
    kinds: frozenset[str] = frozenset()
    device: str = ""
    node: str = ""
    author: str = ""
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
        author=wanted.author.strip(),
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


ObjectsAt: TypeAlias = Callable[[Revision], Awaitable[Sequence[Event] | None]]
"""The last events of the objects of USED_KINDS at a revision; None where folding is cheaper."""


class TimelineReader:
    """Reads the rows of one timeline in order, from its beginning and as it grows.

    `page_max` events are read at a time. A window is read without what lies after it; one that is
    shorter than what lies before it also without that, unless the scope asks what objects were and
    `objects_at` does not say it. Of a scope of one name only the events of its keys are read, where
    these are few.
    Findings are separate rows (`app/service/replays/findings.py`).
    """

    def __init__(
        self,
        log: EventLog,
        info: HistoryInfo,
        scope: Scope,
        *,
        page_max: int,
        objects_at: ObjectsAt | None = None,
    ) -> None:
        self._objects_at = objects_at
        self._log = log
        self._info = info
        self._has_only_findings = scope.kinds == {FINDING}
        self._scope = replace(scope, kinds=scope.kinds - {FINDING})
        self._page_max = page_max
        self._view = TimelineProjection()
        self._selector = Selector(self._scope)
        self._before: _BeforeWindow | None = None
        self._end: Revision | None = None
        self._has_skipped = self._is_after = False
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
        if self._is_after:
            return True
        return scope.until is not None and bool(entries) and entries[-1].time > scope.until

    async def read(self) -> list[Row]:
        """The rows up to the present end of the history that were not returned before."""
        return [row async for page in self.pages() for row in page]

    async def pages(self) -> AsyncGenerator[list[Row], None]:
        """The same rows, grouped by the page of events they come from; a group may be empty."""
        head = await self._log.head(self._info.id)
        if not self.revision and head.revision:
            looked_up = await self._begin(head.revision)
            if looked_up is not None:
                for first in range(0, len(looked_up), _TURN_MAX):
                    yield await self._rows(looked_up[first : first + _TURN_MAX])
                await self._skip_to(head.revision)
                return
        while self.revision < head.revision:
            until = head.revision
            if self._end is not None and self._end < until:
                if self.revision >= self._end:
                    await self._skip_to(head.revision)
                    return
                until = self._end
            events = await self._log.read(
                self._info.id, after=self.revision, until=until, limit=self._page_max
            )
            if not events:
                return
            rows: list[Row] = []
            for first in range(0, len(events), _TURN_MAX):
                rows += await self._rows(events[first : first + _TURN_MAX])
                await anyio.lowlevel.checkpoint()
            if not self.revision:
                self._began = events[0].stamp.time
            self.revision, self._ended = events[-1].revision, events[-1].stamp.time
            yield rows

    async def _begin(self, head: Revision) -> list[Event] | None:
        """Find the end of a window, and begin after what lies before it, if that is longer.

        The result is the events of the keys of a scope of one name, unless reading in order costs
        less.
        """
        scope, history = self._scope, self._info.id
        if scope.final:
            self._end = Revision(scope.final)
        is_in_order = not (self._info.was_decided_elsewhere or self._info.is_fork)
        if scope.until is not None and is_in_order:
            # Recorded events, also those that a fork shares, may be earlier than one before them.
            end = await self._log.revision_at(history, scope.until)
            if end < head:
                self._end = min(end, self._end or end)
                self._is_after = True
        after = max(scope.first - 1, 0)
        if scope.since is not None:
            after = max(after, await self._log.revision_at(history, Instant(scope.since - 1)))
        after = min(after, head)
        end = head if self._end is None else min(head, self._end)
        is_skipped = not scope.labels and _is_worth_skipping(after, end)
        if keyed_events.has_one_name(scope):
            most = (end - after if is_skipped else end) // _EVENTS_FOR_A_LOOK
            events = await keyed_events.of_one_name(
                self._log, history, scope, until=Revision(end), most=most
            )
            if events is not None:
                seen = {event.key for event in events}
                self._before = _BeforeWindow(self._log, history, Revision(end), seen)
                return events
        if not is_skipped:
            return None
        if scope.needs_uses:
            last = None if self._objects_at is None else await self._objects_at(Revision(after))
            if last is None:
                return None
            self._selector.begin(last)
        ends = [
            *await self._log.read(history, after=Revision(0), limit=1),
            *await self._log.read(history, after=Revision(after - 1), limit=1),
        ]
        if len(ends) < 2:
            return None  # the history was deleted
        self._before = _BeforeWindow(self._log, history, Revision(after))
        self._began, self._ended = (event.stamp.time for event in ends)
        self.revision = Revision(after)
        return None

    async def _skip_to(self, head: Revision) -> None:
        """Leave out the events after a window, up to the head."""
        if not self.revision:
            for event in await self._log.read(self._info.id, after=Revision(0), limit=1):
                self._began = event.stamp.time
        for event in await self._log.read(self._info.id, after=Revision(head - 1), limit=1):
            self._ended = event.stamp.time
        self.revision = head
        self._has_skipped = True

    async def _rows(self, events: Sequence[Event]) -> list[Row]:
        entries = self._view.entries
        count = len(entries)
        if self._before is not None:
            await self._before.prepare(self._view, events)
        self._view.fold_page(Page(events))
        selected = self._selector.select(events, entries[count:])
        if self._has_only_findings:
            return []
        rows = [self._view.row_of(entry) for entry in selected]
        if self._before is not None:
            for row in rows:
                row["because"] = row["because"] or await self._before.because(row["cause"])
        return rows

    @property
    def knows_all_names(self) -> bool:
        """Whether every requested name has occurred in the events read so far."""
        return self._selector.knows_all_names

    async def check(self) -> None:
        """Raise InputError for a name that has not occurred, naming the nearest ones.

        A name that does not occur in a window is looked for in the whole history.
        """
        is_part = self._before is not None or self._has_skipped
        if is_part and not self.knows_all_names:
            whole = replace(self._scope, resource="", since=None, until=None, first=0, final=0)
            reader = TimelineReader(self._log, self._info, whole, page_max=self._page_max)
            async for _ in reader.pages():
                pass
            self._selector = reader._selector
        self._selector.check()


class _BeforeWindow:
    """The states and causes before a window that its events need.

    Each is read from the log when an event of the window needs it.
    """

    def __init__(
        self, log: EventLog, history: HistoryId, until: Revision, seen: Iterable[ObjectKey] = ()
    ) -> None:
        """`until` is the last revision before the window; objects that are `seen` need no state."""
        self._log = log
        self._history = history
        self._until = until
        self._seen = set(seen)
        self._causes: dict[int, str] = {}

    async def prepare(self, view: TimelineProjection, events: Iterable[Event]) -> None:
        """Give a view the states of the objects of events that it is about to fold."""
        keys = {event.key for event in events if event.is_about_object} - self._seen
        self._seen |= keys
        view.begin(await self._last(sorted(keys), self._until))

    async def because(self, cause: int) -> str:
        """The text of a cause before the window; empty when nothing is shown of it."""
        if not 0 < cause <= self._until:
            return ""
        text = self._causes.get(cause)
        if text is None:
            after = Revision(cause - 1)
            events = await self._log.read(self._history, after=after, limit=1)
            view = TimelineProjection()
            view.begin(await self._last([event.key for event in events], after))
            view.fold_page(Page(events))
            text = self._causes[cause] = named(view.entries[0]) if view.entries else ""
        return text

    async def _last(self, keys: Sequence[ObjectKey], until: Revision) -> list[Event]:
        """The last event of each object up to a revision, and a gap that follows it."""
        last: list[Event] = []
        limit = 1
        while keys and until:
            newest = await self._log.read_object(self._history, *keys, until=until, limit=limit)
            of_key: dict[ObjectKey, list[Event]] = {}
            for event in newest:
                of_key.setdefault(event.key, []).append(event)
            open_keys: list[ObjectKey] = []
            for key, events in of_key.items():
                about = next((each for each in events if each.is_about_object), None)
                if about is None and len(events) == limit:
                    open_keys.append(key)
                    continue
                later = Revision(0) if about is None else about.revision
                last += [each for each in events if each.revision > later]
                last += [] if about is None else [about]
            keys, limit = open_keys, limit * _MORE
        return last


async def of_last(
    log: EventLog,
    info: HistoryInfo,
    scope: Scope,
    last: int,
    *,
    page_max: int,
    seen: Callable[[list[Row]], Sequence[Row]],
) -> Scope:
    """The scope with a later beginning, if the last `last` rows that are `seen` lie after it.

    Otherwise the scope itself, which it also is where a window is not read without what lies before
    it.
    """
    if not last or scope.needs_objects or FINDING in scope.kinds:
        return scope
    head = (await log.head(info.id)).revision
    end = min(head, scope.final or head)
    if scope.until is not None:
        end = min(end, await log.revision_at(info.id, scope.until))
    for events in _EVENTS_FOR_A_ROW:
        first = end - last * events
        if first <= scope.first or not _is_worth_skipping(first - 1, end):
            break
        part = replace(scope, first=first)
        count = 0
        async for rows in TimelineReader(log, info, part, page_max=page_max).pages():
            count += len(seen(rows))
            if count >= last:
                return part
    return scope


def _is_worth_skipping(count: int, end: int) -> bool:
    """Whether so many events at the beginning are more than those after them, up to an end.

    Of a window, the log is also asked for what was before it, which costs about as much.
    """
    return count > end - count


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
