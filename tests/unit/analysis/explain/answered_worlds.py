"""Small clusters with one question each, whose whole answers are in `whole_answers.txt`."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from app.domain.log import Actor, EventType, ObjectKey
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import RecordFact
from app.domain.values import api_resources
from tests.cluster import DRIVER, Cluster

Asked = tuple[Cluster, str, str]
"""A cluster, and kind and name of an object in it."""

TREE = dict[str, Any]


def base(nodes: int, devices: int = 2) -> Cluster:
    """Nodes `n0`, `n1`, … in zones a and b in turn, each with devices of class `gpu`."""
    cluster = Cluster()
    for number in range(nodes):
        cluster.node(f"n{number}", zone="ab"[number % 2])
    cluster.device_class()
    for number in range(nodes if devices else 0):
        cluster.slice(f"n{number}", devices)
    return cluster


def pod(cluster: Cluster, name: str, app: str, **spec: object) -> None:
    body = {"containers": [{"name": "main", "image": "busybox:1"}], **spec}
    metadata = {"name": name, "labels": {"app": app}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})


def named(*claims: str) -> list[TREE]:
    """Entries of a pod for claims of these names."""
    return [{"name": f"e{n}", "resourceClaimName": name} for n, name in enumerate(claims)]


def using(cluster: Cluster, *names: str) -> Cluster:
    """Claims, each with a pod of its name, some seconds ago."""
    for name in names:
        cluster.claim(name)
        cluster.pod(name, claim=name)
    return cluster.settle().wait(5)


def asking(cluster: Cluster, **request: object) -> Asked:
    """Pod `p` with a claim `c`."""
    cluster.claim("c", **request)
    cluster.pod("p", claim="c")
    return cluster, "pod", "p"


def claim(cluster: Cluster, *requests: TREE, constraints: tuple[TREE, ...] = ()) -> Asked:
    """Pod `p` with a claim `c` of several requests."""
    devices = {"requests": [*requests], "constraints": [*constraints]}
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "c", spec={"devices": devices})
    cluster.pod("p", claim="c")
    return cluster, "pod", "p"


def selecting(expression: str) -> list[TREE]:
    return [{"cel": {"expression": expression}}]


def of_model(model: str) -> list[TREE]:
    return selecting(f"device.attributes['{DRIVER}'].model == '{model}'")


def models(*names: str) -> list[TREE]:
    return [
        {"name": f"g{n}", "attributes": {"model": {"string": name}}} for n, name in enumerate(names)
    ]


def cordon(cluster: Cluster, node: str) -> None:
    cluster.patch("nodes", node, {"spec": {"unschedulable": True}})


# what other pods and labels keep away

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "w"}},
}


def pods_are_to_be_spread_over_zones() -> Asked:
    cluster = base(3)
    cluster.node("bare")
    for name, node in (("w0", "n0"), ("w1", "n2")):
        pod(cluster, name, "w", nodeName=node)
    cordon(cluster, "n1")
    pod(cluster, "p", "w", topologySpreadConstraints=[SPREAD])
    return cluster, "pod", "p"


def pods_are_to_be_spread_over_more_zones_than_there_are() -> Asked:
    cluster = base(2)
    expressions = [{"key": "app", "operator": "In", "values": ["w", "v"]}]
    few = {**SPREAD, "minDomains": 3, "labelSelector": {"matchExpressions": expressions}}
    for name, node in (("w0", "n0"), ("w1", "n1")):
        pod(cluster, name, "w", nodeName=node)
    cluster.claim("c")
    pod(cluster, "p", "w", topologySpreadConstraints=[few], resourceClaims=named("c"))
    return cluster, "pod", "p"


def required(kind: str, app: str, key: str) -> TREE:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def pods_that_avoid_each_other() -> Asked:
    cluster = base(4)
    pod(cluster, "a", "db", nodeName="n0")
    pod(cluster, "b", "db", nodeName="n2")
    pod(cluster, "done", "db", nodeName="n3")
    cluster.finish("done")
    away = required("podAntiAffinity", "w", "kubernetes.io/hostname")
    for name, node in (("guard-0", "n1"), ("guard-1", "n3")):
        pod(cluster, name, "lone", nodeName=node, affinity=away)
    pod(cluster, "p", "w", affinity=required("podAntiAffinity", "db", "zone"))
    return cluster, "pod", "p"


def pod_that_wants_another_one_near() -> Asked:
    cluster = base(3)
    pod(cluster, "a", "db", nodeName="n0")
    pod(cluster, "b", "db", nodeSelector={"no": "node"})
    near = required("podAffinity", "db", "zone")
    pod(cluster, "p", "w", nodeSelector={"zone": "b"}, affinity=near)
    return cluster, "pod", "p"


def pod_that_wants_another_one_near_that_waits() -> Asked:
    cluster = base(1)
    pod(cluster, "b", "db", nodeSelector={"no": "node"})
    pod(cluster, "p", "w", affinity=required("podAffinity", "db", "zone"))
    return cluster, "pod", "p"


def node_affinity_has_two_terms() -> Asked:
    cluster = base(4)
    cluster.node("bare")
    terms = [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["c", "d"]},
                {"key": "spot", "operator": "DoesNotExist"},
            ]
        },
        {
            "matchExpressions": [{"key": "rack", "operator": "Exists"}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        },
    ]
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    cluster.pod("p", affinity={"nodeAffinity": chosen})
    return cluster, "pod", "p"


def node_selector_has_two_labels() -> Asked:
    cluster = base(3)
    cluster.node("bare")
    cluster.pod("p", nodeSelector={"zone": "c", "rack": "r"})
    return cluster, "pod", "p"


def host_port_is_in_use() -> Asked:
    cluster = base(2, 0)
    ports = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 81}]
    for name in ("q0", "q1", "p"):
        body = {"containers": [{"name": "m", "image": "i", "ports": ports}]}
        metadata = {"name": name}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})
        cluster.settle()
    return cluster, "pod", "p"


def nodes_are_short_of_cpu_and_have_devices() -> Asked:
    cluster = base(3, 1)
    cluster.claim("c")
    for name, node in (("b0", "n0"), ("b1", "n1"), ("b2", "n1")):
        cluster.pod(name, requests={"cpu": "10"}, nodeName=node)
    cluster.pod("p", claim="c", requests={"cpu": "33"})
    return cluster, "pod", "p"


# what devices lack


def requests_of_which_some_fail() -> Asked:
    cluster = base(2, 0)
    cluster.slice("n0", models(*"ababab"))
    cluster.slice("n1", models("a"))
    requests = [
        {
            "name": f"r{n}",
            "exactly": {"deviceClassName": "gpu", "count": n + 1, "selectors": of_model(model)},
        }
        for n, model in enumerate("aazzyb")
    ]
    return claim(cluster, *requests)


def last_alternative_is_more_than_a_node_has() -> Asked:
    """Whoever gives devices back, the pod does not fit."""
    cluster = using(base(2), "held", "held-too", "held-there")
    big = {"name": "big", "deviceClassName": "gpu", "selectors": selecting("false")}
    small = {"name": "small", "deviceClassName": "gpu", "count": 3}
    return claim(cluster, {"name": "g", "firstAvailable": [big, small]})


def requests_that_fail_together() -> Asked:
    cluster = base(2, 0)
    for node in ("n0", "n1"):
        numas = [{"name": f"g{n}", "attributes": {"numa": {"int": n}}} for n in range(3)]
        cluster.slice(node, numas)
    requests = ({"name": name, "exactly": {"deviceClassName": "gpu"}} for name in "ab")
    return claim(cluster, *requests, constraints=({"matchAttribute": f"{DRIVER}/numa"},))


def two_claims_of_which_one_is_too_large() -> Asked:
    cluster = base(2, 1)
    cluster.claim("c")
    cluster.claim("d", count=2)
    cluster.pod("p", resourceClaims=named("c", "d"))
    return cluster, "pod", "p"


def two_claims_that_want_one_device() -> Asked:
    cluster = base(1, 1)
    cluster.claim("c")
    cluster.claim("d")
    cluster.pod("p", resourceClaims=named("c", "d"))
    return cluster, "pod", "p"


def two_entries_that_name_one_claim() -> Asked:
    cluster = base(1)
    cluster.claim("c")
    cluster.pod("p", resourceClaims=named("c", "c"))
    return cluster, "pod", "p"


def patch_fails_on_the_devices_that_lack_its_value() -> Asked:
    cluster = base(2, 0)
    for node in ("n0", "n1"):
        cluster.slice(node, models("a", "b"))
    failing(cluster)
    return asking(cluster, selectors=selecting(f"has(device.attributes['{DRIVER}'].good)"))


def failing(cluster: Cluster) -> None:
    """Patch `fix` asks for an attribute that no device has."""
    spec = {
        "filter": {"selectors": selecting(f"device.attributes['{DRIVER}'].none == 1")},
        "attributes": {f"{DRIVER}/good": {"bool": True}},
    }
    version = "resource.k8s.io/v1alpha3"
    cluster.create(version, "ResourceSlicePatch", "fix", spec={"devices": spec})


def patch_that_fails() -> Asked:
    cluster, *_ = patch_fails_on_the_devices_that_lack_its_value()
    return cluster, "resourceslicepatch", "fix"


def two_patches_of_one_attribute() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "a", "b"))
    for name, model in (("one", "x"), ("two", "y")):
        spec = {
            "filter": {"selectors": of_model("a")},
            "attributes": {f"{DRIVER}/model": {"string": model}},
        }
        version = "resource.k8s.io/v1alpha3"
        cluster.create(version, "ResourceSlicePatch", name, spec={"devices": spec})
        cluster.wait(1)
    return cluster, "resourceslicepatch", "two"


def patch_that_another_one_overrides() -> Asked:
    cluster, *_ = two_patches_of_one_attribute()
    return cluster, "resourceslicepatch", "one"


def device_that_two_patches_change() -> Asked:
    cluster, *_ = two_patches_of_one_attribute()
    return cluster, "device", f"{DRIVER}/n0/g1"


def counters_are_used_up() -> Asked:
    cluster = base(1, 0)
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "sets", spec={
        "driver": DRIVER, "nodeName": "n0",
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 2},
        "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "40"}}}],
    })  # fmt: skip
    parts = [
        {
            "name": name,
            "consumesCounters": [{"counterSet": "chip", "counters": {"memory": {"value": amount}}}],
        }
        for name, amount in (("half-0", "20"), ("half-1", "20"), ("whole", "40"))
    ]
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    cluster.slice("n0", parts, pool="n0", name="parts")
    tree = cluster.must("resourceslices", "parts")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "pool": pool}})
    using(cluster, "a")
    return asking(cluster, count=2)


def capacity_is_used_up() -> Asked:
    policy = {"default": "1G", "validRange": {"min": "1G", "step": "1G"}}
    bandwidth = {"bandwidth": {"value": "10G", "requestPolicy": policy}}
    cluster = base(1, 0)
    cluster.slice("n0", [{"name": "nic", "allowMultipleAllocations": True, "capacity": bandwidth}])
    cluster.claim("a", capacity={"requests": {"bandwidth": "7G"}})
    cluster.pod("a", claim="a")
    cluster.settle().wait(5)
    return asking(cluster, capacity={"requests": {"bandwidth": "4G"}})


def device_with_shares() -> Asked:
    cluster, *_ = capacity_is_used_up()
    return cluster, "device", f"{DRIVER}/n0/nic"


def class_of_another_driver() -> Asked:
    cluster = base(2)
    cluster.device_class("nic", "device.driver == 'nic.example.com'")
    return asking(cluster, class_name="nic")


def extended_resource_is_more_than_a_node_has() -> Asked:
    cluster = base(2, 1)
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "ext", spec=spec)
    cluster.pod("p", requests={"example.com/gpu": "2"})
    return cluster, "pod", "p"


def taint_of_a_rule_is_not_tolerated() -> Asked:
    cluster = base(2)
    cluster.rule("r", effect="NoSchedule", key="example.com/k", value="v")
    toleration = {"key": "example.com/k", "operator": "Equal", "value": "w"}
    return asking(cluster, tolerations=[{**toleration, "effect": "NoSchedule"}])


def nodes_refuse_for_different_reasons() -> Asked:
    cluster = base(4, 1)
    cluster.node("full", pods=0)
    cluster.node("off")
    cordon(cluster, "off")
    cluster.slice("off", 1)
    taints = [{"key": "k", "effect": "NoSchedule"}]
    cluster.patch("nodes", "n3", {"spec": {"taints": taints}})
    return asking(using(cluster, "c0", "c1", "c2"))


def cordoned_node() -> Asked:
    cluster, *_ = nodes_refuse_for_different_reasons()
    cluster.pod("other", nodeSelector={"kubernetes.io/hostname": "off"})
    return cluster.settle(), "node", "off"


# who has the devices


def holders_that_are_to_end() -> Asked:
    cluster = using(base(1), "a", "b")
    finalizers = ["example.com/keep", "resource.kubernetes.io/delete-protection"]
    cluster.patch("resourceclaims", "a", {"metadata": {"finalizers": finalizers}})
    cluster.delete("resourceclaims", "a")
    cluster.patch("pods", "b", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete("pods", "b")
    return asking(cluster)


def claim_that_a_finalizer_keeps() -> Asked:
    cluster, *_ = holders_that_are_to_end()
    return cluster, "resourceclaim", "a"


def pod_that_a_finalizer_keeps() -> Asked:
    cluster, *_ = holders_that_are_to_end()
    return cluster, "pod", "b"


def claim_is_allocated_on_another_node() -> Asked:
    cluster = base(3, 1)
    cluster.claim("c")
    cluster.pod("a", claim="c")
    cordon(cluster.settle(), "n0")
    cluster.pod("p", claim="c")
    return cluster, "pod", "p"


def pool_of_an_older_generation() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", 2, name="old")
    using(cluster, "a")
    cluster.slice("n0", [{"name": "new-0"}], name="new", generation=2)
    return asking(using(cluster, "b"))


def slice_of_an_older_generation() -> Asked:
    cluster, *_ = pool_of_an_older_generation()
    return cluster, "resourceslice", "old"


def claim_of_an_older_generation() -> Asked:
    cluster, *_ = pool_of_an_older_generation()
    return cluster, "resourceclaim", "a"


def device_of_an_older_generation() -> Asked:
    cluster, *_ = pool_of_an_older_generation()
    return cluster, "device", f"{DRIVER}/n0/gpu-0"


def pool_that_lacks_slices() -> Asked:
    cluster = base(1, 0)
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 3}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "one", spec={
        "driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": [{"name": "a"}],
    })  # fmt: skip
    return asking(cluster, allocationMode="All")


def slice_of_a_pool_that_lacks_slices() -> Asked:
    cluster, *_ = pool_that_lacks_slices()
    return cluster, "resourceslice", "one"


# choices


def alternatives(cluster: Cluster) -> Asked:
    """The claim of pod `p`, which would rather have a new device than an old one."""
    first = [
        {"name": "best", "deviceClassName": "gpu", "selectors": of_model("new")},
        {"name": "next", "deviceClassName": "gpu", "selectors": of_model("old")},
    ]
    claim(cluster, {"name": "r", "firstAvailable": first})
    return cluster.settle().wait(5), "resourceclaim", "c"


def other_nodes_had_an_earlier_alternative() -> Asked:
    cluster = base(3, 0)
    for number, model in enumerate(("old", "new", "new")):
        cluster.slice(f"n{number}", models(model))
    for number in (1, 2):
        requests = {"cpu": "31", "memory": "60Gi"}
        cluster.pod(f"f{number}", nodeName=f"n{number}", requests=requests)
    return alternatives(cluster)


def cordoned_node_had_an_earlier_alternative() -> Asked:
    cluster = base(2, 0)
    cluster.slice("n0", models("old"))
    cluster.slice("n1", models("new"))
    cordon(cluster, "n1")
    return alternatives(cluster)


def pod_with_a_later_alternative() -> Asked:
    cluster, *_ = cordoned_node_had_an_earlier_alternative()
    return cluster, "pod", "p"


def devices_are_not_ready() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", [{
        "name": "d", "bindsToNode": True,
        "bindingConditions": ["a.b/ready", "a.b/linked"],
        "bindingFailureConditions": ["a.b/failed"],
    }])  # fmt: skip
    asking(cluster)
    cluster.settle()
    tree = deepcopy(cluster.must("resourceclaims", "c"))
    condition = {
        "type": "a.b/ready", "status": "False", "reason": "Off", "message": "no power",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }  # fmt: skip
    device = {"driver": DRIVER, "pool": "n0", "device": "d", "conditions": [condition]}
    tree["status"]["devices"] = [device]
    cluster.update("resourceclaims", tree, "status")
    return cluster, "pod", "p"


def claim_whose_device_is_not_ready() -> Asked:
    cluster, *_ = devices_are_not_ready()
    return cluster, "resourceclaim", "c"


# evictions


def rule_that_evicts() -> Asked:
    cluster = base(2)
    cluster.claim("b", tolerations=[{"operator": "Exists", "tolerationSeconds": 60}])
    cluster.pod("b", claim="b")
    using(cluster, "a")
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(10), "devicetaintrule", "r"


def pod_that_a_rule_evicts() -> Asked:
    cluster, *_ = rule_that_evicts()
    return cluster, "pod", "b"


def claim_of_a_pod_that_a_rule_evicts() -> Asked:
    cluster, *_ = rule_that_evicts()
    return cluster, "resourceclaim", "b"


def device_that_a_rule_taints() -> Asked:
    cluster, *_ = rule_that_evicts()
    return cluster, "device", f"{DRIVER}/n0/gpu-0"


def node_with_tainted_devices() -> Asked:
    cluster, *_ = rule_that_evicts()
    return cluster, "node", "n0"


def pool_with_tainted_devices() -> Asked:
    cluster, *_ = rule_that_evicts()
    return cluster, "pool", f"{DRIVER}/n0"


def pod_on_devices_that_its_driver_taints() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", [
        {"name": "a", "taints": [{"key": "k", "effect": "NoExecute", "value": "v"}]},
        {"name": "b", "taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"name": "d", "taints": [{"key": "z", "effect": "None"}]},
    ])  # fmt: skip
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 100}
    asking(cluster, count=2, tolerations=[toleration])
    return cluster.settle().wait(5), "pod", "p"


def pod_that_is_preempted_for_another() -> Asked:
    cluster = base(1, 1)
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    cluster.pod("a", requests={"cpu": "20"})
    cluster.settle().wait(5)
    cluster.pod("p", requests={"cpu": "20"}, priorityClassName="high")
    return cluster.settle().wait(2), "pod", "a"


def pod_for_which_another_is_preempted() -> Asked:
    cluster, *_ = pod_that_is_preempted_for_another()
    return cluster, "pod", "p"


# workloads


def workload(kind: str, **spec: object) -> Asked:
    """A workload `web` with four pods on two devices, of which the first one runs."""
    cluster = base(2, 1)
    cluster.template()
    body: TREE = {
        "containers": [{"name": "m", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    template = {"metadata": {"labels": {"app": "w"}}, "spec": body}
    if kind == "Job":
        body["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": {"app": "w"}}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    cluster.create(version, kind, "web", spec={"template": template, **spec})
    cluster.settle().wait(5)
    return cluster, kind.lower(), "web"


def deployment_of_which_half_waits() -> Asked:
    return workload("Deployment", replicas=4)


def statefulset_goes_on_one_by_one() -> Asked:
    return workload("StatefulSet", replicas=3, serviceName="s")


def daemonset_on_every_node() -> Asked:
    return workload("DaemonSet")


def job_whose_pods_failed() -> Asked:
    rules: list[TREE] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}},
    ]
    asked = workload("Job", parallelism=2, completions=3, podFailurePolicy={"rules": rules})
    cluster = asked[0]
    first, second = sorted(cluster.names("pods"))
    for name, code in ((first, 3), (second, 1)):
        state = {"terminated": {"exitCode": code, "reason": "Error"}}
        status = {"name": "m", "state": state, "image": "i", "imageID": "", "ready": False}
        body = {"status": {"phase": "Failed", "containerStatuses": [status | {"restartCount": 0}]}}
        cluster.patch("pods", name, body, subresource="status")
    cluster.settle().wait(5)
    return asked


# what is missing


def template_is_refused_by_a_quota() -> Asked:
    cluster = base(1)
    hard = {
        "gpu.deviceclass.resource.k8s.io/devices": "1",
        "count/resourceclaims.resource.k8s.io": "4",
    }
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": hard})
    cluster.template()
    cluster.settle()
    for name in ("a", "p"):
        cluster.pod(name, template="gpu")
        cluster.settle().wait(5)
    return cluster, "pod", "p"


def quota_that_refuses_a_claim() -> Asked:
    cluster, *_ = template_is_refused_by_a_quota()
    return cluster, "resourcequota", "few"


def template_of_which_a_claim_is_refused() -> Asked:
    cluster, *_ = template_is_refused_by_a_quota()
    return cluster, "resourceclaimtemplate", "gpu"


def names_that_differ_a_little() -> Asked:
    cluster = base(1)
    cluster.template("large-gpus")
    cluster.claim("training-data", class_name="gpus")
    entries = [
        {"name": "a", "resourceClaimTemplateName": "large-gpu"},
        {"name": "b", "resourceClaimName": "training-date"},
        {"name": "c", "resourceClaimName": "training-data"},
    ]
    cluster.pod("p", resourceClaims=entries)
    return cluster, "pod", "p"


def class_that_is_missing() -> Asked:
    return asking(base(1), class_name="gpus")


def claim_of_a_class_that_is_missing() -> Asked:
    cluster, *_ = class_that_is_missing()
    return cluster.settle(), "resourceclaim", "c"


def volume_claims() -> Asked:
    cluster = base(1)
    mode = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.create("storage.k8s.io/v1", "StorageClass", "late", **mode)
    for name, more in (("data", {}), ("late", {"storageClassName": "late"}),
                       ("odd", {"storageClassName": "none"})):  # fmt: skip
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        cluster.create("v1", "PersistentVolumeClaim", name, spec={**spec, **more})
    names = ("data", "late", "odd", "none")
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    cluster.pod("p", volumes=volumes)
    return cluster, "pod", "p"


def gate_that_is_set() -> Asked:
    cluster = base(1)
    spec = {
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        "containers": [{"name": "m", "image": "i"}],
    }
    metadata = {"name": "p", "labels": {"kueue.x-k8s.io/queue": "q"}}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return cluster, "pod", "p"


def node_is_not_ready() -> Asked:
    cluster = asking(base(2))[0]
    cluster.settle().wait(5)
    condition = {
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastTransitionTime": "2026-01-02T03:00:05Z",
    }  # fmt: skip
    cluster.patch("nodes", "n0", {"status": {"conditions": [condition]}}, subresource="status")
    return cluster.settle().wait(5), "pod", "p"


def node_that_is_not_ready() -> Asked:
    cluster, *_ = node_is_not_ready()
    return cluster, "node", "n0"


def pod_that_was_deleted_by_force() -> Asked:
    cluster = using(base(1), "p")
    cluster.kill("p")
    return cluster, "pod", "p"


# more nodes, attempts and lives


def nodes_that_refuse_in_ten_ways() -> Asked:
    cluster = base(0)
    for number in range(12):
        cluster.node(f"n{number:02}")
        cluster.slice(f"n{number:02}", models(*"ab"[: 1 + number % 2]))
        taints = [{"key": f"k{number}", "effect": "NoSchedule"}]
        if number < 10:
            cluster.patch("nodes", f"n{number:02}", {"spec": {"taints": taints}})
    return asking(cluster, selectors=of_model("c"), count=2)


def nodes_that_lack_more_classes_come_last() -> Asked:
    cluster = base(3, 0)
    kind = f"device.attributes['{DRIVER}'].model"
    cluster.device_class("fast", f"{kind} == 'fast'")
    cluster.device_class("slow", f"{kind} == 'slow'")
    cluster.slice("n0", models("fast"))
    cluster.slice("n1", models("other"))
    requests = ({"name": one, "exactly": {"deviceClassName": one}} for one in ("fast", "slow"))
    return claim(cluster, *requests)


def slice_is_for_a_node_that_is_missing() -> Asked:
    cluster = base(1, 0)
    cluster.slice("gone", 2)
    only = {"key": "zone", "operator": "In", "values": ["z"]}
    spec = {
        "driver": DRIVER,
        "pool": {"name": "shelf", "generation": 1, "resourceSliceCount": 1},
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [only]}]},
        "devices": [{"name": "x"}],
    }
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "shelf", spec=spec)
    return asking(cluster)


def node_of_a_shared_pool() -> Asked:
    cluster = base(2, 1)
    spec = {
        "driver": DRIVER, "allNodes": True, "devices": [{"name": "x"}, {"name": "y"}],
        "pool": {"name": "shelf", "generation": 1, "resourceSliceCount": 1},
    }  # fmt: skip
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "shelf", spec=spec)
    return using(cluster, "a"), "node", "n0"


def pod_that_was_tried_often() -> Asked:
    cluster = using(base(1, 1), "a")
    asking(cluster)
    cluster.settle().wait(20)
    for number in range(3):
        cluster.patch("nodes", "n0", {"metadata": {"labels": {"x": f"v{number}"}}})
        cluster.settle().wait(400)
    return cluster, "pod", "p"


def scores_of_nodes_differ() -> Asked:
    cluster = base(3, 0)
    for name, cpu in (("b0", "20"), ("b1", "10")):
        cluster.pod(name, nodeName=f"n{name[1]}", requests={"cpu": cpu, "memory": "1Gi"})
    cluster.pod("p", requests={"cpu": "1"})
    return cluster.settle(), "pod", "p"


def resource_of_a_device_plugin() -> Asked:
    cluster = base(2, 0)
    amounts = {"allocatable": {"example.com/gpu": "1"}, "capacity": {"example.com/gpu": "1"}}
    cluster.patch("nodes", "n0", {"status": amounts}, subresource="status")
    cluster.pod("p", requests={"example.com/gpu": "2"})
    return cluster, "pod", "p"


def replicaset_whose_pods_a_quota_refuses() -> Asked:
    cluster = base(1)
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {"pods": "1"}})
    cluster.settle()
    body = {"containers": [{"name": "m", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": body}
    selector = {"matchLabels": {"app": "w"}}
    spec = {"replicas": 3, "selector": selector, "template": template}
    cluster.create("apps/v1", "ReplicaSet", "web", spec=spec)
    return cluster.settle().wait(5), "replicaset", "web"


def quota_of_pods() -> Asked:
    cluster, *_ = replicaset_whose_pods_a_quota_refuses()
    return cluster, "resourcequota", "few"


def containers_that_are_not_ready() -> Asked:
    cluster = using(base(1), "p")
    statuses = [
        {"name": "main", "state": {"running": {}}, "ready": False, "restartCount": 0},
    ]
    conditions = [
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
        {"type": "example.com/linked", "status": "False", "message": "no link"},
    ]
    status = {
        "phase": "Running",
        "conditions": conditions,
        "containerStatuses": [each | {"image": "i", "imageID": ""} for each in statuses],
    }
    cluster.patch("pods", "p", {"status": status}, subresource="status")
    return cluster, "pod", "p"


def container_that_fails_again_and_again() -> Asked:
    cluster = using(base(1), "p")
    waits = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}
    status = {
        "name": "main", "ready": False, "restartCount": 7, "image": "i", "imageID": "",
        "state": {"waiting": waits},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }  # fmt: skip
    body = {"status": {"phase": "Running", "containerStatuses": [status]}}
    cluster.patch("pods", "p", body, subresource="status")
    cluster.claim("c", count=2)
    cluster.pod("q", claim="c")
    return cluster, "pod", "p"


def holder_that_fails_again_and_again() -> Asked:
    cluster, *_ = container_that_fails_again_and_again()
    return cluster, "pod", "q"


def device_whose_attributes_and_taints_changed() -> Asked:
    cluster = using(base(1), "a")
    taint = {"key": "k", "effect": "NoSchedule"}
    for number, taints in enumerate(([taint], [], [{**taint, "value": "v"}])):
        tree = deepcopy(cluster.wait(60).must("resourceslices", "n0-slice"))
        attributes = {"health": {"int": number}}
        tree["spec"]["devices"][0] = {"name": "gpu-0", "attributes": attributes, "taints": taints}
        cluster.update("resourceslices", tree)
    cluster.rule("r", effect="NoSchedule")
    cluster.wait(30).delete("devicetaintrules", "r")
    cluster.kill("a")
    cluster.delete("resourceclaims", "a")
    return cluster.settle().wait(10), "device", f"{DRIVER}/n0/gpu-0"


def device_that_is_published_no_more() -> Asked:
    cluster = using(base(1), "a")
    cluster.wait(60).delete("resourceslices", "n0-slice")
    cluster.slice("n0", 2, name="anew", pool="anew")
    return cluster.settle().wait(60), "device", f"{DRIVER}/n0/gpu-0"


def claim_whose_device_is_published_no_more() -> Asked:
    cluster, *_ = device_that_is_published_no_more()
    return cluster, "resourceclaim", "a"


def class_whose_selector_fails() -> Asked:
    cluster = base(2, 0)
    cluster.slice("n0", models("a", "b"))
    cluster.slice("n1", 1)
    cluster.device_class("odd", f"device.attributes['{DRIVER}'].model == 'a'")
    cluster.template(class_name="odd")
    cluster.claim("c", class_name="odd")
    cluster.pod("p", claim="c")
    return cluster, "deviceclass", "odd"


def pod_whose_class_fails() -> Asked:
    cluster, *_ = class_whose_selector_fails()
    return cluster.settle(), "pod", "p"


def claim_with_a_constraint() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "b", "a"))
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
    claim(cluster, request, constraints=({"matchAttribute": f"{DRIVER}/model"},))
    return cluster.settle(), "resourceclaim", "c"


def claim_with_two_shares_of_one_device() -> Asked:
    """What is requested is bound to one value, which a device in two shares has once."""
    cluster = base(1, 0)
    memory = {"memory": {"value": "40G"}}
    cluster.slice("n0", [
        {**one, "allowMultipleAllocations": True, "capacity": memory} for one in models("a", "a")
    ])  # fmt: skip
    requests = [
        {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **ask}}
        for name, count, amount in (("a", 2, "15Gi"), ("b", 1, "5G"))
        for ask in [{"capacity": {"requests": {"memory": amount}}}]
    ]
    claim(cluster, *requests, constraints=({"matchAttribute": f"{DRIVER}/model"},))
    return cluster.settle(), "resourceclaim", "c"


def claim_whose_devices_have_values_in_common() -> Asked:
    """Lists match in a part of their values; `1` and 1 match nowhere."""
    cluster = Cluster(profile=Profile(gates={"DRAListTypeAttributes": True}))
    cluster.node("n0")
    cluster.device_class()
    values = (("1", ["r1", "r2"]), (1, ["r2", "r3", "r1"]))
    devices = [
        {"name": f"g{n}", "attributes": {"root": {"strings": roots}, "slot": {kind: slot}}}
        for n, (slot, roots) in enumerate(values)
        for kind in ["string" if slot == "1" else "int"]
    ]
    cluster.slice("n0", devices)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
    bound = ({"matchAttribute": f"{DRIVER}/root"}, {"distinctAttribute": f"{DRIVER}/slot"})
    claim(cluster, request, constraints=bound)
    return cluster.settle(), "resourceclaim", "c"


def claim_whose_constraints_hold_no_longer() -> Asked:
    cluster, *asked = claim_whose_devices_have_values_in_common()
    root = {"strings": ["r3", "r4"]}
    devices = [
        {"name": "g0", "attributes": {"root": {"string": "r1"}, "slot": {"bool": True}}},
        {"name": "g1", "attributes": {"root": root, "slot": {"bool": True}}},
    ]
    cluster.patch("resourceslices", "n0-slice", {"spec": {"devices": devices}})
    return cluster, *asked


def claim_that_was_chosen_for_a_pod_that_is_gone() -> Asked:
    cluster = using(base(1), "a")
    cluster.kill("a")
    return cluster.settle(), "resourceclaim", "a"


def pod_that_waited_until_it_was_deleted() -> Asked:
    cluster = using(base(1, 1), "a")
    asking(cluster)
    cluster.settle().wait(30)
    cluster.kill("p")
    return cluster, "pod", "p"


def budget_that_allows_no_eviction() -> Asked:
    cluster = base(2)
    selector = {"matchLabels": {"app": "w"}}
    spec = {"minAvailable": 1, "selector": selector}
    cluster.create("policy/v1", "PodDisruptionBudget", "b", spec=spec)
    pod(cluster, "w", "w")
    cluster.settle()
    cordon(cluster, "n0")
    return cluster.settle(), "node", "n0"


def lost(cluster: Cluster, *nodes: str, devices: int = 1) -> None:
    """Slices for nodes that do not exist."""
    for name in nodes:
        cluster.slice(name, devices, name=f"of-{name}")


def slices_for_more_missing_nodes_than_are_named() -> Asked:
    cluster = base(2, 0)
    lost(cluster, "x0", "x1", "x2", "x3", "x4")
    return asking(cluster)


def slices_by_labels_that_no_node_has() -> Asked:
    cluster = base(2, 0)
    for number, values in enumerate((["c"], ["c"], ["d", "e"])):
        expression = {"key": "zone", "operator": "In", "values": values}
        choice = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        pool = {"name": f"z{number}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeSelector": choice, "pool": pool, "devices": [{"name": "d"}]}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"z{number}", spec=spec)
    return asking(cluster)


def free_devices_are_for_nodes_that_are_missing() -> Asked:
    cluster = using(base(1, 1), "a")
    lost(cluster, "x0", "x1", "x2", "x3", "x4", devices=2)
    return asking(cluster)


def single_devices_are_for_nodes_that_are_missing() -> Asked:
    cluster = using(base(1, 1), "a")
    nodes = ("x0", "x0", "n0", "x1", "x2", "x3")
    devices = [{"name": f"d{n}", "nodeName": node} for n, node in enumerate(nodes)]
    pool = {"name": "far", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "perDeviceNodeSelection": True, "pool": pool, "devices": devices}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "far", spec=spec)
    using(cluster, "b")
    return asking(cluster)


def class_whose_devices_are_on_a_missing_node() -> Asked:
    cluster = base(1, 1)
    cluster.slice("x0", models("a", "b", "a"), name="of-x0")
    selector = f"device.attributes['{DRIVER}'].?model.orValue('') == 'a'"
    cluster.device_class("a", selector)
    return asking(cluster, class_name="a")


def devices_are_for_other_nodes() -> Asked:
    """Each of five pools on a cordoned node; the other node has none."""
    cluster = base(2, 0)
    for number in range(5):
        cluster.slice("n0", number + 1, name=f"s{number}", pool=f"p{number}")
    cordon(cluster, "n0")
    return asking(cluster)


def held_again(cluster: Cluster, name: str, other: str) -> None:
    """A claim with the devices of another one."""
    source = cluster.must("resourceclaims", other)
    spec = {"devices": source["spec"]["devices"]}
    made = deepcopy(cluster.create("resource.k8s.io/v1", "ResourceClaim", name, spec=spec))
    made["status"] = {"allocation": source["status"]["allocation"]}
    cluster.update("resourceclaims", made, "status")


def device_in_three_claims() -> Asked:
    cluster = using(base(1, 1), "a")
    held_again(cluster, "b", "a")
    cluster.wait(5)
    held_again(cluster, "d", "a")
    return cluster, "device", f"{DRIVER}/n0/gpu-0"


def claim_whose_device_others_have() -> Asked:
    cluster, *_ = device_in_three_claims()
    return cluster, "resourceclaim", "b"


def pod_whose_device_others_have() -> Asked:
    cluster, *_ = device_in_three_claims()
    return cluster, "pod", "a"


def pod_that_wants_a_device_of_three_claims() -> Asked:
    cluster, *_ = device_in_three_claims()
    return asking(cluster, count=1)


def shares_of_a_device() -> Asked:
    """Four claims have shares in four notations; what is left is less than the least step."""
    cluster = base(1, 0)
    limits = {"min": "1G", "step": "1G", "max": "8G"}
    memory = {"value": "10Gi", "requestPolicy": {"default": "1G", "validRange": limits}}
    devices = [{"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": memory}}]
    cluster.slice("n0", devices)
    for name, amount in (("a", "4G"), ("b", "2500M"), ("e", "1500Mi"), ("f", "1")):
        cluster.claim(name, capacity={"requests": {"memory": amount}})
        cluster.pod(name, claim=name)
        cluster.settle()
    return asking(cluster, capacity={"requests": {"memory": "1500M"}})


def node_is_short_of_memory_in_other_units() -> Asked:
    cluster = base(1, 0)
    for name, amount in (("a", "30G"), ("b", "20Gi"), ("d", "1500Mi"), ("e", "250M")):
        cluster.pod(name, requests={"memory": amount})
    cluster.settle()
    cluster.pod("p", requests={"memory": "17G"})
    return cluster, "pod", "p"


def quota_of_memory_in_other_units() -> Asked:
    cluster = base(1, 0)
    hard = {"requests.memory": "4Gi", "pods": "10"}
    cluster.create("v1", "ResourceQuota", "q", spec={"hard": hard})
    for name, amount in (("a", "1G"), ("b", "1Gi"), ("d", "512Mi")):
        cluster.pod(name, requests={"memory": amount})
    return cluster.settle(), "resourcequota", "q"


def pod_that_ends_on_a_node_that_is_silent() -> Asked:
    """Nobody reports its end: the node is not ready, and no kubelet says anything for minutes."""
    cluster = using(base(1), "a")
    cluster.delete("pods", "a", grace_seconds=30)
    status = {
        "conditions": [
            {
                "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": "2026-01-02T03:00:05Z",
            }
        ]
    }  # fmt: skip
    cluster.patch("nodes", "n0", {"status": status}, subresource="status")
    return cluster.settle().wait(150), "pod", "a"


def pod_that_waits_for_a_device_of_a_silent_node() -> Asked:
    cluster, *_ = pod_that_ends_on_a_node_that_is_silent()
    cluster.node("n1")
    return asking(cluster, count=2)


def pod_that_has_not_started_for_minutes() -> Asked:
    cluster = using(base(1), "a").wait(200)
    cluster.claim("later")
    return cluster, "pod", "a"


def pod_of_which_no_container_names_claims() -> Asked:
    cluster = base(1, 3)
    for name in ("c", "d", "e"):
        cluster.claim(name)
    containers = [
        {"name": "main", "image": "busybox:1", "resources": {"claims": [{"name": "e1"}]}},
        {"name": "side", "image": "busybox:1"},
    ]
    pod(cluster, "p", "w", containers=containers, resourceClaims=named("c", "d", "e"))
    return cluster.settle(), "pod", "p"


def noted(cluster: Cluster, place: tuple[str, str], name: str, **body: object) -> None:
    """A request that an audit log or a log of a kubelet shows."""
    key = ObjectKey(*place, "default", name)
    fact = RecordFact(type=EventType.REQUEST_OBSERVED.value, key=key, body=body)
    cluster.line.submit(fact, actor=Actor(user="bob"))


def pod_whose_kubelet_logged_failures() -> Asked:
    cluster = using(base(1), "a")
    for verb, message in (
        (KUBELET_REPORT, "SyncLoop ADD"),
        (KUBELET_FAILURE, "gpu-0 did not answer"),
        (KUBELET_FAILURE, "gpu-0 is gone"),
        (KUBELET_REPORT, "SyncLoop UPDATE"),
    ):
        noted(cluster, api_resources.PODS, "a", verb=verb, message=message)
    return cluster, "pod", "a"


def pod_of_which_writes_were_refused() -> Asked:
    cluster = using(base(1), "a")
    noted(cluster, api_resources.PODS, "a", verb="patch", code=409, message="Conflict: before")
    cluster.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    for code, message in ((403, "Forbidden: other"), (422, "Invalid: one"), (422, "Invalid: one")):
        noted(cluster, api_resources.PODS, "a", verb="update", code=code, message=message)
    return cluster, "pod", "a"


def claim_of_which_a_write_was_refused() -> Asked:
    cluster = using(base(1), "a")
    place = api_resources.RESOURCE_CLAIMS
    noted(cluster, place, "a", verb="delete", code=403, message="Forbidden: no")
    return cluster, "resourceclaim", "a"


def pod_about_which_others_speak() -> Asked:
    cluster = using(base(1, 1), "a")
    asking(cluster)
    cluster.settle()
    uid = cluster.must("pods", "p")["metadata"]["uid"]
    for number, (who, reason, about, count) in enumerate((
        ("scaler", "NotTriggerScaleUp", uid, 3),
        ("scaler", "NotTriggerScaleUp", uid, 7),
        ("scaler", "TriggeredScaleUp", "", 1),
        ("queue", "", uid, 2),
        ("late", "Held", uid, 1),
        ("kubelet", "Pulled", uid, 1),
        ("other", "Gone", "another", 1),
    )):  # fmt: skip
        subject = {"kind": "Pod", "namespace": "default", "name": "p", "uid": about}
        cluster.create(
            "v1", "Event", f"said-{number}", reason=reason, message=f"words {number}", count=count,
            involvedObject=subject, source={"component": who}, type="Normal",
        )  # fmt: skip
    return cluster, "pod", "p"


def fields_that_are_not_stored() -> Asked:
    """What was applied has a field of which the gate is off."""
    cluster = base(1, 0)
    applied = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n0-slice"},
        "spec": {"devices": [{"name": "d", "attributes": {"model": {"strings": ["a", "b"]}}}]},
    }
    cluster.slice("n0", models("a", "b"))
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)}
    cluster.patch("resourceslices", "n0-slice", {"metadata": {"annotations": annotation}})
    return asking(cluster, selectors=of_model("c"))


def pod_that_was_tried_twice_alike() -> Asked:
    cluster = using(base(1, 1), "a")
    asking(cluster)
    cluster.settle().wait(20)
    cluster.patch("nodes", "n0", {"metadata": {"labels": {"x": "v"}}})
    return cluster.settle().wait(20), "pod", "p"


def devices_are_used_by_pods_with_templates() -> Asked:
    cluster = base(2, 3)
    cluster.template()
    for number in range(5):
        cluster.pod(f"t{number}", template="gpu")
        cluster.settle()
    return asking(cluster, count=3)


def pod_whose_claim_nobody_makes() -> Asked:
    cluster = base(1)
    cluster.stop("claims")
    cluster.template()
    cluster.pod("p", template="gpu")
    return cluster, "pod", "p"


def class_of_many_pools() -> Asked:
    return base(12, 1), "deviceclass", "gpu"


def holder_whose_pod_is_gone() -> Asked:
    """The claim controller is away, so the reservations stay."""
    cluster = using(base(1), "a", "b")
    cluster.stop("claims")
    cluster.kill("a")
    return asking(cluster, count=1)


def holders_whose_pods_are_gone() -> Asked:
    cluster = using(base(1), "a", "b")
    cluster.stop("claims")
    for name in ("a", "b"):
        cluster.kill(name)
    return asking(cluster, count=2)


def tolerations_that_do_not_fit_the_taint() -> Asked:
    cluster = base(1)
    taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}]
    cluster.patch("nodes", "n0", {"spec": {"taints": taints}})
    tolerations = [
        {"key": "team", "operator": "Equal", "value": "y"},
        {"key": "team", "operator": "Exists", "effect": "NoExecute"},
        {"operator": "Exists", "effect": "NoExecute"},
        {"key": "teams", "operator": "Exists"},
    ]
    cluster.claim("c")
    cluster.pod("p", claim="c", tolerations=tolerations)
    return cluster, "pod", "p"


# what was otherwise before


def devices_that_changed_away() -> Asked:
    """The slice of each node had a device for the pod before; one node and one slice are gone."""
    cluster = base(4, 0)
    for node in ("n0", "n1", "n2", "n3"):
        cluster.slice(node, models("a", "b"))
    cluster.settle().wait(5)
    for node, names in (("n0", "cb"), ("n1", "b")):
        tree = deepcopy(cluster.must("resourceslices", f"{node}-slice"))
        tree["spec"]["devices"] = models(*names)
        cluster.update("resourceslices", tree)
    cluster.delete("resourceslices", "n2-slice")
    cluster.delete("resourceslices", "n3-slice")
    cluster.delete("nodes", "n3")
    cluster.settle().wait(5)
    return asking(cluster, selectors=of_model("a"))


def class_that_selected_otherwise() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "b"))
    cluster.device_class("some", of_model("a")[0]["cel"]["expression"])
    using(cluster)
    cluster.claim("kept", class_name="some")
    cluster.pod("kept", claim="kept")
    cluster.settle().wait(5)
    spec = {"selectors": of_model("c")}
    cluster.patch("deviceclasses", "some", {"spec": spec})
    return asking(cluster, class_name="some")


def class_and_request_select() -> Asked:
    """The class alone excludes the device: dropping the selector of the request would not help."""
    cluster = base(1, 0)
    cluster.slice("n0", models("b"))
    cluster.device_class("some", of_model("a")[0]["cel"]["expression"])
    return asking(cluster, class_name="some", selectors=of_model("b"))


def claim_that_its_class_would_not_get() -> Asked:
    cluster, *_ = class_that_selected_otherwise()
    return cluster, "resourceclaim", "kept"


def devices_that_a_patch_takes_away() -> Asked:
    cluster = base(2, 0)
    for node in ("n0", "n1"):
        cluster.slice(node, models("a", "b"))
    cluster.claim("kept", selectors=of_model("a"))
    cluster.pod("kept", claim="kept")
    cluster.settle().wait(5)
    spec = {
        "filter": {"deviceClassName": "gpu", "selectors": of_model("a")},
        "attributes": {f"{DRIVER}/model": {"string": "z"}},
    }
    version = "resource.k8s.io/v1alpha3"
    cluster.create(version, "ResourceSlicePatch", "away", spec={"devices": spec})
    return asking(cluster.settle().wait(5), selectors=of_model("a"))


def devices_of_a_driver_with_another_name() -> Asked:
    """The slices of one driver went, and another one publishes devices of the same names."""
    cluster = base(2, 3)
    cluster.claim("a", count=2)
    cluster.pod("a", claim="a", nodeSelector={"zone": "a"})
    cluster.settle().wait(5)
    for node in ("n0", "n1"):
        cluster.delete("resourceslices", f"{node}-slice")
    for number, name in enumerate(("one", "two", "far")):
        spec = {
            "driver": "anew.example.com", "nodeName": f"n{number // 2}",
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number % 2}"}, {"name": "spare"}],
        }  # fmt: skip
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"slice-{name}", spec=spec)
    return cluster.settle(), "resourceclaim", "a"


# what a kubelet, a volume or a node keeps away


def pod_that_nobody_scheduled() -> Asked:
    """One claim is missing, one has no devices, one is another pod's, one was never made."""
    cluster = using(base(2), "a")
    cluster.claim("free")
    cluster.template("unused")
    entries = [*named("gone", "free", "a"), {"name": "t", "resourceClaimTemplateName": "none"}]
    cluster.pod("p", resourceClaims=entries, nodeName="n1")
    return cluster.settle().wait(5), "pod", "p"


def volumes_that_are_for_other_nodes() -> Asked:
    cluster = base(3)
    for number, zones in enumerate((["a"], ["b", "c"], [])):
        terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}]
        required = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zones else {}
        size = {"storage": "1Gi"}
        cluster.create("v1", "PersistentVolume", f"v{number}", spec={
            "accessModes": ["ReadWriteOnce"], "capacity": size,
            "hostPath": {"path": "/v"}, **required,
        })  # fmt: skip
        cluster.create("v1", "PersistentVolumeClaim", f"d{number}", spec={
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": size},
            "volumeName": f"v{number}",
        })  # fmt: skip
    names = ("d0", "d1", "d2")
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    cluster.pod("p", volumes=volumes)
    return cluster, "pod", "p"


def pods_of_a_node_that_is_gone() -> Asked:
    cluster = using(base(2), "a", "b")
    cluster.patch("pods", "b", {"metadata": {"finalizers": ["example.com/hold"]}})
    for name in ("a", "b"):
        cluster.delete("pods", name, grace_seconds=30)
    for node in ("n0", "n1"):
        cluster.delete("nodes", node)
    return cluster, "pod", "a"


def node_that_was_booted_anew() -> Asked:
    cluster = base(1)
    status = {"nodeInfo": {"bootID": "one"}}
    cluster.patch("nodes", "n0", {"status": status}, subresource="status")
    using(cluster, "a")
    status = {"nodeInfo": {"bootID": "two"}}
    cluster.patch("nodes", "n0", {"status": status}, subresource="status")
    return cluster.wait(20), "pod", "a"


def daemonset_that_leaves_nodes_out() -> Asked:
    cluster = base(4)
    for node in ("n0", "n1", "n2"):
        taints = [{"key": "own", "effect": "NoSchedule"}]
        cluster.patch("nodes", node, {"spec": {"taints": taints if node != "n2" else []}})
    labels = {"app": "d"}
    containers = [{"name": "m", "image": "i"}]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": containers, "nodeSelector": {"zone": "a"}},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    cluster.create("apps/v1", "DaemonSet", "d", spec=spec)
    return cluster.settle(), "daemonset", "d"


def evicted_although_a_budget_allowed_none() -> Asked:
    cluster = using(base(1), "a")
    cluster.patch("pods", "a", {"metadata": {"labels": {"app": "w"}}})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}
    cluster.create("policy/v1", "PodDisruptionBudget", "keep", spec=spec)
    cluster.settle().wait(5)
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(5), "pod", "a"


def node_with_more_pools_than_are_named() -> Asked:
    cluster = base(2, 0)
    for number in range(7):
        cluster.slice("n0", 1, name=f"s{number}", pool=f"p{number}")
    for number in range(6):
        pool = {"name": f"all{number}", "generation": 1, "resourceSliceCount": 1}
        spec = {
            "driver": DRIVER, "allNodes": True, "pool": pool, "devices": [{"name": f"d{number}"}]
        }  # fmt: skip
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"all{number}", spec=spec)
    return cluster, "node", "n0"


def many_pods_that_a_cordon_keeps_out() -> Asked:
    cluster = base(1, 6)
    cordon(cluster, "n0")
    for number in range(6):
        cluster.claim(f"c{number}")
        cluster.pod(f"p{number}", claim=f"c{number}")
    return cluster.settle(), "node", "n0"


STATES: dict[str, Callable[[], Asked]] = {
    world.__name__: world
    for world in (
        pods_are_to_be_spread_over_zones,
        pods_are_to_be_spread_over_more_zones_than_there_are,
        pods_that_avoid_each_other,
        pod_that_wants_another_one_near,
        pod_that_wants_another_one_near_that_waits,
        node_affinity_has_two_terms,
        node_selector_has_two_labels,
        host_port_is_in_use,
        nodes_are_short_of_cpu_and_have_devices,
        requests_of_which_some_fail,
        last_alternative_is_more_than_a_node_has,
        requests_that_fail_together,
        two_claims_of_which_one_is_too_large,
        two_claims_that_want_one_device,
        two_entries_that_name_one_claim,
        patch_fails_on_the_devices_that_lack_its_value,
        two_patches_of_one_attribute,
        counters_are_used_up,
        capacity_is_used_up,
        class_of_another_driver,
        extended_resource_is_more_than_a_node_has,
        taint_of_a_rule_is_not_tolerated,
        nodes_refuse_for_different_reasons,
        holders_that_are_to_end,
        claim_is_allocated_on_another_node,
        pool_of_an_older_generation,
        pool_that_lacks_slices,
        other_nodes_had_an_earlier_alternative,
        cordoned_node_had_an_earlier_alternative,
        devices_are_not_ready,
        rule_that_evicts,
        pod_on_devices_that_its_driver_taints,
        pod_that_is_preempted_for_another,
        deployment_of_which_half_waits,
        statefulset_goes_on_one_by_one,
        daemonset_on_every_node,
        job_whose_pods_failed,
        template_is_refused_by_a_quota,
        names_that_differ_a_little,
        class_that_is_missing,
        volume_claims,
        gate_that_is_set,
        node_is_not_ready,
        pod_that_was_deleted_by_force,
        nodes_that_refuse_in_ten_ways,
        nodes_that_lack_more_classes_come_last,
        slice_is_for_a_node_that_is_missing,
        node_of_a_shared_pool,
        pod_that_was_tried_often,
        scores_of_nodes_differ,
        resource_of_a_device_plugin,
        replicaset_whose_pods_a_quota_refuses,
        containers_that_are_not_ready,
        container_that_fails_again_and_again,
        device_whose_attributes_and_taints_changed,
        device_that_is_published_no_more,
        class_whose_selector_fails,
        claim_with_a_constraint,
        claim_with_two_shares_of_one_device,
        claim_that_was_chosen_for_a_pod_that_is_gone,
        pod_that_waited_until_it_was_deleted,
        budget_that_allows_no_eviction,
        devices_that_changed_away,
        class_that_selected_otherwise,
        devices_that_a_patch_takes_away,
        devices_of_a_driver_with_another_name,
        pod_that_nobody_scheduled,
        volumes_that_are_for_other_nodes,
        pods_of_a_node_that_is_gone,
        node_that_was_booted_anew,
        daemonset_that_leaves_nodes_out,
        evicted_although_a_budget_allowed_none,
        node_with_more_pools_than_are_named,
        many_pods_that_a_cordon_keeps_out,
    )
}

WORLDS = STATES | {
    world.__name__: world
    for world in (
        patch_that_fails,
        patch_that_another_one_overrides,
        device_that_two_patches_change,
        device_with_shares,
        cordoned_node,
        claim_that_a_finalizer_keeps,
        pod_that_a_finalizer_keeps,
        slice_of_an_older_generation,
        claim_of_an_older_generation,
        device_of_an_older_generation,
        slice_of_a_pool_that_lacks_slices,
        pod_with_a_later_alternative,
        claim_whose_device_is_not_ready,
        pod_that_a_rule_evicts,
        claim_of_a_pod_that_a_rule_evicts,
        device_that_a_rule_taints,
        node_with_tainted_devices,
        pool_with_tainted_devices,
        pod_for_which_another_is_preempted,
        quota_that_refuses_a_claim,
        template_of_which_a_claim_is_refused,
        claim_of_a_class_that_is_missing,
        node_that_is_not_ready,
        quota_of_pods,
        holder_that_fails_again_and_again,
        claim_whose_device_is_published_no_more,
        pod_whose_class_fails,
        claim_whose_devices_have_values_in_common,
        claim_whose_constraints_hold_no_longer,
        slices_for_more_missing_nodes_than_are_named,
        slices_by_labels_that_no_node_has,
        free_devices_are_for_nodes_that_are_missing,
        single_devices_are_for_nodes_that_are_missing,
        class_whose_devices_are_on_a_missing_node,
        devices_are_for_other_nodes,
        device_in_three_claims,
        claim_whose_device_others_have,
        pod_whose_device_others_have,
        pod_that_wants_a_device_of_three_claims,
        shares_of_a_device,
        node_is_short_of_memory_in_other_units,
        quota_of_memory_in_other_units,
        pod_that_ends_on_a_node_that_is_silent,
        pod_that_waits_for_a_device_of_a_silent_node,
        pod_that_has_not_started_for_minutes,
        pod_of_which_no_container_names_claims,
        pod_whose_kubelet_logged_failures,
        pod_of_which_writes_were_refused,
        claim_of_which_a_write_was_refused,
        pod_about_which_others_speak,
        fields_that_are_not_stored,
        pod_that_was_tried_twice_alike,
        devices_are_used_by_pods_with_templates,
        pod_whose_claim_nobody_makes,
        class_of_many_pools,
        holder_whose_pod_is_gone,
        holders_whose_pods_are_gone,
        tolerations_that_do_not_fit_the_taint,
        claim_that_its_class_would_not_get,
    )
}
"""All questions; those after the states ask for something else in one of these."""

WIDE = STATES | {
    world.__name__: world
    for world in (
        pod_that_ends_on_a_node_that_is_silent,
        device_in_three_claims,
        shares_of_a_device,
        quota_of_memory_in_other_units,
        claim_that_a_finalizer_keeps,
        claim_whose_devices_have_values_in_common,
        claim_whose_constraints_hold_no_longer,
        claim_whose_device_is_published_no_more,
        pod_for_which_another_is_preempted,
        slices_for_more_missing_nodes_than_are_named,
        slices_by_labels_that_no_node_has,
        devices_are_for_other_nodes,
        fields_that_are_not_stored,
        pod_about_which_others_speak,
        devices_are_used_by_pods_with_templates,
        holders_whose_pods_are_gone,
    )
}
"""Worlds in which everything is asked about."""

HELPED: dict[str, Callable[[], Asked]] = {
    f"{world.__name__}_helped": world
    for world in (
        requests_of_which_some_fail,
        last_alternative_is_more_than_a_node_has,
        requests_that_fail_together,
        two_claims_that_want_one_device,
        counters_are_used_up,
        capacity_is_used_up,
        extended_resource_is_more_than_a_node_has,
        taint_of_a_rule_is_not_tolerated,
        nodes_refuse_for_different_reasons,
        claim_is_allocated_on_another_node,
        pool_that_lacks_slices,
        nodes_that_refuse_in_ten_ways,
        shares_of_a_device,
        node_is_short_of_memory_in_other_units,
        devices_are_for_other_nodes,
        devices_are_used_by_pods_with_templates,
        pod_that_wants_a_device_of_three_claims,
        template_is_refused_by_a_quota,
        pod_whose_class_fails,
        devices_are_not_ready,
        volumes_that_are_for_other_nodes,
        class_that_selected_otherwise,
        class_and_request_select,
        devices_that_a_patch_takes_away,
        class_that_is_missing,
        volume_claims,
        gate_that_is_set,
    )
}
"""Waiting pods that are also asked about with what would help."""
