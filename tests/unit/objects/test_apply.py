"""Server-side apply and the managed fields of all writes."""

import copy
import json
from typing import Any

import pytest

from app.domain.errors import BadRequest, Conflict, Invalid, NotFound
from app.domain.objects.write import field_sets, managed_fields
from app.domain.objects.write.commands import BindPod, PatchType
from tests.unit.objects import builders
from tests.unit.objects.builders import Cluster, claim, cluster, key, pod

RULE = key("devicetaintrules", "r")
CLAIM = key("resourceclaims", "c", "default")
POD = key("pods", "p", "default")


def rule(**taint: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "effect": "NoSchedule", **taint}},
    }


def tracked() -> Cluster:
    return cluster(tracks_managers=True)


def apply(made: Cluster, tree: dict[str, Any], manager: str = "one", **more: Any) -> dict[str, Any]:
    """Apply a configuration by its own key."""
    place, version = builders.placed(tree)
    return made.patch(place, tree, PatchType.APPLY, version=version, field_manager=manager, **more)


def owners(tree: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Manager and operation to its fields."""
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in tree["metadata"].get("managedFields", ())
    }


def test_an_apply_makes_what_is_not_there() -> None:
    made = tracked()
    tree = apply(made, rule())
    assert made.last.created
    assert made.types == ["ObjectCreated"]
    assert tree["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "resource.k8s.io/v1",
            "time": "2026-03-01T10:00:02Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:taint": {"f:effect": {}, "f:key": {}}}},
        }
    ]


def test_an_apply_that_names_a_uid_makes_no_other_object() -> None:
    made = tracked()
    tree = rule()
    tree["metadata"]["uid"] = "another"
    with pytest.raises(Conflict) as refused:
        apply(made, tree)
    assert refused.value.message == (
        'Operation cannot be fulfilled on devicetaintrules.resource.k8s.io "r": uid mismatch: the '
        "provided object specified uid another, and no existing object was found"
    )
    assert made.get(RULE) is None


def test_applying_the_same_again_changes_nothing() -> None:
    made = tracked()
    first = copy.deepcopy(apply(made, rule()))
    assert apply(made, rule()) == first
    assert made.types == []


def test_a_second_applier_of_the_same_value_shares_the_field() -> None:
    made = tracked()
    apply(made, rule())
    tree = apply(made, rule(), "two")
    assert set(owners(tree)) == {("one", "Apply"), ("two", "Apply")}
    assert made.types == ["ObjectUpdated"]


def test_an_applier_shares_a_field_again_when_it_takes_over_the_value_of_another() -> None:
    # Only the owners change, and in an entry that is there already.
    made = tracked()
    apply(made, rule())
    made.patch(RULE, {"spec": {"taint": {"effect": "NoExecute"}}}, field_manager="two")
    tree = apply(made, rule(effect="NoExecute"))
    assert made.types == ["ObjectUpdated"]
    assert owners(tree) == {
        ("one", "Apply"): {"f:spec": {"f:taint": {"f:effect": {}, "f:key": {}}}},
        ("two", "Update"): {"f:spec": {"f:taint": {"f:effect": {}}}},
    }


def test_another_value_for_a_field_of_somebody_else_conflicts() -> None:
    made = tracked()
    apply(made, rule())
    with pytest.raises(Conflict) as refused:
        apply(made, rule(effect="NoExecute"), "two")
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "one": .spec.taint.effect'
    )
    cause = refused.value.causes[0]
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict",
        'conflict with "one"',
        ".spec.taint.effect",
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    made = tracked()
    apply(made, rule(value="v"))
    with pytest.raises(Conflict) as refused:
        apply(made, rule(value="w", effect="NoExecute"), "two")
    assert refused.value.message == (
        'Apply failed with 2 conflicts: conflicts with "one":\n'
        "- .spec.taint.effect\n- .spec.taint.value"
    )


def test_conflicts_with_updates_name_their_version() -> None:
    made = tracked()
    made.create(rule(), field_manager="kubectl-create")
    with pytest.raises(Conflict) as refused:
        apply(made, rule(effect="NoExecute"))
    assert refused.value.causes[0].message == (
        'conflict with "kubectl-create" using resource.k8s.io/v1'
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Replace"},
        {"fieldsType": "FieldsV2"},
        {"apiVersion": ""},
        {"fieldsV1": {"spec": {}}},
        {"fieldsV1": {"f:spec": {"k:name": {}}}},
        {"fieldsV1": {"f:spec": []}},
    ],
    ids=lambda broken: f"{broken}",
)
def test_entries_that_cannot_be_read_leave_the_owners_as_they_were(broken: dict[str, Any]) -> None:
    made = tracked()
    before = apply(made, rule())["metadata"]["managedFields"]
    entry = {"manager": "x", "operation": "Update", "apiVersion": "resource.k8s.io/v1"}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}} | broken
    tree = made.patch(RULE, {"metadata": {"managedFields": [*before, entry]}})
    assert tree["metadata"]["managedFields"] == before
    assert made.types == []


def test_an_item_without_its_key_is_refused() -> None:
    made = tracked()
    apply(made, rule())
    tree = {name: part for name, part in rule().items() if name != "spec"}
    tree["status"] = {"conditions": [{"status": "True"}]}
    with pytest.raises(BadRequest) as refused:
        apply(made, tree, subresource="status")
    assert refused.value.message == (
        "failed to create typed patch object (/r; resource.k8s.io/v1, Kind=DeviceTaintRule): "
        ".status.conditions: element 0: associative list with keys has an element that omits all "
        'key fields ["type"] (and doesn\'t have default values for any key fields)'
    )


def applied_by_client(made: Cluster, **taint: Any) -> dict[str, Any]:
    """A rule that `kubectl apply` made from the client, with labels."""
    tree = rule(**taint)
    tree["metadata"]["labels"] = {"a": "1"}
    text = json.dumps(tree)
    tree["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": text,
    }
    return made.create(tree, field_manager="kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    made = tracked()
    applied_by_client(made)
    changed = rule(effect="NoExecute")
    changed["metadata"]["labels"] = {"a": "2"}
    with pytest.raises(Conflict):
        apply(made, changed, "another")
    tree = apply(made, changed, "kubectl")
    assert tree["spec"]["taint"]["effect"] == "NoExecute"
    assert owners(tree)["kubectl", "Apply"] == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:taint": {"f:effect": {}, "f:key": {}}},
    }
    left = owners(tree)["kubectl-client-side-apply", "Update"]
    assert "f:effect" not in left["f:spec"]["f:taint"]
    assert left["f:metadata"]["f:labels"] == {}


def test_the_annotation_of_kubectl_follows_what_it_applies_on_the_server() -> None:
    # So that `kubectl apply` from the client removes later what was only applied on the server.
    made = tracked()
    applied_by_client(made)
    name = "kubectl.kubernetes.io/last-applied-configuration"
    changed = rule(effect="None")
    changed["metadata"]["annotations"] = {"b": "c"}
    tree = apply(made, changed, "kubectl")
    annotations = tree["metadata"]["annotations"]
    assert json.loads(annotations[name]) == changed
    assert annotations[name].endswith("}\n")
    assert annotations["b"] == "c"
    kept = apply(made, rule(value="v"), "another", force=True)
    assert json.loads(kept["metadata"]["annotations"][name]) == changed


def test_an_annotation_of_kubectl_without_room_goes() -> None:
    made = tracked()
    applied_by_client(made)
    changed = rule()
    changed["metadata"]["annotations"] = {"big": "x" * 200_000}
    tree = apply(made, changed, "kubectl")
    assert tree["metadata"]["annotations"].keys() == {"big"}
    other = rule()
    other["metadata"]["name"] = "never-from-the-client"
    assert "annotations" not in apply(made, other, "kubectl")["metadata"]


def test_kubectl_does_not_take_over_what_somebody_else_has_changed_since() -> None:
    made = tracked()
    applied_by_client(made)
    made.patch(RULE, {"spec": {"taint": {"effect": "None"}}}, field_manager="other")
    changed = rule(effect="NoExecute")
    changed["metadata"]["labels"] = {"a": "2"}
    with pytest.raises(Conflict) as refused:
        apply(made, changed, "kubectl")
    assert [cause.field for cause in refused.value.causes] == [".spec.taint.effect"]


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"apiVersion":"v1"}', '{"spec":1}'])
def test_an_unreadable_annotation_yields_nothing(text: str) -> None:
    made = tracked()
    applied_by_client(made)
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": text}
    made.patch(RULE, {"metadata": {"annotations": annotations}})
    with pytest.raises(Conflict):
        apply(made, rule(effect="NoExecute"), "kubectl")


def test_plain_texts_of_a_secret_are_owned_as_its_data() -> None:
    made = tracked()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"a": "x"},
    }
    tree = made.create(secret, field_manager="m")
    assert tree["data"] == {"a": "eA=="}
    assert owners(tree)["m", "Update"] == {"f:data": {".": {}, "f:a": {}}, "f:type": {}}
    place = key("secrets", "s", "default")
    tree = made.patch(place, {"stringData": {"b": "y"}}, field_manager="n")
    assert tree["data"] == {"a": "eA==", "b": "eQ=="}
    assert owners(tree)["n", "Update"] == {"f:data": {"f:b": {}}}


def test_force_takes_the_fields() -> None:
    made = tracked()
    apply(made, rule())
    tree = apply(made, rule(effect="NoExecute"), "two", force=True)
    assert tree["spec"]["taint"]["effect"] == "NoExecute"
    assert owners(tree)["one", "Apply"] == {"f:spec": {"f:taint": {"f:key": {}}}}


def test_what_is_no_longer_applied_goes() -> None:
    made = tracked()
    first = rule(value="v")
    first["metadata"]["labels"] = {"a": "1", "b": "2"}
    apply(made, first)
    second = rule()
    second["metadata"]["labels"] = {"a": "1"}
    tree = apply(made, second)
    assert "value" not in tree["spec"]["taint"]
    assert tree["metadata"]["labels"] == {"a": "1"}


def test_what_somebody_else_applies_too_stays() -> None:
    made = tracked()
    apply(made, rule(value="v"))
    apply(made, rule(value="v"), "two")
    assert apply(made, rule())["spec"]["taint"]["value"] == "v"


def test_defaults_that_nobody_applied_are_owned_by_nobody() -> None:
    made = tracked()
    tree = apply(made, rule())
    assert tree["spec"]["taint"]["timeAdded"]
    assert "f:timeAdded" not in repr(owners(tree))


def test_items_of_keyed_lists_are_owned_one_by_one() -> None:
    made = tracked()
    tree = pod()
    apply(made, tree)
    other = pod(containers=[{"name": "side", "image": "x:1"}])
    both = apply(made, other, "two")
    assert [each["name"] for each in both["spec"]["containers"]] == ["main", "side"]
    assert owners(both)["two", "Apply"] == {
        "f:spec": {
            "f:containers": {'k:{"name":"side"}': {".": {}, "f:image": {}, "f:name": {}}},
        }
    }
    other["spec"] = {}
    left = apply(made, other, "two")
    assert [each["name"] for each in left["spec"]["containers"]] == ["main"]


def test_atomic_lists_are_owned_as_a_whole() -> None:
    made = tracked()
    apply(made, claim())
    changed = claim()
    changed["spec"]["devices"]["requests"] = []
    changed["spec"]["devices"]["requests"].append({"name": "other"})
    with pytest.raises(Conflict, match=r"\.spec\.devices\.requests$"):
        apply(made, changed, "two")


def test_a_status_is_applied_through_its_subresource() -> None:
    made = tracked()
    made.create(rule(), field_manager="creator")
    condition = {
        "type": "EvictionInProgress", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    config = rule(effect="NoExecute") | {"status": {"conditions": [condition]}}
    tree = apply(made, config, "controller", subresource="status")
    assert tree["status"]["conditions"] == [condition]
    assert tree["spec"]["taint"]["effect"] == "NoSchedule"
    entry = tree["metadata"]["managedFields"][0]
    assert entry["subresource"] == "status"
    assert list(entry["fieldsV1"]) == ["f:status"]
    assert apply(made, rule() | {"status": {}}, "other")["status"]["conditions"] == [condition]


def test_a_status_of_nothing_cannot_be_applied() -> None:
    with pytest.raises(NotFound):
        apply(tracked(), rule() | {"status": {}}, subresource="status")


@pytest.mark.parametrize(
    ("change", "manager", "error"),
    [
        ({}, "", Invalid),
        ({"metadata": {"name": "r", "managedFields": [{"manager": "x"}]}}, "one", BadRequest),
        ({"kind": "ResourceClaim"}, "one", BadRequest),
        ({"spec": 5}, "one", BadRequest),
        ({"metadata": {"name": "other"}}, "one", BadRequest),
    ],
)
def test_configurations_that_cannot_be_applied_are_refused(
    change: dict[str, Any], manager: str, error: type[Exception]
) -> None:
    made = tracked()
    with pytest.raises(error):
        made.patch(RULE, rule() | change, PatchType.APPLY, field_manager=manager)


def test_a_stale_resource_version_conflicts() -> None:
    made = tracked()
    apply(made, rule())
    config = rule(value="v")
    config["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Conflict, match="the object has been modified"):
        apply(made, config)


def test_an_object_without_entries_belongs_to_who_was_before() -> None:
    made = cluster()
    made.create(rule())
    with pytest.raises(Conflict, match="before-first-apply"):
        apply(made, rule(effect="NoExecute"))


def test_applying_an_older_version_stores_the_newest() -> None:
    made = tracked()
    tree = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "g"}]}},
    }
    stored = apply(made, tree)
    assert stored["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert stored["metadata"]["managedFields"][0]["apiVersion"] == "resource.k8s.io/v1beta1"


def test_a_create_is_owned_by_its_manager() -> None:
    made = tracked()
    tree = claim()
    tree["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["x/y"]}
    made.create(tree)
    stored = made.get(CLAIM) or {}
    assert owners(stored) == {
        ("test", "Update"): {
            "f:metadata": {
                "f:finalizers": {".": {}, 'v:"x/y"': {}},
                "f:labels": {".": {}, "f:a": {}},
            },
            "f:spec": {"f:devices": {"f:requests": {}}},
        }
    }


def test_a_changed_field_moves_to_who_changed_it() -> None:
    made = tracked()
    made.create(rule(value="v"), field_manager="a")
    tree = made.patch(RULE, {"spec": {"taint": {"value": "w"}}}, field_manager="b")
    assert owners(tree)["b", "Update"] == {"f:spec": {"f:taint": {"f:value": {}}}}
    assert "f:value" not in owners(tree)["a", "Update"]["f:spec"]["f:taint"]


def test_a_removed_field_leaves_every_entry() -> None:
    made = tracked()
    made.create(rule(value="v"), field_manager="a")
    made.patch(RULE, {"spec": {"taint": {"value": "w"}}}, field_manager="b")
    tree = made.patch(RULE, {"spec": {"taint": {"value": None}}}, field_manager="c")
    assert set(owners(tree)) == {("a", "Update")}
    assert "f:value" not in repr(owners(tree))


def test_a_client_can_clear_the_entries_and_then_there_are_none() -> None:
    made = tracked()
    made.create(rule(), field_manager="a")
    tree = made.patch(RULE, {"metadata": {"managedFields": [{}]}}, field_manager="b")
    assert "managedFields" not in tree["metadata"]
    tree = made.patch(RULE, {"spec": {"taint": {"value": "w"}}}, field_manager="b")
    assert "managedFields" not in tree["metadata"]


def test_a_client_can_rename_an_entry() -> None:
    made = tracked()
    tree = made.create(rule(), field_manager="kubectl-client-side-apply")
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "2"},
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "kubectl"},
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
    ]
    tree = made.patch(RULE, patch, PatchType.JSON, field_manager="migration")
    assert list(owners(tree)) == [("kubectl", "Apply")]


def test_a_dropped_list_keeps_the_stored_entries() -> None:
    made = tracked()
    stored = copy.deepcopy(made.create(rule(), field_manager="a"))
    before = stored["metadata"].pop("managedFields")
    tree = made.update(stored, field_manager="b")
    assert tree["metadata"]["managedFields"] == before
    assert made.types == []


def test_old_update_entries_are_merged() -> None:
    made = tracked()
    made.create(rule(), field_manager="creator")
    for number in range(12):
        labels = {"metadata": {"labels": {f"k{number}": "v"}}}
        made.patch(RULE, labels, field_manager=f"m{number:02}")
    entries = (made.get(RULE) or {})["metadata"]["managedFields"]
    assert len(entries) == managed_fields.UPDATE_ENTRIES_MAX
    assert entries[0]["manager"] == managed_fields.ANCIENT
    assert "f:k0" in repr(entries[0])
    assert "f:taint" in repr(entries[0])


def test_a_write_that_changes_nothing_keeps_time_and_entries() -> None:
    made = tracked()
    made.create(rule(), field_manager="a")
    made.patch(RULE, {"spec": {"taint": {"key": "k"}}}, field_manager="b")
    assert made.types == []


def test_bindings_leave_the_entries_alone() -> None:
    made = tracked()
    made.create(pod(), field_manager="a")
    before = copy.deepcopy(owners(made.get(POD) or {}))
    made.do(BindPod(key=POD, node="n"))
    assert owners(made.get(POD) or {}) == before


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("kubectl/v1.37 (linux)", "kubectl"),
        ("plain", "plain"),
        ("", "unknown"),
        ("x" * 200, "x" * 128),
        ("a\x07b/1", "ab"),
    ],
)
def test_the_default_manager_is_the_program(agent: str, name: str) -> None:
    assert managed_fields.default_name(agent) == name


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({"f:a": {"f:b": {}}}, [".a.b"]),
        ({"f:a": {".": {}, "f:b": {}}}, [".a", ".a.b"]),
        ({"f:l": {'k:{"a":"x","b":1}': {".": {}}}}, ['.l[a="x",b=1]']),
        ({"f:l": {'v:"x"': {}}}, ['.l[="x"]']),
    ],
)
def test_paths_are_written_as_messages_show_them(fields: dict[str, Any], texts: list[str]) -> None:
    found = field_sets.load(fields)
    assert list(field_sets.paths(found)) == texts
    assert field_sets.load(field_sets.dump(found)) == found


def test_a_list_applied_again_without_its_defaults_changes_nothing() -> None:
    made = tracked()
    first = apply(made, claim())
    for _ in range(3):
        assert apply(made, claim()) == first
