"""Small clusters with findings that others lack, for `findings_of_worlds.txt`."""

from collections.abc import Callable
from copy import deepcopy

from app.domain.log import Actor, EventType, ObjectKey
from app.domain.objects.write.commands import RecordFact
from app.domain.values import api_resources
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis.explain.answered_worlds import (
    TREE,
    base,
    held_again,
    models,
    named,
    of_model,
    using,
)

GANG = {"apiGroup": "x.test", "resource": "podgroups", "uid": "u-1"}


def accounts_that_pods_name() -> Cluster:
    """One namespace has accounts; of another one no account is known."""
    cluster = base(1)
    cluster.create("v1", "Namespace", "bare")
    for name in ("default", "builder"):
        cluster.create("v1", "ServiceAccount", name)
    for name, account in (("a", "bilder"), ("b", "bilder"), ("c", "builder"), ("d", "bilder"),
                          ("e", "other")):  # fmt: skip
        cluster.pod(name, serviceAccountName=account)
    cluster.pod("f", serviceAccountName="bilder", namespace="bare")
    cluster.settle()
    cluster.finish("d")
    cluster.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    return cluster


def pods_that_failed_on_their_nodes() -> Cluster:
    cluster = using(base(1, 4), *"abcd")
    for name, reason, message in (
        ("a", "Evicted", "The node was low on memory"),
        ("b", "UnexpectedAdmissionError", "no devices"),
        ("c", "Evicted", "Usage exceeds its limit"),
        ("d", "", "no reason"),
    ):
        status = {"phase": "Failed", "reason": reason, "message": message}
        cluster.patch("pods", name, {"status": status}, subresource="status")
    return cluster


def pods_that_should_have_ended() -> Cluster:
    """Two wait for their kubelet, which failed to end one of them, and one for a finalizer."""
    cluster = using(base(2, 4), *"abcd")
    cluster.patch("pods", "c", {"metadata": {"finalizers": ["example.com/hold"]}})
    for name, seconds in (("a", 10), ("b", 20), ("c", 30), ("d", 3000)):
        cluster.wait(1).delete("pods", name, grace_seconds=seconds)
    uid = cluster.must("pods", "b")["metadata"]["uid"]
    subject = {"kind": "Pod", "namespace": "default", "name": "b", "uid": uid}
    cluster.wait(25)
    cluster.create(
        "v1", "Event", "said", reason="FailedKillPod", message="no answer", count=2, type="Warning",
        involvedObject=subject, source={"component": "kubelet", "host": "n0"},
    )  # fmt: skip
    return cluster.wait(200)


def claims_that_nothing_ends() -> Cluster:
    """Deleted claims: two that a foreign finalizer keeps, and two that a PodGroup has."""
    cluster = base(1)
    cluster.stop("claims")
    for name, finalizers in (
        ("a", ["example.com/keep"]), ("b", ["example.com/also", "example.com/keep"]),
        ("c", ["resource.kubernetes.io/delete-protection"]),
        ("d", ["resource.kubernetes.io/delete-protection"]),
    ):  # fmt: skip
        cluster.claim(name)
        cluster.patch("resourceclaims", name, {"metadata": {"finalizers": finalizers}})
    for name in ("c", "d"):
        tree = deepcopy(cluster.must("resourceclaims", name))
        device = "gpu-0" if name == "c" else "gpu-1"
        result = {"request": "gpu", "driver": DRIVER, "pool": "n0", "device": device}
        tree["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{**GANG, "name": f"gang-{name}"}],
        }
        cluster.update("resourceclaims", tree, "status")
    for name in "dcba":
        cluster.wait(1).delete("resourceclaims", name)
    return cluster.wait(5)


def writes_that_were_refused() -> Cluster:
    """The last write of three pods was refused; a fourth one was written since."""
    cluster = using(base(2, 4), *"abcd")
    for name, message in (
        ("a", 'pods "a" is forbidden: no'), ("b", 'pods "b" is forbidden: no'),
        ("c", 'pods "c" is forbidden: other'), ("d", 'pods "d" is forbidden: no'),
    ):  # fmt: skip
        key = ObjectKey(*api_resources.PODS, "default", name)
        body = {"verb": "patch", "code": 403, "message": message}
        fact = RecordFact(type=EventType.REQUEST_OBSERVED.value, key=key, body=body)
        cluster.line.submit(fact, actor=Actor(user="bob"))
    cluster.patch("pods", "d", {"metadata": {"labels": {"x": "y"}}})
    return cluster


def workloads_whose_pods_are_refused() -> Cluster:
    """The ReplicaSet of a Deployment is left out, the one behind it in the list is not."""
    cluster = base(1)
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {"pods": "0"}})
    cluster.settle()
    body = {"containers": [{"name": "m", "image": "i"}]}
    for kind, name in (("Deployment", "a"), ("ReplicaSet", "z"), ("ReplicaSet", "zz")):
        template = {"metadata": {"labels": {"app": name}}, "spec": body}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        cluster.create("apps/v1", kind, name, spec=spec)
        cluster.settle().wait(1)
    return cluster.settle()


def devices_that_patches_changed_away() -> Cluster:
    """One patch is gone under which a device was chosen; another one came after the choice."""
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "b", "c"))
    version = "resource.k8s.io/v1alpha3"

    def patch(name: str, model: str, becomes: str) -> None:
        spec = {
            "filter": {"selectors": of_model(model)},
            "attributes": {f"{DRIVER}/model": {"string": becomes}},
        }
        cluster.create(version, "ResourceSlicePatch", name, spec={"devices": spec})

    patch("early", "a", "wanted")
    for name, model in (("x", "wanted"), ("y", "b")):
        cluster.claim(name, selectors=of_model(model))
        cluster.pod(name, claim=name)
    cluster.settle().wait(5)
    cluster.delete("resourceslicepatches", "early", version="v1alpha3")
    cluster.wait(5)
    patch("late", "b", "other")
    return cluster.settle().wait(5)


def claims_that_hold_what_others_hold() -> Cluster:
    """Three claims of one device, which changed in another order than their names."""
    cluster = using(base(1, 1), "b")
    for name in ("c", "a"):
        held_again(cluster.wait(5), name, "b")
    cluster.claim("late", count=1)
    cluster.pod("p", resourceClaims=named("late"))
    return cluster.settle().wait(5)


def device_that_drivers_report_on() -> Cluster:
    """Devices that are not ready, of a claim whose pod runs and of one whose pod is not bound."""
    cluster = base(1, 0)
    device: TREE = {
        "name": "d",
        "bindsToNode": True,
        "bindingConditions": ["a.b/ready"],
        "bindingFailureConditions": ["a.b/failed"],
    }
    cluster.slice("n0", [device, {"name": "e"}])
    for name, selector in (("c", "true"), ("f", "true")):
        cluster.claim(name, selectors=[{"cel": {"expression": selector}}])
        cluster.pod(name, claim=name)
        cluster.settle()
    for name in ("c", "f"):
        tree = deepcopy(cluster.must("resourceclaims", name))
        (result,) = tree["status"]["allocation"]["devices"]["results"]
        condition = {
            "type": "Ready" if name == "f" else "a.b/ready", "status": "False", "reason": "Off",
            "message": "no power", "lastTransitionTime": "2026-01-02T03:00:00Z",
        }  # fmt: skip
        own = {"driver": DRIVER, "pool": "n0", "device": result["device"]}
        tree["status"]["devices"] = [{**own, "conditions": [condition]}]
        cluster.update("resourceclaims", tree, "status")
    return cluster.settle()


CLUSTERS: dict[str, Callable[[], Cluster]] = {
    cluster.__name__: cluster
    for cluster in (
        accounts_that_pods_name,
        pods_that_failed_on_their_nodes,
        pods_that_should_have_ended,
        claims_that_nothing_ends,
        writes_that_were_refused,
        workloads_whose_pods_are_refused,
        devices_that_patches_changed_away,
        claims_that_hold_what_others_hold,
        device_that_drivers_report_on,
    )
}
