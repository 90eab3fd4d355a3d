"""Pods that keep a pod from nodes: by its own affinity and anti-affinity, or by theirs.

The message of the scheduler names the rule and no pod. Parity: controllers.md 4.2.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.pod_spec import AffinityTerm
from app.domain.controllers.scheduling.plugins import inter_pod_affinity as affinity
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject

REJECTIONS = (affinity.ANTI_AFFINITY, affinity.EXISTING, affinity.NO_AFFINITY)
"""The verdicts of the plug-in that are explained here."""


class _Bound(NamedTuple):
    """A pod with a node that is not over, and the labels of its node."""

    key: ObjectKey
    tree: JsonObject
    node: str
    labels: Mapping[str, str]

    @property
    def text(self) -> str:
        return f"{self.key.namespace}/{self.key.name} on node {self.node}"


def keeping_away(
    views: LiveViews, pod: JsonObject, refusals: Mapping[str, str]
) -> Iterator[Reason]:
    """The pods because of which nodes refuse a pod; `refusals` has the text of each such node."""
    known = {rejection.reasons[0] for rejection in REJECTIONS}
    if known.isdisjoint(refusals.values()):
        return
    spec = pod_spec.read(pod)
    bound = list(_bound_pods(views))
    refusing = {
        rejection: [node for node, refusal in refusals.items() if refusal == rejection.reasons[0]]
        for rejection in REJECTIONS
    }
    if nodes := refusing[affinity.ANTI_AFFINITY]:
        for term in spec.anti_affinity:
            yield from _avoided(views, term, bound, nodes)
    if refusing[affinity.NO_AFFINITY]:
        yield _wanted(views, pod, spec.affinity, bound)
    if nodes := refusing[affinity.EXISTING]:
        yield from _avoiding(views, pod, bound, nodes)


def _avoided(
    views: LiveViews, term: AffinityTerm, bound: Sequence[_Bound], nodes: Sequence[str]
) -> Iterator[Reason]:
    """The pods from which the pod has to keep apart, in the domains of the nodes."""
    near = _in_domains(views, term.topology_key, _selected(views, (term,), bound), nodes)
    if near:
        text = f"the anti-affinity of the pod keeps it apart from {_named(near)}"
        yield _reason(f"{text}, by {term.topology_key}", near)


def _wanted(
    views: LiveViews, pod: JsonObject, terms: Sequence[AffinityTerm], bound: Sequence[_Bound]
) -> Reason:
    """The pods beside which the pod has to be: all its terms have to select them."""
    keys = [*dict.fromkeys(term.topology_key for term in terms)]
    text = f"the affinity of the pod wants a pod that it selects in the same {' and '.join(keys)}"
    near = _selected(views, terms, bound)
    if not near:
        text += ": no such pod has a node"
        others = (one for one in _unbound_pods(views) if meta.uid(one[1]) != meta.uid(pod))
        waiting = [one[0] for one in others if _is_selected(views, terms, one)]
        if not waiting:
            return Reason(text=text, is_kept=True)
        names = [f"{key.namespace}/{key.name}" for key in waiting]
        text += f"; {counts.plural(len(names), 'pod')} {listed(names, len(names))} "
        return Reason(
            text=f"{text}{counts.verb(len(names), 'waits')} for one",
            about=waiting[0] if len(waiting) == 1 else None,
            rests_on=tuple(waiting[:NAMES_MAX]),
            is_kept=True,
        )
    are = "such a pod is" if len(near) == 1 else "such pods are"
    return _reason(f"{text}: {are} {listed([one.text for one in near], len(near))}", near)


def _selected(
    views: LiveViews, terms: Sequence[AffinityTerm], bound: Sequence[_Bound]
) -> list[_Bound]:
    """The pods that all the terms select."""
    return [one for one in bound if _is_selected(views, terms, (one.key, one.tree))]


def _is_selected(
    views: LiveViews, terms: Sequence[AffinityTerm], pod: tuple[ObjectKey, JsonObject]
) -> bool:
    key, tree = pod
    labels = _of(views)
    return all(affinity.selects(term, key.namespace, meta.labels(tree), labels) for term in terms)


def _avoiding(
    views: LiveViews, pod: JsonObject, bound: Sequence[_Bound], nodes: Sequence[str]
) -> Iterator[Reason]:
    """The pods that keep the pod out of their domains."""
    groups: dict[str, list[_Bound]] = {}
    for one in bound:
        for term in pod_spec.anti_affinity_of(one.tree):
            if affinity.selects(term, meta.namespace(pod), meta.labels(pod), _of(views)):
                groups.setdefault(term.topology_key, []).append(one)
    for key, avoiding in groups.items():
        near = _in_domains(views, key, avoiding, nodes)
        if near:
            text = f"the anti-affinity of {_named(near)} keeps this pod out, by {key}"
            yield _reason(text, near)


def _in_domains(
    views: LiveViews, key: str, pods: Sequence[_Bound], nodes: Sequence[str]
) -> list[_Bound]:
    """The pods among them that share a value of the topology key with one of the nodes."""
    trees = (views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {} for name in nodes)
    values = {meta.labels(tree).get(key) for tree in trees} - {None}
    return [one for one in pods if one.labels.get(key) in values]


def _named(pods: Sequence[_Bound]) -> str:
    return f"{counts.plural(len(pods), 'pod')} {listed([one.text for one in pods], len(pods))}"


def _reason(text: str, pods: Sequence[_Bound]) -> Reason:
    """The reason, which only a reader of all the pods that it names may have."""
    keys = tuple(one.key for one in pods[:NAMES_MAX])
    return Reason(
        text=text,
        count=len(pods),
        about=keys[0] if len(pods) == 1 else None,
        rests_on=keys,
        is_kept=True,
    )


def _bound_pods(views: LiveViews) -> Iterator[_Bound]:
    """The pods with a node that are not over."""
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        name = core.node_name(tree)
        node = views.objects.get(ObjectKey(*api_resources.NODES, "", name)) if name else None
        if node is not None and not core.is_finished(tree):
            yield _Bound(key, tree, name, meta.labels(node))


def _unbound_pods(views: LiveViews) -> Iterator[tuple[ObjectKey, JsonObject]]:
    """The pods that wait for a node."""
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key) or {}
        if not core.needs_no_node(tree) and not meta.is_deleting(tree):
            yield key, tree


def _of(views: LiveViews) -> affinity.NamespaceLabels:
    """Reads the labels of namespaces."""

    def labels(name: str) -> affinity.Labels:
        return meta.labels(views.objects.get(ObjectKey(*api_resources.NAMESPACES, "", name)) or {})

    return labels
