"""Why a history cannot be served, kept beside its views for programs that do not open it.

The note is a snapshot of its own name at the revision that could not be passed: it counts as long
as the log ends there, and goes with the history.
"""

from dataclasses import dataclass

from app.domain.errors import LogUnavailable
from app.domain.log import Head, HistoryId, HistoryInfo, Revision
from app.ports import ViewStore

_NAME = "broken"
_VERSION = 1
CAUSE_CHARACTERS_MAX = 500
"""Of a cause so much is shown."""


def innermost(mistake: BaseException) -> BaseException:
    """The mistake that task groups have wrapped."""
    while isinstance(mistake, BaseExceptionGroup):
        mistake = mistake.exceptions[0]
    return mistake


def cause_of(mistake: BaseException) -> str:
    """The innermost mistake as one line."""
    mistake = innermost(mistake)
    text = " ".join(f"{type(mistake).__name__}: {mistake}".split())
    return text[:CAUSE_CHARACTERS_MAX]


async def keep(views: ViewStore, history: HistoryId, revision: Revision, cause: str) -> None:
    """Note the cause; a store that takes nothing does not matter here."""
    try:
        await views.save_snapshot(history, _NAME, _VERSION, revision, cause.encode())
    except LogUnavailable:
        return


async def find(views: ViewStore, history: HistoryId, revision: Revision) -> str:
    """The cause that was noted at this end of the log; empty when there is none."""
    kept = await views.load_snapshot(history, _NAME, _VERSION, until=revision)
    return kept[1].decode() if kept is not None and kept[0] == revision else ""


async def forget(views: ViewStore, history: HistoryId, revision: Revision) -> None:
    """The history can be served again."""
    if await find(views, history, revision):
        await views.clear(history, _NAME, _VERSION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A history that cannot be served, the end of its log when that showed, and the cause."""

    info: HistoryInfo
    head: Head
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A history whose log was found to be another than the one that was folded, and was read anew.

    `count` is how often in a row, `at` when, in seconds of the event loop.
    """

    info: HistoryInfo
    cause: str
    count: int
    at: float
