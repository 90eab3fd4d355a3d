"""What would help in an incident is done in a twin of it, as a person would do it: the pod runs."""

import copy
from dataclasses import replace

import pytest

from tests import draws
from tests.api.serving import serving
from tests.web import (
    counted_incidents,
    misplaced_incidents,
    night_incidents,
    node_incidents,
    overlooked_incidents,
    quiet_incidents,
    refused_incidents,
)
from tests.web.invented import Invented, Names, ask, claim, pod
from tests.web.reported_incidents import lab
from tests.web.test_incident_stories import stored

POD = "/api/v1/namespaces/lab/pods/job"
WHY = "/redra/v1/histories/default/why?kind=pod&namespace=lab&name=job&help=true"


def gone(*names):
    """Pods that are deleted at once, with the time that their claims need to become free."""
    return (*({"delete": f"pod/lab/{name}", "now": True} for name in names), {"wait": 30})


def anew(*requests, **devices):
    """The pod and its claim, which never changes, are made anew."""
    made = [claim("want", "lab", *requests, **devices), pod("job", "lab", claim="want")]
    return (*gone("job"), {"delete": "resourceclaim/lab/want"}, {"wait": 5}, {"apply": made})


def steps_of(made, kind, name=""):
    """The objects of a kind that the steps of an incident apply."""
    trees = [tree for step in made.steps for tree in step.get("apply", ())]
    return [
        tree for tree in trees if tree["kind"] == kind and tree["metadata"]["name"].startswith(name)
    ]


def add_to_the_counter(made):
    (counters,) = steps_of(made, "ResourceSlice", "counters")
    counters["spec"]["sharedCounters"][0]["counters"]["tiles"]["value"] = "10"
    return ({"apply": [counters]},)


def end_the_pod_that_ends(made):
    (slow,) = steps_of(made, "Pod", "slow")
    return gone(slow["metadata"]["name"])


def end_one_user(made):
    return gone(next(iter(steps_of(made, "Pod", "of-")))["metadata"]["name"])


def count_the_slices(made):
    slices = steps_of(made, "ResourceSlice", "shelf")
    for one in slices:
        one["spec"]["pool"]["resourceSliceCount"] = 2
    return ({"apply": slices},)


def drop_the_common_root(made):
    return anew(ask("c", "card"), ask("port", "port"))


def tolerate_in_the_claim(made):
    return anew(ask("c", tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]))


def drop_the_numa_nodes(made):
    return anew(ask("c", "left"), ask("c", "right"))


def end_the_first(made):
    return gone("one")


def end_a_user_of_one(made):
    return gone(next(iter(steps_of(made, "Pod", "on-")))["metadata"]["name"])


def ask_for_one(made):
    return anew(ask("c"))


def remove_the_rule(made):
    (frozen,) = steps_of(made, "DeviceTaintRule")
    return ({"delete": f"devicetaintrule/{frozen['metadata']['name']}"},)


def tolerate_both(made):
    freeze = [{"key": "x.test/freeze", "operator": "Exists", "effect": "NoSchedule"}]
    return anew(ask("c", count=2, tolerations=freeze))


def make_the_template(made):
    (missing,) = steps_of(made, "ResourceClaimTemplate")
    (job,) = steps_of(made, "Pod", "job")
    missing["metadata"]["name"] = job["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
    return ({"apply": [missing]},)


def make_the_claim(made):
    (elsewhere,) = steps_of(made, "ResourceClaim", "claim")
    return ({"apply": [claim(elsewhere["metadata"]["name"], "lab", ask("c"))]},)


def remove_the_taint(made):
    return ({"patch": {"spec": {"taints": None}}, "of": "node/a"},)


def free_the_disk(made):
    """The taint goes by itself; removed by hand, it comes back."""
    relieved = {"type": "DiskPressure", "status": "False"}
    return ({"status": {"conditions": [relieved]}, "of": "node/n"},)


def tolerate_as_it_is_spelled(made):
    tree = copy.deepcopy(next(one for one in made.steps[1]["apply"] if one["kind"] == "Pod"))
    for toleration in tree["spec"]["tolerations"]:
        toleration["value"] = toleration["value"].removesuffix("s")
    return ({"delete": "pod/lab/job"}, {"wait": 2}, {"apply": [tree]})


def take_the_name_of_the_resource(made):
    (newer,) = steps_of(made, "DeviceClass", "canary")
    name = newer["metadata"]["name"]
    return ({"patch": {"spec": {"extendedResourceName": None}}, "of": f"deviceclass/{name}"},)


def publish_each_device_once(made):
    (second,) = steps_of(made, "ResourceSlice", "second")
    second["spec"]["devices"] = []
    return ({"apply": [second]},)


def label_the_node_again(made):
    (host,) = steps_of(made, "Node", "host")
    return ({"apply": [host]},)


def select_as_before(made):
    *_, former, _ = steps_of(made, "DeviceClass")
    return ({"apply": [former]},)


def label_the_claims_of_the_template(made):
    (policy,) = steps_of(made, "ValidatingAdmissionPolicy")
    (tree,) = steps_of(made, "ResourceClaimTemplate")
    label = policy["spec"]["validations"][0]["message"].split()[-1]
    tree["spec"]["metadata"] = {"labels": {label: "x"}}
    return ({"delete": "resourceclaimtemplate/lab/t"}, {"apply": [tree]})


def delete_the_binding(made):
    (binding,) = steps_of(made, "ValidatingAdmissionPolicyBinding")
    return ({"delete": f"validatingadmissionpolicybinding/{binding['metadata']['name']}"},)


counted, misplaced, quiet = counted_incidents, misplaced_incidents, quiet_incidents
night, overlooked, refused = night_incidents, overlooked_incidents, refused_incidents

HELPS = [
    (counted.ending_pod_keeps_the_counters, "add 2 to counter tiles", add_to_the_counter),
    (counted.ending_pod_keeps_the_counters, "release claim lab/small", end_the_pod_that_ends),
    (counted.shares_are_used_up_by_rounding, "release claim lab/one", end_one_user),
    (counted.shelf_counts_a_slice_too_many, "state 2 as resourceSliceCount", count_the_slices),
    (counted.two_drivers_have_no_common_root, "drop constraint #0", drop_the_common_root),
    (misplaced.toleration_stands_in_the_pod, "tolerate taint x.test/ecc", tolerate_in_the_claim),
    (misplaced.device_of_a_shelf_is_for_no_node, "release claim lab/first", end_the_first),
    (misplaced.free_ports_are_on_one_numa_node, "release claim lab/first", end_the_first),
    (misplaced.free_ports_are_on_one_numa_node, "drop constraint #0", drop_the_numa_nodes),
    (misplaced.free_devices_are_scattered, "release claim lab/of-host", end_a_user_of_one),
    (misplaced.free_devices_are_scattered, "lower count to 1", ask_for_one),
    (misplaced.free_devices_are_scattered, "remove DeviceTaintRule frozen", remove_the_rule),
    (misplaced.free_devices_are_scattered, "tolerate taint x.test/freeze", tolerate_both),
    (quiet.name_of_a_template_is_mistyped, "create ResourceClaimTemplate", make_the_template),
    (night.claim_is_in_another_namespace, "create ResourceClaim claim", make_the_claim),
    (quiet.pod_tolerates_another_value, "remove taint x.test/cards", remove_the_taint),
    (node_incidents.disk_of_the_only_node_is_full, "get node n out of DiskPressure", free_the_disk),
    (quiet.pod_tolerates_another_value, "tolerate taint x.test/cards", tolerate_as_it_is_spelled),
    (
        overlooked.newer_class_takes_the_name_of_a_resource,
        "take extendedResourceName",
        take_the_name_of_the_resource,
    ),
    (
        refused.policy_denies_the_claim_of_a_template,
        "create ResourceClaimTemplate t",
        label_the_claims_of_the_template,
    ),
    (
        refused.policy_denies_the_claim_of_a_template,
        "create ResourceClaimTemplate t",
        delete_the_binding,
    ),
    (
        overlooked.node_of_a_shared_claim_lost_its_label,
        "label node host",
        label_the_node_again,
    ),
    (
        overlooked.class_is_edited_for_other_hardware,
        "give DeviceClass c the selector back",
        select_as_before,
    ),
    (overlooked.two_drivers_publish_one_pool, "leave out of slice", publish_each_device_once),
]


async def placed_on(made):
    """The node of the pod at the end of an incident; empty while it waits."""
    async with serving(store=await stored(made.incident())) as server:
        return (await server.get(POD))["spec"].get("nodeName", "")


async def proposed(made):
    """The changes that are proposed at the end of an incident, each with the node it is for."""
    async with serving(store=await stored(made.incident())) as server:
        answer = await server.get(WHY)
    return [(one["changes"], one["node"]) for one in answer["helps"]]


@draws.in_turn("rows of ways")
@pytest.mark.parametrize(
    ("make", "change", "do"), HELPS, ids=[f"{make.__name__}-{do.__name__}" for make, _, do in HELPS]
)
async def test_proposal_that_is_carried_out_lets_the_pod_run(make, change, do):
    made = make(Names(5))
    helps = await proposed(made)
    nodes = [node for changes, node in helps if len(changes) == 1 and changes[0].startswith(change)]
    assert nodes, helps
    patient = replace(made, steps=(*made.steps, {"wait": 600}))
    assert not await placed_on(patient), "it does not run by itself"
    helped = replace(make(Names(5)), steps=(*made.steps, *do(make(Names(5))), {"wait": 600}))
    # Where no node was asked about the pod, the proposal is for none.
    assert await placed_on(helped) in (["n"] if nodes == [""] else nodes)


async def test_taint_of_a_condition_comes_back_when_it_is_removed():
    made = node_incidents.disk_of_the_only_node_is_full(Names(5))
    removed = ({"patch": {"spec": {"taints": None}}, "of": "node/n"}, {"wait": 600})
    assert not await placed_on(replace(made, steps=(*made.steps, *removed)))


CONDITIONS = {
    "none": [],
    "ready": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
}


@pytest.mark.parametrize(
    ("key", "effect", "conditions"),
    [
        ("disk-pressure", "NoExecute", "ready"),
        ("disk-pressure", "NoSchedule", "none"),
    ],
)
async def test_taint_for_which_its_node_has_no_condition_is_to_be_removed(key, effect, conditions):
    """Somebody set it by hand; no state of the node ends it, and nobody sets it again."""
    driver = "d.test"
    taint = {"key": f"node.kubernetes.io/{key}", "effect": effect}
    made = Invented(
        told=(),
        steps=(
            {"apply": lab(driver, node_incidents.one(driver))},
            {"wait": 5},
            {"patch": {"spec": {"taints": [taint]}}, "of": "node/n"},
            {"status": {"conditions": CONDITIONS[conditions]}, "of": "node/n"},
            {"wait": 5},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 600},
        ),
    )
    helps = await proposed(made)
    assert ([f"remove taint {taint['key']}:{effect} of node n"], "n") in helps, helps
    removed = ({"patch": {"spec": {"taints": None}}, "of": "node/n"}, {"wait": 600})
    assert await placed_on(replace(made, steps=(*made.steps, *removed))) == "n"


async def test_every_proposal_for_these_incidents_is_carried_out_above():
    for make in dict.fromkeys(make for make, _, _ in HELPS):
        known = [change for other, change, _ in HELPS if other is make]
        for changes, _ in await proposed(make(Names(6))):
            assert len(changes) == 1
            # Equal proposals for other claims count as one.
            assert any(changes[0][:13] == change[:13] for change in known), changes
