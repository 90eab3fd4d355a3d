"""Closed histories that are opened without a request: those that are due, and those in use."""

from collections.abc import Container
from contextlib import suppress

from app.domain.errors import HistoryBroken, NotFound
from app.domain.values.timestamps import SECOND
from app.service.histories import Histories


async def open_due(histories: Histories) -> list[str]:
    """Open the closed histories in which something is due by now; returns their names.

    Raises LogUnavailable; what was not opened then is still due. The alarms of histories that are
    broken or deleted are forgotten.
    """
    now = histories.now()
    if not histories.alarms.is_due(now):
        return []
    infos = await histories.all()
    due = histories.alarms.due(now)
    histories.alarms.forget(due - {info.id for info in infos})
    names = []
    for info in infos:
        if info.id in due:
            names.append(info.name)
            with suppress(HistoryBroken, NotFound):
                await histories.wait_open(info.name)
            histories.alarms.forget([info.id])
    return names


async def recall_alarms(histories: Histories, names: Container[str] = ()) -> None:
    """Set the alarms that an earlier process kept, for the given names, or for all."""
    wanted = [info for info in await histories.all() if not names or info.name in names]
    running = {runtime.info.name for runtime in histories.open_runtimes()}
    await histories.alarms.recall(info for info in wanted if info.name not in running)


async def open_active(
    histories: Histories, within_seconds: float, names: Container[str] = ()
) -> list[str]:
    """Open the live histories in which any process stored something lately.

    Only those in `names`, or all when it is empty. Returns the names of the opened histories.
    """
    opened = []
    oldest = histories.now() - within_seconds * SECOND
    for info in await histories.all():
        running = {runtime.info.name for runtime in histories.open_runtimes()}
        is_wanted = not info.is_decided_elsewhere and (not names or info.name in names)
        if not is_wanted or info.name in running:
            continue
        with suppress(HistoryBroken, NotFound):
            if (await histories.head(info)).time >= oldest:
                await histories.wait_open(info.name)
                opened.append(info.name)
    return opened
