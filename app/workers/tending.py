"""Which histories a process has open: those in use are opened, those that nobody uses are closed.

A history that was made or written to by another process is found by its head, so no process need be
told of it.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

import anyio

from app.domain.errors import LogUnavailable
from app.service.histories import Histories

_log = logging.getLogger("redra")


@dataclass(frozen=True, slots=True, kw_only=True)
class TendingBounds:
    """After how long without a use a history is closed, and how often that is looked at."""

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
    """Open and close histories until cancelled; those in `kept` stay open.

    With `adopts` live histories are opened in which something was stored within `idle_seconds`,
    those of the given `names` or all. A history in which something becomes due is opened again,
    also when an earlier process closed it.
    """
    is_recalled = not adopts
    while True:
        try:
            if not is_recalled:
                await histories.recall_alarms(names)
                is_recalled = True
            if adopts:
                await histories.open_active(bounds.idle_seconds, names)
            await histories.open_due()
            for name in await histories.close_idle(bounds.idle_seconds, kept=kept):
                _log.info("history %s is closed: nobody uses it", name)
        except LogUnavailable:
            # It is tried again at the next poll, as everything here.
            pass
        await anyio.sleep(bounds.poll_seconds)
