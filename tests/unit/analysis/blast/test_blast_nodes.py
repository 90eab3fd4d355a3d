"""Nodes that are cordoned, come and go, and pods that are deleted, where the verdict is planted."""

import random

import pytest

from app.analysis.blast import text
from app.analysis.blast.compare import ProposedCordon, ProposedDeletion, ProposedDrain, Put
from app.analysis.blast.radius import Fate, Prospect
from app.domain.errors import NotFound
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.blast.worlds import ask, rule, running


def full(*, waits: bool = True) -> Cluster:
    """A node with one device, which a pod holds, and a pod that waits for another."""
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1")
    cluster.slice("n1", devices=1)
    cluster.pod("holds", template="gpu")
    cluster.settle()
    if waits:
        cluster.pod("waits", template="gpu")
        cluster.settle()
    return cluster


def prospects(answer) -> dict[str, tuple[Prospect, str]]:
    return {pod.name: (pod.prospect, pod.node) for pod in answer.waiting}


def with_untried_pod():
    """A node with a free device, and a pod that has its claim and that nobody has tried yet."""
    cluster = full(waits=False)
    cluster.node("n2")
    cluster.slice("n2", devices=1)
    cluster.settle()
    cluster.pod("comes", template="gpu")
    claims = next(one for one in cluster.line.controllers if one.name == "claims")
    while (plan := claims.step(cluster.line.views, cluster.line.now)) is not None:
        cluster.line._execute(claims, plan)
    return cluster


def test_slice_for_a_node_that_does_not_exist_gives_nobody_a_device():
    cluster = full()
    pool = {"name": "n9", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n9", "pool": pool, "devices": [{"name": "x"}]}
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s9"},
        "spec": spec,
    }
    answer = ask(cluster, Put(tree=tree))
    assert answer.effects[0].warnings == ("node n9 does not exist: no pod can get its devices",)
    assert (answer.totals["devices_new"], answer.totals["devices_allocatable"]) == (1, 0)
    cluster.node("n9")
    cluster.settle()
    answer = ask(cluster, Put(tree=tree))
    assert answer.effects[0].warnings == ()
    assert (answer.totals["devices_new"], answer.totals["devices_allocatable"]) == (1, 1)


def test_cordon_spares_what_runs_and_keeps_out_what_waits():
    cluster = with_untried_pod()
    answer = ask(cluster, ProposedCordon(node="n2"))
    assert (answer.effects[0].action, answer.effects[0].kind) == ("cordoned", "Node")
    assert prospects(answer) == {"comes": (Prospect.KEPT, "n2")}
    assert not answer.pods
    assert not ask(cluster, ProposedCordon(node="n1")).waiting


def test_deleted_pod_ends_and_its_device_goes_to_one_that_waits():
    answer = ask(full(), ProposedDeletion(kind="pod", name="default/holds"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [("holds", Fate.DELETED)]
    assert (answer.totals["pods_deleted"], answer.totals["pods_evicted"]) == (1, 0)
    assert prospects(answer) == {"waits": (Prospect.FREED, "n1")}


def test_room_that_is_kept_for_a_nominated_pod_goes_to_nobody_else():
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    cluster.node("n1", cpu="4")
    cluster.slice("n1", devices=1)
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    cluster.pod("small", requests={"cpu": "4"})
    cluster.settle()
    cluster.pod("big", requests={"cpu": "4"}, priorityClassName="high")
    cluster.pod("waits", template="gpu", requests={"cpu": "1"})
    cluster.settle()
    assert cluster.must("pods", "big")["status"]["nominatedNodeName"] == "n1"
    assert prospects(ask(cluster, ProposedDeletion(kind="pod", name="default/small"))) == {}
    both = (ProposedDeletion(kind="pod", name=f"default/{name}") for name in ("small", "big"))
    assert prospects(ask(cluster, *both)) == {"waits": (Prospect.FREED, "n1")}


def test_deleted_node_takes_its_pods_and_its_slices():
    cluster = full()
    uid = cluster.must("nodes", "n1")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    body = {"metadata": {"ownerReferences": [owner]}}
    cluster.patch("resourceslices", "n1-slice", body)
    cluster.settle()
    answer = ask(cluster, ProposedDeletion(kind="node", name="n1"))
    assert [(pod.name, pod.fate) for pod in answer.pods] == [("holds", Fate.ORPHANED)]
    assert [(device.device, device.change) for device in answer.devices] == [
        (f"{DRIVER}/n1/gpu-0", "gone")
    ]
    assert not answer.waiting


def test_new_node_with_devices_lets_a_pod_in():
    cluster = full()
    other = Cluster()
    other.node("n2")
    other.slice("n2", devices=1)
    other.settle()
    changes = []
    for tree in (other.must("nodes", "n2"), other.must("resourceslices", "n2-slice")):
        plain = json_tree.copy(tree)
        plain["metadata"] = {"name": tree["metadata"]["name"]}
        changes.append(Put(tree=plain))
    answer = ask(cluster, *changes)
    assert prospects(answer) == {"waits": (Prospect.FITS, "n2")}
    tainted = json_tree.copy(changes[0].tree)
    tainted["spec"]["taints"] = [{"key": "example.com/new", "effect": "NoSchedule"}]
    assert not ask(cluster, Put(tree=tainted), changes[1]).waiting


@pytest.mark.parametrize("seed", range(6))
def test_free_devices_that_a_node_keeps_out_are_those_that_no_longer_fit(seed):
    chosen = random.Random(seed)
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    counts = [chosen.randint(1, 4) for _ in range(3)]
    for number, count in enumerate(counts):
        cluster.node(f"n{number}")
        cluster.slice(f"n{number}", devices=count)
    for number in range(chosen.randrange(sum(counts))):
        cluster.pod(f"holds-{number}", template="gpu")
    cluster.settle()
    held = len([name for name in cluster.names("pods") if name.startswith("holds-")])
    free = sum(counts) - held
    answers = [
        ask(cluster, change)
        for change in (ProposedCordon(node="n1"), ProposedDeletion(kind="node", name="n1"))
    ]
    # The twin world is cordoned and filled up: what is placed there is what was within reach.
    cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    for number in range(free + 1):
        cluster.pod(f"comes-{number}", template="gpu")
    cluster.settle()
    placed = [
        name
        for name in cluster.names("pods")
        if name.startswith("comes-") and cluster.must("pods", name)["spec"].get("nodeName")
    ]
    for answer in answers:
        (gpu,) = answer.classes or (None,)
        totals = answer.totals
        assert totals["devices_kept_out"] == counts[1]
        assert totals["devices_kept_out_free"] == free - len(placed)
        if gpu is not None:
            assert (gpu.before.free, gpu.after.free) == (free, len(placed))
        assert (gpu is None) == (free == len(placed))


def test_class_that_is_deleted_takes_its_devices_unless_another_selects_them():
    cluster = full(waits=False)
    totals = ask(cluster, ProposedDeletion(kind="deviceclass", name="gpu")).totals
    assert (totals["devices_unselected"], totals["devices_other_class"]) == (1, 0)
    cluster.device_class("other")
    cluster.settle()
    answer = ask(cluster, ProposedDeletion(kind="deviceclass", name="gpu"))
    assert (answer.totals["devices_unselected"], answer.totals["devices_other_class"]) == (0, 1)
    assert "devices: 1 through other classes only" in text.lines(answer, 5)


def test_claim_of_deleted_pods_is_told_with_its_devices_and_the_time_that_they_have():
    cluster = full(waits=False)
    cluster.slice("n1", devices=2, name="more", pool="more")
    cluster.claim("shared")
    for name in ("one", "two"):
        cluster.pod(name, claim="shared", terminationGracePeriodSeconds=5)
    cluster.settle()
    one, two = (ProposedDeletion(kind="pod", name=f"default/{name}") for name in ("one", "two"))
    told = list(text.lines(ask(cluster, one), 5))
    assert told[0] == (
        "Pod default/one: would be marked for deletion and end within its grace period (5 s)"
    )
    assert "claims: no allocated claim is concerned" in told
    releases = ask(cluster, one, two).claim_releases
    assert [(claim.name, claim.pods) for claim in releases] == [("shared", ("one", "two"))]
    (device,) = cluster.devices_of("shared")
    assert [name.endswith(device) for name in releases[0].devices] == [True]
    # The twin world lives through both.
    for name, left in (("one", [device]), ("two", [])):
        cluster.kill(name)
        cluster.settle()
        assert cluster.devices_of("shared") == left


def test_pod_held_by_a_finalizer_is_not_said_to_end_by_itself():
    cluster = full(waits=False)
    cluster.patch("pods", "holds", {"metadata": {"finalizers": ["example.com/hold"]}})
    (first, *_) = text.lines(ask(cluster, ProposedDeletion(kind="pod", name="default/holds")), 5)
    assert first.endswith("would be marked for deletion and wait for its finalizers")


def test_waiting_pod_that_is_deleted_loses_nothing():
    cluster = with_untried_pod()
    answer = ask(cluster, ProposedDeletion(kind="pod", name="default/comes"))
    assert (answer.waiting, answer.totals["waiting"]) == ((), 0)


def test_removed_pods_are_not_called_evicted():
    told = list(text.lines(ask(full(), ProposedDeletion(kind="pod", name="default/holds")), 5))
    assert "  default/waits would get a place on n1 once the removed pods have ended" in told


def test_slices_that_outlive_their_node_are_named():
    answer = ask(full(), ProposedDeletion(kind="node", name="n1"))
    assert answer.effects[0].warnings == (
        "ResourceSlices of the node stay, and no pod can get their devices: n1-slice",
    )


def test_rule_that_does_nothing_says_why():
    told = ask(full(), rule(pool="n11")).effects[0].warnings
    assert told == ("it selects no device: there is no pool n11; the nearest name is n1",)
    assert ask(full(), rule(pool="n1")).effects[0].warnings == ()
    cluster = running(profile=Profile(gates={"DRADeviceTaintRules": False}))
    (effect,) = ask(cluster, rule()).effects
    assert effect.warnings == ("the gate DRADeviceTaintRules is off: the rule does nothing",)


@pytest.mark.parametrize(
    "change", [rule("other"), ProposedDeletion(kind="devicetaintrule", name="rule")]
)
def test_rule_that_the_scheduler_does_not_see_is_said_to_keep_no_pod_away(change):
    """Its taint is in no count of devices, so the answer says why (C24)."""
    said = {}
    for is_seen in (True, False):
        cluster = running(profile=Profile(rules_unseen=not is_seen))
        cluster.rule()
        answer = ask(cluster, change)
        said[is_seen] = (answer.effects[0].warnings, bool(answer.devices))
    unseen = (
        "the scheduler of this release does not see DeviceTaintRules (C24): the rule can evict "
        "pods, and keeps none away from its devices"
    )
    assert said == {True: ((), True), False: ((unseen,), False)}


@pytest.mark.parametrize("change", [ProposedCordon, ProposedDrain])
def test_node_that_does_not_exist_is_answered_with_the_nearest(change):
    cluster = Cluster()
    cluster.node("worker-1")
    with pytest.raises(NotFound, match=r'"worker-l" not found; do you mean worker-1\?'):
        ask(cluster, change(node="worker-l"))
