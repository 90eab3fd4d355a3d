"""Reasons why waiting pods get no devices: the failing requests, with the causes per device.

The causes are those that the last attempt counted. In a recording of another scheduler nothing is
counted; there the attempt is made again, and counts only if it refuses the nodes as recorded.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from app.analysis import scheduler_messages
from app.analysis.explain.nearby import extended
from app.analysis.explain.reasons import listed
from app.analysis.explain.tallies import devices_text, nodes_text
from app.analysis.explain.trees import alone_text
from app.analysis.views import LiveViews
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling import summaries
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.cycle import CANNOT_ALLOCATE
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.values import condition_types, counts
from app.domain.values.fields import decision_body, dra, meta
from app.domain.values.fields.decision_body import CauseCount, DecisionSummary, PoolProblem
from app.domain.values.fields.dra import RequestDetails
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

REQUESTS_SHOWN_MAX = 3
CAUSES_SHOWN_MAX = 3
ABOUT_CHARACTERS_MAX = 200

REFUSED = CANNOT_ALLOCATE.reasons[0]
"""The scheduler's words for nodes whose devices do not satisfy the claims of a pod."""

_SELECTED = frozenset((causes.CauseKind.SELECTOR.value, causes.CauseKind.SELECTOR_ERROR.value))
"""Kinds of causes of devices that a selector excludes."""

EACH_NODE = " (a device counts on each node that sees it)"
"""The note behind numbers of devices that several nodes can share."""

_WANTS_ALL = " wants all "

_SPACE = re.compile(r"\s+")


def lines(
    summary: DecisionSummary, views: LiveViews, pod: JsonObject, *, is_local: bool
) -> tuple[str, ...]:
    """A line for each request without a suitable device, with the causes of most devices.

    A request with alternatives has a line for each, also for those with too few suitable devices.

    `is_local` is whether each device is published for one node, so that counts over nodes are
    numbers of devices. When each request has suitable devices, all requests are told, but for
    nodes on which all could be satisfied alone. The devices for a single request are then too few
    on each node, however many they are together.
    """
    requests: dict[tuple[str, str], list[CauseCount]] = {}
    for cause in summary.causes:
        requests.setdefault((cause.claim, cause.request), []).append(cause)
    failing = {
        request: counted
        for request, counted in requests.items()
        if all(cause.cause != causes.SUITABLE for cause in counted)
    }
    lists = {(claim, name.partition("/")[0]) for claim, name in failing if "/" in name}
    # The other alternatives of such a request do not fit, either.
    failing = {
        (claim, name): counted
        for (claim, name), counted in requests.items()
        if (claim, name) in failing or (claim, name.partition("/")[0]) in lists
    }
    entries = _entries(pod)
    is_only = len(requests) == 1 and not (failing or summary.together or summary.causes_cut)
    sentences = []
    is_noted = False
    for (claim, name), counted in list((failing or requests).items())[:REQUESTS_SHOWN_MAX]:
        wants = _wants(views, pod, claim, name)
        is_alone = is_only or (claim, name) in failing
        is_spread = is_local and is_alone and not wants.startswith(_WANTS_ALL)
        causes_text = "; ".join(_causes(counted, is_spread=is_spread))
        if not is_local and not is_noted and any(cause.nodes > 1 for cause in counted):
            causes_text += EACH_NODE
            is_noted = True
        served = extended.container_text(pod, name) if _is_of_containers(claim) else ""
        sentences.append(f"request {name}{entries.get(claim, served)}{wants}: {causes_text}")
    if summary.together and summary.together == summary.causes_nodes:
        sentences = []
    if summary.causes_nodes and not requests:
        sentences.append(_deviceless(summary))
    if len(requests) > 1 and not (failing or summary.together or summary.causes_cut):
        considered = summary.causes_nodes + summary.causes_nodes_cut
        none = (
            f"none of {nodes_text(considered)} has" if considered > 1 else "the node does not have"
        )
        sentences.append(f"{none} enough suitable devices for all requests together")
    if summary.together:
        count = nodes_text(summary.together)
        needs = [_needs(views, pod, claim, name) for claim, name in requests]
        sentences.append(f"on {count} {alone_text(needs)}")
        sentences += _constraints(views, {claim for claim, _ in requests})
    return (*sentences, *_pools(summary.pools, views))


def _deviceless(summary: DecisionSummary) -> str:
    """The number of nodes without any device to choose, apart from those that refuse otherwise."""
    without = summary.causes_nodes + summary.causes_nodes_cut
    text = f"no device can be used on {nodes_text(without)}"
    others = summary.looked_at - without
    if others <= 0:
        return text
    refuses = counts.verb(others, "refuses")
    return f"{text}; {counts.of(others, 'other node')} {refuses} the pod for another reason"


def _pools(problems: Iterable[PoolProblem], views: LiveViews) -> Iterator[str]:
    """The pools that cannot be used, by their names; the counts are those of nodes that met one."""
    by_problem: dict[str, list[str]] = {}
    for place in views.inventory.pool_ids():
        pool = views.inventory.pool(place)
        if pool is not None and not pool.usable:
            problem = f"{pool.state.value}: {pool.problem}"
            by_problem.setdefault(problem, []).append("/".join(place))
    for each in problems:
        names = by_problem.get(each.problem, [])
        if not names:
            # The pool has changed since the attempt.
            who = f"as {nodes_text(each.count)} {counts.verb(each.count, 'says')}"
            yield f"a pool cannot be used, {who}: {each.problem}"
            continue
        noun = counts.plural(len(names), "pool")
        yield f"{noun} {listed(names, len(names))} cannot be used: {each.problem}"


def _entries(pod: JsonObject) -> dict[str, str]:
    """For each claim of a pod the words that name its entry in the pod; nothing for one claim."""
    facts = pods.facts(pod)
    named = [each for each in pods.named_claims(facts) if each.name]
    if len(named) < 2:
        return {}
    names = {entry.name: pods.entry_claim(facts, entry).name for entry in facts.entries}
    return {
        f"{facts.namespace}/{name}": f" of the pod's entry {entry}" for entry, name in names.items()
    }


def _constraints(views: LiveViews, claims: Iterable[str]) -> Iterator[str]:
    """The constraints of claims on their devices together; equal ones of several claims once."""
    wanted: dict[str, None] = {}
    for claim in sorted(claims):
        namespace, _, name = claim.rpartition("/")
        for one in dra.constraints(views.objects.get(claim_key(namespace, name)) or {}):
            if one.match_attribute:
                wanted[f"the same {one.match_attribute}"] = None
            if one.distinct_attribute:
                wanted[f"a different {one.distinct_attribute} each"] = None
    if wanted:
        yield f"together, their devices must have {', and '.join(wanted)}"


def _wants(views: LiveViews, pod: JsonObject, claim: str, request: str) -> str:
    """The wish of a request, as text after its name; empty for a claim that does not exist yet."""
    wish = _wish(views, pod, claim, request)
    if wish is None:
        return ""
    is_all = wish.allocation_mode == "All"
    wants = _WANTS_ALL if is_all else f" wants {wish.count or 1} "
    return f"{wants}of class {wish.device_class_name}"


def _needs(views: LiveViews, pod: JsonObject, claim: str, request: str) -> int:
    """The number of devices that a request wants; 2 stands for all, and where it is unknown."""
    wish = _wish(views, pod, claim, request)
    return 2 if wish is None or wish.allocation_mode == "All" else wish.count or 1


def _wish(views: LiveViews, pod: JsonObject, claim: str, request: str) -> RequestDetails | None:
    """The request, or the alternative of one, by its name; None if it does not exist yet."""
    namespace, _, name = claim.rpartition("/")
    tree = views.objects.get(claim_key(namespace, name)) or {}
    if _is_of_containers(claim):
        tree = extended.claim_of(views, pod).tree
    main, _, alternative = request.partition("/")
    for each in dra.requests(tree):
        wishes = (each.exactly, *each.first_available) if each.name == main else ()
        for wish in wishes:
            if wish is not None and wish.name in ("", alternative):
                return wish
    return None


def _is_of_containers(claim: str) -> bool:
    """Whether a claim is one that the scheduler makes for extended resources, and has not yet."""
    return claim.rpartition("/")[2] == extended_resources.PSEUDO_NAME


def _causes(counted: Iterable[CauseCount], *, is_spread: bool) -> Iterator[str]:
    """The causes of the devices; those that selectors exclude come last, as farthest from fitting.

    Of these the ones that the class excludes are last: they are not of the sort that is asked for.
    `is_spread` is whether each node has too few suitable devices for the request.
    Devices that are short of a counter are counted together, whichever counter it is.
    """
    kinds = causes.CauseKind
    considered = [cause for cause in counted if cause.cause != kinds.OTHER_NODE.value]
    short = [cause for cause in considered if cause.cause == kinds.COUNTERS.value]
    rest = [cause for cause in considered if cause.cause != kinds.COUNTERS.value]
    groups = [[cause] for cause in rest] + ([short] if short else [])
    groups.sort(key=_distance)
    for group in groups[:CAUSES_SHOWN_MAX]:
        cause, count = group[0], max(cause.nodes for cause in group)
        about = _SPACE.sub(" ", cause.about)
        if len(about) > ABOUT_CHARACTERS_MAX:
            about = f"{about[:ABOUT_CHARACTERS_MAX]}…"
        # Which nodes the counters of a group share is not counted.
        where = f" on {nodes_text(count)}" if len(group) == 1 else ""
        if len(group) > 1:
            about += f" and {len(group) - 1} more"
        is_suitable = cause.cause == causes.SUITABLE
        cause_text = "suitable" if is_suitable else causes.text_of(cause.cause, about)
        few = ""
        if is_suitable and is_spread:
            few = ", too few on each node" if count > 1 else ", too few"
        yield f"{cause_text}: {devices_text(_devices(group))}{where}{few}"
    yield from _rest(groups[:CAUSES_SHOWN_MAX], groups[CAUSES_SHOWN_MAX:])
    if not groups:
        yield "all devices are for other nodes"


def _rest(
    shown: Iterable[Sequence[CauseCount]], groups: Iterable[Sequence[CauseCount]]
) -> Iterator[str]:
    """The devices with other causes than those shown: their numbers by kind, or by class."""
    numbers: dict[str, int] = {}
    kinds = {causes.text_of(group[0].cause, "") for group in shown}
    for group in groups:
        refusing = causes.refusing_class(group[0].cause, group[0].about)
        words = causes.text_of(group[0].cause, "")
        words = f"otherwise {words}" if words in kinds else words
        words = f"not of class {refusing}" if refusing else words
        numbers[words] = numbers.get(words, 0) + _devices(group)
    for words, count in numbers.items():
        yield f"{words}: {devices_text(count)}"


def _distance(group: Sequence[CauseCount]) -> tuple[bool, bool, int]:
    """The sorting key of a group: what nearly fits first, and of that the most devices."""
    cause = group[0]
    is_far = causes.is_of_another_class(cause.cause, cause.about)
    return cause.cause in _SELECTED, is_far, -_devices(group)


def _devices(group: Sequence[CauseCount]) -> int:
    return sum(cause.devices for cause in group)


def is_local(views: LiveViews) -> bool:
    """Whether each slice is for one node."""
    return all(one.node.name for one in views.inventory.slices())


def made_again(
    rules: SchedulerRules,
    views: LiveViews,
    nodes: NodeIndex,
    pod: JsonObject,
    now: Instant,
    bounds: SummaryBounds,
) -> DecisionSummary | None:
    """The counts of an attempt made now, if it refuses the nodes for the recorded reasons."""
    condition = meta.condition(pod, condition_types.POD_SCHEDULED)
    recorded = "" if condition is None else condition.message
    made = attempt.attempt(rules, views, nodes, Verdicts(), pod_spec.read(pod), start=0, now=now)
    if dict(scheduler_messages.reasons(recorded)) != dict(scheduler_messages.reasons(made.message)):
        return None
    return decision_body.summary(summaries.summary_of(made, bounds))
