"""Scans of running histories for known defects, kept and continued as the histories grow."""

from dataclasses import replace
from functools import partial

import anyio

from app.analysis.scan.sightings import ScanReport
from app.api.server.limits import ApiLimits
from app.domain.errors import TooLarge
from app.domain.log import Revision
from app.domain.values.bounded import Bounded
from app.domain.values.timestamps import Instant
from app.service.replays.scanning import HistoryScan
from app.service.runtime import HistoryRuntime

_PRESENT = Revision(0)
"""The place of a scan that follows the present, in the keys of the kept scans."""

_IDLE_MAX = 2
"""Errands that end without a new revision before the log counts as ended there.

The first one may have been begun for an earlier revision.
"""


class Scans:
    """Scans histories up to a moment; each scan runs once, and others wait for it."""

    def __init__(self, limits: ApiLimits) -> None:
        # Scans take no turns of explanations, which nobody waits for while a page is shown.
        self._turns = anyio.CapacityLimiter(limits.explanations_at_once_max)
        self._limits = limits
        kept_max = limits.chronicles_max
        self._kept: Bounded[tuple[int, str, Revision], HistoryScan] = Bounded(kept_max)

    async def report(
        self,
        runtime: HistoryRuntime,
        until: Revision,
        now: Instant,
        labels: str,
        seconds: float | None,
    ) -> ScanReport:
        """The report up to a revision, or the last one when it is not complete in this time.

        States of the revision last until `now`.

        The scan goes on without the request. Raises TooLarge, InputError.
        """
        if until > self._limits.scan_events_max:
            raise TooLarge(
                f"{until} events are more than {self._limits.scan_events_max}: use redra scan"
            )
        place = _place(runtime, labels, until)
        kept = self._kept.recent(place)
        # A scan cannot go back, so events beyond the present view are left out.
        if kept is None or kept.report.examined > until:
            kept = HistoryScan(
                runtime.log,
                await runtime.as_of(until),
                attempts_max=self._limits.scan_attempts_max,
                labels=labels,
            )
            self._kept[place] = kept
        has_begun = True
        with anyio.move_on_after(seconds) as time:
            has_begun = await self._read_on(runtime, kept, until)
            if has_begun and kept.report.examined < until:
                return await kept.read(until, now)
        if kept.report.examined == until:
            # Only the states at the end are looked at again, for which any time is enough.
            return await kept.read(until, now)
        if time.cancelled_caught:
            return replace(kept.report, is_complete=False)
        return await self._read(kept, until, now)

    def is_kept(self, runtime: HistoryRuntime, until: Revision) -> bool:
        """Whether a report up to a revision needs little work: of the present, or made before."""
        place = _place(runtime, "", until)
        kept = self._kept.get(place)
        return place[2] == _PRESENT or (kept is not None and kept.report.examined == until)

    def is_near(self, runtime: HistoryRuntime, until: Revision) -> bool:
        """Whether so few events are left to scan that a page may have them scanned."""
        kept = self._kept.get(_place(runtime, "", until))
        examined = 0 if kept is None else kept.report.examined
        return until - examined <= self._limits.scan_at_once_events_max

    async def _read_on(self, runtime: HistoryRuntime, kept: HistoryScan, until: Revision) -> bool:
        """Have the scan read up to a revision, and wait; False when no errand can be begun.

        One errand at a time reads for all who wait, whichever revision they wait for.
        """
        idle = 0
        while (before := kept.report.examined) < until and idle < _IDLE_MAX:
            errand = runtime.errands.begin(("scan", kept), partial(self._read, kept, until))
            if errand is None:
                return False
            await errand.wait_ended()
            if kept.report.examined == before:
                errand.outcome()
                idle += 1
        return True

    async def _read(
        self, kept: HistoryScan, until: Revision, now: Instant | None = None
    ) -> ScanReport:
        async with self._turns:
            return await kept.read(until, now)


def _place(runtime: HistoryRuntime, labels: str, until: Revision) -> tuple[int, str, Revision]:
    """The place of a scan among those that are kept."""
    return runtime.life, labels, _PRESENT if until == runtime.views.revision else until
