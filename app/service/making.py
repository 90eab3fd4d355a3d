"""Histories that are made of something: whole, or not at all.

An import or a copy takes a while and may fail in the middle. Until it is whole its history has a
name that nobody can give and is in no list; then it gets its own in one step. When making it fails,
it is deleted. What a killed process leaves behind keeps no name and is removed by the next deletion
of unfinished histories.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import msgspec

from app.domain.errors import AlreadyExists, InputError, LogError, Rejected
from app.domain.log import HistoryInfo
from app.domain.log.event import UNFINISHED
from app.ports import EventLog

ATTEMPTS_MAX = 1_000
"""Histories of one name that may be in the making, or were left in it."""

BY = "a failed import, copy or fork"
"""Who deleted, in tombstones of what was never finished."""

CLEAN_SECONDS = 60.0
"""How long the removal of what failed may take."""


@asynccontextmanager
async def unfinished(
    log: EventLog, name: str, make: Callable[[str], Awaitable[HistoryInfo]]
) -> AsyncIterator[HistoryInfo]:
    """A history that is called `name` on leaving, and is gone when that is by an error.

    `make` makes it under the name that it has until then, and raises AlreadyExists when another in
    the making has that. Raises InputError when `name` is taken on leaving.
    """
    info: HistoryInfo | None = None
    for number in range(1, ATTEMPTS_MAX + 1):
        try:
            info = await make(f"{UNFINISHED}{name}{UNFINISHED}{number}")
            break
        except AlreadyExists:
            continue
    if info is None:
        raise InputError(
            f"{ATTEMPTS_MAX} histories of the name {name!r} are unfinished",
            cure="remove them with `redra histories delete --unfinished --yes`",
        )
    try:
        yield msgspec.structs.replace(info, name=name)
        await log.rename_history(info.id, name)
    except BaseException as problem:
        with anyio.move_on_after(CLEAN_SECONDS, shield=True):
            # Its name is free all the same; the first problem is the one to tell.
            with suppress(LogError, Rejected):
                await log.delete_history(info.id, at=info.created, by=BY)
        if isinstance(problem, AlreadyExists):
            raise InputError(
                f"the history {name!r} exists already", cure="choose another name"
            ) from problem
        raise
