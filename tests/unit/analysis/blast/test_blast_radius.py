"""What a change would do, told before it is made."""

import pytest

from app.analysis.blast import compare, world
from app.analysis.blast.bounds import BlastBounds
from app.analysis.blast.compare import ProposedCordon, ProposedDeletion, ProposedDrain, Put
from app.analysis.blast.radius import BlastRadius, Fate
from app.domain.errors import InputError, Invalid, NotFound
from app.domain.log import HistoryInfo
from app.domain.objects.profile import Profile
from tests.cluster import DRIVER, Cluster, claim_spec
from tests.unit.analysis.blast.worlds import ask as check
from tests.unit.analysis.blast.worlds import frozen, put, rule, running, slice_spec


def fates(found: BlastRadius) -> dict[str, str]:
    return {pod.name: pod.fate.value for pod in found.pods}


def test_pods_are_told_by_what_becomes_of_them():
    found = check(running(), rule())
    assert fates(found) == {"plain": "now", "patient": "later", "careless": "tolerated"}
    (patient,) = [pod for pod in found.pods if pod.name == "patient"]
    assert patient.after_seconds == 60
    assert found.totals["pods_evicted"] == 2
    assert [(item.namespace, item.pods) for item in found.namespaces] == [("default", 2)]
    assert found.effects[0].status == (
        "PodsPendingEviction: 2 pods need to be evicted in 1 namespace."
    )


def test_devices_pools_and_classes_lose_what_is_tainted():
    found = check(running(), rule(pool="n1"))
    assert found.totals["devices_tainted"] == 2
    assert found.totals["devices_unallocatable"] == 2
    (pool,) = found.pools
    assert (pool.pool, pool.before.allocatable, pool.after.allocatable) == ("n1", 2, 0)
    (gpu,) = found.classes
    assert (gpu.name, gpu.before.allocatable, gpu.after.allocatable) == ("gpu", 4, 2)
    assert (gpu.before.free, gpu.after.free) == (1, 1)


def test_rule_that_keeps_away_evicts_nobody():
    found = check(running(), rule(effect="NoSchedule"))
    assert found.pods == ()
    assert found.totals["devices_unallocatable"] == 4


def test_preview_of_effect_none_counts_as_upstream_does():
    found = check(running(), rule(effect="None"))
    assert found.preview
    assert found.totals["pods_evicted"] == 2
    assert found.totals["devices_unallocatable"] == 0
    assert "2 pods would be evicted in 1 namespace " in found.effects[0].status
    assert "4 published devices selected. 3 allocated devices selected." in found.effects[0].status


def test_terminating_pods_are_told_apart():
    cluster = running()
    cluster.delete("pods", "plain")
    assert fates(check(cluster, rule()))["plain"] == "terminating"


def test_second_rule_changes_nothing_for_pods_that_go_anyway():
    cluster = running()
    cluster.rule("first")
    cluster.settle()
    assert fates(check(cluster, rule("second")))["patient"] == "already"


def test_deleted_rule_spares_pods():
    cluster = running()
    cluster.rule("first")
    cluster.settle()
    found = check(cluster, ProposedDeletion(kind="devicetaintrule", name="first"))
    assert fates(found)["patient"] == "spared"
    assert found.totals["devices_allocatable"] == 4


def test_rules_are_proposed_in_the_versions_of_the_history():
    cluster = running(profile=Profile(version="1.36", gates={"DRADeviceTaintRules": True}))
    spec = {
        "deviceSelector": {"driver": DRIVER},
        "taint": {"key": "example.com/bad", "effect": "NoExecute"},
    }
    cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", "first", spec=spec)
    cluster.settle()
    found = check(cluster, ProposedDeletion(kind="devicetaintrule", name="first"))
    assert fates(found)["patient"] == "spared"
    with pytest.raises(InputError) as refused:
        check(cluster, put("DeviceTaintRule", "second", spec, place="rule.yaml:1"))
    assert str(refused.value) == (
        "rule.yaml:1: the history imitates 1.36 and does not serve DeviceTaintRule in "
        "resource.k8s.io/v1; write it in resource.k8s.io/v1beta2, resource.k8s.io/v1alpha3"
    )


def test_patch_whose_gate_is_off_has_no_blast_and_says_why():
    cluster = running(profile=Profile(gates={"DRAAdminControlledDeviceAttributes": False}))
    spec = {"devices": {"attributes": {f"{DRIVER}/model": {"string": "other"}}}}
    found = check(cluster, put("ResourceSlicePatch", "first", spec))
    assert [effect.warnings for effect in found.effects] == [
        (
            "spec.devices.attributes: the field is dropped because the feature gate "
            "DRAAdminControlledDeviceAttributes is off",
        )
    ]
    assert not found.totals["pods_evicted"]


def test_existing_rule_is_compared_with_the_state_without_it():
    cluster = running()
    cluster.rule("first")
    cluster.settle()
    found = compare.blast_of_rule(frozen(cluster), "first")
    (effect,) = found.effects
    assert (effect.action, effect.kind, effect.name) == ("present", "DeviceTaintRule", "first")
    assert fates(found)["patient"] == "later"
    assert found.totals["devices_unallocatable"] == 4
    with pytest.raises(NotFound):
        compare.blast_of_rule(frozen(cluster), "second")


def test_objects_that_must_be_there_for_changes_are_deleted_ones_and_nodes():
    changes = [
        Put(tree={"kind": "Node", "metadata": {"name": "made"}}),
        ProposedDeletion(kind="resourceclaim", name="ns/c"),
        ProposedDeletion(kind="nothing", name="n"),
        ProposedDeletion(kind="node", name="n"),
        ProposedCordon(node="closed"),
        ProposedDrain(node="emptied"),
    ]
    assert [str(key) for key in compare.existing_keys(changes)] == [
        "resourceclaims.resource.k8s.io/ns/c",
        "nodes/n",
        "nodes/closed",
        "nodes/emptied",
    ]


def test_rule_applied_again_keeps_its_time():
    cluster = running()
    cluster.rule("first")
    cluster.wait(30)
    found = check(cluster, rule("first"))
    assert found.effects[0].action == "unchanged"
    assert fates(check(cluster, rule("first", key="worse"))) == {}


def test_changed_class_tells_the_claims_that_match_no_longer():
    spec = {"selectors": [{"cel": {"expression": "device.driver == 'other'"}}]}
    found = check(running(), put("DeviceClass", "gpu", spec))
    assert found.totals["claims"] == 3
    assert {trouble.kind for claim in found.claims for trouble in claim.troubles} == {"class"}
    assert found.claims[0].troubles[0].text == "class gpu does not match it any more"
    assert (found.classes[0].before.devices, found.classes[0].after.devices) == (4, 0)
    assert found.pods == ()


def test_deleted_class_is_missed_by_its_claims():
    found = check(running(), ProposedDeletion(kind="DeviceClass", name="gpu"))
    assert found.claims[0].troubles[0].text == "class gpu is gone"


def test_vanished_devices_are_missed_by_their_claims():
    cluster = running()
    held = sorted(cluster.devices_of(cluster.claim_of("plain")))
    found = check(cluster, ProposedDeletion(kind="resourceslice", name="n1-slice"))
    assert held == ["n1/gpu-0"]
    assert found.totals["devices_gone"] == 2
    assert (found.pools[0].state_before, found.pools[0].state_after) == ("usable", "absent")
    assert {claim.troubles[0].kind for claim in found.claims} == {"gone"}


def test_taints_of_a_new_slice_evict():
    taint = {"key": "broken", "effect": "NoExecute"}
    devices = [{"name": "gpu-0", "taints": [taint]}, {"name": "gpu-1"}]
    cluster = running()
    found = check(cluster, put("ResourceSlice", "n1-slice", slice_spec(devices)))
    assert fates(found)["plain"] == "now"
    assert found.devices[0].taints == ("broken:NoExecute",)


def test_pool_that_becomes_incomplete_takes_its_devices_along():
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    found = check(running(), put("ResourceSlice", "n1-slice", slice_spec(devices, slices=2)))
    assert found.totals["pools_broken"] == 1
    assert (found.pools[0].state_after, found.pools[0].problem) == (
        "incomplete", "1 of 2 slices are there",
    )  # fmt: skip
    assert found.totals["devices_unallocatable"] == 2
    assert "pool" in {trouble.kind for claim in found.claims for trouble in claim.troubles}


def test_new_devices_are_gained():
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}, {"name": "gpu-2"}]
    found = check(running(), put("ResourceSlice", "n1-slice", slice_spec(devices)))
    assert found.totals["devices_new"] == 1
    assert (found.classes[0].before.free, found.classes[0].after.free) == (1, 2)


@pytest.mark.parametrize(("amount", "free"), [("6", 1), ("10", 0)])
def test_shared_device_is_free_while_something_of_each_capacity_is_left(amount, free):
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    memory = {"memory": {"value": "10", "requestPolicy": {"default": "1"}}}
    device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": memory}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "n1-slice", spec=slice_spec([device]))
    cluster.claim("part", capacity={"requests": {"memory": amount}})
    cluster.pod("p", claim="part")
    cluster.settle()
    found = check(cluster, rule())
    assert (found.classes[0].before.allocatable, found.classes[0].before.free) == (1, free)


def test_patch_that_changes_an_attribute_takes_devices_out_of_a_class():
    cluster = Cluster()
    cluster.node()
    cluster.device_class(selector=f"device.attributes['{DRIVER}'].healthy")
    cluster.slice(devices=[{"name": "a", "attributes": {"healthy": {"bool": True}}}])
    cluster.claim()
    cluster.pod("pod", claim="claim")
    cluster.settle()
    devices = {"filter": {"driver": DRIVER}, "attributes": {f"{DRIVER}/healthy": {"bool": False}}}
    found = check(cluster, put("ResourceSlicePatch", "sick", {"devices": devices}))
    assert found.devices[0].change == "changed"
    assert found.claims[0].troubles[0].kind == "class"
    assert (found.classes[0].before.devices, found.classes[0].after.devices) == (1, 0)


def test_capacity_and_counters_that_are_lost_are_summed():
    memory = {"capacity": {"memory": {"value": "40Gi"}}}
    uses = {"consumesCounters": [{"counterSet": "chip", "counters": {"slices": {"value": "1"}}}]}
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    counters = slice_spec([], slices=2) | {
        "sharedCounters": [{"name": "chip", "counters": {"slices": {"value": "7"}}}]
    }
    del counters["devices"]
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "counters", spec=counters)
    devices = [{"name": name, **memory, **uses} for name in ("a", "b")]
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "devices", spec=slice_spec(devices, slices=2)
    )
    (pool,) = check(cluster, rule(device="a")).pools
    assert (pool.capacity["memory"].before, pool.capacity["memory"].after) == ("80Gi", "40Gi")
    assert pool.counters == {}
    (pool,) = check(cluster, rule()).pools
    assert (pool.counters["chip/slices"].before, pool.counters["chip/slices"].after) == ("7", "0")


def test_owners_are_told_with_the_pods_they_lose():
    cluster = running()
    spec = {
        "containers": [{"name": "main", "image": "busybox:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    cluster.create(
        "apps/v1",
        "Deployment",
        "web",
        spec={
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    )
    cluster.settle()
    found = check(cluster, rule())
    assert [(item.owner, item.pods) for item in found.owners] == [("Deployment/web", 1)]


def test_several_changes_are_judged_together():
    found = check(running(), rule("one", pool="n1"), rule("two", pool="n2"))
    assert [effect.name for effect in found.effects] == ["one", "two"]
    assert found.totals["devices_tainted"] == 4


def test_lists_are_cut_and_counts_stay_exact():
    found = check(running(), rule(), listed_max=1)
    assert (len(found.pods), len(found.devices)) == (1, 1)
    assert found.left_out["pods"] == 2
    assert found.left_out["devices"] == 3
    assert found.totals["pods_evicted"] == 2


def test_refused_change_names_its_place():
    bad = put("DeviceTaintRule", "bad", {"taint": {"key": "x", "effect": "Nonsense"}}, "f.yaml:3")
    with pytest.raises(InputError, match=r"f\.yaml:3: DeviceTaintRule.*is invalid: spec\.taint"):
        check(running(), bad)
    with pytest.raises(Invalid):
        check(running(), Put(tree=bad.tree))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put("Pod", "p", {}), "Pod changes no devices"),
        (put("", "p", {}), "an object without kind"),
        (
            Put(tree={"apiVersion": "x/v9", "kind": "DeviceClass"}),
            "there is no DeviceClass in x/v9",
        ),
        (ProposedDeletion(kind="secret", name="p"), "Secret changes no devices"),
    ],
)
def test_what_changes_no_devices_is_refused(change, text):
    with pytest.raises(InputError, match=text):
        check(running(), change)


def test_deleting_what_is_not_there_is_refused():
    with pytest.raises(NotFound):
        check(running(), ProposedDeletion(kind="deviceclass", name="nope"))


def test_nothing_and_too_much_are_refused():
    with pytest.raises(InputError, match="no change is proposed"):
        check(running())
    with pytest.raises(InputError, match="2 changes are more than 1"):
        check(running(), rule("a"), rule("b"), changes_max=1)


def test_history_without_eviction_says_so():
    cluster = running(profile=Profile(gates={"DRADeviceTaints": True}))
    info = HistoryInfo(id=1, name="d", settings={"controllers": {"off": ["eviction"]}})
    line = cluster.line
    found = compare.blast(
        world.freeze(line.views, info, line.rules, line.now), [rule()], BlastBounds()
    )
    assert found.totals["pods_evicted"] == 0
    assert "does not run" in found.notes[0]


def test_documents_become_changes():
    made = compare.read_changes(
        [
            ("f:1", rule().tree),
            ("f:9", {"kind": "List", "items": [rule("a").tree]}),
            ("f:20", None),
        ],
        ["devicetaintrule/x"],
    )
    assert [type(change).__name__ for change in made] == ["Put", "Put", "ProposedDeletion"]
    with pytest.raises(InputError, match="does not name an object"):
        compare.read_changes([], ["x"])
    with pytest.raises(InputError, match="f:1: a document must be an object"):
        compare.read_changes([("f:1", [1])], [])


def test_every_fate_is_counted():
    totals = check(running(), rule()).totals
    assert {f"pods_{fate.value}" for fate in Fate} <= set(totals)


def test_shared_claim_takes_all_its_pods():
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice()
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "shared", spec=claim_spec())
    cluster.pod("a", claim="shared")
    cluster.pod("b", claim="shared")
    cluster.settle()
    found = check(cluster, rule())
    assert fates(found) == {"a": "now", "b": "now"}
    assert found.claims[0].pods == ("a", "b")


def test_partition_without_counters_left_is_not_free():
    """One partition takes the whole card: the others can be taken by nobody."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    sets = [{"name": "card", "counters": {"memory": {"value": "2"}}}]
    devices = [
        {
            "name": name,
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": size}}}],
        }
        for name, size in (("whole", "2"), ("half-0", "1"), ("half-1", "1"))
    ]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "devices",
        spec={"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": devices},
    )
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "counters",
        spec={"driver": DRIVER, "nodeName": "n1", "pool": pool, "sharedCounters": sets},
    )
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    found = check(cluster, compare.ProposedCordon(node="n1"))
    assert found.classes == (), "nothing was free before, and nothing is afterwards"
    assert (found.totals["devices_kept_out"], found.totals["devices_kept_out_free"]) == (3, 0)
