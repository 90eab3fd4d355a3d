"""Slices that no allocation sees: the cause is reported, not its consequences."""

import pytest

from app.analysis.lint import linting
from app.analysis.lint.subjects import LintedObject, Subjects
from app.analysis.views import features_of
from app.bootstrap.rules import rules_for
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

PROFILE = Profile()
POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 2}
CARD = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
SLICE = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n1"}


def slice_of(name: str, **spec: object) -> LintedObject:
    tree: JsonObject = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }
    return LintedObject(kind="ResourceSlice", tree=tree, source="slices.yaml", line=1)


def errors(
    *, written: tuple[LintedObject, ...] = (), stored: tuple[LintedObject, ...] = ()
) -> list[tuple[str, str, str]]:
    """The rule, the object and the message of each error."""
    admitted, hidden, refusals = linting.admit(written, rules_for(PROFILE), Instant(0))
    subjects = Subjects.of((*admitted, *stored), hidden)
    report = linting.lint(subjects, features=features_of(PROFILE), before=refusals)
    return [
        (each.rule.id, each.place.object, each.message)
        for each in report.findings
        if each.severity.value == "error"
    ]


def test_pool_whose_other_slice_is_refused_is_not_called_incomplete() -> None:
    devices = slice_of("devices", **SLICE, devices=[{"name": "gpu-0"}])
    nowhere = {**SLICE, "sharedCounters": CARD}
    del nowhere["nodeName"]
    ((rule, name, _),) = errors(written=(devices, slice_of("counters", **nowhere)))
    assert (rule, name) == ("object-invalid", "ResourceSlice/counters")


@pytest.mark.parametrize(
    "pool", [{**POOL, "name": "other"}, {**POOL, "generation": 2}, {**POOL, "name": ""}]
)
def test_pool_is_incomplete_where_the_refused_slice_is_of_another(pool: JsonObject) -> None:
    devices = slice_of("devices", **SLICE, devices=[{"name": "gpu-0"}])
    refused = slice_of("refused", driver="gpu.example.com", pool=pool, sharedCounters=CARD)
    rules = {(rule, name) for rule, name, _ in errors(written=(devices, refused))}
    assert ("pool-incomplete", "ResourceSlice/devices") in rules


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"nodeName": "n1"}, "spec.driver and spec.pool.name are missing"),
        ({"driver": "gpu.example.com"}, "spec.pool.name is missing"),
        ({"pool": POOL}, "spec.driver is missing"),
    ],
)
def test_stored_slice_without_driver_or_pool_is_told_as_that(
    spec: JsonObject, message: str
) -> None:
    place = "ResourceSlice/excerpt"
    assert errors(stored=(slice_of("excerpt", **spec),)) == [("object-invalid", place, message)]


def test_slice_for_other_nodes_is_named_with_its_selector_as_json() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    chosen = {**SLICE, "nodeSelector": {"nodeSelectorTerms": terms}}
    del chosen["nodeName"]
    stored = (
        slice_of("a", **SLICE, devices=[{"name": "gpu-0"}]),
        slice_of("b", **chosen, devices=[{"name": "gpu-1"}]),
    )
    report = linting.lint(Subjects.of(stored), features=features_of(PROFILE))
    messages = [each.message for each in report.findings if each.rule.id == "pool-node-mix"]
    assert messages == [
        'this slice selects nodes by nodeSelector {"nodeSelectorTerms": [{"matchExpressions": '
        '[{"key": "zone", "operator": "In", "values": ["a"]}]}]}, ResourceSlice/a of the same '
        "pool by nodeName n1"
    ]
