"""The scheduler with which a decide replay makes single attempts again."""

import pytest

from app.analysis.replay.writers import DECIDED
from app.bootstrap.control_planes import ControlPlanes
from app.domain.log import HistoryId, HistoryInfo
from app.service.replays.deciding.circumstances import RecordedTies
from tests.cluster import Cluster
from tests.unit.service.recorded_runs import runs_of


@pytest.mark.parametrize("off", [(), ("claims",), ("scheduling",)])
def test_there_is_a_scheduler_unless_it_is_switched_off(off):
    runs = runs_of(Cluster().settle())
    settings = {"controllers": {"off": list(off)}}
    info = HistoryInfo(id=HistoryId(1), name="h", settings=settings)
    runs.plane = ControlPlanes(info, names=DECIDED)
    assert (runs.scheduler(RecordedTies({})) is None) is ("scheduling" in off)
