"""Scans of running histories for known defects, kept and continued as the histories grow."""

from dataclasses import replace
from functools import partial

import anyio

from app.analysis.scan.sightings import ScanReport
from app.api.server.limits import ApiLimits
from app.domain.errors import TooLarge
from app.domain.log import Revision
from app.domain.values.bounded import Bounded
from app.service.replays.scanning import HistoryScan
from app.service.runtime import HistoryRuntime

_PRESENT = Revision(0)
"""The place of a scan that follows the present, in the keys of the kept scans."""


class Scans:
    """Scans histories up to a moment; each scan runs once, and others wait for it."""

    def __init__(self, turns: anyio.CapacityLimiter, limits: ApiLimits) -> None:
        self._turns = turns
        self._limits = limits
        kept_max = limits.chronicles_max
        self._kept: Bounded[tuple[int, str, Revision], HistoryScan] = Bounded(kept_max)

    async def report(
        self, runtime: HistoryRuntime, until: Revision, labels: str, seconds: float | None
    ) -> ScanReport:
        """The report up to a revision, or the last one when it is not complete in this time.

        The scan goes on without the request. Raises TooLarge, InputError.
        """
        if until > self._limits.scan_events_max:
            raise TooLarge(
                f"{until} events are more than {self._limits.scan_events_max}: use redra scan"
            )
        place = (runtime.life, labels, _PRESENT if until == runtime.views.revision else until)
        kept = self._kept.recent(place)
        # A scan cannot go back. What is beyond the present view was asked for a moment later.
        if kept is None or kept.report.examined > until:
            kept = HistoryScan(
                runtime.log,
                runtime.info,
                attempts_max=self._limits.scan_attempts_max,
                labels=labels,
            )
            self._kept[place] = kept
        if kept.report.examined == until:
            return kept.checked()
        work = partial(self._read, kept, until)
        errand = runtime.errands.begin(("scan", kept, until), work)
        if errand is None:
            return await work()
        if await errand.wait_ended(seconds):
            return errand.outcome()
        return replace(kept.report, is_complete=False)

    async def _read(self, kept: HistoryScan, until: Revision) -> ScanReport:
        async with self._turns:
            return await kept.read(until)
