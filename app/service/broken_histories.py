"""The causes why histories cannot be served, or were read again because their logs were replaced.

The cause of a broken history is kept beside its views for other programs. The note is a snapshot
with its own name, at the head of the log when the history could not be opened. It is valid while
the log ends there, and is deleted with the history.
"""

import logging
from dataclasses import dataclass

import anyio

from app.domain.errors import ChainBroken, HistoryBroken, LogUnavailable, NotFound
from app.domain.log import Head, HistoryId, HistoryInfo, Revision, chain
from app.domain.values.bounded import Bounded
from app.ports import EventLog, ViewStore

_log = logging.getLogger("redra")

_NAME = "broken"
_VERSION = 1
_LEFT_MAX = 10_000
"""Closed histories whose last heads are kept."""
CAUSE_CHARACTERS_MAX = 500
"""The longest text of a cause; longer ones are cut."""
NOT_THE_END = "the head row is not the end of the log"
_NO_HEAD = "it has no head: the row was deleted from the database"


async def head_of(log: EventLog, info: HistoryInfo) -> Head:
    """The head of a history that the log has listed.

    Raises NotFound if the history was deleted by now, and HistoryBroken if it is there without a
    head: one history may not hide the others.
    """
    try:
        return await log.head(info.id)
    except NotFound as problem:
        stored = await log.find_history(info.name)
        if stored is None or stored.id != info.id:
            raise
        raise HistoryBroken(info.name, _NO_HEAD) from problem


async def check_nothing_after(log: EventLog, history: HistoryId, head: Head) -> None:
    """Raise ChainBroken if an event follows the head of a log that does not grow.

    The head row was moved back then, or the event was put there.
    """
    beyond = await log.read_stored(history, after=head.revision, limit=1)
    if beyond and (await log.head(history)).revision <= head.revision:
        raise ChainBroken(beyond[0].event.revision, NOT_THE_END)


def innermost(mistake: BaseException) -> BaseException:
    """The error inside the groups in which task groups wrap it."""
    while isinstance(mistake, BaseExceptionGroup):
        mistake = mistake.exceptions[0]
    return mistake


def cause_of(mistake: BaseException) -> str:
    """The innermost error as one line."""
    mistake = innermost(mistake)
    text = " ".join(f"{type(mistake).__name__}: {mistake}".split())
    return text[:CAUSE_CHARACTERS_MAX]


async def keep(views: ViewStore, history: HistoryId, revision: Revision, cause: str) -> None:
    """Store the cause. An unavailable store is ignored, and a history that was deleted by now."""
    try:
        await views.save_snapshot(history, _NAME, _VERSION, revision, cause.encode())
    except (LogUnavailable, NotFound):
        return


async def find(views: ViewStore, history: HistoryId, revision: Revision) -> str:
    """The cause that was stored for this head of the log; empty when there is none."""
    kept = await views.load_snapshot(history, _NAME, _VERSION, until=revision)
    return kept[1].decode() if kept is not None and kept[0] == revision else ""


async def forget(views: ViewStore, history: HistoryId, revision: Revision) -> None:
    """Remove the stored cause: the history can be served again."""
    if await find(views, history, revision):
        await views.clear(history, _NAME, _VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A history that cannot be served, the head of its log at that time, and the cause."""

    info: HistoryInfo
    head: Head
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A history whose log was replaced by another one, and that was read again.

    `count` is the number of replacements in a row, `at` the time of the last, in seconds of the
    event loop.
    """

    info: HistoryInfo
    cause: str
    count: int
    at: float


class Replacements:
    """The replaced logs of this process, and the heads of closed histories that show more of them.

    A restore may drop a history for a while: it is closed like a deleted one. Its log is compared
    when it is opened again, as is that of a history that was closed because nobody used it.
    """

    def __init__(self, log: EventLog, calm_seconds: float) -> None:
        """Replacements within `calm_seconds` of each other are counted as a row."""
        self._events = log
        self._calm_seconds = calm_seconds
        self._replaced: dict[str, Replaced] = {}
        self._left: Bounded[HistoryId, Head] = Bounded(_LEFT_MAX)

    def all(self) -> list[Replaced]:
        """The last replacement of each history that had one, sorted by name."""
        return [self._replaced[name] for name in sorted(self._replaced)]

    def cause(self, name: str) -> str:
        """The cause of the last replacement of a history's log; empty when there was none."""
        replaced = self._replaced.get(name)
        return "" if replaced is None else replaced.cause

    def note(self, info: HistoryInfo, cause: str) -> int:
        """Remember and log a replacement; returns the number of those in a row."""
        before, now = self._replaced.get(info.name), anyio.current_time()
        is_again = before is not None and now - before.at < self._calm_seconds
        count = before.count + 1 if before is not None and is_again else 1
        self._replaced[info.name] = Replaced(info=info, cause=cause, count=count, at=now)
        _log.error("the log of history %s is not the one that was read: %s", info.name, cause)
        return count

    def leave(self, info: HistoryInfo, head: Head) -> None:
        """Remember the head up to which a history was read that is closed now."""
        self._left[info.id] = head

    async def compare(self, info: HistoryInfo, stored: Head) -> None:
        """Note a replacement if the log does not continue the one that was read before."""
        left = self._left.pop(info.id, None)
        if left is None:
            return
        try:
            if stored.revision <= left.revision:
                chain.check_same_end(left, stored)
            else:
                events = await self._events.read(
                    info.id, after=left.revision, limit=1, until=stored.revision
                )
                chain.check_continues(events, left, stored)
        except ChainBroken as problem:
            self.note(info, str(problem))
