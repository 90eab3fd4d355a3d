"""Agreements that rest on pods that were deleted: no pod had devices of two nodes at once.

Each such agreement alone may be so, and several cannot always be so together. Example: two
allocations on different nodes passed over a free device. One pod was deleted meanwhile, and may
have been given the device on one of the nodes. On the other one, nothing is known that had it.

That is no proof of a mistake: a scheduler that begins anew, or whose request fails, gives a pod
another node, and a recording need not show it. So the later allocation could not be compared.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

REASON = "a deleted pod that explains it explains one on another node, too"
"""The reason why an allocation is not comparable that no other pod explains."""

TRIED_MAX = 32
"""How many sets of pods are left out, one after the other, to learn which of them are needed."""

STEPS_MAX = 10_000
"""How many choices of a node for a pod are tried before allocations count as explained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """An allocation that agrees if all pods of one of the `alternatives` had devices of a node.

    Pods are known by their uids.
    """

    author: str
    node: str
    alternatives: tuple[frozenset[str], ...]


def alternatives(
    attempt: Callable[[frozenset[str]], tuple[bool, frozenset[str]]],
) -> tuple[frozenset[str], ...]:
    """The sets of pods of which one is needed; none if no pod is, or if there are many.

    An attempt without some pods says whether there is agreement, and which pods it assumed.
    """
    needed: list[frozenset[str]] = []
    waiting, tried = [frozenset[str]()], set[frozenset[str]]()
    while waiting:
        without = waiting.pop()
        if without in tried:
            continue
        if len(tried) >= TRIED_MAX:
            return ()
        tried.add(without)
        agrees, assumed = attempt(without)
        if agrees and not assumed:
            return ()
        if agrees and assumed not in needed:
            needed.append(assumed)
        waiting += [without | {pod} for pod in sorted(assumed)]
    return tuple(needed)


def unexcused(excuses: Sequence[Excuse]) -> list[Excuse]:
    """The excuses, in order, for which no node of each pod is left beside the ones before them."""
    kept: list[Excuse] = []
    refused = []
    nodes: dict[str, str] = {}
    for excuse in excuses:
        if (more := next(_ways(excuse, nodes), None)) is None:
            related = [*_related(excuse, kept), excuse]
            apart = {pod for each in related for some in each.alternatives for pod in some}
            others = {pod: node for pod, node in nodes.items() if pod not in apart}
            more = _arranged(related, others)
            if more is None:
                refused.append(excuse)
                continue
        nodes = more
        kept.append(excuse)
    return refused


def _ways(excuse: Excuse, nodes: dict[str, str]) -> Iterator[dict[str, str]]:
    """The nodes of pods with those that an excuse needs, for each alternative that is left."""
    for pods in excuse.alternatives:
        if all(nodes.get(pod, excuse.node) == excuse.node for pod in pods):
            yield {**nodes, **dict.fromkeys(pods, excuse.node)}


def _related(excuse: Excuse, others: Sequence[Excuse]) -> list[Excuse]:
    """The excuses that share pods with one, or with one that does."""
    pods = set().union(*excuse.alternatives)
    related: list[Excuse] = []
    left = list(others)
    while joining := [each for each in left if not pods.isdisjoint(_pods_of(each))]:
        related += joining
        pods.update(*(_pods_of(each) for each in joining))
        left = [each for each in left if each not in joining]
    return related


def _pods_of(excuse: Excuse) -> set[str]:
    return set().union(*excuse.alternatives)


def _arranged(excuses: Sequence[Excuse], nodes: dict[str, str]) -> dict[str, str] | None:
    """Nodes of the pods that suit all excuses; None if there are none."""
    choices = [_ways(excuses[0], nodes)]
    last = nodes
    for _ in range(STEPS_MAX):
        if not choices:
            return None
        way = next(choices[-1], None)
        if way is None:
            choices.pop()
        elif len(choices) == len(excuses):
            return way
        else:
            last = way
            choices.append(_ways(excuses[len(choices)], way))
    return last
