"""Rehearsals name the differences that a generator planted for a release, and no others.

A world is a cluster under one release in which pods arrive, finish and end. Each plant adds one
thing that another release treats differently, and states what the rehearsal must name: pods with
another outcome, refused objects, dropped fields, changed texts. The knowledge of a plant comes from
the pages of parity, not from the rehearsal. Plants and repairs come by day.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.diff.causes import Proof, RootKind
from app.analysis.explain import pages
from app.analysis.incidents.incident import IncidentVariant
from app.analysis.rehearse import text
from app.analysis.rehearse.defects import titles
from app.analysis.rehearse.report import Rehearsal
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.gallery import incident_files, playing
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, ObjectKey, Revision
from app.domain.log.event import GENESIS
from app.domain.objects.profile import RELEASE_RULES, Profile
from app.domain.objects.write.commands import BindPod
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.rehearsing import worlds
from app.service.rehearsing.worlds import RehearsalRequest
from app.service.replays.replaying import Progress, silent
from app.settings import Settings
from tests import draws
from tests.cluster import DRIVER, USER, Cluster, claim_spec
from tests.unit.analysis import kept_texts

RULES = {name: f"rule {name}: off → on ({words})" for name, (_, words) in RELEASE_RULES.items()}
SEEDS = draws.seeds(1)
KEY = "example.com/bad"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass
class Expected:
    """The differences that a rehearsal must name; it must name no others.

    `pods` are the pods with another outcome, with their gravest class. Each text of `refused`,
    `dropped`, `begins`, `texts`, `fields` and `versions` must be part of an entry, and each entry
    must contain one of them. `by` holds sets of settings: each change must come from one of them,
    and each of them must cause a change. Of the objects `over_limit`, those in `split` must be
    split. `roots` are the objects below which the pods are listed; an empty one is the settings.
    The page must contain each part of `says`, and none of `says_not`.
    """

    pods: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    by: tuple[tuple[str, ...], ...] = ()
    over_limit: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    roots: tuple[str, ...] | None = None
    says: tuple[str, ...] = ()
    says_not: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plant:
    """A source and a target release, and the plant for them; `gates` are set in the source."""

    source: str
    target: str
    put: Callable[[Cluster, random.Random], Expected]
    gates: tuple[str, ...] = ()
    quirks: tuple[tuple[str, bool], ...] = ()


def shown(report: Rehearsal, width: int) -> list[str]:
    return pages.of_json(text.page_json(report), width, lines_max=text.LINES_MAX)


def nothing(cluster: Cluster, drawn: random.Random) -> Expected:
    return Expected()


def lonely(cluster: Cluster, name: str, devices: list[JsonObject], **spec: object) -> None:
    """Adds a node with devices that only the DeviceClass of the same name selects."""
    attributes = {"attributes": {"own": {"string": name}}}
    cluster.node(name)
    cluster.device_class(name, f'device.attributes["{DRIVER}"].?own.orValue("") == "{name}"')
    cluster.slice(name, devices=[{**each, **attributes} for each in devices], **spec)
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": claim_spec(name)}
    )


def come(cluster: Cluster, name: str, template: str, **spec: object) -> None:
    """Creates a pod that is tried when the cluster is at rest."""
    cluster.settle()
    cluster.wait(5)
    cluster.pod(name, template=template, **spec)
    cluster.settle()
    cluster.wait(5)


def unseen_rule(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36.2 the scheduler sees no rules: the pod gets the tainted device (C24)."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    effect = "NoSchedule"
    cluster.create(
        "resource.k8s.io/v1beta2",
        "DeviceTaintRule",
        "rule",
        spec={
            "deviceSelector": {"driver": DRIVER, "pool": "alone"},
            "taint": {"key": KEY, "effect": effect},
        },
    )
    come(cluster, "victim", "alone")
    return Expected(
        pods={"victim": "newly unschedulable"},
        repaired=("rules-not-seen",),
        by=(("quirk c24: on → off",),),
    )


def config_of_class(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 entries of a configuration keep the requests they name (allocator.md 10.2)."""
    lonely(cluster, "alone", [{"name": "gpu-0"}, {"name": "gpu-1"}])
    parameters = {"apiVersion": "x/v1", "kind": "Cfg", "mode": str(drawn.randrange(100))}
    spec = cluster.must("deviceclasses", "alone")["spec"]
    config = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    cluster.patch("deviceclasses", "alone", {"spec": {**spec, "config": config}})
    come(cluster, "configured", "alone")
    return Expected(
        fields=("resourceclaims status.allocation.devices.config",),
        by=((RULES["configurations"],),),
        says=("a driver must apply an entry without `requests` to all requests of the claim",),
    )


def step_too_large(cluster: Cluster, drawn: random.Random) -> Expected:
    """Since 1.37 bounds of a range with steps end at 2^63 - 1 (objects.md 7.4)."""
    large = "10000000000000000000"
    policy = {"default": "1", "validRange": {"min": "0", "max": large, "step": "1"}}
    policy["validRange"]["max"] = large
    capacity = {"memory": {"value": "20000000000000000000", "requestPolicy": policy}}
    device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}
    lonely(cluster, "alone", [device])
    come(cluster, "starved", "alone")
    return Expected(
        pods={"starved": "newly unschedulable"},
        refused=("must not be larger than 9223372036854775807",),
        by=((RULES["range-bounds"],),),
    )


def taint_of_slice(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.35 the gate of taints is off: they are dropped, and the pod gets in."""
    taints = [{"key": KEY, "effect": "NoSchedule"}]
    lonely(cluster, "alone", [{"name": "gpu-0", "taints": taints}])
    come(cluster, "kept-out", "alone")
    return Expected(
        pods={"kept-out": "newly placed"},
        dropped=("spec.devices[].taints",),
        by=(("gate DRADeviceTaints: true → false",),),
    )


def rule_in_v1(cluster: Cluster, drawn: random.Random) -> Expected:
    """Before 1.37 rules are not served in v1 (objects.md 1): the rule evicts nobody there."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    come(cluster, "victim", "alone")
    selector = {"driver": DRIVER, "pool": "alone"}
    cluster.rule(effect="NoExecute", selector=selector)
    cluster.settle()
    cluster.wait(30)
    return Expected(
        pods={"victim": "spared"},
        refused=("the server could not find the requested resource",),
        versions=("resource.k8s.io/v1 DeviceTaintRule is gone",),
        by=(("profile: 1.37 → 1.36",),),
    )


def written_in_beta(cluster: Cluster, drawn: random.Random) -> Expected:
    """v1beta1 is deprecated since 1.35, and still served."""
    cluster.create(
        "resource.k8s.io/v1beta1",
        "DeviceClass",
        "old",
        spec={"selectors": [{"cel": {"expression": "true"}}]},
    )
    return Expected(versions=("resource.k8s.io/v1beta1 DeviceClass is newly deprecated",))


def applied_taint(cluster: Cluster, drawn: random.Random) -> Expected:
    """What 1.34 dropped of an applied slice is kept by default since 1.36."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    tree = cluster.must("resourceslices", "alone-slice")
    meant = {**tree["spec"], "devices": [{**tree["spec"]["devices"][0], "taints": [
        {"key": KEY, "effect": "NoSchedule"}]}]}  # fmt: skip
    applied = {**tree, "metadata": {"name": "alone-slice"}, "spec": meant}
    annotations = {LAST_APPLIED: json.dumps(applied)}
    cluster.patch("resourceslices", "alone-slice", {"metadata": {"annotations": annotations}})
    return Expected(begins=("spec.devices[].taints",))


def told_of_claims(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 the message of a waiting pod also says that none of its claims was freed (r8)."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    come(cluster, "holder", "alone")
    come(cluster, "waiting", "alone")
    return Expected(
        texts=("no longer: still not schedulable,",),
        by=(("quirk r8: on → off",),),
    )


def toleration_without_effect(cluster: Cluster, drawn: random.Random) -> Expected:
    """A toleration without an effect does not protect a pod (C2); without the defect it does."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    spec = claim_spec("alone", tolerations=[{"key": KEY, "operator": "Exists"}])
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "tolerant", spec={"spec": spec})
    come(cluster, "victim", "tolerant")
    selector = {"driver": DRIVER, "pool": "alone"}
    cluster.rule(effect="NoExecute", selector=selector)
    cluster.settle()
    cluster.wait(30)
    return Expected(
        pods={"victim": "spared"},
        repaired=("toleration-without-effect",),
        by=(("quirk c2: on → off",),),
    )


def extended_resource(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.35 no class stands for an extended resource: no node has any (allocator.md 14)."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    spec = cluster.must("deviceclasses", "alone")["spec"]
    changed = {**spec, "extendedResourceName": "example.com/alone"}
    cluster.patch("deviceclasses", "alone", {"spec": changed})
    cluster.settle()
    cluster.wait(5)
    cluster.pod("extended", requests={"example.com/alone": "1"})
    cluster.settle()
    cluster.wait(5)
    return Expected(
        pods={"extended": "newly unschedulable"},
        dropped=("spec.extendedResourceName",),
        by=(("gate DRAExtendedResource: true → false",),),
    )


def binding_conditions(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.35 nothing is waited for before a pod is bound."""
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
    lonely(cluster, "alone", [{"name": "gpu-0", **conditions}])
    come(cluster, "waits", "alone")
    return Expected(
        pods={"waits": "newly placed"},
        dropped=("spec.devices[].bindingConditions", "spec.devices[].bindingFailureConditions"),
        by=(("gate DRADeviceBindingConditions: true → false",),),
    )


def faulty_selector(cluster: Cluster, drawn: random.Random) -> Expected:
    """Since 1.37 the error of a selector names the device (allocator.md 11)."""
    cluster.device_class("faulty", f'device.attributes["{DRIVER}"].nope == "x"')
    spec = {"spec": claim_spec("faulty")}
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "faulty", spec=spec)
    come(cluster, "faulty", "faulty")
    return Expected(texts=(f"on device {DRIVER}/n1/gpu-",), by=((RULES["selector-errors"],),))


def every_device(cluster: Cluster, drawn: random.Random, slices: int) -> None:
    """Adds two nodes and a pod that asks one of them for all devices.

    The pool of the second node says that it has so many `slices`, and has one.
    """
    lonely(cluster, "alone", [{"name": f"gpu-{n}"} for n in range(drawn.randrange(1, 4))])
    cluster.node("half")
    own = {"attributes": {"own": {"string": "alone"}}}
    pool = {"name": "half", "generation": 1, "resourceSliceCount": slices}
    spec = {"driver": DRIVER, "nodeName": "half", "pool": pool}
    spec["devices"] = [{"name": "gpu-0", **own}]
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "half-slice", spec=spec)
    claim = {"spec": claim_spec("alone", allocationMode="All")}
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "every", spec=claim)
    come(cluster, "every", "every")


def incomplete_pool(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 an incomplete pool ends an attempt in mode All for each node (controllers.md 10).

    Since 1.37 it rejects its own node only, and the pod gets the devices of the other one.
    """
    every_device(cluster, drawn, slices=2)
    return Expected(
        pods={"every": "newly placed"},
        repaired=("all-mode-while-a-pool-changes",),
        by=((RULES["pools"],),),
    )


def complete_pool(cluster: Cluster, drawn: random.Random) -> Expected:
    every_device(cluster, drawn, slices=1)
    assert cluster.must("pods", "every", "default")["spec"].get("nodeName")
    return Expected()


def ask(cluster: Cluster) -> None:
    """Asks for the status of all pools of the driver."""
    cluster.settle()
    cluster.wait(5)
    cluster.create(
        "resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", "ask", spec={"driver": DRIVER}
    )
    cluster.settle()
    cluster.wait(5)


def question_about_pools(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 a status says nothing of what is left of shared devices (objects.md 15)."""
    capacity = {"memory": {"value": f"{drawn.randrange(8, 80)}Gi"}}
    device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}
    lonely(cluster, "alone", [device])
    ask(cluster)
    return Expected(
        fields=("resourcepoolstatusrequests status.pools",),
        by=((RULES["pool-status"],),),
    )


def question_without_answer(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 a request is not answered while a matching pool is incomplete (objects.md 15)."""
    count = drawn.randrange(2, 6)
    pool = {"name": "half", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": "half", "pool": pool, "devices": [{"name": "gpu-0"}]}
    cluster.node("half")
    cluster.create("resource.k8s.io/v1", "ResourceSlice", "half-slice", spec=spec)
    ask(cluster)
    assert not cluster.must("resourcepoolstatusrequests", "ask").get("status")
    return Expected(
        texts=("CalculationComplete: Calculated status for",),
        fields=("resourcepoolstatusrequests status",),
        by=((RULES["pool-status"],),),
    )


def question_with_one_answer(cluster: Cluster, drawn: random.Random) -> Expected:
    """Both releases answer alike for complete pools of devices that nobody shares."""
    lonely(cluster, "alone", [{"name": f"gpu-{n}"} for n in range(drawn.randrange(1, 5))])
    ask(cluster)
    assert cluster.must("resourcepoolstatusrequests", "ask").get("status")
    return Expected()


def rule_with_status(cluster: Cluster, drawn: random.Random) -> Expected:
    """Since 1.37 the status of a rule is written in v1, which changes no value of it."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    cluster.create(
        "resource.k8s.io/v1beta2",
        "DeviceTaintRule",
        "rule",
        spec={
            "deviceSelector": {"driver": DRIVER, "pool": "alone"},
            "taint": {"key": KEY, "effect": "NoExecute"},
        },
    )
    cluster.settle()
    cluster.wait(30)
    assert cluster.rule_condition("rule")
    return Expected()


def service_of_digits(cluster: Cluster, drawn: random.Random) -> Expected:
    """Before 1.37 the name of a service begins with a letter (objects.md 15)."""
    cluster.create("v1", "Service", "1st", spec={"ports": [{"port": 80}], "clusterIP": "None"})
    rule = RULES["service-names"].replace("off → on", "on → off")
    return Expected(refused=("a DNS-1035 label must consist",), by=((rule,),))


def rule_without_gate(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.36 rules have no effect by default; then the pod is evicted, which makes an Event."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    come(cluster, "victim", "alone")
    cluster.create(
        "resource.k8s.io/v1alpha3",
        "DeviceTaintRule",
        "rule",
        spec={
            "deviceSelector": {"driver": DRIVER, "pool": "alone"},
            "taint": {"key": KEY, "effect": "NoExecute"},
        },
    )
    cluster.settle()
    cluster.wait(30)
    return Expected(
        pods={"victim": "evicted"},
        versions=("resource.k8s.io/v1alpha3 DeviceTaintRule is newly deprecated",),
        by=(("gate DRADeviceTaintRules: false → true",),),
    )


def counters_dropped(cluster: Cluster, drawn: random.Random) -> Expected:
    """Without the gate, counters are dropped: both partitions of one device are allocated."""
    consumes = [{"counterSet": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    parts = [{"name": f"part-{n}", "consumesCounters": consumes} for n in range(2)]
    lonely(cluster, "alone", parts)
    pool = {"name": "alone", "generation": 2, "resourceSliceCount": 2}
    tree = cluster.must("resourceslices", "alone-slice")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "pool": pool}})
    sets = [{"name": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "alone-counters",
        spec={"driver": DRIVER, "nodeName": "alone", "pool": pool, "sharedCounters": sets},
    )
    come(cluster, "first", "alone")
    come(cluster, "second", "alone")
    return Expected(
        pods={"second": "newly placed"},
        dropped=("spec.devices[].consumesCounters", "spec.sharedCounters"),
        by=(("gate DRAPartitionableDevices: true → false",),),
    )


def devices_by_node(cluster: Cluster, drawn: random.Random) -> Expected:
    """Without the gate, a slice loses the nodes of its devices, and is refused for lack of a node.

    The slice with the counters of its pool is accepted without them: the pod has no device because
    of the refused one, although that is the second by its name, and may be so by its time.
    """
    sets, devices = "alone-a", "alone-b"
    lonely(cluster, "alone", [{"name": "other"}])
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 2}
    consumes = [{"counterSet": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    own = {"attributes": {"own": {"string": "fabric"}}}
    parts = [
        {"name": f"part-{n}", "nodeName": "alone", "consumesCounters": consumes, **own}
        for n in range(drawn.randrange(1, 4))
    ]
    counters = [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    specs: dict[str, JsonObject] = {
        sets: {"allNodes": True, "sharedCounters": counters},
        devices: {"perDeviceNodeSelection": True, "devices": parts},
    }
    expression = f'device.attributes["{DRIVER}"].?own.orValue("") == "fabric"'
    cluster.device_class("fabric", expression)
    for name in drawn.sample((sets, devices), 2):
        spec = {"driver": DRIVER, "pool": pool, **specs[name]}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaimTemplate", "fabric", spec={"spec": claim_spec("fabric")}
    )
    come(cluster, "first", "fabric")
    assert cluster.must("pods", "first", "default")["spec"].get("nodeName") == "alone"
    return Expected(
        pods={"first": "newly unschedulable"},
        refused=("`perDeviceNodeSelection` is required",),
        dropped=(
            "spec.sharedCounters",
            "spec.devices[].consumesCounters",
            "spec.devices[].nodeName",
            "spec.perDeviceNodeSelection",
        ),
        by=(("gate DRAPartitionableDevices: true → false",),),
        roots=(f"resourceslices.resource.k8s.io/{devices}",),
        says=(
            "the API first drops spec.devices[].consumesCounters, spec.devices[].nodeName, "
            "spec.perDeviceNodeSelection because the feature gate DRAPartitionableDevices is off",
            f"spec.sharedCounters: the field is dropped because the feature gate "
            f"DRAPartitionableDevices is off: resourceslices.resource.k8s.io/{sets}",
        ),
        says_not=(f"is off: resourceslices.resource.k8s.io/{devices}",),
    )


def rule_without_taints(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.35 nothing acts on rules: the status of a rule is gone, and it evicts nobody."""
    lonely(cluster, "alone", [{"name": "gpu-0"}])
    effect = drawn.choice(["NoSchedule", "None"])
    cluster.create(
        "resource.k8s.io/v1alpha3",
        "DeviceTaintRule",
        "idle",
        spec={"deviceSelector": {"pool": "nowhere"}, "taint": {"key": KEY, "effect": effect}},
    )
    cluster.settle()
    cluster.wait(5)
    assert cluster.must("devicetaintrules", "idle")["status"]["conditions"]
    return Expected(
        texts=("no longer: EvictionInProgress",),
        by=(("gate DRADeviceTaints: true → false",),),
        says=("no rule has any effect there, because the feature gate DRADeviceTaints is off",),
        says_not=("devicetaintrules status", "only texts change"),
    )


def either_gate(cluster: Cluster, drawn: random.Random) -> Expected:
    """A taint blocks one device and counters block another; without either gate one is free.

    No device is free only if both gates keep their values.
    """
    counters = [{"counterSet": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    taints = [{"key": KEY, "effect": "NoSchedule"}]
    parts: list[JsonObject] = [{"name": f"part-{n}", "consumesCounters": counters} for n in (0, 1)]
    lonely(cluster, "alone", [*parts, {"name": "tainted", "taints": taints}])
    pool = {"name": "alone", "generation": 2, "resourceSliceCount": 2}
    tree = cluster.must("resourceslices", "alone-slice")
    cluster.update("resourceslices", {**tree, "spec": {**tree["spec"], "pool": pool}})
    sets = [{"name": "gpu", "counters": {"memory": {"value": "10Gi"}}}]
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "alone-counters",
        spec={"driver": DRIVER, "nodeName": "alone", "pool": pool, "sharedCounters": sets},
    )
    come(cluster, "first", "alone")
    come(cluster, "second", "alone")
    both = ("gate DRADeviceTaints: true → false", "gate DRAPartitionableDevices: true → false")
    return Expected(
        pods={"second": "newly placed"},
        dropped=("spec.devices[].consumesCounters", "spec.sharedCounters", "spec.devices[].taints"),
        by=(both, both[:1], both[1:]),
    )


def both_in_one_slice(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.34 devices and counters share a slice; since 1.35 they are in separate slices."""
    counters = {"memory": {"value": "10Gi"}}
    consumes = [{"counterSet": "gpu", "counters": counters}]
    parts: list[JsonObject] = [{"name": f"part-{n}", "consumesCounters": consumes} for n in (0, 1)]
    lonely(cluster, "alone", parts, sharedCounters=[{"name": "gpu", "counters": counters}])
    come(cluster, "first", "alone")
    come(cluster, "second", "alone")
    assert cluster.must("pods", "first", "default")["spec"].get("nodeName") == "alone"
    assert not cluster.must("pods", "second", "default")["spec"].get("nodeName")
    return Expected(
        pods={"first": "newly unschedulable"},
        refused=("only one of `sharedCounters` or `devices` is allowed",),
        by=((RULES["slice-limits"],),),
        over_limit=("alone-slice",),
        split=("alone-slice",),
    )


def many_tainted(cluster: Cluster, drawn: random.Random) -> Expected:
    """Since 1.35 a slice has 64 devices at most if one of them is tainted."""
    count = drawn.randrange(65, 129)
    devices: list[JsonObject] = [{"name": f"gpu-{n}"} for n in range(count)]
    devices[drawn.randrange(1, count)]["taints"] = [{"key": KEY, "effect": "NoSchedule"}]
    lonely(cluster, "alone", devices)
    come(cluster, "first", "alone")
    return Expected(
        pods={"first": "newly unschedulable"},
        refused=(f"spec.devices: Too many: {count}: must have at most 64 items",),
        by=((RULES["slice-limits"],),),
        over_limit=("alone-slice",),
        split=("alone-slice",),
    )


def many_taints(cluster: Cluster, drawn: random.Random) -> Expected:
    """Up to 1.34 a device has 4 taints at most: no other slice would have room for a fifth."""
    count = drawn.randrange(5, 17)
    taints = [{"key": f"example.com/t{n}", "effect": "NoSchedule"} for n in range(count)]
    lonely(cluster, "alone", [{"name": "gpu-0", "taints": taints}, {"name": "gpu-1"}])
    come(cluster, "first", "alone")
    words = "off → on (counters and devices are in slices of their own, each with limits)"
    assert RULES["slice-limits"].endswith(words)
    return Expected(
        pods={"first": "newly unschedulable"},
        refused=(f"spec.devices[0].taints: Too many: {count}: must have at most 4 items",),
        by=((RULES["slice-limits"].replace("off → on", "on → off"),),),
        over_limit=("alone-slice",),
    )


POOL_STATUS = ("DRAResourcePoolStatus", "DRAConsumableCapacity")
PLANTS = {
    "split": Plant("1.34", "1.36", both_in_one_slice, gates=("DRAPartitionableDevices",)),
    "many-tainted": Plant("1.34", "1.35", many_tainted, gates=("DRADeviceTaints",)),
    "many-taints": Plant("1.36", "1.34", many_taints, gates=("DRADeviceTaints",)),
    "either": Plant("1.36", "1.35", either_gate),
    "extended": Plant("1.36", "1.35", extended_resource),
    "binding": Plant("1.36", "1.35", binding_conditions),
    "selector": Plant("1.36", "1.37", faulty_selector),
    "pools": Plant("1.36", "1.37", incomplete_pool),
    "pools-complete": Plant("1.36", "1.37", complete_pool),
    "pool-status": Plant("1.36", "1.37", question_about_pools, gates=POOL_STATUS),
    "pool-status-silent": Plant("1.36", "1.37", question_without_answer, gates=POOL_STATUS),
    "pool-status-same": Plant("1.36", "1.37", question_with_one_answer, gates=POOL_STATUS),
    "rule-version": Plant("1.36", "1.37", rule_with_status, gates=("DRADeviceTaintRules",)),
    "service": Plant("1.37", "1.36", service_of_digits),
    "rule-without-gate": Plant("1.35", "1.37", rule_without_gate, gates=("DRADeviceTaints",)),
    "nothing-next": Plant("1.36", "1.37", nothing),
    "nothing-back": Plant("1.37", "1.36", nothing),
    "nothing-same": Plant("1.36.2", "1.36.2", nothing, gates=("DRADeviceTaintRules",)),
    "unseen-rule": Plant("1.36.2", "1.37", unseen_rule, gates=("DRADeviceTaintRules",)),
    "config": Plant("1.36", "1.37", config_of_class),
    "step": Plant("1.36", "1.37", step_too_large),
    "taint": Plant("1.37", "1.35", taint_of_slice),
    "counters": Plant("1.36", "1.35", counters_dropped),
    "devices-by-node": Plant("1.36", "1.35", devices_by_node),
    "rule-without-taints": Plant(
        "1.36", "1.35", rule_without_taints, gates=("DRADeviceTaintRules",)
    ),
    "rule-in-v1": Plant("1.37", "1.36", rule_in_v1, gates=("DRADeviceTaintRules",)),
    "beta": Plant("1.34", "1.35", written_in_beta),
    "applied": Plant("1.34", "1.36", applied_taint),
    "told": Plant("1.36", "1.37", told_of_claims),
    "toleration": Plant("1.37", "1.37", toleration_without_effect, quirks=(("c2", False),)),
}


async def stored(cluster: Cluster, settings: JsonObject) -> tuple[MemoryLog, HistoryInfo]:
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "base", seed=1, settings=settings, created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=cluster.line.events)
    return log, info


async def rehearsed(
    log: MemoryLog,
    info: HistoryInfo,
    target: str,
    gates: dict[str, bool] | None = None,
    quirks: dict[str, bool] | None = None,
    *,
    progress: Progress = silent,
    **bounds: int,
) -> Rehearsal:
    wanted = RehearsalRequest(
        release=target,
        until=(await log.head(info.id)).revision,
        gates=gates or {},
        quirks=quirks or {},
        exhibits=titles(map(incident_files.read, incident_files.names())),
        **bounds,
    )
    return await worlds.rehearse(log, info, wanted, ForkPlanes(Settings()), progress)


def live(cluster: Cluster, drawn: random.Random) -> None:
    """Runs pods with one device each, which every release decides alike."""
    cluster.node("n1")
    cluster.device_class()
    cluster.slice("n1", devices=8)
    cluster.template()
    for number in range(drawn.randrange(3, 7)):
        cluster.wait(drawn.randrange(2, 30))
        cluster.pod(f"plain-{number}", template="gpu")
        cluster.settle()
        cluster.wait(2)
        if drawn.random() < 0.5:
            cluster.finish(f"plain-{number}")
            cluster.settle()
        if drawn.random() < 0.3:
            cluster.wait(1)
            cluster.kill(f"plain-{number}")
            cluster.settle()
    cluster.wait(10)


def check(entries: list[str], expected: tuple[str, ...], what: str) -> None:
    for part in expected:
        assert any(part in entry for entry in entries), f"{what} does not name {part}: {entries}"
    for entry in entries:
        assert any(part in entry for part in expected), f"{what} names too much: {entry}"


@draws.BY_DAY
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PLANTS)
async def test_rehearsal_names_what_was_planted_and_nothing_else(name: str, seed: int) -> None:
    plant, drawn = PLANTS[name], random.Random(f"{name}-{seed}")
    profile = Profile(version=plant.source, gates=dict.fromkeys(plant.gates, True))
    cluster = Cluster(profile)
    live(cluster, drawn)
    expected = plant.put(cluster, drawn)
    log, info = await stored(cluster, profile.settings())
    report = await rehearsed(log, info, plant.target, quirks=dict(plant.quirks))
    assert (list(report.unlike), list(report.aside)) == ([], [])
    fared = {
        each.pair.name.removeprefix("default/"): each.classes[0].value
        for each in report.diff.differences
    }
    assert fared == expected.pods
    check([each.text for each in report.refused], expected.refused, "refused")
    check([one for each in report.dropped for one in each.texts], expected.dropped, "dropped")
    check([one for each in report.begins for one in each.texts], expected.begins, "begins")
    check(
        [f"no longer: {each.before}" if not each.after else each.after
         for each in report.contents.texts],
        expected.texts, "texts",
    )  # fmt: skip
    check([each.what for each in report.contents.fields], expected.fields, "fields")
    fates = {True: "is gone", False: "is newly deprecated"}
    used = [f"{each.api_version} {each.kind} {fates[each.is_gone]}" for each in report.versions]
    check(used, expected.versions, "versions")
    assert {each.incident for each in report.defects.changing} == set(expected.repaired)
    assert report.is_quiet is (expected == Expected())
    over = report.over_limit
    assert tuple(each.key.name for each in over) == expected.over_limit
    assert tuple(each.key.name for each in over if each.must_be_split) == expected.split
    page = " ".join(" ".join(shown(report, 100)).replace("│", "").split())
    assert ("it must be split" in page) is bool(expected.split)
    assert ("it is over a limit" in page) is (expected.over_limit != expected.split)
    if expected.roots is not None:
        roots = [root for root, _ in report.diff.roots()]
        named = [root.name if root.kind is RootKind.CHANGE else "" for root in roots]
        assert sorted(named) == sorted(expected.roots)
    assert [part for part in expected.says if part not in page] == []
    assert [part for part in expected.says_not if part in page] == []
    assert {proof.settings for proof in report.proofs.values()} == set(expected.by)
    assert all(proof.is_minimal for proof in report.proofs.values())
    # Of several settings not each was tried alone.
    assert all(proof.is_smallest for proof in report.proofs.values() if len(proof.settings) == 1)
    for each in report.diff.differences:
        assert each.proof == report.proofs["pod", str(each.pair.a.key), "0"]
    assert len(shown(report, 100)) <= (10 if report.is_quiet else text.LINES_MAX)
    if seed == 0:
        fields = sorted(set(paths(report.to_json()))) if name in WITH_FIELDS else ()
        lines = (*shown(report, 100), *fields)
        kept_texts.check(PAGES, name, "\n".join(map(str.rstrip, lines)), PLANTS)


PAGES = Path(__file__).with_name("rehearsed_pages.txt")
"""The whole page of each plant; of some, the paths of the fields of their JSON."""

WITH_FIELDS = ("rule-in-v1", "selector", "taint", "pool-status-silent")
"""Plants that together show nearly all fields."""


def paths(tree: Any, path: str = "json") -> Iterator[str]:
    """The paths of a tree down to its leaves; entries of lists share one."""
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            yield from paths(value, f"{path}.{key}")
    elif isinstance(tree, list) and tree:
        for value in tree:
            yield from paths(value, f"{path}[]")
    else:
        yield path


def both(
    first: Callable[[Cluster, random.Random], Expected],
    second: Callable[[Cluster, random.Random], Expected],
) -> Callable[[Cluster, random.Random], Expected]:
    """What puts two plants into one cluster."""

    def put(cluster: Cluster, drawn: random.Random) -> Expected:
        second(cluster, drawn)
        return first(cluster, drawn)

    return put


TOGETHER = {
    "over a limit": Plant("1.36", "1.34", many_taints, gates=("DRADeviceTaints",)),
    "to split, deprecated": Plant(
        "1.34",
        "1.37",
        both(both_in_one_slice, written_in_beta),
        gates=("DRAPartitionableDevices",),
    ),
    "gone, refused": Plant(
        "1.37",
        "1.36",
        both(rule_in_v1, service_of_digits),
        gates=("DRADeviceTaintRules",),
    ),
    "dropped before": Plant("1.36", "1.35", devices_by_node),
    "begins to be kept": Plant("1.34", "1.36", applied_taint),
}
"""Plants that have something refused or kept; those above come by day, these with each run."""


@pytest.mark.parametrize("name", TOGETHER)
async def test_page_and_json_of_what_a_release_refuses_or_keeps_read_the_same(name: str) -> None:
    plant, drawn = TOGETHER[name], random.Random(1)
    profile = Profile(version=plant.source, gates=dict.fromkeys(plant.gates, True))
    cluster = Cluster(profile)
    live(cluster, drawn)
    plant.put(cluster, drawn)
    log, info = await stored(cluster, profile.settings())
    report = await rehearsed(log, info, plant.target)
    assert report.refused or report.begins
    lines = (*shown(report, 100), *json.dumps(report.to_json(), indent=1).splitlines())
    kept_texts.check(REFUSED, name, "\n".join(map(str.rstrip, lines)), TOGETHER)


REFUSED = Path(__file__).with_name("rehearsed_refusals.txt")
"""The whole page and the JSON of each of `TOGETHER`."""


SWITCHED = [
    name
    for name in incident_files.names()
    if (incident := incident_files.read(name).incident).repaired not in (None, incident.cluster)
    and all(step.only is None for step in incident.steps)
]
"""Incidents that another release, gate or quirk repairs, with the same steps."""


@draws.BY_DAY
@pytest.mark.parametrize("name", SWITCHED)
async def test_rehearsal_of_the_repair_names_the_pods_of_the_incident(name: str) -> None:
    incident = incident_files.read(name).incident
    played = playing.play(incident, IncidentVariant.BROKEN)
    log = MemoryLog(MemoryStore())
    info = await log.create_history(
        "base", seed=1, settings=incident.cluster.settings(), created=Instant(0), hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=played.events)
    repaired = incident.cluster_of(IncidentVariant.REPAIRED)
    same = await rehearsed(log, info, incident.cluster.profile)
    assert same.is_quiet
    report = await rehearsed(
        log, info, repaired.profile, gates=repaired.gates, quirks=repaired.quirks
    )
    assert not report.is_quiet
    concerned = {fact.pod for fact in incident.finding if fact.pod and fact.violated is None}
    body = report.to_json()
    shown = json.dumps([body["decisions"]["differences"], body["texts"], body["fields"]])
    assert not concerned or any(f"/{pod}" in shown for pod in concerned), shown


async def one_pod_moved(claim: JsonObject | None = None) -> tuple[MemoryLog, HistoryInfo]:
    """A history in which 1.35 places pod `moved` on another node, because of r5.

    Least allocated is 49 and 50; the balance counts 80 and 70 since 1.36, 70 and 90 before. Memory
    is a mebibyte off a fifth, which costs n1 a point: (20 + 79) // 2 and (60 + 40) // 2.
    """
    cluster = Cluster(Profile(version="1.36"))
    for name, cpu, memory in (("n1", "3200m", "0"), ("n2", "1600m", "26214Mi")):
        cluster.node(name, cpu="4")
        chosen = {"kubernetes.io/hostname": name}
        cluster.pod(f"on-{name}", requests={"cpu": cpu, "memory": memory}, nodeSelector=chosen)
        cluster.slice(name, devices=1)
    if claim is not None:
        cluster.device_class()
        cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "own", spec={"spec": claim})
    cluster.settle()
    cluster.wait(60)
    template = "" if claim is None else "own"
    cluster.pod("moved", requests={"cpu": "0", "memory": "13107Mi"}, template=template)
    cluster.settle()
    return await stored(cluster, cluster.profile.settings())


@pytest.mark.parametrize(
    ("bounds", "trials"),
    [({}, None), ({"trial_events_max": 1}, 0), ({"runs_max": 0}, 0), ({"runs_max": 1}, 1)],
)
async def test_changes_without_a_known_setting_are_counted_and_the_bound_is_named(
    bounds: dict[str, int], trials: int | None
) -> None:
    log, info = await one_pod_moved()
    report = await rehearsed(log, info, "1.35", **bounds)
    (difference,) = report.diff.differences
    page = " ".join(" ".join(shown(report, 200)).split())
    if trials is None:
        assert (report.unattributed, "REDRA_REHEARSE_RUNS_MAX" in page) == (0, False)
        return
    assert (report.trials, report.unattributed) == (trials, 1)
    assert report.to_json()["unattributed"] == 1
    runs = "1 run:" if trials == 1 else f"{trials} runs:"
    assert f"the settings of 1 change are not known, or not narrowed down, after {runs}" in page
    assert "REDRA_REHEARSE_RUNS_MAX and REDRA_REHEARSE_EVENTS_MAX" in page
    proof = difference.proof
    assert proof is None if trials == 0 else not proof.is_minimal


async def test_dropped_field_is_no_root_of_what_another_setting_moves() -> None:
    """1.35 drops the toleration of the pod's claim; with the toleration the pod moves, too."""
    tolerant = claim_spec(tolerations=[{"key": KEY, "operator": "Exists"}])
    log, info = await one_pod_moved(tolerant)
    report = await rehearsed(log, info, "1.35")
    (difference,) = report.diff.differences
    assert difference.proof == Proof(settings=("quirk r5: off → on",))
    assert [(root.kind, root.text) for root in difference.roots] == [
        (RootKind.SETTINGS, "quirk r5: off → on")
    ]
    (dropped,) = {str(each.key) for each in report.dropped}
    assert dropped.endswith("/own")


async def test_scores_of_both_releases_are_told_where_they_decide() -> None:
    log, info = await one_pod_moved()
    report = await rehearsed(log, info, "1.35")
    (difference,) = report.diff.differences
    assert difference.proof is not None
    assert difference.proof.settings == ("quirk r5: off → on",)
    parting = difference.parting
    assert parting is not None
    scores = [dict(part.split(" scores ") for part in said.split(", ")) for said in
              (parting.a, parting.b)]  # fmt: skip
    before, after = ({node: int(score) for node, score in one.items()} for one in scores)
    assert before["n1"] - before["n2"] == (49 + 80) - (50 + 70)
    assert after["n2"] - after["n1"] == (50 + 90) - (49 + 70)
    assert f"in A {parting.a}; in B {parting.b}" in " ".join(" ".join(shown(report, 200)).split())


def place_from_outside(cluster: Cluster, pod: str, claim: str, device: str) -> None:
    """Gives a pod a device of node n2, as a scheduler with the name of a user does."""
    uid = cluster.must("pods", pod)["metadata"]["uid"]
    result = {"request": "gpu", "driver": DRIVER, "pool": "n2", "device": device}
    cluster.patch("resourceclaims", claim, subresource="status", body={"status": {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}],
    }})  # fmt: skip
    cluster.line.submit(BindPod(key=ObjectKey("", "pods", "default", pod), node="n2"), actor=USER)
    cluster.settle()


async def with_a_scheduler_from_outside(
    *, was_at_work: bool
) -> tuple[Rehearsal, frozenset[str], str]:
    """The rehearsal of a history in which others place pods, with its steps and its page.

    The scheduler of redra `was_at_work` before, or never. Of three pods it would place one that
    waits here, and place another one elsewhere.
    """
    profile = Profile(version="1.36")
    cluster = Cluster(profile)
    for node in ("n1", "n2"):
        cluster.node(node)
        cluster.slice(node)
    cluster.device_class()
    if was_at_work:
        cluster.claim("before")
        cluster.pod("before", claim="before")
        cluster.settle().wait(5)
    cluster.stop("scheduling")
    for name in ("pod", "next", "waits"):
        cluster.claim(name)
        cluster.pod(name, claim=name)
    cluster.settle().wait(5)
    place_from_outside(cluster, "pod", "pod", "gpu-1")
    cluster.wait(90)
    place_from_outside(cluster, "next", "next", "gpu-0")
    cluster.wait(60)
    log, info = await stored(cluster, profile.settings())
    steps: set[str] = set()
    report = await rehearsed(log, info, "1.37", progress=lambda step, *_: steps.add(step))
    return report, frozenset(steps), " ".join(" ".join(shown(report, 200)).split())


async def test_writes_of_a_scheduler_from_outside_beside_that_of_redra_are_called_so() -> None:
    """Its devices and nodes differ from those that redra decides, and no API lets them change."""
    report, _, page = await with_a_scheduler_from_outside(was_at_work=True)
    assert (report.doubtful, report.absent) == ({}, frozenset())
    assert {key.resource for key in report.placed} == {"pods", "resourceclaims"}
    assert report.refused == []
    assert "placed by a scheduler from outside" in page
    assert "in whose place redra's decides here" in page
    assert "both releases as they are imitated refuse" not in page


async def test_scheduler_that_never_was_at_work_is_in_neither_world() -> None:
    """All placements stay as they were, so there is nothing to prove, and nothing is unsure."""
    report, steps, page = await with_a_scheduler_from_outside(was_at_work=False)
    assert [step for step in steps if "proving" in step] == []
    assert (list(report.unlike), list(report.aside)) == ([], [])
    assert (report.compared, report.absent) == (report.decided, {"scheduler"})
    assert (report.doubtful, report.refused, report.is_quiet) == ({}, [], True)
    assert "whose choices stay as they were" in page
    assert "therefore in neither world: redra's scheduler" in page
    assert report.to_json()["unsure"]["notAtWork"] == ["scheduler"]


async def test_rehearsal_of_what_nobody_knows_is_refused() -> None:
    cluster = Cluster(Profile(version="1.36"))
    log, info = await stored(cluster, cluster.profile.settings())
    for target, gates, quirks, said in (
        ("1.99", {}, {}, "there is no profile '1.99'"),
        ("1.37", {"Nope": True}, {}, "there is no feature gate 'Nope'"),
        ("1.37", {}, {"z1": True}, "z1"),
    ):
        with pytest.raises(InputError, match=said):
            await rehearsed(log, info, target, gates=gates, quirks=quirks)
    assert (await log.head(info.id)).revision == Revision(len(cluster.line.events))


@pytest.mark.parametrize(("release", "is_on"), [("1.36", True), ("1.36.2", False)])
async def test_history_is_called_by_its_own_release_whatever_its_switches(
    release: str, *, is_on: bool
) -> None:
    """C24 is what 1.36.2 has and 1.36 has not; the histories are called so all the same."""
    cluster = Cluster(Profile(version=release, rules_unseen=is_on))
    cluster.node("n1")
    settings = {**Profile(version=release).settings(), "quirks": {"c24": is_on}}
    report = await rehearsed(*await stored(cluster, settings), "1.37")
    assert text.head_of(report).startswith(f"base, of {release}, under 1.37 up to revision ")
