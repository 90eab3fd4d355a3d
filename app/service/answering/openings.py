"""The opening of histories: each is opened once, for all requests that wait for it.

Opening a long history folds its whole log. Requests wait for a bounded time and then say how far it
is; the opening goes on without them. Histories do not wait for each other, and the opening and the
closing of one history take turns.

    open(a) ──▶ errand a ──▶ turn of a ──▶ load, follow ──▶ the runtime, for all who wait
    open(b) ──▶ errand b ──▶ turn of b ──▶ …
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from app.domain.errors import HistoryOpening
from app.domain.log import HistoryInfo, Revision
from app.service.answering.errands import Errands

OpenedT = TypeVar("OpenedT")

RETRY_SECONDS_MAX = 30
"""The longest pause that is proposed to a client.

client-go repeats a request at most ten times when an answer has the header Retry-After, so a pause
that grows with the rest of the log keeps clients waiting for up to five minutes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningProgress:
    """The progress of opening a history: folded events, all events, seconds since the beginning.

    `begun_at` events were read from a snapshot.
    """

    info: HistoryInfo
    read: Revision
    last: Revision
    begun_at: Revision
    seconds: float

    @property
    def problem(self) -> HistoryOpening:
        """The answer for a request that waited long enough."""
        return HistoryOpening(self.info.name, self.read, self.last, self.retry_seconds)

    @property
    def retry_seconds(self) -> int:
        """The seconds that the rest takes at the pace so far, within bounds."""
        read = self.read - self.begun_at
        rest = self.seconds * (self.last - self.read) / read if read > 0 else 0.0
        return min(max(1, ceil(rest)), RETRY_SECONDS_MAX)


@dataclass(slots=True, eq=False)
class _Opening:
    info: HistoryInfo
    last: Revision
    read: Callable[[], Revision]
    since: float
    begun_at: Revision = Revision(0)


class HistoryOpenings(Generic[OpenedT]):
    """Opens histories side by side, at most `at_once_max` at a time.

    `tasks` are those of the service; the openings end with it.
    """

    def __init__(self, at_once_max: int) -> None:
        self._errands = Errands(at_once_max)
        self._turns: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._under_way: dict[str, _Opening] = {}

    @property
    def tasks(self) -> TaskGroup:
        """The tasks in which histories run."""
        tasks = self._errands.tasks
        assert tasks is not None, "histories are opened inside running()"
        return tasks

    def begin(self, tasks: TaskGroup) -> None:
        """Open histories in these tasks from now on."""
        self._errands.tasks = tasks

    def end(self) -> None:
        """End all openings; those who wait for one get an error."""
        self._errands.end()

    def turn(self, name: str) -> anyio.Semaphore:
        """The turn of one history, in which nothing else opens or closes it."""
        return self._turns.setdefault(name, anyio.Semaphore(1))

    async def within(
        self,
        name: str,
        seconds: float | None,
        work: Callable[[], Awaitable[OpenedT]],
    ) -> OpenedT | None:
        """The runtime that `work` opens, by now or within this time; None if it takes longer.

        Without a time it is waited for. Raises what `work` raises.
        """
        _ = self.tasks
        with anyio.move_on_after(seconds):
            while (errand := self._errands.begin(name, work)) is None:
                await self._errands.wait_turn(float("inf"))
            await errand.wait_ended()
            return errand.outcome()
        return None

    @contextmanager
    def noted(
        self, info: HistoryInfo, last: Revision, read: Callable[[], Revision]
    ) -> Iterator[None]:
        """Count a history as being opened, up to its event `last`; `read` says how far it is."""
        self._under_way[info.name] = _Opening(info, last, read, anyio.current_time())
        try:
            yield
        finally:
            self._under_way.pop(info.name, None)

    def progress(self, name: str) -> OpeningProgress | None:
        """The progress of opening a history; None when it is not being opened."""
        opening = self._under_way.get(name)
        if opening is None:
            return None
        read = opening.read()
        opening.begun_at = opening.begun_at or read
        return OpeningProgress(
            info=opening.info,
            read=read,
            last=opening.last,
            begun_at=opening.begun_at,
            seconds=anyio.current_time() - opening.since,
        )

    def all(self) -> list[OpeningProgress]:
        """The histories that are being opened, sorted by name."""
        sought = (self.progress(name) for name in sorted(self._under_way))
        return [progress for progress in sought if progress is not None]
