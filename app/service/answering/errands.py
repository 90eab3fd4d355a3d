"""Errands of one history: work for answers that continues when no request waits for it any more.

An answer that takes long is begun once. Requests wait for it for a bounded time, and a later
request gets the result. The errands of a history end with its runtime.
"""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from app.domain.errors import Conflict, LogUnavailable
from app.domain.values.json_tree import JsonObject

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Errand(Generic[T]):
    """Work that was begun. Exactly one of `results` and `problem` is set when it has ended.

    `progress` is the last report of the work about itself.
    """

    begun_at: float = field(default_factory=anyio.current_time)
    ended_at: float = 0.0
    progress: JsonObject = field(default_factory=dict)
    results: list[T] = field(default_factory=list)
    problem: Exception | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_ended(self) -> bool:
        """Whether the work is done, has failed, or ended with its history."""
        return self._ended.is_set()

    async def wait_ended(self, seconds: float | None = None) -> bool:
        """Whether the work ends within this time; without a time, wait until it has ended."""
        with anyio.move_on_after(seconds):
            await self._ended.wait()
        return self.is_ended

    def outcome(self) -> T:
        """The result of the work, or the error that it raised."""
        if self.problem is not None:
            raise self.problem
        return self.results[0]

    async def cancel(self) -> None:
        """Cancel the work unless it has ended, and wait for its end; requests get a conflict."""
        self.scope.cancel()
        await self.wait_ended()

    def end(self) -> None:
        """Note the end of the work; without a result or an error the history was closed."""
        if self.is_ended:
            return
        if not self.results and self.problem is None:
            self.problem = LogUnavailable("the history was closed before the answer was complete")
        self.ended_at = anyio.current_time()
        self._ended.set()


class Errands:
    """Begins errands, at most `at_once_max` at a time, while the history runs (`tasks`)."""

    def __init__(self, at_once_max: int) -> None:
        self.tasks: TaskGroup | None = None
        self._at_once_max = at_once_max
        self._running: dict[Hashable, Errand[Any]] = {}
        self._freed = anyio.Event()

    @property
    def count(self) -> int:
        """The number of errands that have begun and not ended."""
        return len(self._running)

    @property
    def are_all_busy(self) -> bool:
        """Whether another errand can only be begun after one of these has ended."""
        return self.tasks is not None and 0 < self._at_once_max <= self.count

    async def wait_turn(self, seconds: float) -> bool:
        """Whether another errand can be begun within this time."""
        with anyio.move_on_after(seconds):
            while self.are_all_busy:
                await self._freed.wait()
        return not self.are_all_busy

    def begin(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> Errand[T] | None:
        """The errand of this key, begun now unless it is under way.

        None when it cannot be begun, because the history has ended or too many errands run; the
        caller then does the work itself.
        """
        errand = self._running.get(key)
        if errand is None and self.tasks is not None and self.count < self._at_once_max:
            errand = self._running[key] = Errand()
            self.tasks.start_soon(self._run, key, work, errand)
        return errand

    def end(self) -> None:
        """End all errands, because the history ends; requests that wait for one get an error."""
        self.tasks = None
        for errand in self._running.values():
            errand.end()
        self._running.clear()
        self._freed.set()

    async def _run(
        self, key: Hashable, work: Callable[[], Awaitable[T]], errand: Errand[T]
    ) -> None:
        try:
            with errand.scope:
                errand.results.append(await work())
            if not errand.results:
                errand.problem = Conflict("the answer was cancelled")
        except Exception as problem:
            # Requests that wait get the error. If it were raised here, it would end the history.
            errand.problem = problem
        finally:
            self._running.pop(key, None)
            errand.end()
            self._freed.set()
            self._freed = anyio.Event()
