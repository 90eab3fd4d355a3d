"""A log in memory whose calls fail or are late according to a plan."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import anyio.lowlevel

from app.adapters.memory import MemoryLog, MemoryStore
from app.domain.errors import LogError, LogUnavailable
from app.domain.log import Event, Head, HistoryId, LeaseToken, Revision


class Fault(Enum):
    """The fault of one call."""

    NONE = "it is answered"
    REFUSED = "nothing is done, and an error is answered"
    LOST = "it is done, and an error is answered"
    LATE = "an error is answered; it is done later, unless somebody was faster"


@dataclass(frozen=True, slots=True)
class Turn:
    """The plan of one call: loop turns before it takes effect and before its answer, its fault."""

    before: int
    after: int
    fault: Fault


NO_FAULT = Turn(0, 0, Fault.NONE)


@dataclass(frozen=True, slots=True)
class _Late:
    """An append that is still pending although its caller has an answer."""

    expected: Head
    events: tuple[Event, ...]
    leases: tuple[LeaseToken, ...]


class FaultyLog(MemoryLog):
    """A log that answers at once, except while a plan lasts.

    A late append takes effect when another call takes its first turn, or at the latest in `finish`.
    """

    def __init__(
        self, store: MemoryStore, grown: Callable[[HistoryId, Revision], None] | None = None
    ) -> None:
        super().__init__(store, grown)
        self._late: list[_Late] = []
        self._history = HistoryId(0)
        self.plan((), (), ())

    def plan(self, appends: Sequence[Turn], heads: Sequence[Turn], reads: Sequence[Turn]) -> None:
        """Sets the plan of the next calls."""
        self._appends, self._heads, self._reads = iter(appends), iter(heads), iter(reads)

    async def append(
        self,
        history: HistoryId,
        *,
        expected: Head,
        events: Sequence[Event],
        leases: Sequence[LeaseToken] = (),
    ) -> Head:
        turn = await self._begin(self._appends, history)
        if turn.fault is Fault.REFUSED:
            raise LogUnavailable("no server answers")
        if turn.fault is Fault.LATE:
            self._late.append(_Late(expected, tuple(events), tuple(leases)))
            raise LogUnavailable("the server did not answer in time")
        head = await super().append(history, expected=expected, events=events, leases=leases)
        await _pass_turns(turn.after)
        if turn.fault is Fault.LOST:
            raise LogUnavailable("the connection was lost")
        return head

    async def head(self, history: HistoryId) -> Head:
        turn = await self._begin(self._heads, history)
        if turn.fault is not Fault.NONE:
            raise LogUnavailable("no server answers")
        head = await super().head(history)
        await _pass_turns(turn.after)
        return head

    async def read(
        self, history: HistoryId, *, after: Revision, limit: int, until: Revision | None = None
    ) -> list[Event]:
        turn = await self._begin(self._reads, history)
        if turn.fault is not Fault.NONE:
            raise LogUnavailable("no server answers")
        # Pages are short, so that a fault can come between two of them.
        events = await super().read(history, after=after, limit=min(limit, 3), until=until)
        await _pass_turns(turn.after)
        return events

    async def finish(self) -> None:
        """Makes all late appends take effect."""
        for late in tuple(self._late):
            await self._do_late(late)

    async def _begin(self, turns: Iterator[Turn], history: HistoryId) -> Turn:
        self._history = history
        turn = next(turns, NO_FAULT)
        for number in range(turn.before):
            await anyio.lowlevel.checkpoint()
            if self._late and number == 0:
                await self._do_late(self._late[0])
        return turn

    async def _do_late(self, late: _Late) -> None:
        self._late.remove(late)
        try:
            await super().append(
                self._history, expected=late.expected, events=late.events, leases=late.leases
            )
        except LogError:
            return  # another append was faster; no caller waits for this one


async def _pass_turns(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()
