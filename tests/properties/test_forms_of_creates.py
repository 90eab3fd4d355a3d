"""A create with a remembered form gives the same result as a create without one.

Pods and claims of the published manifests, and some with all fields, are altered in each place in
each way; manifests come by day. One set of rules remembers forms of all, the other of none.
"""

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.bootstrap.rules import rules_for
from app.domain.errors import Rejected
from app.domain.log.chain import canonical_json
from app.domain.objects.prepared_creates import Forms
from app.domain.objects.profile import Profile
from app.domain.objects.rules import Rules
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import CreateObject, FieldValidation, WriteOptions
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from tests import draws
from tests.properties.test_republished_slices import alterations
from tests.shared_data import shared_path
from tests.unit.objects import builders

ALTERED_OF_EACH = 25 if draws.WHOLE else 8
"""Alterations of one manifest that are tried, drawn by its number and the release."""

MADE_OF_EACH = 5
"""Each is created five times, and so are its alterations that are not refused."""

PODS_OF = ("Deployment", "DaemonSet", "Job", "ReplicaSet", "StatefulSet")

POD = builders.pod(
    restartPolicy="Never",
    nodeSelector={"disk": "ssd"},
    tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
    resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    schedulingGroup={"podGroupName": "g"},
)
CLAIM = builders.claim(
    spec={
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "capacity": {"requests": {"memory": "1024Mi"}},
                        "tolerations": [{"key": "a", "operator": "Exists"}],
                    },
                },
                {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]},
            ],
            "constraints": [{"distinctAttribute": "gpu.example.com/uuid"}],
        }
    }
)


def documents(path: Path) -> Iterator[JsonObject]:
    try:
        every = yaml.load_all(path.read_text(), yaml.CSafeLoader)
        yield from (tree for tree in every if isinstance(tree, dict))
    except (yaml.YAMLError, UnicodeDecodeError):
        return


def created_by(tree: JsonObject) -> JsonObject | None:
    """The pod or claim of a manifest, or of its template; None for other kinds."""
    kind = tree.get("kind")
    if kind in ("Pod", "ResourceClaim"):
        return tree
    spec = json_tree.mapping(tree, "spec")
    if kind in PODS_OF and isinstance(made := json_tree.get(spec, "template", "spec"), dict):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": made}
    if kind == "ResourceClaimTemplate" and isinstance(made := spec.get("spec"), dict):
        return builders.claim(spec=made, apiVersion=tree.get("apiVersion"))
    return None


def world() -> builders.World:
    cluster = builders.Cluster()
    cluster.namespace()
    return cluster.world


def outcome(reader: builders.World, tree: JsonObject, rules: Rules, name: str, how: str) -> Any:
    """The created object as bytes with its warnings, or the refusal."""
    metadata = tree.get("metadata")
    if isinstance(metadata, dict):
        tree = {**tree, "metadata": {**metadata, "name": name, "namespace": "default"}}
    resource = "pods" if tree.get("kind") == "Pod" else "resourceclaims"
    version = str(tree.get("apiVersion")).rpartition("/")[2]
    command = CreateObject(
        key=builders.key(resource, name, "default"),
        version=version,
        tree=tree,
        options=WriteOptions(field_validation=FieldValidation(how), field_manager=name),
    )
    try:
        decided = lifecycle.decide(reader, command, builders.stamp(uid=f"uid-{name}"), rules)
    except Rejected as refusal:
        return type(refusal), str(refusal), refusal.causes
    return canonical_json(decided.tree), decided.warnings


def pair(version: str) -> tuple[Rules, Rules]:
    """Rules that remember forms, and rules without remembered forms."""
    rules = rules_for(Profile(version=version))
    return rules, dataclasses.replace(rules, forms=Forms(bytes_max=0))


def check(reader: builders.World, tree: JsonObject, rules: tuple[Rules, Rules]) -> int:
    """Compares creates of equal objects under both rules; returns the number of created ones."""
    made = 0
    for name, how in (
        ("a", "Ignore"),
        ("b", "Strict"),
        ("c", "Warn"),
        ("d", "Ignore"),
        ("e", "Warn"),
    ):
        remembering, forgetful = (outcome(reader, tree, each, name, how) for each in rules)
        assert remembering == forgetful, (name, how, tree)
        made += isinstance(forgetful[0], bytes)
    return made


@draws.in_turn("wrongs")
@pytest.mark.parametrize("version", ["1.34", "1.37"])
@pytest.mark.parametrize("tree", [POD, CLAIM], ids=["pod", "claim"])
def test_every_altered_object_is_made_as_it_is_without_forms(
    version: str, tree: JsonObject
) -> None:
    reader, rules = world(), pair(version)
    known = [altered for altered in alterations(tree) if isinstance(altered, dict)]
    made = sum(check(reader, altered, rules) for altered in [tree, *known, tree])
    assert made > 50
    assert rules[0].forms.size > 10


@draws.BY_DAY
@pytest.mark.parametrize("version", ["1.35", "1.37"])
def test_altered_manifests_are_made_as_they_are_without_forms(version: str) -> None:
    reader, rules = world(), pair(version)
    paths = sorted(shared_path("corpus").rglob("*.yaml"))
    trees = [made for path in paths for tree in documents(path) if (made := created_by(tree))]
    assert len(trees) > 100
    tried = draws.of_today([*enumerate(trees)])
    made = 0
    for number, tree in tried:
        known = [altered for altered in alterations(tree) if isinstance(altered, dict)]
        drawn = random.Random(f"{version} {number}").sample(known, min(ALTERED_OF_EACH, len(known)))
        made += sum(check(reader, altered, rules) for altered in [tree, *drawn])
    assert made > MADE_OF_EACH * len(tried)


@draws.in_turn("ways")
@pytest.mark.parametrize("tree", [POD, CLAIM], ids=["pod", "claim"])
def test_metadata_of_an_object_with_a_known_form_is_judged_by_itself(tree: JsonObject) -> None:
    metadata = {
        "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x.example/y"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        "generation": 3, "creationTimestamp": None,
    }  # fmt: skip
    reader, rules = world(), pair("1.37")
    for altered in alterations(metadata):
        check(reader, {**tree, "metadata": altered}, rules)
        if isinstance(altered, dict):
            kept = altered.keys() - {"ownerReferences", "creationTimestamp"}
            alone = {key: altered[key] for key in sorted(kept)}
            check(reader, {**tree, "metadata": alone}, rules)
    assert rules[0].forms.size < 10
    assert (rules[0].forms.twins > 10) == (tree is CLAIM)


def test_forms_are_bounded_and_long_objects_have_none() -> None:
    reader = world()
    rules = dataclasses.replace(rules_for(Profile()), forms=Forms(forms_max=3, bytes_max=300))
    for number in range(9):
        outcome(reader, builders.pod(nodeName=f"n{number}"), rules, "p", "Warn")
        assert rules.forms.size == min(number + 1, 3)
    before = rules.forms.size
    outcome(reader, builders.pod(nodeSelector={"a": "b" * 300}), rules, "p", "Warn")
    assert rules.forms.size == before


def test_forms_of_other_rules_are_not_found() -> None:
    """Rules that were changed share the memory; what it holds is of the first ones."""
    reader, first = world(), rules_for(Profile(version="1.37"))
    other = dataclasses.replace(first, profile=Profile(version="1.34"))
    alone = dataclasses.replace(other, forms=Forms(bytes_max=0))
    outcome(reader, CLAIM, first, "a", "Warn")
    assert outcome(reader, CLAIM, other, "b", "Warn") == outcome(reader, CLAIM, alone, "b", "Warn")
