"""Fleet worlds of a few hours each; `make simulate` runs many worlds for longer.

Seeds come by day.
"""

import os

import pytest

from app.domain.controllers.plan import Readers
from tests import draws
from tests.cluster import Cluster
from tests.simulation.__main__ import run_world
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld
from tests.simulation.soundness import Soundness, Unsound

SEEDS = draws.seeds(2, first=1)
HOURS = float(os.environ.get("REDRA_HOURS", "8"))


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", SEEDS)
def test_fleet_world_stays_sound(seed):
    world = run_world(seed, HOURS)
    assert world.sound.events > 0


@draws.in_turn("ways")
def test_loss_of_memory_changes_no_fleet():
    whole, broken = FleetWorld(5), FleetWorld(5)
    for number in range(60):
        whole.step(ACTS)
        broken.step(ACTS, crash=0.3)
        assert whole.state() == broken.state(), f"act {number}"
    assert broken.crashes > 0


@draws.in_turn("ways")
def test_controllers_need_no_event_beyond_those_they_read(monkeypatch):
    spared = FleetWorld(6)
    for _ in range(60):
        spared.step(ACTS)
    monkeypatch.setattr(Readers, "of", lambda readers, event: readers.controllers)
    told = FleetWorld(6)
    for _ in range(60):
        told.step(ACTS)
    assert told.cluster.line.head == spared.cluster.line.head


def test_double_allocation_is_noticed_at_its_event():
    cluster = Cluster()
    sound = Soundness()
    cluster.line.followers.append(sound.fold)
    cluster.device_class()
    cluster.node()
    cluster.slice(devices=1)
    cluster.claim("first")
    cluster.claim("second")
    give(cluster, "first")
    with pytest.raises(Unsound, match="n1/gpu-0 is allocated 2 times"):
        give(cluster, "second")


def give(cluster: Cluster, name: str) -> None:
    """Allocates a device directly, as a broken scheduler would."""
    body = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    cluster.patch("resourceclaims", name, body)
    result = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0", "request": "gpu"}
    status = {"allocation": {"devices": {"results": [result]}}}
    cluster.patch("resourceclaims", name, {"status": status}, subresource="status")
