"""Forks of recordings of fleet worlds, which hold every kind of hardware and act.

Without a change they end with the decisions of the world. Rows come in turn; each was unlike once.
"""

import random
from pathlib import Path

import pytest

from app.bootstrap import process_settings, replays, stores
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import SECOND
from tests import draws
from tests.cluster import Cluster
from tests.conformance.fleet_recordings import record
from tests.conformance.soak_lines import retell
from tests.conformance.test_forks_with_recorded_inputs import Recording

pytestmark = pytest.mark.timeout(0)
"""Forks are bounded in number; how long they take is a matter of the machine."""

ACTS = 60


async def load(folder: Path, profile: Profile) -> Recording:
    """The recording that was written into a folder, as `redra import` makes it."""
    settings = process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )
    store = stores.memory_store()
    name = await replays.load_files(store, settings, (folder / "audit.jsonl",))
    info = await store.log.find_history(name)
    assert info is not None
    return Recording(store, info)


@pytest.mark.parametrize("is_reported", [False, True], ids=["silent", "reported"])
async def test_pod_that_waits_for_its_devices_goes_on_waiting(
    is_reported: bool, tmp_path: Path
) -> None:
    """The wait ends after ten minutes, which are counted from the allocation."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    cluster.slice(devices=[{"name": "d", "bindsToNode": True, **conditions}])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle().wait(30)
    if is_reported:
        claim = cluster.must("resourceclaims", "claim")
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        device = {part: result[part] for part in ("driver", "pool", "device")}
        status = {"devices": [{**device, "data": {"progress": "slow"}}]}
        cluster.patch("resourceclaims", "claim", {"status": status}, subresource="status")
    moment = cluster.settle().line.now
    cluster.wait(620)
    cluster.pod("later")
    cluster.settle()
    retell(cluster.line.events, {}, tmp_path, random.Random(1), answers=2)
    recording = await load(tmp_path, cluster.profile)
    events = await recording.events(recording.info)
    began = max(each.revision for each in events if each.stamp.time <= moment + SECOND)
    assert any("device binding timeout" in each.body.decode() for each in events[began:])
    _, outcome = await recording.fork(began)
    assert outcome.diff.is_same, outcome.diff.to_json()["differences"]
    assert (outcome.unapplied, outcome.unlike) == ((), ())


@draws.in_turn("ways")
@pytest.mark.parametrize(("seed", "at"), [(301, 452), (302, 361)])
async def test_fork_without_a_change_ends_with_the_decisions_of_a_fleet_world(
    seed: int, at: int, tmp_path: Path
) -> None:
    recording = await load(tmp_path, record(tmp_path, seed, ACTS))
    _, outcome = await recording.fork(at)
    assert outcome.diff.is_same, outcome.diff.to_json()["differences"]
    assert (outcome.unapplied, outcome.unlike) == ((), ())
