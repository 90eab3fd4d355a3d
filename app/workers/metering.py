"""The metering loop: follows a history and counts its events for the metrics page."""

import logging

import anyio
import anyio.lowlevel

from app.domain.errors import Expired, LogUnavailable
from app.ports import Meter
from app.service.metering import HistoryMeter
from app.service.runtime import HistoryRuntime

POLL_SECONDS = 5.0

PAUSE_SECONDS = 0.25
"""The pause between two batches of events; the metrics page may lag by it."""

TROUBLE_SECONDS = 2.0

_log = logging.getLogger("redra")


async def run(runtime: HistoryRuntime, meter: Meter) -> None:
    """Count until cancelled. Events that are missed while the log cannot be read stay uncounted.

    An unexpected error ends the counting of this history only.
    """
    counted = HistoryMeter(meter, runtime.info.name, runtime.rules.profile)
    while True:
        objects = runtime.views.objects
        try:
            with runtime.subscribe(after=objects.revision) as followed:
                for _ in counted.prime(objects):
                    await anyio.lowlevel.checkpoint()
                while True:
                    for event in await followed.next_batch(POLL_SECONDS):
                        counted.fold(event, objects)
                    counted.publish(runtime.leading)
                    await anyio.sleep(PAUSE_SECONDS)
        except (Expired, LogUnavailable):
            await anyio.sleep(TROUBLE_SECONDS)
        except Exception:
            _log.exception("the history %s is no longer counted", runtime.info.name)
            return
