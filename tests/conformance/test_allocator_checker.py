"""The checker accepts every recorded answer and refuses spoilt ones.

The recorded answers come from the reference, so a finding without a quirk would be a mistake of
the checker; findings that name a quirk are the defects which the reference really has.
"""

import copy
import json
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

import pytest

from app.domain.allocation import Allocation, AllocatorVariant, checking
from app.domain.devices import nodes
from tests import draws
from tests.conformance.test_allocator_oracle import own
from tests.together import together
from tests.worlds import differences, random_worlds


def single() -> list[dict]:
    return [found for found in own() if "claims" in found["input"]]


def answers(scenario: dict) -> Iterator[tuple[checking.Case, list]]:
    """The allocations that the reference made, each with its case."""
    given = scenario["input"]
    for node, expected in zip(given["nodes"], scenario["expected"]["results"], strict=True):
        if expected["allocations"] is not None:
            yield differences.case_of(given, node), expected["allocations"]


def telling(times: int = 4) -> list[dict]:
    """Scenarios of which each holds a field of results that few before it hold."""
    seen: Counter[object] = Counter()
    found = []
    for scenario in single():
        results = [one["allocations"] for one in scenario["expected"]["results"]]
        fields = {path[-1] for path in places(results) if isinstance(path[-1], str)}
        if any(seen[field] < times for field in fields):
            found.append(scenario)
            seen.update(fields)
    return found


def unexplained(case: checking.Case, allocations: list) -> list[checking.Finding]:
    return [found for found in checking.check(case, allocations) if not found.quirk]


@together(single(), itemgetter("name"))
def test_checker_accepts_what_the_reference_answered(scenario: dict) -> None:
    for case, allocations in answers(scenario):
        assert not unexplained(case, allocations)


OTHER_NODE = {"key": "metadata.name", "operator": "In", "values": ["another"]}


def changed(value: object) -> Iterator[object]:
    """Other values in the place of one, of the same kind."""
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
        case str():
            yield f"{value}x"
            yield ""
        case list():
            yield value[1:]
            yield [*value, copy.deepcopy(value[-1])] if value else ["x"]
            if len(value) > 1 and value[0] != value[-1]:
                yield value[::-1]
        case dict():
            yield {**value, "unheardOf": "x"}


def places(tree: object, path: tuple = ()) -> Iterator[tuple]:
    """Every place inside a tree, fields and items."""
    items: list = []
    if isinstance(tree, dict):
        items = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: object, path: tuple) -> object:
    for key in path:
        tree = tree[key]
    return tree


def spoilt(allocations: list) -> Iterator[tuple[str, list]]:
    """Each allocation with one value changed, removed or added, under the field's name."""
    for path in places(allocations):
        value, parent = at(allocations, path), at(allocations, path[:-1])
        name = ".".join(str(key) for key in path if isinstance(key, str)) or "allocations"
        for other in changed(value):
            worse = copy.deepcopy(allocations)
            at(worse, path[:-1])[path[-1]] = other
            yield name, worse
        if isinstance(parent, dict):
            worse = copy.deepcopy(allocations)
            del at(worse, path[:-1])[path[-1]]
            yield f"{name} removed", worse
    for number in range(len(allocations)):
        yield from added(allocations, number)


def added(allocations: list, number: int) -> Iterator[tuple[str, list]]:
    """Fields that are not there, put where they could be."""
    own_devices = allocations[number]["devices"]
    fields = {
        "adminAccess": True,
        "tolerations": [{"operator": "Exists"}],
        "shareID": "share",
        "consumedCapacity": {"memory": "1"},
        "bindingConditions": ["x"],
        "bindingFailureConditions": ["x"],
        "unheardOf": "x",
    }
    for index, result in enumerate(own_devices.get("results", ())):
        for field, value in fields.items():
            if field not in result:
                worse = copy.deepcopy(allocations)
                worse[number]["devices"]["results"][index][field] = value
                yield f"{field} added", worse
    opaque = {"driver": "d", "parameters": {}}
    for source in ("FromClass", "FromClaim"):
        worse = copy.deepcopy(allocations)
        entry = {"source": source, "opaque": opaque}
        worse[number]["devices"].setdefault("config", []).append(entry)
        yield f"config {source} added", worse
    for index, entry in enumerate(own_devices.get("config", ())):
        if "requests" not in entry:
            worse = copy.deepcopy(allocations)
            worse[number]["devices"]["config"][index]["requests"] = ["x"]
            yield "config.requests added", worse
    if "nodeSelector" not in allocations[number]:
        worse = copy.deepcopy(allocations)
        terms = [{"matchFields": [OTHER_NODE]}]
        worse[number]["nodeSelector"] = {"nodeSelectorTerms": terms}
        yield "nodeSelector added", worse


def means_the_same(case: checking.Case, name: str, worse: list, allocations: list) -> bool:
    """Whether a change is none: another text of a share's id, or another order of devices where
    upstream's stable allocator may take any.
    """
    if name.rpartition(".")[2] == "shareID":
        return all(one.get("shareID") != "" for found in worse for one in results_of(found))
    return case.variant == "stable" and any_order(worse) == any_order(allocations)


def results_of(allocation: dict) -> list:
    return allocation.get("devices", {}).get("results", [])


def any_order(allocations: list) -> list:
    """The allocations with the devices of each request in an order of their own."""
    copied = copy.deepcopy(allocations)
    for allocation in copied:
        results = results_of(allocation)
        for start in range(len(results)):
            request = results[start].get("request")
            same = [n for n, one in enumerate(results) if one.get("request") == request]
            texts = sorted(json.dumps(results[n], sort_keys=True) for n in same)
            for place, text in zip(same, texts, strict=True):
                results[place] = json.loads(text)
    return copied


def refuse_all(case: checking.Case, allocations: list, refused: Counter[str]) -> None:
    """Change one value after the other; each change must give a finding that was not there."""
    before = set(checking.check(case, allocations))
    for name, worse in spoilt(allocations):
        if means_the_same(case, name, worse, allocations):
            continue
        assert set(checking.check(case, worse)) - before, (name, worse)
        refused[name.rpartition(".")[2]] += 1


@draws.in_turn("wrongs")
def test_checker_refuses_every_answer_of_which_one_value_is_changed() -> None:
    refused: Counter[str] = Counter()
    for scenario in telling():
        for case, allocations in answers(scenario):
            refuse_all(case, allocations, refused)
    for field in (
        "request", "driver", "pool", "device", "adminAccess", "tolerations", "shareID removed",
        "bindingConditions", "bindingFailureConditions", "memory", "source", "requests", "opaque",
        "config", "nodeSelector", "values", "matchExpressions removed", "results",
    ):  # fmt: skip
        assert refused[field], (field, refused)


@draws.BY_DAY
@pytest.mark.parametrize("variant", AllocatorVariant)
def test_checker_accepts_answers_in_random_worlds_and_refuses_changed_ones(
    variant: AllocatorVariant,
) -> None:
    seeds = draws.of_today(range(600))
    accepted, refused = 0, Counter()
    for number, seed in enumerate(seeds):
        given = random_worlds.world(seed)["input"]
        allocator = differences.allocator_of(given, variant=variant)
        answer = allocator.allocate(nodes.node_of(given["nodes"][0]), given["claims"])
        if not isinstance(answer, Allocation):
            continue
        case = differences.case_of(given, given["nodes"][0], variant=variant)
        found = answer.allocation_results(lambda: "share")
        assert not unexplained(case, found), seed
        accepted += 1
        if number % 10 == 0:
            refuse_all(case, found, refused)
    assert accepted > len(seeds) / 6
    assert sum(refused.values()) > len(seeds) * 5 / 6
