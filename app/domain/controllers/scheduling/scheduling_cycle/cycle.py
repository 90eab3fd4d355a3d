"""One attempt in progress: the checks of each node, and the cache of their results.

The cycle holds the pod with its claims resolved, the allocator, which is built once, and the
verdicts on pods of its kind. Parity: controllers.md 3.4, 3.10 and 4.2.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.allocation import (
    Allocation,
    Allocator,
    DoesNotFit,
    Failure,
    FailureScope,
    Features,
    Quirks,
)
from app.domain.allocation.allocator import INVALID_POOLS
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.gates import Gates
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DeviceViews
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.framework import filters, image_locality, scoring
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.nominations import NO_RIVALS, Rivals
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod
from app.domain.controllers.scheduling.plugins import (
    inter_pod_affinity,
    inter_pod_affinity_score,
    pod_topology_spread,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources import (
    binding_conditions,
    pod_claims,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources import (
    extended_resources as extended,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.binding_conditions import (
    BindingReadiness,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
    ExtendedRequests,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import PodClaim
from app.domain.controllers.scheduling.plugins.inter_pod_affinity import Neighbourhood
from app.domain.controllers.scheduling.plugins.pod_topology_spread import Spread
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import (
    DeviceVerdict,
    KindOfPod,
    NodeVerdict,
    Verdicts,
)
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DEVICES = "DynamicResources"

CANNOT_ALLOCATE = filters.NodeRejection(plugin=DEVICES, reasons=("cannot allocate all claims",))
CANNOT_FIT = filters.NodeRejection(plugin=DEVICES, reasons=("cannot fit resource",))
GAVE_UP = filters.NodeRejection(plugin=DEVICES, reasons=("timed out trying to allocate devices",))
LEFT_OVER = filters.NodeRejection(
    plugin=DEVICES, reasons=("cannot schedule extended resource claim",)
)
NOT_AVAILABLE = filters.NodeRejection(
    plugin=DEVICES, reasons=("resourceclaim not available on the node",)
)

TieBreak: TypeAlias = Callable[[str, Sequence[str], str], str]
"""Chooses by a pod's uid among the names of the best nodes; an empty result means the first.

The last argument is the first: the node that the order of the nodes gives.
Upstream's order of equal nodes is arbitrary; a replay chooses the recorded node.
"""

BindDelay: TypeAlias = Callable[[str, Instant], tuple[Instant, Instant]]
"""Returns, from a pod's uid and the instant of the decision, the instants of two writes.

At the first its claims are written, at the second it is bound.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRules:
    """The rules that do not change during the life of a scheduler.

    Without a `bind_delay`, the claims are written and the pod is bound together with the decision.
    Devices with binding conditions may take `binding_timeout` microseconds. `profiles` are names
    of profiles, besides the default one, that are configured like it. With `checks_volumes` the
    claims of a pod's volumes must exist and be bound.
    """

    gates: Gates
    features: Features
    compiler: SelectorCompiler
    quirks: ControllerQuirks = ControllerQuirks()
    allocator_quirks: Quirks = Quirks()
    tie_break: TieBreak | None = None
    summary: SummaryBounds | None = SummaryBounds()
    bind_delay: BindDelay | None = None
    binding_timeout: int = binding_conditions.TIMEOUT
    pace: Pace | None = None
    profiles: frozenset[str] = frozenset()
    checks_volumes: bool = False


class Aborted(Exception):
    """An allocator error of one node that ends the attempt (C16).

    `looked_at` is the number of nodes that were checked, this one included.
    """

    def __init__(self, text: str, looked_at: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.looked_at = looked_at


class Classes(Mapping[str, JsonView]):
    """The device classes by name, as the allocator reads them."""

    def __init__(self, objects: ObjectsReader) -> None:
        self._objects = objects

    def __getitem__(self, name: str) -> JsonView:
        device_class = self._objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name))
        if device_class is None:
            raise KeyError(name)
        return device_class

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._objects.keys(*api_resources.DEVICE_CLASSES))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True, kw_only=True)
class Cycle:
    """One attempt in progress. `nominated` are the nominated pods that count on their nodes."""

    rules: SchedulerRules
    views: DeviceViews
    nodes: NodeIndex
    pod: PodSpec
    now: Instant
    claims: tuple[PodClaim, ...]
    kind: KindOfPod
    hood: Neighbourhood | None
    spread: Spread | None
    allocator: Allocator | None
    fresh: tuple[JsonObject, ...]
    scores_devices: bool
    fails_to_score: bool
    is_cached: bool
    tree: JsonObject
    wanted: ExtendedRequests | None = None
    nominated: Rivals = field(default_factory=lambda: NO_RIVALS)
    extended: dict[frozenset[str], ExtendedClaim] = field(default_factory=dict)

    @property
    def depends_on_others(self) -> bool:
        """True when other pods affect the check of a node, so that its verdict is not final."""
        if self.hood is not None or self.nominated:
            return True
        return self.spread is not None and bool(self.spread.hard)

    @property
    def claim_keys(self) -> tuple[ObjectKey, ...]:
        """The claims that the allocator's messages may name.

        A key of the pods resource stands for the pod's claim for extended resources.
        """
        own = () if self.wanted is None else (pod_key(self.pod.facts.namespace, ""),)
        return (*(claim.key for claim in self.claims), *own)

    def extended_claim(self, served: frozenset[str]) -> ExtendedClaim | None:
        """The pod's claim for the extended resources that devices serve, if any."""
        if not served:
            return None
        if served not in self.extended:
            assert self.wanted is not None, "only such pods have resources served"
            classes = {name: self.wanted.classes[name] for name in served}
            self.extended[served] = extended.claim_for(self.tree, classes)
        return self.extended[served]

    def verdict(self, info: NodeInfo) -> NodeVerdict:
        """The framework's verdict on a node, from the cache or computed."""
        known = self.kind.by_node.get(info.name)
        if known is not None and known.version == info.version:
            return known
        refusal = filters.check_node(self.pod, info, self._served(info))
        made = NodeVerdict(version=info.version, refusal=refusal)
        if refusal is None:
            made.room = scoring.room_score(self.pod, info, leaves=self.rules.quirks.r5)
            made.soft_taints = scoring.soft_taints(self.pod, info)
            made.preference = scoring.preference(self.pod, info)
        self.kind.by_node[info.name] = made
        return made

    def add_scores(self, totals: list[int], feasible: Sequence[NodeInfo]) -> None:
        """Adds the scores that depend on other pods and nodes to `totals`, in place."""
        if self.spread is not None:
            scoring.add(totals, self.spread.scores(feasible), scoring.SPREAD_WEIGHT)
        labels = _namespace_labels(self.views.objects)
        liked = inter_pod_affinity_score.scores(self.pod, self.nodes, feasible, labels)
        scoring.add(totals, liked, scoring.ATTRACTION_WEIGHT)
        if self.nodes.images:
            wanted = image_locality.wanted_by(self.tree, counts_volumes=not self.rules.quirks.r4)
            known = self.nodes.images.scores(wanted, len(self.nodes))
            if known:
                there = [known.get(info.name, 0) for info in feasible]
                scoring.add(totals, there, scoring.IMAGES_WEIGHT)

    def check(self, info: NodeInfo, verdict: NodeVerdict) -> filters.NodeRejection | None:
        """The first rejection of the node, or None. Raises Aborted for an allocator's error."""
        if self.nominated and (refusal := self.check_rivals(info)) is not None:
            return refusal
        if verdict.refusal is not None:
            return verdict.refusal
        if self.spread is not None:
            refusal = self.spread.check_node(info)
            if refusal is not None:
                return refusal
        if self.hood is not None:
            refusal = self.hood.check_node(info)
            if refusal is not None:
                return refusal
        if not self.claims and self.wanted is None:
            return None
        devices = verdict.devices
        if devices is None and self.is_cached:
            known = self.kind.by_claims.get(info.name)
            if known is not None and known.version == info.version:
                devices = verdict.devices = known.devices
        if devices is None or not self.is_cached or self._is_about_others(devices):
            devices = verdict.devices = self._devices(info)
            self.kind.by_claims[info.name] = verdict
        if devices.error:
            raise Aborted(devices.error)
        return devices.refusal

    def check_rivals(self, info: NodeInfo) -> filters.NodeRejection | None:
        """The framework's rejection when the pods nominated for the node count as bound, or None.

        The pod must fit both with them and without them. Devices are not checked here: the devices
        that nominated pods will get are not known.
        """
        rivals = self.nominated.get(info.name, ())
        if not rivals:
            return None
        return self.check_changed(info, info.changed((), rivals), come=rivals)

    def check_changed(
        self,
        info: NodeInfo,
        changed: NodeInfo,
        *,
        gone: Collection[BoundPod] = (),
        come: Collection[BoundPod] = (),
    ) -> filters.NodeRejection | None:
        """The framework's rejection of a node without the pods `gone` and with the pods `come`.

        `changed` is the node with these changes.
        """
        refusal = filters.check_node(self.pod, changed, self._served(info))
        if refusal is None and self.spread is not None:
            refusal = self.spread.changed(info, gone, come).check_node(info)
        if refusal is not None:
            return refusal
        hood = self.hood
        if hood is None:
            if not any(pod.anti_affinity for pod in come):
                return None
            labels = _namespace_labels(self.views.objects)
            hood = Neighbourhood(pod=self.pod, namespace_labels=labels)
        return hood.changed(info, gone, come).check_node(info)

    def check_devices(self, info: NodeInfo) -> filters.NodeRejection | None:
        """The devices' rejection of a node, computed anew and not cached; raises Aborted."""
        if not self.claims and self.wanted is None:
            return None
        devices = self._devices(info)
        if devices.error:
            raise Aborted(devices.error)
        return devices.refusal

    def _is_about_others(self, devices: DeviceVerdict) -> bool:
        return devices.claims is not None and devices.claims != self.claim_keys

    def _devices(self, info: NodeInfo) -> DeviceVerdict:
        unavailable = tuple(
            index for index, claim in enumerate(self.claims) if not self.is_available(claim, info)
        )
        made = DeviceVerdict()
        wanted = self.claims_on(info, made)
        if self.allocator is not None and wanted and made.refusal is None:
            answer = self.allocator.allocate(info.node, wanted)
            match answer:
                case Allocation():
                    made.allocation = answer
                case Failure(timed_out=True) if self.rules.quirks.r3:
                    made.refusal = GAVE_UP
                case Failure(timed_out=True):
                    made.error = f"node {info.name}: {GAVE_UP.reasons[0]}"
                case Failure(scope=FailureScope.NODE, text=text):
                    made.refusal = filters.NodeRejection(plugin=DEVICES, reasons=(text,))
                    made.claims = None if text == INVALID_POOLS else self.claim_keys
                case Failure(text=text):
                    made.error = text
                    made.claims = self.claim_keys
                case DoesNotFit():
                    made.refusal = CANNOT_ALLOCATE
        if made.error and not self.rules.quirks.c16:
            made.refusal = filters.NodeRejection(plugin=DEVICES, reasons=(made.error,))
            made.error = ""
        if made.refusal is not None or made.error:
            # Parity: controllers.md C12, the unavailable claims of such a node are not recorded.
            if not self.rules.quirks.c12:
                made.unavailable = unavailable
            return made
        if unavailable:
            made.refusal = NOT_AVAILABLE
            made.unavailable = unavailable
        elif self.scores_devices:
            drawn = [] if made.allocation is None else made.allocation.allocation_results(str)
            made.score = pod_claims.rank_score(self.claims, drawn)
        return made

    def claims_on(self, info: NodeInfo, made: DeviceVerdict) -> tuple[JsonObject, ...]:
        """The claims to allocate on a node; the one for extended resources is the last.

        Sets `served` or `refusal` of the verdict `made`.
        """
        if self.wanted is None:
            return self.fresh
        made.refusal = self._extend(info, made)
        claim = self.extended_claim(made.served)
        return self.fresh if claim is None else (*self.fresh, claim.tree)

    def _served(self, info: NodeInfo) -> frozenset[str]:
        """The extended resources that devices provide on this node."""
        if self.wanted is None:
            return frozenset()
        return frozenset(name for name in self.wanted.classes if info.has(name) == 0)

    def _extend(self, info: NodeInfo, made: DeviceVerdict) -> filters.NodeRejection | None:
        """Sets the extended resources that devices serve in the verdict, or returns a rejection."""
        assert self.wanted is not None, "called for pods with extended resources"
        for name in self.wanted.amounts:
            if name not in self.wanted.classes and info.has(name) == 0:
                return CANNOT_FIT
        served = self._served(info)
        if not served and not self.claims:
            return None
        if self.wanted.leftover is not None:
            return LEFT_OVER
        made.served = served
        return None

    def is_available(self, claim: PodClaim, info: NodeInfo) -> bool:
        """False when the claim is allocated and cannot be used on the node."""
        allocation = claim.allocation
        if allocation is None:
            return True
        if not pod_claims.reaches(claim, info.name, info.labels):
            return False
        if not self.rules.features.binding_conditions or not binding_conditions.has_conditions(
            allocation
        ):
            return True
        look = binding_conditions.look(claim.tree, allocation, self.now, self.rules.binding_timeout)
        return look.readiness not in (BindingReadiness.FAILED, BindingReadiness.TIMED_OUT)


def build_allocator(rules: "SchedulerRules", views: DeviceViews) -> Allocator:
    """An allocator of the devices and claims as they are."""
    return Allocator(
        views.inventory,
        Classes(views.objects),
        views.allocated,
        rules.features,
        compiler=rules.compiler,
        quirks=rules.allocator_quirks,
    )


def begin(
    rules: SchedulerRules,
    views: DeviceViews,
    nodes: NodeIndex,
    verdicts: Verdicts,
    pod: PodSpec,
    claims: tuple[PodClaim, ...],
    now: Instant,
) -> Cycle:
    """Begins an attempt: resolves its inputs and builds the allocator; checks no node yet."""
    fresh = tuple(claim.tree for claim in claims if claim.allocation is None)
    tree = views.objects.get(pod_key(pod.facts.namespace, pod.facts.name)) or {}
    wanted = _wanted(rules, views.objects, pod)
    allocator = build_allocator(rules, views) if fresh or wanted is not None else None
    waits = any(
        claim.allocation is not None and binding_conditions.has_conditions(claim.allocation)
        for claim in claims
    )
    return Cycle(
        rules=rules,
        views=views,
        nodes=nodes,
        pod=pod,
        now=now,
        claims=claims,
        kind=KindOfPod()
        if waits
        else verdicts.of(pod.shape, _claims_of(claims, wanted, tree), nodes=len(nodes)),
        hood=inter_pod_affinity.survey(pod, nodes, _namespace_labels(views.objects)),
        spread=pod_topology_spread.survey(
            views.objects, pod, nodes, tree, counts_empty=not rules.quirks.r6
        ),
        allocator=allocator,
        fresh=fresh,
        scores_devices=_scores_devices(rules) and pod_claims.has_alternatives(claims),
        fails_to_score=fails_to_score(rules, len(fresh), len(claims)),
        is_cached=not waits,
        tree=tree,
        wanted=wanted,
        nominated=nodes.nominations.rivals(pod.facts.uid, pod.priority, nodes.holds),
    )


def fails_to_score(rules: SchedulerRules, fresh: int, claims: int) -> bool:
    """Whether scoring fails for a pod with `claims` of which `fresh` are not allocated (R2)."""
    return rules.quirks.r2 and _scores_devices(rules) and 0 < fresh < claims


def _scores_devices(rules: SchedulerRules) -> bool:
    return rules.gates.enabled("DRAPrioritizedList") and not rules.quirks.r1


def _wanted(rules: SchedulerRules, objects: ObjectsReader, pod: PodSpec) -> ExtendedRequests | None:
    if not rules.gates.enabled("DRAExtendedResource"):
        return None
    wanted = extended.wanted_by(objects, pod.facts, pod.amounts.requests)
    # Parity: controllers.md 3.10; this plug-in ignores a pod none of whose resources has a class.
    return wanted if wanted is not None and wanted.classes else None


def _claims_of(
    claims: tuple[PodClaim, ...], wanted: ExtendedRequests | None, tree: JsonObject
) -> bytes:
    """Bytes that are equal for pods whose claims are the same to the devices' filter."""
    if not claims and wanted is None:
        return b""
    parts: list[object] = []
    if wanted is not None:
        spec = meta.spec(tree)
        for container in (
            *core.init_containers_of(spec),
            None,
            *core.containers_of(spec),
        ):
            parts.append(
                None
                if container is None
                else [
                    container.get("name"),
                    container.get("resources"),
                    container.get("restartPolicy"),
                ]
            )
        parts.append(str(wanted.leftover))
    for claim in claims:
        spec = json_tree.get(claim.tree, "spec")
        parts.append([spec] if claim.allocation is None else [spec, claim.allocation])
    return canonical_json(parts)


def _namespace_labels(objects: ObjectsReader) -> Callable[[str], Mapping[str, str]]:
    def labels(namespace: str) -> Mapping[str, str]:
        tree = objects.get(ObjectKey(*api_resources.NAMESPACES, "", namespace))
        return {} if tree is None else meta.labels(tree)

    return labels
