"""Small clusters about which explanations say what they seldom say, for `seldom_answers.txt`."""

from collections.abc import Callable
from copy import deepcopy

from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import BindPod
from app.domain.values import api_resources
from tests.cluster import DRIVER, USER, Cluster
from tests.unit.analysis.explain.answered_worlds import (
    TREE,
    Asked,
    asking,
    base,
    claim,
    cordon,
    models,
    named,
    of_model,
    pod,
    selecting,
    using,
)


def gated(**gates: bool) -> Cluster:
    """As `base`, with a node of two devices and one of one, and other gates than by default."""
    cluster = Cluster(profile=Profile(gates=gates))
    for number in range(2):
        cluster.node(f"n{number}", zone="ab"[number])
    cluster.device_class()
    cluster.slice("n0", 2)
    cluster.slice("n1", 1)
    return cluster


def of_release(version: str, nodes: int = 2, **gates: bool) -> Cluster:
    cluster = Cluster(profile=Profile(version=version, gates=gates))
    for number in range(nodes):
        cluster.node(f"n{number}", zone="ab"[number % 2])
        cluster.slice(f"n{number}", 2)
    cluster.device_class()
    return cluster


def written(cluster: Cluster, name: str, *devices: str, node: str, **more: object) -> None:
    """The allocation of a claim and its reservations, as somebody writes it who is no scheduler."""
    tree = deepcopy(cluster.must("resourceclaims", name))
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": device} for device in devices
    ]
    tree["status"] = {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
        },
        **more,
    }
    cluster.update("resourceclaims", tree, "status")


def reserved(cluster: Cluster, *names: str) -> list[TREE]:
    uids = ((name, cluster.must("pods", name)["metadata"]["uid"]) for name in names)
    return [{"resource": "pods", "name": name, "uid": uid} for name, uid in uids]


# choices


def devices_that_somebody_else_chose() -> Asked:
    cluster = base(2)
    cluster.stop("scheduling")
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle().wait(5)
    written(cluster, "c", "gpu-1", node="n1", reservedFor=reserved(cluster, "p"))
    return cluster, "resourceclaim", "c"


def devices_that_somebody_else_chose_on_a_cordoned_node() -> Asked:
    cluster = base(2)
    cordon(cluster, "n1")
    cluster.stop("scheduling")
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle().wait(5)
    written(cluster, "c", "gpu-1", node="n1", reservedFor=reserved(cluster, "p"))
    return cluster, "resourceclaim", "c"


def tolerations_that_were_not_copied() -> Asked:
    """The allocation lacks the toleration of its request for a taint that comes later."""
    cluster = base(1)
    cluster.stop("scheduling")
    cluster.claim("c", tolerations=[{"key": "k", "operator": "Exists"}])
    cluster.pod("p", claim="c", nodeName="n0")
    cluster.settle().wait(5)
    written(cluster, "c", "gpu-0", node="n0", reservedFor=reserved(cluster, "p"))
    taint = {"key": "k", "effect": "NoExecute", "value": "v"}
    devices = [{"name": "gpu-0", "taints": [taint]}]
    cluster.stop("eviction")
    cluster.patch("resourceslices", "n0-slice", {"spec": {"devices": devices}})
    return cluster, "resourceclaim", "c"


def earlier_alternative_on_a_node_in_a_release_that_asks_one() -> Asked:
    cluster = Cluster(profile=Profile(version="1.34"))
    for number, model in enumerate(("old", "new", "new")):
        cluster.node(f"n{number}")
        cluster.slice(f"n{number}", models(model))
    cluster.device_class()
    for number in (1, 2):
        requests = {"cpu": "31", "memory": "60Gi"}
        cluster.pod(f"f{number}", nodeName=f"n{number}", requests=requests)
    first = [
        {"name": "best", "deviceClassName": "gpu", "selectors": of_model("new")},
        {"name": "next", "deviceClassName": "gpu", "selectors": of_model("old")},
    ]
    claim(cluster, {"name": "r", "firstAvailable": first})
    return cluster.settle().wait(5), "resourceclaim", "c"


def binding_that_failed_and_goes_on() -> Asked:
    """The device of the first attempt failed; the second one is not ready yet."""
    cluster = base(1, 0)
    devices = [
        {
            "name": name, "bindsToNode": True,
            "bindingConditions": ["a.b/ready"], "bindingFailureConditions": ["a.b/failed"],
        }
        for name in ("d0", "d1")
    ]  # fmt: skip
    cluster.slice("n0", devices)
    asking(cluster)
    for number in range(2):
        cluster.settle().wait(5)
        tree = deepcopy(cluster.must("resourceclaims", "c"))
        (result,) = tree["status"]["allocation"]["devices"]["results"]
        condition = {
            "type": "a.b/failed", "status": "True", "reason": "Off", "message": f"no link {number}",
            "lastTransitionTime": "2026-01-02T03:00:00Z",
        }  # fmt: skip
        device = {"driver": DRIVER, "pool": "n0", "device": result["device"]}
        tree["status"]["devices"] = [{**device, "conditions": [condition]}]
        cluster.update("resourceclaims", tree, "status")
        cluster.settle().wait(30)
    return cluster, "pod", "p"


# claims


def constraint_on_an_attribute_that_is_gone() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "a", "b"))
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}
    claim(cluster, request, constraints=({"matchAttribute": f"{DRIVER}/model"},))
    cluster.settle().wait(5)
    devices = [{"name": "g0", "attributes": {}}, {"name": "g2"}]
    cluster.patch("resourceslices", "n0-slice", {"spec": {"devices": devices}})
    return cluster, "resourceclaim", "c"


def claim_that_was_deleted_and_is_not_reserved() -> Asked:
    cluster = base(1)
    cluster.claim("c")
    cluster.pod("p", claim="c")
    cluster.settle().wait(5)
    cluster.stop("claims")
    tree = deepcopy(cluster.must("resourceclaims", "c"))
    del tree["status"]["reservedFor"]
    cluster.update("resourceclaims", tree, "status")
    cluster.delete("resourceclaims", "c")
    return cluster, "resourceclaim", "c"


def consumers_that_ended_in_three_ways() -> Asked:
    """One is no pod, one was replaced, one has ended; nobody ends their reservations."""
    cluster = using(base(1), "p")
    for name in ("q", "r"):
        cluster.pod(name, claim="p")
    cluster.settle().wait(5)
    cluster.stop("claims")
    tree = deepcopy(cluster.must("resourceclaims", "p"))
    gang = {"apiGroup": "x.test", "resource": "podgroups", "name": "gang", "uid": "u-1"}
    tree["status"]["reservedFor"].append(gang)
    cluster.update("resourceclaims", tree, "status")
    cluster.kill("q")
    cluster.stop("scheduling")
    cluster.pod("q", claim="p")
    cluster.finish("r", "Failed")
    cluster.delete("resourceclaims", "p")
    return cluster, "resourceclaim", "p"


def claim_that_only_a_group_of_pods_has() -> Asked:
    cluster = base(1)
    cluster.stop("scheduling")
    cluster.stop("claims")
    cluster.claim("c")
    keep = {"finalizers": ["resource.kubernetes.io/delete-protection"]}
    cluster.patch("resourceclaims", "c", {"metadata": keep})
    gang = {"apiGroup": "x.test", "resource": "podgroups", "name": "gang", "uid": "u-1"}
    cluster.settle().wait(5)
    written(cluster, "c", "gpu-0", node="n0", reservedFor=[gang])
    cluster.delete("resourceclaims", "c")
    cluster.pod("p", claim="c")
    return cluster.settle(), "resourceclaim", "c"


# what decisions leave out


def decision_that_names_few_causes() -> Asked:
    bounds = SummaryBounds(bytes_max=400, nodes_max=3)
    cluster = Cluster(options=ControllerOptions(summary=bounds))
    cluster.device_class()
    for number in range(5):
        cluster.node(f"n{number}")
        cluster.slice(f"n{number}", models(*"abcde"[: number + 1]))
    for number in range(5):
        cluster.claim(f"h{number}", selectors=of_model("abcde"[number]))
        cluster.pod(f"h{number}", claim=f"h{number}")
    cluster.settle().wait(5)
    asking(cluster, count=6)
    cluster.settle().kill("p")
    return cluster, "pod", "p"


# devices


def device_that_a_claim_tolerates_for_a_while() -> Asked:
    cluster = base(1)
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 100}
    cluster.claim("c", tolerations=[{**toleration, "effect": "NoExecute"}])
    cluster.claim("d", tolerations=[{"key": "k", "operator": "Exists"}])
    for name in ("c", "d"):
        cluster.pod(name, claim=name)
    cluster.settle().wait(5)
    cluster.stop("eviction")
    cluster.rule("r", selector={"driver": DRIVER}, key="k")
    cluster.patch("devicetaintrules", "r", {"spec": {"taint": {"key": "k", "value": "v"}}})
    return cluster.settle(), "pod", "c"


def device_that_changed_often() -> Asked:
    cluster = using(base(1, 0))
    counters = {"memory": {"value": "40"}}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "sets", spec={
        "driver": DRIVER, "nodeName": "n0",
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 2},
        "sharedCounters": [{"name": "chip", "counters": counters}],
    })  # fmt: skip
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "parts", spec={
        "driver": DRIVER, "nodeName": "n0", "devices": [{"name": "d"}],
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 2},
    })  # fmt: skip
    for number in range(24):
        uses = [{"counterSet": "chip", "counters": {"memory": {"value": str(10 + number)}}}]
        attributes = {"step": {"int": number}, "odd": {"bool": bool(number % 2)}}
        device = {"name": "d", "attributes": attributes, "consumesCounters": uses}
        cluster.patch("resourceslices", "parts", {"spec": {"devices": [device]}})
        cluster.wait(10)
    return cluster, "device", f"{DRIVER}/n0/d"


def device_that_many_claims_had() -> Asked:
    cluster = base(1, 1)
    for number in range(24):
        using(cluster, f"a{number}")
        cluster.kill(f"a{number}")
        cluster.settle().wait(2)
        cluster.delete("resourceclaims", f"a{number}")
    return cluster.settle(), "device", f"{DRIVER}/n0/gpu-0"


# pools


def pool_that_was_empty_and_came_back_in_part() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a"), name="one")
    cluster.wait(5).delete("resourceslices", "one")
    cluster.wait(5)
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 3}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "two", spec={
        "driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": [{"name": "a"}],
    })  # fmt: skip
    return asking(cluster.wait(5))


def generation_that_is_on_another_node() -> Asked:
    """The scheduler looks at the slices for a node alone, and there the older one is whole."""
    cluster = base(2, 0)
    cluster.slice("n0", models("a", "b"), name="old", pool="shelf")
    cluster.claim("a")
    cluster.pod("a", claim="a")
    cluster.settle().wait(5)
    cluster.slice("n1", models("c"), name="new", pool="shelf", generation=2)
    return cluster.settle().wait(5), "node", "n0"


def pool_whose_new_generation_lacks_slices() -> Asked:
    cluster = base(1, 0)
    for number in range(10):
        pool = {"name": "n0", "generation": 1, "resourceSliceCount": 10}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"old-{number}", spec={
            "driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": [{"name": f"x{number}"}],
        })  # fmt: skip
    cluster.wait(5)
    pool = {"name": "n0", "generation": 2, "resourceSliceCount": 2}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "new", spec={
        "driver": DRIVER, "nodeName": "n0", "pool": pool, "devices": [{"name": "a"}],
    })  # fmt: skip
    return asking(cluster.wait(5))


def counter_set_that_is_not_declared() -> Asked:
    cluster = base(2, 0)
    for node, sets in (("n0", ["chip", "core"]), ("n1", [])):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1 + bool(sets)}
        uses = [{"counterSet": "chips", "counters": {"memory": {"value": "1"}}}]
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"of-{node}", spec={
            "driver": DRIVER, "nodeName": node, "pool": pool,
            "devices": [{"name": "d", "consumesCounters": uses}],
        })  # fmt: skip
        if sets:
            counters = [{"name": name, "counters": {"memory": {"value": "4"}}} for name in sets]
            cluster.create("resource.k8s.io/v1", "ResourceSlice", f"sets-{node}", spec={
                "driver": DRIVER, "nodeName": node, "pool": pool, "sharedCounters": counters,
            })  # fmt: skip
    return asking(cluster)


def device_that_two_slices_publish() -> Asked:
    cluster = base(2, 0)
    for node in ("n0", "n1"):
        pool = {"name": "shelf", "generation": 1, "resourceSliceCount": 2}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"of-{node}", spec={
            "driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "d"}],
        })  # fmt: skip
    return asking(using(cluster, "a"))


# rules and patches


def rule_while_its_gate_is_off() -> Asked:
    cluster = using(gated(DRADeviceTaintRules=False), "a")
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(5), "devicetaintrule", "r"


def rule_while_all_taints_are_off() -> Asked:
    cluster = using(gated(DRADeviceTaintRules=False, DRADeviceTaints=False), "a")
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(5), "devicetaintrule", "r"


def rule_without_a_selector() -> Asked:
    cluster = using(base(1), "a")
    cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "r", spec={
        "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
    })  # fmt: skip
    return cluster.settle().wait(5), "devicetaintrule", "r"


def rule_that_the_scheduler_does_not_see() -> Asked:
    cluster = of_release("1.36.1", DRADeviceTaintRules=True)
    for name, driver, effect in (
        ("r", DRIVER, "NoExecute"), ("far", "x.test", "NoExecute"), ("soft", DRIVER, "NoSchedule")
    ):  # fmt: skip
        cluster.create("resource.k8s.io/v1beta2", "DeviceTaintRule", name, spec={
            "deviceSelector": {"driver": driver},
            "taint": {"key": "k", "value": name, "effect": effect},
        })  # fmt: skip
    return asking(cluster, count=3)


def rule_over_a_claim_that_nobody_uses() -> Asked:
    cluster = using(base(1), "a")
    cluster.stop("claims")
    tree = deepcopy(cluster.must("resourceclaims", "a"))
    del tree["status"]["reservedFor"]
    cluster.update("resourceclaims", tree, "status")
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(5), "devicetaintrule", "r"


def rule_over_a_claim_of_an_extended_resource() -> Asked:
    cluster = base(1, 1)
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "ext", spec=spec)
    cluster.pod("p", requests={"example.com/gpu": "1"})
    cluster.settle().wait(5)
    cluster.rule("r", key="k", value="v")
    return cluster.settle().wait(5), "devicetaintrule", "r"


def patches_of_other_priorities() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models("a", "b"))
    version = "resource.k8s.io/v1alpha3"
    for name, priority, selectors in (
        ("high", 10, of_model("a")),
        ("low", 1, of_model("a")),
        ("odd", 1, selecting("device.attributes.nothing(")),
    ):
        spec = {
            "filter": {"selectors": selectors},
            "attributes": {f"{DRIVER}/model": {"string": name}},
            "priority": priority,
        }
        if name != "odd":
            cluster.create(version, "ResourceSlicePatch", name, spec={"devices": spec})
            cluster.wait(1)
    return cluster, "resourceslicepatch", "low"


# selectors


def selector_that_compares_texts() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", [
        {"name": f"g{n}", "attributes": {"driverVersion": {"string": text}}}
        for n, text in enumerate(("10.2", "9.1", "9.1", "8", "7", "6", "5"))
    ])  # fmt: skip
    text = f"device.attributes['{DRIVER}'].driverVersion >= '95'"
    return asking(cluster, selectors=selecting(text))


def selector_over_many_devices() -> Asked:
    """A selector is looked at anew for the first 256 devices alone."""
    cluster = base(1, 0)
    for number in range(3):
        devices = [
            {"name": f"g{number}-{n}", "attributes": {"model": {"string": f"m{n % 2}"}}}
            for n in range(100)
        ]
        cluster.slice("n0", devices, name=f"s{number}", pool=f"p{number}")
    return asking(cluster, selectors=of_model("z"))


def patches_that_change_what_a_selector_reads() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", models(*"abcdef"))
    version = "resource.k8s.io/v1alpha3"
    for model in "abcdef":
        spec = {
            "filter": {"selectors": of_model(model)},
            "attributes": {f"{DRIVER}/model": {"string": f"x{model}"}},
        }
        cluster.create(version, "ResourceSlicePatch", f"of-{model}", spec={"devices": spec})
    return asking(cluster.settle(), selectors=of_model("a"))


# pods that end or do not start


def finished_pod_that_is_deleted() -> Asked:
    cluster = using(base(1), "a", "b")
    for name in ("a", "b"):
        cluster.patch("pods", name, {"metadata": {"finalizers": ["example.com/hold"]}})
        cluster.finish(name, "Failed" if name == "a" else "Succeeded")
        cluster.delete("pods", name)
    return cluster.settle(), "pod", "a"


def waiting_pod_that_is_deleted() -> Asked:
    cluster = base(1, 0)
    cluster.claim("c")
    metadata = {"name": "p", "finalizers": ["example.com/hold"]}
    spec = {"containers": [{"name": "m", "image": "i"}], "resourceClaims": named("c")}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    cluster.settle().wait(5)
    cluster.delete("pods", "p")
    return cluster, "pod", "p"


def pod_that_is_deleted_on_a_node_that_lost_its_drivers() -> Asked:
    cluster = using(base(1), "a")
    annotations = {"redra.dev/lost-drivers": DRIVER}
    cluster.patch("nodes", "n0", {"metadata": {"annotations": annotations}})
    cluster.delete("pods", "a", grace_seconds=30)
    return asking(cluster, count=2)


def pod_on_a_node_that_is_left_to_a_real_kubelet() -> Asked:
    cluster = using(base(1), "a")
    annotations = {"redra.dev/kubelet": "off"}
    cluster.patch("nodes", "n0", {"metadata": {"annotations": annotations}})
    cluster.wait(200).claim("later")
    return cluster, "pod", "a"


def pod_whose_claim_is_reserved_for_another() -> Asked:
    """A user gave it its node, while nobody reserves claims."""
    cluster = using(base(1), "a")
    cluster.stop("scheduling")
    cluster.stop("claims")
    cluster.pod("p", claim="a")
    key = ObjectKey(*api_resources.PODS, "default", "p")
    cluster.line.submit(BindPod(key=key, node="n0"), actor=USER)
    return cluster.settle().wait(5), "pod", "p"


def namespace_that_ends_with_its_pod() -> Asked:
    cluster = base(1, 1)
    cluster.create("v1", "Namespace", "lab")
    spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}
    place = {"namespace": "lab"}
    cluster.apply({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "a", **place}, "spec": spec,
    })  # fmt: skip
    cluster.pod("a", claim="a", **place)
    cluster.settle().wait(5)
    cluster.delete("namespaces", "lab")
    cluster.settle().wait(5)
    return asking(cluster)


# names, accounts and requests


def template_in_another_namespace() -> Asked:
    cluster = base(1)
    for name in ("one", "two"):
        cluster.create("v1", "Namespace", name)
        spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}
        metadata = {"name": "gpu", "namespace": name}
        version = "resource.k8s.io/v1"
        kind = "ResourceClaimTemplate"
        tree = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"spec": spec}}
        cluster.apply(tree)
        tree = {
            "apiVersion": version, "kind": "ResourceClaim",
            "metadata": {"name": "shared", "namespace": name}, "spec": spec,
        }  # fmt: skip
        cluster.apply(tree)
    entries = [{"name": "t", "resourceClaimTemplateName": "gpu"}, *named("shared")]
    cluster.pod("p", resourceClaims=entries)
    return cluster.settle().wait(5), "pod", "p"


def pod_that_tolerates_what_its_request_has_to() -> Asked:
    cluster = base(1)
    cluster.rule("r", effect="NoSchedule", key="example.com/k", value="v")
    cluster.claim("c")
    toleration = {"key": "example.com/k", "operator": "Exists"}
    cluster.pod("p", claim="c", tolerations=[toleration])
    return cluster, "pod", "p"


def request_that_is_more_than_its_containers() -> Asked:
    cluster = base(1, 0)
    cluster.create("node.k8s.io/v1", "RuntimeClass", "heavy", handler="h", overhead={
        "podFixed": {"cpu": "10"},
    })  # fmt: skip
    spec = {
        "runtimeClassName": "heavy",
        "containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [
            {"name": "first", "image": "i", "resources": {"requests": {"cpu": "30"}}},
            {"name": "second", "image": "i", "resources": {"requests": {"cpu": "20"}}},
        ],
    }
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    return cluster, "pod", "p"


def mixed_claims_that_cannot_be_scored() -> Asked:
    """One claim is for all nodes and allocated, the other one is not: two nodes would fit."""
    cluster = of_release("1.35")
    spec = {
        "driver": "net.example.com", "allNodes": True, "devices": [{"name": "net"}],
        "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
    }  # fmt: skip
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "net", spec=spec)
    cluster.device_class("net", "device.driver == 'net.example.com'")
    cluster.device_class("local", f"device.driver == '{DRIVER}'")
    cluster.claim("net", class_name="net")
    cluster.pod("p", claim="net")
    cluster.settle().wait(5)
    cluster.claim("own", class_name="local")
    cluster.pod("q", resourceClaims=named("net", "own"))
    return cluster.settle().wait(5), "pod", "q"


# volumes


def checked_volumes() -> Cluster:
    cluster = Cluster(options=ControllerOptions(checks_volumes=True))
    cluster.node("n0")
    cluster.device_class()
    cluster.slice("n0", 2)
    mode = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.create("storage.k8s.io/v1", "StorageClass", "late", **mode)
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name, more in (("data", {}), ("late", {"storageClassName": "late"})):
        cluster.create("v1", "PersistentVolumeClaim", name, spec={**size, **more})
    return cluster


def volume_claims_that_the_scheduler_checks() -> Asked:
    cluster = checked_volumes()
    names = ("gone", "data", "late")
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    made = {"spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    volumes.append({"name": "own", "ephemeral": {"volumeClaimTemplate": made}})
    cluster.pod("p", volumes=volumes)
    return cluster.settle(), "pod", "p"


def volume_claims_that_wait_for_their_pod() -> Asked:
    cluster = checked_volumes()
    volumes = [{"name": "late", "persistentVolumeClaim": {"claimName": "late"}}]
    cluster.claim("c", count=3)
    cluster.pod("p", volumes=volumes, claim="c")
    return cluster.settle(), "pod", "p"


# workloads


def budget_that_keeps_a_pod_on_a_cordoned_node() -> Asked:
    cluster = base(1)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}
    cluster.create("policy/v1", "PodDisruptionBudget", "b", spec=spec)
    pod(cluster, "w", "w")
    cluster.settle()
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    cluster.patch("pods", "w", {"status": ready}, subresource="status")
    cordon(cluster.settle(), "n0")
    return cluster.settle(), "node", "n0"


def workloads_that_are_held_back() -> Asked:
    cluster = base(1)
    body = {"containers": [{"name": "m", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": body}
    selector = {"matchLabels": {"app": "w"}}
    cluster.create("apps/v1", "Deployment", "web", spec={
        "paused": True, "replicas": 2, "selector": selector, "template": template,
    })  # fmt: skip
    work: TREE = {"template": {"spec": {**body, "restartPolicy": "Never"}}}
    cluster.apply({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "run", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"suspend": True, **work},
    })  # fmt: skip
    cluster.create("batch/v1", "CronJob", "nightly", spec={
        "schedule": "0 0 * * *", "suspend": True, "jobTemplate": {"spec": work},
    })  # fmt: skip
    return cluster.settle().wait(5), "deployment", "web"


def deployment_with_pods_of_two_templates() -> Asked:
    cluster = base(1)
    cluster.template()
    body: TREE = {
        "containers": [{"name": "m", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    template = {"metadata": {"labels": {"app": "w"}}, "spec": body}
    selector = {"matchLabels": {"app": "w"}}
    spec = {"replicas": 2, "selector": selector, "template": template}
    cluster.create("apps/v1", "Deployment", "web", spec=spec)
    cluster.settle().wait(5)
    for name in cluster.names("pods"):
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
        cluster.patch("pods", name, {"status": ready}, subresource="status")
    cluster.settle().wait(5)
    containers = [{"name": "m", "image": "j"}]
    spec = {"template": {**template, "spec": {**body, "containers": containers}}}
    cluster.patch("deployments", "web", {"spec": spec})
    return cluster.settle().wait(5), "deployment", "web"


def quota_that_refused_and_has_room_now() -> Asked:
    cluster = base(1)
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": {"pods": "0"}})
    cluster.settle()
    body = {"containers": [{"name": "m", "image": "i"}]}
    for name in ("web", "far"):
        template = {"metadata": {"labels": {"app": name}}, "spec": body}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
        cluster.create("apps/v1", "ReplicaSet", name, spec=spec)
    cluster.settle().wait(1)
    cluster.stop("replica-sets")
    cluster.patch("resourcequotas", "few", {"spec": {"hard": {"pods": "3"}}})
    return cluster.settle(), "replicaset", "web"


def quota_that_refused_and_is_gone() -> Asked:
    cluster, *asked = quota_that_refused_and_has_room_now()
    cluster.delete("resourcequotas", "few")
    return cluster.settle(), *asked


# what would help


def labels_that_no_node_has() -> Asked:
    cluster = base(2)
    wanted = [
        {"key": "rack", "operator": "In", "values": ["r2", "r1"]},
        {"key": "fast", "operator": "Exists"},
        {"key": "slots", "operator": "Gt", "values": ["4"]},
        {"key": "zone", "operator": "DoesNotExist"},
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    cluster.claim("c")
    cluster.pod("p", claim="c", nodeSelector={"tier": "gold"}, affinity={"nodeAffinity": chosen})
    return cluster, "pod", "p"


def labels_of_kubernetes_that_no_node_has() -> Asked:
    cluster = base(2)
    cluster.claim("c")
    cluster.pod("p", claim="c", nodeSelector={"kubernetes.io/arch": "odd", "zone": "a"})
    return cluster, "pod", "p"


def spread_that_is_too_strict() -> Asked:
    cluster = base(2)
    for name, node in (("w0", "n0"), ("w1", "n0")):
        pod(cluster, name, "w", nodeName=node)
    cordon(cluster, "n1")
    spread = {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "w"}},
    }  # fmt: skip
    cluster.claim("c")
    pod(cluster, "p", "w", topologySpreadConstraints=[spread], resourceClaims=named("c"))
    return cluster, "pod", "p"


def counter_that_would_have_to_be_larger() -> Asked:
    cluster = base(1, 0)
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 2}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "sets", spec={
        "driver": DRIVER, "nodeName": "n0", "pool": pool,
        "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "40"}}}],
    })  # fmt: skip
    uses = [{"counterSet": "chip", "counters": {"memory": {"value": "41"}}}]
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "parts", spec={
        "driver": DRIVER, "nodeName": "n0", "pool": pool,
        "devices": [{"name": "whole", "consumesCounters": uses}],
    })  # fmt: skip
    return asking(cluster)


def claim_that_is_deleted_and_kept_by_others() -> Asked:
    cluster = base(1)
    cluster.claim("c")
    finalizers = ["example.com/keep", "example.com/also"]
    cluster.patch("resourceclaims", "c", {"metadata": {"finalizers": finalizers}})
    cluster.delete("resourceclaims", "c")
    cluster.pod("p", claim="c")
    return cluster, "pod", "p"


def pod_of_another_scheduler() -> Asked:
    cluster = using(base(1), "a")
    cluster.pod("q", schedulerName="default-schedule")
    cluster.pod("r", schedulerName="own", nodeName="n0")
    cluster.pod("p", schedulerName="own")
    return cluster, "pod", "p"


def classes_that_others_wait_for() -> Asked:
    cluster = base(1)
    for name in ("a", "b"):
        cluster.claim(name, class_name="none")
        cluster.pod(name, claim=name)
    cluster.device_class("none")
    cluster.delete("deviceclasses", "none")
    return cluster.settle(), "deviceclass", "none"


# more of the kind


def account_that_is_missing() -> Asked:
    cluster = base(1)
    for name in ("default", "builder"):
        cluster.create("v1", "ServiceAccount", name)
    cluster.pod("q", serviceAccountName="other")
    cluster.pod("p", serviceAccountName="bilder", nodeSelector={"zone": "z"})
    return cluster.settle(), "pod", "p"


def devices_about_which_their_drivers_report() -> Asked:
    """One condition of a device, and a configuration for a driver that has no devices."""
    cluster = base(1)
    configs = [
        {"opaque": {"driver": driver, "parameters": {"apiVersion": "x/v1", "kind": "Cfg"}}}
        for driver in (DRIVER, "none.example.com")
    ]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request], "config": configs}}
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "c", spec=spec)
    cluster.pod("p", claim="c")
    cluster.settle().wait(5)
    tree = deepcopy(cluster.must("resourceclaims", "c"))
    condition = {
        "type": "Ready", "status": "False", "reason": "Off", "message": "no power",
        "lastTransitionTime": "2026-01-02T03:00:00Z",
    }  # fmt: skip
    own = {"driver": DRIVER, "pool": "n0", "device": "gpu-0"}
    tree["status"]["devices"] = [{**own, "conditions": [condition]}]
    cluster.update("resourceclaims", tree, "status")
    return cluster, "device", f"{DRIVER}/n0/gpu-0"


def driver_that_wants_no_pod_on_a_node() -> Asked:
    """A DaemonSet has a pod on each node with slices; its template leaves the other one out."""
    cluster = base(3, 0)
    for node in ("n0", "n2"):
        cluster.slice(node, 2)
    labels = {"app": "driver"}
    containers = [{"name": "plugin", "image": "example.com/d:1"}]
    made = {
        "metadata": {"labels": labels},
        "spec": {"containers": containers, "nodeSelector": {"zone": "a"}},
    }
    spec = {"selector": {"matchLabels": labels}, "template": made}
    cluster.create("apps/v1", "DaemonSet", "driver", spec=spec)
    cluster.settle().wait(5)
    return asking(cluster, count=3)


def kubelet_that_cannot_end_a_holder() -> Asked:
    cluster = using(base(1), "a")
    cluster.delete("pods", "a", grace_seconds=30)
    uid = cluster.must("pods", "a")["metadata"]["uid"]
    subject = {"kind": "Pod", "namespace": "default", "name": "a", "uid": uid}
    cluster.wait(40)
    cluster.create(
        "v1", "Event", "said", reason="FailedKillPod", message="no answer", count=2, type="Warning",
        involvedObject=subject, source={"component": "kubelet", "host": "n0"},
    )  # fmt: skip
    return asking(cluster, count=2)


def rule_that_taints_nothing_without_a_selector() -> Asked:
    cluster = Cluster(profile=Profile(empty_rules_taint=False))
    cluster.node("n0")
    cluster.device_class()
    cluster.slice("n0", 2)
    using(cluster, "a")
    cluster.create("resource.k8s.io/v1", "DeviceTaintRule", "r", spec={
        "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
    })  # fmt: skip
    return cluster.settle().wait(5), "devicetaintrule", "r"


def pods_of_other_namespaces_keep_away() -> Asked:
    cluster = base(2)
    space = {"name": "lab", "labels": {"team": "x"}}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": space})
    for name, node in (("a", "n0"), ("b", "n1")):
        spec = {"containers": [{"name": "m", "image": "i"}], "nodeName": node}
        metadata = {"name": name, "namespace": "lab", "labels": {"app": "db"}}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod(cluster, "p", "w", affinity=away)
    return cluster, "pod", "p"


def alternatives_of_which_a_selector_fails() -> Asked:
    cluster = base(1, 0)
    cluster.slice("n0", [{"name": "d"}])
    wishes = [
        {"name": "best", "deviceClassName": "gpu", "selectors": of_model("new")},
        {"name": "next", "deviceClassName": "gpu", "selectors": of_model("old")},
    ]
    return claim(cluster, {"name": "r", "firstAvailable": wishes})


def pods_of_a_deployment_have_the_devices() -> Asked:
    """More claims than are named, of pods of two workloads."""
    cluster = base(2, 4)
    cluster.template()
    for name, replicas in (("web", 5), ("lab", 3)):
        body = {
            "containers": [{"name": "m", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        }
        template = {"metadata": {"labels": {"app": name}}, "spec": body}
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": replicas, "selector": selector, "template": template}
        cluster.create("apps/v1", "Deployment", name, spec=spec)
        cluster.settle().wait(5)
    return asking(cluster)


def node_is_named_by_a_field() -> Asked:
    """The term wants node n1, which lacks a label; another node has that label."""
    cluster = base(3)
    cluster.patch("nodes", "n2", {"metadata": {"labels": {"rack": "r", "slots": "9"}}})
    term = {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        "matchExpressions": [
            {"key": "rack", "operator": "In", "values": ["r"]},
            {"key": "slots", "operator": "Lt", "values": ["5"]},
        ],
    }
    chosen = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cluster.claim("c")
    cluster.pod("p", claim="c", affinity={"nodeAffinity": chosen})
    return cluster, "pod", "p"


def extended_resource_of_which_less_would_fit() -> Asked:
    cluster = base(1, 1)
    spec = {"extendedResourceName": "example.com/gpu"}
    cluster.create("resource.k8s.io/v1", "DeviceClass", "ext", spec=spec)
    cluster.pod("p", requests={"example.com/gpu": "3", "cpu": "40"})
    return cluster, "pod", "p"


_CHECKED = {"controllers": {"volumeClaims": True}}

SETTINGS: dict[str, TREE] = {
    "volume_claims_that_the_scheduler_checks": _CHECKED,
    "volume_claims_that_the_scheduler_checks_helped": _CHECKED,
    "volume_claims_that_wait_for_their_pod": _CHECKED,
}
"""The settings of a history, of the worlds whose controllers have other options."""

SELDOM: dict[str, Callable[[], Asked]] = {
    world.__name__: world
    for world in (
        devices_that_somebody_else_chose,
        devices_that_somebody_else_chose_on_a_cordoned_node,
        tolerations_that_were_not_copied,
        earlier_alternative_on_a_node_in_a_release_that_asks_one,
        binding_that_failed_and_goes_on,
        constraint_on_an_attribute_that_is_gone,
        claim_that_was_deleted_and_is_not_reserved,
        consumers_that_ended_in_three_ways,
        claim_that_only_a_group_of_pods_has,
        decision_that_names_few_causes,
        device_that_a_claim_tolerates_for_a_while,
        device_that_changed_often,
        device_that_many_claims_had,
        pool_that_was_empty_and_came_back_in_part,
        generation_that_is_on_another_node,
        pool_whose_new_generation_lacks_slices,
        counter_set_that_is_not_declared,
        device_that_two_slices_publish,
        rule_while_its_gate_is_off,
        rule_while_all_taints_are_off,
        rule_without_a_selector,
        rule_that_the_scheduler_does_not_see,
        rule_over_a_claim_that_nobody_uses,
        rule_over_a_claim_of_an_extended_resource,
        patches_of_other_priorities,
        selector_that_compares_texts,
        selector_over_many_devices,
        patches_that_change_what_a_selector_reads,
        finished_pod_that_is_deleted,
        waiting_pod_that_is_deleted,
        pod_that_is_deleted_on_a_node_that_lost_its_drivers,
        pod_on_a_node_that_is_left_to_a_real_kubelet,
        pod_whose_claim_is_reserved_for_another,
        namespace_that_ends_with_its_pod,
        template_in_another_namespace,
        pod_that_tolerates_what_its_request_has_to,
        request_that_is_more_than_its_containers,
        mixed_claims_that_cannot_be_scored,
        volume_claims_that_the_scheduler_checks,
        volume_claims_that_wait_for_their_pod,
        budget_that_keeps_a_pod_on_a_cordoned_node,
        workloads_that_are_held_back,
        deployment_with_pods_of_two_templates,
        quota_that_refused_and_has_room_now,
        quota_that_refused_and_is_gone,
        pod_of_another_scheduler,
        classes_that_others_wait_for,
        account_that_is_missing,
        devices_about_which_their_drivers_report,
        driver_that_wants_no_pod_on_a_node,
        kubelet_that_cannot_end_a_holder,
        rule_that_taints_nothing_without_a_selector,
        pods_of_other_namespaces_keep_away,
        alternatives_of_which_a_selector_fails,
        pods_of_a_deployment_have_the_devices,
    )
}
"""Worlds in which everything is asked about, but for those of `LARGE`."""

LARGE = frozenset(
    {"device_that_changed_often", "device_that_many_claims_had", "selector_over_many_devices"}
)
"""Worlds in which one question alone is asked, as they have many objects."""

SELDOM_HELPED: dict[str, Callable[[], Asked]] = {
    f"{world.__name__}_helped": world
    for world in (
        labels_that_no_node_has,
        labels_of_kubernetes_that_no_node_has,
        spread_that_is_too_strict,
        counter_that_would_have_to_be_larger,
        claim_that_is_deleted_and_kept_by_others,
        pod_of_another_scheduler,
        template_in_another_namespace,
        volume_claims_that_the_scheduler_checks,
        rule_that_the_scheduler_does_not_see,
        node_is_named_by_a_field,
        extended_resource_of_which_less_would_fit,
    )
}
"""Waiting pods that are asked about with what would help."""
