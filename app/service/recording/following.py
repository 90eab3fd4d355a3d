"""The follower of one kind: one watch at a time, each from where the last one ended.

A watch that ends or breaks off loses nothing: the next one begins after the last change. Changes
are lost when the cluster refuses that (410, twice in a row), or when a change does not follow from
the known objects. That is a gap. After it, the existing objects are listed page by page and
compared with the known ones.
"""

import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count

import anyio
from msgspec.structs import replace

from app.domain.errors import (
    ClusterUnreachable,
    Expired,
    Forbidden,
    InputError,
    MethodNotAllowed,
    NotFound,
    Rejected,
    RevisionTooLarge,
    TooManyRequests,
)
from app.domain.log import ObjectKey
from app.domain.log.recorded_cluster import ServedKind, WatchItem
from app.domain.log.records import (
    LIST,
    Loss,
    Op,
    Record,
    TimeQuality,
    comparable_version,
    join_losses,
)
from app.domain.values import counts
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Clock, ClusterSource
from app.service.recording import served_kinds
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.known import Name, Start, deletion
from app.service.recording.window import Window, WindowEntry

BACKLOG_AFTER = 5 * SECOND
"""Silence after which a new watch begins with changes that are older than their arrival."""

BACKLOG_MICROS = 2 * SECOND
"""The time in which a new watch sends such old changes, which the server has ready."""

_LOOK_SECONDS = 0.1
_RENEWED_AT, _AUDITED_AT = 10, 40
"""At a stop, the looks at what a watch has brought after which it is begun anew, and audited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowingBounds:
    """Bounds of following.

    `page_max` objects are listed at once. A watch lasts up to `watch_seconds`. After a failure the
    pause doubles from `pause_seconds` up to `pause_seconds_max`. A kind that is denied or not
    served is requested again after `denied_seconds`. Every `audit_seconds`, or more rarely as the
    `AuditBudget` of `audit_pages_per_minute` says, the known objects are compared with the cluster.
    """

    page_max: int = 500
    watch_seconds: int = 300
    pause_seconds: float = 0.5
    pause_seconds_max: float = 10.0
    denied_seconds: float = 60.0
    audit_seconds: float = 60.0
    audit_pages_per_minute: float = 60.0


class Audit(Enum):
    """The report of an audit, a comparison with the cluster.

    `NOT_MADE`: the reached version is compacted in the cluster, or the cluster is unavailable.
    """

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_MADE = "not made"


class Follower:
    """Follows one kind into the window. `problem` is the reason why it is stuck at present."""

    def __init__(
        self,
        source: ClusterSource,
        kind: ServedKind,
        window: Window,
        *,
        start: Start,
        clock: Clock,
        last_of: Callable[[ObjectKey], Awaitable[Record | None]],
        bounds: FollowingBounds,
        audit_budget: AuditBudget,
    ) -> None:
        self.kind = kind
        self.problem = self.uncompared = ""
        self._source = source
        self._window = window
        self._known = start.known
        self._position = start.position
        self._reason = start.reason
        self._is_denied = start.is_denied
        self._is_listed = start.is_listed
        self._gap_until = ""
        self._is_expired = self._is_refused = False
        self._reached = start.position
        self._shares_counter = start.shares_counter
        self._alive = -BACKLOG_AFTER
        self._backlog_until = 0
        self._turns = 0
        self._unreadable: set[Name] = set()
        self._watching = anyio.CancelScope()
        self._whole = anyio.Event()
        self._clock = clock
        self._last_of = last_of
        self._bounds = bounds
        self._pause = bounds.pause_seconds
        self._audit_budget = audit_budget
        self._audit_pages = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        if self._position and self._shares_counter:
            self._window.wait_for(self.kind.name)
        while True:
            try:
                if not self._position:
                    await self._list()
                with anyio.CancelScope() as self._watching:
                    await self._watch()
                seconds = 0.0
            except (Expired, RevisionTooLarge) as problem:
                if not self._position:
                    # What expired is the list: until one is whole, nothing is recorded.
                    self.problem = str(problem)
                if not await self._may_continue(problem):
                    self._lose(str(problem))
                seconds = self._next_pause()
            except (Forbidden, NotFound, MethodNotAllowed) as problem:
                is_gone = not isinstance(problem, Forbidden)
                other = (
                    await served_kinds.in_other_version(self._source, self.kind)
                    if is_gone
                    else None
                )
                self.kind, seconds = other or self.kind, 0.0
                if other is None:
                    await self._note_denied(problem)
                    seconds = self._bounds.denied_seconds
            except (Rejected, ClusterUnreachable, InputError) as problem:
                self.problem = str(problem)
                seconds = self._next_pause()
                if isinstance(problem, TooManyRequests):
                    seconds = max(seconds, float(problem.retry_after_seconds))
            # Kinds that lost their server at the same time must not all send requests at once.
            await anyio.sleep(seconds * self._share())

    async def _may_continue(self, problem: Rejected) -> bool:
        """Whether to request the changes since the position once more.

        A server that stops may end its watches with 410 although it keeps the changes. One that
        does not have them answers 410 again. A list that expired begins anew. A version that is too
        large will come, unless the cluster went back.
        """
        if isinstance(problem, RevisionTooLarge):
            return bool(self._position) and not await self._went_back(self._position)
        may_continue = bool(self._position) and not self._is_expired
        self._is_expired = may_continue
        return may_continue

    async def conclude(self) -> Audit:
        """Compare once more, with what the cluster has now: a watch may be silent.

        An audit at the reached version does not notice that nothing has arrived since. So a watch
        that does not bring what the cluster has is begun anew. Waits as long as changes are missing
        that no audit shows to be lost.
        """
        if not self._position:
            return Audit.AGREES
        try:
            version = (await self._source.list_page(self.kind, limit=1)).version
            listed = await self._versions(version) if _is_lower(self._position, version) else {}
        except (Rejected, ClusterUnreachable, InputError):
            return Audit.NOT_MADE
        for look in count(1):
            if not self._position or not _is_lower(self._position, version):
                return await self.audit()
            if not self._differing(dict(self._known.objects), listed):
                return Audit.AGREES
            if look == _RENEWED_AT:
                self._watching.cancel()
            if look == _AUDITED_AT and (audit := await self.audit()) is not Audit.AGREES:
                return audit
            await anyio.sleep(_LOOK_SECONDS)
        raise AssertionError("counting has no end")

    async def audit(self) -> Audit:
        """Compare the known objects with those that the cluster had at the reached version.

        A difference means that a watch lost a change, which is a gap. A kind that is to be listed
        again or is denied already has its gap.
        """
        version, known = self._position, dict(self._known.objects)
        self._audit_pages = 0
        if not version:
            return Audit.AGREES
        try:
            listed = await self._versions(version)
        except (Rejected, ClusterUnreachable, InputError) as problem:
            # A watch from a version that is yet to come is silent until the cluster reaches it.
            if self._position != version or not await self._went_back(version):
                # One refusal says little: an old version of a kind at rest may have expired.
                self.uncompared = str(problem) if self._is_refused else ""
                self._is_refused = True
                return Audit.NOT_MADE
            self._relist(f"the cluster went back behind resource version {version}")
            return Audit.DIFFERS
        self.uncompared, self._is_refused = "", False
        differing = self._differing(known, listed)
        if not differing or not self._position:
            return Audit.AGREES
        self._relist(
            f"a watch lost changes: at resource version {version} the cluster has "
            f"{counts.of(len(differing), 'object')} that {counts.verb(len(differing), 'differs')} "
            f"from the recorded ones, such as {differing[0]}"
        )
        return Audit.DIFFERS

    async def _versions(self, version: str) -> dict[Name, tuple[str, str]]:
        """The uid and version of each object that the cluster had at a version."""
        token, listed = "", dict[Name, tuple[str, str]]()
        while True:
            self._audit_pages += 1
            versions, token = await self._source.versions_page(
                self.kind, limit=self._bounds.page_max, version=version, token=token
            )
            listed |= {(each.namespace, each.name): (each.uid, each.version) for each in versions}
            if not token:
                return listed

    def _differing(
        self, known: Mapping[Name, tuple[str, str]], listed: Mapping[Name, tuple[str, str]]
    ) -> list[str]:
        """The names of objects that are not the same in both, of those that can be read."""
        names = [name for name in listed if known.get(name) != listed[name]]
        names += [name for name in known if name not in listed]
        return [name[1] for name in names if name not in self._unreadable]

    async def _went_back(self, version: str) -> bool:
        """Whether the newest resource version of the cluster is lower than one that it had.

        The refusal of a version does not show that: a server whose cache is behind the others'
        refuses it as too large, and one that asks etcd answers with an internal error.
        """
        try:
            page = await self._source.list_page(self.kind, limit=1)
        except (Rejected, ClusterUnreachable, InputError):
            return False
        return _is_lower(page.version, version)

    def _relist(self, reason: str) -> None:
        """End the watch, and list the existing objects after a gap."""
        self._lose(reason)
        self._whole = anyio.Event()
        self._watching.cancel()

    async def audits(self) -> None:
        """Audit periodically until cancelled, as often as the budget of all kinds allows."""
        while True:
            await anyio.sleep(self._bounds.audit_seconds * self._share())
            expected = 1 + len(self._known.objects) // self._bounds.page_max
            await self._audit_budget.wait(expected)
            await self.audit()
            self._audit_budget.settle(self._audit_pages, expected=expected)

    async def wait_whole(self) -> None:
        """Return when the existing objects have been listed after a failed audit."""
        await self._whole.wait()

    async def _watch(self) -> None:
        name = self.kind.name
        seconds = max(1, int(self._bounds.watch_seconds * self._share()))
        began = self._clock.steady()
        if began - self._alive > BACKLOG_AFTER:
            self._backlog_until = began + BACKLOG_MICROS
        async with self._source.watch(self.kind, after=self._position, seconds=seconds) as items:
            self.problem, self._is_denied = "", False
            if self._shares_counter:
                self._window.follow(name, self._position)
            try:
                async for item in items:
                    self._pause, before = self._bounds.pause_seconds, self._position
                    await self._take(item)
                    self._is_expired = self._is_expired and self._position == before
                    self._alive = self._clock.steady()
                    if not self._position:
                        return
            finally:
                if self._shares_counter and self._position:
                    self._window.wait_for(name)
        if self._clock.steady() - began < SECOND:
            # A server that ends each watch at once is asked again only after a pause.
            await anyio.sleep(self._next_pause())

    async def _take(self, item: WatchItem) -> None:
        if self._is_repeated(item.version):
            return
        record = item.record
        if record is None:
            if item.problem:
                self._note_unreadable(item)
                await self._put(self._gap(item.problem, key=item.key), item.version)
            elif item.version:
                await self._put(None, item.version)
            self._position = item.version or self._position
            return
        contradiction = self._known.contradiction(record)
        if contradiction:
            self._lose(f"a watch lost changes: {contradiction}")
            return
        self._known.note(record)
        self._unreadable.discard((record.namespace, record.name))
        self._position = item.version
        await self._put(self._timed(record, item), item.version)

    def _timed(self, record: Record, item: WatchItem) -> Record:
        """The record, with the time in its object if the change is older than the watch.

        For a deletion the object contains no such time.
        """
        written = item.written
        if written is None or record.op is Op.DELETED or record.observed_at is None:
            return record
        if self._clock.steady() > self._backlog_until or written >= record.observed_at:
            return record
        return replace(record, observed_at=written, time_quality=TimeQuality.DERIVED)

    def _is_repeated(self, version: str) -> bool:
        """Whether a watch showed this version before: within one watch versions only rise."""
        return version == self._position or _is_lower(version, self._position)

    async def _put(self, record: Record | None, version: str) -> None:
        if record is not None and not self._shares_counter:
            record = replace(record, losses=join_losses(record.losses, (Loss.NO_RV,)))
        entry = WindowEntry(kind=self.kind.name, record=record, version=version)
        await self._window.put(entry, version=version if self._shares_counter else "")

    def _lose(self, reason: str) -> None:
        if self._position or not self._reason:
            # What makes a list begin anew is not why changes were lost before it.
            self._reason = reason
        self._reached, self._position = self._position or self._reached, ""
        self._window.leave(self.kind.name)

    async def _note_denied(self, problem: Rejected) -> None:
        self.problem = str(problem)
        self._window.leave(self.kind.name)
        if not self._is_denied:
            self._is_denied = True
            text = f"{problem}; changes of {self.kind.name} are not recorded until that is allowed"
            await self._lost(text)
        self._reached = self._position or self._reached
        self._position, self._reason = "", self._reason or str(problem)

    async def _lost(self, text: str, *, is_restored: bool = False) -> None:
        entry = WindowEntry(
            kind=self.kind.name,
            record=self._gap(text),
            is_lost=True,
            is_restored=is_restored,
        )
        await self._window.put(entry)

    async def _list(self) -> None:
        """List the existing objects, after a gap for changes that may have been lost."""
        await self._window.flush()
        # A first list that expired between its pages showed objects, and not what came after it.
        self._is_listed = self._is_listed or bool(self._known.objects)
        token, listed = "", set[Name]()
        while True:
            page = await self._source.list_page(self.kind, limit=self._bounds.page_max, token=token)
            if self._is_listed and not token and page.version != self._gap_until:
                # A list that expired between its pages begins anew, and more may be lost by then.
                is_first, self._gap_until = not self._gap_until, page.version
                await self._lost(
                    f"{self._reason or 'the recording did not continue where it had ended'}; "
                    f"changes of {self.kind.name} up to resource version {page.version} are "
                    "not recorded; the objects that exist then are listed",
                    is_restored=is_first
                    and self._shares_counter
                    and _is_lower(page.version, self._reached),
                )
            for item in page.items:
                await self._compare(item, listed)
            token = page.token
            if not token:
                break
        for name in self._known.unlisted(listed):
            await self._delete(name)
        self._position, self._reason, self._is_denied = page.version, "", False
        self._is_listed, self._gap_until = True, ""
        self._whole.set()
        self._pause = self._bounds.pause_seconds
        await self._window.put(
            WindowEntry(kind=self.kind.name, version=page.version, is_listed=True)
        )

    async def _compare(self, item: WatchItem, listed: set[Name]) -> None:
        record = item.record
        if record is None:
            if item.key is not None:
                listed.add((item.key.namespace, item.key.name))
                self._note_unreadable(item)
                await self._show(self._gap(item.problem, key=item.key))
            return
        name = record.namespace, record.name
        listed.add(name)
        self._unreadable.discard(name)
        is_other, change = self._known.difference(record)
        if is_other:
            await self._delete(name)
        if change is not None:
            shown = change if self._is_listed else record
            self._known.note(shown)
            await self._show(shown)

    def _note_unreadable(self, item: WatchItem) -> None:
        if item.key is not None:
            self._unreadable.add((item.key.namespace, item.key.name))

    async def _delete(self, name: Name) -> None:
        key = ObjectKey(self.kind.group, self.kind.resource, *name)
        last = await self._last_of(key)
        del self._known.objects[name]
        if last is not None:
            await self._show(deletion(key, last, LIST, self._now()))

    async def _show(self, record: Record) -> None:
        await self._window.put(WindowEntry(kind=self.kind.name, record=record))

    def _gap(self, message: str, key: ObjectKey | None = None) -> Record:
        return gap(self._source.name, key or self.kind.key, message, self._now())

    def _now(self) -> Instant:
        return Instant(self._clock.now() + self._source.clock_offset)

    def _share(self) -> float:
        """A factor from a half to one that varies by kind and time, so that requests are spread."""
        self._turns += 1
        return 0.5 + zlib.crc32(f"{self.kind.name} {self._turns}".encode()) / 2**33

    def _next_pause(self) -> float:
        pause = self._pause
        self._pause = min(pause * 2, self._bounds.pause_seconds_max)
        return pause


def _is_lower(version: str, other: str) -> bool:
    """Whether a resource version comes before another one; False where that is unknown."""
    order, reached = comparable_version(version), comparable_version(other)
    return bool(order and reached) and order < reached


def gap(source: str, key: ObjectKey, message: str, now: Instant) -> Record:
    """The record of a gap: of an object, of a kind, or of anything (empty parts)."""
    return Record(
        source=source,
        position=LIST,
        op=Op.GAP,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        observed_at=now,
        time_quality=TimeQuality.EXACT,
        losses=(Loss.GAP,),
        message=message,
    )
