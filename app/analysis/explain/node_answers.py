"""The answer of each node to a pod: the first filter that refuses it, or the allocator's answer.

Computed on request, from the views of any revision; a normal scheduling attempt stops earlier.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.analysis.explain.reasons import listed
from app.domain.allocation import Allocation, Allocator, Answer
from app.domain.allocation.reasons import counterfactual, explanation
from app.domain.allocation.reasons.changes import Change, MadeClaim, OpenClosedNode
from app.domain.allocation.reasons.counterfactual import Help
from app.domain.allocation.reasons.explanation import Explanation
from app.domain.controllers.nodes import readiness
from app.domain.controllers.plan import MergingViews, Views
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.plugins import pod_topology_spread, volume_binding
from app.domain.controllers.scheduling.plugins.dynamic_resources import (
    extended_resources,
    pod_claims,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import (
    ClaimsNotReady,
    PodClaim,
)
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.cycle import Aborted, Cycle, build_allocator
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import DeviceVerdict, Verdicts
from app.domain.devices.taints import taint_of
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import requirement_text
from app.domain.values.timestamps import Instant

CLOSING = frozenset((filters.UNSCHEDULABLE.plugin, filters.TAINTED.plugin))
"""The plug-ins that refuse a pod because the node is closed to it, whatever its resources."""

_ELSEWHERE = attempt.NOT_AVAILABLE.reasons[0]
"""The reason of a node on which an allocated claim of the pod cannot be used."""

STEP_MAX = 256
"""The number of events folded between two yields to other tasks."""


KEPT = ", because the node is kept for "
"""The words of a refusal for a pod that was nominated before those that name the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNode:
    """The answer that a closed node would give if it were open.

    `text` is empty when the pod would fit. `change` is the change that opens the node, in the
    imperative. `answer` is the allocator's; None when the open node refuses the pod before the
    allocator is asked. `also` is a second change that opens a node which is closed in two ways, set
    only if the pod would fit then.
    """

    change: str
    text: str
    answer: Answer | None = None
    also: str = ""

    @property
    def opening(self) -> tuple[str, ...]:
        """The changes that open the node so that the pod fits; empty if it does not fit then."""
        if self.also:
            return self.change, self.also
        return () if self.text else (self.change,)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """The answer of one node: `text` is upstream's reason, empty when the pod fits there.

    `answer` is the allocator's; None when the node refuses the pod before the allocator is asked.
    `opened` is the answer that a node closed by a cordon or by taints would give if it were open;
    None where that was not computed. `own` are the pod's allocated claims by name, as they would be
    allocated anew; `elsewhere` names those that cannot be used on the node. Where that is all that
    keeps the pod away and no claim is to be allocated, `without` is the allocator's answer to no
    claims, from which the search for help starts.
    """

    node: str
    text: str
    answer: Answer | None = None
    allocator: Allocator | None = None
    opened: OpenNode | None = None
    own: Mapping[str, JsonView] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    without: Answer | None = None
    made: MadeClaim | None = None
    has_devices: bool = False
    wants_devices: bool = True
    detail: str = ""

    def looking_for_help(
        self,
        *,
        changes_max: int = counterfactual.CHANGES_MAX,
        tries_max: int = counterfactual.TRIES_MAX,
    ) -> Generator[Change, None, list[Help]]:
        """Searches for the smallest proven changes that make the claims fit here, try by try.

        A closed node is opened first; this is one of the changes.
        """
        if self.allocator is None:
            return []
        answer = self.answer or (self.without if self.opened is None else None)
        if answer is not None:
            return (
                yield from counterfactual.what_would_help_in_steps(
                    self.allocator,
                    answer,
                    changes_max=changes_max,
                    tries_max=tries_max,
                    own=self.own,
                    elsewhere=self.elsewhere,
                    made=self.made,
                )
            )
        answer = self.without if self.opened is None else self.opened.answer or self.without
        if self.opened is None or answer is None or changes_max < 2:
            return []
        helps = yield from counterfactual.what_would_help_in_steps(
            self.allocator,
            answer,
            changes_max=changes_max - 1,
            tries_max=tries_max,
            own=self.own,
            elsewhere=self.elsewhere,
            made=self.made,
        )
        opening = OpenClosedNode(text=self.opened.change)
        return [replace(one, changes=(opening, *one.changes)) for one in helps]

    @property
    def is_helpable(self) -> bool:
        """Whether the allocator was asked and refused, on the node as it is or as if open."""
        opened = self.opened
        return bool(self.text) and (
            self.answer is not None
            or self.without is not None
            or (opened is not None and opened.answer is not None and bool(opened.text))
        )

    def still_fails(self, helpful: Help) -> bool:
        """Whether an error of the allocator on this node outlasts changes for another node."""
        if self.allocator is None or self.answer is None:
            return False
        return counterfactual.still_fails(
            self.allocator, self.answer, helpful.changes, own=self.own, made=self.made
        )

    def quirks(self) -> tuple[str, ...]:
        """The upstream defects whose repair alone would change the allocator's answer here."""
        if self.answer is None or self.allocator is None:
            return ()
        return explanation.quirks_in(self.allocator, self.answer)

    def explain(self, *, effort_steps: int = explanation.EFFORT_STEPS) -> Explanation | None:
        """The reasons down to the device; None when the allocator was not asked.

        `effort_steps` bounds the search for failed tries; 0 omits that search.
        """
        if self.answer is None:
            return None
        explained = explanation.explain(self.answer, effort_steps=effort_steps)
        if self.allocator is None:
            return explained
        gone = explanation.disappeared(self.allocator, self.answer)
        return replace(explained, pools=(*explained.pools, *gone))


def indexing(rules: SchedulerRules, views: MergingViews) -> Generator[None, None, NodeIndex]:
    """Builds the index of nodes and bound pods, as of the revision of the views."""
    reconciler = SchedulingReconciler(rules)
    objects = views.objects
    events = [
        objects.event(key)
        for place in (api_resources.NODES, api_resources.PODS)
        for key in objects.keys(*place)
    ]
    ordered = sorted((event for event in events if event), key=lambda event: event.revision)
    for number, event in enumerate(ordered, 1):
        reconciler.fold(event, views)
        if number % STEP_MAX == 0:
            yield
    return reconciler.nodes


def before_nodes(views: Views, tree: JsonObject, rules: SchedulerRules) -> str:
    """The reason why no node is examined at all (controllers.md 3.1, 3.3); empty if nodes are."""
    pod = pod_spec.read(tree)
    try:
        claims = pod_claims.resolve(views.objects, pod.facts)
        refused = volume_binding.check_claims(views.objects, pod) if rules.checks_volumes else None
        if refused is not None:
            return ", ".join(refused.reasons)
        pod_claims.check_fresh(views.objects, claims, rules.gates, lambda _: False)
    except ClaimsNotReady as problem:
        return str(problem)
    return ""


def ask_nodes(
    rules: SchedulerRules,
    views: MergingViews,
    tree: JsonObject,
    *,
    now: Instant,
    node: str = "",
    opened_max: int = 0,
) -> Generator[NodeAnswer | None, None, None]:
    """Yields the answer of each node in the scheduler's order, or only of the node named.

    The first `opened_max` closed nodes are also asked as if they were open. None marks a step of
    preparation, at which the caller may let other tasks run.
    """
    nodes = yield from indexing(rules, views)
    yield from answers(rules, views, nodes, tree, now=now, node=node, opened_max=opened_max)


def answers(
    rules: SchedulerRules,
    views: MergingViews,
    nodes: NodeIndex,
    tree: JsonObject,
    *,
    now: Instant,
    node: str = "",
    opened_max: int = 0,
) -> Iterator[NodeAnswer]:
    """The answers of `ask_nodes`, from an index of the nodes and bound pods of these views."""
    pod = pod_spec.read(tree)
    claims = pod_claims.resolve(views.objects, pod.facts)
    cycle = attempt.begin(rules, views, nodes, Verdicts(), pod, claims, now)
    own = _unallocated(claims)
    # Claims that are allocated elsewhere may be released, also where no claim is to be allocated.
    spare = build_allocator(rules, views) if own and cycle.allocator is None else None
    closed = 0
    for info in nodes.order():
        if node and info.name != node:
            continue
        elsewhere = frozenset(one.name for one in claims if not cycle.is_available(one, info))
        verdict = cycle.verdict(info)
        if verdict.refusal is not None:
            closed += verdict.refusal.plugin in CLOSING
            refused = _refused(cycle, info, verdict.refusal, opens=closed <= opened_max)
            yield _with_claims(refused, cycle, spare, info, own, elsewhere)
            continue
        if text := _refused_for_pods(cycle, info):
            yield _apart_from_devices(cycle, info, text)
            continue
        devices = DeviceVerdict()
        wanted = cycle.claims_on(info, devices)
        if devices.refusal is not None:
            yield NodeAnswer(node=info.name, text=", ".join(devices.refusal.reasons))
            continue
        answer = None
        if cycle.allocator is not None and wanted:
            answer = cycle.allocator.allocate(info.node, wanted)
        text = ""
        if answer is not None and not isinstance(answer, Allocation):
            text = explanation.event_reason(answer)
        if not text and elsewhere:
            text = _ELSEWHERE
        made = NodeAnswer(node=info.name, text=text, answer=answer)
        yield _with_claims(made, cycle, spare, info, own, elsewhere)


def with_devices(
    rules: SchedulerRules, views: MergingViews, nodes: NodeIndex, tree: JsonObject, now: Instant
) -> Generator[None, None, list[NodeAnswer]]:
    """The answers of the nodes that refuse a pod although its claims could be allocated there.

    Nodes on which no claim is to be allocated are among them. If a claim is gone since the pod was
    refused, there are none.
    """
    having: list[NodeAnswer] = []
    pod = pod_spec.read(tree)
    try:
        claims = pod_claims.resolve(views.objects, pod.facts)
    except ClaimsNotReady:
        return having
    cycle = attempt.begin(rules, views, nodes, Verdicts(), pod, claims, now)
    for info in nodes.order():
        yield
        refusal = cycle.verdict(info).refusal
        if refusal is not None and refusal.plugin in CLOSING:
            continue
        text = _refused_for_pods(cycle, info) if refusal is None else ", ".join(refusal.reasons)
        if not text:
            continue
        answer = _apart_from_devices(cycle, info, text)
        if answer.has_devices or not answer.wants_devices:
            having.append(answer)
    return having


def _refused_for_pods(cycle: Cycle, info: NodeInfo) -> str:
    """The reason of a node that refuses the pod because of other pods; empty if it does not."""
    if (refusal := cycle.check_rivals(info)) is not None:
        kept = ", ".join("/".join(pod.place) for pod in cycle.nominated[info.name])
        return f"{', '.join(refusal.reasons)}{KEPT}{kept}"
    refusal = None if cycle.spread is None else cycle.spread.check_node(info)
    if refusal is None and cycle.hood is not None:
        refusal = cycle.hood.check_node(info)
    return "" if refusal is None else ", ".join(refusal.reasons)


def _refused(
    cycle: Cycle, info: NodeInfo, refusal: filters.NodeRejection, *, opens: bool
) -> NodeAnswer:
    """The answer of a node that refuses the pod; if it is closed and `opens`, also as if open."""
    text = ", ".join(refusal.reasons)
    if refusal.plugin not in CLOSING:
        return _apart_from_devices(cycle, info, text)
    return NodeAnswer(node=info.name, text=text, opened=_opened(cycle, info) if opens else None)


def _apart_from_devices(cycle: Cycle, info: NodeInfo, text: str) -> NodeAnswer:
    """The answer of a node that refuses the pod before its devices are looked at."""
    devices = DeviceVerdict()
    wanted = cycle.claims_on(info, devices)
    has_devices = (
        cycle.allocator is not None
        and bool(wanted)
        and devices.refusal is None
        and all(cycle.is_available(claim, info) for claim in cycle.claims)
        and isinstance(cycle.allocator.allocate(info.node, wanted), Allocation)
    )
    is_skewed = text in (
        *pod_topology_spread.SKEWED.reasons,
        *pod_topology_spread.UNLABELLED.reasons,
    )
    detail = _spread_detail(cycle.spread, info) if cycle.spread and is_skewed else ""
    return NodeAnswer(
        node=info.name,
        text=text,
        has_devices=has_devices,
        wants_devices=bool(wanted) or devices.refusal is not None,
        detail=detail,
    )


def _with_claims(
    answer: NodeAnswer,
    cycle: Cycle,
    spare: Allocator | None,
    info: NodeInfo,
    own: Mapping[str, JsonView],
    elsewhere: frozenset[str],
) -> NodeAnswer:
    """The answer with what a search for help starts from."""
    is_elsewhere = _ELSEWHERE in (answer.text, answer.opened and answer.opened.text)
    return replace(
        answer,
        allocator=cycle.allocator or spare,
        own=own,
        elsewhere=elsewhere,
        without=spare.allocate(info.node, []) if spare and is_elsewhere else None,
        made=_made(cycle, info),
    )


def _made(cycle: Cycle, info: NodeInfo) -> MadeClaim | None:
    """The claim for the extended resources that devices of a node serve, or None."""
    devices = DeviceVerdict()
    cycle.claims_on(info, devices)
    claim = cycle.extended_claim(devices.served)
    if claim is None or cycle.wanted is None:
        return None
    classes = {name: cycle.wanted.classes[name] for name in devices.served}
    return extended_resources.changeable_claim(cycle.tree, classes, claim.tree)


def _unallocated(claims: Sequence[PodClaim]) -> Mapping[str, JsonView]:
    """The pod's allocated claims by name, as they are to be allocated when they are released."""
    return {
        claim.name: {name: part for name, part in claim.tree.items() if name != "status"}
        for claim in claims
        if claim.allocation is not None
    }


def _opened(cycle: Cycle, info: NodeInfo) -> OpenNode:
    """The answer of a node without its cordon, or without the taints that are not tolerated."""
    node = cycle.views.objects.get(ObjectKey(*api_resources.NODES, "", info.name)) or {}
    (change, opened), *further = openings(cycle.pod, info, node)
    made = _open_answer(cycle, info, change, opened)
    for also, wide_open in further:
        if made.text and not _open_answer(cycle, info, also, wide_open).text:
            return replace(made, also=also)
    return made


def uncordoning(name: str) -> str:
    """The change that opens a cordoned node."""
    return f"uncordon node {name}"


def openings(pod: PodSpec, info: NodeInfo, node: JsonView) -> Iterator[tuple[str, NodeInfo]]:
    """The changes that open a node one after the other, each with the node as it is then."""
    opened = info
    if info.is_unschedulable and not filters.is_tolerated(pod, filters.UNSCHEDULABLE_TAINT):
        taints = tuple(taint for taint in info.taints if taint.get("key") != _CORDON)
        opened = replace(info, is_unschedulable=False, taints=taints)
        yield uncordoning(info.name), opened
    closing = closing_taints(pod, opened)
    if closing:
        taints = tuple(taint for taint in opened.taints if taint not in closing)
        change = " and ".join(_untainting(info.name, node, closing))
        yield change, replace(opened, is_unschedulable=False, taints=taints)


def _untainting(name: str, node: JsonView, taints: Sequence[JsonView]) -> Iterator[str]:
    """The changes that end taints of a node; one that its condition sets would come back."""
    names: dict[str, list[str]] = {}
    for tree in taints:
        state = readiness.state_without(node, tree)
        names.setdefault(state, []).append(taint_of(tree).text)
    for state, those in names.items():
        what = f"{counts.plural(len(those), 'taint')} {', '.join(those)}"
        ends = f"with which {what} {counts.verb(len(those), 'ends')}"
        yield f"get node {name} {state}, {ends}" if state else f"remove {what} of node {name}"


def closing_taints(pod: PodSpec, info: NodeInfo) -> list[JsonObject]:
    """The taints that close a node to a pod."""
    return [
        taint
        for taint in info.taints
        if taint.get("effect") in filters.HARD_EFFECTS and not filters.is_tolerated(pod, taint)
    ]


def _open_answer(cycle: Cycle, info: NodeInfo, change: str, opened: NodeInfo) -> OpenNode:
    refusal = cycle.check_changed(info, opened)
    if refusal is not None:
        return OpenNode(change=change, text=", ".join(refusal.reasons))
    text = ""
    try:
        refusal = cycle.check_devices(opened)
        text = "" if refusal is None else ", ".join(refusal.reasons)
    except Aborted as problem:
        text = problem.text
    wanted = cycle.claims_on(opened, DeviceVerdict()) if text else ()
    if cycle.allocator is None or not wanted:
        return OpenNode(change=change, text=text)
    return OpenNode(change=change, text=text, answer=cycle.allocator.allocate(opened.node, wanted))


def _spread_detail(spread: pod_topology_spread.Spread, info: NodeInfo) -> str:
    """The constraint against a node with its numbers, as a sentence; empty if there is none.

    The message of the scheduler names neither the constraint nor the pods that it counts.
    """
    failing = spread.failing(info)
    if failing is None:
        return ""
    constraint, by_domain = failing
    if (domain := info.labels.get(constraint.key)) is None:
        return f"it has no label {constraint.key}, over whose values the pod is to be spread"
    own = by_domain.get(domain, 0)
    total = own + constraint.selects(spread.pod.labels)
    text = f"with it, {constraint.key}={domain} would have {counts.of(total, 'pod')}"
    text += f"{_selected(constraint)}, and maxSkew is {constraint.max_skew}"
    if len(by_domain) < constraint.min_domains:
        values = counts.of(len(by_domain), "value")
        return (
            f"{text}; 0 counts as the fewest, because there are {values} of the label and "
            f"minDomains is {constraint.min_domains}"
        )
    fewest = min(by_domain.values(), default=0)
    having = sorted(name for name, count in by_domain.items() if count == fewest)
    return f"{text}; {listed(having, len(having))} {counts.verb(len(having), 'has')} {fewest}"


def _selected(constraint: pod_topology_spread.TopologySpreadConstraint) -> str:
    """The labels of the pods that a constraint counts, as text after a number of pods."""
    requirements = () if constraint.selector is None else constraint.selector.requirements
    texts = [
        f"{one.key}={next(iter(one.values))}"
        if one.operator == "in" and len(one.values) == 1
        else requirement_text(one)
        for one in requirements
    ]
    return f" with {' and '.join(texts)}" if texts else ""


_CORDON = filters.UNSCHEDULABLE_TAINT["key"]
