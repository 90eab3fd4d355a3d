"""Compares the blast radius of a driver's upgrade and of a quota with what happens afterwards."""

import random
from collections.abc import Iterable

import pytest

from app.analysis.blast import compare
from app.analysis.blast import world as blasting_world
from app.analysis.blast.compare import Put
from app.analysis.blast.radius import LOST, BlastRadius, Prospect
from app.domain.errors import Forbidden
from app.domain.log import HistoryInfo
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.simulation.test_blast import (
    HORIZON_SECONDS,
    SEEDS,
    bound_pods,
    devices_for,
    evictions,
    removals,
    world_of,
)
from tests.simulation.world import World

pytestmark = draws.in_turn("rows of worlds")
"""Each run has a seventh of the questions and worlds: an answer about a used world takes long."""

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


def ask(world: World, changes: Iterable[compare.Change]) -> BlastRadius:
    line = world.cluster.line
    info = HistoryInfo(id=1, name="default")
    frozen = blasting_world.freeze(line.views, info, line.rules, line.now)
    return compare.blast(frozen, list(changes))


def upgraded(world: World, seed: int) -> list[JsonObject]:
    """The slices that a new version of the driver publishes on some nodes, by the seed."""
    chosen = random.Random(seed * 53)
    names = world.cluster.names("resourceslices")
    if not names:
        world.publish("n0")
        world.cluster.settle()
        names = world.cluster.names("resourceslices")
    slices = []
    for name in chosen.sample(names, chosen.randint(1, len(names))):
        tree = json_tree.copy(world.cluster.must("resourceslices", name))
        tree |= {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        tree["metadata"] = {"name": name}
        spec = tree["spec"]
        spec["pool"]["generation"] += 1
        devices = spec["devices"]
        match chosen.choice(["fewer", "more", "other names", "evicting", "closed", "halfway"]):
            case "fewer":
                devices.pop(chosen.randrange(len(devices)))
            case "more":
                devices += [{"name": f"new-{number}"} for number in range(3)]
            case "other names":
                for device in devices:
                    device["name"] = f"card-{device['name']}"
            case "evicting":
                devices[0]["taints"] = [{"key": "example.com/old", "effect": "NoExecute"}]
            case "closed":
                devices[0]["taints"] = [{"key": "example.com/old", "effect": "NoSchedule"}]
            case "halfway":
                spec["pool"]["resourceSliceCount"] = 2
        slices.append(tree)
    return slices


def losses(world: World) -> set[tuple[str, str, str]]:
    """The lost devices of claims: claim, device, and `gone`, or `pool` for an incomplete pool.

    They are read from the raw objects.
    """
    published: dict[str, set[str]] = {}
    incomplete = set()
    for name in world.cluster.names("resourceslices"):
        spec = world.cluster.must("resourceslices", name)["spec"]
        pool = spec["pool"]["name"]
        published[pool] = {device["name"] for device in spec["devices"]}
        if spec["pool"]["resourceSliceCount"] != 1:
            incomplete.add(pool)
    lost = set()
    for name in world.cluster.names("resourceclaims"):
        allocation = world.cluster.must("resourceclaims", name).get("status", {}).get("allocation")
        for result in (allocation or {"devices": {"results": []}})["devices"]["results"]:
            pool, device = result["pool"], result["device"]
            if device not in published.get(pool, ()):
                lost.add((name, f"{pool}/{device}", "gone"))
            elif pool in incomplete:
                lost.add((name, f"{pool}/{device}", "pool"))
    return lost


def live(world: World, trees: Iterable[JsonObject], seconds: float) -> set[str]:
    """Writes the objects and lets time pass; returns the pods that got a node."""
    waiting = set(world.cluster.names("pods")) - set(bound_pods(world).values())
    for tree in trees:
        resource = "resourcequotas" if tree["kind"] == "ResourceQuota" else "resourceslices"
        old = world.cluster.get(resource, tree["metadata"]["name"])
        if old is None:
            world.cluster.apply(json_tree.copy(tree))
        else:
            changed = json_tree.copy(old)
            changed["spec"] = json_tree.copy(tree["spec"])
            world.cluster.update(resource, changed)
    world.cluster.wait(seconds)
    return waiting & set(bound_pods(world).values())


@pytest.mark.parametrize("seed", SEEDS)
def test_upgrade_takes_the_devices_that_it_was_said_to_take(seed):
    world = world_of(seed)
    slices = upgraded(world, seed)
    already = losses(world)
    answer = ask(world, (Put(tree=tree) for tree in slices))
    told = {
        (claim.name, trouble.device.partition("/")[2], trouble.kind)
        for claim in answer.claims
        for trouble in claim.troubles
        if trouble.kind in ("gone", "pool")
    }
    live(world, slices, 0)
    assert told == losses(world) - already, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_upgrade_evicts_whom_it_was_said_to_evict_and_nobody_else(seed):
    world = world_of(seed)
    slices = upgraded(world, seed)
    answer = ask(world, (Put(tree=tree) for tree in slices))
    told = {pod.name for pod in answer.pods if pod.fate in LOST}
    bound, since = bound_pods(world), len(world.cluster.line.events)
    live(world, slices, HORIZON_SECONDS)
    done = {
        name
        for name, body in evictions(world, since, bound).items()
        if body["outcome"] == "Evicted"
        and any(reason.get("device") for reason in body["summary"]["reasons"])
    }
    gone = removals(world, since, bound) - done
    assert told - gone <= done, f"seed {seed}"
    assert done <= {pod.name for pod in answer.pods}, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_upgrade_gives_waiting_pods_the_places_that_it_was_said_to_give(seed):
    world = world_of(seed)
    slices = upgraded(world, seed)
    answer = ask(world, (Put(tree=tree) for tree in slices))
    fits = [pod.name for pod in answer.waiting if pod.prospect is Prospect.FITS]
    lived = world_of(seed)
    upgraded(lived, seed)
    twin = world_of(seed)
    upgraded(twin, seed)
    changed, unchanged = live(lived, slices, 30), live(twin, [], 30)
    assert agree(world, changed - unchanged, fits), f"seed {seed}"


def agree(world: World, lived: Iterable[str], told: Iterable[str]) -> bool:
    """True when as many pods got devices as the answer said.

    The order of pods depends on back-off, which the question does not know. Where some pods request
    pairs, the order decides how many devices are left over.
    """
    lived, told = set(lived), set(told)
    if devices_for(world, lived | told) == len(lived | told):
        return len(lived) == len(told)
    return bool(lived) == bool(told)


def quota(devices: int) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "limit", "namespace": "default"},
        "spec": {"hard": {DEVICES: str(devices)}},
    }


def claimed(world: World) -> int:
    """The number of devices that the claims of the namespace request."""
    trees = [
        world.cluster.must("resourceclaims", name) for name in world.cluster.names("resourceclaims")
    ]
    requests = [one for tree in trees for one in tree["spec"]["devices"]["requests"]]
    return sum(one["exactly"].get("count", 1) for one in requests)


@pytest.mark.parametrize("seed", SEEDS)
def test_quota_refuses_the_claims_that_it_was_said_to_refuse(seed):
    world = world_of(seed)
    limit = max(0, claimed(world) + random.Random(seed * 43).randint(-2, 3))
    answer = ask(world, [Put(tree=quota(limit))])
    assert answer.quotas[0].used == str(claimed(world))
    told = {
        one.source.partition("/")[2]: one.text
        for one in answer.writes
        if one.source.startswith("ResourceClaimTemplate/")
    }
    pods = bound_pods(world)
    live(world, [quota(limit)], 0)
    done = {}
    for name in world.cluster.names("resourceclaimtemplates"):
        spec = world.cluster.must("resourceclaimtemplates", name)["spec"]["spec"]
        try:
            world.cluster.create("resource.k8s.io/v1", "ResourceClaim", f"try-{name}", spec=spec)
        except Forbidden as refusal:
            done[name] = refusal.message.partition(" is forbidden: ")[2]
        else:
            world.cluster.delete("resourceclaims", f"try-{name}")
    assert told == done, f"seed {seed}"
    assert bound_pods(world).keys() == pods.keys(), "a quota takes nothing away"


def limited_world(seed: int) -> World:
    """A world with an exhausted quota, and pods whose claims the quota has refused."""
    world = world_of(seed)
    world.cluster.apply(quota(claimed(world)))
    for _ in range(5):
        world.arrive()
    world.cluster.wait(30)
    return world


def lacking(world: World) -> set[str]:
    """The pods whose claims do not exist."""
    return {
        name
        for name in world.cluster.names("pods")
        if "resourceClaimStatuses" not in world.cluster.must("pods", name).get("status", {})
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_raised_quota_lets_the_claims_be_made_that_it_was_said_to_let(seed):
    world = limited_world(seed)
    limit = claimed(world) + seed % 4
    answer = ask(world, [Put(tree=quota(limit))])
    told = {
        one.source.partition("/")[2]
        for one in answer.writes
        if one.source.startswith("Pod/") and not one.is_refused
    }
    before, twin = lacking(world), limited_world(seed)
    assert before, "five more pods than the quota has room for"
    live(world, [quota(limit)], 400)
    live(twin, [], 400)
    made = (before - lacking(world)) - (before - lacking(twin))
    assert agree(world, made, told), f"seed {seed}"


def test_fixed_seeds_meet_losses_evictions_and_refusals():
    missing = {"gone", "pool", "tainted", "evicted", "fits", "refused", "not refused"}
    for seed in range(1, 9):
        world = world_of(seed)
        upgrade = ask(world, [Put(tree=tree) for tree in upgraded(world, seed)])
        missing -= {trouble.kind for claim in upgrade.claims for trouble in claim.troubles}
        missing -= {"evicted"} if upgrade.totals["pods_evicted"] else set()
        missing -= {"fits"} if upgrade.totals["waiting_fits"] else set()
        world = world_of(seed)
        limit = max(0, claimed(world) + random.Random(seed * 43).randint(-2, 3))
        limited = ask(world, [Put(tree=quota(limit))])
        missing -= {"refused"} if limited.totals["writes_refused"] else set()
        missing -= set() if limited.writes else {"not refused"}
        if not missing:
            break
    assert missing == set()
