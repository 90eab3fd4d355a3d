"""DefaultPreemption: chooses the pods to evict so that a pod of higher priority fits. Pure.

It runs when no node fits. On each node where evictions may help, it removes all pods of lower
priority from a copy of the node. When the incoming pod fits then, it puts back as many as possible:
first those that a disruption budget protects, then the more important ones. Of the nodes with
victims it chooses the one with the lowest cost. `preemption_writes` writes the result.

Parity: the documentation of pod priority and preemption; controllers.md 4.3 for the texts:
pre-emption never frees devices, because evictions cannot cure a refusal by DynamicResources. Free
choices: the search begins at the place in the node order at which the attempt began (upstream: at a
random one), pods that start together rank in the order of their creation and then by name, whatever
the scheduler has seen of them since it began (upstream: any order), and of equal nodes the first is
chosen (upstream: any).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.nodes import NodeInfo, drop, take
from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod
from app.domain.controllers.scheduling.plugins import disruption_budgets
from app.domain.controllers.scheduling.plugins.disruption_budgets import DisruptionBudget
from app.domain.controllers.scheduling.reports import messages
from app.domain.controllers.scheduling.scheduling_cycle.cycle import Aborted, Cycle
from app.domain.objects.reader import ObjectsReader
from app.domain.values import condition_types, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NamespacedName
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant, TimestampError

NAME = "DefaultPreemption"

CONDITION_REASON = "PreemptionByScheduler"

CANDIDATES_MIN = 100
CANDIDATES_PERCENT = 10
"""The number of nodes with victims to compare: a tenth of those where it may help, at least 100."""

_NOBODY = NodeRejection(plugin=NAME, reasons=(messages.NO_VICTIMS,))
_PRIORITY_SPAN = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionCandidate:
    """A node and its victims, the most important first.

    `violations` is the number of victims whose eviction violates a disruption budget. `started` is
    the earliest start of the victims with the highest priority.
    """

    node: str
    victims: tuple[BoundPod, ...]
    violations: int
    started: Instant

    @property
    def cost(self) -> tuple[int, int, int, int, int]:
        """The numbers by which candidates are compared, in this order; lower is better."""
        return (
            self.violations,
            self.victims[0].priority,
            sum(victim.priority + _PRIORITY_SPAN for victim in self.victims),
            len(self.victims),
            -self.started,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """The result of the post filter.

    With `chosen` the pod is nominated for its node, and `displaced` pods lose their nomination.
    `text` goes into the message; with `is_alone` it replaces the texts of the other post filters.
    With `keeps_nomination` the pod keeps its nominated node. `candidates` is the number of nodes
    that were compared.
    """

    text: str = ""
    is_alone: bool = False
    keeps_nomination: bool = False
    chosen: PreemptionCandidate | None = None
    candidates: int = 0
    displaced: tuple[NamespacedName, ...] = ()


NEVER = Preemption(text=f"preemption: {messages.NEVER}", keeps_nomination=True)
WAITS = Preemption(text=f"preemption: {messages.AWAITS_VICTIMS}", keeps_nomination=True)


def helpless(count: int, *, never: bool) -> Preemption:
    """The result when evictions cannot help on any node."""
    return NEVER if never else _in_vain(count, {messages.NOT_HELPFUL: count})


def find(
    cycle: Cycle, hopeful: Sequence[NodeInfo], *, start: int, known: dict[int, Preemption]
) -> Preemption:
    """Chooses a node and its victims. `hopeful` are the nodes whose refusal evictions may cure.

    `known` caches results without a chosen node by priority, for other pods with equal refusals.
    """
    pod = cycle.pod
    if pod.never_preempts:
        return NEVER
    if awaits_victims(cycle):
        return WAITS
    count = len(cycle.nodes)
    lowest = cycle.nodes.priorities.lowest
    if not hopeful or lowest is None or lowest >= pod.priority:
        return _in_vain(
            count,
            {messages.NOT_HELPFUL: count - len(hopeful), messages.NO_VICTIMS: len(hopeful)},
        )
    preempted = known.get(pod.priority)
    if preempted is None:
        preempted = _search(cycle, hopeful, start)
        if preempted.chosen is None:
            known[pod.priority] = preempted
    return preempted


def awaits_victims(cycle: Cycle) -> bool:
    """True when the pod has a node on which victims of a pre-emption are still terminating.

    The pod does not wait for a node whose refusal evictions cannot cure.
    """
    name = core.nominated_node_name(cycle.tree)
    info = cycle.nodes.get(name) if name else None
    if info is None:
        return False
    refusal = cycle.check(info, cycle.verdict(info))
    if refusal is not None and not refusal.resolvable:
        return False
    return any(
        bound.priority < cycle.pod.priority and is_victim(cycle.views.objects, bound.place)
        for bound in info.pods.values()
    )


def is_victim(objects: ObjectsReader, place: NamespacedName) -> bool:
    """True when a pod terminates because of a pre-emption."""
    tree = objects.get(pod_key(*place))
    if tree is None or "deletionTimestamp" not in tree["metadata"]:
        return False
    return any(
        (condition.type, condition.status, condition.reason)
        == (condition_types.DISRUPTION_TARGET, "True", CONDITION_REASON)
        for condition in meta.conditions(tree)
    )


def candidates_wanted(hopeful: int) -> int:
    """The number of nodes with victims after which the search may end."""
    return min(max(hopeful * CANDIDATES_PERCENT // 100, CANDIDATES_MIN), hopeful)


def choose(cycle: Cycle, candidates: Sequence[PreemptionCandidate]) -> PreemptionCandidate:
    """The candidate with the lowest cost; of several the `tie_break`'s choice, else the first."""
    least = min(candidate.cost for candidate in candidates)
    best = [candidate for candidate in candidates if candidate.cost == least]
    if len(best) == 1 or cycle.rules.tie_break is None:
        return best[0]
    names = [candidate.node for candidate in best]
    wanted = cycle.rules.tie_break(cycle.pod.facts.uid, names, names[0])
    return best[names.index(wanted)] if wanted in names else best[0]


def _search(cycle: Cycle, hopeful: Sequence[NodeInfo], start: int) -> Preemption:
    count = len(cycle.nodes)
    reasons = {messages.NOT_HELPFUL: count - len(hopeful)}
    errors: dict[str, None] = {}
    candidates: list[PreemptionCandidate] = []
    protected = disruption_budgets.read(cycle.views.objects)
    wanted = candidates_wanted(len(hopeful))
    first = start % count % len(hopeful)
    has_harmless = False
    for info in (*hopeful[first:], *hopeful[:first]):
        try:
            answer = _try_node(cycle, info, protected)
        except Aborted as abort:
            errors[messages.filter_error(abort.text)] = None
            continue
        if isinstance(answer, NodeRejection):
            for reason in answer.reasons:
                reasons[reason] = reasons.get(reason, 0) + 1
            continue
        candidates.append(answer)
        has_harmless |= not answer.violations
        if has_harmless and len(candidates) >= wanted:
            break
    if not candidates:
        if errors:
            text = next(iter(errors)) if len(errors) == 1 else f"[{', '.join(errors)}]"
            return Preemption(text=f"preemption: {text}", is_alone=True, keeps_nomination=True)
        return _in_vain(count, reasons)
    chosen = choose(cycle, candidates)
    text = messages.preempting(chosen.node, len(chosen.victims))
    return Preemption(
        text="" if cycle.rules.quirks.r7 else text,
        is_alone=True,
        chosen=chosen,
        candidates=len(candidates),
        displaced=tuple(_displaced(cycle, chosen.node)),
    )


def _in_vain(nodes: int, reasons: Mapping[str, int]) -> Preemption:
    counted = {reason: count for reason, count in reasons.items() if count}
    return Preemption(text=messages.preemption(nodes, counted))


def _displaced(cycle: Cycle, node: str) -> Iterator[NamespacedName]:
    """The pods of lower priority nominated for the node, which may not fit there any more."""
    for other in cycle.nodes.nominations.on(node):
        if other.priority < cycle.pod.priority and not cycle.nodes.holds(other.place):
            yield other.place


class _Trial:
    """A node without some of its pods."""

    def __init__(self, cycle: Cycle, info: NodeInfo, gone: Sequence[BoundPod]) -> None:
        self._cycle = cycle
        self._info = info
        self._gone = {pod.place: pod for pod in gone}
        self._node = info.changed(gone, ())

    def refusal(self) -> NodeRejection | None:
        """The framework's rejection, or None; nominated pods count as in every attempt."""
        cycle, gone = self._cycle, tuple(self._gone.values())
        if rivals := cycle.nominated.get(self._info.name, ()):
            crowded = self._node.changed((), rivals)
            refusal = cycle.check_changed(self._info, crowded, gone=gone, come=rivals)
            if refusal is not None:
                return refusal
        return cycle.check_changed(self._info, self._node, gone=gone)

    def reprieve(self, pod: BoundPod) -> bool:
        """Puts the pod back if the incoming pod still fits, and returns whether it does."""
        del self._gone[pod.place]
        take(self._node, pod)
        if self.refusal() is None:
            return True
        self._gone[pod.place] = pod
        drop(self._node, pod)
        return False


def _try_node(
    cycle: Cycle, info: NodeInfo, protected: Sequence[DisruptionBudget]
) -> PreemptionCandidate | NodeRejection:
    """The victims on one node, or its rejection. Raises Aborted for an error of the allocator."""
    lower = [pod for pod in info.pods.values() if pod.priority < cycle.pod.priority]
    if not lower:
        return _NOBODY
    trial = _Trial(cycle, info, lower)
    refusal = trial.refusal() or cycle.check_devices(info)
    if refusal is not None:
        return refusal
    started = {pod.place: _started(cycle, pod) for pod in lower}
    lower.sort(key=lambda pod: (-pod.priority, started[pod.place], _created(cycle, pod), pod.place))
    guarded, free = disruption_budgets.split(lower, protected)
    spared = {pod.place for pod in (*guarded, *free) if trial.reprieve(pod)}
    victims = tuple(pod for pod in lower if pod.place not in spared)
    if not victims:
        # The pod fits without any eviction, so there is no other reason to give.
        return _NOBODY
    highest = victims[0].priority
    return PreemptionCandidate(
        node=info.name,
        victims=victims,
        violations=sum(pod.place not in spared for pod in guarded),
        started=min(started[pod.place] for pod in victims if pod.priority == highest),
    )


def _created(cycle: Cycle, pod: BoundPod) -> str:
    return meta.creation_timestamp(cycle.views.objects.get(pod_key(*pod.place)) or {})


def _started(cycle: Cycle, pod: BoundPod) -> Instant:
    """The start time of the pod; a pod that has not started counts as starting now."""
    tree: JsonView = cycle.views.objects.get(pod_key(*pod.place)) or {}
    try:
        return timestamps.parse(core.start_time(tree))
    except TimestampError:
        return cycle.now
