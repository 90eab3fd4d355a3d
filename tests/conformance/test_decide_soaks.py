"""Soaks under the rate limits of real clients, decided again as if somebody had recorded them."""

import pytest

from app.analysis.replay.differences import Aspect
from app.bootstrap import choices, replays, stores
from tests.conformance.soak_recordings import RELEASE, Load, record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

LITERAL = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS, Aspect.RULES, Aspect.FINAL)
"""What is the same however late the writes came."""

LOADS = {
    "limited": Load(seed=1, seconds=45, pods=110),
    "slow reports": Load(seed=4, seconds=60, pods=110, noise=60, answers=120),
    "another limit": Load(seed=5, seconds=60, pods=110, rate=20, burst=20),
    "deleted at once": Load(seed=6, seconds=30, pods=60, waiting=200),
}


async def decide(path):
    """One run: what is literal needs no proof, and what is not is proved on recordings."""
    settings = choices.settings(profile=RELEASE).model_copy(update={"decide_runs_max": 0})
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await replays.decide(store, settings, history, "", lambda *_: None)


@pytest.mark.parametrize("name", LOADS)
async def test_soak_with_late_writes_is_decided_literally(name, tmp_path):
    report = await decide(record(tmp_path, LOADS[name]))
    different = {aspect.value: dict(report.aspects[aspect].different) for aspect in LITERAL}
    assert different == {aspect.value: {} for aspect in LITERAL}
    assert report.aspects[Aspect.NODES].same > 30


async def test_soak_is_decided_literally_from_its_watch_streams(tmp_path):
    report = await decide(record(tmp_path, LOADS["limited"]) / "watch")
    same = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
    assert [dict(report.aspects[aspect].different) for aspect in same] == [{}] * len(same)
    assert report.aspects[Aspect.NODES].same > 30
