"""The recorder: begins or resumes a recording, and continues until it is stopped.

    kinds ─▶ followers ─▶ window ─▶ committer ─▶ journal ─▶ log
                            ▲
                          clock

Each follower knows the recorded objects of its kind; only the committer appends. A recorder holds a
lease on its history, so only one runs at a time, and another takes over when it has died.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio
import msgspec
from anyio.abc import TaskGroup

from app.domain.errors import InputError, LogUnavailable, StaleLease
from app.domain.log import Head, HistoryInfo, LeaseToken, ObjectKey, chain
from app.domain.log.recorded_cluster import ClusterIdentity, ServedKind
from app.domain.log.records import Record
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Clock, ClusterSource, EventLog, Leases
from app.service import history_creation, moments
from app.service.recorded_events import record_of
from app.service.recording import clock_offsets, resuming, snapshot
from app.service.recording.audit_budget import AuditBudget
from app.service.recording.following import Audit, Follower, FollowingBounds
from app.service.recording.journal import (
    FINISHED,
    RECORDING,
    STOPPED,
    Journal,
    JournalBounds,
    NewGaps,
    RecordingProgress,
)
from app.service.recording.known import KnownObjects, Start
from app.service.recording.snapshot import Probed, SnapshotBounds
from app.service.recording.window import Window, WindowBounds, WindowEntry

_LEASE = "recording"
_LATER = "the cluster began to serve it amid the recording"
_CLOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingBounds:
    """Bounds of one recorder.

    `batch_max` entries are appended at once. The lease lasts `lease_seconds`. A clock that is off
    by more than `clock_seconds` is a gap. The comparisons at the end may take `stop_seconds`, and
    the appends after them, and the last report, as long again each.
    """

    snapshot: SnapshotBounds = SnapshotBounds()
    window: WindowBounds = WindowBounds()
    following: FollowingBounds = FollowingBounds()
    journal: JournalBounds = JournalBounds()
    batch_max: int = 1_000
    lease_seconds: float = 15.0
    clock_seconds: float = 2.0
    stop_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPorts:
    """The ports that a recorder works with."""

    log: EventLog
    leases: Leases
    clock: Clock
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """The state of a cluster before anything is written: its identity and the readable kinds."""

    identity: ClusterIdentity
    kinds: tuple[ServedKind, ...]
    missing: tuple[str, ...]
    probed: Probed


async def look(
    source: ClusterSource,
    bounds: RecordingBounds,
    listed: frozenset[str] = frozenset(),
    *,
    note: Callable[[str], None],
) -> FirstLook:
    """Ask the cluster for its identity and for the readable kinds; nothing is written.

    Kinds that were `listed` before are only checked to be served. A request whose connection breaks
    is repeated; `note` is called with the reason. Raises Unauthorized, ClusterUnreachable, and
    InputError when no kind may be read.
    """
    identity = await snapshot.patiently(source.identity, bounds.snapshot, note)
    kinds, missing = await snapshot.patiently(source.kinds, bounds.snapshot, note)
    note(f"the cluster is a {identity.release} at {identity.server}; reading {len(kinds)} kinds")
    unknown = [kind for kind in kinds if kind.name not in listed]
    # A kind of the common counter goes first: its versions show which kinds share the counter.
    common = [kind for kind in kinds if kind.name in listed][:1] if unknown else []
    probed = await snapshot.probe(source, [*common, *unknown], bounds.snapshot)
    if not listed and not any(not start.is_denied for start in probed.starts.values()):
        first = next(iter(probed.denied.values()), "it serves none of the kinds to record")
        raise InputError(
            f"no kind of this cluster may be read: {first}",
            place=source.name,
            cure=(
                "grant the user the ClusterRole that `redra record --rbac` prints, or name a "
                "namespace that it may read: --namespace NAME"
            ),
        )
    return FirstLook(identity=identity, kinds=tuple(kinds), missing=tuple(missing), probed=probed)


async def begin(
    ports: RecordingPorts,
    source: ClusterSource,
    beginning: FirstLook,
    *,
    name: str,
    settings: JsonObject,
    secrets: Callable[[HistoryInfo], SecretCipher] | None,
    bounds: RecordingBounds,
    is_once: bool,
    note: Callable[[str], None],
) -> HistoryInfo:
    """Make the history `name` from the present objects. On failure no history is left.

    A store that takes nothing is waited for; `note` is called with the reason.
    """
    now = Instant(ports.clock.now() + source.clock_offset)
    make = partial(
        ports.log.create_history,
        seed=0,
        settings=settings,
        created=now,
        hash=chain.genesis(seed=0, settings=settings, created=now),
    )
    async with history_creation.unfinished(ports.log, name, make) as info:
        journal = Journal(
            ports.log,
            info,
            head=await ports.log.head(info.id),
            progress=RecordingProgress(notes=_notes(beginning), alone=_alone(beginning)),
            clock=ports.clock,
            secrets=None if secrets is None else secrets(info),
            bounds=bounds.journal,
            note=note,
        )
        await journal.begin(_opening(name, source, beginning))
        if abs(source.clock_offset) >= bounds.clock_seconds * SECOND:
            await journal.add([clock_offsets.gap_of(source, now)])
        await snapshot.take(
            source, beginning.kinds, beginning.probed, journal, now, bounds.snapshot
        )
        await journal.report(FINISHED if is_once else RECORDING)
    return info


def together(problems: Mapping[str, str]) -> list[str]:
    """The problems of kinds as sentences: one for a shared cause, such as a lost server.

    A problem that names no path concerns the whole cluster. The sentence does not count the kinds
    that share a cause, because they meet it one after the other.
    """
    by_cause: dict[str, list[str]] = {}
    for kind, problem in problems.items():
        path, _, cause = problem.partition(": ")
        by_cause.setdefault(cause if path.startswith("/") else problem, []).append(kind)
    return [_together(cause, kinds, problems[kinds[0]]) for cause, kinds in by_cause.items()]


def _together(cause: str, kinds: list[str], problem: str) -> str:
    if cause == problem:
        return cause
    return f"several kinds: {cause}" if len(kinds) > 1 else f"{kinds[0]}: {problem}"


class Recorder:
    """Follows a cluster into a history that `begin` made or an earlier recorder left."""

    def __init__(
        self,
        ports: RecordingPorts,
        source: ClusterSource,
        beginning: FirstLook,
        info: HistoryInfo,
        *,
        secrets: SecretCipher | None,
        bounds: RecordingBounds,
        is_new: bool,
    ) -> None:
        self._ports = ports
        self._source = source
        self._beginning = beginning
        self._info = info
        self._secrets = secrets
        self._bounds = bounds
        self._window = Window(ports.clock, bounds.window)
        self._audit_budget = AuditBudget(
            pages_per_minute=bounds.following.audit_pages_per_minute, clock=ports.clock
        )
        self._begun = beginning.probed.starts if is_new else {}
        self._offset = 0
        self._journal: Journal | None = None
        self._followers: list[Follower] = []
        self._stop = anyio.Event()

    def problems(self) -> list[str]:
        """The reasons why something is not recorded at present, sorted."""
        problems = together(
            {each.kind.name: each.problem for each in self._followers if each.problem}
        )
        if self._journal is not None and self._journal.problem:
            problems.append(self._journal.problem)
        return sorted(problems)

    def uncompared(self) -> list[str]:
        """The reasons why kinds whose watches live are not compared with the cluster, sorted."""
        followers = [each for each in self._followers if not each.problem]
        refused = {each.kind.name: each.uncompared for each in followers if each.uncompared}
        return sorted(together(refused))

    def new_gaps(self) -> NewGaps:
        """The gaps that were stored since the last call."""
        return NewGaps() if self._journal is None else self._journal.new_gaps()

    def head(self) -> Head:
        """The head of the recording."""
        return Head() if self._journal is None else self._journal.head

    def stop(self) -> None:
        """Let `run` end: everything seen until now is appended first."""
        self._stop.set()

    async def run(self, started: Callable[[], None] = lambda: None) -> bool:
        """Follow until `stop`; False when the store was away at the end, so that not all is in it.

        Raises InputError when another process records this history, or the history is of another
        cluster.
        """
        async with self._leading() as token:
            resumed = await resuming.resume(self._ports.log, self._info)
            resuming.check_same_cluster(resumed, self._beginning.identity, self._info.name)
            resumed.progress.notes = _notes(self._beginning)
            resumed.progress.alone |= _alone(self._beginning)
            self._window = Window(
                self._ports.clock, self._bounds.window, given=resumed.progress.newest
            )
            journal = self._journal = Journal(
                self._ports.log,
                self._info,
                head=resumed.head,
                progress=resumed.progress,
                clock=self._ports.clock,
                secrets=self._secrets,
                bounds=self._bounds.journal,
                leases=[token],
            )
            self._offset = await clock_offsets.recorded(self._ports.log, self._info, resumed.head)
            await self._check_clock()
            now = Instant(self._ports.clock.now() + self._source.clock_offset)
            for entry in resuming.unread(resumed, self._beginning.kinds, self._source.name, now):
                await self._window.put(entry)
            started()
            is_stored = await self._work(journal, resumed, token)
            if is_stored:
                with anyio.move_on_after(self._bounds.stop_seconds) as waiting:
                    await journal.report(STOPPED)
                is_stored = not waiting.cancelled_caught
            return is_stored

    async def _work(self, journal: Journal, resumed: resuming.Resumed, token: LeaseToken) -> bool:
        """Follow until `stop`; False when not all that was seen could be appended."""
        done = anyio.Event()

        async def commit() -> None:
            await self._commit(journal)
            done.set()

        async with anyio.create_task_group() as committing:
            committing.start_soon(commit)
            committing.start_soon(self._renew, token)
            async with anyio.create_task_group() as following:
                for kind in self._beginning.kinds:
                    self._follow(self._follower(kind, resumed), following)
                following.start_soon(self._watch_clock)
                following.start_soon(self._watch_kinds, journal, resumed, following)
                await self._stop.wait()
                # All entries until now are taken from the window in order, while the watches
                # continue.
                uncompared = {follower.kind.name for follower in self._followers}
                with anyio.move_on_after(self._bounds.stop_seconds):
                    await self._audit(uncompared)
                    await self._window.flush()
                following.cancel_scope.cancel()
            if uncompared:
                journal.progress.notes += (self._uncompared_text(uncompared),)
            self._window.close()
            with anyio.move_on_after(self._bounds.stop_seconds):
                await done.wait()
            committing.cancel_scope.cancel()
        return done.is_set()

    def _follow(self, follower: Follower, following: TaskGroup) -> None:
        self._followers.append(follower)
        following.start_soon(follower.run)
        following.start_soon(follower.audits)

    async def _watch_kinds(
        self, journal: Journal, resumed: resuming.Resumed, following: TaskGroup
    ) -> None:
        """Follow kinds, too, that the cluster begins to serve, such as after an upgrade."""
        while True:
            await anyio.sleep(self._bounds.following.denied_seconds)
            followed = [follower.kind for follower in self._followers]
            later = await snapshot.probe_later(self._source, followed, self._bounds.snapshot)
            if later is None:
                continue
            new, missing, probed = later
            beginning = self._beginning
            beginning.probed.starts.update(probed.starts)
            beginning.probed.denied.update(probed.denied)
            self._beginning = replace(beginning, missing=tuple(missing))
            journal.progress.alone |= _alone(self._beginning)
            journal.progress.notes = _notes(self._beginning)
            for kind in new:
                self._follow(self._follower(kind, resumed, reason=_LATER), following)

    async def _audit(self, uncompared: set[str]) -> None:
        """Compare every kind once more; lost changes are listed again.

        Kinds that were compared are removed from `uncompared`.
        """
        for follower in self._followers:
            audit = await follower.conclude()
            if audit is Audit.DIFFERS:
                await follower.wait_whole()
            if audit is not Audit.NOT_MADE:
                uncompared.discard(follower.kind.name)

    def _uncompared_text(self, kinds: Iterable[str]) -> str:
        return (
            "stopped before the last comparison with the cluster was made (REDRA_RECORD_STOP_"
            f"SECONDS is {self._bounds.stop_seconds:g}), so changes that watches lost since the "
            f"comparison before are not noticed: {', '.join(sorted(kinds))}"
        )

    def _follower(self, kind: ServedKind, resumed: resuming.Resumed, reason: str = "") -> Follower:
        known = resumed.known.get((kind.group, kind.resource))
        position = resumed.progress.positions.get(kind.name, "")
        begun = None if reason else self._begun.get(kind.name)
        return Follower(
            self._source,
            kind,
            self._window,
            start=Start(
                known=known or KnownObjects(),
                position=position,
                reason=reason or ("" if begun is None else begun.reason),
                is_denied=begun is not None and begun.is_denied,
                is_listed=bool(reason)
                or resumed.progress.collector.is_listed(kind.group, kind.resource),
                shares_counter=kind.name not in resumed.progress.alone,
            ),
            clock=self._ports.clock,
            last_of=self._last_of,
            bounds=self._bounds.following,
            audit_budget=self._audit_budget,
        )

    async def _commit(self, journal: Journal) -> None:
        while entries := await self._window.take(self._bounds.batch_max):
            await journal.write(entries)
            self._window.stored(entries)

    async def _last_of(self, key: ObjectKey) -> Record | None:
        """The last recorded state of an object, however long the store is unavailable."""
        while True:
            until = self.head().revision
            try:
                last = await moments.last_state(self._ports.log, self._info.id, key, until)
                break
            except LogUnavailable:
                await anyio.sleep(self._bounds.journal.pause_seconds)
        record = None if last is None else record_of(last)
        if last is None or record is None:
            return None
        return msgspec.structs.replace(record, object=last.object)

    async def _watch_clock(self) -> None:
        while True:
            await anyio.sleep(_CLOCK_SECONDS)
            await self._check_clock()

    async def _check_clock(self) -> None:
        """Records a clock offset when it differs by `clock_seconds` from the last recorded one."""
        offset = self._source.clock_offset
        if abs(offset - self._offset) < self._bounds.clock_seconds * SECOND:
            return
        self._offset = offset
        now = Instant(self._ports.clock.now() + offset)
        await self._window.put(WindowEntry(kind="", record=clock_offsets.gap_of(self._source, now)))

    @asynccontextmanager
    async def _leading(self) -> AsyncIterator[LeaseToken]:
        """Hold the lease of this history; waits until the lease of a dead recorder expires."""
        token = await self._acquire()
        try:
            yield token
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(2.0):
                await _if_available(self._ports.leases.release(self._info.id, token))

    async def _acquire(self) -> LeaseToken:
        seconds = self._bounds.lease_seconds
        with anyio.move_on_after(seconds + 1.0):
            while True:
                token = await self._ports.leases.acquire(
                    self._info.id, _LEASE, self._ports.holder, seconds=seconds
                )
                if token is not None:
                    return token
                await anyio.sleep(min(0.5, seconds / 4))
        raise InputError(
            f"another process records {self._info.name!r}",
            place="--history",
            cure="stop it, or choose another name",
        )

    async def _renew(self, token: LeaseToken) -> None:
        seconds = self._bounds.lease_seconds
        while True:
            await anyio.sleep(seconds / 3)
            renewed = await _if_available(
                self._ports.leases.renew(self._info.id, token, seconds=seconds)
            )
            if renewed is False:
                raise StaleLease(token.name, token.epoch)


async def _if_available(answer: Awaitable[object]) -> object:
    """The answer, or None while the store is unavailable: then nothing is appended either."""
    try:
        return await answer
    except LogUnavailable:
        return None


def _opening(name: str, source: ClusterSource, beginning: FirstLook) -> JsonObject:
    identity = beginning.identity
    return {
        "phase": "begun",
        "name": name,
        "format": resuming.FORMAT,
        "sources": [
            {
                "name": source.name,
                "format": resuming.FORMAT,
                "server": identity.server,
                "release": identity.release,
                "uid": identity.uid,
                "namespace": identity.namespace,
            }
        ],
        "sourceCount": 1,
        "kinds": [kind.name for kind in beginning.kinds],
    }


def _notes(beginning: FirstLook) -> tuple[str, ...]:
    probed = beginning.probed
    notes = []
    if beginning.missing:
        notes.append(f"not served by the cluster: {', '.join(beginning.missing)}")
    if probed.denied:
        notes.append(f"not allowed to read: {', '.join(sorted(probed.denied))}")
    if alone := sorted(_alone(beginning)):
        notes.append(f"resource versions of their own, so ordered by arrival: {', '.join(alone)}")
    return tuple(notes)


def _alone(beginning: FirstLook) -> frozenset[str]:
    """The kinds that have, or may have, a counter of their own."""
    starts = beginning.probed.starts
    return frozenset(name for name, start in starts.items() if not start.shares_counter)
