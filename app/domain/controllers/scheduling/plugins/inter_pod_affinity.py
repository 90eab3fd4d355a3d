"""The filter InterPodAffinity: pods that must or must not share a topology domain.

The domains are computed once per attempt as (topology key, value), then checked for each node.
Parity: controllers.md 4.2 for order and texts. Preferred terms are in `inter_pod_affinity_score`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.nodes import BoundPod, NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import AffinityTerm, PodSpec

NAME = "InterPodAffinity"

NO_AFFINITY = NodeRejection(plugin=NAME, reasons=("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY = NodeRejection(
    plugin=NAME, reasons=("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
EXISTING = NodeRejection(
    plugin=NAME,
    reasons=("node(s) didn't satisfy existing pods anti-affinity rules",),
    resolvable=True,
)

Labels = Mapping[str, str]
NamespaceLabels = Callable[[str], Labels]
Domain = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The domains that the pod wants, avoids, and is kept out of by the pods that run there.

    Each domain has the number of reasons for it, so that single pods can be removed and added.
    """

    pod: PodSpec
    namespace_labels: NamespaceLabels
    wanted_domains: dict[Domain, int] = field(default_factory=dict)
    avoided_domains: dict[Domain, int] = field(default_factory=dict)
    closed_domains: dict[Domain, int] = field(default_factory=dict)

    def check_node(self, info: NodeInfo) -> NodeRejection | None:
        """Checks a node and returns the first rejection, or None."""
        labels = info.labels
        if self.pod.affinity and not self._is_wanted(labels):
            return NO_AFFINITY
        if any(
            _domain(term.topology_key, labels) in self.avoided_domains
            for term in self.pod.anti_affinity
        ):
            return ANTI_AFFINITY
        if any(labels.get(key) == value for key, value in self.closed_domains):
            return EXISTING
        return None

    def changed(
        self, info: NodeInfo, gone: Iterable[BoundPod], come: Iterable[BoundPod]
    ) -> "Neighbourhood":
        """A copy that does not count the pods `gone` of the node, and counts the pods `come`."""
        made = replace(
            self,
            wanted_domains=dict(self.wanted_domains),
            avoided_domains=dict(self.avoided_domains),
            closed_domains=dict(self.closed_domains),
        )
        for bound in gone:
            made.note(bound, info.labels, -1)
        for bound in come:
            made.note(bound, info.labels, 1)
        return made

    def note(self, bound: BoundPod, labels: Labels, by: int) -> None:
        """Counts a pod on a node with these labels (`by` 1), or stops counting it (-1)."""
        self.note_wishes(bound, labels, by)
        if bound.anti_affinity:
            self.note_closing(bound, labels, by)

    def note_wishes(self, bound: BoundPod, labels: Labels, by: int) -> None:
        """Counts a pod for the affinity and anti-affinity terms of the incoming pod."""
        pod, namespace = self.pod, bound.place[0]
        if pod.affinity and all(
            selects(term, namespace, bound.labels, self.namespace_labels) for term in pod.affinity
        ):
            _count(self.wanted_domains, pod.affinity, labels, by)
        for term in pod.anti_affinity:
            if selects(term, namespace, bound.labels, self.namespace_labels):
                _count(self.avoided_domains, (term,), labels, by)

    def note_closing(self, bound: BoundPod, labels: Labels, by: int) -> None:
        """Counts a pod for its own anti-affinity terms against the incoming pod."""
        pod = self.pod
        for term in bound.anti_affinity:
            if selects(term, pod.facts.namespace, pod.labels, self.namespace_labels):
                _count(self.closed_domains, (term,), labels, by)

    def _is_wanted(self, labels: Labels) -> bool:
        domains = [_domain(term.topology_key, labels) for term in self.pod.affinity]
        if any(domain is None for domain in domains):
            return False
        return self._may_be_first() or all(domain in self.wanted_domains for domain in domains)

    def _may_be_first(self) -> bool:
        """True when no pod matches the pod's affinity, and the pod matches its own affinity."""
        pod = self.pod
        return not self.wanted_domains and all(
            selects(term, pod.facts.namespace, pod.labels, self.namespace_labels)
            for term in pod.affinity
        )


def survey(
    pod: PodSpec, nodes: NodeIndex, namespace_labels: NamespaceLabels
) -> Neighbourhood | None:
    """The domains for a pod; None when neither its own terms nor those of other pods affect it."""
    asks = bool(pod.affinity or pod.anti_affinity)
    if not (asks or nodes.keeping_away):
        return None
    made = Neighbourhood(pod=pod, namespace_labels=namespace_labels)
    for bound in nodes.keeping_away.values():
        info = nodes.get(bound.node)
        if info is not None:
            made.note_closing(bound, info.labels, 1)
    if not (asks or made.closed_domains):
        return None
    if asks:
        for bound in nodes.bound_pods():
            info = nodes.get(bound.node)
            if info is not None:
                made.note_wishes(bound, info.labels, 1)
    return made


def selects(
    term: AffinityTerm, namespace: str, labels: Labels, namespace_labels: NamespaceLabels
) -> bool:
    """True when a term selects a pod with these labels in this namespace."""
    if term.selector is None:
        return False
    here = namespace in term.namespaces or (
        term.namespace_selector is not None
        and term.namespace_selector.matches(namespace_labels(namespace))
    )
    return here and term.selector.matches(labels)


def _count(
    counts: dict[Domain, int], terms: Iterable[AffinityTerm], labels: Labels, by: int
) -> None:
    for term in terms:
        domain = _domain(term.topology_key, labels)
        if domain is None:
            continue
        counts[domain] = counts.get(domain, 0) + by
        if not counts[domain]:
            del counts[domain]


def _domain(key: str, labels: Labels) -> Domain | None:
    value = labels.get(key)
    return None if value is None else (key, value)
