"""The scan of a history for the incidents of the gallery."""

from dataclasses import replace

from anyio import lowlevel

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
from app.ports import EventLog
from app.service import recorded_doubts
from app.service.replays.verifying import switches_of

PAGE = 5_000
"""Events that are read at once."""

TURN = 100
"""Events that are scanned before the loop runs other tasks."""


async def scan(
    log: EventLog, info: HistoryInfo, until: Revision, *, attempts_max: int, labels: str = ""
) -> ScanReport:
    """Scan a history up to a revision; at most `attempts_max` attempts are made again.

    Occurrences count if one of their objects has the labels (a selector), or is a claim that was
    made for such a pod. Raises InputError for a wrong selector, or one that no object matches.
    """
    labelled = _labelled(labels) if labels else None
    profile = profiles.from_settings(info.settings)
    quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
    # Known defects of the release are what the scan looks for, so they are not excused.
    switches = replace(switches_of(profile, quirks), distinct_by_last=False, rules_unseen=False)
    scheduler = RecordedScheduler(
        rules=scheduling_rules.of(info, profile, compiler_of(profile)),
        profile=profile,
        attempts_max=attempts_max,
    )
    recorded = await recorded_doubts.doubts_of(log, info)
    scanning = Scan(switches, scheduler, labelled, lacking=uncertainty.lacking(recorded))
    after = Revision(0)
    while after < until:
        events = await log.read(info.id, after=after, limit=PAGE, until=until)
        if not events:
            break
        for first in range(0, len(events), TURN):
            for _ in scanning.following(events[first : first + TURN]):
                await lowlevel.checkpoint()
            await lowlevel.checkpoint()
        after = events[-1].revision
    if labelled is not None and not labelled.has_matched:
        raise InputError(
            f"label selector {labels!r} does not occur in the history",
            cure="leave it out to see all",
        )
    return scanning.report()


def _labelled(labels: str) -> LabelledObjects:
    try:
        return LabelledObjects(labels)
    except SelectorError as problem:
        raise InputError(str(problem), place=f"label selector {labels!r}") from problem
