"""The allocator agrees with upstream's own table, answer by answer and step by step."""

import json
from functools import lru_cache
from operator import itemgetter

from app.domain.allocation import (
    AllocatedState,
    Allocation,
    Allocator,
    AllocatorVariant,
    Failure,
    Features,
    scenarios,
)
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.values import quantity
from tests.conformance.scenario_answers import comparable_error, without_share_ids
from tests.shared_data import shared_is_present, shared_path
from tests.together import together

COMPILER = CelCompiler(detailed_errors=True)
LISTER_CASES = ("no-classes", "unknown-class")


@lru_cache
def cases() -> list[dict]:
    if not shared_is_present("conformance", "upstream", "allocator.json"):
        return []
    path = shared_path("conformance", "upstream", "allocator.json")
    return json.loads(path.read_text())["cases"]


def rows(channel: str = "") -> list:
    """The cases, or those that upstream runs on one of its variants."""
    return [case for case in cases() if not channel or channel in case["channels"]]


def absent() -> None:
    shared_path("conformance", "upstream", "allocator.json")


def device_id(found: dict) -> tuple[str, str, str]:
    return found["driver"], found["pool"], found["device"]


def state_of(case: dict) -> AllocatedState:
    given = case.get("allocatedState") or {}
    return AllocatedState.of_parts(
        [device_id(found) for found in given.get("devices") or ()],
        [(device_id(found), found["shareID"]) for found in given.get("sharedDevices") or ()],
        {
            device_id(found): {
                name: quantity.from_json(value).nanos
                for name, value in found["consumedCapacity"].items()
            }
            for found in given.get("aggregatedCapacity") or ()
        },
    )


def ask(case: dict, *, variant: AllocatorVariant, prune: bool):
    allocator = Allocator(
        case["slices"],
        {found["metadata"]["name"]: found for found in case["classes"]},
        state_of(case),
        Features.of_gates(case["features"]),
        compiler=COMPILER,
        variant=variant,
        prune=prune,
    )
    return allocator.allocate(case["node"], case["claims"])


def check(case: dict, answer) -> None:
    expected = case["expected"]
    error = answer.text if isinstance(answer, Failure) else None
    if case["name"] in LISTER_CASES:
        assert error is not None
        assert error.startswith(expected["error"].partition(": deviceclass")[0][:60])
        return
    assert comparable_error(error) == comparable_error(expected.get("error"))
    found = None
    if isinstance(answer, Allocation):
        found = without_share_ids(answer.allocation_results(lambda: "x"))
    assert (found or None) == (without_share_ids(expected.get("allocations")) or None)


@together(rows(), itemgetter("name"), absent=absent)
def test_allocation_is_upstreams(case: dict) -> None:
    check(case, ask(case, variant=AllocatorVariant.EXPERIMENTAL, prune=True))
    literal = ask(case, variant=AllocatorVariant.EXPERIMENTAL, prune=False)
    check(case, literal)
    if not isinstance(literal, Failure):
        assert literal.steps == case["allocateOneInvocations"]


@together(rows("incubating"), itemgetter("name"), absent=absent)
def test_incubating_variant_answers_alike(case: dict) -> None:
    check(case, ask(case, variant=AllocatorVariant.INCUBATING, prune=True))


@together(rows("stable"), itemgetter("name"), absent=absent)
def test_stable_variant_answers_alike_up_to_order(case: dict) -> None:
    answer = ask(case, variant=AllocatorVariant.STABLE, prune=True)
    check(case, answer)
    most = (case.get("maxAllocateOneInvocations") or {}).get("stable")
    if most is not None:
        unpruned = ask(case, variant=AllocatorVariant.STABLE, prune=False)
        assert unpruned.steps == most


@together(rows(), itemgetter("name"), absent=absent)
def test_case_as_a_scenario_has_the_same_answer(case: dict) -> None:
    """As `redra allocate` answers a table."""
    settings = scenarios.ScenarioSettings(compiler=COMPILER)
    (shown,) = scenarios.run(scenarios.of_table_case(case, "case"), settings)["results"]
    expected = case["expected"]
    assert ("error" in shown) == bool(expected.get("error"))
    found, wanted = shown["allocations"], expected.get("allocations")
    assert (without_share_ids(found) or None) == (without_share_ids(wanted) or None)
