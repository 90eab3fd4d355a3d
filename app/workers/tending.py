"""The open histories of a process: those in use are opened, the others closed.

A history that another process created or wrote to is found by its head, so processes need not
notify each other.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

import anyio

from app.domain.errors import LogUnavailable
from app.service.histories import Histories
from app.workers import reopening

_log = logging.getLogger("redra")


@dataclass(frozen=True, slots=True, kw_only=True)
class TendingBounds:
    """The time without use after which a history is closed, and the interval of the checks."""

    idle_seconds: float
    poll_seconds: float


async def run(
    histories: Histories,
    bounds: TendingBounds,
    *,
    adopts: bool,
    names: Collection[str] = (),
    kept: Collection[str] = (),
) -> None:
    """Open and close histories until cancelled; histories in `kept` stay open.

    With `adopts`, live histories are opened in which something was stored within `idle_seconds`:
    the histories in `names`, or all when `names` is empty. A history in which something becomes due
    is opened again, also when an earlier process closed it.
    """
    is_recalled = not adopts
    while True:
        try:
            if not is_recalled:
                await reopening.recall_alarms(histories, names)
                is_recalled = True
            if adopts:
                await reopening.open_active(histories, bounds.idle_seconds, names)
            await reopening.open_due(histories)
            for name in await histories.close_idle(bounds.idle_seconds, kept=kept):
                _log.info("history %s is closed, because it is not used", name)
        except LogUnavailable:
            # The next poll tries again.
            pass
        await anyio.sleep(bounds.poll_seconds)
