"""Asks `fit` about one more pod in a full cluster, and creates copies until one finds no node.

What the first attempt of a copy says counts, before anybody is evicted for it.
"""

import copy
from collections import Counter
from collections.abc import Iterator

from tests.truth.fits import judging
from tests.truth.preemption.worlds import PreemptionWorld

REST_SECONDS = 400
"""Longer than a pod waits for its next attempt without a cause (300 s)."""


class FullWorld(PreemptionWorld):
    """A full cluster in which nothing is left to do, and a pod of a drawn priority."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.cluster.wait(REST_SECONDS)
        self.documents = [self._tree("copy", ("high", "high", "middle", ""))]
        # Copies that start would count for budgets, and let pods in that wait for such neighbours.
        self.documents[0]["metadata"]["labels"] = {}


def fit_differences(seed: int) -> list[str]:
    """The differences between `fit` and what happened in one world."""
    world = FullWorld(seed)
    answer = judging.asked(world)
    nodes, text, victims = _lived(world)
    wrong = list(judging.differences(answer, nodes, text))
    said = list(answer.limit.victims) if answer.limit else []
    if said != victims:
        wrong.append(f"fit says that {said} go, lived {victims}")
    return wrong


def _lived(world: FullWorld) -> tuple[Counter, str, list[str]]:
    """The nodes that copies get, and the refusal of the first that gets none, with the victims."""
    nodes: Counter = Counter()
    for number in range(judging.COPIES_MAX):
        tree = copy.deepcopy(world.documents[0])
        tree["metadata"]["name"] = name = f"copy-{number}"
        first = len(world.cluster.line.events)
        world.cluster.apply(tree)
        world.cluster.settle()
        body = next(_attempts(world, first, name))
        summary = body["summary"]
        if body["outcome"] != "Scheduled":
            victims = (summary.get("preemption") or {}).get("victims") or []
            return nodes, summary["message"], victims
        nodes[summary["node"]] += 1
    return nodes, "", []


def _attempts(world: FullWorld, first: int, name: str) -> Iterator[dict]:
    for event in world.cluster.line.events[first:]:
        body = event.object
        is_decided = event.type == "DecisionRecorded" and body["controller"] == "scheduling"
        if is_decided and body["name"] == name:
            yield body
