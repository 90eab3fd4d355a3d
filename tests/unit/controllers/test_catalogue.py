"""The Events and conditions that controllers write, text by text (controllers.md 11.1 and 11.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.domain.controllers.registry import ControllerOptions
from app.domain.values.json_tree import JsonObject
from tests.cluster import Cluster, claim_spec

SCHEDULER = "default-scheduler"
EVICTOR = "device-taint-eviction-controller"


def ready(devices: int | list[JsonObject] = 1, **options) -> Cluster:
    made = Cluster(**options)
    made.node()
    made.device_class()
    made.slice(devices=devices)
    made.template(tolerations=[{"operator": "Exists", "effect": "", "tolerationSeconds": 60}])
    made.template("frail")
    return made.settle()


def node_leaves() -> Cluster:
    made = ready()
    made.pod(template="frail")
    made.settle()
    made.delete("nodes", "n1")
    return made.wait(65)


def deployment() -> Cluster:
    made = ready(kubelet=True)
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    made.create("apps/v1", "Deployment", "web", spec=spec)
    return made.wait(5)


def evicted() -> Cluster:
    made = ready()
    made.pod(template="frail")
    made.settle()
    made.rule()
    return made.settle()


def cancelled() -> Cluster:
    made = Cluster()
    made.node()
    made.device_class()
    made.slice(devices=1)
    patient = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    made.template(tolerations=[patient])
    made.pod(template="gpu")
    made.settle()
    made.rule()
    made.settle()
    made.delete("devicetaintrules", "rule")
    return made.settle()


def without_template() -> Cluster:
    made = ready()
    made.pod(template="absent")
    return made.settle()


def no_room() -> Cluster:
    made = ready(devices=0)
    made.pod(template="frail")
    return made.settle()


def bound() -> Cluster:
    made = ready()
    made.pod(template="frail")
    return made.settle()


def waiting() -> Cluster:
    device = {
        "name": "d",
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
    }
    made = ready(devices=[device])
    made.pod(template="frail")
    return made.settle()


def terminating_in_the_queue() -> Cluster:
    """A finalizer keeps a pod that was deleted before it could be placed."""
    made = ready(devices=0)
    made.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "finalizers": ["example.com/wait"]},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], "nodeSelector": {"a": "b"}},
        }
    )
    # Not at an instant at which PodGC looks: it would fail the pod first.
    made.wait(1)
    made.delete("pods", "pod")
    made.node("n2", a="b")
    return made.wait(15)


def refused_by_the_kubelet() -> Cluster:
    made = ready(kubelet=True)
    made.create("resource.k8s.io/v1", "ResourceClaim", "claim", spec=claim_spec())
    made.pod(claim="claim", nodeName="n1")
    return made.wait(5)


@dataclass(frozen=True, kw_only=True)
class Row:
    """An Event of the catalogue and a way to it. `about` is the name of its object."""

    make: Callable[[], Cluster]
    reporter: str
    type: str = "Normal"
    reason: str
    message: str
    about: str = "pod"


ROWS = [
    Row(
        make=terminating_in_the_queue,
        reporter=SCHEDULER,
        type="Warning",
        reason="FailedScheduling",
        message="skip schedule deleting pod: default/pod",
    ),
    Row(
        make=bound,
        reporter="node-controller",
        reason="RegisteredNode",
        message="Node n1 event: Registered Node n1 in Controller",
        about="n1",
    ),
    Row(
        make=node_leaves,
        reporter="node-controller",
        reason="RemovingNode",
        message="Node n1 event: Removing Node n1 from Controller",
        about="n1",
    ),
    Row(
        make=deployment,
        reporter="deployment-controller",
        reason="ScalingReplicaSet",
        message="Scaled up replica set <made> from 0 to 2",
        about="web",
    ),
    Row(
        make=deployment,
        reporter="replicaset-controller",
        reason="SuccessfulCreate",
        message="Created pod: <made>",
        about="<made>",
    ),
    Row(
        make=evicted,
        reporter=EVICTOR,
        reason="DeviceTaintManagerEviction",
        message="Marking for deletion",
    ),
    Row(
        make=cancelled,
        reporter=EVICTOR,
        reason="DeviceTaintManagerEviction",
        message="Cancelling deletion",
    ),
    Row(
        make=without_template,
        reporter="resource_claim",
        type="Warning",
        reason="FailedResourceClaimCreation",
        message='PodResourceClaim gpu: resource claim template "absent": '
        'resourceclaimtemplate.resource.k8s.io "absent" not found',
    ),
    Row(
        make=no_room,
        reporter=SCHEDULER,
        type="Warning",
        reason="FailedScheduling",
        message="0/1 nodes are available: 1 cannot allocate all claims. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
    ),
    Row(
        make=bound,
        reporter=SCHEDULER,
        reason="Scheduled",
        message="Successfully assigned default/pod to n1",
    ),
    Row(
        make=waiting,
        reporter=SCHEDULER,
        reason="BindingConditionsPending",
        message="waiting for binding conditions for device on node n1",
    ),
    Row(
        make=refused_by_the_kubelet,
        reporter="kubelet",
        type="Warning",
        reason="FailedPrepareDynamicResources",
        message="",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.message or row.reason)
def test_event_of_the_catalogue(row):
    said = [
        event.object
        for event in row.make().line.events
        if event.key.resource == "events" and event.type == "ObjectCreated"
    ]
    found = [tree for tree in said if fits(tree, row)]
    assert found, [(tree["reason"], tree["message"]) for tree in said]
    if row.reporter == SCHEDULER:
        check_scheduler_form(found[0])
    else:
        check_controller_form(found[0], row.reporter)


def fits(tree: JsonObject, row: Row) -> bool:
    before, _, after = row.message.partition("<made>")
    return (
        (tree["type"], tree["reason"]) == (row.type, row.reason)
        and tree["reportingComponent"] == row.reporter
        and tree["message"].startswith(before)
        and tree["message"].endswith(after)
        and row.about in (tree["involvedObject"]["name"], "<made>")
    )


def check_scheduler_form(tree: JsonObject) -> None:
    """As `events.k8s.io` writes it: an action and one precise time, no count."""
    assert tree["action"] in ("Scheduling", "Binding")
    assert tree["eventTime"]
    assert (tree["firstTimestamp"], tree["lastTimestamp"]) == (None, None)
    assert "count" not in tree
    assert tree["involvedObject"]["resourceVersion"]
    (entry,) = tree["metadata"]["managedFields"]
    assert (entry["manager"], entry["apiVersion"]) == ("kube-scheduler", "events.k8s.io/v1")
    assert {"f:note", "f:regarding", "f:reportingController"} <= entry["fieldsV1"].keys()


def check_controller_form(tree: JsonObject, reporter: str) -> None:
    """As `v1` writes it: times in seconds and a count, no action."""
    assert (tree["count"], tree["eventTime"]) == (1, None)
    assert tree["firstTimestamp"] == tree["lastTimestamp"]
    assert tree["source"]["component"] == reporter
    assert "action" not in tree
    (entry,) = tree["metadata"]["managedFields"]
    manager = "kubelet" if reporter == "kubelet" else "kube-controller-manager"
    assert (entry["manager"], entry["apiVersion"]) == (manager, "v1")


@pytest.mark.parametrize(
    ("make", "kind", "status", "reason"),
    [
        (bound, "PodScheduled", "True", None),
        (no_room, "PodScheduled", "False", "Unschedulable"),
        (evicted, "DisruptionTarget", "True", "DeletionByDeviceTaintManager"),
    ],
)
def test_condition_of_the_catalogue(make, kind, status, reason):
    condition = make().pod_condition("pod", kind)
    assert (condition["status"], condition.get("reason")) == (status, reason)


def test_pod_that_is_gated_says_so():
    made = ready()
    made.pod(schedulingGates=[{"name": "example.com/wait"}])
    condition = made.settle().pod_condition("pod")
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


def test_pod_of_a_node_that_is_gone_is_marked_and_removed():
    marked = [
        condition
        for event in node_leaves().line.events
        if event.key == ("", "pods", "default", "pod")
        for condition in event.object["status"].get("conditions", ())
        if condition["type"] == "DisruptionTarget"
    ]
    assert {(found["reason"], found["message"]) for found in marked} == {
        ("DeletionByPodGC", "PodGC: node no longer exists")
    }


def test_scheduler_error_is_a_reason_of_its_own():
    made = ready(options=ControllerOptions(off=frozenset({"claims"})))
    made.claim(selectors=[{"cel": {"expression": "device.attributes['a.b'].c == 1"}}])
    made.pod(claim="claim")
    condition = made.settle().pod_condition("pod")
    assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
