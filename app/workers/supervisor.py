"""The loops that run for a history in this process, owned by one task group.

`only` restricts them to named controllers (`redra work --only eviction`). The settings of a history
can switch controllers off for good, and its objects can switch them while it runs (`switching`).
Each controller has its own lease, so processes share the work of a history by controller. When a
process dies, another takes over after its leases have expired.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import anyio

from app.analysis.views import ReleaseCompilers
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import reconcilers, registry, switching
from app.domain.controllers.plan import Reconciler
from app.domain.errors import Expired, InputError
from app.ports import Leases
from app.service.runtime import HistoryRuntime
from app.workers.deletions import is_deletion
from app.workers.loop import ControllerLoop, LoopBounds
from app.workers.priming import Priming

RESTART_SECONDS = 1.0
"""The first pause before a failed controller starts again; the pause doubles each time."""

RESTART_SECONDS_MAX = 60.0
"""The longest such pause."""

_log = logging.getLogger("redra")


class LoopSwitches:
    """The controller switches of one history, as its namespace `kube-system` has them.

    `watch` keeps them up to date; loops wait for a change with `wait_until`.
    """

    def __init__(self, runtime: HistoryRuntime) -> None:
        self._runtime = runtime
        self._off = switching.switched_off(runtime.views.objects)
        self._changed = anyio.Event()

    def is_on(self, name: str) -> bool:
        """Whether the controller is switched on."""
        return name not in self._off

    async def wait_until(self, name: str, *, is_on: bool) -> None:
        """Return when the controller is switched on or off as given; at once when it already is."""
        while self.is_on(name) is not is_on:
            await self._changed.wait()

    async def watch(self, poll_seconds: float) -> None:
        """Follow the changes until cancelled."""
        group, resource, *_ = switching.KUBE_SYSTEM
        while True:
            after = self._runtime.views.revision
            with self._runtime.subscribe(after=after, group=group, resource=resource) as changes:
                self._look()
                try:
                    while True:
                        if await changes.next_batch(poll_seconds):
                            self._look()
                except Expired:
                    continue  # cut off: subscribe again and read the present switches

    def _look(self) -> None:
        off = switching.switched_off(self._runtime.views.objects)
        if off != self._off:
            self._off = off
            self._changed.set()
            self._changed = anyio.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetting:
    """Values that all workers of a process share. `holder` names the process in leases."""

    leases: Leases
    holder: str
    compilers: ReleaseCompilers
    bounds: LoopBounds = LoopBounds()
    summary: SummaryBounds = SummaryBounds()
    only: frozenset[str] = frozenset()


def check_names(names: Sequence[str], *, option: str = "--only") -> frozenset[str]:
    """The names as a set. Raises InputError for a name that is not a controller."""
    for name in names:
        if name not in registry.NAMES:
            raise InputError(
                f"there is no controller {name!r}",
                place=option,
                cure=f"choose from {', '.join(registry.NAMES)}",
            )
    return frozenset(names)


def loops_of(runtime: HistoryRuntime, setting: WorkerSetting) -> list[ControllerLoop]:
    """The loops of the controllers that run for this history, in the order of the registry."""
    options = replace(registry.options_from(runtime.info.settings), summary=setting.summary)
    profile = runtime.rules.profile
    compiler = setting.compilers.of(profile)
    priming = Priming(runtime, setting.bounds.replayed_max)

    def maker(name: str) -> Callable[[], Reconciler]:
        def make() -> Reconciler:
            return reconcilers.controller(name, profile, runtime.views.features, compiler, options)

        return make

    return [
        ControllerLoop(
            name,
            runtime,
            maker(name),
            leases=setting.leases,
            holder=setting.holder,
            bounds=setting.bounds,
            restarts_count=registry.restarts_count(name, profile, options),
            priming=priming,
        )
        for name in registry.running(profile, options)
        if not setting.only or name in setting.only
    ]


async def run(runtime: HistoryRuntime, setting: WorkerSetting) -> None:
    """Run the loops of a history until cancelled, each while its controller is switched on."""
    switches = LoopSwitches(runtime)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(switches.watch, setting.bounds.poll_seconds)
        for loop in loops_of(runtime, setting):
            name = f"{runtime.info.name}:{loop.name}"
            tasks.start_soon(_run_while_on, loop, runtime, switches, name=name)


async def _run_while_on(
    loop: ControllerLoop, runtime: HistoryRuntime, switches: LoopSwitches
) -> None:
    """Run the loop whenever it is switched on; it stops between two writes, as at a shutdown."""
    while True:
        await switches.wait_until(loop.name, is_on=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_running, loop, runtime)
            await switches.wait_until(loop.name, is_on=False)
            tasks.cancel_scope.cancel()
        runtime.troubles.pop(loop.name, None)


async def _keep_running(loop: ControllerLoop, runtime: HistoryRuntime) -> None:
    """Run the loop again after each unexpected error; other controllers and the API continue.

    The error stands in the runtime's `troubles`, which the health page shows, until the loop has
    run for a while.
    """
    pause = RESTART_SECONDS
    while True:
        began = anyio.current_time()
        try:
            await loop.run()
        except Exception as mistake:
            if is_deletion(mistake):
                return
            _log.exception("controller %s of history %s failed", loop.name, runtime.info.name)
            runtime.troubles[loop.name] = f"{type(mistake).__name__}: {mistake}"
            if anyio.current_time() - began > RESTART_SECONDS_MAX:
                pause = RESTART_SECONDS
            await anyio.sleep(pause)
            pause = min(pause * 2, RESTART_SECONDS_MAX)
