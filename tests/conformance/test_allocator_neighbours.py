"""Tolerations, taint merging and claim functions agree with upstream's tables."""

import itertools
import json
from functools import lru_cache

import pytest

from app.domain.devices import claims, inventory, taints
from app.domain.devices.claims import ClaimProblem
from app.domain.devices.inventory import Inventory
from tests.shared_data import shared_is_present, shared_path

ORDERS_MAX = 200


@lru_cache
def cases(name: str) -> list[dict]:
    if not shared_is_present("conformance", "upstream", name):
        return []
    return json.loads(shared_path("conformance", "upstream", name).read_text())["cases"]


def rows(name: str) -> list:
    found = cases(name)
    if not found:
        return [pytest.param(None, id="absent")]
    return [
        pytest.param(case, id=f"{index}-{case['name'][:60]}") for index, case in enumerate(found)
    ]


def needs(case: dict | None, name: str) -> None:
    if case is None:
        shared_path("conformance", "upstream", name)


@pytest.mark.parametrize("case", rows("tolerations.json"))
def test_toleration_matches_as_upstream(case: dict | None) -> None:
    needs(case, "tolerations.json")
    found = taints.tolerates(
        taints.toleration_of(case["toleration"]), taints.taint_of(case["taint"])
    )
    assert found is case["expected"]["tolerated"]


def interleavings(events: list) -> list[list[dict]]:
    """The order as written first, then other orders that keep the order inside nested lists."""
    chains = [event if isinstance(event, list) else [event] for event in events]
    owners = [index for index, chain in enumerate(chains) for _ in chain]
    found = []
    for order in sorted(set(itertools.islice(itertools.permutations(owners), 5_000))):
        pending = [iter(chain) for chain in chains]
        found.append([next(pending[owner]) for owner in order])
    return found[:ORDERS_MAX]


def feed(view: Inventory, event: dict) -> tuple[inventory.SliceChange, ...]:
    new, old = event.get("new"), event.get("old")
    name = (new or old)["metadata"]["name"]
    match event["kind"], new:
        case "ResourceSlice", None:
            return view.remove_slice(name)
        case "ResourceSlice", _:
            return view.put_slice(new)
        case "DeviceTaintRule", None:
            return view.remove_rule(name)
        case "DeviceTaintRule", _:
            return view.put_rule(new)
    return ()


def shown(change: inventory.SliceChange) -> dict:
    return {
        "event": change.type.value,
        "old": None if change.old is None else inventory.merged_tree(change.old),
        "new": None if change.new is None else inventory.merged_tree(change.new),
    }


@pytest.mark.parametrize("case", rows("tracker.json"))
def test_taint_rules_are_merged_as_upstream(case: dict | None) -> None:
    needs(case, "tracker.json")
    events = [
        e for event in case["events"] for e in (event if isinstance(event, list) else [event])
    ]
    view = Inventory()
    handled = [shown(change) for event in events for change in feed(view, event)]
    assert handled == case["expected"]["handlerEvents"]
    expected = {found["metadata"]["name"]: found for found in case["expected"]["patchedSlices"]}
    for order in interleavings(case["events"]):
        view = Inventory()
        for event in order:
            feed(view, event)
        assert {found.name: inventory.merged_tree(found) for found in view.slices()} == expected


@pytest.mark.parametrize("case", rows("resourceclaim.json"))
def test_claim_functions_answer_as_upstream(case: dict | None) -> None:
    needs(case, "resourceclaim.json")
    given, expected = case["input"], case["expected"]
    match case["function"]:
        case "isForPod":
            assert refusal(claims.check_for_pod, given["pod"], given["claim"], given) == expected
        case "isForPodGroup":
            assert refusal(claims.check_for_group, given["podGroup"], given["claim"]) == expected
        case "isReservedForPod":
            found = claims.is_reserved_for(
                given["pod"], given["claim"], accept_group=given["acceptPodGroup"]
            )
            assert found is expected["reserved"]
        case "claimName":
            assert named(given) == expected
        case "bindTo":
            assert bound(given) == expected
        case "baseRequestRef":
            assert claims.main_request(given["requestRef"]) == expected["baseRequestRef"]
        case "configForResult":
            found = claims.configs_for_result(given["configs"], given["result"])
            assert found == (expected["configs"] or [])
        case other:
            pytest.fail(f"unknown function {other}")


def refusal(check, owner: dict, claim: dict, given: dict | None = None) -> dict:
    try:
        if given is None:
            check(owner, claim)
        else:
            check(owner, claim, accept_group=given["acceptPodGroup"])
    except ClaimProblem as problem:
        return {"error": str(problem)}
    return {"error": ""}


def named(given: dict) -> dict:
    try:
        found = claims.claim_name(given["pod"], given["podClaim"])
    except ClaimProblem as problem:
        return {"checkOwner": False, "error": str(problem), "name": None}
    return {"checkOwner": found.check_owner, "error": "", "name": found.name}


def bound(given: dict) -> dict:
    try:
        found = claims.consumer_of(given["pod"], given["podClaim"], given.get("podGroup"))
    except ClaimProblem as problem:
        return {"consumer": {"resource": "", "name": "", "uid": ""}, "error": str(problem)}
    return {"consumer": found, "error": ""}
