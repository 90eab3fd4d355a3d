"""The projector: keeps the view tables of one history at its head.

It writes changed rows in batches, so that many small writes of the log become one write of a table.
It has no lease: the checkpoint is compared when rows are written, so two projectors do each other
no harm.

`run` follows a history that is open in this process and shares its events with the other followers.
`follow_log` needs only the log; it is for a separate process beside a busy one.
"""

import logging
from collections.abc import Callable, Sequence

import anyio

from app.domain.errors import ChainBroken, Expired, LogUnavailable
from app.domain.log import HistoryId, HistoryInfo, Revision
from app.domain.log.projection import Projection
from app.ports import EventLog, ViewStore, WakeUp
from app.service.folding.projecting import FoldingBounds, Projector, parts_of
from app.service.runtime import HistoryRuntime
from app.workers.deletions import is_deletion

PAUSE_SECONDS = 0.25
"""Rows are written at most this often; readers of the tables may lag by it."""

BUSY_FROM = 100
"""From this many events in a pause on, the history is busy."""

BUSY_PAUSE_SECONDS = 1.0
"""The pause in a busy history. A pod and its claim change ten times from the create until the pod
runs; most of these changes then become one row each.
"""

TROUBLE_SECONDS = 2.0
"""The pause after the store was unavailable."""

POLL_SECONDS = 5.0

_log = logging.getLogger("redra")


async def run(
    runtime: HistoryRuntime,
    *,
    views: ViewStore,
    make: Callable[[], Sequence[Projection]],
    bounds: FoldingBounds,
) -> None:
    """Materialise until cancelled; starts again after a failure of the store."""
    while True:
        try:
            await _follow(runtime, views, make, bounds)
        except LogUnavailable:
            await anyio.sleep(TROUBLE_SECONDS)
        except Expired:
            # The subscription was cut off: the next round reads the missed events from the log.
            continue
        except ChainBroken as problem:
            _say_again(runtime.info.name, problem)
            await anyio.sleep(TROUBLE_SECONDS)
        except Exception as mistake:
            if is_deletion(mistake):
                return
            runtime.troubles["projector"] = _say(runtime.info.name, mistake)
            return


def _say(history: str, mistake: Exception) -> str:
    """Log an unexpected error, which ends the views of one history only; returns its text."""
    _log.error("the view tables of history %s are kept no longer", history, exc_info=mistake)
    return f"{type(mistake).__name__}: {mistake}"


def _say_again(history: str, problem: ChainBroken) -> None:
    """Log that the folded events are no longer in the log: a restore, or another copy took over."""
    _log.error("the view tables of history %s are made again: %s", history, problem)


async def _follow(
    runtime: HistoryRuntime,
    views: ViewStore,
    make: Callable[[], Sequence[Projection]],
    bounds: FoldingBounds,
) -> None:
    projector = Projector(
        log=runtime.log, views=views, history=runtime.info.id, make=make, bounds=bounds
    )
    await projector.open()
    await projector.catch_up()
    reached = min(projector.revisions().values(), default=Revision(0))
    with runtime.subscribe(after=reached) as followed:
        while True:
            events = await followed.catch_up() or await followed.next_batch(POLL_SECONDS)
            if not events:
                await projector.rest()
                continue
            for page in parts_of(events, bounds.page_max):
                await projector.take(page, at_head=True)
            await anyio.sleep(pause_after(len(events), bounds.page_max))


async def follow_log(
    info: HistoryInfo,
    *,
    log: EventLog,
    wake_up: WakeUp,
    views: ViewStore,
    make: Callable[[], Sequence[Projection]],
    bounds: FoldingBounds,
    idle_seconds: float,
) -> None:
    """Materialise a history from its log until cancelled; starts again after a failure.

    The views are dropped when nothing has happened for `idle_seconds`, and folded again from their
    snapshots when something happens. An unexpected error in a fold ends the loop for this history;
    the other histories continue.
    """
    wanted = [(view.name, view.version) for view in make()]
    while True:
        try:
            async with wake_up.listen(info.id) as listener:
                while await _is_current(info.id, log, views, wanted):
                    await listener.wait(POLL_SECONDS)
                projector = Projector(
                    log=log, views=views, history=info.id, make=make, bounds=bounds
                )
                await projector.open()
                last = anyio.current_time()
                while anyio.current_time() - last < idle_seconds:
                    count = await projector.step()
                    if count:
                        last = anyio.current_time()
                    if count == 0 and not await listener.wait(POLL_SECONDS):
                        await projector.rest()
                    elif count:
                        await anyio.sleep(pause_after(count, bounds.page_max))
        except LogUnavailable:
            await anyio.sleep(TROUBLE_SECONDS)
        except ChainBroken as problem:
            _say_again(info.name, problem)
            await anyio.sleep(TROUBLE_SECONDS)
        except Exception as mistake:
            if not is_deletion(mistake):
                _say(info.name, mistake)
            return


def pause_after(events: int, page_max: int) -> float:
    """The seconds until the next rows are written; none where the log has more events already."""
    if events >= page_max:
        return 0.0
    return PAUSE_SECONDS if events < BUSY_FROM else BUSY_PAUSE_SECONDS


async def _is_current(
    history: HistoryId, log: EventLog, views: ViewStore, wanted: Sequence[tuple[str, int]]
) -> bool:
    """Whether every view is written up to the end of the log."""
    head = (await log.head(history)).revision
    written = {
        (checkpoint.projection, checkpoint.version): checkpoint.revision
        for checkpoint in await views.checkpoints(history)
    }
    return all(written.get(place, 0) == head for place in wanted)
