"""Soaks under the rate limits of real clients, decided again as if somebody had recorded them."""

import pytest

from app.bootstrap import choices, replays, stores
from app.service.deciding.classes import Reason
from app.service.deciding.differences import Aspect
from tests.conformance.soak_recordings import RELEASE, Load, record

LITERAL = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.RULES, Aspect.FINAL)
"""What is the same however late the writes came."""

LOADS = {
    "limited": Load(seed=1, seconds=150, pods=340),
    "taken and left at once": Load(seed=11, seconds=120, pods=250, waiting=150),
    "slow reports": Load(seed=4, seconds=60, pods=110, noise=60, answers=120),
    "deleted at once": Load(seed=6, seconds=30, pods=60, waiting=200),
    "another limit": Load(seed=5, seconds=60, pods=110, rate=20, burst=20),
}


WATCHED = ("limited", "taken and left at once", "deleted at once")
"""Soaks that are decided from their watch streams as well."""


async def decide(path, **more):
    settings = choices.settings(profile=RELEASE)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None, **more)


@pytest.mark.parametrize("name", LOADS)
async def test_soak_with_late_writes_is_decided_literally(name, tmp_path):
    report = await decide(record(tmp_path, LOADS[name]))
    different = {aspect.value: dict(report.aspects[aspect].different) for aspect in LITERAL}
    assert different == {aspect.value: {} for aspect in LITERAL}
    assert report.aspects[Aspect.NODES].same > 30
    reasons = {why for counts in report.aspects.values() for why in counts.different}
    assert reasons <= {Reason.RACE, Reason.TIMING, Reason.IN_FLIGHT, Reason.FINISHED_POD}
    assert report.explained


@pytest.mark.parametrize("name", WATCHED)
async def test_soak_is_decided_literally_from_its_watch_streams(name, tmp_path):
    report = await decide(record(tmp_path, LOADS[name]) / "watch")
    same = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
    assert [dict(report.aspects[aspect].different) for aspect in same] == [{}] * len(same)
    assert report.aspects[Aspect.NODES].same > 30
    assert report.explained
