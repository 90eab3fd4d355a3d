"""Compares blast radii with what happens: asks in a seeded world, then makes the change."""

import os
import random
from collections.abc import Iterable

import pytest

from app.analysis.blast import compare
from app.analysis.blast import world as blasting_world
from app.analysis.blast.compare import ProposedDeletion, Put
from app.analysis.blast.radius import BlastRadius, Fate, PodFate, Prospect
from app.domain.errors import AlreadyExists, TooManyRequests
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.objects.write import eviction
from app.domain.objects.write.commands import UpdateObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.cluster import DRIVER, USER, Cluster
from tests.simulation.world import World, is_running

pytestmark = draws.in_turn("rows of worlds")
"""Each run has a seventh of the questions and worlds: an answer about a used world takes long."""

SEEDS = draws.seeds(2, first=1)
STEPS = int(os.environ.get("REDRA_STEPS", "40"))
HORIZON_SECONDS = 7_200
"""Longer than every toleration of these worlds."""


def world_of(seed: int) -> World:
    """A used world in which new pods have just arrived, so that a change can affect pods.

    In two of three worlds, all rules are deleted, and all nodes and drivers exist.
    """
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    if seed % 3:
        for name in world.cluster.names("devicetaintrules"):
            world.cluster.delete("devicetaintrules", name)
        for _ in range(3):
            world.find_node()
            world.find_driver()
    for _ in range(6):
        world.arrive()
    world.cluster.settle()
    return world


def ask(world: World, change: compare.Change) -> BlastRadius:
    line = world.cluster.line
    info = HistoryInfo(id=1, name="default")
    return compare.blast(blasting_world.freeze(line.views, info, line.rules, line.now), [change])


def bound_pods(world: World) -> dict[str, str]:
    """The names of bound pods, by uid."""
    objects = world.cluster.line.views.objects
    return {
        tree["metadata"]["uid"]: key.name
        for key in objects.keys("", "pods")
        if (tree := objects.get(key)) is not None and "nodeName" in tree["spec"]
    }


def removals(world: World, since: int, bound: dict[str, str]) -> set[str]:
    """The names of these pods that pod garbage collection has removed."""
    return {
        event.object["name"]
        for event in world.cluster.line.events[since:]
        if event.type == "DecisionRecorded"
        and event.object["outcome"] == "Removed"
        and event.object["name"] in bound.values()
    }


def evictions(world: World, since: int, bound: dict[str, str]) -> dict[str, JsonObject]:
    """The decisions of the eviction controller about these pods, by name of the pod."""
    return {
        bound[event.object["inputs"]["uid"]]: event.object
        for event in world.cluster.line.events[since:]
        if event.type == "DecisionRecorded"
        and event.object["controller"] == "eviction"
        and event.object["inputs"]["uid"] in bound
    }


def random_rule(seed: int) -> JsonObject:
    chosen = random.Random(seed * 7919)
    selector: JsonObject = {"driver": DRIVER}
    if chosen.random() < 0.6:
        selector["pool"] = f"n{chosen.randrange(3)}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "proposed"},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": "example.com/proposed", "effect": "NoExecute"},
        },
    }


def told(found: BlastRadius, reason: str, *fates: Fate) -> dict[str, PodFate]:
    return {pod.name: pod for pod in found.pods if pod.fate in fates and reason in pod.reasons}


def test_the_worlds_have_something_to_lose():
    """Across the fixed seeds every fate that a new rule can give is met."""
    missing = {"pods_now", "pods_later", "pods_terminating"}
    for seed in range(1, 9):
        totals = ask(world_of(seed), Put(tree=random_rule(seed))).totals
        missing -= {fate for fate in missing if totals[fate]}
        if not missing:
            break
    assert missing == set()


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_evicts_whom_it_was_said_to_evict(seed):
    world = world_of(seed)
    tree = random_rule(seed)
    found = ask(world, Put(tree=tree))
    bound, since = bound_pods(world), len(world.cluster.line.events)
    world.cluster.apply(tree)
    world.cluster.wait(HORIZON_SECONDS)
    done = {
        name: body
        for name, body in evictions(world, since, bound).items()
        if any(rule == "proposed" for rule, _ in body["inputs"]["rules"])
    }
    evicted = {name for name, body in done.items() if body["outcome"] == "Evicted"}
    expected = told(found, "rule proposed", Fate.NOW, Fate.LATER, Fate.ALREADY)
    # A pod that is to go later may go for another reason first, as with its node.
    waiting = told(found, "rule proposed", Fate.LATER)
    gone = removals(world, since, bound) & set(waiting) - evicted
    assert set(expected) - gone == evicted, f"seed {seed}"
    ended = {name for name, body in done.items() if body["outcome"] == "AlreadyTerminating"}
    assert ended <= set(told(found, "rule proposed", Fate.TERMINATING)), f"seed {seed}"
    for name, pod in expected.items():
        if name in gone:
            continue
        assert pod.due == done[name]["summary"]["due"], f"seed {seed}, pod {name}"


@pytest.mark.parametrize("seed", SEEDS)
def test_preview_tells_whom_the_rule_would_evict(seed):
    world = world_of(seed)
    tree = random_rule(seed)
    evicting = ask(world, Put(tree=tree))
    quiet = json_tree.copy(tree)
    quiet["spec"]["taint"]["effect"] = "None"
    preview = ask(world, Put(tree=quiet))
    assert preview.preview
    assert preview.pods == evicting.pods
    counted = len(told(preview, "rule proposed", Fate.NOW, Fate.LATER, Fate.ALREADY))
    noun = "pod" if counted == 1 else "pods"
    assert f" {counted} {noun} would be evicted in " in preview.effects[0].status
    world.cluster.apply(quiet)
    world.cluster.settle()
    _, reason, message = world.cluster.rule_condition("proposed")
    assert preview.effects[0].status == f"{reason}: {message}"


@pytest.mark.parametrize("seed", SEEDS)
def test_tainted_slice_evicts_whom_it_was_said_to_evict(seed):
    world = world_of(seed)
    objects = world.cluster.line.views.objects
    names = world.cluster.names("resourceslices")
    if not names:
        world.publish("n0")
        world.cluster.settle()
        names = ["n0-slice"]
    key = ObjectKey("resource.k8s.io", "resourceslices", "", names[seed % len(names)])
    tree = json_tree.copy(objects.get(key))
    tree["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    found = ask(world, Put(tree=tree))
    bound, since = bound_pods(world), len(world.cluster.line.events)
    world.cluster.line.submit(UpdateObject(key=key, version="v1", tree=tree), actor=USER)
    world.cluster.wait(HORIZON_SECONDS)
    evicted = {
        name
        for name, body in evictions(world, since, bound).items()
        if body["outcome"] == "Evicted"
        and any(reason.get("device") for reason in body["summary"]["reasons"])
    }
    slice_reason = f"taint 0 of {DRIVER}/{tree['spec']['pool']['name']}/gpu-0"
    expected = told(found, slice_reason, Fate.NOW, Fate.LATER, Fate.ALREADY)
    waiting = told(found, slice_reason, Fate.LATER)
    gone = removals(world, since, bound) & set(waiting) - evicted
    assert set(expected) - gone == evicted, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_that_were_said_to_be_spared_stay(seed):
    world = world_of(seed)
    try:
        world.cluster.apply(random_rule(seed))
    except AlreadyExists:
        pytest.fail("the name is free in every world")
    world.cluster.settle()
    found = ask(world, ProposedDeletion(kind="devicetaintrule", name="proposed"))
    bound, since = bound_pods(world), len(world.cluster.line.events)
    waiting = {pod.name for pod in found.pods if pod.fate is Fate.SPARED}
    world.cluster.delete("devicetaintrules", "proposed")
    world.cluster.wait(HORIZON_SECONDS)
    gone = {
        name
        for name, body in evictions(world, since, bound).items()
        if body["outcome"] == "Evicted"
    }
    assert not waiting & gone, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_devices_are_counted_as_they_are_then(seed):
    world = world_of(seed)
    tree = random_rule(seed)
    found = ask(world, Put(tree=tree))
    world.cluster.apply(tree)
    removal = ask(world, ProposedDeletion(kind="deviceclass", name="gpu"))
    (present,) = removal.classes
    if found.classes:
        assert found.classes[0].after == present.before, f"seed {seed}"
    else:
        assert found.totals["devices_unallocatable"] == 0


def placed_by(world: World, change: str, name: str, *, is_done: bool) -> set[str]:
    """The waiting pods that have a node 400 seconds later, with the change or without it."""
    cluster = world.cluster
    waiting = set(cluster.names("pods")) - set(bound_pods(world).values())
    if is_done and change == "pod":
        cluster.delete("pods", name)
        cluster.settle()
        if cluster.get("pods", name) is not None:
            cluster.kill(name)
    elif is_done and change == "cordon":
        cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
    elif is_done:
        cluster.node("fresh", pods=6)
        world.publish("fresh")
    cluster.wait(400)
    return waiting & set(bound_pods(world).values())


def change_of(world: World, change: str, seed: int) -> tuple[str, list[compare.Change]]:
    """A seeded change of this kind, and the name of its object."""
    chosen = random.Random(seed * 31)
    if change == "pod":
        names = sorted(bound_pods(world).values())
        running = [one for one in names if is_running(world.cluster.must("pods", one))]
        name = chosen.choice(running)
        return name, [ProposedDeletion(kind="pod", name=name)]
    if change == "cordon":
        name = chosen.choice(world.cluster.names("nodes"))
        return name, [compare.ProposedCordon(node=name)]
    other = Cluster()
    other.node("fresh", pods=6)
    other.slice("fresh", devices=[{"name": f"gpu-{number}"} for number in range(world.devices)])
    other.settle()
    trees = [other.must("nodes", "fresh"), other.must("resourceslices", "fresh-slice")]
    changes: list[compare.Change] = []
    for tree, version in zip(trees, ("v1", "resource.k8s.io/v1"), strict=True):
        plain = json_tree.copy(tree)
        plain["metadata"] = {
            "name": tree["metadata"]["name"],
            "labels": tree["metadata"].get("labels", {}),
        }
        changes.append(Put(tree={**plain, "apiVersion": version}))
    return "fresh", changes


def drain_world(seed: int) -> tuple[World, str, int]:
    """A world with ready pods, one of its nodes, and the number of disruptions allowed."""
    world = world_of(seed)
    cluster = world.cluster
    for name in bound_pods(world).values():
        if is_running(cluster.must("pods", name)):
            ready = [{"type": "Ready", "status": "True"}]
            status = {"status": {"phase": "Running", "conditions": ready}}
            cluster.patch("pods", name, status, subresource="status")
    spare = seed % 4
    healthy = len(evictable(world, ""))
    if spare < 3:
        spec = {"selector": {}, "minAvailable": max(0, healthy - spare)}
        cluster.create("policy/v1", "PodDisruptionBudget", "all", spec=spec)
    cluster.settle()
    chosen = random.Random(seed * 13)
    return world, chosen.choice(cluster.names("nodes")), spare if spare < 3 else healthy


def evictable(world: World, node: str) -> set[str]:
    """The running pods of a node that are not terminating; of all nodes if `node` is empty."""
    trees = {name: world.cluster.must("pods", name) for name in bound_pods(world).values()}
    return {
        name
        for name, tree in trees.items()
        if is_running(tree)
        and "deletionTimestamp" not in tree["metadata"]
        and node in ("", tree["spec"]["nodeName"])
    }


def drain(world: World, node: str) -> set[str]:
    """Cordons the node and evicts its pods one by one; returns the pods that are gone."""
    cluster = world.cluster
    cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
    gone = set()
    for name in sorted(evictable(world, node)):
        line = cluster.line
        key = ObjectKey("", "pods", "default", name)
        try:
            permission = eviction.judge(line.views.objects, key, line.now)
        except TooManyRequests:
            continue
        if permission.write is not None:
            line.submit(permission.write, actor=USER)
        cluster.delete("pods", name)
        cluster.settle()
        gone.add(name)
    for name in gone:
        if cluster.get("pods", name) is not None:
            cluster.kill(name)
    return gone


@pytest.mark.parametrize("seed", SEEDS)
def test_drain_evicts_whom_it_was_said_to_evict(seed):
    """A world that is drained, against what was said, the budget's arithmetic, and its twin."""
    world, node, allowed = drain_world(seed)
    there = evictable(world, node)
    answer = ask(world, compare.ProposedDrain(node=node))
    fates = {pod.name: pod for pod in answer.pods if pod.node == node}
    drained = {name for name, pod in fates.items() if pod.fate is Fate.DRAINED}
    drained = {name for name in drained if is_running(world.cluster.must("pods", name))}
    kept = {name for name, pod in fates.items() if pod.fate is Fate.PROTECTED}
    assert drained | kept == there, f"seed {seed}"
    assert len(drained) == min(len(there), allowed), f"seed {seed}"
    assert all("disruption budget all " in fates[name].reasons[0] for name in kept)
    waiting = set(world.cluster.names("pods")) - set(bound_pods(world).values())
    places = [pod.name for pod in answer.waiting if pod.prospect in (Prospect.FITS, Prospect.FREED)]
    lived, _, _ = drain_world(seed)
    assert drain(lived, node) == drained, f"seed {seed}"
    lived.cluster.wait(400)
    twin, _, _ = drain_world(seed)
    twin.cluster.wait(400)
    changed = waiting & set(bound_pods(lived).values())
    unchanged = waiting & set(bound_pods(twin).values())
    assert devices_for(world, changed - unchanged) == devices_for(world, places), f"seed {seed}"
    assert kept <= set(bound_pods(lived).values()), f"seed {seed}"


def test_some_drains_meet_a_budget():
    """Across the fixed seeds drains evict pods, and budgets keep some."""
    missing = {"pods_drained", "pods_protected"}
    for seed in range(1, 9):
        world, node, _ = drain_world(seed)
        totals = ask(world, compare.ProposedDrain(node=node)).totals
        missing -= {fate for fate in missing if totals[fate]}
        if not missing:
            break
    assert missing == set()


def claim_world(seed: int) -> tuple[World, str]:
    """A world with shared claims, some of whose users have no node, and one of its claims."""
    world = world_of(seed)
    for _ in range(4):
        world.arrive_shared()
    world.cluster.settle()
    for name in world.cluster.names("nodes"):
        world.cluster.patch("nodes", name, {"spec": {"unschedulable": True}})
    for _ in range(4):
        world.arrive_shared()
    world.cluster.settle()
    for name in world.cluster.names("nodes"):
        world.cluster.patch("nodes", name, {"spec": {"unschedulable": False}})
    world.cluster.settle()
    names = world.cluster.names("resourceclaims")
    chosen = random.Random(seed * 17)
    shared = [name for name in names if name.startswith("shared-")]
    return world, chosen.choice(shared if chosen.random() < 0.5 and shared else names)


def claims_named(pod: JsonObject) -> set[str]:
    """The names of claims in a pod's spec and status."""
    entries = json_tree.objects(pod, "spec", "resourceClaims")
    made = json_tree.objects(pod, "status", "resourceClaimStatuses")
    return {str(one.get("resourceClaimName", "")) for one in (*entries, *made)}


def is_waiting(pod: JsonObject) -> bool:
    return "nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"]


@pytest.mark.parametrize("seed", SEEDS)
def test_deleted_claim_is_held_and_blocks_whom_it_was_said_to_block(seed):
    """The world lives through the deletion, and then through the end of the claim's pods."""
    world, name = claim_world(seed)
    cluster = world.cluster
    before = cluster.must("resourceclaims", name)
    users = {
        pod for pod in cluster.names("pods") if name in claims_named(cluster.must("pods", pod))
    }
    line = cluster.line
    frozen = blasting_world.freeze(
        line.views, HistoryInfo(id=1, name="default"), line.rules, line.now
    )
    change = ProposedDeletion(kind="resourceclaim", name=f"default/{name}")
    answer = compare.blast(frozen, [change])
    (fate,) = answer.claim_deletions
    cluster.delete("resourceclaims", name)
    cluster.wait(400)
    after = cluster.get("resourceclaims", name)
    assert fate.is_held == (after is not None), f"seed {seed}"
    if after is not None:
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["allocation"] == before["status"]["allocation"]
        reserved = {one["name"] for one in after["status"]["reservedFor"]}
        assert set(fate.reserved_for) == reserved, f"seed {seed}"
    stuck = {
        pod
        for pod in users
        if is_waiting(tree := cluster.must("pods", pod)) and name in claims_named(tree)
    }
    assert set(fate.blocked) == stuck, f"seed {seed}"
    remade = {pod for pod in users if name not in claims_named(cluster.must("pods", pod))}
    assert set(fate.remade) == remade, f"seed {seed}"
    kept = {pod.name for pod in answer.waiting if pod.prospect is Prospect.KEPT}
    assert not kept & set(bound_pods(world).values()), f"seed {seed}"
    for pod in fate.reserved_for:
        cluster.finish(pod)
    cluster.wait(400)
    assert cluster.get("resourceclaims", name) is None, f"seed {seed}"


def test_some_deleted_claims_are_held_and_some_block():
    """Across the fixed seeds each fate of a deleted claim is met."""
    missing = {"held", "gone", "blocked", "remade"}
    for seed in range(1, 9):
        world, name = claim_world(seed)
        change = ProposedDeletion(kind="resourceclaim", name=f"default/{name}")
        for fate in ask(world, change).claim_deletions:
            missing.discard("held" if fate.is_held else "gone")
            missing -= {"blocked"} if fate.blocked else set()
            missing -= {"remade"} if fate.remade else set()
        if not missing:
            break
    assert missing == set()


def devices_for(world: World, names: Iterable[str]) -> int:
    """The number of devices that the claims of these pods request; shared claims count once."""
    asked: dict[str, int] = {}
    for name in names:
        for entry in world.cluster.must("pods", name)["spec"]["resourceClaims"]:
            template = entry.get("resourceClaimTemplateName", "")
            claim = entry.get("resourceClaimName", f"of {name}")
            asked[claim] = 2 if template == "pair" else 1
    return sum(asked.values())


@pytest.mark.parametrize("change", ["pod", "cordon", "node"])
@pytest.mark.parametrize("seed", SEEDS)
def test_waiting_pods_get_the_places_that_a_change_was_said_to_give(seed, change):
    """A world that lives through the change, against its twin that does not."""
    world = world_of(seed)
    name, changes = change_of(world, change, seed)
    line = world.cluster.line
    frozen = blasting_world.freeze(
        line.views, HistoryInfo(id=1, name="default"), line.rules, line.now
    )
    answer = compare.blast(frozen, changes)
    places = [pod.name for pod in answer.waiting if pod.prospect in (Prospect.FITS, Prospect.FREED)]
    changed = placed_by(world_of(seed), change, name, is_done=True)
    twin = placed_by(world_of(seed), change, name, is_done=False)
    # Who comes first among them depends on back-off, of which the question knows nothing: pods that
    # ask for pairs may stand for twice as many that ask for one.
    assert devices_for(world, changed - twin) == devices_for(world, places), f"seed {seed}"
    if change == "pod":
        (fate,) = [pod.fate for pod in answer.pods if pod.name == name]
        assert fate in (Fate.DELETED, Fate.TERMINATING)


def test_some_waiting_pods_get_places():
    """Across the fixed seeds new nodes and deleted pods let some in."""

    def lets_some_in(change: str, seed: int) -> bool:
        world = world_of(seed)
        _, changes = change_of(world, change, seed)
        line = world.cluster.line
        info = HistoryInfo(id=1, name="default")
        frozen = blasting_world.freeze(line.views, info, line.rules, line.now)
        totals = compare.blast(frozen, changes).totals
        return totals["waiting_fits"] + totals["waiting_freed"] > 0

    for change in ("pod", "node"):
        assert any(lets_some_in(change, seed) for seed in range(1, 9)), change
