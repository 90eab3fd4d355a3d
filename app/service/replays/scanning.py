"""The scan of a history for the incidents of the gallery."""

from dataclasses import replace

from anyio import Lock, lowlevel

from app.analysis import scheduling_rules
from app.analysis.recordings import uncertainty
from app.analysis.scan.attempts import RecordedScheduler
from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import ScanReport
from app.analysis.scope import LabelledObjects
from app.analysis.views import compiler_of
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.domain.values.selectors import SelectorError
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import recorded_doubts
from app.service.replays.verifying import switches_of

PAGE = 2_000
"""Events that are read at once; after them a scan that goes on has a report."""

TURN = 100
"""Events that are scanned before the loop runs other tasks."""


class HistoryScan:
    """A scan that follows one history. At most `attempts_max` attempts are made again.

    Occurrences count if one of their objects has the labels (a selector), or is a claim that was
    made for such a pod. `report` is the last report, complete up to its `examined`. Raises
    InputError for a wrong selector.
    """

    def __init__(
        self, log: EventLog, info: HistoryInfo, *, attempts_max: int, labels: str = ""
    ) -> None:
        self._log = log
        self._info = info
        self._labels = labels
        self._labelled = _labelled(labels) if labels else None
        profile = profiles.from_settings(info.settings)
        quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
        # Known defects of the release are what the scan looks for, so they are not excused.
        self._switches = replace(
            switches_of(profile, quirks), distinct_by_last=False, rules_unseen=False
        )
        self._scheduler = RecordedScheduler(
            rules=scheduling_rules.of(info, profile, compiler_of(profile)),
            profile=profile,
            attempts_max=attempts_max,
        )
        self._scan: Scan | None = None
        self._turn = Lock()
        self.report = ScanReport(sightings=())

    async def read(self, until: Revision, now: Instant | None = None) -> ScanReport:
        """Scan on up to a revision, which is not before the last report, and report.

        With `now`, the states at the end last until then, not only until the last event. Raises
        InputError for a selector that no object matches.
        """
        async with self._turn:
            scan = self._scan = self._scan or await self._begun()
            while (after := self.report.examined) < until:
                events = await self._log.read(self._info.id, after=after, limit=PAGE, until=until)
                if not events:
                    break
                for first in range(0, len(events), TURN):
                    for _ in scan.following(events[first : first + TURN]):
                        await lowlevel.checkpoint()
                    await lowlevel.checkpoint()
                self.report = replace(scan.report(), examined=events[-1].revision)
            if now is not None:
                self.report = replace(scan.report(now), examined=self.report.examined)
        return self.checked()

    async def _begun(self) -> Scan:
        recorded = await recorded_doubts.doubts_of(self._log, self._info)
        lacking = uncertainty.lacking(recorded)
        return Scan(self._switches, self._scheduler, self._labelled, lacking=lacking)

    def checked(self) -> ScanReport:
        """The last report. Raises InputError for a selector that no object has matched."""
        if self._labelled is not None and not self._labelled.has_matched:
            raise InputError(
                f"label selector {self._labels!r} does not occur in the history",
                cure="leave it out to see all",
            )
        return self.report


async def scan(
    log: EventLog, info: HistoryInfo, until: Revision, *, attempts_max: int, labels: str = ""
) -> ScanReport:
    """Scan a history up to a revision, as `HistoryScan` does."""
    return await HistoryScan(log, info, attempts_max=attempts_max, labels=labels).read(until)


def _labelled(labels: str) -> LabelledObjects:
    try:
        return LabelledObjects(labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {labels!r}") from problem
