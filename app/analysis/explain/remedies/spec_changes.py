"""Changes of a node and of a pod's own spec that may remove the refusal of a node.

Candidates: nothing is tried here (`beyond_devices`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.analysis.explain import node_answers
from app.analysis.explain.reasons import listed
from app.domain.allocation.reasons.changes import AllocationWorld
from app.domain.controllers.scheduling.framework import amounts, filters, pod_spec
from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.nodes import CPU, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.plugins import inter_pod_affinity, pod_topology_spread
from app.domain.devices.taints import taint_of
from app.domain.values import counts, json_tree, quantity, selectors
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import Requirement, SelectorError

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LACKING = "Insufficient "
_NANOS = {CPU: 1_000_000}
_NANOS_OF_OTHERS = 1_000_000_000
"""Nanos in one unit of the amounts of a resource."""

_KUBERNETES = ("kubernetes.io", "k8s.io")
"""Domains whose labels say what a node is; such a label is not set by hand to another value."""

_ROLES = "node-role.kubernetes.io"
_NOT_TOLERATED = ("node.kubernetes.io", "node.cloudprovider.kubernetes.io")
"""Domains of taints that say that a node cannot run pods now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecChange:
    """A change of a node or of the pod's own spec; `kind` is equal for changes of one sort.

    `tree` is the changed object: the pod with `of_pod`, otherwise a node or a class.
    """

    text: str
    kind: str
    of_pod: bool
    tree: JsonObject = field(compare=False)

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The same world; the change is proved by an attempt on the changed objects."""
        return world


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPair:
    """The pod and the node after the changes."""

    pod: JsonObject
    node: JsonObject
    changes: tuple[SpecChange, ...] = ()

    def with_change(self, change: SpecChange) -> "ChangedPair":
        """The pair after one more change."""
        changes = (*self.changes, change)
        if change.of_pod:
            return replace(self, pod=change.tree, changes=changes)
        return replace(self, node=change.tree, changes=changes)


def on_node(
    state: ChangedPair, pod: PodSpec, info: NodeInfo, refusal: NodeRejection
) -> Iterator[SpecChange]:
    """The changes that may remove the refusal of a node alone, the smallest of each sort."""
    yield from _opening(state, pod, info)
    if refusal in (filters.AFFINITY, filters.NOT_NAMED):
        yield from _labelling(state, info)
        yield from _selecting(state, info)
    if refusal is filters.PORTS:
        yield from _dropping_ports(state, info)
    for reason in refusal.reasons:
        if reason.startswith(_LACKING):
            yield from _lowering(state, pod, info, reason.removeprefix(_LACKING))
            return


def beside_pods(pod: JsonObject, text: str) -> Iterator[SpecChange]:
    """The pod without one of its rules about other pods, where such a rule is what refuses it."""
    spreads = (*pod_topology_spread.SKEWED.reasons, *pod_topology_spread.UNLABELLED.reasons)
    if text in spreads:
        for index, one in enumerate(core.spread_constraints(pod)):
            if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
                made, spec = _changed(pod)
                spec["topologySpreadConstraints"][index]["whenUnsatisfiable"] = "ScheduleAnyway"
                key = core.topology_key(one)
                said = f"set whenUnsatisfiable of the spread over {key} to ScheduleAnyway"
                kind = "set whenUnsatisfiable to ScheduleAnyway"
                yield SpecChange(text=said, kind=kind, of_pod=True, tree=made)
        return
    for rejection, name, words in (
        (inter_pod_affinity.NO_AFFINITY, "podAffinity", "pod affinity"),
        (inter_pod_affinity.ANTI_AFFINITY, "podAntiAffinity", "pod anti-affinity"),
    ):
        if text not in rejection.reasons:
            continue
        terms = json_tree.objects(meta.spec(pod), "affinity", name, _REQUIRED)
        for index, term in enumerate(terms):
            made, spec = _changed(pod)
            del spec["affinity"][name][_REQUIRED][index]
            key = core.topology_key(term)
            said = f"drop the required {words} over {key} of the pod"
            yield SpecChange(text=said, kind=f"drop a required {words}", of_pod=True, tree=made)


def _changed(tree: JsonObject) -> tuple[JsonObject, JsonObject]:
    """A copy of an object, and its spec."""
    made = json_tree.copy(tree)
    spec: JsonObject = made.setdefault("spec", {})
    return made, spec


def _opening(state: ChangedPair, pod: PodSpec, info: NodeInfo) -> Iterator[SpecChange]:
    """The first change that opens a closed node, and a pod that tolerates what taints it.

    A cordoned node is only opened: who cordons it wants no pod there.
    """
    for text, opened in node_answers.openings(pod, info, state.node):
        made, spec = _changed(state.node)
        spec["taints"] = [*opened.taints]
        spec["unschedulable"] = opened.is_unschedulable
        yield SpecChange(text=text, kind="open the node", of_pod=False, tree=made)
        break
    if info.is_unschedulable:
        return
    closing = node_answers.closing_taints(pod, info)
    if not closing or any(_domain_of(one, _NOT_TOLERATED) for one in closing):
        return
    made, spec = _changed(state.pod)
    spec["tolerations"] = [
        *core.tolerations_of(spec),
        *({**taint, "operator": "Equal"} for taint in map(_as_toleration, closing)),
    ]
    names = ", ".join(taint_of(taint).text for taint in closing)
    text = f"tolerate {counts.plural(len(closing), 'taint')} {names} in the pod"
    yield SpecChange(text=text, kind="tolerate the taints", of_pod=True, tree=made)


def _as_toleration(taint: JsonObject) -> JsonObject:
    return {name: value for name, value in taint.items() if name in ("key", "value", "effect")}


def _domain_of(taint: JsonObject, domains: Sequence[str]) -> bool:
    return taint_of(taint).key.rpartition("/")[0] in domains


def _labelling(state: ChangedPair, info: NodeInfo) -> Iterator[SpecChange]:
    """The fewest labels that the node needs for the pod's node selector and affinity."""
    spec = meta.spec(state.pod)
    labels: dict[str, str | None] = {
        key: value
        for key, value in sorted(core.node_selector_of(spec).items())
        if info.labels.get(key) != value
    }
    terms = core.node_affinity_of(spec)
    options = [labels_of for term in terms if (labels_of := _labels_for(term, info)) is not None]
    if terms and not options:
        return
    if options:
        nearest: dict[str, str | None] = min(options, key=len)
        labels |= nearest
    if labels and not any(map(_is_of_kubernetes, labels)):
        yield labelled(state.node, labels)


def labelled(node: JsonView, labels: Mapping[str, str | None]) -> SpecChange:
    """A node with these labels, and without those of which the value is None."""
    made: JsonObject = json_tree.copy(node)
    name = meta.name(node)
    kept: JsonObject = made["metadata"].setdefault("labels", {})
    for key, label in labels.items():
        if label is None:
            kept.pop(key, None)
        else:
            kept[key] = label
    added = [f"{key}={label}" for key, label in labels.items() if label is not None]
    gone = [key for key, label in labels.items() if label is None]
    parts = [f"label node {name} with {', '.join(added)}"] if added else []
    if gone:
        parts.append(f"remove {counts.plural(len(gone), 'label')} {', '.join(gone)} of node {name}")
    return SpecChange(text=", ".join(parts), kind="label the node", of_pod=False, tree=made)


def _labels_for(term: JsonObject, info: NodeInfo) -> dict[str, str | None] | None:
    """The labels to set, or with None to remove, so that a term holds; None if none suffice."""
    try:
        (read,) = selectors.node_selector_of({"nodeSelectorTerms": [term]}).terms
    except SelectorError:
        return None
    known = {"metadata.name": info.name}
    if any((known.get(one.field, "") == one.value) is not one.equal for one in read.fields):
        return None
    return {one.key: _wanted(one) for one in read.labels if not one.holds(info.labels)}


def _wanted(one: Requirement) -> str | None:
    """A value with which a requirement holds; None where the label must not be there."""
    match one.operator:
        case "in":
            return min(one.values, default="")
        case "exists":
            return "true"
        case "gt":
            return str(one.bound + 1)
        case "lt":
            return str(one.bound - 1)
    return None


def _is_of_kubernetes(key: str) -> bool:
    domain = key.rpartition("/")[0]
    if domain == _ROLES:
        return False
    return any(domain == one or domain.endswith(f".{one}") for one in _KUBERNETES)


def _selecting(state: ChangedPair, info: NodeInfo) -> Iterator[SpecChange]:
    """The pod without what it selects and the node does not have."""
    made, spec = _changed(state.pod)
    dropped: list[str] = []
    selector = core.node_selector_of(spec)
    for key, value in sorted(selector.items()):
        if info.labels.get(key) != value:
            dropped.append(f"{key}={value} from the node selector")
    kept = {key: value for key, value in selector.items() if info.labels.get(key) == value}
    if dropped:
        spec["nodeSelector"] = kept
    terms = core.node_affinity_of(spec)
    failing = [_failing(term, info) for term in terms]
    texts, term = min(failing, key=lambda one: len(one[0]), default=([], {}))
    if texts:
        dropped += (f"{text} from the node affinity" for text in texts)
        affinity: JsonObject = spec["affinity"]["nodeAffinity"]
        del affinity[_REQUIRED]
        if term:
            affinity[_REQUIRED] = {"nodeSelectorTerms": [term]}
    if dropped:
        text = f"drop {' and '.join(dropped)} of the pod"
        kind = "drop what the pod selects"
        yield SpecChange(text=text, kind=kind, of_pod=True, tree=made)


def _failing(term: JsonObject, info: NodeInfo) -> tuple[list[str], JsonObject]:
    """The requirements of a term that do not hold for a node, and the term without them."""
    texts: list[str] = []
    kept: JsonObject = {}
    for name in ("matchExpressions", "matchFields"):
        for one in json_tree.objects(term, name):
            try:
                selector = selectors.node_selector_of({"nodeSelectorTerms": [{name: [one]}]})
            except SelectorError:
                continue
            if selector.matches(info.name, info.labels):
                kept.setdefault(name, []).append(one)
            else:
                texts.append(_expression_text(one))
    return texts, kept


def _expression_text(one: JsonObject) -> str:
    expression = core.requirement(one)
    text = f"{expression.key} {expression.operator}"
    values = [value for value in expression.values if isinstance(value, str)]
    return f"{text} {listed(values, len(values))}" if values else text


def _dropping_ports(state: ChangedPair, info: NodeInfo) -> Iterator[SpecChange]:
    """The pod without the ports of the host that pods of the node use.

    A pod in the network of its host has its ports there, whatever its spec says.
    """
    if meta.spec(state.pod).get("hostNetwork") is True:
        return
    used = [port for bound in info.pods.values() for port in bound.ports]
    texts: dict[str, None] = {}
    made, spec = _changed(state.pod)
    for container in (*core.init_containers_of(spec), *core.containers_of(spec)):
        for tree in core.ports(container):
            port = pod_spec.host_port(tree)
            if port is not None and any(filters.is_same_port(port, other) for other in used):
                del tree["hostPort"]
                texts[pod_spec.port_text(port)] = None
    if texts:
        names = ", ".join(texts)
        text = f"drop {counts.plural(len(texts), 'host port')} {names} of the pod"
        yield SpecChange(text=text, kind="drop a host port", of_pod=True, tree=made)


def _lowering(
    state: ChangedPair, pod: PodSpec, info: NodeInfo, resource: str
) -> Iterator[SpecChange]:
    """The pod with a request that leaves it no more than what is free on the node."""
    free = info.has(resource) - info.requested.get(resource, 0)
    over = pod.amounts.requests.get(resource, 0) - free
    if free <= 0 or over <= 0:
        return
    made, spec = _changed(state.pod)
    containers = [*core.containers_of(spec), *core.init_containers_of(spec)]
    requests = [
        (one, amounts.of_tree(core.requests_of(one)).get(resource, 0)) for one in containers
    ]
    container, most = max(requests, key=lambda pair: pair[1], default=({}, 0))
    if most <= over:
        return
    resources: JsonObject = container["resources"]
    before = quantity.from_json(resources["requests"][resource])
    unit = _NANOS.get(resource, _NANOS_OF_OTHERS)
    lowered = str(quantity.from_nanos((most - over) * unit, before.format))
    resources["requests"][resource] = lowered
    if "/" in resource and resource in resources.get("limits", {}):
        # Extended resources are never overcommitted: the limit equals the request.
        resources["limits"][resource] = lowered
    text = (
        f"request {lowered} instead of {before} {resource} in container {entries.name(container)}"
    )
    yield SpecChange(text=text, kind=f"request less {resource}", of_pod=True, tree=made)
