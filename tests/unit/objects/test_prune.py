"""Trees made into what the API keeps: unknown fields, types, nulls, canonical texts."""

from typing import Any

import pytest

from app.domain.objects.schema import prune
from app.domain.objects.schema.prune import WrongType
from tests.unit.objects import builders


def clean(plural: str, tree: dict[str, Any], group: str = builders.RESOURCE) -> dict[str, Any]:
    return prune.clean(builders.node(plural, group=group), tree)[0]


def test_unknown_fields_are_dropped_and_named_with_their_path() -> None:
    tree = builders.claim()
    tree["spec"]["devices"]["requests"][0]["exactly"]["cuont"] = 2
    tree["spec"]["device"] = {}
    tree["metadata"]["labels"] = {"anything": "goes"}
    cleaned, problems = prune.clean(builders.node("resourceclaims"), tree)
    assert problems == [
        'unknown field "spec.devices.requests[0].exactly.cuont"',
        'unknown field "spec.device"',
    ]
    assert "device" not in cleaned["spec"]
    assert cleaned["metadata"]["labels"] == {"anything": "goes"}


def test_the_tree_that_came_is_not_changed_and_not_shared() -> None:
    tree = builders.claim()
    cleaned = clean("resourceclaims", tree)
    cleaned["spec"]["devices"]["requests"][0]["exactly"]["count"] = 5
    assert "count" not in tree["spec"]["devices"]["requests"][0]["exactly"]


ODD_ITEMS: list[Any] = [
    None,
    {},
    {"uid": ""},
    {"uid": None},
    {"uid": "x", "nmae": "a"},
    "x",
    {"uid": 1},
]


@pytest.mark.parametrize("odd", [{"uid": "x"}, *ODD_ITEMS], ids=str)
def test_long_lists_of_texts_are_pruned_as_each_item_is(
    odd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [{"resource": "pods", "name": f"p-{n}", "uid": f"{n}"} for n in range(20)]
    node = builders.node("resourceclaims")

    def outcome() -> Any:
        try:
            return prune.clean(node, {"status": {"reservedFor": [*items, odd]}})
        except WrongType as wrong:
            return str(wrong)

    together = outcome()
    monkeypatch.setattr(prune, "LONG_LIST", 1_000)
    assert together == outcome()
    if not isinstance(together, str):
        assert together[0]["status"]["reservedFor"][0] is not items[0]


def test_nulls_and_empty_collections_vanish() -> None:
    tree = builders.claim()
    tree["metadata"] |= {"labels": None, "annotations": {}, "finalizers": []}
    tree["spec"]["devices"]["constraints"] = []
    cleaned = clean("resourceclaims", tree)
    assert set(cleaned["metadata"]) == {"name", "namespace"}
    assert set(cleaned["spec"]["devices"]) == {"requests"}


def test_zero_values_vanish_where_the_api_leaves_them_out() -> None:
    spec = {"nodeName": "", "hostNetwork": False, "containers": [{"name": "", "image": ""}]}
    cleaned = clean("pods", {"spec": spec}, "")
    assert cleaned["spec"] == {"containers": [{"name": "", "resources": {}}]}


def test_pointers_keep_their_zero() -> None:
    tree = builders.claim()
    tree["spec"]["devices"]["requests"][0]["exactly"] |= {"adminAccess": False, "count": 0}
    kept = clean("resourceclaims", tree)["spec"]["devices"]["requests"][0]["exactly"]
    assert kept == {"deviceClassName": "gpu", "adminAccess": False}


def test_structs_without_pointer_are_always_shown() -> None:
    assert clean("resourceclaims", {})["spec"] == {"devices": {"requests": None}}
    assert clean("resourceclaims", {})["status"] == {}
    assert clean("resourceclaimtemplates", {"spec": {}})["spec"] == {
        "metadata": {},
        "spec": {"devices": {"requests": None}},
    }
    condition = {"type": "Ready", "status": "True"}
    cleaned = clean("pods", {"status": {"conditions": [condition]}}, "")
    assert cleaned["status"]["conditions"][0]["lastProbeTime"] is None


def test_lists_whose_presence_means_something_stay_when_empty() -> None:
    spec = {"devices": [], "sharedCounters": []}
    assert clean("resourceslices", {"spec": spec})["spec"] == spec


@pytest.mark.parametrize(
    ("written", "shown"),
    [("1000m", "1"), ("1024Mi", "1Gi"), (4, "4"), (0.5, "500m"), ("1e3", "1e3"), (" 80Gi", "80Gi")],
)
def test_quantities_are_shown_in_canonical_form(written: object, shown: str) -> None:
    spec = {"devices": [{"name": "d", "capacity": {"memory": {"value": written}}}]}
    cleaned = clean("resourceslices", {"spec": spec})
    assert cleaned["spec"]["devices"][0]["capacity"]["memory"]["value"] == shown


def test_times_are_shown_in_utc_and_whole_seconds() -> None:
    spec = {"taint": {"key": "k", "effect": "None", "timeAdded": "2026-01-01T02:00:00.5+02:00"}}
    assert clean("devicetaintrules", {"spec": spec})["spec"]["taint"]["timeAdded"] == (
        "2026-01-01T00:00:00Z"
    )


def test_opaque_parameters_are_kept_as_they_are() -> None:
    parameters = {"apiVersion": "x/v1", "empty": {}, "nothing": None, "list": [None, {}]}
    config = [{"opaque": {"driver": "d", "parameters": parameters}}]
    tree = builders.claim()
    tree["spec"]["devices"]["config"] = config
    assert clean("resourceclaims", tree)["spec"]["devices"]["config"] == config


def test_null_items_are_zero_values() -> None:
    tree = {"metadata": {"labels": {"a": None}, "finalizers": [None]}}
    assert clean("resourceclaims", tree)["metadata"] == {"labels": {"a": ""}, "finalizers": [""]}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"devices": "x"},
            "json: cannot unmarshal string into Go struct field "
            "ResourceClaimSpec.spec.devices of type v1.DeviceClaim",
        ),
        (
            {"devices": {"requests": {}}},
            "json: cannot unmarshal object into Go struct field "
            "DeviceClaim.spec.devices.requests of type []v1.DeviceRequest",
        ),
        (
            {"devices": {"requests": [{"exactly": {"count": "1"}}]}},
            "json: cannot unmarshal string into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.count of type int64",
        ),
        (
            {"devices": {"requests": [{"exactly": {"count": 2**63}}]}},
            "json: cannot unmarshal number 9223372036854775808 into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.count of type int64",
        ),
        (
            {"devices": {"requests": [{"exactly": {"adminAccess": 1}}]}},
            "json: cannot unmarshal number into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.adminAccess of type bool",
        ),
        (
            {"devices": {"requests": [{"name": True}]}},
            "json: cannot unmarshal bool into Go struct field "
            "DeviceRequest.spec.devices.requests.name of type string",
        ),
    ],
)
def test_a_wrong_type_names_struct_path_and_type(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongType) as refused:
        clean("resourceclaims", {"spec": spec})
    assert str(refused.value) == message


@pytest.mark.parametrize("value", ["", "1X", "abc", True, []])
def test_a_bad_quantity_is_refused(value: object) -> None:
    spec = {"sharedCounters": [{"name": "s", "counters": {"c": {"value": value}}}]}
    with pytest.raises(WrongType, match=r"quantities must match|unable to parse"):
        clean("resourceslices", {"spec": spec})


def test_our_extension_kind_has_a_schema() -> None:
    attributes = {"a.example.com/x": {"null": {}}, "a.example.com/y": {"int": 1, "float": 2}}
    tree = {"spec": {"devices": {"priority": 1, "attributes": attributes}}}
    cleaned, problems = prune.clean(builders.node("resourceslicepatches", "v1alpha3"), tree)
    assert problems == ['unknown field "spec.devices.attributes.a.example.com/y.float"']
    assert cleaned["spec"]["devices"]["attributes"]["a.example.com/x"] == {"null": {}}
