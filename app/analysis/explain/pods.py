"""The reasons why a pod waits, node by node, and changes that would help, in small steps.

The functions are generators. They yield after each node or try, so that a server can answer other
requests, and return their result at the end. The views must not change meanwhile.
"""

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TypeAlias, TypeVar

from app.analysis import scope
from app.analysis.explain import circumstances, node_answers, tainted, untried, waits
from app.analysis.explain.nearby import nodes as nearby_nodes
from app.analysis.explain.nearby import outcomes
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.node_reasons import NodeReason, missing_classes, node_reason
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import nodes_text
from app.analysis.explain.trees import merge_nodes, same_answer
from app.analysis.views import LiveViews
from app.domain.allocation.reasons.changes import Change, ReleaseClaim
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

HELPS_SHOWN_MAX = 10
"""The number of kinds of help in the tree; the JSON has all."""

NOT_DEVICES = {
    "node(s) were unschedulable": "kubectl uncordon",
    "node(s) had untolerated taint(s)": "tolerate the node's taint or remove it",
}
"""Reasons that no change of claims or devices removes, with an unproved remedy for each."""

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


def waiting(
    rules: SchedulerRules,
    views: LiveViews,
    tree: JsonObject,
    bounds: ExplainBounds,
    *,
    now: Instant,
    node: str,
    help: bool,
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
    erring: list[NodeAnswer] = []
    followed = 0
    seen: set[Hashable] = set()
    asking = node_answers.ask_nodes(
        rules, views, tree, now=now, node=node, opened_max=bounds.opened_nodes_max
    )
    for answer in asking:
        yield
        if answer is None:
            continue
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
        if help and answer.is_helpable:
            refused.setdefault(group, []).append(answer)
            if made.is_error:
                erring.append(answer)
    if node and not fitting:
        raise _unknown(views, node)
    fits = sum(not reason.text for reason in fitting)
    vain, failure = _in_vain(rules, views, tree, fits)
    follow, evicting = outcomes.evictions(views, tree, fitting, rules.quirks, now)
    children = (*_beside(rules, views, tree, fitting, now), *vain, *follow, *merge_nodes(fitting))
    helps: list[JsonObject] = []
    ends = erring if rules.quirks.c16 else None
    if help and (ends or all(reason.text for reason in fitting)):  # an error ends all (C16)
        helpful, helps = yield from _help(list(refused.values()), ends, fitting, bounds)
        unseen = tainted.unseen_rules(views, tree) if helps else ()
        children = (replace(helpful, children=(*helpful.children, *unseen)), *children)
    text = _fit_text(fits, [reason.node for reason in fitting])
    text += failure or _eviction_text(fits, evicting)
    remedies = tuple(helps) if help else None
    return PodFindings(text=text, children=children, nodes=tuple(fitting), helps=remedies)


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

    The headline has the cause; it is repeated only beside facts that a reader may not see.
    """
    known = untried.background(views, tree, rules, reads_events=reads_events)
    known += tuple(untried.of_scheduler(views, tree, rules))
    if known and all(reason.rests_on for reason in known):
        # A reader who may see none of these is told the cause as well.
        known = (Reason(text=early), *known)
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
) -> Steps[tuple[Reason, list[JsonObject]]]:
    """The smallest proven changes; of nodes with the same answer the first is tried.

    Others of them are tried, too, until one change helps: equal answers have different remedies
    where their devices differ. All these together have the tries of one node.
    `refused` are the nodes on which the allocator refused the pod, grouped by answer. `erring` are
    those whose error ends the attempt on all nodes, None if errors end no attempt: a change that
    leaves or brings about an error on another node does not help.
    """
    vain: list[tuple[Help, str]] = []
    groups = sorted(refused, key=lambda group: -len(group))[: bounds.help_nodes_max]
    helps: list[tuple[Help, int]] = []
    shares = [(group[0], len(group)) for group in groups] + [(one, 1) for one in _others(groups)]
    answers = [*(erring or ()), *(answer for answer, _ in shares)][: bounds.help_nodes_max]
    others = _Others({other.node: other for other in answers if erring is not None})
    searched: list[str] = []
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
        helpful, tried = yield from _counted(tries)
        tries_left -= tried if len(searched) > len(groups) else 0
        for one in helpful:
            failing = yield from others.failing(one)
            if failing:
                vain.append((one, failing))
            else:
                helps.append((one, alike))
    fewest = min((len(one.changes) for one, _ in helps), default=0)
    helps = [(one, alike) for one, alike in helps if len(one.changes) == fewest]
    # To open another node does not remove an error, either.
    opened_nodes = [] if erring else [one for one in node_reasons if one.opened is not None]
    opening = _openings(opened_nodes, fewest or bounds.help_changes_max)
    children = [*map(_opening, opening), *_best(helps), *_in_vain_for(vain, erring or ())]
    children += _beyond_devices(node_reasons)
    # A closed node, such as a tainted one, was tried as if it were open.
    as_open = {reason.node for reason in node_reasons if reason.opened is not None}
    count = len(as_open.union(*({answer.node for answer in group} for group in refused)))
    tried_on = f"tried on {len(as_open.union(searched))} of {nodes_text(count)}"
    if len(groups) < len(refused):
        tried_on += "; the others say something else and were left out"
    text = f"what would help, each proved by allocating again ({tried_on})"
    if not helps and not opening:
        text = (
            f"nothing helps of what was tried: up to {bounds.help_changes_max} changes together, "
            f"{bounds.help_tries_max} tries a node ({tried_on})"
        )
        if not count:
            text = "no change of claims or devices was tried: no node looks at devices for the pod"
    shown = children[:HELPS_SHOWN_MAX]
    if len(children) > HELPS_SHOWN_MAX:
        shown.append(Reason(text=f"… {len(children) - HELPS_SHOWN_MAX} more; -o json has all"))
    opened: list[JsonObject] = [{"node": node, "changes": [*changes]} for node, changes in opening]
    # Somebody asked for it, so it stays on a page that is cut.
    helpful_reason = Reason(text=text, children=tuple(shown), is_kept=True)
    return helpful_reason, opened + [one.tree() for one, _ in helps]


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


def _counted(tries: Steps[list[Help]]) -> Steps[tuple[list[Help], int]]:
    """The result of a search, and how many changes it tried."""
    count = 0
    while True:
        try:
            next(tries)
        except StopIteration as done:
            return done.value, count
        count += 1
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


def _openings(closed: Sequence[NodeReason], changes_max: int) -> list[tuple[str, tuple[str, ...]]]:
    """The closed nodes that the fewest changes open so that the pod fits, with these changes."""
    openings = [
        (reason.node, reason.opened.opening)
        for reason in closed
        if reason.opened is not None and 0 < len(reason.opened.opening) <= changes_max
    ]
    fewest = min((len(changes) for _, changes in openings), default=0)
    return [one for one in openings if len(one[1]) == fewest]


def _opening(opened: tuple[str, tuple[str, ...]]) -> Reason:
    node, changes = opened
    there = "there" if len(changes) == 1 else f"on {node}"
    return Reason(text=f"{' and '.join(changes)}: then it fits {there}")


def _best(helps: Sequence[tuple[Help, int]]) -> list[Reason]:
    """Each kind of help once, with its smallest change; those that help on most nodes first."""
    kinds: dict[frozenset[object], list[tuple[Help, int]]] = {}
    releases: dict[str, list[Help]] = {}
    like: dict[str, int] = {}
    for one, alike in helps:
        if one.is_release:
            releases.setdefault(one.node, []).append(one)
            like[one.node] = alike
        else:
            kinds.setdefault(one.kinds, []).append((one, alike))
    lines = list(_released(releases, like))
    for group in kinds.values():
        most = max(one.amount for one, _ in group)
        same = [(one, alike) for one, alike in group if one.amount == most]
        names = [one.node for one, _ in same]
        alike = sum(count - 1 for _, count in same)
        text = f"{same[0][0].text}: {_then(names, alike)}"
        lines.append((len(names) + alike, text))
    lines.sort(key=lambda line: -line[0])
    return [Reason(text=text, count=count) for count, text in lines]


def _released(
    releases: Mapping[str, Sequence[Help]], like: Mapping[str, int]
) -> Iterator[tuple[int, str]]:
    """Claims of which any one may be released, with the nodes on which that helps.

    `releases` groups the helps by node, `like` counts the nodes like each.
    """
    merged: dict[tuple[tuple[str, ...], bool], tuple[list[str], int]] = {}
    for node, helps in releases.items():
        claims = tuple(
            change.claim
            for one in helps
            for change in one.changes
            if isinstance(change, ReleaseClaim)
        )
        key = claims, any(one.has_untried for one in helps)
        nodes, others = merged.get(key, ([], 0))
        merged[key] = ([*nodes, node], others + like[node] - 1)
    for (names, has_untried), (nodes, others) in merged.items():
        which = "claim" if len(names) == 1 else f"any one of {len(names)} claims:"
        more = " (among others: not all were tried)" if has_untried else ""
        text = f"release {which} {listed(names, len(names))}{more}: {_then(nodes, others)}"
        yield len(nodes) + others, text


def _then(nodes: Sequence[str], alike: int) -> str:
    """The nodes on which the pod then fits, and the number of untried nodes with equal answers."""
    look = counts.verb(alike, "looks")
    more = f"; {alike} more {look} the same" if alike else ""
    return f"then it fits on {listed(nodes, len(nodes))}{more}"


def _beyond_devices(reasons: Sequence[NodeReason]) -> list[Reason]:
    """The nodes that refuse the pod before devices are asked, with the usual remedy."""
    texts: dict[str, int] = {}
    for reason in reasons:
        is_solved = reason.opened is not None and bool(reason.opened.opening)
        if reason.text and reason.explained is None and not is_solved:
            texts[reason.text] = texts.get(reason.text, 0) + 1
    return [
        Reason(
            text=f"{nodes_text(count)} {counts.verb(count, 'refuses')} the pod before "
            f"devices are asked: {text}"
            + (f" ({NOT_DEVICES[text]})" if text in NOT_DEVICES else ""),
            count=count,
        )
        for text, count in sorted(texts.items(), key=lambda item: -item[1])
    ]


def _eviction_text(fits: int, evicting: int) -> str:
    """The words about eviction after those about the nodes that would take the pod."""
    if not evicting:
        return ""
    return ", but it would be evicted" + (f" from {evicting} of them" if evicting < fits else "")


def _fit_text(fits: int, nodes: Sequence[str]) -> str:
    if not nodes:
        return NO_NODES
    if len(nodes) == 1:
        return f"it {'would' if fits else 'does not'} fit on node {nodes[0]}"
    return f"{fits} of {len(nodes)} nodes would take it"
