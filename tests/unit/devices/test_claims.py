"""Whose claim is it: owners, reservations, names, configs. Rows follow allocator.md 20."""

import pytest

from app.domain.devices import claims
from app.domain.devices.claims import ClaimName, ClaimProblem

GROUPED = {"schedulingGroup": {"podGroupName": "g"}}


def pod(**spec: object) -> dict:
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "1"}, "spec": spec}


def claim(owner: dict | None = None, namespace: str = "ns", **status: object) -> dict:
    owners = [] if owner is None else [{"controller": True, **owner}]
    metadata = {"name": "c", "namespace": namespace, "ownerReferences": owners}
    return {"metadata": metadata, "status": status}


GROUP_OWNER = {"kind": "PodGroup", "name": "g", "apiVersion": "scheduling.k8s.io/v1", "uid": "9"}

OWNERS = [
    (pod(), claim({"uid": "1"}), False, ""),
    (
        pod(),
        claim({"uid": "1"}, "other"),
        False,
        "ResourceClaim other/c is not in the same namespace as Pod ns/p",
    ),
    (
        pod(**GROUPED),
        claim(GROUP_OWNER),
        False,
        "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
    ),
    (pod(**GROUPED), claim(GROUP_OWNER), True, ""),
    (
        pod(**GROUPED),
        claim({"uid": "2"}),
        True,
        "ResourceClaim ns/c was not created for Pod ns/p (neither Pod nor PodGroup g is the owner)",
    ),
    (
        pod(),
        claim({"uid": "2"}),
        True,
        "ResourceClaim ns/c was not created for Pod ns/p (Pod is not owner)",
    ),
]


@pytest.mark.parametrize(("owner", "given", "accept", "problem"), OWNERS)
def test_claim_is_for_its_owner(owner: dict, given: dict, accept: bool, problem: str) -> None:
    if not problem:
        claims.check_for_pod(owner, given, accept_group=accept)
        return
    with pytest.raises(ClaimProblem) as caught:
        claims.check_for_pod(owner, given, accept_group=accept)
    assert str(caught.value) == problem


def test_only_the_first_controller_counts() -> None:
    given = claim({"uid": "2"})
    given["metadata"]["ownerReferences"].append({"uid": "1", "controller": True})
    assert not claims.is_controlled_by(given, pod())


def test_reservation_is_by_uid_or_by_name_of_the_group() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "9"}
    assert claims.is_reserved_for(pod(), claim(reservedFor=[{"uid": "1"}]))
    grouped = claim(reservedFor=[group])
    assert not claims.is_reserved_for(pod(**GROUPED), grouped)
    assert claims.is_reserved_for(pod(**GROUPED), grouped, accept_group=True)
    assert not claims.is_reserved_for(pod(), grouped, accept_group=True)


def test_name_of_the_claim_comes_from_the_entry_or_the_status() -> None:
    owner = pod()
    direct = claims.claim_name(owner, {"name": "a", "resourceClaimName": "x"})
    assert direct == ClaimName(name="x", check_owner=False)
    entry = {"name": "a", "resourceClaimTemplateName": "t"}
    with pytest.raises(ClaimProblem, match="ResourceClaim not created yet"):
        claims.claim_name(owner, entry)
    owner["status"] = {"resourceClaimStatuses": [{"name": "a"}]}
    assert claims.claim_name(owner, entry) == ClaimName(name=None, check_owner=True)
    with pytest.raises(ClaimProblem, match="none of the supported fields"):
        claims.claim_name(owner, {"name": "a"})


def test_group_reserves_what_it_shares() -> None:
    entry = {"name": "a", "resourceClaimName": "x"}
    group = {
        "metadata": {"name": "g", "namespace": "ns", "uid": "9"},
        "spec": {"resourceClaims": [entry]},
    }
    assert claims.consumer_of(pod(), entry)["resource"] == "pods"
    assert claims.consumer_of(pod(**GROUPED), entry, group)["resource"] == "podgroups"
    other = {**entry, "resourceClaimName": "y"}
    assert claims.consumer_of(pod(**GROUPED), other, group)["resource"] == "pods"
    with pytest.raises(ClaimProblem, match="does not belong to a PodGroup"):
        claims.consumer_of(pod(), entry, group)


def test_configs_apply_by_literal_or_main_name() -> None:
    def config(*requests: str, **rest: object) -> dict:
        return {"requests": list(requests), "opaque": {"n": len(requests)}, **rest}

    listed = [config(), config("r"), config("r/a"), config("r/b"), {"requests": []}]
    found = claims.configs_for_result(listed, {"request": "r/a"})
    assert found == listed[:3]
