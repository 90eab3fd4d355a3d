"""Tolerations, taint merging and claim functions agree with upstream's tables."""

import itertools
import json
from collections import Counter
from functools import lru_cache

import pytest

from app.domain.controllers import pods
from app.domain.controllers.pods import ClaimEntry, PodFacts
from app.domain.devices import inventory, taints
from app.domain.devices.inventory import Inventory
from tests.shared_data import shared_is_present, shared_path
from tests.worlds import merging

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
        "event": "add" if change.old is None else "delete" if change.new is None else "update",
        "old": None if change.old is None else merging.merged_tree(change.old),
        "new": None if change.new is None else merging.merged_tree(change.new),
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
        assert {found.name: merging.merged_tree(found) for found in view.slices()} == expected


NOT_RUN = {
    "isForPodGroup": "claims of PodGroups are not emulated",
    "baseRequestRef": "drivers and kubelets read configs, nothing here does",
    "configForResult": "drivers and kubelets read configs, nothing here does",
}
"""Functions of upstream for which no code runs here, and why."""


@pytest.mark.parametrize("case", rows("resourceclaim.json"))
def test_claim_functions_that_run_answer_as_upstream(case: dict | None) -> None:
    needs(case, "resourceclaim.json")
    given, expected = case["input"], case["expected"]
    pod = pods.facts(given.get("pod") or {})
    match case["function"]:
        case "isForPod":
            accepts = given["acceptPodGroup"]
            problem = pods.owner_problem(given["claim"], pod, accepts_groups=accepts)
            assert problem == expected["error"]
        case "isReservedForPod":
            group = pod.group if given["acceptPodGroup"] else ""
            assert pods.is_reserved_for(given["claim"], pod.uid, group) is expected["reserved"]
        case "claimName":
            found = pods.entry_claim(pod, entry_of(given))
            assert (found.name, found.needs_owner, found.problem) == (
                expected["name"],
                expected["checkOwner"],
                expected["error"],
            )
        case "bindTo":
            assert reserved(given, pod) == own_reference(given, expected)
        case other:
            assert other in NOT_RUN


def test_rows_about_what_does_not_run_are_counted() -> None:
    found = Counter(case["function"] for case in cases("resourceclaim.json"))
    if found:
        assert sum(found.values()) == 48
        unjudged = {name: count for name, count in found.items() if name in NOT_RUN}
        assert unjudged == {"isForPodGroup": 4, "baseRequestRef": 2, "configForResult": 6}


def entry_of(given: dict) -> ClaimEntry:
    """The entry as it is read from a pod's spec."""
    (entry,) = pods.facts({"spec": {"resourceClaims": [given["podClaim"]]}}).entries
    return entry


def reserved(given: dict, pod: PodFacts) -> dict:
    """What a claim that the entry names is reserved for, or nothing when it names none."""
    entry = entry_of(given)
    return pods.consumer_of(pod) if entry.claim or entry.template else {}


def own_reference(given: dict, expected: dict) -> dict:
    """What is expected where PodGroups share no claims: the pod itself, whatever its group does."""
    if expected["consumer"]["resource"] == "pods":
        return expected["consumer"]
    if given.get("podGroup") is None:
        return {}
    metadata = given["pod"]["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
