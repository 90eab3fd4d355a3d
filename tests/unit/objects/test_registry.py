"""Kinds: which exist, how they are found, in which releases they are served."""

import pytest

from app.domain.errors import InputError
from app.domain.objects import profile, registry
from app.domain.objects.profile import Profile


def plurals(version: str, group_version: str, **gates: bool) -> set[str]:
    chosen = Profile(version=version, gates=gates)
    group, of_version = registry.split_api_version(group_version)
    return {
        kind.plural
        for kind in registry.kinds()
        if registry.is_served(kind, group, of_version, chosen)
    }


CLAIM_KINDS = {"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"}


@pytest.mark.parametrize(
    ("release", "group_version", "expected"),
    [
        ("1.34", "resource.k8s.io/v1", CLAIM_KINDS),
        ("1.36", "resource.k8s.io/v1", CLAIM_KINDS),
        ("1.37", "resource.k8s.io/v1", CLAIM_KINDS | {"devicetaintrules"}),
        ("1.35", "resource.k8s.io/v1beta2", CLAIM_KINDS),
        ("1.36", "resource.k8s.io/v1beta2", CLAIM_KINDS | {"devicetaintrules"}),
        ("1.37", "resource.k8s.io/v1beta1", CLAIM_KINDS),
        ("1.37", "resource.k8s.io/v1alpha3", {"devicetaintrules", "resourceslicepatches"}),
        ("1.37", "events.k8s.io/v1", {"events"}),
    ],
)
def test_each_release_serves_its_versions(
    release: str, group_version: str, expected: set[str]
) -> None:
    assert plurals(release, group_version) == expected


def test_gated_kind_comes_with_its_gate_and_patches_stay_without_theirs() -> None:
    always = {"devicetaintrules", "resourceslicepatches"}
    gates = {"DRAAdminControlledDeviceAttributes": False}
    assert plurals("1.36", "resource.k8s.io/v1alpha3", **gates) == always
    gates["DRAResourcePoolStatus"] = True
    found = plurals("1.36", "resource.k8s.io/v1alpha3", **gates)
    assert found == always | {"resourcepoolstatusrequests"}


def test_events_of_both_groups_are_one_kind() -> None:
    assert registry.find("events.k8s.io", "events") is registry.find("", "events")
    found = registry.find_kind("events.k8s.io", "v1", "Event")
    assert found is not None
    assert found.group == ""


@pytest.mark.parametrize(
    ("group", "version", "kind", "known"),
    [
        ("resource.k8s.io", "v1beta1", "ResourceClaim", True),
        ("resource.k8s.io", "v1alpha3", "ResourceClaim", False),
        ("resource.k8s.io", "v1alpha3", "ResourceSlicePatch", True),
        ("", "v1", "Pod", True),
        ("", "v2", "Pod", False),
        ("example.com", "v1", "Pod", False),
    ],
)
def test_kinds_are_found_by_group_version_and_name(
    group: str, version: str, kind: str, *, known: bool
) -> None:
    assert (registry.find_kind(group, version, kind) is not None) is known


def test_people_may_use_any_name_of_a_kind() -> None:
    for name in ("claim", "resourceclaim", "ResourceClaims", "resourceclaims.resource.k8s.io"):
        found = [kind.kind for kind in registry.find_name(name)]
        assert found == ([] if name == "claim" else ["ResourceClaim"])
    assert [kind.kind for kind in registry.find_name("po")] == ["Pod"]


def test_deprecated_versions_warn_as_the_release_does() -> None:
    claim = registry.find("resource.k8s.io", "resourceclaims")
    rule = registry.find("resource.k8s.io", "devicetaintrules")
    assert claim is not None
    assert rule is not None
    chosen = Profile(version="1.36")
    assert registry.deprecation(claim, "v1beta1", chosen) == (
        "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+"
    )
    assert registry.deprecation(claim, "v1", chosen) == ""
    assert registry.deprecation(rule, "v1beta2", chosen) == ""
    assert registry.deprecation(rule, "v1alpha3", chosen) == (
        "resource.k8s.io/v1alpha3 DeviceTaintRule is deprecated in v1.36+, unavailable in v1.39+"
    )
    assert registry.deprecation(claim, "v1beta2", Profile(version="1.35")) == ""


def test_served_versions_are_listed_by_preference() -> None:
    rule = registry.find("resource.k8s.io", "devicetaintrules")
    assert rule is not None
    found = registry.served_versions(rule, Profile(version="1.37"))
    assert [version for _, version in found] == ["v1", "v1beta2", "v1alpha3"]


@pytest.mark.parametrize(
    ("group", "plural", "label", "tree", "value"),
    [
        ("", "pods", "spec.nodeName", {"spec": {"nodeName": "n"}}, "n"),
        ("", "pods", "spec.hostNetwork", {}, "false"),
        ("", "nodes", "spec.unschedulable", {"spec": {"unschedulable": True}}, "true"),
        ("", "events", "source", {"source": {"component": "c"}}, "c"),
        ("", "events", "regarding.name", {"involvedObject": {"name": "p"}}, "p"),
        ("resource.k8s.io", "resourceslices", "spec.nodeName", {"spec": {}}, ""),
    ],
)
def test_field_labels_read_their_field(
    group: str, plural: str, label: str, tree: dict[str, object], value: str
) -> None:
    kind = registry.find(group, plural)
    assert kind is not None
    found = kind.field_label(label)
    assert found is not None
    assert found.value(tree) == value


def test_unsupported_field_labels_are_not_found() -> None:
    kind = registry.find("resource.k8s.io", "resourceclaims")
    assert kind is not None
    assert kind.field_label("spec.devices") is None


@pytest.mark.parametrize(
    ("gate", "releases"),
    [
        ("DRADeviceTaints", {"1.36", "1.37"}),
        ("DRADeviceTaintRules", {"1.37"}),
        ("DRAPrioritizedList", {"1.34", "1.35", "1.36", "1.37"}),
        ("DRAListTypeAttributes", set()),
    ],
)
def test_gates_have_the_defaults_of_their_release(gate: str, releases: set[str]) -> None:
    assert {name for name in profile.VERSIONS if Profile(version=name).enabled(gate)} == releases


def test_gates_can_be_switched_by_hand() -> None:
    chosen = Profile(gates={"DRADeviceTaints": False, "DRAListTypeAttributes": True})
    assert not chosen.enabled("DRADeviceTaints")
    assert chosen.enabled("DRAListTypeAttributes")
    assert profile.from_settings(chosen.settings()) == chosen


@pytest.mark.parametrize(
    "settings", [{"profile": "1.20"}, {"gates": {"NoSuchGate": True}}, {"profile": 3}]
)
def test_unknown_releases_and_gates_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError):
        profile.from_settings(settings)
