"""The loop that keeps the chronicle of a long history, so that the first question is a short one.

It folds a stretch when the history has grown by one, slowly, and lets it go again: meanwhile
nothing is held in memory.
"""

import logging

import anyio

from app.domain.errors import LogError, NotFound
from app.domain.log import Revision
from app.ports import Meter
from app.service import chronicles
from app.service.folding.kept_chronicles import STRETCH
from app.service.runtime import HistoryRuntime

POLL_SECONDS = 5.0

PAUSE_SECONDS = 0.1
"""The pause after each page: some 7 % of a core while a history is caught up that rests.

Of one that is written meanwhile it is a fifth of that, 400 events a second.
"""

_log = logging.getLogger("redra")


async def run(
    runtime: HistoryRuntime,
    meter: Meter | None = None,
    stretch: int = STRETCH,
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Keep what is not kept yet, until cancelled, and say in a gauge how far it is.

    It looks from time to time: a task that each append wakes costs each append something. An
    unexpected error ends it for this history only: questions fold what is not kept.
    """

    async def pause() -> None:
        await anyio.sleep(PAUSE_SECONDS)
        while runtime.errands.count:  # noqa: ASYNC110 each answer ends by itself
            await anyio.sleep(poll_seconds)

    due, kept = Revision(stretch), Revision(0)
    while True:
        await anyio.sleep(poll_seconds)
        # An answer that reads the whole log keeps it, too: two would be in each other's way.
        if runtime.views.revision < due or runtime.errands.count:
            continue
        try:
            keeping = await chronicles.keep_next(runtime, pause, stretch)
        except (LogError, NotFound):
            continue
        except Exception:
            _log.exception("the chronicle of the history %s is no longer kept", runtime.info.name)
            return
        if keeping is None:
            return
        if meter is not None:
            name = runtime.info.name
            meter.gauge("redra_chronicle_revision", keeping.revision, history=name)
        is_further, kept = keeping.revision > kept, keeping.revision
        due = Revision((kept if is_further else runtime.views.revision) + keeping.length)
