"""The enhancement proposals' own cases, applied with the real kubectl, end as the proposals say."""

from pathlib import Path

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples" / "keps"
RULE = "devicetaintrule/worn-out"
ADMIN = "resource.kubernetes.io/admin-access"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("keps")) as found:
        yield found


@pytest.fixture
def space(server, request):
    """The server with a namespace of the test's own."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:50].strip("-")
    server.make_namespace(name)
    return server.within(name)


def apply(space, name):
    space.kubectl("apply", "-f", str(FOLDER / name))


def wait(space, place, wanted):
    """Wait for `jsonpath` or a condition."""
    space.kubectl("wait", place, f"--for={wanted}", "--timeout=60s", seconds=90)


def wait_running(space, pod):
    wait(space, f"pod/{pod}", "jsonpath={.status.phase}=Running")


def wait_waiting(space, pod):
    """Until the scheduler has said that the pod fits nowhere; its message."""
    wait(space, f"pod/{pod}", "condition=PodScheduled=False")
    conditions = space.json("get", "pod", pod)["status"]["conditions"]
    return next(found["message"] for found in conditions if found["type"] == "PodScheduled")


def results(space, claim):
    found = space.json("get", "resourceclaim", claim)
    return found["status"]["allocation"]["devices"]["results"]


def devices(space, claim):
    return [result["device"] for result in results(space, claim)]


def test_every_example_is_used_here():
    text = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in FOLDER.glob("*.yaml") if f'"{path.name}"' not in text] == []


def test_whole_device_waits_while_a_part_is_in_use(space):
    apply(space, "4815-partitions.yaml")
    wait_running(space, "quarter")
    assert devices(space, "quarter") == ["part-0"]
    assert "1 cannot allocate all claims" in wait_waiting(space, "whole")
    space.kubectl("delete", "pod", "quarter", "--grace-period=0", "--force")
    wait_running(space, "whole")
    assert devices(space, "whole") == ["whole"]


def test_partitions_of_one_gpu_do_not_overlap(space):
    apply(space, "4815-mig.yaml")
    wait_running(space, "partitions")
    assert devices(space, "partitions") == [
        "mig-1g-5gb-0",
        "mig-1g-5gb-1",
        "mig-2g-10gb-2",
        "mig-3g-20gb-4",
    ]


def test_pods_of_a_multi_host_device_are_on_its_hosts(space):
    apply(space, "4815-multi-host.yaml")
    wait(space, "deployment/mesh-job", "jsonpath={.status.readyReplicas}=2")
    assert devices(space, "eight-chips") == ["mesh-2x4-1"]
    pods = space.json("get", "pods", "-l", "app=mesh-job")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["mesh-1", "mesh-2"]
    reserved = space.json("get", "resourceclaim", "eight-chips")["status"]["reservedFor"]
    assert len(reserved) == 2
    # A third pod has no host left: the device reaches two nodes.
    space.kubectl("scale", "deployment/mesh-job", "--replicas=3")
    wait(space, "deployment/mesh-job", "jsonpath={.status.unavailableReplicas}=1")
    waiting = space.json("get", "pods", "--field-selector=status.phase=Pending")["items"]
    assert len(waiting) == 1
    said = wait_waiting(space, waiting[0]["metadata"]["name"])
    assert "2 node(s) didn't match pod anti-affinity rules" in said


def test_alternatives_are_tried_in_their_order(space):
    apply(space, "4816-alternatives.yaml")
    wait_running(space, "card-and-nic")
    found = results(space, "card-and-nic")
    assert [(result["request"], result["device"]) for result in found] == [
        ("nic", "nic-1"),
        ("card/small", "card-1"),
        ("card/small", "card-2"),
    ]
    allocation = space.json("get", "resourceclaim", "card-and-nic")["status"]["allocation"]
    assert [config["requests"] for config in allocation["devices"]["config"]] == [["card/small"]]


def test_taint_rule_is_tried_out_and_then_evicts(space):
    apply(space, "5055-taints.yaml")
    wait_running(space, "hasty")
    wait_running(space, "patient")
    apply(space, "5055-rule-previews.yaml")
    wait(space, RULE, "jsonpath={.status.conditions[0].reason}=NoEffect")
    said = space.json("get", RULE)["status"]["conditions"][0]["message"]
    assert said.startswith(
        "2 published devices selected. 2 allocated devices selected. "
        "2 pods would be evicted in 1 namespace if the effect was NoExecute. "
    )
    apply(space, "5055-rule-evicts.yaml")
    wait(space, "pod/hasty", "delete")
    wait(space, RULE, "jsonpath={.status.conditions[0].reason}=PodsPendingEviction")
    assert space.json("get", "pod", "patient")["status"]["phase"] == "Running"
    said = space.kubectl("get", "events", "-o", "jsonpath={.items[*].message}").out
    assert said.count("Marking for deletion") == 1
    # Tainted devices are given to nobody who does not tolerate them.
    apply(space, "5055-taints.yaml")
    assert "cannot allocate all claims" in wait_waiting(space, "hasty")
    space.kubectl("delete", RULE)
    wait_running(space, "hasty")


def test_patches_override_what_drivers_say(space):
    apply(space, "5027-patch.yaml")
    wait_running(space, "in-production")
    assert devices(space, "in-production") == ["odd-2"]


def test_claims_by_name_and_by_template_in_one_pod_and_a_monitor_beside_it(space):
    apply(space, "structured-parameters.yaml")
    wait_running(space, "animals")
    assert devices(space, "small-white") == ["cat-1"]
    status = space.json("get", "pod", "animals")["status"]["resourceClaimStatuses"]
    (own,) = [found["resourceClaimName"] for found in status]
    assert own.startswith("animals-own-")
    assert devices(space, own) == ["cat-2"]
    refused = space.kubectl("apply", "-f", str(FOLDER / "admin-access.yaml"), code=1)
    assert f"requires the `{ADMIN}: true` label on the containing namespace" in refused.err
    space.kubectl("label", "namespace", space.namespace, f"{ADMIN}=true")
    apply(space, "admin-access.yaml")
    wait_running(space, "watcher")
    assert sorted(devices(space, "watcher")) == ["cat-0", "cat-1", "cat-2"]
    assert all(result["adminAccess"] for result in results(space, "watcher"))
