"""`why` of a waiting pod names, for each node and device, what the model names.

Worlds of drawn seeds come by day; those that showed a defect come each time.
"""

import copy
import functools
import itertools
import re
from collections import Counter
from types import SimpleNamespace

import pytest

from tests import draws
from tests.cluster import Cluster
from tests.truth.facts import results
from tests.truth.waiting import alternatives, comparing, extended, remedies, surroundings
from tests.truth.waiting.extended_worlds import ExtendedWorld
from tests.truth.waiting.judging import (
    asked,
    comes_true,
    help_differences,
    model_of,
    world_differences,
)
from tests.truth.waiting.model import wishes
from tests.truth.waiting.odd_worlds import OddWorld
from tests.truth.waiting.prioritized import PrioritizedWorld
from tests.truth.waiting.privileged import PrivilegedWorld
from tests.truth.waiting.worlds import SELECT_LARGE, SELECT_STRICTLY, SmallWorld
from tests.unit.service.test_explaining import asking, texts

WORLDS = 8
"""Worlds of one row."""

MET = {
    "running", "gated", "left", "unasked", "terminating", "waiting",
    "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit",
    "InterPodAffinity", "DynamicResources",
    "other-node", "selector", "selector-error", "allocated", "capacity", "capacity-missing",
    "capacity-policy", "counters", "taint", "constraint", "suitable",
}  # fmt: skip
"""States, plug-ins and causes of devices that the model can count."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
async def test_why_names_what_keeps_a_pod_waiting(first):
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_amounts_of_a_comparison_are_true_and_have_one_unit(first):
    """Where slices, policies and claims have other notations, and two claims have one device."""
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed, OddWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
async def test_answers_about_all_objects_around_a_pod_are_true(first):
    """Devices, pools, slices, classes, nodes, claims; slices for nodes that are not there."""
    for seed in range(first * 4, first * 4 + 4):
        assert await surroundings.world_differences(seed, OddWorld) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [37])
async def test_device_is_held_by_claims_with_their_shares(seed):
    """Each device of a world in which claims have shares, and some devices of other claims."""
    assert await surroundings.world_differences(seed, OddWorld) == []


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(7))
async def test_amount_that_is_altered_is_noticed(seed):
    """Each amount in the causes of devices, a little more and in another unit."""
    model = model_of(world := OddWorld(ALTERED_FROM + seed))
    answer, text = await asked(world)
    assert list(comparing.differences(model, answer, text)) == []
    places = [
        (number, place, of_claim, of_request)
        for number, node in enumerate(answer.get("nodes", ()))
        for of_claim, claim in enumerate(node.get("claims", ()))
        for of_request, request in enumerate(claim["requests"])
        for place, group in enumerate(request["devices"])
        if node["outcome"] != "allocated" and group["cause"] in ("capacity", "counters")
    ]
    for number, place, of_claim, of_request in places:
        node = answer["nodes"][number]
        old = node["claims"][of_claim]["requests"][of_request]["devices"][place]["text"]
        for wrong in wrong_amounts(old):
            other = copy.deepcopy(answer)
            claim = other["nodes"][number]["claims"][of_claim]
            claim["requests"][of_request]["devices"][place]["text"] = wrong
            assert list(comparing.differences(model, other, text)), (old, wrong)


ALTERED_FROM = 40
"""The first of the worlds of which amounts are altered."""


def wrong_amounts(text):
    """The text with one of its amounts altered: that many more units, or in thousands."""
    for one in re.finditer(r"(?:needs |, )(?:about )?(\d[\d.]*)(\w*)(?= of|,| is left)", text):
        yield f"{text[: one.start(1)]}{float(one[1]) + 1:g}{one[2]}{text[one.end() :]}"
        if one[1] != "0" and "is free" in text:
            milli = f"{float(one[1]) * 1000:g}"
            smaller = {"Gi": "Mi", "Mi": "Ki", "G": "M", "M": "k", "": "m"}.get(one[2], "x")
            yield f"{text[: one.start(1)]}{milli}{smaller}{text[one.end() :]}"


@draws.ONLY
async def test_the_odd_worlds_have_each_kind_of_amount():
    met: Counter = Counter()
    for seed in range(60):
        answer, _ = await asked(OddWorld(seed))
        for words in ODD:
            met[words] += bool(re.search(words, str(answer)))
    assert set(+met) == set(ODD)


ODD = (
    r"needs about", r"of 40G is free", r"Gi is free", r"rounded up by the request policy",
    r"nothing is requested", r"counter \S+ of set", r"is left", r"of capacity \S+ of",
    r"for node gone-\w, which does not exist", r"not allowed by|does not allow the amount",
)  # fmt: skip
"""What answers about odd worlds say."""


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_why_names_what_keeps_a_pod_waiting_that_asks_for_administrative_access(first):
    """Who only looks is kept off by no holder, and holds nothing; all else counts for it too."""
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed, PrivilegedWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_why_names_what_keeps_a_pod_waiting_that_requests_extended_resources(first):
    """Nodes or devices serve them, by what each node offers itself and which class counts."""
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed, ExtendedWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_why_names_what_keeps_a_pod_waiting_that_has_alternatives(first):
    """Each alternative of a list has its own causes, and a node fits when any choice does."""
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        assert await world_differences(seed, PrioritizedWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_pods_get_the_first_alternatives_that_can_be_had_together(first):
    """On the node they are on, and of nodes alike on one of the best; `why` names better nodes."""
    for seed in range(first * WORLDS, (first + 1) * WORLDS):
        world = PrioritizedWorld(seed)
        assert list(alternatives.differences(world)) == [], f"seed {seed}"
        assert await alternatives.told_differences(world) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [24, 41, 52, 88])
async def test_extended_resources_that_showed_a_defect_are_explained(seed):
    assert await world_differences(seed, ExtendedWorld) == []


@draws.ONLY
def test_the_worlds_with_extended_resources_have_each_case():
    met: Counter = Counter()
    for seed in range(150):
        model = model_of(ExtendedWorld(seed))
        met["held"] += any(extended.ANNOTATION in str(one) for one in model.facts.claims.values())
        for node in model.nodes if model.state == "waiting" else ():
            verdict = model.verdict(node)
            for resource in extended.resources(model.pod):
                of_node = bool(extended.offered(model.facts.state["nodes", "", node], resource))
                of_class = bool(extended.class_of(model.facts, resource))
                lacks = f"Insufficient {resource}" in verdict.text
                met[lacks, of_node, of_class] += 1
            if verdict.plugin == "DynamicResources" and len(wanted := model.wanted(node)):
                met["requests", len(wanted[-1]["spec"]["devices"]["requests"])] += 1
    assert {(True, True, True), (True, False, False), (False, True, True)} <= met.keys()
    assert {"held", ("requests", 1), ("requests", 2), ("requests", 3)} <= met.keys()
    assert (True, False, True) not in met


@draws.ONLY
def test_the_privileged_worlds_have_devices_in_use_that_can_be_looked_at():
    met: Counter = Counter()
    for seed in range(120):
        model = model_of(PrivilegedWorld(seed))
        for tree in model.facts.claims.values():
            met["looked at"] += any(one.get("adminAccess") for one in results(tree))
        for claim in model.unallocated if model.state == "waiting" else ():
            for wish in itertools.chain.from_iterable(wishes(claim)):
                met.update(seen(model, claim, wish) if wish.only_looks else ())
    assert {"looked at", "in use", "counters", "taint", "selector", "capacity"} <= met.keys()
    assert met["looked at"]
    assert "allocated" not in met


def seen(model, claim, wish):
    """What is against each device of each node, or that it is in use and free to look at."""
    for node in model.nodes:
        for device in model.devices(node):
            causes = model.causes(claim, wish, device, node)
            yield from causes or (["in use"] if model.in_use(device) else [])


@pytest.mark.parametrize(
    ("seed", "kind"),
    [(1019, SmallWorld), (1112, SmallWorld), (315, PrioritizedWorld), (446, PrioritizedWorld)],
)
async def test_page_that_is_cut_has_the_answer_of_each_node(seed, kind):
    assert await world_differences(seed, kind) == []


@pytest.mark.parametrize("seed", [33, 386])
async def test_nodes_with_an_earlier_alternative_are_named(seed):
    world = PrioritizedWorld(seed)
    better = [
        alternatives.earlier(model, node)
        for model, node, _ in alternatives.placings(world)
        if alternatives.is_known(model) and model.unallocated
    ]
    assert any(better)
    assert await alternatives.told_differences(world) == []


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(14))
async def test_what_is_said_to_help_helps_and_nothing_smaller_does(first):
    for seed in range(first * 4, first * 4 + 4):
        assert await help_differences(seed) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_what_is_said_to_help_with_extended_resources_helps(first):
    for seed in range(first * 4, first * 4 + 4):
        assert await help_differences(seed, ExtendedWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_what_is_said_to_help_with_alternatives_helps(first):
    for seed in range(first * 4, first * 4 + 4):
        assert await help_differences(seed, PrioritizedWorld) == [], f"seed {seed}"


@draws.BY_DAY
@pytest.mark.parametrize("first", draws.seeds(7))
async def test_what_is_said_to_help_with_administrative_access_helps(first):
    """Who only looks needs no release; what keeps it off is proposed and done."""
    for seed in range(first * 4, first * 4 + 4):
        assert await help_differences(seed, PrivilegedWorld) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [9, 17])
async def test_containers_request_less_and_nobody_edits_the_claim_for_them(seed):
    assert await help_differences(seed, ExtendedWorld) == []


@pytest.mark.parametrize(("seed", "kind"), [(910035, PrivilegedWorld), (910052, SmallWorld)])
async def test_node_on_which_changes_were_tried_is_counted_once(seed, kind):
    """A cordoned node was counted as closed and as one that refuses the pod when it is open."""
    assert await help_differences(seed, kind) == []


@pytest.mark.parametrize(("seed", "kind"), [(171, SmallWorld), (18, PrioritizedWorld)])
async def test_change_that_leaves_or_causes_an_error_on_another_node_does_not_help(seed, kind):
    """Without the rule in the way an alternative for all devices meets a constraint elsewhere."""
    assert await help_differences(seed, kind) == []


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        (50044, SmallWorld),
        (50150, SmallWorld),
        (50204, SmallWorld),
        (50268, SmallWorld),
        (107, ExtendedWorld),
    ],
)
async def test_changes_that_were_not_tried_are_proposed(seed, kind):
    """A smaller amount, another node of those that look the same, both a cordon and a taint."""
    assert await help_differences(seed, kind) == []


async def test_changes_after_which_a_selector_fails_do_not_help():
    """The search of world 47 meets a device without the attribute before one that would do."""
    world = ExtendedWorld(47)
    model = model_of(world)
    pairs = [changes for _, *changes in remedies.pairs_help(model, tries_max=300)]
    assert pairs
    state = model.facts.state
    assert all(remedies.has_errors(functools.reduce(remedies.changed, one, state)) for one in pairs)
    assert await help_differences(47, ExtendedWorld) == []


def failing_beside(nodes):
    """A node would take pod `p`, and on so many others its selector fails."""
    cluster = Cluster()
    cluster.node("n0")
    cluster.device_class()
    cluster.slice("n0", [{"name": "d", "attributes": {"model": {"string": "large"}}}])
    for number in range(nodes):
        cluster.node(f"bad-{number}")
        cluster.slice(f"bad-{number}", 1)
    cluster.claim("want", selectors=[{"cel": {"expression": SELECT_STRICTLY}}])
    cluster.pod("p", claim="want")
    return SimpleNamespace(cluster=cluster.settle())


@pytest.mark.parametrize(("nodes", "kinds"), [(1, {"drop", "set"}), (2, {"drop"})])
async def test_changes_beside_an_error_come_true(nodes, kinds):
    """An error ends the attempt on the node that would do (C16); an attribute helps one node."""
    world = failing_beside(nodes)
    async with asking(world.cluster) as ask:
        helps = (await ask("pod", "p", help=True)).to_json()["helps"]
    assert {one["changes"][0].split()[0] for one in helps} == kinds
    state = model_of(world).facts.state
    for one in helps:
        after = functools.reduce(remedies.changed, one["changes"], state)
        assert comes_true(failing_beside(nodes), state, after), one


@pytest.mark.parametrize("seed", [3153])
async def test_claim_is_released_for_requests_that_only_fail_together(seed):
    assert await help_differences(seed) == []


async def test_limit_is_told_where_three_changes_are_needed():
    """Dropping a selector, tolerating a taint and releasing a claim help only together."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=[{"name": "d", "attributes": {"model": {"string": "small"}}}])
    cluster.claim("held")
    cluster.pod("holder", claim="held")
    cluster.settle()
    cluster.rule(effect="NoSchedule")
    cluster.claim("want", selectors=[{"cel": {"expression": SELECT_LARGE}}])
    cluster.pod("p", claim="want")
    cluster.settle()
    async with asking(cluster) as ask:
        answer = await ask("pod", "p", help=True)
    assert answer.to_json()["helps"] == []
    assert any(
        text.startswith("nothing helps of what was tried: up to 2 changes together")
        for text in texts(answer.reason)
    )


@draws.ONLY
def test_the_worlds_have_each_cause():
    met: Counter = Counter()
    for seed in range(150):
        model = model_of(SmallWorld(seed))
        met[model.state] += 1
        if model.state != "waiting":
            continue
        for node in model.nodes:
            verdict = model.verdict(node)
            met[verdict.plugin] += 1
            if verdict.plugin == "DynamicResources":
                for claim in model.unallocated:
                    for wish in (wish for either in wishes(claim) for wish in either):
                        for device in model.devices(node):
                            causes = model.causes(claim, wish, device, node)
                            met[next(iter(causes), "suitable")] += 1
    assert set(met) >= MET


def altered(answer):
    """The answer with one statement changed, in each place and way."""
    for number, node in enumerate(answer["nodes"]):
        for text in ("", "node(s) were unschedulable", "cannot allocate all claims"):
            if node["text"] != text:
                yield change(answer, number, lambda one, text=text: one.update(text=text))
        for request in (r for claim in node.get("claims", ()) for r in claim["requests"]):
            numbers = {key: request[key] + 1 for key in ("suitable", "total", "needs")}
            for key, value in numbers.items():
                yield change(answer, number, lambda one, k=key, v=value: first(one).update({k: v}))
            break
        for group in first(node)["devices"] if node.get("claims") else ():
            place = first(node)["devices"].index(group)
            for key, value in {"cause": "note", "count": group["count"] + 1}.items():
                yield change(
                    answer,
                    number,
                    lambda one, p=place, k=key, v=value: first(one)["devices"][p].update({k: v}),
                )
    for head in ("3 of 4 nodes would take it", "it would fit on node n0"):
        yield {**answer, "text": head}
    for state in ("nodes", "reasons"):
        empty = {"text": "", "children": []} if state == "reasons" else []
        yield {**answer, state: empty}


def first(node):
    return node["claims"][0]["requests"][0]


def change(answer, number, act):
    other = copy.deepcopy(answer)
    act(other["nodes"][number])
    return other


@pytest.mark.parametrize("seed", [1, 15, 88])
async def test_sentence_about_extended_resources_that_is_altered_is_noticed(seed):
    """Each number one more, each name another one, each sentence left out."""
    model = model_of(world := ExtendedWorld(seed))
    answer, text = await asked(world)
    said = r"\S+/\S+ stands for|no DeviceClass stands for|of a device plugin|; this pod requests"
    lines = answer["reasons"]["children"]
    places = [place for place, one in enumerate(lines) if re.search(said, one["text"])]
    assert places
    for place in places:
        old = lines[place]["text"]
        others = {re.sub(r"(\d+)( |$)", lambda one: f"{int(one[1]) + 1}{one[2]}", old)}
        others |= {re.sub(r"class (\S+)", r"class \1x", old), re.sub(r"/(\w+)", r"/\1x", old), "x"}
        for other in others - {old}:
            lines[place] = {**lines[place], "text": other}
            assert list(comparing.differences(model, answer, text)), (old, other)
        lines[place] = {**lines[place], "text": old}


@draws.BY_DAY
@pytest.mark.parametrize("seed", [1019, 2366])
async def test_answer_that_is_altered_is_noticed(seed):
    model = model_of(world := SmallWorld(seed))
    answer, text = await asked(world)
    assert list(comparing.differences(model, answer, text)) == []
    alterations = list(altered(answer))
    assert len(alterations) > 20
    for other in alterations:
        assert list(comparing.differences(model, other, text)), other
