"""Replacing and patching: what a write may touch, conflicts, generations, no-ops."""

import copy
from typing import Any

import msgspec
import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import BadRequest, Conflict, Invalid, NotFound, TooLarge
from app.domain.log import EventType
from app.domain.objects import field_errors
from app.domain.objects.field_errors import FieldError
from app.domain.objects.profile import Profile
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules, ValidationContext
from app.domain.objects.write.commands import PatchType
from tests.unit.objects.builders import Cluster, claim, cluster, key, pod, release

PLACE = key("resourceclaims", "c", "default")
RESULT = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "dev"}


def with_claim() -> tuple[Cluster, dict[str, Any]]:
    made = cluster()
    return made, copy.deepcopy(made.create(claim()))


def rule(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "value": "v", "effect": "NoSchedule"}, **spec},
    }


RULE = key("devicetaintrules", "r")


def with_rule() -> tuple[Cluster, dict[str, Any]]:
    made = cluster()
    return made, copy.deepcopy(made.create(rule()))


def test_an_update_gives_one_event_and_the_new_tree() -> None:
    made, tree = with_claim()
    tree["metadata"]["labels"] = {"a": "b"}
    answer = made.update(tree)
    assert made.types == ["ObjectUpdated"]
    assert answer["metadata"]["labels"] == {"a": "b"}
    assert answer["metadata"]["resourceVersion"] == "3"
    assert made.get(PLACE) == answer


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"status": {"reservedFor": []}},
        {"status": None},
        {"metadata": {"name": "c", "namespace": "default", "labels": {}, "annotations": None}},
        {"metadata": {"name": "c"}},
        {"spec": claim()["spec"]},
    ],
)
def test_an_update_that_changes_nothing_gives_no_event(change: dict[str, Any]) -> None:
    made, tree = with_claim()
    answer = made.update(claim() | {"metadata": tree["metadata"]} | change | {"metadata": {
        **tree["metadata"], **change.get("metadata", {})}})  # fmt: skip
    assert made.types == []
    assert answer["metadata"]["resourceVersion"] == "2"


def test_equal_quantities_written_otherwise_change_nothing() -> None:
    made = cluster()
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d", "capacity": {"memory": {"value": "1Gi"}}}],
        },
    }
    made.create(tree)
    tree["spec"]["devices"][0]["capacity"]["memory"]["value"] = "1024Mi"
    made.update(tree)
    assert made.types == []


def test_a_stale_resource_version_conflicts() -> None:
    made, tree = with_claim()
    tree["metadata"]["resourceVersion"] = "1"
    with pytest.raises(Conflict) as refused:
        made.update(tree)
    assert refused.value.message == (
        'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "c": the object has been '
        "modified; please apply your changes to the latest version and try again"
    )


def test_a_resource_version_that_is_no_number_is_invalid() -> None:
    made, tree = with_claim()
    tree["metadata"]["resourceVersion"] = "latest"
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion"):
        made.update(tree)


def test_an_update_without_resource_version_is_unconditional() -> None:
    made, tree = with_claim()
    del tree["metadata"]["resourceVersion"]
    tree["metadata"]["labels"] = {"a": "b"}
    made.update(tree)
    assert made.types == ["ObjectUpdated"]


@pytest.mark.parametrize("version", ["", "0"])
def test_a_rule_in_v1_must_be_updated_with_its_resource_version(version: str) -> None:
    made, _ = with_rule()
    with pytest.raises(Invalid) as refused:
        made.update(rule() | {"metadata": {"name": "r", "resourceVersion": version}})
    assert refused.value.message == (
        'DeviceTaintRule.resource.k8s.io "r" is invalid: metadata.resourceVersion: '
        "Invalid value: 0: must be specified for an update"
    )
    made.update(rule() | {"apiVersion": "resource.k8s.io/v1beta2"})


def test_another_uid_conflicts() -> None:
    made, tree = with_claim()
    tree["metadata"]["uid"] = "other"
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other"):
        made.update(tree)


def test_what_does_not_exist_is_not_created_by_an_update() -> None:
    with pytest.raises(NotFound) as refused:
        cluster().update(claim())
    assert refused.value.message == 'resourceclaims.resource.k8s.io "c" not found'


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"name": "d"}, "the name of the object (d) does not match the name on the URL (c)"),
        (
            {"namespace": "x"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
def test_a_body_about_another_object_is_refused(metadata: dict[str, str], message: str) -> None:
    made, _ = with_claim()
    with pytest.raises(BadRequest) as refused:
        made.patch(PLACE, {"metadata": metadata})
    assert refused.value.message == message


def test_what_the_server_set_survives_an_update() -> None:
    made, tree = with_claim()
    before = copy.deepcopy(tree["metadata"])
    tree["metadata"] |= {
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "generation": 9,
        "annotations": {"a": "b"},
    }
    after = made.update(tree)["metadata"]
    assert after == before | {"annotations": {"a": "b"}, "resourceVersion": "3"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("deletionTimestamp", "2000-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 5)],
)
def test_an_update_deletes_nothing(name: str, value: object) -> None:
    made, tree = with_claim()
    tree["metadata"] |= {name: value}
    with pytest.raises(Invalid) as refused:
        made.update(tree)
    assert str(refused.value).endswith(": field is immutable")
    assert [cause.field for cause in refused.value.causes] == [f"metadata.{name}"] * 2


def test_a_main_update_leaves_the_status_alone() -> None:
    made, tree = with_claim()
    tree["status"] = {"allocation": {"devices": {"results": [RESULT]}}}
    tree["metadata"]["labels"] = {"a": "b"}
    assert made.update(tree)["status"] == {}


def test_a_status_update_changes_nothing_else() -> None:
    made, tree = with_claim()
    tree["status"] = {"allocation": {"devices": {"results": [RESULT]}}}
    tree["spec"]["devices"]["requests"] = []
    tree["metadata"] |= {"labels": {"a": "b"}, "finalizers": ["x/y"], "ownerReferences": []}
    after = made.update(tree, subresource="status")
    assert after["status"] == {"allocation": {"devices": {"results": [RESULT]}}}
    assert after["spec"]["devices"]["requests"]
    assert set(after["metadata"]) == {
        "name", "namespace", "uid", "creationTimestamp", "resourceVersion",
    }  # fmt: skip


def test_a_status_write_leaves_what_it_does_not_write_to_itself() -> None:
    """Stored parts that are handed back are neither read nor changed; others are."""
    made, _tree = with_claim()
    stored = made.get(PLACE)
    assert stored is not None
    stored["spec"]["ofLaterReleases"] = True
    before = copy.deepcopy(stored["spec"])
    status = {"allocation": {"devices": {"results": [RESULT]}}}
    after = made.update({**stored, "status": status}, subresource="status")
    assert made.last.warnings == ()
    assert after["spec"] is stored["spec"]
    assert after["spec"] == before
    body = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    patched = made.patch(PLACE, body, type=PatchType.MERGE, subresource="status")
    assert made.last.warnings == ()
    assert patched["spec"] == before
    made.update(copy.deepcopy({**patched, "status": status}), subresource="status")
    assert made.last.warnings == ('unknown field "spec.ofLaterReleases"',)


def test_a_status_is_served_empty_after_deallocation() -> None:
    made, tree = with_claim()
    tree["status"] = {"allocation": {"devices": {"results": [RESULT]}}}
    tree = copy.deepcopy(made.update(tree, subresource="status"))
    del tree["status"]
    assert made.update(tree, subresource="status")["status"] == {}


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ([RESULT, RESULT | {"device": "two"}], ["dev", "two"]),
        ([RESULT], ["dev"]),
        ([], []),
    ],
)
def test_the_status_of_devices_that_are_given_back_is_dropped(
    after: list[dict[str, str]], kept: list[str]
) -> None:
    made, tree = with_claim()
    both = [RESULT, RESULT | {"device": "two"}]
    entries = [{"driver": "d.example.com", "pool": "p", "device": name} for name in ("dev", "two")]
    tree["status"] = {"allocation": {"devices": {"results": both}}, "devices": entries}
    tree = copy.deepcopy(made.update(tree, subresource="status"))
    tree["status"]["allocation"]["devices"]["results"] = after
    tree["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "u"}]
    left = made.update(tree, subresource="status")["status"].get("devices", [])
    assert [entry["device"] for entry in left] == kept


def test_resources_without_the_subresource_have_none() -> None:
    made = cluster()
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "g"},
    }
    made.create(tree)
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        made.update(tree, subresource="status")


@pytest.mark.parametrize(
    ("patch", "subresource", "generation"),
    [
        ({"spec": {"taint": {"value": "w"}}}, "", 2),
        ({"spec": {"deviceSelector": {}}}, "", 2),
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"spec": {"taint": {"value": "v"}}}, "", 1),
        ({"status": {"conditions": []}}, "status", 1),
        (
            {
                "status": {
                    "conditions": [
                        {
                            "type": "T",
                            "status": "True",
                            "reason": "R",
                            "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            },
            "status",
            1,
        ),
    ],
)
def test_generation_counts_changes_of_the_spec(
    patch: dict[str, Any], subresource: str, generation: int
) -> None:
    made, _ = with_rule()
    after = made.patch(RULE, patch, subresource=subresource)
    assert after["metadata"]["generation"] == generation


@pytest.mark.parametrize(
    ("taint", "time"),
    [
        ({"value": "w"}, "2026-03-01T10:00:02Z"),
        ({"effect": "NoExecute"}, "2026-03-01T10:00:03Z"),
        ({"effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}, "2020-01-01T00:00:00Z"),
        ({"timeAdded": None}, "2026-03-01T10:00:03Z"),
    ],
)
def test_a_changed_effect_counts_from_now(taint: dict[str, Any], time: str) -> None:
    made, _ = with_rule()
    after = made.patch(RULE, {"spec": {"taint": taint}})
    assert after["spec"]["taint"]["timeAdded"] == time


def test_new_finalizers_on_a_terminating_object_are_forbidden() -> None:
    made = cluster()
    tree = claim()
    tree["metadata"]["finalizers"] = ["a/b"]
    made.create(tree)
    made.delete(PLACE)
    with pytest.raises(Invalid) as refused:
        made.patch(PLACE, {"metadata": {"finalizers": ["a/b", "c/d"]}})
    assert refused.value.causes[0].message == (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"c/d"}'
    )


def test_removing_the_last_finalizer_removes_the_object() -> None:
    made = cluster()
    tree = claim()
    tree["metadata"]["finalizers"] = ["a/b"]
    made.create(tree)
    made.delete(PLACE)
    answer = made.patch(PLACE, {"metadata": {"finalizers": None}})
    assert made.types == ["ObjectDeleted"]
    assert made.get(PLACE) is None
    # Watchers see the state before, with the new version; the writer the other way round.
    event = made.world.events[-1]
    assert event.object["metadata"]["finalizers"] == ["a/b"]
    assert event.object["metadata"]["resourceVersion"] == "4"
    assert "finalizers" not in answer["metadata"]
    assert answer["metadata"]["resourceVersion"] == "3"


def test_removing_a_finalizer_from_a_living_object_keeps_it() -> None:
    made = cluster()
    tree = claim()
    tree["metadata"]["finalizers"] = ["a/b"]
    made.create(tree)
    made.patch(PLACE, {"metadata": {"finalizers": []}})
    assert made.types == ["ObjectUpdated"]


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        (PatchType.MERGE, {"metadata": {"labels": {"a": "b"}}}),
        (PatchType.STRATEGIC, {"metadata": {"labels": {"a": "b"}}}),
        (PatchType.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]),
    ],
)
def test_each_patch_type_changes_what_it_names(type_: PatchType, body: Any) -> None:
    made, _ = with_claim()
    assert made.patch(PLACE, body, type_)["metadata"]["labels"] == {"a": "b"}
    made.patch(PLACE, body, type_)
    assert made.types == []


def test_a_strategic_patch_merges_reservations_by_uid() -> None:
    made, tree = with_claim()
    tree["status"] = {
        "allocation": {"devices": {"results": [RESULT]}},
        "reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}],
    }
    made.update(tree, subresource="status")
    patch = {"status": {"reservedFor": [{"resource": "pods", "name": "b", "uid": "2"}]}}
    after = made.patch(PLACE, patch, PatchType.STRATEGIC, subresource="status")
    assert sorted(entry["uid"] for entry in after["status"]["reservedFor"]) == ["1", "2"]
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}}
    after = made.patch(PLACE, patch, PatchType.STRATEGIC, subresource="status")
    assert [entry["uid"] for entry in after["status"]["reservedFor"]] == ["2"]


def test_a_patch_in_an_older_version_sees_that_version() -> None:
    made, _ = with_claim()
    patch = [{"op": "test", "path": "/spec/devices/requests/0/deviceClassName", "value": "gpu"}]
    made.patch(PLACE, patch, PatchType.JSON, version="v1beta1")
    assert made.types == []


def test_a_failing_json_patch_is_invalid_in_the_servers_words() -> None:
    made, _ = with_claim()
    body = [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]
    with pytest.raises(Invalid) as refused:
        made.patch(PLACE, body, PatchType.JSON)
    assert refused.value.message == (
        "the server rejected our request due to an error in our request"
    )


def test_a_patch_may_carry_the_resource_version_it_expects() -> None:
    made, _ = with_claim()
    body = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    with pytest.raises(Conflict):
        made.patch(PLACE, body)
    body["metadata"]["resourceVersion"] = "2"
    made.patch(PLACE, body)
    assert made.types == ["ObjectUpdated"]


@pytest.mark.parametrize(
    ("type_", "body", "error"),
    [
        (PatchType.JSON, {}, BadRequest),
        (PatchType.MERGE, [], BadRequest),
        (PatchType.STRATEGIC, [], BadRequest),
        (PatchType.STRATEGIC, {"metadata": {"$patch": "explode"}}, BadRequest),
        (PatchType.MERGE, {"spec": 5}, Invalid),
        (PatchType.JSON, [{"op": "test", "path": "/kind", "value": "x"}] * 10_001, TooLarge),
    ],
)
def test_a_patch_that_is_none_is_refused(
    type_: PatchType, body: Any, error: type[Exception]
) -> None:
    made, _ = with_claim()
    with pytest.raises(error):
        made.patch(PLACE, body, type_)


def test_a_dry_run_of_an_update_changes_nothing() -> None:
    made, _ = with_claim()
    tree = made.patch(PLACE, {"metadata": {"labels": {"a": "b"}}}, dry_run=True)
    assert tree["metadata"]["labels"] == {"a": "b"}
    assert made.types == []
    assert "labels" not in (made.get(PLACE) or {})["metadata"]


def test_validation_sees_the_defaulted_tree_and_the_old_one() -> None:
    seen: list[tuple[Any, Any, str]] = []

    def validate(
        kind: Kind,
        tree: dict[str, Any],
        old: dict[str, Any],
        subresource: str,
        context: ValidationContext,
    ) -> list[FieldError]:
        seen.append((tree["spec"], old["spec"], subresource))
        return [field_errors.immutable("spec", tree["spec"])]

    base = cluster()
    base.rules = Rules(profile=base.rules.profile, schemas=release(), validate_update=validate)
    base.create(claim())
    # The defaults are filled in first, so this is no change and validation is not asked.
    base.update(claim())
    assert seen == []
    patch = {
        "spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "x"}}]}}
    }
    with pytest.raises(Invalid) as refused:
        base.patch(PLACE, patch)
    assert refused.value.causes[0].field == "spec"
    assert seen[0][0]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert seen[0][1]["devices"]["requests"][0]["name"] == "gpu"


def test_features_in_use_survive_their_gate() -> None:
    made = cluster(DRADeviceTaints=True)
    taint = {"key": "k", "effect": "NoSchedule"}
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "taints": [taint]}, {"name": "b"}],
        },
    }
    made.create(tree)
    made.rules = cluster(DRADeviceTaints=False).rules
    tree["spec"]["devices"][1]["taints"] = [taint]
    after = made.update(tree)
    assert [len(device.get("taints", ())) for device in after["spec"]["devices"]] == [1, 1]


def test_namespaces_keep_finalizers_and_phase_on_a_main_update() -> None:
    made = cluster()
    place = key("namespaces", "default")
    after = made.patch(
        place, {"spec": {"finalizers": []}, "status": {"phase": "X"}, "metadata": {"labels": None}}
    )
    assert after["spec"] == {"finalizers": ["kubernetes"]}
    assert after["status"] == {"phase": "Active"}
    assert after["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}
    assert made.types == []


def phased(made: Cluster, phase: str) -> dict[str, Any]:
    return made.patch(key("namespaces", "n"), {"status": {"phase": phase}}, subresource="status")


@pytest.mark.parametrize(
    ("is_deleted", "wrong", "right"),
    [(False, "Terminating", "Active"), (True, "Active", "Terminating")],
)
def test_phase_of_a_namespace_follows_its_deletion(
    *, is_deleted: bool, wrong: str, right: str
) -> None:
    made = cluster()
    made.rules = rules_for(Profile())
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    if is_deleted:
        made.delete(key("namespaces", "n"))
    with pytest.raises(Invalid) as refused:
        phased(made, wrong)
    assert f"may only be '{right}'" in str(refused.value)
    assert phased(made, right)["status"]["phase"] == right


def test_pod_spec_changes_count_and_bindings_do_not() -> None:
    made = cluster()
    made.create(pod())
    after = made.patch(key("pods", "p", "default"), {"spec": {"activeDeadlineSeconds": 5}})
    assert after["metadata"]["generation"] == 2


def test_scale_reads_and_writes_the_replicas() -> None:
    made = cluster()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    made.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
    )
    place = key("deployments", "d", "default")
    after = made.patch(place, {"spec": {"replicas": 3}}, subresource="scale")
    assert after["spec"]["replicas"] == 3
    assert after["metadata"]["generation"] == 2
    assert after["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    with pytest.raises(Invalid, match="must be greater than or equal to 0"):
        made.patch(place, {"spec": {"replicas": -1}}, subresource="scale")


def test_trees_of_different_drafts_share_no_metadata() -> None:
    made, _ = with_claim()
    first = made.world.events[-1].object
    made.patch(PLACE, {"status": {"reservedFor": []}}, subresource="status")
    made.patch(PLACE, {"metadata": {"labels": {"a": "b"}}})
    assert first["metadata"]["resourceVersion"] == "2"
    assert made.world.events[-1].object["metadata"] is not first["metadata"]


@pytest.mark.parametrize("name", ["devices", "sharedCounters"])
def test_an_empty_list_of_a_slice_is_not_kept(name: str) -> None:
    made = cluster()
    spec: dict[str, Any] = {
        "driver": "d.example.com",
        "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
    }
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": spec | {name: []},
    }
    assert name not in made.create(tree)["spec"]
    changed = tree | {"spec": spec | {name: [], "pool": spec["pool"] | {"generation": 2}}}
    assert name not in made.update(changed)["spec"]
    assert made.types == ["ObjectUpdated"]


def test_field_of_another_release_in_a_stored_claim_stays() -> None:
    """A recording may have it; who reads the claim and writes it does not know the field."""
    made = cluster()
    made.rules = rules_for(Profile())
    tree = copy.deepcopy(made.create(claim()))
    (draft,) = made.last.drafts
    known = copy.deepcopy(tree["spec"])
    tree["spec"]["devices"]["requests"][0]["exactly"]["affinity"] = {"near": "nic"}
    made.world.append(
        [msgspec.structs.replace(draft, type=EventType.OBJECT_UPDATED, tree=copy.deepcopy(tree))]
    )
    metadata = {"name": "c", "namespace": "default", "labels": {"a": "b"}}
    stored = made.update({**tree, "spec": known, "metadata": metadata})
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["spec"] == tree["spec"]
    other = copy.deepcopy(known)
    other["devices"]["requests"][0]["exactly"]["count"] = 2
    with pytest.raises(Invalid, match="field is immutable"):
        made.update({**tree, "spec": other, "metadata": metadata})
