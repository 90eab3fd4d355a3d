"""Laws of allocations in generated worlds: correct, explainable, independent of order, bounded."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.allocation import Allocation, AllocatorVariant, DoesNotFit, checking, scenarios
from app.domain.allocation.reasons import causes, explanation, summary
from app.domain.allocation.usage import Usage
from app.domain.devices import nodes
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.devices.pools import Reading
from app.domain.errors import InputError
from app.domain.values import json_tree
from tests import draws
from tests.worlds import differences
from tests.worlds.plain_selectors import PlainCompiler
from tests.worlds.strategies import spoilt, worlds

COMPILER = PlainCompiler()


@given(worlds())
@settings(max_examples=draws.examples(150), deadline=None)
def test_every_allocation_passes_the_checker(world: dict) -> None:
    given_input = world["input"]
    asked = differences.allocator_of(given_input)
    for node in given_input["nodes"]:
        answer = asked.allocate(nodes.node_of(node), given_input["claims"])
        if isinstance(answer, Allocation):
            found = answer.allocation_results(lambda: "share")
            findings = checking.check(differences.case_of(given_input, node), found)
            assert not [one for one in findings if not one.quirk], world["name"]


@given(worlds(), st.sampled_from([400, 1500, 6000]))
@settings(max_examples=draws.examples(150), deadline=None)
def test_every_answer_can_be_explained_within_bounds(world: dict, bound: int) -> None:
    given_input = world["input"]
    asked = differences.allocator_of(given_input)
    answers = [
        asked.allocate(nodes.node_of(n), given_input["claims"]) for n in given_input["nodes"]
    ]
    for answer in answers:
        tree = explanation.explain(answer).tree()
        assert tree["text"]
        assert json.loads(json.dumps(tree)) == tree
    made = summary.CauseSummary()
    for answer in answers:
        if isinstance(answer, DoesNotFit):
            made.add(answer.node.name, summary.causes_of(answer.case.problem))
    shown: dict = {}
    claims = [json_tree.text(one, "metadata", "name") for one in given_input["claims"]]
    made.write(shown, claims, bound)
    assert len(json.dumps(shown, separators=(",", ":")).encode()) <= bound


@given(worlds())
@settings(max_examples=draws.examples(200), deadline=None)
def test_summary_counts_what_the_explanation_says_of_every_device(world: dict) -> None:
    given_input = world["input"]
    asked = differences.allocator_of(given_input)
    for tree in given_input["nodes"]:
        answer = asked.allocate(nodes.node_of(tree), given_input["claims"])
        if not isinstance(answer, DoesNotFit):
            continue
        problem = answer.case.problem
        counted = {
            (one.claim, one.request, one.kind, one.about): one.devices
            for one in summary.causes_of(problem).counted
        }
        expected: dict = {}
        usage = Usage(problem)
        explained = (one for claim in explanation.explain(answer).claims for one in claim.requests)
        for row in (row for claim in problem.rows for request in claim for row in request):
            reason = next(explained)
            alike = {name: one.reason.cause for one in reason.alike for name in one.devices}
            for device, shown in enumerate(reason.devices):
                cause = causes.of(problem, usage, row, device)
                assert (shown.cause, alike[shown.device]) == (cause, cause)
                kind, about = ("suitable", "") if cause is None else (cause.kind.value, cause.about)
                key = (row.claim, row.request.result_name, kind, about)
                expected[key] = expected.get(key, 0) + 1
        assert counted == expected


@given(worlds(), st.randoms(use_true_random=False))
@settings(max_examples=draws.examples(100), deadline=None)
def test_inventory_depends_on_what_is_there_not_on_how_it_came(world: dict, random) -> None:
    given_input = world["input"]
    events = [("slice", tree) for tree in given_input["slices"]]
    events += [("rule", tree) for tree in given_input.get("deviceTaintRules", ())]
    plain, mixed = Inventory(), Inventory()
    for kind, tree in events:
        put(plain, kind, tree)
    shuffled = list(events)
    random.shuffle(shuffled)
    here = nodes.node_of(given_input["nodes"][0])
    for kind, tree in shuffled:
        put(mixed, kind, tree)
        mixed.node_view(here, Reading(partitionable=True))
        if random.random() < 0.3 and kind == "slice":
            mixed.remove_slice(tree["metadata"]["name"])
            put(mixed, kind, tree)
    last = {tree["metadata"]["name"] for tree in given_input["slices"]}
    if len(last) == len(given_input["slices"]):
        assert shape(mixed, here) == shape(plain, here)


def put(inventory: Inventory, kind: str, tree: dict) -> None:
    if kind == "slice":
        inventory.put_slice(tree)
    else:
        inventory.put_rule(tree)


def shape(inventory: Inventory, node: nodes.Node) -> list:
    view = inventory.node_view(node, Reading(partitionable=True))
    return [(pool.id, pool.state, pool.problem) for pool in view.pools] + [
        (device.id, device.taints) for device in view.devices
    ]


@given(st.data())
@settings(max_examples=draws.examples(250), deadline=None)
def test_spoilt_input_is_answered_or_refused_in_words(data: st.DataObject) -> None:
    scenario = data.draw(spoilt(data.draw(worlds())))
    how = scenarios.ScenarioSettings(
        compiler=CelCompiler(detailed_errors=True), variant=AllocatorVariant.EXPERIMENTAL
    )
    place = "none: it was answered"
    try:
        scenarios.run(scenario, how)
    except InputError as refusal:
        place = refusal.place
    assert place
