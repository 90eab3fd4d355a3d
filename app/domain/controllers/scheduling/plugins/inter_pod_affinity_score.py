"""The score InterPodAffinity: prefers domains near or far from other pods.

Each preferred term adds its weight to the domain of a pod that it selects, or subtracts it when the
term is one of anti-affinity. Terms of the incoming pod about running pods count, and terms of
running pods about the incoming one. The required affinity of running pods counts too, with the
weight 1. Pods that terminate count. Parity: controllers.md 4.5; the normalisation is upstream's.
"""

from collections.abc import Iterable, Sequence

from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec, Wish
from app.domain.controllers.scheduling.plugins import inter_pod_affinity
from app.domain.controllers.scheduling.plugins.inter_pod_affinity import Labels, NamespaceLabels

SCORE_MAX = 100

Weights = dict[str, dict[str, int]]
"""Topology key to its values to the weight of the domain."""


def scores(
    pod: PodSpec,
    nodes: NodeIndex,
    feasible: Sequence[NodeInfo],
    namespace_labels: NamespaceLabels,
) -> list[int]:
    """The normalised scores of the feasible nodes; empty when no term applies."""
    if not (pod.wishes or nodes.wishing):
        return []
    weights = _weigh(pod, nodes, namespace_labels)
    return normalised([_sum(weights, info.labels) for info in feasible]) if weights else []


def normalised(raw: Sequence[int]) -> list[int]:
    """Scales scores from 0 for the lowest to 100 for the highest; all 0 when they are equal."""
    least, most = min(raw), max(raw)
    if least == most:
        return [0] * len(raw)
    return [int(SCORE_MAX * ((score - least) / (most - least))) for score in raw]


def _weigh(pod: PodSpec, nodes: NodeIndex, namespace_labels: NamespaceLabels) -> Weights:
    weights: Weights = {}
    namespace = pod.facts.namespace
    for bound in nodes.wishing.values():
        info = nodes.get(bound.node)
        if info is not None:
            _add(weights, bound.wishes, namespace, pod.labels, info.labels, namespace_labels)
    if pod.wishes:
        for bound in nodes.bound_pods():
            info = nodes.get(bound.node)
            if info is not None:
                other = bound.place[0]
                _add(weights, pod.wishes, other, bound.labels, info.labels, namespace_labels)
    return weights


def _add(
    weights: Weights,
    wishes: Iterable[Wish],
    namespace: str,
    labels: Labels,
    node_labels: Labels,
    namespace_labels: NamespaceLabels,
) -> None:
    """Adds the weights of the wishes that select a pod with these labels to the node's domains."""
    for wish in wishes:
        key = wish.term.topology_key
        value = node_labels.get(key)
        if value is not None and inter_pod_affinity.selects(
            wish.term, namespace, labels, namespace_labels
        ):
            domains = weights.setdefault(key, {})
            domains[value] = domains.get(value, 0) + wish.weight


def _sum(weights: Weights, labels: Labels) -> int:
    return sum(
        domains.get(labels.get(key, ""), 0) for key, domains in weights.items() if key in labels
    )
