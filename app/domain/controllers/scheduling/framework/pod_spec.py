"""The fields of a pod that the scheduler needs, read once when the pod appears or changes."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from app.domain.controllers import pods
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.scheduling.framework import amounts
from app.domain.controllers.scheduling.framework.amounts import PodAmounts
from app.domain.log import Event
from app.domain.log.chain import canonical_json
from app.domain.values import json_tree, selectors
from app.domain.values.bounded import Bounded
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import LabelSelector, NodeSelector, SelectorError

DEFAULT_SCHEDULER = "default-scheduler"

KEPT_MAX = 4_096
"""The most pods whose specs are kept for further attempts."""

HARD_AFFINITY_WEIGHT = 1
"""The weight of a running pod's required affinity in scores; upstream's hardPodAffinityWeight."""

_NAME_FIELD = "metadata.name"

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - upstream's any address
"""The address of a host port without `hostIP`: it is in use on every address of the node."""

HostPort = tuple[str, str, int]
"""The address, protocol and number of a port of a node that a pod uses."""


class PodVolumeClaim(NamedTuple):
    """A PersistentVolumeClaim of a pod; an ephemeral one is made for the pod."""

    name: str
    is_ephemeral: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AffinityTerm:
    """One term of pod affinity or anti-affinity. `selector` is None when the term selects no pod.

    `namespaces` is the pod's own namespace when the term has neither namespaces nor a selector of
    namespaces. `namespace_selector` selects namespaces by their labels.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A preferred term with its weight, which is negative for anti-affinity."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A preferred node selector term with its weight."""

    weight: int
    selector: NodeSelector


class PodSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One pod, ready for filters and scores.

    `only_nodes` are the nodes that its node affinity names, when every term of it names some.
    `shape` is equal for pods that are the same to the filters and scores of the framework that look
    at a node alone, apart from their claims. Labels and namespaces matter only beside other pods.
    """

    facts: PodFacts
    priority: int
    created: str
    labels: dict[str, str]
    node_name: str
    node_selector: tuple[tuple[str, str], ...]
    node_affinity: NodeSelector | None
    only_nodes: frozenset[str] | None
    preferences: tuple[Preference, ...]
    tolerations: tuple[JsonObject, ...]
    amounts: PodAmounts
    ports: tuple[HostPort, ...]
    volume_claims: tuple[PodVolumeClaim, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    wishes: tuple[Wish, ...]
    is_gated: bool
    never_preempts: bool
    shape: bytes


def read(tree: JsonView, facts: PodFacts | None = None) -> PodSpec:
    """Read a pod that is waiting for a node."""
    spec = meta.spec(tree)
    affinity = json_tree.mapping(spec, "affinity") if "affinity" in spec else json_tree.EMPTY
    namespace = meta.namespace(tree)
    labels = meta.labels(tree)
    tolerations = tuple(core.tolerations_of(spec))
    wanted = amounts.of_pod(spec)
    node_selector = tuple(sorted(core.node_selector_of(spec).items()))
    ports = host_ports(spec)
    shape = canonical_json(
        [
            namespace if affinity else "",
            json_tree.text(spec, "nodeName"),
            node_selector,
            affinity,
            tolerations,
            [wanted.requests, wanted.scored_cpu, wanted.scored_memory],
            ports,
        ]
    )
    return PodSpec(
        facts=facts if facts is not None else pods.facts(tree),
        priority=json_tree.integer(spec, "priority") or 0,
        created=meta.creation_timestamp(tree),
        labels=labels,
        node_name=json_tree.text(spec, "nodeName"),
        node_selector=node_selector,
        node_affinity=_required_nodes(affinity) if affinity else None,
        only_nodes=_named_nodes(affinity) if affinity else None,
        preferences=_preferences(affinity) if affinity else (),
        tolerations=tolerations,
        amounts=wanted,
        ports=ports,
        volume_claims=tuple(volume_claims(tree)) if "volumes" in spec else (),
        affinity=_terms(affinity, "podAffinity", namespace) if affinity else (),
        anti_affinity=_terms(affinity, "podAntiAffinity", namespace) if affinity else (),
        wishes=tuple(_wishes(affinity, namespace)) if affinity else (),
        is_gated=bool(spec.get("schedulingGates")),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        shape=shape,
    )


def read_again(event: Event, before: PodSpec) -> PodSpec:
    """Reads a waiting pod after an event; fields that cannot have changed are taken from `before`.

    Labels, scheduling gates, tolerations and claim entries can change. While a pod has gates, its
    node selector and affinity can change too; they are read when the gates are removed.
    """
    tree, facts = event.object, pods.facts_of(event)
    spec = meta.spec(tree)
    changeable = (
        meta.labels(tree),
        bool(spec.get("schedulingGates")),
        tuple(core.tolerations_of(spec)),
        facts.entries,
    )
    known = (before.labels, before.is_gated, before.tolerations, before.facts.entries)
    return (
        msgspec.structs.replace(before, facts=facts) if changeable == known else read(tree, facts)
    )


class PodSpecs:
    """The specs of pods that are tried again and again.

    A spec is a function of the pod's tree, and trees never change: it is kept for that very tree.
    """

    def __init__(self) -> None:
        self._kept: Bounded[tuple[str, str], tuple[JsonView, PodSpec]] = Bounded(KEPT_MAX)

    def read(self, place: tuple[str, str], tree: JsonView) -> PodSpec:
        """The spec of the pod at a place, which has this tree."""
        kept = self._kept.get(place)
        if kept is not None and kept[0] is tree:
            return kept[1]
        spec = read(tree)
        self._kept[place] = (tree, spec)
        return spec


def is_ours(tree: JsonView, profiles: Set[str] = frozenset()) -> bool:
    """True when this scheduler is responsible for the pod; `profiles` names its further ones."""
    name = core.scheduler_name(tree)
    return name in ("", DEFAULT_SCHEDULER) or name in profiles


def anti_affinity_of(tree: JsonView) -> tuple[AffinityTerm, ...]:
    """The required anti-affinity terms of a bound pod, which also exclude nodes for other pods."""
    affinity = json_tree.get(tree, "spec", "affinity")
    if not isinstance(affinity, dict):
        return ()
    return _terms(affinity, "podAntiAffinity", meta.namespace(tree))


def wishes_of(tree: JsonView) -> tuple[Wish, ...]:
    """The wishes of a bound pod about other pods: preferred terms and required affinity."""
    affinity = json_tree.get(tree, "spec", "affinity")
    if not isinstance(affinity, dict):
        return ()
    namespace = meta.namespace(tree)
    required = _terms(affinity, "podAffinity", namespace)
    hard = (Wish(weight=HARD_AFFINITY_WEIGHT, term=term) for term in required)
    return (*hard, *_wishes(affinity, namespace))


def _named_nodes(affinity: JsonView) -> frozenset[str] | None:
    """The nodes that the terms name; None when there are no terms or one of them names no node.

    The result is empty when the names within each term contradict each other.
    """
    names: set[str] = set()
    terms = json_tree.objects(
        affinity,
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )
    for term in terms:
        named = [
            frozenset(json_tree.texts(field, "values"))
            for field in core.field_expressions(term)
            if field.get("key") == _NAME_FIELD and field.get("operator") == "In"
        ]
        if not named:
            return None
        names |= frozenset.intersection(*named)
    return frozenset(names) if terms else None


def _required_nodes(affinity: JsonView) -> NodeSelector | None:
    required = json_tree.get(
        affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not isinstance(required, dict):
        return None
    try:
        return selectors.node_selector_of(required)
    except SelectorError:
        return NodeSelector(terms=())


def _preferences(affinity: JsonView) -> tuple[Preference, ...]:
    preferences: list[Preference] = []
    for item in json_tree.objects(
        affinity, "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"
    ):
        term = json_tree.mapping(item, "preference")
        try:
            selector = selectors.node_selector_of({"nodeSelectorTerms": [term]})
        except SelectorError:
            continue
        preferences.append(
            Preference(weight=json_tree.integer(item, "weight") or 0, selector=selector)
        )
    return tuple(preferences)


def _terms(affinity: JsonView, kind: str, namespace: str) -> tuple[AffinityTerm, ...]:
    listed = json_tree.objects(affinity, kind, "requiredDuringSchedulingIgnoredDuringExecution")
    read_terms = (_term(tree, namespace) for tree in listed)
    return tuple(term for term in read_terms if term is not None)


def _wishes(affinity: JsonView, namespace: str) -> Iterator[Wish]:
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for item in json_tree.objects(
            affinity, kind, "preferredDuringSchedulingIgnoredDuringExecution"
        ):
            term = _term(json_tree.mapping(item, "podAffinityTerm"), namespace)
            if term is not None:
                yield Wish(weight=sign * (json_tree.integer(item, "weight") or 0), term=term)


def _term(tree: JsonView, namespace: str) -> AffinityTerm | None:
    """One term; None when its selectors cannot be read.

    A missing selector selects nothing, an empty one everything. The selector contains the
    requirements of `matchLabelKeys` since the pod was created.
    """
    names = frozenset(json_tree.texts(tree, "namespaces"))
    labels, namespaces = tree.get("labelSelector"), tree.get("namespaceSelector")
    try:
        selector = selectors.label_selector_of(labels) if isinstance(labels, dict) else None
        of_namespaces = (
            selectors.label_selector_of(namespaces) if isinstance(namespaces, dict) else None
        )
    except SelectorError:
        return None
    if not names and of_namespaces is None:
        names = frozenset((namespace,))
    return AffinityTerm(
        topology_key=core.topology_key(tree),
        selector=selector,
        namespaces=names,
        namespace_selector=of_namespaces,
    )


def volume_claims(tree: JsonView) -> Iterator[PodVolumeClaim]:
    """The claims of the pod's volumes, in order."""
    for volume in core.volumes(tree):
        if name := core.volume_claim_name(volume):
            yield PodVolumeClaim(name, is_ephemeral=False)
        elif "ephemeral" in volume:
            name = f"{meta.name(tree)}-{entries.name(volume)}"
            yield PodVolumeClaim(name, is_ephemeral=True)


def host_ports(spec: JsonView) -> tuple[HostPort, ...]:
    """Every host port of the pod.

    Ports of sidecars count; ports of other init containers do not.
    """
    ports: list[HostPort] = []
    for container in (*_sidecars(spec), *core.containers_of(spec)):
        if "ports" not in container:
            continue
        ports += filter(None, map(host_port, core.ports(container)))
    return tuple(ports)


def host_port(tree: JsonView) -> HostPort | None:
    """The port of the host that a port of a container asks for."""
    number = json_tree.integer(tree, "hostPort") or 0
    address = json_tree.text(tree, "hostIP") or ANY_ADDRESS
    return (address, json_tree.text(tree, "protocol") or "TCP", number) if number else None


def port_text(port: HostPort) -> str:
    """The port with its protocol, and with its address if it has one of its own."""
    address, protocol, number = port
    return f"{number}/{protocol}" + ("" if address == ANY_ADDRESS else f" of address {address}")


def _sidecars(spec: JsonView) -> list[JsonObject]:
    if "initContainers" not in spec:
        return []
    inits = core.init_containers_of(spec)
    return [container for container in inits if container.get("restartPolicy") == "Always"]
