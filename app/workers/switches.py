"""The switches of a history's controllers, for the loops that start and stop with them."""

import anyio

from app.domain.controllers import switching
from app.domain.errors import Expired
from app.service.runtime import HistoryRuntime


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
