"""Objects without a defect: hardware that comes with the program, and claims that it satisfies."""

import random

from app.analysis.fleet import generation
from app.bootstrap import fleets
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

UNITS_MAX = 3
"""Units of hardware a node: few, and enough for a pool of several slices."""

PROFILES = ("a100-mig", "cpu", "nic", "shared", "tpu-8x8")


def objects(rng: random.Random, profile: str) -> list[JsonObject]:
    """Nodes, classes, slices of one profile, and a claim and a template for each class."""
    hardware = json_tree.copy(fleets.read_profile(profile))
    for row in hardware["pools"]:
        row["units"] = min(row.get("units", 1), UNITS_MAX)
    fleet = generation.build(hardware, 1, seed=rng.getrandbits(9))
    trees = [json_tree.copy(tree) for tree in generation.manifests(fleet)]
    trees = [tree for tree in trees if tree["kind"] in ("Node", "DeviceClass", "ResourceSlice")]
    for number, tree in enumerate(trees):
        tree["metadata"].pop("generateName", None)
        tree["metadata"].setdefault("name", f"object-{number}")
    classes = [tree["metadata"]["name"] for tree in trees if tree["kind"] == "DeviceClass"]
    for number, name in enumerate(classes):
        trees.append(claim(f"claim-{number}", exactly(name)))
        # A mesh of TPUs is one device: a second request of its class would never be satisfied.
        second = [] if profile.startswith("tpu") else [exactly(name, "second")]
        trees.append(template(f"template-{number}", exactly(name), *second))
    rng.shuffle(trees)
    return trees


def exactly(name: str, request: str = "first") -> JsonObject:
    """A request for one device of a class."""
    return {
        "name": request,
        "exactly": {"deviceClassName": name, "allocationMode": "ExactCount", "count": 1},
    }


def claim(name: str, *requests: JsonObject) -> JsonObject:
    """A claim."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: JsonObject) -> JsonObject:
    """A template of claims."""
    made = claim(name, *requests)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}
