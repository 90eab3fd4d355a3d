"""The reasons why a pod waits, node by node, and changes that would help, in small steps.

The functions are generators. They yield after each node or try, so that a server can answer other
requests, and return their result at the end. The views must not change meanwhile.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import TypeAlias, TypeVar

from app.analysis import scope
from app.analysis.explain import circumstances, node_answers, tainted, untried, waits
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.nearby import outcomes
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.node_reasons import NodeReason, missing_classes, node_reason
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.remedies import BeyondDevices, SpecChange, SpecSearch, helps_text
from app.analysis.explain.tallies import nodes_text
from app.analysis.explain.trees import merge_nodes, same_answer
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.changes import Change
from app.domain.allocation.reasons.counterfactual import Help
from app.domain.controllers.plan import MergingViews
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.errors import NotFound
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

ResultT = TypeVar("ResultT")

HELPFUL = "what would help, each proved by allocating again (%s)"
"""The headline of changes that help."""

NO_NODES = "there are no nodes"
"""The text about a pod in a cluster without nodes."""

BY_DRIVERS = "drivers decide what they report"
"""Why the reports that a pod waits for are not proved to help."""

ENDS_ATTEMPT = (
    "an error on any node that is asked ends the scheduler's attempt, even if other nodes would "
    "take the pod"
)

Steps: TypeAlias = Generator[None, None, ResultT]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainBounds:
    """The bounds on the work for one question; see the settings of the same names."""

    steps_max: int = 4_000
    followed_nodes_max: int = 8
    opened_nodes_max: int = 8
    quirk_nodes_max: int = 8
    help_nodes_max: int = 20
    help_changes_max: int = 2
    help_tries_max: int = 300
    names_max: int = 5_000
    names_compared_max: int = 200
    places_max: int = 20
    histories_max: int = 50
    cause_changes_max: int = 200
    cause_nodes_max: int = 20
    cause_pods_events_max: int = 100
    cause_workload_pods_max: int = 200
    cause_waiting_pods_max: int = 20
    cause_slice_writes_max: int = 20
    cause_pool_slices_max: int = 200
    refusal_nodes_max: int = 200
    refusal_events_max: int = 200
    refusal_choices_max: int = 1_000
    refusal_allocations_max: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFindings:
    """The findings: a sentence, the tree for people, and every node for machines."""

    text: str
    children: tuple[Reason, ...]
    nodes: tuple[NodeReason, ...] = ()
    helps: tuple[JsonObject, ...] | None = None

    def to_json(self) -> JsonObject:
        """All nodes with all devices, and all changes that would help if they were requested."""
        body: JsonObject = {"nodes": [node.to_json() for node in self.nodes]}
        if self.helps is not None:
            body["helps"] = list(self.helps)
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedHelp:
    """The wish to know what would help; `former` as in `SpecSearch`."""

    former: Sequence[tuple[ObjectKey, SpecChange]] = ()


def waiting(
    rules: SchedulerRules,
    views: LiveViews,
    tree: JsonObject,
    bounds: ExplainBounds,
    *,
    now: Instant,
    node: str,
    help: WantedHelp | None,
    reads_events: bool,
    sees_key: Callable[[ObjectKey], bool],
) -> Steps[PodFindings]:
    """The answer of each node to a pod that is not bound, or why no node is asked.

    Without `reads_events` nothing comes from Event objects, and nothing from quotas and namespaces
    that the reader may not see (`sees_key`). Raises NotFound when no node has the name `node`.
    """
    early = untried.cause(views, tree, rules)
    if early:
        changes = untried.remedies(views, tree, rules, reads_events, sees_key) if help else []
        return _unasked(rules, views, tree, early, changes, reads_events=reads_events)
    early, lacking = waits.cause(views, tree, now, rules.binding_timeout)
    if early and not node:
        reported = [*waits.remedies(views, tree)] if help and lacking else []
        return _with_remedies(PodFindings(text=early, children=lacking), reported, BY_DRIVERS)
    fitting: list[NodeReason] = []
    refused: dict[Hashable, list[NodeAnswer]] = {}
    apart, erring = list[NodeAnswer](), list[NodeAnswer]()
    followed = 0
    seen: set[Hashable] = set()
    index = yield from node_answers.indexing(rules, views)
    asking = node_answers.answers(
        rules, views, index, tree, now=now, node=node, opened_max=bounds.opened_nodes_max
    )
    for answer in asking:
        yield
        made = node_reason(answer, effort_steps=0)
        group = same_answer(made)
        if group not in seen and made.is_combination and followed < bounds.followed_nodes_max:
            # Only one of the nodes with the same answer is followed, because each search is costly.
            made = node_reason(answer, effort_steps=bounds.steps_max)
            followed += 1
            yield
        if group not in seen and len(seen) < bounds.quirk_nodes_max and made.explained is not None:
            # Of nodes with the same answer one is asked, because each defect needs a search.
            made = replace(made, explained=replace(made.explained, quirks=answer.quirks()))
            yield
        seen.add(group)
        fitting.append(made)
        apart.append(answer)
        if help and answer.is_helpable:
            refused.setdefault(group, []).append(answer)
            erring += [answer] if made.is_error else []
    if node and not fitting:
        raise _unknown(views, node)
    fits = sum(not reason.text for reason in fitting)
    vain, failure = _in_vain(rules, views, tree, fits)
    follow, evicting = outcomes.evictions(views, tree, fitting, rules.quirks, now)
    children = (*_beside(rules, views, tree, fitting, now), *vain, *follow, *merge_nodes(fitting))
    helps: list[JsonObject] = []
    ends = erring if rules.quirks.c16 else None
    if help and (ends or all(reason.text for reason in fitting)):  # an error ends all (C16)
        specs = SpecSearch(rules=rules, views=views, nodes=index, pod=tree, now=now)
        beyond = partial(_beyond, replace(specs, former=help.former), () if ends else apart, bounds)
        helpful, helps = yield from _help([*refused.values()], ends, fitting, bounds, beyond)
        unseen = tainted.unseen_rules(views, tree) if helps else ()
        children = (replace(helpful, children=(*helpful.children, *unseen)), *children)
    text = _fit_text(fits, fitting) + (failure or _eviction_text(fits, evicting))
    remedies = tuple(helps) if help else None
    return PodFindings(text=text, children=children, nodes=(*fitting,), helps=remedies)


def _beyond(
    search: SpecSearch, answers: Sequence[NodeAnswer], bounds: ExplainBounds, changes_max: int
) -> Steps[BeyondDevices]:
    """The helps beyond devices, within the bounds of one question."""
    return search.run(
        answers, changes_max, nodes_max=bounds.help_nodes_max, tries_max=bounds.help_tries_max
    )


def _unknown(views: LiveViews, node: str) -> NotFound:
    """The error for a node that does not exist, with the nearest names."""
    near = scope.nearest(node, [key.name for key in views.objects.keys(*api_resources.NODES)])
    text = f'node "{node}" not found'
    return NotFound(f"{text}; {near}" if near else text, resource="nodes")


def _in_vain(
    rules: SchedulerRules, views: LiveViews, tree: JsonObject, fits: int
) -> tuple[tuple[Reason, ...], str]:
    """The cause, and its text, of attempts without a node although `fits` nodes take the pod."""
    binding = (
        *waits.repeated(tree),
        *outcomes.full_claims(views, tree),
        *outcomes.untimed_claims(views, tree, rules),
    )
    if binding:
        return binding, ", but binding fails each time" if fits else ""
    scoring = tuple(outcomes.unscored(views, tree, rules, fits))
    return scoring, ", but scoring fails" if scoring else ""


def _beside(
    rules: SchedulerRules,
    views: LiveViews,
    tree: JsonObject,
    nodes: Sequence[NodeReason],
    now: Instant,
) -> Iterator[Reason]:
    """The reasons that other objects and earlier attempts add to the answers of the nodes."""
    yield from circumstances.of(views, tree, nodes)
    if not circumstances.without_devices(nodes):
        yield from nearby_nodes.of_class_elsewhere(views, rules.compiler, missing_classes(nodes))
    if rules.quirks.c16 and any(reason.is_error for reason in nodes):
        yield Reason(text=ENDS_ATTEMPT, issues=("C16",))
    if any(reason.text in attempt.NOT_AVAILABLE.reasons for reason in nodes):
        yield from waits.places(views, tree)
    yield from waits.failures(views, tree, now, rules.binding_timeout)


def _unasked(
    rules: SchedulerRules,
    views: MergingViews,
    tree: JsonObject,
    early: str,
    changes: Sequence[str],
    *,
    reads_events: bool,
) -> PodFindings:
    """The reason why no node is examined for a pod, and the changes that help.

    The headline has the cause. It is not repeated: that would tell a reader of facts behind it that
    the reader may not see.
    """
    known = untried.background(views, tree, rules, reads_events=reads_events)
    known += tuple(untried.of_scheduler(views, tree, rules))
    why = "no node is asked about the pod before it"
    if changes and untried.missing_classes(views, tree):
        why = "what a class selects is not known before it is there"
    return _with_remedies(PodFindings(text=early, children=known), changes, why)


def _with_remedies(placed: PodFindings, changes: Sequence[str], why: str) -> PodFindings:
    """The findings with changes that help and are not proved, because of `why`."""
    if not changes:
        return placed
    helpful = Reason(
        text=f"what would help, not proved, because {why}",
        children=tuple(Reason(text=change) for change in changes),
        is_kept=True,
    )
    helps_json: JsonObject = {"node": "", "changes": [*changes]}
    return replace(placed, children=(helpful, *placed.children), helps=(helps_json,))


def _help(
    refused: Sequence[Sequence[NodeAnswer]],
    erring: Sequence[NodeAnswer] | None,
    node_reasons: Sequence[NodeReason],
    bounds: ExplainBounds,
    beyond: Callable[[int], Steps[BeyondDevices]],
) -> Steps[tuple[Reason, list[JsonObject]]]:
    """The smallest proven changes, as a reason and as JSON.

    `refused` are the nodes on which the allocator refused the pod, grouped by answer. `erring` are
    those whose error ends the attempt on all nodes, None if errors end no attempt: a change that
    leaves or brings about an error on another node does not help. `beyond` searches for changes of
    nodes and of the pod's own spec.
    """
    of_devices = yield from _of_devices(refused, erring, bounds)
    # To open another node does not remove an error, either.
    opened_nodes = [] if erring else [one for one in node_reasons if one.opened is not None]
    fewest = min((len(one.changes) for one, _ in of_devices.helps), default=bounds.help_changes_max)
    opening = helps_text.openings(opened_nodes, fewest)
    fewest = min((len(changes) for _, changes in opening), default=fewest)
    further = yield from beyond(fewest)
    opened_so = {changes for _, changes in opening}
    helps = [
        *of_devices.helps,
        *((one, 1) for one in further.helps if one.texts not in opened_so),
    ]
    fewest = min((len(one.changes) for one, _ in helps), default=0)
    helps = [(one, alike) for one, alike in helps if len(one.changes) == fewest]
    vain = _in_vain_for(of_devices.vain, erring or ())
    children = helps_text.lines(opening, helps, vain, node_reasons)
    # A closed node, such as a tainted one, was tried as if it were open.
    nodes = {reason.node for reason in node_reasons if reason.opened is not None}
    nodes.update(further.nodes)
    reached = nodes.union(*((answer.node for answer in group) for group in refused))
    tried_on = f"tried on {len(nodes.union(of_devices.nodes))} of {nodes_text(len(reached))}"
    if bounds.help_nodes_max < len(refused):
        tried_on += "; the others say something else and were left out"
    head = HELPFUL % tried_on
    if not helps and not opening:
        sorts = [*helps_text.sorts(of_devices.tried), *further.sorts]
        head = _nothing_helps(sorts, bool(reached), bounds, tried_on)
    opened: list[JsonObject] = [{"node": node, "changes": [*changes]} for node, changes in opening]
    # Somebody asked for it, so it stays on a page that is cut.
    helpful_reason = Reason(text=head, children=tuple(children), is_kept=True)
    return helpful_reason, opened + [one.tree() for one, _ in helps]


def _nothing_helps(
    sorts: Sequence[str], is_tried: bool, bounds: ExplainBounds, tried_on: str
) -> str:
    """The headline of an answer without a help, with the sorts of changes that were tried."""
    if not is_tried:
        return "no change of claims or devices was tried: no node looks at devices for the pod"
    text = f"nothing helps of what was tried: up to {bounds.help_changes_max} changes together, "
    text += f"{bounds.help_tries_max} tries a node ({tried_on})"
    return f"{text}; tried: {', '.join(dict.fromkeys(sorts))}" if sorts else text


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfDevices:
    """The helps of claims and devices, each with the number of nodes like its own.

    `vain` are changes after which the named other node has an error. `nodes` are those on which
    changes were tried, `tried` these changes.
    """

    helps: list[tuple[Help, int]]
    vain: list[tuple[Help, str]]
    nodes: list[str]
    tried: list[Change]


def _of_devices(
    refused: Sequence[Sequence[NodeAnswer]],
    erring: Sequence[NodeAnswer] | None,
    bounds: ExplainBounds,
) -> Steps[_OfDevices]:
    """The smallest proven changes of claims and devices; the parameters are those of `_help`.

    Of nodes with the same answer the first is tried. Others of them are tried, too, until one
    change helps: equal answers have different remedies where their devices differ. All these
    together have the tries of one node.
    """
    vain: list[tuple[Help, str]] = []
    groups = sorted(refused, key=lambda group: -len(group))[: bounds.help_nodes_max]
    helps: list[tuple[Help, int]] = []
    shares = [(group[0], len(group)) for group in groups] + [(one, 1) for one in _others(groups)]
    answers = [*(erring or ()), *(answer for answer, _ in shares)][: bounds.help_nodes_max]
    others = _Others({other.node: other for other in answers if erring is not None})
    searched: list[str] = []
    tried: list[Change] = []
    tries_left = bounds.help_tries_max
    for answer, alike in shares[: bounds.help_nodes_max]:
        fewest = min((len(one.changes) for one, _ in helps), default=bounds.help_changes_max)
        tries_max = bounds.help_tries_max
        if len(searched) >= len(groups):
            # Of nodes like one for which a change is known only a smaller change is of interest.
            fewest, tries_max = fewest - bool(helps), tries_left
        if not fewest or not tries_max:
            break
        searched.append(answer.node)
        tries = answer.looking_for_help(changes_max=fewest, tries_max=tries_max)
        helpful, changes = yield from _counted(tries)
        tried += changes
        tries_left -= len(changes) if len(searched) > len(groups) else 0
        for one in helpful:
            failing = yield from others.failing(one)
            if failing:
                vain.append((one, failing))
            else:
                helps.append((one, alike))
    return _OfDevices(helps=helps, vain=vain, nodes=searched, tried=tried)


def _others(groups: Sequence[Sequence[NodeAnswer]]) -> Iterator[NodeAnswer]:
    """The nodes behind the first of each group: the second of each, then the third of each."""
    for later in zip_longest(*(group[1:] for group in groups)):
        yield from (one for one in later if one is not None)


@dataclass(frozen=True, slots=True)
class _Others:
    """The nodes on which a change for another node may leave or bring about an error.

    `_known` says for which changes which of them fail: the changes for like nodes are often equal.
    """

    _nodes: Mapping[str, NodeAnswer]
    _known: dict[tuple[str, tuple[Change, ...]], bool] = field(default_factory=dict)

    def failing(self, helpful: Help) -> Steps[str]:
        """The first other node with an error after changes for one node; empty for none."""
        for node, answer in self._nodes.items():
            if node == helpful.node:
                continue
            fails = self._known.get((node, helpful.changes))
            if fails is None:
                yield
                fails = answer.still_fails(helpful)
                self._known[node, helpful.changes] = fails
            if fails:
                return node
        return ""


def _counted(
    tries: Generator[Change, None, list[Help]],
) -> Steps[tuple[list[Help], list[Change]]]:
    """The result of a search, and the changes that it tried."""
    changes: list[Change] = []
    while True:
        try:
            changes.append(next(tries))
        except StopIteration as done:
            return done.value, changes
        yield


def _in_vain_for(
    vain: Sequence[tuple[Help, str]], erring: Sequence[NodeAnswer]
) -> Iterator[Reason]:
    """The changes for a node after which another one has an error, which ends each attempt."""
    names = [one.node for one in erring]
    noun = counts.plural(len(names), "node")
    for one, node in vain[:1]:
        text = f"{one.text}: then it fits on {one.node}, but "
        if node in names:
            text += f"not without a change that removes the error on {noun} "
            text += listed(names, len(names))
        else:
            text += f"node {node} then has an error, which ends the attempt on all nodes"
        yield Reason(text=text, issues=("C16",))


def _eviction_text(fits: int, evicting: int) -> str:
    """The words about eviction after those about the nodes that would take the pod."""
    if not evicting:
        return ""
    return ", but it would be evicted" + (f" from {evicting} of them" if evicting < fits else "")


def _fit_text(fits: int, nodes: Sequence[NodeReason]) -> str:
    if not nodes:
        return NO_NODES
    if len(nodes) == 1:
        return f"it {'would' if fits else 'does not'} fit on node {nodes[0].node}"
    return f"{fits} of {len(nodes)} nodes would take it"
