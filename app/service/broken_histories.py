"""The cause why a history cannot be served, kept beside its views for other programs.

The note is a snapshot with its own name, at the head of the log when the history could not be
opened. It is valid while the log ends there, and is deleted with the history.
"""

from dataclasses import dataclass

from app.domain.errors import LogUnavailable, NotFound
from app.domain.log import Head, HistoryId, HistoryInfo, Revision
from app.ports import ViewStore

_NAME = "broken"
_VERSION = 1
CAUSE_CHARACTERS_MAX = 500
"""The longest text of a cause; longer ones are cut."""


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
