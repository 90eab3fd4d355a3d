"""Values of requests that their answers show as others."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss
from tests.unit.history.worlds import CLAIMS, PODS, audit, tree, write_lines

SLICES = ("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
SCHEDULED = {"type": "PodScheduled", "status": "True"}
RESULT = {"request": "r", "driver": "d", "pool": "n1", "device": "gpu-0"}
MUTATED = {
    "mutation.webhook.admission.k8s.io/round_0_index_0": '{"webhook":"w.example.com",'
    '"mutated":true}'
}


def read(folder, verb, asked, shown, *, type_=PODS, subresource="", **more):
    body = tree(type_, name="x", rv=9)
    answer = {**body, **shown, "metadata": {**body["metadata"], **shown.get("metadata", {})}}
    line = audit(
        verb, answer, type_=type_, name="x", request=asked, subresource=subresource, **more
    )
    with open_history([write_lines(folder / "audit.jsonl", [line])], ReadOptions()) as recorded:
        marks = [record.losses for record in recorded.records() if record.name == "x"]
        assert any(Loss.IMMUTABLE in each for each in marks) is bool(recorded.contradictions)
        return [each.path.partition(",")[0] for each in recorded.contradictions]


def status(**fields):
    return {"status": fields}


@pytest.mark.parametrize(
    ("asked", "shown", "path"),
    [
        (status(phase="Failed"), status(phase="Running"), "status.phase"),
        (
            status(conditions=[{**READY, "status": "False"}]),
            status(conditions=[SCHEDULED, READY]),
            "status.conditions[0]",
        ),
        (
            status(conditions=[{**READY, "status": "False"}]),
            status(conditions=[READY]),
            "status.conditions[0].status",
        ),
        (
            status(containerStatuses=[{"name": "c", "ready": True}]),
            status(containerStatuses=[{"name": "c", "ready": False}]),
            "status.containerStatuses[0].ready",
        ),
        (status(podIP="192.0.2.1"), status(podIP="192.0.2.2"), "status.podIP"),
        ({"metadata": {"name": "y"}, **status()}, status(), "metadata.name"),
    ],
)
def test_report_is_stored_as_it_was_sent(asked, shown, path, tmp_path):
    for verb in ("patch", "update"):
        assert read(tmp_path, verb, asked, shown, subresource="status") == [path]


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (status(conditions=[READY]), status(conditions=[SCHEDULED, READY])),
        (status(observedGeneration=3, phase="Running"), status(phase="Running")),
        (status(nominatedNodeName=None), status(phase="Pending")),
        (
            status(startTime="2026-01-01T00:00:01.25Z"),
            status(startTime="2026-01-01T00:00:01Z"),
        ),
        (
            status(conditions=[{"$patch": "delete", "type": "Other"}, READY]),
            status(conditions=[READY]),
        ),
        (
            {"$setElementOrder/conditions": [{"type": "Ready"}], **status(conditions=[READY])},
            status(conditions=[READY]),
        ),
        ({"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}, **status()}, {"spec": {"x": 2}}),
    ],
)
def test_answer_may_have_more_and_lack_what_a_server_drops(asked, shown, tmp_path):
    for verb in ("patch", "update"):
        assert read(tmp_path, verb, asked, shown, subresource="status") == []


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_spec_labels_and_annotations_are_stored_as_they_were_sent(verb, tmp_path):
    def answer(**metadata):
        return {"metadata": metadata, "spec": {"nodeName": "n1"}, **status(phase="Pending")}

    asked = {"metadata": {"labels": {"a": "1"}}, "spec": {"nodeName": "n1"}, "status": {"phase": 1}}
    assert read(tmp_path, verb, asked, answer(labels={"a": "1", "b": "2"})) == []
    assert read(tmp_path, verb, asked, answer(labels={"b": "2"})) == ["metadata.labels.a"]
    assert read(tmp_path, verb, asked, answer()) == ["metadata.labels"]
    other = {**asked, "spec": {"nodeName": "n2"}}
    assert read(tmp_path, verb, other, answer(labels={"a": "1"})) == ["spec.nodeName"]


def test_value_that_a_webhook_changed_is_no_contradiction(tmp_path):
    asked, shown = {"spec": {"priority": 5}}, {"spec": {"priority": 6}}
    assert read(tmp_path, "create", asked, shown) == ["spec.priority"]
    assert read(tmp_path, "create", asked, shown, annotations=MUTATED) == []


def test_device_that_was_asked_is_the_one_of_the_answer(tmp_path):
    def given(**other):
        return status(allocation={"devices": {"results": [{**RESULT, **other}]}})

    path = "status.allocation.devices.results[0].device"
    assert read(
        tmp_path, "update", given(device="gpu-1"), given(), type_=CLAIMS, subresource="status"
    ) == [path]
    asked = {"status": {**given()["status"], "devices": [{"device": "gpu-7"}]}}
    shown = {"status": {**given()["status"], "devices": [{"device": "gpu-0"}]}}
    assert read(tmp_path, "update", asked, shown, type_=CLAIMS, subresource="status") == []


@pytest.mark.parametrize(
    ("asked", "shown", "is_same"),
    [("1000m", "1", True), (1, "1", True), ("80Gi", "80Gi", True), ("1001m", "1", False)],
)
def test_amounts_are_compared_as_amounts(asked, shown, is_same, tmp_path):
    def slice_of(value):
        return {"spec": {"devices": [{"name": "gpu-0", "capacity": {"memory": {"value": value}}}]}}

    found = read(tmp_path, "create", slice_of(asked), slice_of(shown), type_=SLICES)
    assert bool(found) is not is_same


@pytest.mark.parametrize(
    ("field", "asked", "shown", "is_of_server"),
    [
        ("imagePullPolicy", "Never", "Always", True),
        ("imagePullPolicy", "Always", "Never", False),
        ("terminationGracePeriodSeconds", -5, 1, True),
        ("terminationGracePeriodSeconds", 30, 1, False),
    ],
)
def test_values_that_a_server_gives_itself(field, asked, shown, is_of_server, tmp_path):
    found = read(tmp_path, "create", {"spec": {field: asked}}, {"spec": {field: shown}})
    assert found == ([] if is_of_server else [f"spec.{field}"])


@pytest.mark.parametrize(("version", "is_read"), [("zzz", False), ("1a", False), ("8", True)])
def test_no_write_is_made_upon_a_version_that_is_no_number(version, is_read, tmp_path):
    asked = {"metadata": {"resourceVersion": version}, **status(phase="Running")}
    shown = status(phase="Running")
    found = read(tmp_path, "patch", asked, shown, subresource="status")
    assert found == ([] if is_read else ["metadata.resourceVersion"])


@pytest.mark.parametrize(
    ("options", "grace", "given", "more", "is_longer"),
    [
        pytest.param({}, 30, 30, {}, False, id="that of the pod"),
        pytest.param({}, 5, 30, {}, True, id="more than that of the pod"),
        pytest.param({}, 30, 5, {}, False, id="an earlier request gave less"),
        pytest.param({}, -7, 1, {}, False, id="a negative one counts as 1"),
        pytest.param({}, None, 30, {}, False, id="that of the pod is not shown"),
        pytest.param({"gracePeriodSeconds": 60}, 5, 60, {}, False, id="that of the request"),
        pytest.param({"gracePeriodSeconds": 5}, 30, 30, {}, True, id="more than the request gives"),
        pytest.param({}, 30, 30, {"node": ""}, True, id="on no node"),
        pytest.param({}, 30, 30, {"phase": "Failed"}, True, id="finished"),
        pytest.param(None, 5, 30, {}, False, id="the options were not recorded"),
        pytest.param({}, 5, 30, {"query": "?gracePeriodSeconds=30"}, False, id="in the query"),
    ],
)
def test_pod_has_no_longer_to_end_than_its_deletion_gives(
    options, grace, given, more, is_longer, tmp_path
):
    """A server takes the shortest period that was given."""
    shown = {
        "metadata": {
            "deletionTimestamp": "2026-01-01T00:01:00Z",
            "deletionGracePeriodSeconds": given,
        },
        "spec": {
            "nodeName": more.get("node", "n1"),
            **({} if grace is None else {"terminationGracePeriodSeconds": grace}),
        },
        "status": {"phase": more.get("phase", "Running")},
    }
    uri = {"uri": f"/api/v1/namespaces/default/pods/x{more['query']}"} if "query" in more else {}
    found = read(tmp_path, "delete", options, shown, **uri)
    assert found == (["metadata.deletionGracePeriodSeconds"] if is_longer else [])
