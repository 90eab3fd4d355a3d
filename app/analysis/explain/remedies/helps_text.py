"""The words of an answer about helpful changes: each kind once, the most helpful first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.remedies.spec_changes import SpecChange
from app.analysis.explain.tallies import nodes_text
from app.domain.allocation.reasons.changes import (
    Change,
    DropConstraint,
    EditRequest,
    EnlargeCounter,
    LowerAmount,
    OpenClosedNode,
    PreferAlternative,
    ReleaseClaim,
    RemoveRule,
    ServeByClass,
)
from app.domain.allocation.reasons.counterfactual import Help
from app.domain.allocation.reasons.patching import PatchAttribute, RemovePatch
from app.domain.values import counts

HELPS_SHOWN_MAX = 10
"""The number of kinds of help in the tree; the JSON has all."""

NOT_DEVICES = {
    "node(s) were unschedulable": "kubectl uncordon",
    "node(s) had untolerated taint(s)": "tolerate the node's taint or remove it",
    "node(s) didn't have free ports for the requested pod ports": "end the pods that use them, or "
    "choose other ports",
    "Too many pods": "end pods there, or raise maxPods of its kubelet",
}
"""Reasons that no change of claims or devices removes, with an unproved remedy for each."""


_EDITS = {
    "count": "lower a count",
    "tolerations": "tolerate a taint of a device",
    "selectors": "drop a selector",
    "capacity": "ask for less capacity",
}
"""The sorts of edits of a request by the field that they change."""


def lines(
    opening: Sequence[tuple[str, tuple[str, ...]]],
    helps: Sequence[tuple[Help, int]],
    vain: Iterable[Reason],
    reasons: Sequence[NodeReason],
) -> list[Reason]:
    """The lines below the headline: changes that open nodes, other helps, changes in vain.

    The nodes that refuse the pod before devices are looked at and that no change helps come last.
    """
    helped = {one.node for one, _ in helps}
    rest = [reason for reason in reasons if reason.node not in helped]
    children = [*map(_opening, opening), *_best(helps), *vain, *_beyond_devices(rest)]
    shown = children[:HELPS_SHOWN_MAX]
    if len(children) > HELPS_SHOWN_MAX:
        shown.append(Reason(text=f"… {len(children) - HELPS_SHOWN_MAX} more; -o json has all"))
    return shown


def sorts(changes: Iterable[Change]) -> list[str]:
    """The sorts of these changes, each once, in their order."""
    return list(dict.fromkeys(map(_of_change, changes)))


def openings(closed: Sequence[NodeReason], changes_max: int) -> list[tuple[str, tuple[str, ...]]]:
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
    """The nodes that refuse the pod before devices are looked at, with the usual remedy."""
    texts: dict[str, int] = {}
    for reason in reasons:
        is_solved = reason.opened is not None and bool(reason.opened.opening)
        if reason.text and reason.explained is None and not is_solved:
            texts[reason.text] = texts.get(reason.text, 0) + 1
    return [
        Reason(
            text=f"{nodes_text(count)} {counts.verb(count, 'refuses')} the pod before "
            f"devices are looked at: {text}"
            + (f" ({NOT_DEVICES[text]})" if text in NOT_DEVICES else ""),
            count=count,
        )
        for text, count in sorted(texts.items(), key=lambda item: -item[1])
    ]


def _of_change(change: Change) -> str:
    match change:
        case SpecChange():
            return change.kind
        case EditRequest():
            return _EDITS.get(change.field, "edit a request")
        case ReleaseClaim():
            return "release a claim"
        case RemoveRule():
            return "remove a DeviceTaintRule"
        case OpenClosedNode():
            return "open the node"
        case LowerAmount():
            return "request less of an extended resource"
        case ServeByClass():
            return "have an older DeviceClass serve an extended resource"
        case DropConstraint():
            return "drop a constraint"
        case PreferAlternative():
            return "put another alternative first"
        case EnlargeCounter():
            return "enlarge a counter"
        case RemovePatch():
            return "remove a ResourceSlicePatch"
        case PatchAttribute():
            return "set an attribute by a ResourceSlicePatch"
    return "repair a pool"
