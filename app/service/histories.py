"""The histories of a service: open ones with their runtimes, and views of any past moment."""

import logging
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from app.analysis.views import LiveViews
from app.domain.errors import (
    AlreadyExists,
    ChainBroken,
    HistoryBroken,
    HistoryOpening,
    InputError,
    LogError,
    LogUnavailable,
    NotFound,
)
from app.domain.log import Actor, Event, Head, HistoryInfo, Revision, Tombstone
from app.domain.objects.rules import Rules
from app.domain.values.json_tree import JsonObject
from app.domain.values.moments import HistoryEnd
from app.domain.values.timestamps import Instant
from app.ports import RuntimePorts
from app.service import broken_histories, copying, deleting, history_creation, moments, past_views
from app.service.alarms import Alarms
from app.service.answering.openings import HistoryOpenings, OpeningProgress
from app.service.broken_histories import Broken, Replaced, Replacements
from app.service.replays.replaying import Progress, silent
from app.service.runtime import HistoryRuntime, RuntimeBounds, Use

if TYPE_CHECKING:  # heavy: only forks need them
    from app.service.forking import ForkRequest, MadeFork
    from app.service.replays.deciding.continuing import Planes

DEFAULT_HISTORY = "default"
"""The history that is served at `/` and used when no history is named."""

_log = logging.getLogger("redra")


class Histories:
    """Opens histories on demand and keeps them running until the service ends.

    `on_open` is called with each runtime that starts; bootstrap uses it to start the workers.
    `alarms` hold when a closed history is opened again; bootstrap sets them. `patience_seconds` is
    how long `open` waits for a history, None for any time; bootstrap sets it for servers.
    """

    def __init__(
        self,
        *,
        ports: RuntimePorts,
        rules: Callable[[HistoryInfo], Rules],
        bounds: RuntimeBounds,
        past_views_max: int,
        objects_max: int,
        planes: "Planes | None" = None,
    ) -> None:
        """`planes` are needed for forks in which recorded inputs continue."""
        self.planes = planes
        self._ports = ports
        self.rules = rules
        self._bounds = bounds
        self._runtimes: dict[str, HistoryRuntime] = {}
        self.past = past_views.PastViews(
            ports.log,
            lambda info: self.rules(info).profile,
            views_max=past_views_max,
            objects_max=objects_max,
            kept=ports.views,
        )
        self._objects_max = objects_max
        self._openings: HistoryOpenings[HistoryRuntime] = HistoryOpenings(
            max(1, bounds.errands_max)
        )
        self.patience_seconds: float | None = None
        self._broken: dict[str, Broken] = {}
        self._replacements = Replacements(ports.log, bounds.calm_seconds)
        self._uses: dict[HistoryRuntime, Use] = {}
        self.alarms = Alarms(None)
        self.on_open: Callable[[HistoryRuntime, TaskGroup], None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Histories"]:
        """Opened histories follow their logs until the context is left."""
        async with anyio.create_task_group() as tasks:
            self._openings.begin(tasks)
            tasks.start_soon(self._follow_names)
            try:
                yield self
            finally:
                tasks.cancel_scope.cancel()
                self._openings.end()

    async def all(self) -> list[HistoryInfo]:
        """All histories, sorted by name."""
        return await self._ports.log.histories()

    def open_runtimes(self) -> list[HistoryRuntime]:
        """The histories that run in this process, sorted by name."""
        return [self._runtimes[name] for name in sorted(self._runtimes)]

    def now(self) -> Instant:
        """The present instant of the process."""
        return self._ports.clock.now()

    def broken(self) -> list[Broken]:
        """The histories that this process could not open or follow, sorted by name."""
        return [self._broken[name] for name in sorted(self._broken)]

    def replaced(self) -> list[Replaced]:
        """The histories whose logs were replaced under this process, sorted by name."""
        return self._replacements.all()

    def why_replaced(self, name: str) -> str:
        """The cause of the last replacement of a history's log; empty when there was none."""
        return self._replacements.cause(name)

    async def head(self, info: HistoryInfo) -> Head:
        """The head of a history, which need not be open."""
        return await broken_histories.head_of(self._ports.log, info)

    def end(self, info: HistoryInfo, head: Head) -> HistoryEnd:
        """The end from which relative moments of a history count."""
        return moments.end_of(info, head.time, self.now())

    async def state(self, info: HistoryInfo) -> tuple[Head, str]:
        """The head, and the cause why the history could not be opened at it, here or elsewhere.

        Empty when it could be opened. A history that was never tried is not known to be broken.
        """
        try:
            head = await self.head(info)
        except HistoryBroken as problem:
            return Head(), problem.cause
        known = self._broken.get(info.name)
        if known is not None and known.head == head:
            return head, known.cause
        if self._ports.views is None or info.name in self._runtimes:
            return head, ""
        return head, await broken_histories.find(self._ports.views, info.id, head.revision)

    async def create(
        self, name: str, *, seed: int = 0, settings: JsonObject | None = None
    ) -> HistoryRuntime:
        """Make an empty history and open it. Raises AlreadyExists, InputError."""
        await history_creation.make_empty(
            self._ports, history_creation.check_name(name), seed=seed, settings=settings or {}
        )
        return await self.wait_open(name)

    async def create_cluster(
        self, name: str, *, seed: int = 0, settings: JsonObject | None = None
    ) -> HistoryRuntime:
        """Make a history with what every cluster has (`first_objects`), and open it.

        Nobody sees it without these objects. Raises AlreadyExists, InputError.
        """
        await self._check_free(name)
        await history_creation.make_cluster(
            self._ports, name, self._runtime, seed=seed, settings=settings or {}
        )
        return await self.wait_open(name)

    def _runtime(self, info: HistoryInfo) -> HistoryRuntime:
        return HistoryRuntime(
            info=info, ports=self._ports, rules=self.rules(info), bounds=self._bounds
        )

    async def find(self, name: str) -> HistoryInfo | None:
        """The stored facts about a history; None when no history has that name."""
        return await self._ports.log.find_history(name)

    async def rename(self, name: str, new_name: str) -> HistoryInfo:
        """Give a history another name. Raises NotFound, AlreadyExists, InputError.

        Followers are cut off and find the history under its new name.
        """
        info = await self.info(name)
        await self._ports.log.rename_history(info.id, history_creation.check_name(new_name))
        await self.look_again()
        return await self.info(new_name)

    async def delete(self, name: str, *, by: str) -> Tombstone:
        """Delete a history with all that belongs to it. Raises NotFound, Conflict.

        Followers are cut off, and writes in progress fail.
        """
        deleted = await deleting.delete(self._ports.log, name, at=self.now(), by=by)
        await self.look_again()
        return deleted

    async def copy(self, name: str, new_name: str, moment: str = "") -> HistoryInfo:
        """Make a history from the events of another, up to a moment if one is given.

        Raises NotFound, RevisionTooLarge, ChainBroken, InputError.
        """
        info = await self.info(name)
        await self._check_free(new_name)
        until = await self.revision(info, moment) if moment else (await self.head(info)).revision
        return await copying.copy_history(self._ports.log, info, new_name, until=until)

    async def fork(
        self,
        name: str,
        new_name: str,
        moment: str = "",
        *,
        wanted: "ForkRequest",
        actor: Actor,
        progress: Progress = silent,
    ) -> "MadeFork":
        """Make a fork that continues from another history: at a moment if one is given.

        Raises NotFound, RevisionTooLarge, AlreadyExists, InputError, and what refuses an edit; no
        fork is left then.
        """
        parent = await self.info(name)
        await self._check_free(new_name)
        from app.service.forking import Forker

        forker = Forker(self._ports, self.rules, self._bounds, self.planes, progress)
        return await forker.fork(parent, new_name, moment, wanted, actor)

    async def _check_free(self, name: str) -> None:
        """Raise AlreadyExists for a name that is taken, InputError for an invalid one."""
        if await self.find(history_creation.check_name(name)) is not None:
            message = f'histories "{name}" already exists'
            raise AlreadyExists(message, resource="histories", name=name)

    async def tombstones(self) -> list[Tombstone]:
        """The deleted histories, in the order of deletion."""
        return await self._ports.log.tombstones()

    async def look_again(self) -> None:
        """Stop serving histories that were deleted or renamed, also by another process."""
        # Histories that are opened or become broken from here on may be newer than the list.
        runtimes, broken = tuple(self._runtimes.items()), tuple(self._broken.items())
        names = {info.id: info.name for info in await self.all()}
        for name, runtime in runtimes:
            if names.get(runtime.info.id) != name and self._runtimes.get(name) is runtime:
                self._close(runtime)
        for name, known in broken:
            if names.get(known.info.id) != name and self._broken.get(name) is known:
                del self._broken[name]

    def _close(self, runtime: HistoryRuntime) -> None:
        """Stop serving a history; its followers are notified when it has ended."""
        use = self._uses[runtime]
        self._replacements.leave(runtime.info, runtime.head)
        self._forget(runtime)
        use.scope.cancel()

    async def _follow_names(self) -> None:
        while True:
            await anyio.sleep(self._bounds.poll_seconds)
            try:
                await self.look_again()
            except LogError:
                continue

    async def info(self, name: str) -> HistoryInfo:
        """The stored facts about a history. Raises NotFound."""
        info = await self._ports.log.find_history(name)
        if info is None:
            raise NotFound(f'history "{name}" not found', resource="histories", name=name)
        return info

    async def open(self, name: str) -> HistoryRuntime:
        """The running history of that name; starts it when needed.

        Raises NotFound, LogUnavailable, and HistoryBroken for a history that cannot be folded. A
        broken history is not tried again until its log has changed. Each call counts as a use, see
        `close_idle`. Raises HistoryOpening when that takes longer than `patience_seconds`.
        """
        runtime = await self.open_within(name, self.patience_seconds)
        if runtime is None:
            progress = self._openings.progress(name)
            raise HistoryOpening(name, 0, 0, 1) if progress is None else progress.problem
        return runtime

    async def wait_open(self, name: str) -> HistoryRuntime:
        """The running history of that name, however long it takes. Raises as `open`."""
        runtime = await self.open_within(name, None)
        assert runtime is not None, "without a time it is waited for"
        return runtime

    async def open_within(self, name: str, seconds: float | None) -> HistoryRuntime | None:
        """Like `open`; None when the history is not open within this time, and is opened on."""
        runtime = self._runtimes.get(name)
        if runtime is not None:
            self._uses[runtime].last = anyio.current_time()
            return runtime
        return await self._openings.within(name, seconds, partial(self._opened, name))

    def opening(self) -> list[OpeningProgress]:
        """The histories that are being opened, sorted by name."""
        return self._openings.all()

    def opening_of(self, name: str) -> str:
        """The progress of opening a history as text; empty when it is not being opened."""
        progress = self._openings.progress(name)
        return "" if progress is None else str(progress.problem)

    async def _opened(self, name: str) -> HistoryRuntime:
        async with self._openings.turn(name):
            runtime = self._runtimes.get(name) or await self._start(await self.info(name))
        # It may have been renamed or deleted meanwhile; under a new name it is opened anew.
        if name in self._runtimes and await self.find(name) is None:
            await self.look_again()
            await self.info(name)
        return runtime

    async def close_idle(self, idle_seconds: float, *, kept: Container[str] = ()) -> list[str]:
        """Close histories without use for `idle_seconds`, but those in `kept`; returns the names.

        A history is in use while clients follow it or writes are queued, and when something was
        stored in it. Its next due instant is remembered: `workers.reopening` opens it
        then.
        """
        closed = []
        for name, runtime in list(self._runtimes.items()):
            use, now = self._uses.get(runtime), anyio.current_time()
            if use is None:
                continue  # It ended while another one was being closed.
            if runtime.is_busy or runtime.views.revision != use.revision:
                use.revision, use.last = runtime.views.revision, now
            elif name not in kept and now - use.last >= idle_seconds:
                await self.close(name)
                closed.append(name)
        return closed

    async def close(self, name: str) -> None:
        """Stop following a history; the next `open` continues where it ended."""
        async with self._openings.turn(name):
            runtime = self._runtimes.get(name)
            if runtime is None:
                return
            use = self._uses[runtime]
            await self.alarms.note_closed(runtime.info, runtime.views.revision, runtime.next_due())
            with suppress(LogUnavailable):
                await runtime.save_snapshot()
            self._replacements.leave(runtime.info, runtime.head)
            self._leave(runtime)
            use.scope.cancel()
            await use.ended.wait()

    async def _start(self, info: HistoryInfo) -> HistoryRuntime:
        head = await self.head(info)
        await self._replacements.compare(info, head)
        known = self._broken.get(info.name)
        if known is not None and known.head == head:
            raise HistoryBroken(info.name, known.cause)
        try:
            runtime = self._runtime(info)
            with self._openings.noted(info, head.revision, lambda: runtime.views.revision):
                await self._openings.tasks.start(self._run, runtime)
        except Exception as mistake:
            problem = broken_histories.innermost(mistake)
            if isinstance(problem, LogUnavailable | NotFound):
                # No database answers, or the history was deleted while it was read.
                raise problem from mistake
            await self.head(info)  # of a fork that was deleted, its parents' events are left
            # Any error counts: the content of one log must not keep the others from being served.
            cause = await self._note_broken(info, head, mistake)
            raise HistoryBroken(info.name, cause) from mistake
        self._broken.pop(info.name, None)
        if self._ports.views is not None:
            await broken_histories.forget(self._ports.views, info.id, head.revision)
        return runtime

    async def open_or_create(self, name: str, *, settings: JsonObject) -> HistoryRuntime:
        """The history of that name; made as a new cluster when it is missing."""
        if await self.find(name) is None:
            with suppress(AlreadyExists):  # Another process was faster.
                return await self.create_cluster(name, settings=settings)
        return await self.wait_open(name)

    async def revision(self, info: HistoryInfo, moment: Revision | str) -> Revision:
        """The revision of a moment. Raises InputError, RevisionTooLarge beyond the end."""
        now = self.now()
        return await moments.find_revision(self._ports.log, info, str(moment), now)

    async def at(self, name: str, moment: Revision | str) -> LiveViews:
        """The views at a revision or instant text; read-only, shared, cached for a while."""
        info = await self.info(name)
        return await self.past.whole(info, await self.revision(info, moment))

    async def devices_at(self, name: str, moment: Revision | str) -> LiveViews:
        """Views like those of `at` that show devices and may lack objects of other kinds."""
        info = await self.info(name)
        return await self.past.of_devices(info, await self.revision(info, moment))

    def objects_at(
        self, info: HistoryInfo, revision: Revision, group: str | None = None, resource: str = ""
    ) -> AsyncIterator[Event]:
        """The last event of each object at a revision, of one kind or of all, sorted by key."""
        log, most, kinds = self._ports.log, self._objects_max, ((group, resource or None),)
        return moments.objects_at(log, info, revision, most, kinds=kinds)

    async def _run(
        self, runtime: HistoryRuntime, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow one history until it is closed, or until an error in its log breaks it."""
        use = Use(last=anyio.current_time())
        is_started = False
        try:
            with use.scope:
                async with runtime.running(), anyio.create_task_group() as tasks:
                    use.revision = runtime.views.revision
                    await self.alarms.note_open(runtime.info, runtime.views.revision)
                    if self.on_open is not None:
                        self.on_open(runtime, tasks)
                    is_started = True
                    self._runtimes[runtime.info.name], self._uses[runtime] = runtime, use
                    task_status.started()
                    await anyio.sleep_forever()
        except Exception as mistake:
            if not is_started:
                raise
            use.ended.set()
            self._forget(runtime)
            cause = broken_histories.innermost(mistake)
            head = await self._last_head(runtime)
            if head is None:
                self._replacements.leave(runtime.info, runtime.head)
                return
            # While a database is restored table by table, a history is missing and appears again.
            if isinstance(cause, ChainBroken | NotFound):
                await self._read_anew(runtime, cause)
            else:
                await self._note_broken(runtime.info, head, mistake)
        finally:
            use.ended.set()

    def _forget(self, runtime: HistoryRuntime) -> None:
        """Drop an ended runtime, and the past views that were read through it."""
        self._leave(runtime)
        self.past.forget(runtime.info.id)

    def _leave(self, runtime: HistoryRuntime) -> None:
        """Drop a runtime; another one that is open under its name by now stays."""
        if self._runtimes.get(runtime.info.name) is runtime:
            del self._runtimes[runtime.info.name]
        self._uses.pop(runtime, None)

    async def _read_anew(self, runtime: HistoryRuntime, cause: Exception) -> None:
        """Open a history again after its log was replaced under this process.

        At once, unless its log was replaced a moment ago: two copies of a database that answer in
        turns would cause endless reading. Pauses double, and requests do not shorten them.
        """
        info = runtime.info
        count = self._replacements.note(info, str(cause))
        pause = min(2.0 ** (count - 2), self._bounds.pause_seconds_max) if count > 1 else 0.0
        if pause:
            await self._note_broken(info, await self._last_head(runtime) or runtime.head, cause)
            await anyio.sleep(pause)
            self._broken.pop(info.name, None)
        pause = 1.0
        while True:
            try:
                await self.wait_open(info.name)
                return
            except NotFound:
                self._broken.pop(info.name, None)
                return
            except (LogError, InputError):
                # The store is away, as in a failover, or the history is broken: a look at its head
                # is cheap.
                await anyio.sleep(pause)
                pause = min(2 * pause, self._bounds.pause_seconds_max)

    async def _last_head(self, runtime: HistoryRuntime) -> Head | None:
        """The head of the log, which may be after the folded events; None after a deletion."""
        try:
            return await self.head(runtime.info)
        except LogError:
            return runtime.head
        except NotFound:
            return None

    async def _note_broken(self, info: HistoryInfo, head: Head, mistake: Exception) -> str:
        """Remember, log and store the cause why a history is broken; returns the cause."""
        cause = broken_histories.cause_of(mistake)
        self._broken[info.name] = Broken(info=info, head=head, cause=cause)
        _log.error("the history %s is broken: %s", info.name, cause, exc_info=mistake)
        if self._ports.views is not None:
            await broken_histories.keep(self._ports.views, info.id, head.revision, cause)
        return cause
