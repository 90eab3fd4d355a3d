"""Pods that must or must not share a topology domain (InterPodAffinity), required terms only.

Computed once per attempt as sets of (topology key, value), then asked per node. Parity:
controllers.md 4.2 for order and texts. Preferred terms are left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from app.domain.controllers.scheduling.filters import Refusal
from app.domain.controllers.scheduling.nodes import BoundPod, NodeIndex, NodeInfo
from app.domain.controllers.scheduling.pod_spec import AffinityTerm, PodSpec

NAME = "InterPodAffinity"

NO_AFFINITY = Refusal(plugin=NAME, reasons=("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY = Refusal(
    plugin=NAME, reasons=("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
EXISTING = Refusal(
    plugin=NAME,
    reasons=("node(s) didn't satisfy existing pods anti-affinity rules",),
    resolvable=True,
)

Labels = Mapping[str, str]
NamespaceLabels = Callable[[str], Labels]
Domain = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Domains that are wanted, avoided, and closed by pods that run there."""

    wanted: tuple[AffinityTerm, ...]
    wanted_domains: frozenset[Domain]
    may_be_first: bool
    avoided: tuple[AffinityTerm, ...]
    avoided_domains: frozenset[Domain]
    closed_domains: frozenset[Domain]

    def check_node(self, info: NodeInfo) -> Refusal | None:
        """The first reason against the node."""
        labels = info.labels
        if self.wanted and not self._is_wanted(labels):
            return NO_AFFINITY
        if any(_domain(term.topology_key, labels) in self.avoided_domains for term in self.avoided):
            return ANTI_AFFINITY
        if any(labels.get(key) == value for key, value in self.closed_domains):
            return EXISTING
        return None

    def _is_wanted(self, labels: Labels) -> bool:
        domains = [_domain(term.topology_key, labels) for term in self.wanted]
        if any(domain is None for domain in domains):
            return False
        return self.may_be_first or all(domain in self.wanted_domains for domain in domains)


def survey(
    pod: PodSpec, nodes: NodeIndex, namespace_labels: NamespaceLabels
) -> Neighbourhood | None:
    """What neighbours mean for this pod; None when nobody, neither it nor others, asks anything."""
    if not (pod.affinity or pod.anti_affinity or nodes.keeping_away):
        return None
    namespace = pod.facts.namespace
    closed: set[Domain] = set()
    for bound in nodes.keeping_away.values():
        info = nodes.get(bound.node)
        if info is None:
            continue
        for term in bound.anti_affinity:
            domain = _domain(term.topology_key, info.labels)
            if domain is not None and _selects(term, namespace, pod.labels, namespace_labels):
                closed.add(domain)
    wanted: set[Domain] = set()
    avoided: set[Domain] = set()
    if pod.affinity or pod.anti_affinity:
        for bound in nodes.bound_pods():
            info = nodes.get(bound.node)
            if info is not None:
                _note(pod, bound, info.labels, namespace_labels, wanted, avoided)
    is_first = not wanted and all(
        _selects(term, namespace, pod.labels, namespace_labels) for term in pod.affinity
    )
    return Neighbourhood(
        wanted=pod.affinity,
        wanted_domains=frozenset(wanted),
        may_be_first=is_first,
        avoided=pod.anti_affinity,
        avoided_domains=frozenset(avoided),
        closed_domains=frozenset(closed),
    )


def _note(
    pod: PodSpec,
    bound: BoundPod,
    labels: Labels,
    namespace_labels: NamespaceLabels,
    wanted: set[Domain],
    avoided: set[Domain],
) -> None:
    namespace = bound.place[0]
    if pod.affinity and all(
        _selects(term, namespace, bound.labels, namespace_labels) for term in pod.affinity
    ):
        wanted.update(_domains(pod.affinity, labels))
    for term in pod.anti_affinity:
        if _selects(term, namespace, bound.labels, namespace_labels):
            avoided.update(_domains((term,), labels))


def _selects(
    term: AffinityTerm, namespace: str, labels: Labels, namespace_labels: NamespaceLabels
) -> bool:
    here = namespace in term.namespaces or (
        term.namespace_selector is not None
        and term.namespace_selector.matches(namespace_labels(namespace))
    )
    return here and term.selector.matches(labels)


def _domains(terms: Iterable[AffinityTerm], labels: Labels) -> Iterable[Domain]:
    found = (_domain(term.topology_key, labels) for term in terms)
    return [domain for domain in found if domain is not None]


def _domain(key: str, labels: Labels) -> Domain | None:
    value = labels.get(key)
    return None if value is None else (key, value)
