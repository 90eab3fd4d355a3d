"""Compares what `why` says around a waiting pod with the raw objects.

These are lines about lost nodes, shares of capacity and devices in two hands, and the answers about
every device, pool, slice, class, node and claim of the world.
"""

import re
from collections import Counter
from collections.abc import Iterator

from tests.truth import answers
from tests.truth.facts import Facts, amount, device_of, results
from tests.truth.states.comparing import sentences
from tests.truth.waiting.amounts import is_amount, units
from tests.truth.waiting.judging import model_of
from tests.truth.waiting.model import Model, wishes
from tests.truth.waiting.worlds import SmallWorld
from tests.unit.service.test_explaining import Ask, asking


async def world_differences(seed: int, made: type[SmallWorld]) -> list[str]:
    """The differences in the lines around the pod of one world, and about all other objects."""
    world = made(seed)
    model = model_of(world)
    async with asking(world.cluster) as ask:
        wrong = []
        if model.state == "waiting":
            answer = (await ask("pod", "p")).to_json()
            wrong = list(of_pod(model, answer))
        for key in _keys(model.facts):
            wrong += await answers.why(model.facts, _asked(ask), key)
        for id in model.facts.devices:
            answer = (await ask("device", "/".join(id))).to_json()
            wrong += [f"device {id}: {one}" for one in of_device(model.facts, id, answer)]
        return wrong


def _asked(ask: Ask) -> answers.Ask:
    async def one(_question: str, *, kind: str, namespace: str, name: str) -> dict:
        return (await ask(kind, name)).to_json()

    return one


def _keys(facts: Facts) -> Iterator[tuple[str, str, str]]:
    for key in facts.state:
        if key[0] in answers.KINDS and key != ("pods", "default", "p"):
            yield key
    yield from (("device", "", "/".join(id)) for id in facts.devices)
    yield from (("pool", "", "/".join(place)) for place in facts.pools)


def of_pod(model: Model, answer: dict) -> Iterator[str]:
    """The lines around a waiting pod that are not so, and those that are missing."""
    lines = list(sentences(answer["reasons"]))
    yield from _lost(model, answer, lines)
    for line in lines:
        yield from _shares(model.facts, line)


def _lost(model: Model, answer: dict, lines: list[str]) -> Iterator[str]:
    """Slices and devices for nodes that are not there are named so, and no others."""
    facts = model.facts
    nodes = {name for name, _ in facts.all("nodes")}
    lost, free = {}, {}
    for name, tree in facts.all("resourceslices"):
        node = tree["spec"].get("nodeName")
        devices = [(*_pool_of(tree), one["name"]) for one in tree["spec"].get("devices") or ()]
        if node and node not in nodes and devices:
            lost[name] = node
            if any(id not in facts.holders for id in devices):
                free[name] = node
    for line in lines:
        said = re.match(r"slices? (\S+(?:, \S+)*) (?:is|are) for node (\S+), which does not", line)
        for name in said[1].split(", ") if said else ():
            if lost.get(name) != said[2]:
                yield f"{line!r}, counted {lost}"
        said = re.match(r"slice (\S+) has free devices for node (\S+), which is not there", line)
        if said and free.get(said[1]) != said[2]:
            yield f"{line!r}, counted {free}"
        said = re.match(r"slice (\S+) has free devices? (.*) for node (\S+), which", line)
        if said and "free devices for" not in line:
            tree = facts.state["resourceslices", "", said[1]]
            counted = {
                one["name"]
                for one in tree["spec"]["devices"]
                if one.get("nodeName") == said[3]
                and said[3] not in nodes
                and (*_pool_of(tree), one["name"]) not in facts.holders
            }
            if set(said[2].split(", ")) != counted:
                yield f"{line!r}, counted {counted}"
    said = [one for one in lines if re.search(r"which (?:does not exist|is not there)$", one)]
    refusing = [
        one["node"]
        for one in answer["nodes"]
        if "claims" in one and one["outcome"] == "unsatisfiable"
    ]
    wanting = [
        node
        for node in refusing
        for claim in model.wanted(node)
        if any(wishes(claim)) and not model.devices(node)
    ]
    if wanting and not said and lost:
        yield f"nothing of {lost} for nodes without devices {wanting}"


def _pool_of(tree: dict) -> tuple[str, str]:
    return tree["spec"]["driver"], tree["spec"]["pool"]["name"]


def _shares(facts: Facts, line: str) -> Iterator[str]:
    """The claims with shares of a capacity, and how much each has."""
    said = re.match(r"of capacity (\S+) of (\S+), (.*)", line)
    if said is None:
        return
    id = tuple(said[2].split("/"))
    counted: Counter = Counter()
    for name, claim in facts.claims.items():
        for one in results(claim):
            if device_of(one) == id:
                for each, value in (one.get("consumedCapacity") or {}).items():
                    counted[name] += amount(value) if each == said[1] else 0
    shown = dict(one.split(" has ") for one in said[3].partition(" and ")[0].split(", "))
    more = re.search(r" and (\d+) more", said[3])
    if len(shown) + int(more[1] if more else 0) != len(+counted):
        yield f"{line!r}, counted {dict(counted)}"
    for name, text in shown.items():
        if not is_amount(text, counted[name]):
            yield f"{line!r}, counted {dict(counted)}"
    if len(units([*shown.values()])) > 1:
        yield f"{line!r} has several units"


def of_device(facts: Facts, id: tuple[str, str, str], answer: dict) -> Iterator[str]:
    """Who holds a device by now, with the words for one that several claims hold."""
    counted = facts.holders.get(id, set())
    kinds = {
        name: "share" if any(one.get("shareID") for one in given) else "whole"
        for name in counted
        for given in [[one for one in results(facts.claims[name]) if device_of(one) == id]]
    }
    now = {one["claim"]: one["kind"] for one in answer["holders"] if "to" not in one}
    if {name: kind for name, kind in now.items() if kind != "admin"} != kinds:
        yield f"said {now}, counted {kinds}"
