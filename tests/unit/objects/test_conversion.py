"""Versions of one object: rules of each direction, and the published fixtures."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.adapters import schemas
from app.domain.errors import BadRequest
from app.domain.objects import registry
from app.domain.objects.registry import Kind
from app.domain.objects.schema import conversion, prune
from tests.shared_data import shared_is_present, shared_path
from tests.together import together

RESOURCE = "resource.k8s.io"
FIXTURES = ("corpus", "kubernetes__api", "testdata")


def kind(plural: str, group: str = RESOURCE) -> Kind:
    found = registry.find(group, plural)
    assert found is not None
    return found


def claim(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceClaim", "spec": {"devices": {"requests": list(requests)}}}


def requests(tree: Any) -> Any:
    return tree["spec"]["devices"]["requests"]


@pytest.mark.parametrize(
    ("beta", "hub"),
    [
        ({"name": "r", "deviceClassName": "g"}, {"name": "r", "exactly": {"deviceClassName": "g"}}),
        ({"name": "r", "selectors": []}, {"name": "r", "exactly": {"selectors": []}}),
        ({"name": "r", "adminAccess": False}, {"name": "r", "exactly": {"adminAccess": False}}),
        ({"name": "r", "deviceClassName": ""}, {"name": "r"}),
        ({"name": "r", "count": 0}, {"name": "r"}),
        ({"name": "r"}, {"name": "r"}),
        ({"name": "r", "newer": {"a": 1}}, {"name": "r", "exactly": {"newer": {"a": 1}}}),
        (
            {"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "a"}]},
            {"name": "r", "firstAvailable": [{"name": "a"}]},
        ),
        (
            {"name": "r", "deviceClassName": "g", "firstAvailable": [{"name": "a"}]},
            {"name": "r", "exactly": {"deviceClassName": "g"}, "firstAvailable": [{"name": "a"}]},
        ),
    ],
)
def test_flat_requests_become_exact_ones(beta: dict[str, Any], hub: dict[str, Any]) -> None:
    found = conversion.convert(claim(beta), kind("resourceclaims"), "v1beta1", "v1")
    assert requests(found) == [hub]
    assert found["apiVersion"] == "resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("hub", "beta"),
    [
        (
            {"name": "r", "exactly": {"deviceClassName": "g", "count": 2}},
            {"name": "r", "deviceClassName": "g", "count": 2},
        ),
        (
            {"name": "r", "firstAvailable": [{"name": "a"}]},
            {"name": "r", "deviceClassName": "", "firstAvailable": [{"name": "a"}]},
        ),
    ],
)
def test_exact_requests_become_flat_ones(hub: dict[str, Any], beta: dict[str, Any]) -> None:
    found = conversion.convert(claim(hub), kind("resourceclaims"), "v1", "v1beta1")
    assert requests(found) == [beta]


def slice_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceSlice", "spec": spec}


@pytest.mark.parametrize(
    ("beta", "hub"),
    [
        (
            {"devices": [{"name": "d", "basic": {"attributes": {"a": {"int": 1}}}}]},
            {"devices": [{"name": "d", "attributes": {"a": {"int": 1}}}]},
        ),
        ({"devices": [{"name": "d"}]}, {"devices": [{"name": "d"}]}),
        (
            {"devices": [{"name": "d", "basic": {"attributes": {}, "capacity": {}}}]},
            {"devices": [{"name": "d"}]},
        ),
        ({"nodeName": "", "allNodes": True}, {"allNodes": True}),
        ({"nodeName": "n", "allNodes": False}, {"nodeName": "n"}),
    ],
)
def test_devices_lose_their_wrapping(beta: dict[str, Any], hub: dict[str, Any]) -> None:
    found = conversion.convert(slice_of(beta), kind("resourceslices"), "v1beta1", "v1")
    assert found["spec"] == hub


def test_devices_always_get_a_wrapping() -> None:
    devices = [{"name": "d"}, {"name": "e", "allNodes": True, "capacity": {}}]
    found = conversion.convert(
        slice_of({"devices": devices}), kind("resourceslices"), "v1", "v1beta1"
    )
    assert found["spec"]["devices"] == [
        {"name": "d", "basic": {}},
        {"name": "e", "basic": {"allNodes": True}},
    ]


def test_object_without_its_api_version_is_refused_with_these_words() -> None:
    with pytest.raises(BadRequest, match="Pod without its API version; it is served in v1"):
        conversion.check_version(kind("pods", ""), "", "")


def test_templates_convert_inside() -> None:
    inner = {"devices": {"requests": [{"name": "r", "deviceClassName": "g"}]}}
    tree = {"kind": "ResourceClaimTemplate", "spec": {"spec": inner}}
    found = conversion.convert(tree, kind("resourceclaimtemplates"), "v1beta1", "v1")
    assert requests(found["spec"]) == [{"name": "r", "exactly": {"deviceClassName": "g"}}]


def test_the_source_is_not_changed() -> None:
    tree = claim({"name": "r", "deviceClassName": "g"})
    before = json.dumps(tree)
    conversion.convert(tree, kind("resourceclaims"), "v1beta1", "v1")
    assert json.dumps(tree) == before


@pytest.mark.parametrize(
    ("plural", "source", "target"),
    [
        ("resourceclaims", "v1alpha2", "v1"),
        ("resourceclaims", "v1", "v1alpha3"),
        ("resourceclaims", "v2", "v1"),
        ("devicetaintrules", "v1beta1", "v1"),
        ("resourceslicepatches", "v1", "v1alpha3"),
    ],
)
def test_versions_without_a_way_are_refused(plural: str, source: str, target: str) -> None:
    with pytest.raises(BadRequest):
        conversion.convert({"spec": {}}, kind(plural), source, target)


def test_recorded_alpha_objects_are_read() -> None:
    device = {"name": "d", "basic": {"capacity": {"memory": "40Gi"}}}
    found = conversion.convert(
        slice_of({"devices": [device]}), kind("resourceslices"), "v1alpha3", "v1"
    )
    assert found["spec"]["devices"] == [{"name": "d", "capacity": {"memory": {"value": "40Gi"}}}]


def test_recorded_claims_of_a_control_plane_controller_are_refused() -> None:
    tree = {"kind": "ResourceClaim", "spec": {"controller": "x", "devices": {}}}
    with pytest.raises(BadRequest, match="control plane controller"):
        conversion.convert(tree, kind("resourceclaims"), "v1alpha3", "v1")


def test_events_have_two_spellings() -> None:
    core = {
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"name": "p"},
        "message": "m",
        "source": {"component": "c"},
        "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "c",
        "reportingInstance": "",
        "type": "Normal",
    }
    there = conversion.convert(core, kind("events", ""), "v1", "events.k8s.io/v1")
    assert there == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "regarding": {"name": "p"},
        "note": "m",
        "deprecatedSource": {"component": "c"},
        "deprecatedCount": 2,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": None,
        "eventTime": None,
        "reportingController": "c",
        "type": "Normal",
    }
    back = conversion.convert(there, kind("events", ""), "events.k8s.io/v1", "v1")
    assert back == {**core, "apiVersion": "v1"}


def _fixtures() -> list[Path]:
    if not shared_is_present(*FIXTURES):
        return []
    found = []
    for path in sorted(shared_path(*FIXTURES).glob("*/*.json")):
        version, kind_name = path.name.split(".")[3:5]
        if version == "v1alpha3" and kind_name not in (
            "DeviceTaintRule",
            "ResourcePoolStatusRequest",
        ):
            continue
        found.append(path)
    return found


def _name(path: Path) -> str:
    version, kind_name = path.name.split(".")[3:5]
    return f"{path.parent.name}-{version}-{kind_name}"


def _absent() -> None:
    shared_path(*FIXTURES)
    raise AssertionError("shared_path skips or fails")


def _load(path: Path) -> tuple[Kind, str, dict[str, Any]]:
    tree = json.loads(path.read_text())
    version = path.name.split(".")[3]
    found = registry.find_kind(RESOURCE, version, tree["kind"])
    assert found is not None
    return found, version, tree


def _expected(tree: dict[str, Any], version: str) -> dict[str, Any]:
    """A fixture as it comes back: v1beta1 requests with both forms stay as they are."""
    if version == "v1beta1" and tree["kind"] == "ResourceSlice":
        for device in tree["spec"]["devices"]:
            device.setdefault("basic", {})
    return tree


@together(_fixtures(), _name, absent=_absent)
def test_fixtures_survive_every_served_version(path: Path) -> None:
    found, version, tree = _load(path)
    hub = conversion.convert(tree, found, version, found.storage_version)
    for _, other in found.group_versions:
        there = conversion.convert(hub, found, found.storage_version, other)
        back = conversion.convert(there, found, other, found.storage_version)
        assert back == hub, other
    assert conversion.convert(hub, found, found.storage_version, version) == _expected(
        tree, version
    )


@together(_fixtures(), _name, absent=_absent)
def test_fixtures_fit_the_schema_of_their_release(path: Path) -> None:
    found, version, tree = _load(path)
    release = {"HEAD": "1.37", "v1.33.0": "1.34"}.get(path.parent.name, path.parent.name[1:5])
    release = "1.37" if "after_roundtrip" in path.name else release
    node = schemas.load(release).node(found, RESOURCE, version)
    cleaned, problems = prune.clean(node, tree)
    assert problems == []
    assert cleaned == tree


@together(_fixtures(), _name, absent=_absent)
def test_converted_fixtures_fit_the_schema_of_the_target(path: Path) -> None:
    found, version, tree = _load(path)
    if path.parent.name != "HEAD":
        return
    loaded = schemas.load("1.37")
    hub = conversion.convert(tree, found, version, found.storage_version)
    for group, other in found.group_versions:
        there = conversion.convert(hub, found, found.storage_version, other)
        assert prune.clean(loaded.node(found, group, other), there)[1] == []
