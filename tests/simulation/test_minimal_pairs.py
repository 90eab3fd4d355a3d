"""Drawn pairs of a history and a predicate: the result shows it, and nothing can be left out.

`python -m tests.fuzz minimal_recordings` draws others. These were drawn once, over all recordings
and incidents and each kind of predicate. Incidents come by day; what they say of predicates, the
recordings repeat, whose searches take up to minutes.
"""

from pathlib import Path

import pytest

from tests import draws
from tests.fuzz import minimal_recordings, minimals
from tests.fuzz.minimals import NAMED, Case

INCIDENTS = (
    ("alternatives-leave-traces", "unschedulable web because taint", "web because taint"),
    ("counters-by-pool-name", "violation", ""),
    ("driver-is-lost", "violation allocated-device-published", "allocated-device-published"),
    ("no-preemption-for-devices", "unschedulable default/urgent", "urgent"),
    ("pool-disappears-while-it-changes", "differs profile=1.36,1.37", "1.36,1.37"),
    ("admin-access-takes-the-device", f"command {NAMED.format('gpu-0')}", NAMED.format("gpu-0")),
)
RECORDINGS = (
    ("e-taints", "unschedulable blocked", "blocked"),
    ("b-mig-partitions", "unschedulable ov-15 because counters", "ov-15 because counters"),
    ("b-mig-partitions", "unschedulable ov-06", "ov-06"),
    ("maintenance", "evicted late-plain", "late-plain"),
    ("maintenance", "evicted ns-0", "ns-0"),
    ("e-taints-rules-ignored", "violation placement-respects-taints", "placement-respects-taints"),
    ("e-taints-rules-ignored", "unschedulable", ""),
    ("e-taints-rules-ignored", "differs profile=1.34,1.36 moved", "1.34,1.36"),
    ("e-taints-rules-ignored", "differs profile=1.36,1.36.2", "1.36,1.36.2"),
    ("e-taints-rules-ignored", "differs quirk=c24", "quirk=c24"),
    ("e-taints", "differs gate=DRADeviceTaints", "gate=DRADeviceTaints"),
    ("b-mig-partitions", "differs gate=SchedulerPopFromBackoffQ", "gate=SchedulerPopFromBackoffQ"),
    ("maintenance", "difference 'quirk c24=off'", "quirk c24=off"),
    ("e-taints", f"command {NAMED.format('worker-2')}", NAMED.format("worker-2")),
)


@pytest.mark.parametrize(
    ("history", "keep", "about"),
    [
        *(draws.by_day(*row) for row in INCIDENTS),
        *(draws.repeated(*row) for row in RECORDINGS),
    ],
)
def test_pair_comes_down_to_what_it_needs(
    history: str, keep: str, about: str, tmp_path: Path
) -> None:
    bundle = minimal_recordings.path_of(history, tmp_path)
    case = Case(keep, keep.split()[0], about)
    assert minimals.check(case, bundle, tmp_path / "small.zip") != "not shown"
