"""What `scan` advises against an incident, done to its objects: the cluster no longer shows it.

The `repaired` cluster of an incident is another control plane, which nobody can wait for. The
advice changes objects of users or drivers instead. Each row edits these as its sentence says, and
plays the same steps with the defect still there.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.analysis.incidents.incident import Incident, IncidentVariant
from app.bootstrap.gallery import incident_files
from app.domain.values import json_tree
from tests import draws
from tests.conformance.test_scan import LASTING, lasting, scanned

Tree = dict[str, Any]
Edit = Callable[[Tree], Tree | list[Tree] | None]
"""The objects that take the place of one; None leaves it out."""

DRIVER = "gpu.example.com"
SIZE = "size == 40"


def of(kind: str, change: Callable[[Tree], Tree | list[Tree] | None]) -> Edit:
    """Changes objects of a kind alone."""
    return lambda tree: change(tree) if tree["kind"] == kind else tree


def spec_of(kind: str, change: Callable[[Tree], object]) -> Edit:
    """Changes the specs of a kind where they are."""

    def edit(tree: Tree) -> Tree:
        change(tree["spec"])
        return tree

    return of(kind, edit)


def of_devices(change: Callable[[list[Tree]], object]) -> Edit:
    """Changes the devices of each slice that has some."""
    return spec_of("ResourceSlice", lambda spec: change(spec.get("devices", [])))


def requests_of(spec: Tree) -> list[Tree]:
    """The requests of a claim."""
    return spec["devices"]["requests"]


def each_alone(spec: Tree) -> None:
    """One request for each device of a request for several."""
    (request,) = requests_of(spec)
    count = request["exactly"].pop("count")
    spec["devices"]["requests"] = [
        {"name": f"r{number}", "exactly": {**request["exactly"]}} for number in range(count)
    ]


def guarded(spec: Tree) -> None:
    """Selectors that ask whether the attribute is there."""
    for request in requests_of(spec):
        for selector in request["exactly"]["selectors"]:
            text = selector["cel"]["expression"]
            has = f'has(device.attributes["{DRIVER}"].size)'
            selector["cel"]["expression"] = f"{has} && {text}"


def of_each_board(tree: Tree) -> list[Tree]:
    """Pools of one counter set each: slices with the sets, and with the devices that draw on it."""
    made = []
    for name in ("one", "two"):
        copy = json_tree.copy(tree)
        spec = copy["spec"]
        copy["metadata"]["name"] += f"-{name}"
        spec["pool"]["name"] += f"-{name}"
        if "sharedCounters" in spec:
            spec["sharedCounters"] = [
                each for each in spec["sharedCounters"] if each["name"] == name
            ]
        else:
            spec["devices"] = [
                each
                for each in spec["devices"]
                if each["consumesCounters"][0]["counterSet"] == name
            ]
        made.append(copy)
    return made


def of_its_node(spec: Tree) -> None:
    """A pool for each node."""
    spec["pool"]["name"] = spec["nodeName"]


def of_one_slice(spec: Tree) -> None:
    """A pool that the one slice of its node completes."""
    spec["pool"] |= {"name": spec["nodeName"], "resourceSliceCount": 1}


def shared(devices: list[Tree]) -> None:
    """A capacity of which each share takes a part."""
    policy = {"default": "1Gi"}
    for device in devices:
        device["capacity"] = {"memory": {"value": "4Gi", "requestPolicy": policy}}


def with_a_claim(spec: Tree) -> None:
    """A pod that names a claim instead of asking for an extended resource."""
    (container,) = spec["containers"]
    container["resources"] = {"claims": [{"name": "c0"}]}
    spec["resourceClaims"] = [{"name": "c0", "resourceClaimTemplateName": "mine"}]


def template_beside_the_class(tree: Tree) -> list[Tree]:
    request = {"name": "r", "exactly": {"deviceClassName": tree["metadata"]["name"]}}
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    return [tree, made]


def of_both_effects(spec: Tree) -> None:
    """A toleration for each effect in the place of each one without."""
    for request in requests_of(spec):
        exactly = request["exactly"]
        exactly["tolerations"] = [
            {**toleration, "effect": effect}
            for toleration in exactly["tolerations"]
            for effect in ("NoSchedule", "NoExecute")
        ]


TAINT = {"key": "example.com/bad", "effect": "NoExecute"}

ADVICE: dict[str, tuple[str, list[Edit]]] = {
    "admin-access-takes-the-device": (
        "List the claim with administrative access last",
        [spec_of("Pod", lambda spec: spec["resourceClaims"].reverse())],
    ),
    "all-mode-constraint-ends-all": (
        "Ask for a number of devices",
        [
            spec_of(
                "ResourceClaim",
                lambda spec: requests_of(spec)[0]["exactly"].update(
                    allocationMode="ExactCount", count=2
                ),
            )
        ],
    ),
    "alternative-that-is-never-reached": (
        "Avoid mode All in alternatives",
        [
            spec_of(
                "ResourceClaim",
                lambda spec: requests_of(spec)[0]["firstAvailable"][1].update(
                    allocationMode="ExactCount", count=2
                ),
            )
        ],
    ),
    "alternatives-leave-traces": (
        "the likeliest comes first",
        [spec_of("ResourceClaim", lambda spec: requests_of(spec)[0]["firstAvailable"].reverse())],
    ),
    "common-values-stay-narrow": (
        "the narrowest comes first",
        [
            spec_of(
                "ResourceClaim", lambda spec: requests_of(spec).insert(0, requests_of(spec).pop())
            )
        ],
    ),
    "counter-below-zero": (
        "Publish each board as a pool of its own",
        [of("ResourceSlice", of_each_board)],
    ),
    "counters-by-pool-name": (
        "Give the pools of different drivers different names",
        [
            spec_of(
                "ResourceSlice",
                lambda spec: spec["pool"].update(name=f"{spec['driver']}-{spec['pool']['name']}"),
            )
        ],
    ),
    "counters-stay-booked": (
        "publish devices with taints last",
        [of_devices(lambda devices: devices.sort(key=lambda each: "taints" in each))],
    ),
    "distinct-remembers-the-last": (
        "Ask for the devices by one request each",
        [spec_of("ResourceClaim", each_alone)],
    ),
    "extended-resources-stay": (
        "let them name claims",
        [of("DeviceClass", template_beside_the_class), spec_of("Pod", with_a_claim)],
    ),
    "newer-generation-unnoticed": (
        "Publish a pool for each node",
        [spec_of("ResourceSlice", of_its_node)],
    ),
    "one-error-ends-all": (
        "Guard attributes with has() or orValue()",
        [spec_of("ResourceClaim", guarded)],
    ),
    "pool-disappears-while-it-changes": (
        "Publish a pool for each node",
        [spec_of("ResourceSlice", of_one_slice)],
    ),
    "rules-not-seen": (
        "publish the taints in the ResourceSlices",
        [
            of("DeviceTaintRule", lambda tree: None),
            of_devices(lambda devices: [each.update(taints=[{**TAINT}]) for each in devices]),
        ],
    ),
    "selector-fails-on-a-broken-device": (
        "Publish the attributes of broken devices too",
        [
            of_devices(
                lambda devices: [
                    each.setdefault("attributes", {"size": {"int": 40}}) for each in devices
                ]
            )
        ],
    ),
    "share-without-capacity": (
        "Publish a capacity that shares consume",
        [of_devices(shared)],
    ),
    "toleration-without-effect": (
        "Write one toleration for each effect",
        [spec_of("ResourceClaim", of_both_effects)],
    ),
}
"""Words of the advice, and what it does, by incident."""

NOTHING_TO_DO = {
    "alternatives-are-not-scored": "the repair is the release; the other one is a matter of taste",
    "finished-pod-is-deleted": "there is none",
    "scoring-fails-for-shared-claims": "the repair is the release alone",
}
"""The incidents of another control plane for which there is nothing to change, and why."""


def followed(incident: Incident, edits: list[Edit]) -> Incident:
    """The incident with its objects edited."""
    steps = []
    for step in incident.steps:
        trees: list[Tree] = [json_tree.copy(tree) for tree in step.apply or ()]
        for edit in edits:
            made = [edit(tree) for tree in trees]
            trees = [
                tree
                for each in made
                if each is not None
                for tree in (each if isinstance(each, list) else [each])
            ]
        steps.append(msgspec.structs.replace(step, apply=trees or None))
    return msgspec.structs.replace(incident, steps=steps)


def test_each_incident_that_another_control_plane_repairs_has_its_advice() -> None:
    repaired = {
        name
        for name in incident_files.names()
        if incident_files.read(name).incident.repaired is not None
    }
    assert repaired == {*ADVICE, *NOTHING_TO_DO}


@draws.BY_DAY
@pytest.mark.parametrize("name", sorted(ADVICE))
def test_advice_that_is_followed_ends_the_finding(name: str) -> None:
    incident = incident_files.read(name).incident
    if name in LASTING:
        incident = lasting(incident)
    words, edits = ADVICE[name]
    assert words in re.sub(r"\s+", " ", incident.repair)
    changed = followed(incident, edits)
    assert changed != incident
    assert name in scanned(incident, IncidentVariant.BROKEN)
    assert scanned(changed, IncidentVariant.BROKEN) == {}
