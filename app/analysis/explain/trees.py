"""The reasons of many nodes as one tree that fits a page: similar nodes are merged, with counts.

Nodes are grouped as finely as the bound on the tree allows. The levels are: equal answers but for
names; equal causes with different numbers; the same failing requests; the same text of the
scheduler. Counts stay complete; what is left out is in the complete JSON.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from app.analysis import profiles
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import Reason, listed, only_node
from app.analysis.explain.tallies import (
    CauseTally,
    common_prefix,
    device_text,
    devices_text,
    key_of,
    missing_class,
    nodes_text,
    tally,
)
from app.domain.allocation.quirks import numbers_of
from app.domain.allocation.reasons import causes
from app.domain.allocation.reasons.explanation import RequestReason
from app.domain.values import counts

ENTRIES_MAX = 32
"""The target number of reasons in a tree of nodes; grouping may not reach it."""

_ON_DEVICE = re.compile(r" on device [^\s:]+")

GROUPS_MAX = 8
CAUSES_MAX = 8
REQUESTS_MAX = 4
POOLS_MAX = 3


def merge_nodes(reasons: Sequence[NodeReason]) -> tuple[Reason, ...]:
    """One branch per kind of answer, the most frequent first; ties are in node order.

    Nodes that have the devices but refuse the pod otherwise come before. Nodes that lack devices
    of more of the classes that are asked for than others come last: they could not take the pod
    anyway, and it is not said of them which devices they have.
    """
    least = min((one.lacking for one in reasons if one.is_asked), default=None)
    far = [one for one in reasons if least is not None and one.lacking > least]
    if far:
        set_aside = {one.node for one in far}
        reasons = [one for one in reasons if one.node not in set_aside]
    last = tuple(_group(nodes, is_brief=True) for nodes in _groups(far, _same_text))
    for level in (same_answer, _same_causes, _same_requests):
        groups = _groups(reasons, level)
        if len(groups) <= GROUPS_MAX:
            made = tuple(_group(nodes) for nodes in groups)
            if sum(reason.size() for reason in made) <= ENTRIES_MAX:
                return (*made, *last)
    groups = _groups(reasons, _same_text)
    shown = [_group(nodes) for nodes in groups[:GROUPS_MAX]]
    rest = sum(map(len, groups[GROUPS_MAX:]))
    if rest:
        others = counts.of(len(groups) - GROUPS_MAX, "other answer")
        shown.append(Reason(text=f"{nodes_text(rest)} more, with {others}", count=rest))
    return (*shown, *last)


def claim_reasons(reason: NodeReason, claim: str) -> tuple[Reason, ...]:
    """The devices of one claim on a node with their reasons, request by request."""
    requests = dict(_by_claim([reason])).get(claim, [])
    return (*(_request(one) for one in requests), *_quirks([reason]))


_Level = Callable[[NodeReason], Hashable]


def _groups(reasons: Sequence[NodeReason], level: _Level) -> list[list[NodeReason]]:
    groups: dict[Hashable, list[NodeReason]] = {}
    for reason in reasons:
        groups.setdefault(level(reason), []).append(reason)
    return sorted(groups.values(), key=lambda nodes: (*_distance(nodes), -len(nodes)))


def _distance(nodes: Sequence[NodeReason]) -> tuple[bool, int]:
    """The sorting key of a group of nodes: those nearest to taking the pod first."""
    return not any(one.has_devices for one in nodes), min(one.lacking for one in nodes)


def same_answer(reason: NodeReason) -> Hashable:
    """The key of a node's full answer, without the name of the node."""
    node = reason.node
    parts: list[Hashable] = []
    for claim, request in reason.requests():
        devices: dict[Hashable, int] = {}
        for group in request.alike:
            reason_key = (key_of(group.reason), device_text(group.reason).replace(node, "<node>"))
            devices[reason_key] = devices.get(reason_key, 0) + len(group.devices)
        parts.append((claim, request.request, frozenset(devices.items())))
    explained = reason.explained
    pools: tuple[str, ...] = ()
    if explained is not None:
        pools = tuple(why for _, why in explained.pools)
    return (_same_text(reason), tuple(parts), pools, reason.elsewhere)


def _same_causes(reason: NodeReason) -> Hashable:
    """The key of the scheduler's text and the set of causes of each request."""
    excluding = tuple(
        (
            claim,
            request.request,
            frozenset(key_of(group.reason, coarse=True) for group in request.alike),
        )
        for claim, request in reason.requests()
    )
    return (_same_text(reason), excluding, bool(reason.explained and reason.explained.pools))


def _same_requests(reason: NodeReason) -> Hashable:
    """The key of the scheduler's text and the requests that have too few devices."""
    short = tuple(
        (claim, request.request)
        for claim, request in reason.requests()
        if request.suitable < request.needs
    )
    return (_same_text(reason), short)


def _same_text(reason: NodeReason) -> Hashable:
    """The scheduler's text without the names of device and node."""
    return _ON_DEVICE.sub(" on device …", reason.text).replace(reason.node, "…")


def _group(nodes: Sequence[NodeReason], *, is_brief: bool = False) -> Reason:
    """The branch of nodes that are shown together.

    With `is_brief` it is not said which devices of other classes than is asked for there are.
    """
    first = nodes[0]
    names = [reason.node for reason in nodes]
    subject = names[0] if len(names) == 1 else f"{nodes_text(len(names))} ({_names(names)})"
    children: list[Reason] = []
    # A followed search explains more than the causes that exclude devices one by one.
    followed = first.explained is not None and bool(first.explained.tried)
    for claim, requests in _by_claim(nodes):
        if is_brief:
            reasons = tuple(_seen_by(one) for one in requests if _is_decisive(one))
        else:
            reasons = _requests(requests, brief=followed)
        # The claim is named only if there are several.
        several = first.explained is not None and len(first.explained.claims) > 1
        children += [Reason(text=f"claim {claim}", children=reasons)] if several else list(reasons)
    if first.explained is not None:
        children += _tried_reasons(first, len(nodes))
    children += _pools(nodes)
    children += _elsewhere(nodes)
    children += _but_for_that(nodes)
    children += _if_open(nodes)
    children += _quirks(nodes)
    text = first.text or "it fits"
    if any(reason.text != first.text for reason in nodes):
        text += " (the others alike)"
    # A page without the answers of the nodes would not say why the pod waits.
    text = f"{subject}: {text}"
    about = only_node(names)
    return Reason(text=text, children=tuple(children), count=len(nodes), about=about, is_kept=True)


def _elsewhere(nodes: Sequence[NodeReason]) -> list[Reason]:
    """The pod's allocated claims that cannot be used there, which the scheduler leaves unsaid."""
    claims: dict[str, list[str]] = {}
    for reason in nodes:
        # Parity: controllers.md 3.4: only a node with devices for all other claims says so.
        for claim in sorted(reason.elsewhere if reason.explained is not None else ()):
            claims.setdefault(claim, []).append(reason.node)
    return [
        Reason(
            # For other nodes, or its devices could not be made ready: both keep the pod away.
            text=f"claim {claim} is allocated, and its devices cannot be used "
            + (f"on {_names(names)}, either" if len(nodes) > 1 else "there, either"),
            count=len(names),
        )
        for claim, names in claims.items()
    ]


def _but_for_that(nodes: Sequence[NodeReason]) -> list[Reason]:
    """The details of a refusal, and the nodes that have the devices which other nodes lack."""
    details = dict.fromkeys(one.detail for one in nodes if one.detail)
    alike = " (the others alike)" if len(details) > 1 else ""
    reasons = [
        Reason(text=f"{one}{alike}", count=len(nodes), is_kept=True) for one in [*details][:1]
    ]
    names = [one.node for one in nodes if one.has_devices]
    if not names:
        return reasons
    where = "there" if len(names) == len(nodes) else f"on {_names(names)}"
    text = f"the devices would do: its claims could be allocated {where}"
    return [*reasons, Reason(text=text, count=len(names), is_kept=True)]


def _quirks(nodes: Sequence[NodeReason]) -> list[Reason]:
    """The upstream defects that affected the answer, for the nodes that were checked for them."""
    nodes_of: dict[str, list[str]] = {}
    for reason in nodes:
        for quirk in reason.explained.quirks if reason.explained else ():
            nodes_of.setdefault(quirk, []).append(reason.node)
    return [
        Reason(
            text=f"upstream's defect {profiles.described(quirk)} took part on {_names(names)}: "
            "with it repaired, the answer would be another",
            count=len(names),
            issues=tuple(number.upper() for number in numbers_of(quirk)),
            is_kept=True,
        )
        for quirk, names in nodes_of.items()
    ]


def _if_open(nodes: Sequence[NodeReason]) -> list[Reason]:
    """The answers that closed nodes would give if they were open, for the nodes that were asked."""
    nodes_of: dict[str, list[str]] = {}
    for reason in nodes:
        if reason.opened is not None:
            nodes_of.setdefault(reason.opened.text, []).append(reason.node)
    count = sum(map(len, nodes_of.values()))
    made = []
    for text, names in nodes_of.items():
        subject = "but for that" if len(nodes) == 1 else f"but for that, on {_names(names)}"
        outcome = f"it would not fit, either: {text}" if text else "the pod would fit"
        about = only_node([one.node for one in nodes])
        made.append(
            Reason(text=f"{subject} {outcome}", count=len(names), about=about, is_kept=not text)
        )
    if made and count < len(nodes):
        left = len(nodes) - count
        text = f"{nodes_text(left)} more {counts.verb(left, 'was')} not tried"
        made.append(Reason(text=text))
    return made


def _names(names: Sequence[str]) -> str:
    return listed(names, len(names))


_OfNodes = list[tuple[str, RequestReason]]


def _by_claim(nodes: Sequence[NodeReason]) -> list[tuple[str, list[_OfNodes]]]:
    """The answers of the nodes per claim and per request or alternative.

    A claim that two entries of the pod name is asked for twice, and each time is answered apart.
    """
    by_claim: dict[str, dict[tuple[str, int], _OfNodes]] = {}
    for reason in nodes:
        times: Counter[tuple[str, str]] = Counter()
        for claim, request in reason.requests():
            times[claim, request.request] += 1
            key = request.request, times[claim, request.request]
            by_claim.setdefault(claim, {}).setdefault(key, []).append((reason.node, request))
    return [(claim, list(requests.values())) for claim, requests in by_claim.items()]


def _requests(requests: Sequence[_OfNodes], *, brief: bool) -> tuple[Reason, ...]:
    """Failing requests with their causes; requests that could be satisfied get one line at most."""
    decisive = [one for one in requests if _is_decisive(one)]
    others = [one for one in requests if not _is_decisive(one)]
    shown = [_request(one) for one in decisive[:REQUESTS_MAX]]
    if left := decisive[REQUESTS_MAX:]:
        fail = counts.verb(len(left), "fails")
        text = f"{counts.of(len(left), 'more request')} {fail}"
        shown.append(Reason(text=text, count=_devices_of(left)))
    shown += [
        _request(one, brief=brief or bool(decisive)) for one in others[: REQUESTS_MAX - len(shown)]
    ]
    if left := others[max(0, REQUESTS_MAX - len(decisive)) :]:
        text = f"{counts.of(len(left), 'more request')} could be satisfied"
        shown.append(Reason(text=text, count=_devices_of(left)))
    return tuple(shown)


def _is_decisive(on_nodes: _OfNodes) -> bool:
    return any(request.suitable < request.needs for _, request in on_nodes)


def _devices_of(requests: Sequence[_OfNodes]) -> int:
    return sum(len(request.devices) for one in requests for _, request in one)


def _request(on_nodes: _OfNodes, *, brief: bool = False) -> Reason:
    """One request on all nodes of a group."""
    first = on_nodes[0][1]
    many = len(on_nodes) > 1
    count = sum(len(request.devices) for _, request in on_nodes)
    if not count:
        where = "none of these nodes sees" if many else "the node sees"
        device = "a device" if many else "no device"
        text = f"request {first.request} wants {first.wants}, but {where} {device}"
        return Reason(text=text, count=0)
    if any(device.chosen for device in first.devices) and not many:
        text = first.text
    else:
        text = f"request {first.request} wants {first.wants}, {_suitable(on_nodes)}"
    prefix = common_prefix(device.device for _, request in on_nodes for device in request.devices)
    if brief:
        return Reason(text=text, count=count)
    if prefix:
        text += f" (devices of {prefix.rstrip('/')})"
    tallies = tally([(node, request.alike) for node, request in on_nodes])
    if len(tallies) > CAUSES_MAX:
        coarse = tally([(node, request.alike) for node, request in on_nodes], coarse=True)
        tallies = sorted(coarse, key=lambda one: (not one.is_near, one.is_far, -one.devices))
    children = [one.reason(prefix, many_nodes=many) for one in tallies[:CAUSES_MAX]]
    if rest := tallies[CAUSES_MAX:]:
        children.append(_rest(rest))
    return Reason(text=text, children=tuple(children), count=count)


def _seen_by(on_nodes: _OfNodes) -> Reason:
    """One request on nodes that see no device of its class; all its causes where one does."""
    first, count = on_nodes[0][1], sum(len(request.devices) for _, request in on_nodes)
    if not count or not all(missing_class(request) for _, request in on_nodes):
        return _request(on_nodes)
    sees = "the node sees" if len(on_nodes) == 1 else "these nodes see"
    text = f"request {first.request} wants {first.wants}, and {sees} none of class "
    text += missing_class(first)
    return Reason(text=text, count=count)


def _rest(tallies: Sequence[CauseTally]) -> Reason:
    devices = sum(one.devices for one in tallies)
    causes = "a rarer cause" if len(tallies) == 1 else counts.of(len(tallies), "rarer cause")
    return Reason(text=f"{devices_text(devices)}: {causes}", count=devices)


def _suitable(on_nodes: _OfNodes) -> str:
    """The number of the devices that can be taken, over the nodes."""
    suitable = [request.suitable for _, request in on_nodes]
    totals = [len(request.devices) for _, request in on_nodes]
    low, high = min(suitable), max(suitable)
    of = f"{min(totals)}" if min(totals) == max(totals) else f"{min(totals)} to {max(totals)}"
    some = f"{low}" if low == high else f"{low} to {high}"
    text = f"{some} of {of} can be taken" + (" on each node" if len(on_nodes) > 1 else "")
    needs = on_nodes[0][1].needs
    most = max(_ever_suitable(request) for _, request in on_nodes)
    if high < most < needs:
        # If all of them are given back, they are still too few.
        has = "the node has only" if len(on_nodes) == 1 else "no node has more than"
        text += f"; {has} {most} of that sort"
    return text


def _ever_suitable(request: RequestReason) -> int:
    """The number of a node's devices that are of the sort that is asked for, taken or not."""
    return sum(
        device.cause is None or device.cause.kind not in _OF_ANOTHER_SORT
        for device in request.devices
    )


_OF_ANOTHER_SORT = frozenset(
    (
        causes.CauseKind.OTHER_NODE,
        causes.CauseKind.BINDING,
        causes.CauseKind.SELECTOR,
        causes.CauseKind.SELECTOR_ERROR,
        causes.CauseKind.CAPACITY_MISSING,
        causes.CauseKind.CAPACITY_POLICY,
        causes.CauseKind.COUNTERS_OFF,
    )
)
"""The kinds of causes that stay while devices are given back."""


def _tried_reasons(reason: NodeReason, nodes: int) -> list[Reason]:
    """The failed tries of the search; for many nodes, those of the first node as an example."""
    explained = reason.explained
    assert explained is not None
    if explained.outcome == "refused" and reason.is_combination:
        where = f" on {reason.node}" if nodes > 1 else ""
        text = alone_text([one.needs for _, one in reason.requests()])
        names = [device.device for _, one in reason.requests() for device in one.devices]
        prefix = common_prefix(names)
        lines = [
            Reason(
                text=f"tried{where} {_devices_listed(one.picks, prefix)}: then {one.reason.text}"
            )
            for one in explained.tried
            if one.picks
        ]
        if explained.given_up > len(explained.tried):
            lines.append(Reason(text=f"… given up {explained.given_up} times in all"))
        deepest = explained.deepest
        if deepest is not None:
            picks = f" with {_devices_listed(explained.picks, prefix)}" if explained.picks else ""
            lines.append(
                Reason(
                    text=f"the search got furthest{where}{picks}: {deepest.text}",
                    children=_request([(reason.node, deepest)]).children,
                )
            )
        return [Reason(text=text, children=tuple(lines))]
    return []


def alone_text(needs: Sequence[int]) -> str:
    """The reason that no request lacks suitable devices on nodes that refuse the pod.

    `needs` are the numbers of devices that the requests want.
    """
    if len(needs) > 1:
        return "each request could be satisfied alone, but not all together"
    if needs[0] > 1:
        return "each device could be taken alone, but not as many together"
    return "a device could be taken alone, but the search chose none"


def _devices_listed(devices: Sequence[str], prefix: str) -> str:
    names = [name.removeprefix(prefix) for name in devices]
    return listed(names, len(names)) if names else "nothing"


def _pools(nodes: Sequence[NodeReason]) -> list[Reason]:
    """The pools that cannot be used, grouped by problem."""
    problems: dict[str, list[str]] = {}
    for reason in nodes:
        for pool, problem in reason.explained.pools if reason.explained else ():
            problems.setdefault(problem, []).append(pool)
    made = []
    for problem, pools in list(problems.items())[:POOLS_MAX]:
        distinct = list(dict.fromkeys(pools))
        noun = "pool" if len(distinct) == 1 else f"{len(distinct)} pools:"
        text = f"{noun} {_names(distinct)} cannot be used: {problem}"
        made.append(Reason(text=text, count=len(distinct)))
    if len(problems) > POOLS_MAX:
        more = counts.of(len(problems) - POOLS_MAX, "more problem")
        made.append(Reason(text=f"{more} of pools"))
    return made
