"""The scan of a history for the incidents of the gallery."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from anyio import Lock, lowlevel

from app.analysis import scheduling_rules
from app.analysis.recordings import uncertainty
from app.analysis.scan.attempts import RecordedScheduler
from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import ScanReport
from app.analysis.scope import LabelledObjects
from app.analysis.verify.invariants import Switches
from app.analysis.views import LiveViews, compiler_of
from app.domain.controllers import registry
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, Revision
from app.domain.objects import profile as profiles
from app.domain.values.selectors import SelectorError
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service import moments, past_views, recorded_doubts
from app.service.replays.verifying import switches_of

PAGE = 2_000
"""Events that are read at once; after them a scan that goes on has a report."""

TURN = 100
"""Events that are scanned before the loop runs other tasks."""


class HistoryScan:
    """A scan that follows one history. At most `attempts_max` attempts are made again.

    The events before a fork are judged by the settings of its source.
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
        self._attempts_max = attempts_max
        self._stages: deque[tuple[Revision, HistoryInfo]] = deque()
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
                while self._stages and after + 1 >= self._stages[0][0]:
                    await self._turn_to_fork(scan, after)
                last = min((until, *(Revision(since - 1) for since, _ in self._stages)))
                events = await self._log.read(self._info.id, after=after, limit=PAGE, until=last)
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
        stages = await moments.settings_over_time(self._log, self._info)
        self._stages = deque(stages[1:])
        return Scan(
            _switches(stages),
            self._scheduler(stages[0][1]),
            self._labelled,
            lacking=uncertainty.lacking(recorded),
        )

    async def _turn_to_fork(self, scan: Scan, revision: Revision) -> None:
        """Go on with the scheduler of a fork, which begins with the objects of a revision."""
        _, info = self._stages.popleft()
        views = LiveViews(profiles.from_settings(info.settings))
        # No more objects exist than there were events.
        await past_views.fold_objects(views, self._log, self._info, revision, objects_max=revision)
        scan.turn(self._scheduler(info), views)

    def _scheduler(self, info: HistoryInfo) -> RecordedScheduler:
        profile = profiles.from_settings(info.settings)
        return RecordedScheduler(
            rules=scheduling_rules.of(info, profile, compiler_of(profile)),
            profile=profile,
            attempts_max=self._attempts_max,
        )

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


def _switches(stages: Sequence[tuple[Revision, HistoryInfo]]) -> Switches:
    (_, first), *later = [(since, _switches_in(info)) for since, info in stages]
    return replace(first, later=tuple(later))


def _switches_in(info: HistoryInfo) -> Switches:
    profile = profiles.from_settings(info.settings)
    quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
    return unexcused(switches_of(profile, quirks))


def unexcused(switches: Switches) -> Switches:
    """The switches without known defects: they are what the scan looks for, so none is excused."""
    return replace(
        switches,
        distinct_by_last=False,
        rules_unseen=False,
        later=tuple((since, unexcused(each)) for since, each in switches.later),
    )


def _labelled(labels: str) -> LabelledObjects:
    try:
        return LabelledObjects(labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {labels!r}") from problem
