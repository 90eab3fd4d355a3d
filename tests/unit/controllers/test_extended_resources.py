"""Extended resources backed by devices (controllers.md 3.10)."""

import pytest

from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.values import json_tree
from tests.cluster import Cluster, check_decisions

GPU = "example.com/gpu"


def container(name: str, count: int = 0, **more: object) -> dict[str, object]:
    requests = {GPU: str(count)} if count else {}
    return {"name": name, "image": "i:1", "resources": {"requests": requests}, **more}


def pod(*containers, init=()) -> dict[str, object]:
    return {
        "metadata": {"name": "pod", "namespace": "default", "uid": "u"},
        "spec": {"containers": list(containers), "initContainers": list(init)},
    }


def shape(tree) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Count by request, and (container, request) of each mapping."""
    made = extended_resources.claim_for(tree, {GPU: "gpu"})
    counts = {
        request["name"]: request["exactly"]["count"]
        for request in made.tree["spec"]["devices"]["requests"]
    }
    return counts, [(found["containerName"], found["requestName"]) for found in made.mappings]


@pytest.mark.parametrize(
    ("name", "tree", "counts", "mappings"),
    [
        (
            "one",
            pod(container("a", 2)),
            {"container-0-request-0": 2},
            [("a", "container-0-request-0")],
        ),
        (
            "two",
            pod(container("a", 2), container("b", 1)),
            {"container-0-request-0": 2, "container-1-request-0": 1},
            [("a", "container-0-request-0"), ("b", "container-1-request-0")],
        ),
        (
            "init reuses what comes later",
            pod(container("a", 2), init=[container("i", 1)]),
            {"container-1-request-0": 2},
            [("a", "container-1-request-0"), ("i", "container-1-request-0")],
        ),
        (
            "init needs more",
            pod(container("a", 2), init=[container("i", 5)]),
            {"container-0-request-0": 3, "container-1-request-0": 2},
            [
                ("a", "container-1-request-0"),
                ("i", "container-1-request-0"),
                ("i", "container-0-request-0"),
            ],
        ),
        (
            "the largest init serves the others",
            pod(container("a"), init=[container("i", 2), container("j", 4)]),
            {"container-1-request-0": 4},
            [("i", "container-1-request-0"), ("j", "container-1-request-0")],
        ),
        (
            "sidecars live as long as regular containers",
            pod(container("a", 1), init=[container("s", 1, restartPolicy="Always")]),
            {"container-0-request-0": 1, "container-1-request-0": 1},
            [("s", "container-0-request-0"), ("a", "container-1-request-0")],
        ),
    ],
)
def test_requests_of_containers(name, tree, counts, mappings):
    assert shape(tree) == (counts, mappings)


def cluster(*, room: str = "", class_name: str = "gpu") -> Cluster:
    made = Cluster()
    made.create(
        "resource.k8s.io/v1",
        "DeviceClass",
        class_name,
        spec={"extendedResourceName": GPU},
    )
    made.node()
    if room:
        made.patch("nodes", "n1", {"status": {"allocatable": {GPU: room}}}, subresource="status")
    made.slice(devices=2)
    return made.settle()


def ask(made: Cluster, name: str, count: int, resource: str = GPU) -> None:
    limits = {resource: str(count)}
    made.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "i:1",
                        "resources": {"requests": limits, "limits": limits},
                    }
                ]
            },
        }
    )
    made.settle()


@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_claim_is_made_allocated_and_named_in_the_status(resource):
    made = cluster()
    ask(made, "pod", 2, resource)
    tree = made.must("pods", "pod")
    assert tree["spec"]["nodeName"] == "n1"
    status = tree["status"]["extendedResourceClaimStatus"]
    name = status["resourceClaimName"]
    assert status["requestMappings"] == [
        {
            "containerName": "main",
            "resourceName": resource,
            "requestName": "container-0-request-0",
        }
    ]
    claim = made.must("resourceclaims", name)
    assert name.startswith("pod-extended-resources-")
    assert claim["metadata"]["annotations"] == {
        "resource.kubernetes.io/extended-resource-claim": "true"
    }
    assert made.devices_of(name) == ["n1/gpu-0", "n1/gpu-1"]
    assert claim["status"]["reservedFor"][0]["name"] == "pod"


def test_devices_are_taken_from_later_pods_and_given_back():
    made = cluster()
    ask(made, "a", 2)
    ask(made, "b", 1)
    condition = made.pod_condition("b")
    assert "1 cannot allocate all claims. preemption: 0/1 nodes" in condition["message"]
    made.finish("a")
    made.wait(2)
    assert made.must("pods", "b")["spec"]["nodeName"] == "n1"
    assert len(made.names("resourceclaims")) == 1


def test_node_with_a_device_plugin_serves_its_own():
    made = cluster(room="4")
    ask(made, "pod", 3)
    assert made.must("pods", "pod")["spec"]["nodeName"] == "n1"
    assert made.names("resourceclaims") == []


def test_two_pods_of_one_step_do_not_share_a_device():
    made = cluster()
    limits = {GPU: "1"}
    for name in ("a", "b", "c"):
        made.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "image": "i:1",
                            "resources": {"requests": limits, "limits": limits},
                        }
                    ]
                },
            }
        )
    made.settle()
    used = [device for name in made.names("resourceclaims") for device in made.devices_of(name)]
    assert sorted(used) == ["n1/gpu-0", "n1/gpu-1"]
    decisions, effects = check_decisions(made)
    assert decisions.differences == ()
    assert effects.differences == ()


def test_of_two_classes_with_one_name_the_newest_counts():
    made = cluster()
    made.wait(5)
    made.create("resource.k8s.io/v1", "DeviceClass", "a-newer", spec={"extendedResourceName": GPU})
    found = extended_resources.classes_of(made.line.views.objects, [GPU])
    assert found == {GPU: "a-newer"}


def test_claim_left_by_an_earlier_attempt_is_deleted_first():
    made = cluster()
    made.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    ask(made, "pod", 1)
    tree = made.must("pods", "pod")
    left = extended_resources.claim_to_create(
        tree, extended_resources.claim_for(tree, {GPU: "gpu"}), 99
    )
    made.apply(json_tree.copy(left))
    made.patch("nodes", "n1", {"spec": {"unschedulable": False}})
    made.wait(20)
    assert "nodeName" not in made.must("pods", "pod")["spec"], "no event wakes the pod"
    made.wait(400)
    assert any("deletion of ResourceClaim completed" in text for text in made.messages("pod"))
    assert made.must("pods", "pod")["spec"]["nodeName"] == "n1"
    assert left["metadata"]["name"] not in made.names("resourceclaims")


def test_leftover_stands_in_the_way_of_other_claims_even_where_a_plugin_serves():
    made = cluster(room="4")
    made.device_class("plain")
    made.claim("own", class_name="plain")
    requests = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    made.pod(
        claim="own",
        schedulingGates=[{"name": "example.com/wait"}],
        containers=[{"name": "main", "image": "i:1", "resources": requests}],
    )
    tree = made.must("pods", "pod")
    made.apply(
        extended_resources.claim_to_create(
            tree, extended_resources.claim_for(tree, {GPU: "gpu"}), 99
        )
    )
    made.patch("pods", "pod", {"spec": {"schedulingGates": None}})
    made.settle()
    (said,) = made.messages("pod")
    assert said.startswith(
        "0/1 nodes are available: 1 cannot schedule extended resource claim. "
        "deletion of ResourceClaim completed, preemption:"
    )
    assert made.names("resourceclaims") == ["own"]


NIC, DISK = "example.com/nic", "example.com/disk"


@pytest.mark.parametrize(
    ("wanted", "on_node", "message"),
    [
        ({GPU: 1}, {}, ""),
        ({GPU: 1, NIC: 1}, {NIC: 1}, ""),
        ({GPU: 1, NIC: 1}, {}, f"Insufficient {NIC}"),
        ({GPU: 1, NIC: 1}, {NIC: 0}, f"Insufficient {NIC}"),
        ({GPU: 1, NIC: 1}, {DISK: 1}, f"Insufficient {NIC}"),
        ({GPU: 1, NIC: 1, DISK: 1}, {NIC: 1}, f"Insufficient {DISK}"),
        ({GPU: 1, NIC: 2}, {NIC: 1}, f"Insufficient {NIC}"),
        ({GPU: 1, NIC: 1}, {GPU: 1, NIC: 1}, ""),
        ({GPU: 3}, {}, "cannot allocate all claims"),
    ],
)
def test_each_resource_comes_from_the_node_or_from_its_class(
    wanted: dict[str, int], on_node: dict[str, int], message: str
) -> None:
    """Class `gpu` has two devices on the node, which publishes `on_node` by itself."""
    made = cluster()
    if on_node:
        room = {"status": {"allocatable": {name: str(count) for name, count in on_node.items()}}}
        made.patch("nodes", "n1", room, subresource="status")
    amounts = {name: str(count) for name, count in wanted.items()}
    made.pod(requests=amounts)
    made.settle()
    node = made.must("pods", "pod")["spec"].get("nodeName")
    assert node == (None if message else "n1")
    condition = made.pod_condition("pod")
    assert condition is not None
    assert message in condition.get("message", "")
    has_claim = not message and GPU not in on_node
    assert bool(made.names("resourceclaims")) is has_claim


def test_claim_that_can_be_made_anew_begins_as_it_was_made() -> None:
    tree = pod(container("a", 2), init=[container("i", 1)])
    made = extended_resources.claim_for(tree, {GPU: "gpu"})
    known = extended_resources.changeable_claim(tree, {GPU: "gpu"}, made.tree)
    assert known.tree == made.tree
    assert sorted(known.amounts) == [("a", GPU, 2), ("i", GPU, 1)]
    more = known.with_amount("a", GPU, 3)
    counts = [each["exactly"]["count"] for each in more.tree["spec"]["devices"]["requests"]]
    assert counts == [3]
