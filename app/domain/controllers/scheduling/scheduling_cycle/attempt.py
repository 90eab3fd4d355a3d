"""One attempt to find a node for one pod: filters, devices, scores, post filter. Pure.

The attempt reads the views and the node index and returns its result; `writes` turns the result
into commands. Parity: controllers.md 3.3 to 3.7 and 4.2 to 4.5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, islice

from app.domain.allocation.allocator import INVALID_POOLS
from app.domain.allocation.reasons.summary import CausesOf
from app.domain.controllers.plan import DeviceViews
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.scheduling.framework import filters, scoring
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.plugins import volume_binding
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import (
    ClaimsNotReady,
    PodClaim,
)
from app.domain.controllers.scheduling.reports import messages
from app.domain.controllers.scheduling.scheduling_cycle import default_preemption as preemption
from app.domain.controllers.scheduling.scheduling_cycle import node_causes
from app.domain.controllers.scheduling.scheduling_cycle.cycle import (
    CANNOT_ALLOCATE,
    DEVICES,
    NOT_AVAILABLE,
    Aborted,
    BindDelay,
    Cycle,
    SchedulerRules,
    TieBreak,
    begin,
)
from app.domain.controllers.scheduling.scheduling_cycle.default_preemption import Preemption
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import (
    FITS,
    REFUSED,
    UNKNOWN,
    NodeVerdict,
    Verdicts,
)
from app.domain.log import ObjectKey
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

__all__ = [
    "DEVICES",
    "NOT_AVAILABLE",
    "Attempt",
    "BindDelay",
    "SchedulerRules",
    "TieBreak",
    "attempt",
    "begin",
    "nodes_to_find",
]

CONTRADICTORY = filters.NodeRejection(
    plugin="NodeAffinity", reasons=("pod affinity terms conflict",)
)

FEASIBLE_MIN = 100
"""The least number of feasible nodes to search for; with fewer nodes all are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of an attempt.

    `outcome` is Scheduled, Unschedulable or Error. `allocations` are for the unallocated claims, in
    order, followed by that of `extended`, the claim for extended resources. `plugins` rejected the
    pod. `deallocate` is a claim that the post filter frees, `delete_claim` one for extended
    resources that an earlier attempt left. `preemption` is the result of the search for victims.
    `next_start` is the place in the node order at which the next attempt begins. `causes` counts
    the devices' reasons; call it before the views change.
    """

    outcome: str
    claims: tuple[PodClaim, ...] = ()
    node: str = ""
    allocations: tuple[JsonObject, ...] = ()
    extended: ExtendedClaim | None = None
    delete_claim: ObjectKey | None = None
    message: str = ""
    plugins: frozenset[str] = frozenset()
    deallocate: PodClaim | None = None
    preemption: Preemption = Preemption()
    next_start: int = 0
    looked_at: int = 0
    feasible: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    causes: CausesOf | None = field(default=None, compare=False)

    @property
    def moves_others(self) -> bool:
        """True when a failed attempt changes objects that later ones of the same step read."""
        return self.deallocate is not None or self.preemption.chosen is not None


@dataclass(slots=True, kw_only=True)
class _RejectionTally:
    """The rejections of all nodes, counted by reason."""

    reasons: dict[str, int] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    hopeful: list[NodeInfo] = field(default_factory=list)
    in_vain: dict[int, Preemption] = field(default_factory=dict)
    unavailable: set[int] = field(default_factory=set)
    names_claims: bool = False
    refusing: list[NodeInfo] = field(default_factory=list)

    def add(self, info: NodeInfo, refusal: filters.NodeRejection) -> None:
        for reason in refusal.reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.plugins.add(refusal.plugin)
        if refusal.resolvable:
            self.hopeful.append(info)


def attempt(
    rules: SchedulerRules,
    views: DeviceViews,
    nodes: NodeIndex,
    verdicts: Verdicts,
    pod: PodSpec,
    *,
    start: int,
    now: Instant,
    nominated: str = "",
    written: Mapping[ObjectKey, JsonObject] = pod_claims.NOTHING_WRITTEN,
) -> Attempt:
    """Finds a node for the pod.

    `start` is the place in the node order to begin at; `written` are claims as earlier plans of the
    same step write them.
    """
    if not len(nodes):
        return Attempt(outcome="Unschedulable", message=messages.NO_NODES, next_start=start)
    if pod.only_nodes is not None and not pod.only_nodes:
        return _prefilter_failure(nodes, pod, CONTRADICTORY, start, rules.quirks)
    if rules.checks_volumes and pod.volume_claims:
        refused = volume_binding.check_claims(views.objects, pod)
        if refused is not None:
            return _prefilter_failure(nodes, pod, refused, start, rules.quirks)
    try:
        claims = pod_claims.resolve(views.objects, pod.facts, written)
        is_in_flight = views.allocated.is_in_flight
        pod_claims.check_fresh(views.objects, claims, rules.gates, is_in_flight)
    except ClaimsNotReady as problem:
        refusal = filters.NodeRejection(plugin=DEVICES, reasons=(str(problem),))
        return _prefilter_failure(nodes, pod, refusal, start, rules.quirks)
    cycle = begin(rules, views, nodes, verdicts, pod, claims, now)
    is_hopeless = cycle.kind.hopeless_at == nodes.version and not cycle.depends_on_others
    if is_hopeless and isinstance(cycle.kind.hopeless, _RejectionTally):
        return _no_node(cycle, cycle.kind.hopeless, start)
    if nominated and (info := nodes.get(nominated)) is not None:
        chosen = _try_nominated(cycle, info)
        if chosen is not None:
            return _scheduled(cycle, chosen, start=start, looked_at=1, feasible=1)
    return _search(cycle, start)


def nodes_to_find(count: int) -> int:
    """The number of feasible nodes after which the search stops (controllers.md 4.4)."""
    if count < FEASIBLE_MIN:
        return count
    percentage = max(50 - count // 125, 5)
    return max(count * percentage // 100, FEASIBLE_MIN)


def _try_nominated(cycle: Cycle, info: NodeInfo) -> NodeInfo | None:
    try:
        return info if cycle.check(info, cycle.verdict(info)) is None else None
    except Aborted:
        return None


def _search(cycle: Cycle, start: int) -> Attempt:
    order = cycle.nodes.order()
    count = len(order)
    first = start % count
    named = _named(cycle)
    verdicts: Sequence[NodeVerdict] | None = None
    try:
        if named is not None:
            feasible, looked_at = _walk_one_by_one(cycle, named, start % max(len(named), 1))
        elif cycle.depends_on_others or not cycle.is_cached:
            feasible, looked_at = _walk_one_by_one(cycle, order, first)
        else:
            feasible, looked_at, verdicts = _walk_in_runs(cycle, order, first)
    except Aborted as abort:
        return Attempt(
            outcome="Error",
            claims=cycle.claims,
            message=messages.filter_error(abort.text),
            # The node in error counts neither as feasible nor as rejected.
            next_start=(first + abort.looked_at - 1) % count,
            looked_at=abort.looked_at,
        )
    following = (first + looked_at) % count
    if not feasible:
        tally = _tally(cycle, order)
        if not cycle.depends_on_others and cycle.is_cached and not tally.names_claims:
            cycle.kind.hopeless_at, cycle.kind.hopeless = cycle.nodes.version, tally
        return _no_node(cycle, tally, following)
    if cycle.fails_to_score and len(feasible) > 1:
        # Parity: controllers.md 10, the plug-in compares the results of the allocator, which are
        # for the unallocated claims only, with all claims of the pod.
        return Attempt(
            outcome="Error",
            claims=cycle.claims,
            message=messages.score_error(len(cycle.fresh)),
            next_start=following,
            looked_at=looked_at,
        )
    chosen = feasible[_choose(cycle, feasible, verdicts)]
    return _scheduled(cycle, chosen, start=following, looked_at=looked_at, feasible=len(feasible))


def _named(cycle: Cycle) -> list[NodeInfo] | None:
    """The nodes that the pod's node affinity names; the search checks and counts no other node.

    None when the affinity does not name nodes.
    """
    names = cycle.pod.only_nodes
    if names is None:
        return None
    infos = (cycle.nodes.get(name) for name in sorted(names))
    return [info for info in infos if info is not None]


def _walk_one_by_one(cycle: Cycle, order: list[NodeInfo], first: int) -> tuple[list[NodeInfo], int]:
    """Checks node after node until enough fit; returns them and the number of checked nodes."""
    wanted = nodes_to_find(len(order))
    feasible: list[NodeInfo] = []
    for looked_at, info in enumerate((*order[first:], *order[:first]), start=1):
        if _fits(cycle, info, cycle.verdict(info), looked_at):
            feasible.append(info)
            if len(feasible) >= wanted:
                return feasible, looked_at
    return feasible, len(order)


def _walk_in_runs(
    cycle: Cycle, order: list[NodeInfo], first: int
) -> tuple[list[NodeInfo], int, list[NodeVerdict]]:
    """Like `_walk_one_by_one`, when no other pod affects a node; does not check known nodes again.

    Also returns the verdicts on the nodes that fit.

    Example: with the states F F ? R F and two nodes wanted, the first two are chosen and the third
    is not checked. With three wanted the third is checked, and the fifth is needed if it is
    rejected.
    """
    count = len(order)
    wanted = nodes_to_find(count)
    states, in_order = cycle.kind.refresh(cycle.nodes), cycle.kind.in_order
    turned = states[first:] + states[:first]
    feasible_count = position = 0
    while feasible_count < wanted:
        unknown = turned.find(UNKNOWN, position)
        end = count if unknown < 0 else unknown
        feasible_count += turned.count(FITS, position, end)
        if feasible_count >= wanted or unknown < 0:
            break
        place = (first + unknown) % count
        verdict = in_order[place] = cycle.verdict(order[place])
        fits = _fits(cycle, order[place], verdict, unknown + 1)
        turned[unknown] = states[place] = FITS if fits else REFUSED
        feasible_count += fits
        position = unknown + 1
    # Hundreds of nodes fit, and nearly all are known: no step of the interpreter for each.
    fitting = turned.translate(_FITTING)
    places = list(islice(compress(range(count), fitting), wanted))
    looked_at = places[-1] + 1 if len(places) >= wanted else count
    del fitting[looked_at:]
    feasible = list(compress(chain(order[first:], order[:first]), fitting))
    verdicts = list(compress(chain(in_order[first:], in_order[:first]), fitting))
    return feasible, looked_at, verdicts


_FITTING = bytes(state == FITS for state in range(256))
"""A translation table: the state of a node that fits becomes 1, every other state 0."""


def _fits(cycle: Cycle, info: NodeInfo, verdict: NodeVerdict, looked_at: int) -> bool:
    """Checks one node; raises Aborted with the number of nodes checked so far."""
    try:
        return cycle.check(info, verdict) is None
    except Aborted as abort:
        raise Aborted(abort.text, looked_at) from abort


def _tally(cycle: Cycle, order: list[NodeInfo]) -> _RejectionTally:
    """Counts the rejections of all nodes; each of them has been checked."""
    tally = _RejectionTally()
    for info in order:
        verdict = cycle.verdict(info)
        refusal = cycle.check(info, verdict)
        assert refusal is not None, "called when no node fits"
        tally.add(info, refusal)
        if refusal is CANNOT_ALLOCATE or refusal.reasons == (INVALID_POOLS,):
            tally.refusing.append(info)
        if verdict.devices is not None:
            tally.unavailable.update(verdict.devices.unavailable)
            tally.names_claims |= verdict.devices.claims is not None
    return tally


def _choose(cycle: Cycle, feasible: list[NodeInfo], verdicts: Sequence[NodeVerdict] | None) -> int:
    if len(feasible) == 1:
        return 0
    totals = scores(cycle, feasible, verdicts)
    first = scoring.winner(totals)
    if cycle.rules.tie_break is None or totals.count(totals[first]) == 1:
        return first
    best = [place for place, total in enumerate(totals) if total == totals[first]]
    names = [feasible[place].name for place in best]
    wanted = cycle.rules.tie_break(cycle.pod.facts.uid, names, feasible[first].name)
    return best[names.index(wanted)] if wanted in names else first


def scores(
    cycle: Cycle, feasible: list[NodeInfo], verdicts: Sequence[NodeVerdict] | None = None
) -> list[int]:
    """The total score of each feasible node; the highest wins.

    `verdicts` are those on the nodes, if they are at hand.
    """
    if verdicts is None:
        known = cycle.kind.by_node
        verdicts = [known[info.name] for info in feasible]
    devices: list[int] = []
    if cycle.scores_devices:
        devices = [verdict.devices.score if verdict.devices else 0 for verdict in verdicts]
    totals = scoring.totals(
        [verdict.room for verdict in verdicts],
        [verdict.soft_taints for verdict in verdicts],
        [verdict.preference for verdict in verdicts] if cycle.pod.preferences else (),
        devices,
    )
    cycle.add_scores(totals, feasible)
    return totals


def _scheduled(
    cycle: Cycle, chosen: NodeInfo, *, start: int, looked_at: int, feasible: int
) -> Attempt:
    devices = cycle.verdict(chosen).devices
    extended = None if devices is None else cycle.extended_claim(devices.served)
    allocations: tuple[JsonObject, ...] = ()
    if devices is not None and devices.allocation is not None:
        fresh = cycle.fresh if extended is None else (*cycle.fresh, extended.tree)
        uids = [meta.uid(tree) for tree in fresh]
        ids = pod_claims.share_ids(cycle.pod.facts.uid, uids)
        allocations = tuple(devices.allocation.allocation_results(ids))
    if twice := _named_twice(cycle.claims):
        # Parity: controllers.md C18, the second entry finds the claim allocated by the first.
        return Attempt(
            outcome="Error",
            claims=cycle.claims,
            message=messages.prebind_failure(
                f"claim {twice} got allocated elsewhere in the meantime"
            ),
            next_start=start,
            looked_at=looked_at,
        )
    return Attempt(
        outcome="Scheduled",
        claims=cycle.claims,
        node=chosen.name,
        allocations=allocations,
        extended=extended,
        next_start=start,
        looked_at=looked_at,
        feasible=feasible,
    )


def _named_twice(claims: tuple[PodClaim, ...]) -> str:
    """The first unallocated claim that two entries of the pod name."""
    seen: set[ObjectKey] = set()
    for claim in claims:
        if claim.allocation is None and claim.key in seen:
            return claim.name
        seen.add(claim.key)
    return ""


def _no_node(cycle: Cycle, tally: _RejectionTally, start: int) -> Attempt:
    count = len(cycle.nodes)
    freed = _to_deallocate(cycle, tally)
    leftover = None if cycle.wanted is None else cycle.wanted.leftover
    if freed is not None:
        after = "deallocation of ResourceClaim completed"
    elif leftover is not None:
        after = "deletion of ResourceClaim completed"
    else:
        has_claims = bool(cycle.claims) or cycle.wanted is not None
        after = messages.nothing_done(cycle.rules.quirks, has_claims=has_claims)
    preempted = preemption.find(cycle, tally.hopeful, start=start, known=tally.in_vain)
    texts = (preempted.text,) if preempted.is_alone else (after, preempted.text)
    return Attempt(
        outcome="Unschedulable",
        claims=cycle.claims,
        message=messages.unfit(count, messages.counted(tally.reasons), texts),
        plugins=frozenset(tally.plugins),
        deallocate=freed,
        delete_claim=leftover if freed is None else None,
        preemption=preempted,
        next_start=start,
        looked_at=count,
        reasons=tally.reasons,
        causes=partial(node_causes.count, cycle, tally.refusing) if tally.refusing else None,
    )


def _to_deallocate(cycle: Cycle, tally: _RejectionTally) -> PodClaim | None:
    """The unavailable claim with the lowest index that no other consumer has reserved."""
    uid = cycle.pod.facts.uid
    for index in sorted(tally.unavailable):
        claim = cycle.claims[index]
        reserved = dra.reserved_for(claim.tree)
        if not reserved or (len(reserved) == 1 and reserved[0].get("uid") == uid):
            return claim
    return None


def _prefilter_failure(
    nodes: NodeIndex,
    pod: PodSpec,
    refusal: filters.NodeRejection,
    start: int,
    quirks: ControllerQuirks,
) -> Attempt:
    count, text = len(nodes), refusal.reasons[0]
    preempted = preemption.helpless(count, never=pod.never_preempts)
    after = messages.nothing_done(quirks, has_claims=False)
    return Attempt(
        outcome="Unschedulable",
        message=messages.unfit(count, text, (after, preempted.text)),
        plugins=frozenset((refusal.plugin,)),
        preemption=preempted,
        next_start=start,
        reasons={text: count},
    )
