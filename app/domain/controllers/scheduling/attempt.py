"""One attempt to find a node for one pod: filters, devices, scores, post filter. Pure.

The attempt reads the views and the node index as they are and returns what it would do; writing it
is `writes`. Parity: controllers.md 3.3 to 3.7 and 4.2 to 4.5.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from app.domain.allocation import (
    AllocatedState,
    Allocator,
    Failure,
    Features,
    Quirks,
    Refusal,
    Scope,
)
from app.domain.allocation import Allocation as Found
from app.domain.controllers.gates import Gates
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import CLASSES, NAMESPACES
from app.domain.controllers.scheduling import (
    binding,
    filters,
    messages,
    neighbours,
    pod_claims,
    scoring,
    share_ids,
)
from app.domain.controllers.scheduling.binding import Readiness
from app.domain.controllers.scheduling.neighbours import Neighbourhood
from app.domain.controllers.scheduling.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.pod_claims import ClaimsNotReady, PodClaim
from app.domain.controllers.scheduling.pod_spec import PodSpec
from app.domain.controllers.scheduling.verdicts import DeviceVerdict, KindOfPod, Verdict, Verdicts
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory
from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects.reader import ObjectsReader
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DEVICES = "DynamicResources"

CANNOT_ALLOCATE = filters.Refusal(plugin=DEVICES, reasons=("cannot allocate all claims",))
NOT_AVAILABLE = filters.Refusal(
    plugin=DEVICES, reasons=("resourceclaim not available on the node",)
)

FEASIBLE_MIN = 100
"""At least so many feasible nodes are looked for, or all when there are fewer nodes."""


TieBreak: TypeAlias = Callable[[str, Sequence[str]], str]
"""Given a pod's uid and the names of several best nodes: which of them, or empty for the first.

Upstream's order of equal nodes is arbitrary; a replay takes the node that was recorded.
"""


class SchedulingViews(Protocol):
    """What the scheduler looks at, all at one revision."""

    @property
    def objects(self) -> ObjectsReader: ...
    @property
    def inventory(self) -> Inventory: ...
    @property
    def allocated(self) -> AllocatedState: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What does not change during the life of a scheduler."""

    gates: Gates
    features: Features
    compiler: SelectorCompiler
    quirks: ControllerQuirks = ControllerQuirks()
    allocator_quirks: Quirks = Quirks()
    tie_break: TieBreak | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What an attempt came to.

    `outcome` is Scheduled, Unschedulable or Error. `allocations` are for the unallocated claims, in
    order. `plugins` rejected the pod. `deallocate` is a claim that the post
    filter frees. `next_start` is where the next attempt begins to look.
    """

    outcome: str
    claims: tuple[PodClaim, ...] = ()
    node: str = ""
    allocations: tuple[JsonObject, ...] = ()
    message: str = ""
    plugins: frozenset[str] = frozenset()
    deallocate: PodClaim | None = None
    next_start: int = 0
    looked_at: int = 0
    feasible: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What the nodes said."""

    reasons: dict[str, int] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    helpless: int = 0
    resolvable: int = 0
    unavailable: set[int] = field(default_factory=set)

    def add(self, refusal: filters.Refusal) -> None:
        for reason in refusal.reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.plugins.add(refusal.plugin)
        if refusal.resolvable:
            self.resolvable += 1
        else:
            self.helpless += 1


class _Aborted(Exception):
    """An allocator error of one node that ends the attempt (C16)."""


class _Classes(Mapping[str, JsonView]):
    """Device classes by name, as the allocator asks for them."""

    def __init__(self, objects: ObjectsReader) -> None:
        self._objects = objects

    def __getitem__(self, name: str) -> JsonView:
        found = self._objects.get(ObjectKey(*CLASSES, "", name))
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._objects.keys(*CLASSES))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(slots=True, kw_only=True)
class _Cycle:
    """One attempt in progress."""

    rules: Rules
    views: SchedulingViews
    nodes: NodeIndex
    pod: PodSpec
    now: Instant
    claims: tuple[PodClaim, ...]
    kind: KindOfPod
    hood: Neighbourhood | None
    allocator: Allocator | None
    fresh: tuple[JsonObject, ...]
    scores_devices: bool
    is_cached: bool

    def verdict(self, info: NodeInfo) -> Verdict:
        """The framework's part, remembered or found out."""
        known = self.kind.by_node.get(info.name)
        if known is not None and known.version == info.version:
            return known
        refusal = filters.check_node(self.pod, info)
        made = Verdict(version=info.version, refusal=refusal)
        if refusal is None:
            made.room = scoring.room_score(self.pod, info)
            made.soft_taints = scoring.soft_taints(self.pod, info)
            made.preference = scoring.preference(self.pod, info)
        self.kind.by_node[info.name] = made
        return made

    def check(self, info: NodeInfo, verdict: Verdict) -> filters.Refusal | None:
        """The first reason against the node; raises _Aborted for an error of the allocator."""
        if verdict.refusal is not None:
            return verdict.refusal
        if self.hood is not None:
            refusal = self.hood.check_node(info)
            if refusal is not None:
                return refusal
        if not self.claims:
            verdict.fits = True
            return None
        devices = verdict.devices
        if devices is None or not self.is_cached:
            devices = verdict.devices = self._devices(info)
        if devices.error:
            raise _Aborted(devices.error)
        verdict.fits = devices.refusal is None and self.is_cached
        return devices.refusal

    def _devices(self, info: NodeInfo) -> DeviceVerdict:
        unavailable = tuple(
            index for index, claim in enumerate(self.claims) if not self.is_available(claim, info)
        )
        made = DeviceVerdict()
        if self.allocator is not None:
            answer = self.allocator.allocate(info.node, self.fresh)
            match answer:
                case Found():
                    made.allocation = answer
                case Failure(timed_out=True):
                    made.error = f"node {info.name}: timed out trying to allocate devices"
                case Failure(scope=Scope.NODE, text=text):
                    made.refusal = filters.Refusal(plugin=DEVICES, reasons=(text,))
                case Failure(text=text):
                    made.error = text
                case Refusal():
                    made.refusal = CANNOT_ALLOCATE
        if made.error and not self.rules.quirks.c16:
            made.refusal = filters.Refusal(plugin=DEVICES, reasons=(made.error,))
            made.error = ""
        if made.refusal is not None or made.error:
            # Parity: C12, the unavailable claims of such a node are not remembered.
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

    def is_available(self, claim: PodClaim, info: NodeInfo) -> bool:
        """False when the claim is allocated and cannot be used on the node."""
        allocation = claim.allocation
        if allocation is None:
            return True
        if not pod_claims.reaches(claim, info.name, info.labels):
            return False
        if not self.rules.features.binding_conditions or not binding.has_conditions(allocation):
            return True
        look = binding.look(claim.tree, allocation, self.now)
        return look.readiness not in (Readiness.FAILED, Readiness.TIMED_OUT)


def attempt(
    rules: Rules,
    views: SchedulingViews,
    nodes: NodeIndex,
    verdicts: Verdicts,
    pod: PodSpec,
    *,
    start: int,
    now: Instant,
    nominated: str = "",
) -> Attempt:
    """Find a node for the pod. `start` is the place in the node order to begin at."""
    if not len(nodes):
        return Attempt(outcome="Unschedulable", message=messages.NO_NODES, next_start=start)
    try:
        claims = pod_claims.resolve(views.objects, pod.facts)
        pod_claims.check_classes(views.objects, claims, rules.gates)
    except ClaimsNotReady as problem:
        return _prefilter_failure(nodes, pod, str(problem), start)
    cycle = begin(rules, views, nodes, verdicts, pod, claims, now)
    if cycle.kind.hopeless_at == nodes.version and isinstance(cycle.kind.hopeless, _Tally):
        return _no_node(cycle, cycle.kind.hopeless, start)
    if nominated and (info := nodes.get(nominated)) is not None:
        chosen = _try_nominated(cycle, info)
        if chosen is not None:
            return _scheduled(cycle, chosen, start=start, looked_at=1, feasible=1)
    return _search(cycle, start)


def nodes_to_find(count: int) -> int:
    """After how many feasible nodes the search stops (controllers.md 4.4)."""
    if count < FEASIBLE_MIN:
        return count
    percentage = max(50 - count // 125, 5)
    return max(count * percentage // 100, FEASIBLE_MIN)


def begin(
    rules: Rules,
    views: SchedulingViews,
    nodes: NodeIndex,
    verdicts: Verdicts,
    pod: PodSpec,
    claims: tuple[PodClaim, ...],
    now: Instant,
) -> _Cycle:
    """The state of one attempt: claims resolved, the allocator built, nothing asked yet."""
    fresh = tuple(claim.tree for claim in claims if claim.allocation is None)
    allocator = None
    if fresh:
        allocator = Allocator(
            views.inventory,
            _Classes(views.objects),
            views.allocated,
            rules.features,
            compiler=rules.compiler,
            quirks=rules.allocator_quirks,
        )
    waits = any(
        claim.allocation is not None and binding.has_conditions(claim.allocation)
        for claim in claims
    )
    return _Cycle(
        rules=rules,
        views=views,
        nodes=nodes,
        pod=pod,
        now=now,
        claims=claims,
        kind=KindOfPod() if waits else verdicts.of(_kind_of(pod, claims)),
        hood=neighbours.survey(pod, nodes, _namespace_labels(views.objects)),
        allocator=allocator,
        fresh=fresh,
        scores_devices=rules.gates.enabled("DRAPrioritizedList")
        and pod_claims.has_alternatives(claims),
        is_cached=not waits,
    )


def _kind_of(pod: PodSpec, claims: tuple[PodClaim, ...]) -> bytes:
    if not claims:
        return pod.shape
    parts: list[object] = []
    for claim in claims:
        spec = json_tree.get(claim.tree, "spec")
        parts.append([spec] if claim.allocation is None else [spec, claim.allocation])
    return pod.shape + canonical_json(parts)


def _namespace_labels(objects: ObjectsReader) -> Callable[[str], Mapping[str, str]]:
    def labels(namespace: str) -> Mapping[str, str]:
        tree = objects.get(ObjectKey(*NAMESPACES, "", namespace))
        return {} if tree is None else json_tree.labels(tree, "metadata", "labels")

    return labels


def _try_nominated(cycle: _Cycle, info: NodeInfo) -> NodeInfo | None:
    try:
        return info if cycle.check(info, cycle.verdict(info)) is None else None
    except _Aborted:
        return None


def _search(cycle: _Cycle, start: int) -> Attempt:
    order = cycle.nodes.order()
    count = len(order)
    wanted = nodes_to_find(count)
    feasible: list[tuple[NodeInfo, Verdict]] = []
    tally = _Tally()
    looked_at = 0
    first = start % count
    known = cycle.kind.by_node
    alone = cycle.hood is None
    try:
        for info in (*order[first:], *order[:first]):
            looked_at += 1
            found = known.get(info.name)
            if found is not None and found.fits and alone and found.version == info.version:
                feasible.append((info, found))
                if len(feasible) >= wanted:
                    break
                continue
            verdict = cycle.verdict(info)
            refusal = cycle.check(info, verdict)
            if refusal is None:
                feasible.append((info, verdict))
                if len(feasible) >= wanted:
                    break
            else:
                tally.add(refusal)
                if verdict.devices is not None:
                    tally.unavailable.update(verdict.devices.unavailable)
    except _Aborted as abort:
        return Attempt(
            outcome="Error",
            claims=cycle.claims,
            message=messages.filter_error(str(abort)),
            # The node in error counts neither as feasible nor as rejected.
            next_start=(first + looked_at - 1) % count,
            looked_at=looked_at,
        )
    following = (first + looked_at) % count
    if not feasible:
        if cycle.hood is None and cycle.is_cached:
            cycle.kind.hopeless_at, cycle.kind.hopeless = cycle.nodes.version, tally
        return _no_node(cycle, tally, following)
    chosen = feasible[_choose(cycle, feasible)][0]
    return _scheduled(cycle, chosen, start=following, looked_at=looked_at, feasible=len(feasible))


def _choose(cycle: _Cycle, feasible: list[tuple[NodeInfo, Verdict]]) -> int:
    if len(feasible) == 1:
        return 0
    found = [verdict for _, verdict in feasible]
    taints = [verdict.soft_taints for verdict in found]
    devices = [verdict.devices.score if verdict.devices else 0 for verdict in found]
    totals = scoring.totals(
        [verdict.room for verdict in found],
        taints,
        [verdict.preference for verdict in found] if cycle.pod.preferences else (),
        devices if cycle.scores_devices else (),
    )
    first = scoring.winner(totals)
    if cycle.rules.tie_break is None or totals.count(totals[first]) == 1:
        return first
    best = [place for place, total in enumerate(totals) if total == totals[first]]
    names = [feasible[place][0].name for place in best]
    wanted = cycle.rules.tie_break(cycle.pod.facts.uid, names)
    return best[names.index(wanted)] if wanted in names else first


def _scheduled(
    cycle: _Cycle, chosen: NodeInfo, *, start: int, looked_at: int, feasible: int
) -> Attempt:
    devices = cycle.verdict(chosen).devices
    allocations: tuple[JsonObject, ...] = ()
    if devices is not None and devices.allocation is not None:
        uids = [json_tree.text(tree, "metadata", "uid") for tree in cycle.fresh]
        ids = share_ids.derived(cycle.pod.facts.uid, uids)
        allocations = tuple(devices.allocation.allocation_results(ids))
    return Attempt(
        outcome="Scheduled",
        claims=cycle.claims,
        node=chosen.name,
        allocations=allocations,
        next_start=start,
        looked_at=looked_at,
        feasible=feasible,
    )


def _no_node(cycle: _Cycle, tally: _Tally, start: int) -> Attempt:
    count = len(cycle.nodes)
    freed = _to_deallocate(cycle, tally)
    if not cycle.claims:
        after = "no new claims to deallocate"
    elif freed is not None:
        after = "deallocation of ResourceClaim completed"
    else:
        after = "still not schedulable"
    preemption = messages.preemption(
        count,
        helpless=tally.helpless,
        resolvable=tally.resolvable,
        never=cycle.pod.never_preempts,
    )
    return Attempt(
        outcome="Unschedulable",
        claims=cycle.claims,
        message=messages.unfit(count, messages.counted(tally.reasons), (after, preemption)),
        plugins=frozenset(tally.plugins),
        deallocate=freed,
        next_start=start,
        looked_at=count,
        reasons=tally.reasons,
    )


def _to_deallocate(cycle: _Cycle, tally: _Tally) -> PodClaim | None:
    """The unavailable claim with the lowest number that nobody else uses."""
    uid = cycle.pod.facts.uid
    for index in sorted(tally.unavailable):
        claim = cycle.claims[index]
        reserved = json_tree.objects(claim.tree, "status", "reservedFor")
        if not reserved or (len(reserved) == 1 and reserved[0].get("uid") == uid):
            return claim
    return None


def _prefilter_failure(nodes: NodeIndex, pod: PodSpec, text: str, start: int) -> Attempt:
    count = len(nodes)
    preemption = messages.preemption(count, helpless=count, resolvable=0, never=pod.never_preempts)
    return Attempt(
        outcome="Unschedulable",
        message=messages.unfit(count, text, ("no new claims to deallocate", preemption)),
        plugins=frozenset((DEVICES,)),
        next_start=start,
        reasons={text: count},
    )
