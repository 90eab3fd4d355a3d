"""Compares what `why` says of victims, and of pods that wait for them, with the model."""

import re
from collections.abc import Iterator

from tests.truth.preemption.judging import Tried, attempts_of, fresh, nominated
from tests.truth.preemption.model import is_evicted, priority
from tests.truth.preemption.worlds import PreemptionWorld
from tests.unit.service.test_explaining import asking, texts

_FOR = re.compile(r"for pod (\S+) of priority (-?\d+); its own is (-?\d+)$")
_ON = re.compile(r"on node (\S+): (?:with (.*?); )?(no other node|the cheapest of (\d+) nodes)")
_BUDGETS = re.compile(r"(\d+) against (?:a disruption budget|disruption budgets)$")
_WAITS = re.compile(r"waits until (?:an|(\d+)) evicted pods? ends? on node (\S+), which is kept")
_ENDS = re.compile(r"(\S+) ends by (\S+)$")


async def told_differences(world: PreemptionWorld) -> list[str]:
    """One line for each victim or waiting pod of which `why` says something else."""
    wrong: list[str] = []
    chosen = [(tried, one) for tried in attempts_of(world) if (one := tried.chosen) is not None]
    async with asking(world.cluster) as ask:
        for tried, candidate in chosen:
            for name in fresh(tried, candidate) if tried.counted.is_known else ():
                lines = texts((await ask("pod", name.partition("/")[2])).reason)
                wrong += [f"victim {name}: {one}" for one in of_victim(tried, name, lines)]
        for name in world.cluster.names("pods"):
            pod = world.cluster.must("pods", name)
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]:
                lines = texts((await ask("pod", name)).reason)
                wrong += [f"pod {name}: {one}" for one in _of_waiting(world, pod, lines)]
    return wrong


def of_victim(tried: Tried, name: str, lines: list[str]) -> Iterator[str]:
    """What is wrong with the lines about a victim."""
    chosen = tried.chosen
    assert chosen is not None, "it has victims"
    trees = (tried.before["pods", *one.split("/")] for one in (tried.pod, name))
    counted = (tried.pod, *(str(priority(tree)) for tree in trees))
    said = [parts.groups() for line in lines if (parts := _FOR.match(line))]
    if said != [counted]:
        yield f"said {said}, counted {counted}"
    places = [parts for line in lines if (parts := _ON.match(line))]
    if len(places) != 1:
        yield f"{len(places)} nodes in {lines}"
        return
    (place,) = places
    others = set(chosen.victims) - {name}
    named = set(re.findall(r"\S+/[\w-]+", place[2] or ""))
    shown = (place[1], named, int(place[4] or 1))
    whole = (chosen.node, others, len(tried.counted.candidates))
    if shown != whole:
        yield f"said {shown}, counted {whole}"
    budgets = _BUDGETS.search(place.string)
    violations = int(budgets[1]) if budgets else 0
    if violations != chosen.violations:
        yield f"{violations} violations, counted {chosen.violations}"


def _of_waiting(world: PreemptionWorld, pod: dict, lines: list[str]) -> Iterator[str]:
    node = nominated(pod)
    ending = {
        f"default/{name}": str(tree["metadata"]["deletionTimestamp"])
        for name in world.cluster.names("pods")
        for tree in [world.cluster.must("pods", name)]
        if node and tree["spec"].get("nodeName") == node and is_evicted(tree)
    }
    said = dict(parts.groups() for line in lines if (parts := _ENDS.match(line)))
    if said != ending:
        yield f"waits for {said}, counted {ending}"
    heads = [(parts[2], int(parts[1] or 1)) for line in lines if (parts := _WAITS.match(line))]
    if heads != ([(node, len(ending))] if ending else []):
        yield f"said {heads}, counted {len(ending)} on {node!r}"
    is_kept = any(line.startswith(f"node {node} is kept for it") for line in lines)
    if is_kept != bool(node and not ending):
        yield f"node {node!r} with {len(ending)} that end: kept is {is_kept}"
