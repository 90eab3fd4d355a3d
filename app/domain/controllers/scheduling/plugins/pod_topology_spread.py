"""The plug-in PodTopologySpread: spreads pods of one kind over topology domains.

Hard constraints (`DoNotSchedule`) reject nodes, soft ones score them. A pod without constraints of
its own gets two soft ones when a service, replica set or stateful set selects it: hostname with a
skew of 3, zone with 5. Parity: the plug-in's counting, its logarithmic weights and its rounding;
controllers.md 4.2 for the place in the order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.domain.controllers.scheduling.framework.filters import (
    HARD_EFFECTS,
    NodeRejection,
    is_tolerated,
)
from app.domain.controllers.scheduling.framework.nodes import BoundPod, NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, json_tree, selectors, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import LabelSelector, Requirement, SelectorError

NAME = "PodTopologySpread"


SKEWED = NodeRejection(
    plugin=NAME,
    reasons=("node(s) didn't match pod topology spread constraints",),
    resolvable=True,
)
UNLABELLED = NodeRejection(
    plugin=NAME,
    reasons=("node(s) didn't match pod topology spread constraints (missing required label)",),
)

_OWNERS = {
    "ReplicaSet": api_resources.REPLICA_SETS,
    "StatefulSet": api_resources.STATEFUL_SETS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySpreadConstraint:
    """One spread constraint. Without a selector it counts no pod, not even the incoming one.

    `honours_affinity` leaves out nodes that the pod's node affinity excludes, `honours_taints`
    those with a taint that the pod does not tolerate.
    """

    key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector | None
    honours_affinity: bool = True
    honours_taints: bool = False

    def selects(self, labels: Mapping[str, str]) -> bool:
        """True when the constraint selects a pod with these labels."""
        return self.selector is not None and self.selector.matches(labels)


@dataclass(slots=True, kw_only=True)
class _Counts:
    """The number of matching pods by domain, and the smallest number of all eligible domains."""

    by_domain: dict[str, int] = field(default_factory=dict)
    smallest: int = 0

    def settle(self, constraint: TopologySpreadConstraint) -> None:
        """Computes the smallest count; it stays 0 with fewer domains than `min_domains`."""
        if len(self.by_domain) >= constraint.min_domains:
            self.smallest = min(self.by_domain.values(), default=0)


@dataclass(slots=True, kw_only=True)
class Spread:
    """The spread constraints of one pod, and the counts for the hard ones.

    Without `counts_empty`, constraints with an empty selector count no pod (r6).
    """

    pod: PodSpec
    nodes: NodeIndex
    hard: tuple[TopologySpreadConstraint, ...]
    soft: tuple[TopologySpreadConstraint, ...]
    is_default: bool
    counts_empty: bool = False
    counts: tuple[_Counts, ...] = ()

    def check_node(self, info: NodeInfo) -> NodeRejection | None:
        """Rejects a node that lacks a topology label or would exceed a hard constraint's skew."""
        failing = self.failing(info)
        if failing is None:
            return None
        return SKEWED if failing[0].key in info.labels else UNLABELLED

    def failing(self, info: NodeInfo) -> tuple[TopologySpreadConstraint, Mapping[str, int]] | None:
        """The first hard constraint against a node, with the matching pods of each domain."""
        for constraint, counts in zip(self.hard, self.counts, strict=True):
            domain = info.labels.get(constraint.key)
            if domain is None:
                return constraint, counts.by_domain
            itself = constraint.selects(self.pod.labels)
            skew = counts.by_domain.get(domain, 0) + itself - counts.smallest
            if skew > constraint.max_skew:
                return constraint, counts.by_domain
        return None

    def scores(self, feasible: Sequence[NodeInfo]) -> list[int]:
        """The normalised scores of the feasible nodes; empty when there is nothing to score."""
        if not self.soft:
            return []
        judged = [info for info in feasible if self.is_default or _has_keys(info, self.soft)]
        raw = self._raw_scores(judged)
        highest = max(raw.values(), default=0)
        lowest = min(raw.values(), default=0)
        scaled: list[int] = []
        for info in feasible:
            if info.name not in raw:
                scaled.append(0)
            elif highest == 0:
                scaled.append(100)
            else:
                scaled.append(100 * (highest + lowest - raw[info.name]) // highest)
        return scaled

    def _raw_scores(self, judged: Sequence[NodeInfo]) -> dict[str, int]:
        totals = dict.fromkeys((info.name for info in judged), 0.0)
        for constraint in self.soft:
            if constraint.key == well_known.HOSTNAME:
                weight = math.log(len(judged) + 2)
                counts = {info.name: self._count(info, constraint) for info in judged}
            else:
                domains = {info.labels.get(constraint.key, ""): 0 for info in judged}
                weight = math.log(len(domains) + 2)
                for info in self._eligible(constraint):
                    domain = info.labels.get(constraint.key, "")
                    if domain in domains:
                        domains[domain] += self._count(info, constraint)
                counts = {
                    info.name: domains[info.labels.get(constraint.key, "")] for info in judged
                }
            for info in judged:
                if constraint.key in info.labels:
                    totals[info.name] += counts[info.name] * weight + (constraint.max_skew - 1)
        # Parity: controllers.md 4.5; rounds half away from zero, as Go does; no total is negative.
        return {name: math.floor(total + 0.5) for name, total in totals.items()}

    def _eligible(self, constraint: TopologySpreadConstraint) -> Iterable[NodeInfo]:
        needs_keys = not self.is_default
        constraints = self.soft if constraint in self.soft else self.hard
        for info in self.nodes.order():
            if needs_keys and not _has_keys(info, constraints):
                continue
            if self._includes(info, constraint):
                yield info

    def _count(self, info: NodeInfo, constraint: TopologySpreadConstraint) -> int:
        return self._matching(info.pods.values(), constraint)

    def _matching(
        self, bound_pods: Iterable[BoundPod], constraint: TopologySpreadConstraint
    ) -> int:
        selector, namespace = constraint.selector, self.pod.facts.namespace
        if selector is None or not (selector.requirements or self.counts_empty):
            return 0
        return sum(
            bound.place[0] == namespace and not bound.is_deleting and selector.matches(bound.labels)
            for bound in bound_pods
        )

    def count_hard(self) -> None:
        """Counts matching pods by domain for each hard constraint."""
        all_counts: list[_Counts] = []
        for constraint in self.hard:
            counts = _Counts()
            for info in self._eligible(constraint):
                domain = info.labels[constraint.key]
                before = counts.by_domain.get(domain, 0)
                counts.by_domain[domain] = before + self._count(info, constraint)
            counts.settle(constraint)
            all_counts.append(counts)
        self.counts = tuple(all_counts)

    def changed(
        self, info: NodeInfo, gone: Iterable[BoundPod], come: Iterable[BoundPod]
    ) -> "Spread":
        """A copy without the pods `gone` of a node and with the pods `come`, for `check_node`."""
        gone, come = tuple(gone), tuple(come)
        all_counts: list[_Counts] = []
        for constraint, counts in zip(self.hard, self.counts, strict=True):
            by = self._matching(come, constraint) - self._matching(gone, constraint)
            if by and self._is_counted(info, constraint):
                domain = info.labels[constraint.key]
                by_domain = {**counts.by_domain, domain: counts.by_domain[domain] + by}
                counts = _Counts(by_domain=by_domain)
                counts.settle(constraint)
            all_counts.append(counts)
        return replace(self, counts=tuple(all_counts))

    def _is_counted(self, info: NodeInfo, constraint: TopologySpreadConstraint) -> bool:
        """True when the pods of the node count for a hard constraint."""
        return _has_keys(info, self.hard) and self._includes(info, constraint)

    def _includes(self, info: NodeInfo, constraint: TopologySpreadConstraint) -> bool:
        """True when the inclusion policies keep the node; by default only affinity excludes it."""
        if constraint.honours_affinity and not _affinity_allows(self.pod, info):
            return False
        return not constraint.honours_taints or all(
            taint.get("effect") not in HARD_EFFECTS or is_tolerated(self.pod, taint)
            for taint in info.taints
        )


def survey(
    objects: ObjectsReader,
    pod: PodSpec,
    nodes: NodeIndex,
    tree: JsonView,
    *,
    counts_empty: bool = False,
) -> Spread | None:
    """The spread constraints of a pod; None when there are none."""
    listed = core.spread_constraints(tree)
    if listed:
        hard = tuple(_read(item, pod) for item in listed if _is_hard(item))
        soft = tuple(_read(item, pod) for item in listed if not _is_hard(item))
        made = Spread(
            pod=pod,
            nodes=nodes,
            hard=hard,
            soft=soft,
            is_default=False,
            counts_empty=counts_empty,
        )
        made.count_hard()
        return made
    selector = _default_selector(objects, pod, tree)
    if selector is None:
        return None
    defaults = tuple(
        TopologySpreadConstraint(key=key, max_skew=skew, min_domains=1, selector=selector)
        for key, skew in ((well_known.HOSTNAME, 3), (well_known.ZONE, 5))
    )
    return Spread(pod=pod, nodes=nodes, hard=(), soft=defaults, is_default=True)


def _is_hard(item: JsonView) -> bool:
    return json_tree.text(item, "whenUnsatisfiable") in ("", "DoNotSchedule")


def _read(item: JsonObject, pod: PodSpec) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        key=core.topology_key(item),
        max_skew=json_tree.integer(item, "maxSkew") or 1,
        min_domains=json_tree.integer(item, "minDomains") or 1,
        selector=_selector(item, pod),
        honours_affinity=item.get("nodeAffinityPolicy", "Honor") == "Honor",
        honours_taints=item.get("nodeTaintsPolicy") == "Honor",
    )


def _selector(item: JsonObject, pod: PodSpec) -> LabelSelector | None:
    labels = item.get("labelSelector")
    if not isinstance(labels, dict):
        return None
    try:
        selector = selectors.label_selector_of(labels)
    except SelectorError:
        return LabelSelector()
    # Pods of older logs do not have these keys in their selector.
    own = tuple(
        Requirement(key=key, operator="in", values=frozenset((pod.labels[key],)))
        for key in json_tree.texts(item, "matchLabelKeys")
        if key in pod.labels
    )
    return LabelSelector(requirements=(*selector.requirements, *own))


def _default_selector(objects: ObjectsReader, pod: PodSpec, tree: JsonView) -> LabelSelector | None:
    """The selector of the default constraints: that of the pod's services and of its owner.

    None when no service selects the pod and its owner has no selector.
    """
    requirements: list[Requirement] = []
    namespace = pod.facts.namespace
    merged: dict[str, str] = {}
    for key in objects.keys("", "services", namespace):
        service = objects.get(key)
        wanted = {} if service is None else json_tree.labels(service, "spec", "selector")
        if wanted and all(pod.labels.get(name) == value for name, value in wanted.items()):
            merged |= wanted
    for name, value in sorted(merged.items()):
        requirements.append(Requirement(key=name, operator="in", values=frozenset((value,))))
    owner = meta.controller(tree)
    place = None if owner is None else _OWNERS.get(owner.kind)
    if owner is not None and place is not None:
        owner_tree = objects.get(ObjectKey(*place, namespace, owner.name))
        if owner_tree is not None:
            selector = selectors.label_selector_of(core.selector(owner_tree))
            requirements.extend(selector.requirements)
    return LabelSelector(requirements=tuple(requirements)) if requirements else None


def _has_keys(info: NodeInfo, constraints: Sequence[TopologySpreadConstraint]) -> bool:
    return all(constraint.key in info.labels for constraint in constraints)


def _affinity_allows(pod: PodSpec, info: NodeInfo) -> bool:
    if any(info.labels.get(key) != value for key, value in pod.node_selector):
        return False
    return pod.node_affinity is None or pod.node_affinity.matches(info.name, info.labels)
