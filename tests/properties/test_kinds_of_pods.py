"""The scheduler reuses a verdict of one pod for another only if every answer is the same.

The scheduler caches verdicts by a signature of the pod and its claims. Each place of a pod and of
its claim is altered in many ways. The answer of a scheduler that has seen all other variants is
compared with that of a scheduler that has seen none. So is what was read of a pod before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import pytest

from app.analysis.views import features_of
from app.domain.controllers import releases
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.framework.pods_on_nodes import bound_pod
from app.domain.controllers.scheduling.scheduling_cycle import attempt, cycle
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.cluster import Cluster, ControllerOptions
from tests.properties.test_republished_slices import alterations

DRIVER = "gpu.example.com"
TERM = {
    "labelSelector": {"matchLabels": {"app": "other"}}, "topologyKey": "kubernetes.io/hostname",
}  # fmt: skip
SPEC: JsonObject = {
    "containers": [
        {
            "name": "main",
            "image": "busybox:1",
            "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
        }
    ],
    "initContainers": [
        {"name": "first", "image": "busybox:1", "resources": {"requests": {"cpu": "3"}}}
    ],
    "overhead": {"cpu": "100m"},
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "preference": {
                        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]
                    },
                }
            ],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 3, "podAffinityTerm": TERM}
            ]
        },
    },
    "tolerations": [
        {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
        {"key": "soft", "operator": "Exists", "effect": "PreferNoSchedule"},
    ],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "mine"}},
        }
    ],
    "priority": 0,
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
}
PLAIN: JsonObject = {
    name: SPEC[name]
    for name in ("containers", "nodeSelector", "tolerations", "priority", "resourceClaims")
}
"""The same without what looks at other pods: then a whole run of nodes is answered from memory."""

TAINTS: tuple[list[JsonObject], ...] = (
    [],
    [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    [],
    [{"key": "soft", "effect": "PreferNoSchedule"}],
)

CLAIM: JsonObject = {
    "devices": {
        "requests": [
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "gpu",
                    "allocationMode": "ExactCount",
                    "count": 2,
                    "selectors": [
                        {"cel": {"expression": f"device.attributes['{DRIVER}'].size == 1"}}
                    ],
                    "tolerations": [{"key": "d", "operator": "Exists", "effect": "NoSchedule"}],
                },
            }
        ],
        "constraints": [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}],
    }
}


@dataclass
class Overlaid:
    """The objects of a cluster, some of them replaced."""

    objects: Any
    over: dict[ObjectKey, JsonObject]

    def get(self, key: ObjectKey) -> JsonObject | None:
        return self.over.get(key) or self.objects.get(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objects, name)


@dataclass
class Views:
    """The views that an attempt reads."""

    objects: Any
    inventory: Any
    allocated: Any


def in_order(value: Any) -> Any:
    """A value in comparable form: maps and sets are sorted."""
    if is_dataclass(value):
        return [in_order(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return sorted((name, in_order(part)) for name, part in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [in_order(part) for part in value]
    return value


class World:
    """Four nodes that differ in all properties that pods depend on, and a pod on one of them."""

    def __init__(self) -> None:
        made = Cluster(profile=Profile(), options=ControllerOptions(off=frozenset({"scheduling"})))
        made.device_class()
        self.nodes = NodeIndex()
        for number, (zone, disk) in enumerate(
            (("a", "ssd"), ("b", "ssd"), ("c", "hdd"), ("b", "hdd"))
        ):
            name = f"n{number}"
            made.node(name, cpu=str(4 + 2 * number), zone=zone, disk=disk)
            devices = [
                {
                    "name": f"d{place}",
                    "attributes": {
                        "size": {"int": place % 2 + (number == 3)},
                        "numa": {"int": place // 4},
                    },
                    "taints": [{"key": "d", "effect": "NoSchedule"}] if place > 3 else [],
                }
                for place in range(8)
            ]
            made.slice(name, devices)
        made.claim()
        self.pod = made.pod(claim="claim")
        self.claim = made.must("resourceclaims", "claim")
        other = made.pod("other")
        made.settle()
        for number, taints in enumerate(TAINTS):
            node = made.must("nodes", f"n{number}")
            self.nodes.put({**node, "spec": {"taints": taints}})
        labelled = {**other["metadata"], "labels": {"app": "other"}}
        (container,) = other["spec"]["containers"]
        ports = [{"containerPort": 1, "hostPort": 1, "protocol": "TCP"}]
        there = {"containers": [{**container, "ports": ports}], "nodeName": "n0"}
        self.nodes.bind(bound_pod({**other, "metadata": labelled, "spec": there}))
        term = {"labelSelector": {"matchLabels": {"app": "mine"}}, "topologyKey": "zone"}
        near = {"labelSelector": {}, "topologyKey": "zone", "namespaces": ["other"]}
        keeping = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "podAffinityTerm": near}
                ]
            },
        }
        away = {**other["metadata"], "name": "away", "uid": "away"}
        lonely = {"containers": [container], "nodeName": "n1", "affinity": keeping}
        self.nodes.bind(bound_pod({**other, "metadata": away, "spec": lonely}))
        self.made = made
        self.rules = cycle.SchedulerRules(
            gates=made.profile,
            features=features_of(made.profile),
            compiler=CelCompiler(detailed_errors=True),
            quirks=releases.quirks_of(made.profile),
        )

    def said(
        self, verdicts: Verdicts, specs: pod_spec.PodSpecs, pod: JsonObject, claim: JsonObject
    ) -> str:
        """The whole answer, or the exception."""
        views = self.made.line.views
        namespace = pod["metadata"]["namespace"]
        over = {
            ObjectKey("", "pods", namespace, "pod"): pod,
            ObjectKey("resource.k8s.io", "resourceclaims", namespace, "claim"): claim,
        }
        there = Views(Overlaid(views.objects, over), views.inventory, views.allocated)
        try:
            spec = specs.read((namespace, "pod"), pod)
            answer = attempt.attempt(
                self.rules, there, self.nodes, verdicts, spec, start=0, now=self.made.line.now
            )
        except Exception as problem:  # what no API admits fails alike
            return repr(problem)
        return repr(in_order(replace(answer, causes=None)))


def cases(world: World, spec: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Pods and claims with one place altered."""
    pod = {**world.pod, "spec": spec}
    claim = {**world.claim, "spec": CLAIM}
    yield pod, claim
    for altered in alterations(spec):
        if isinstance(altered, dict):
            yield {**pod, "spec": altered}, claim
    for labels in ({"app": "mine"}, {"app": "other"}, {}):
        yield {**pod, "metadata": {**pod["metadata"], "labels": labels}}, claim
    moved = [
        {**tree, "metadata": {**tree["metadata"], "namespace": "other"}} for tree in (pod, claim)
    ]
    yield moved[0], moved[1]
    # The refusal names the claim.
    unfit = {"spec": {"devices": {"requests": [{"name": "unfit"}]}}}
    yield pod, claim | unfit
    yield moved[0], moved[1] | unfit
    for altered in alterations(CLAIM):
        if isinstance(altered, dict):
            yield pod, {**claim, "spec": altered}


@draws.in_turn("ways")
@pytest.mark.parametrize("spec", [PLAIN, SPEC])
def test_a_signature_hides_no_change_of_what_is_read(spec: JsonObject) -> None:
    world, warm, specs = World(), Verdicts(), pod_spec.PodSpecs()
    base = next(cases(world, spec))
    first = world.said(warm, specs, *base)
    answers = set()
    for pod, claim in cases(world, spec):
        alone = world.said(Verdicts(), pod_spec.PodSpecs(), pod, claim)
        assert world.said(warm, specs, pod, claim) == alone, (pod["spec"], claim["spec"])
        assert world.said(warm, specs, *base) == first
        answers.add(alone[:2_000])
    assert len(answers) > 10, "alterations change the answer"


@pytest.mark.parametrize(("nodes", "kinds"), [(100, 640), (500, 128), (5_000, 32)])
def test_fewer_nodes_leave_room_for_more_kinds_of_pods(nodes: int, kinds: int) -> None:
    verdicts = Verdicts()
    first = verdicts.of(b"0", b"", nodes=nodes)
    for number in range(1, kinds):
        verdicts.of(str(number).encode(), b"", nodes=nodes)
    assert verdicts.of(b"0", b"", nodes=nodes) is first
    verdicts.of(b"0", b"other claims", nodes=nodes)
    assert verdicts.of(b"0", b"", nodes=nodes) is first
    assert len(verdicts._kinds) == kinds
