"""Parts of an object that no write changes, and lines that show another value of them."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss
from tests.unit.history.test_contradictions import read
from tests.unit.history.worlds import CLAIMS, PODS, audit, tree, write_lines

POD = {
    "schedulerName": "default-scheduler",
    "priority": 0,
    "nodeName": "n",
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}


def claim_spec(count=1, **more):
    exactly = {"deviceClassName": "c", "count": count, **more}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


def contradicted(folder, type_, *specs, verb="update", subresource="status", generations=()):
    """The lines that are marked, and the paths that are named, of states with these specs."""
    lines = []
    for number, spec in enumerate(specs):
        metadata = {"generation": generations[number]} if generations else None
        state = tree(type_, "x", rv=3 + number, spec=spec, metadata=metadata)
        how = {"subresource": subresource} if number else {}
        asked = verb if number else "create"
        lines.append(audit(asked, state, type_=type_, name="x", second=1 + number, **how))
    records, report = read(write_lines(folder / "a.jsonl", lines))
    marked = [record.position for record in records if Loss.IMMUTABLE in record.losses]
    return marked, [each.path.partition(",")[0] for each in report.contradictions]


@pytest.mark.parametrize(
    ("type_", "spec", "other", "path"),
    [
        (CLAIMS, claim_spec(), claim_spec(2), "spec"),
        (CLAIMS, claim_spec(), {"devices": {"requests": []}}, "spec"),
        (PODS, POD, POD | {"schedulerName": "mine"}, "spec.schedulerName"),
        (PODS, POD, POD | {"priority": 9}, "spec.priority"),
        (PODS, POD, POD | {"nodeName": "m"}, "spec.nodeName"),
        (PODS, POD, POD | {"resourceClaims": [{"name": "gpu"}] * 2}, "spec.resourceClaims"),
        (PODS, POD, POD | {"tolerations": [{"key": "b"}]}, "spec.tolerations"),
    ],
)
def test_line_with_another_value_of_a_fixed_part_is_contradicted(
    type_, spec, other, path, tmp_path
):
    marked, paths = contradicted(tmp_path, type_, spec, spec, other, spec)
    assert (marked, paths) == (["3"], [path])
    assert contradicted(tmp_path, type_, spec, spec, spec) == ([], [])


@pytest.mark.parametrize(
    ("type_", "before", "after"),
    [
        (PODS, POD | {"nodeName": ""}, POD),
        (PODS, POD, POD | {"tolerations": [*POD["tolerations"], {"key": "b"}]}),
        (PODS, POD | {"priority": None}, POD),
        (CLAIMS, claim_spec(), claim_spec(allocationMode="ExactCount")),
    ],
)
def test_what_is_added_contradicts_nothing(type_, before, after, tmp_path):
    """A binding gives a node, a controller adds tolerations, another release adds defaults."""
    assert contradicted(tmp_path, type_, before, after, after) == ([], [])


def test_generation_of_a_pod_never_falls(tmp_path):
    assert contradicted(tmp_path, PODS, POD, POD, POD, generations=(1, 2, 2)) == ([], [])
    marked, paths = contradicted(tmp_path, PODS, POD, POD, POD, generations=(1, 8, 1))
    assert (marked, paths) == (["3"], ["metadata.generation"])


def pod(version, generation, **metadata):
    return tree(PODS, "x", rv=version, spec=POD, metadata={"generation": generation, **metadata})


def paths_of(*files):
    with open_history(list(files), ReadOptions()) as recorded:
        list(recorded.records())
        return [each.path.partition(",")[0] for each in recorded.contradictions]


@pytest.mark.parametrize(
    ("version", "paths"), [(5, ["metadata.generation"]), (4, []), (2, []), (None, [])]
)
def test_removal_of_one_pod_shows_no_earlier_generation_with_a_later_version(
    version, paths, tmp_path
):
    """The line before it has version 4; older servers answer with the version before."""
    lines = [
        audit("create", pod(3, 1), type_=PODS, name="x", second=1),
        audit("patch", pod(4, 8), type_=PODS, name="x", second=2, subresource="status"),
        audit("delete", pod(version, 1), type_=PODS, name="x", second=3),
    ]
    assert paths_of(write_lines(tmp_path / "a.jsonl", lines)) == paths


def test_removal_with_a_collection_may_show_an_earlier_generation(tmp_path):
    """The list has the pods as they were found, whatever version a watch gives to the removal."""
    ending = {"deletionTimestamp": "2026-01-01T00:00:02Z", "deletionGracePeriodSeconds": 0}
    items = {"kind": "PodList", "apiVersion": "v1", "items": [pod(3, 1)]}
    lines = [
        audit("create", pod(3, 1), type_=PODS, name="x", second=1),
        audit("deletecollection", items, type_=PODS, name="", second=3),
    ]
    seen = [
        {"type": "ADDED", "object": pod(3, 1)},
        {"type": "MODIFIED", "object": pod(4, 2, **ending)},
        {"type": "DELETED", "object": pod(5, 1)},
    ]
    files = write_lines(tmp_path / "a.jsonl", lines), write_lines(tmp_path / "watch.jsonl", seen)
    assert paths_of(*files) == []
