"""The places where the reasons of both sides diverge, and the causes behind that, as values.

Both sides are asked at the moment at which one of them first did something that the other did not:
about the nodes in the order of the scheduler, their requests, their devices. They diverge at the
first node or device with different answers. The cause is found by comparing facts: the holders of
the device, its taints, its slice, and the pods bound to the node.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.analysis.diff import named_lists, partings
from app.analysis.diff.partings import ByObject, ByOrder, ByPod, BySettings, Cause, Parting
from app.analysis.diff.testimony import DeviceFacts, Testimony, is_tie, pool_of
from app.analysis.explain.node_reasons import NodeReason
from app.domain.allocation.reasons.causes import CauseKind
from app.domain.allocation.reasons.explanation import (
    NOT_REACHED,
    DeviceReason,
    RequestReason,
)
from app.domain.log import ObjectKey
from app.domain.values import api_resources

_Taints: TypeAlias = frozenset[tuple[str, str]]

_Place: TypeAlias = tuple[str, str, str]
"""An entry of the pod for a claim, a request and a device: claims may have equal requests."""

_Answer: TypeAlias = tuple[RequestReason, DeviceReason]
"""The reason of a request, and that of a device for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedPlacement:
    """The node and the devices of a placement; neither if the pod was not placed then.

    `on_way` has the pods (their uids) that had been given other devices by then, by device: the
    log has these later.
    """

    node: str
    devices: frozenset[str]
    on_way: Mapping[str, str]


Placements: TypeAlias = Mapping[str, DecidedPlacement]
"""The placements, by side."""

ON_ITS_WAY = "taken by a pod that was on its way"

Sides: TypeAlias = Mapping[str, Testimony]
"""The testimonies of the sides, by `a` and `b`."""

Holds: TypeAlias = Callable[[Cause], bool]
"""Whether a cause differs between the sides, and did so at that moment."""


def of_placement(
    sides: Sides,
    nodes: Sequence[str],
    starts: tuple[int | None, int | None],
    chosen: Mapping[str, str],
    placements: Placements,
    holds: Holds,
    *,
    only: str = "",
) -> Parting:
    """Finds where the reasons for a placement diverge: the first place with a cause that holds.

    `only` is the side that placed the pod, if the other one did not then: places that this side
    could not have and the other could are no reason. Without another place the parting is empty.
    `nodes` are the chosen nodes, starting with that of the side which placed first. `chosen` maps
    sides to their node. `starts` are the positions among the nodes at which the schedulers began;
    without that of a recording, a choice among nodes that both sides find equal follows from it.
    `placements` has the placements of sides that were asked about the attempt that made them.
    """
    candidates = list(_partings(sides, nodes, placements))
    for parting in candidates:
        if any(map(holds, parting.causes)) and (not only or parting.open_on in ("", only)):
            return parting
    if only:
        return Parting()
    causes = _around(sides, nodes)
    for parting in candidates:
        if parting.causes and not any(map(holds, causes)):
            return parting
    place = nodes[0] if nodes else ""
    texts = {side: _node_text(sides[side].nodes.get(place)) for side in sides}
    shown = {side: _scores_text(sides[side].scores, nodes, chosen.get(side, "")) for side in sides}
    if shown["a"] and shown["b"] and shown["a"] != shown["b"]:
        # All verdicts are the same: the total scores of the nodes decide.
        texts, causes = shown, causes or (BySettings(),)
    if not causes and starts[0] != starts[1] and (None not in starts or is_tie(sides, nodes)):
        causes = (ByOrder(),)
    return Parting(node=place, a=texts["a"], b=texts["b"], causes=causes)


def of_message(sides: Sides, holds: Holds) -> Parting:
    """Finds a node that refuses a pod on both sides, for a different reason on each.

    A message about a pod that no node was asked about counts the nodes.
    """
    candidates = [parting for node in sides["a"].nodes for parting in _of_words(sides, node)]
    if sides["a"].text and sides["a"].text == sides["b"].text:
        for name in sorted(sides["a"].node_names ^ sides["b"].node_names):
            cause = ByObject(ObjectKey(*api_resources.NODES, "", name))
            candidates.append(Parting(a=sides["a"].text, b=sides["b"].text, causes=(cause,)))
    return next((each for each in candidates if any(map(holds, each.causes))), Parting())


def of_eviction(sides: Sides, devices: Sequence[str], node: str) -> Parting:
    """The parting of a pod evicted on one side only: its node, or the taints of its devices.

    The pods of a node that is gone are ended, whatever its devices were.
    """
    known = [sides[side].node_facts.get(node) for side in ("a", "b")]
    gone = [facts is None or not facts.content for facts in known]
    if gone[0] != gone[1]:
        words = ["no such node" if is_gone else "the node is there" for is_gone in gone]
        cause = ByObject(ObjectKey(*api_resources.NODES, "", node))
        return Parting(node=node, a=words[0], b=words[1], causes=(cause,))
    for device in devices:
        facts = {side: sides[side].devices.get(device) for side in sides}
        left, right = facts["a"], facts["b"]
        if left is None or right is None:
            if left is not right:
                causes = tuple(_slices(sides, device))
                words = [_taints_text(left), _taints_text(right)]
                return Parting(device=device, a=words[0], b=words[1], causes=causes)
            continue
        a, b = left.taints | left.rules, right.taints | right.rules
        if a != b:
            causes = tuple(_taints(sides, device, a, b))
            return Parting(
                device=device, a=_taints_text(left), b=_taints_text(right), causes=causes
            )
    if known[0] is not None and known[1] is not None and known[0].content != known[1].content:
        cause = ByObject(ObjectKey(*api_resources.NODES, "", node))
        return Parting(node=node, a="", b="", causes=(cause,))
    return Parting(node=node)


def _partings(sides: Sides, nodes: Sequence[str], placements: Placements) -> Iterator[Parting]:
    yield from _of_pod(sides)
    others = [name for name in sides["a"].nodes if name not in nodes]
    others += [name for name in sides["b"].nodes if name not in nodes and name not in others]
    for node in (*nodes, *others):
        left, right = sides["a"].nodes.get(node), sides["b"].nodes.get(node)
        if left is None and right is None:
            continue
        yield from _of_node(sides, node, left, right)
        yield from _of_devices(sides, node, placements)


def _of_pod(sides: Sides) -> Iterator[Parting]:
    """Differences before any node is asked: the pod itself, and its claims."""
    left, right = sides["a"], sides["b"]
    words = {side: sides[side].text or "nodes are asked" for side in sides}
    for entry in {**left.claims, **right.claims}:
        mine, other = left.claims.get(entry), right.claims.get(entry)
        if mine is None or other is None:
            # The claim has no name yet on one side: its template may be missing there.
            named = mine or other
            if named is not None and named.template:
                yield Parting(a=words["a"], b=words["b"], causes=(ByObject(named.origin),))
        elif mine.is_there != other.is_there:
            there = mine if mine.is_there else other
            keys = dict.fromkeys((there.key, there.origin))
            yield Parting(a=words["a"], b=words["b"], causes=tuple(map(ByObject, keys)))
        elif bool(mine.users) != bool(other.users):
            side, users = ("a", mine.users) if mine.users else ("b", other.users)
            text = {"a": "free to choose", "b": "free to choose"}
            text[side] = f"claim {mine.key.name} is allocated already"
            causes = tuple(ByPod(side, uid) for uid in sorted(users))
            yield Parting(a=text["a"], b=text["b"], causes=causes)
        elif mine.content != other.content:
            a, b = named_lists.differing(*map(msgspec.json.decode, (mine.content, other.content)))
            yield Parting(a=a, b=b, causes=(ByObject(mine.origin),))
    for name in {**left.classes, **right.classes}:
        if bool(left.classes.get(name)) != bool(right.classes.get(name)):
            key = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
            yield Parting(a=words["a"], b=words["b"], causes=(ByObject(key),))


def _of_node(
    sides: Sides, node: str, left: NodeReason | None, right: NodeReason | None
) -> Iterator[Parting]:
    """Differences in what a node answers before devices are looked at, or by an error.

    An error ends the attempt, whatever other nodes there are.
    """
    is_early = [reason is None or reason.explained is None for reason in (left, right)]
    if _node_text(left) == _node_text(right):
        return
    if not any(is_early):
        yield from _of_error(sides, node, left, right)
        return
    facts = {side: sides[side].node_facts.get(node) for side in sides}
    mine, other = facts["a"], facts["b"]
    causes: list[Cause] = []
    if mine is None or other is None or mine.content != other.content:
        causes.append(ByObject(ObjectKey(*api_resources.NODES, "", node)))
    if mine is not None and other is not None:
        causes += partings.by_pods(mine.pods, other.pods)
    yield Parting(
        node=node,
        a=_node_text(left),
        b=_node_text(right),
        causes=tuple(causes) or (BySettings(),),
        open_on=_open_on([not early for early in is_early]),
    )


def _of_error(
    sides: Sides, node: str, left: NodeReason | None, right: NodeReason | None
) -> Iterator[Parting]:
    """A node that gives an error on one side only: by a pool that cannot be used there."""
    fails = [reason is not None and reason.is_error for reason in (left, right)]
    reason = left if fails[0] else right
    if fails[0] == fails[1] or reason is None or reason.explained is None:
        return
    causes = tuple(each for pool, _ in reason.explained.pools for each in _slices_of(sides, pool))
    if causes:
        words, can = (_node_text(left), _node_text(right)), [not each for each in fails]
        yield Parting(node=node, a=words[0], b=words[1], causes=causes, open_on=_open_on(can))


def _of_devices(sides: Sides, node: str, placements: Placements) -> Iterator[Parting]:
    """The first device that one side could have and the other could not.

    The claims do not show what was in flight at that moment. A side that would choose a device, but
    was given another one, could not have it: a pod on its way had it.
    """
    mine, other = (_by_device(sides[name], node) for name in ("a", "b"))
    seeming: Parting | None = None
    # A side that would choose another device than it was given is not conclusive after that.
    misled = [False, False]
    for place in named_lists.merged(mine, other):
        device = place[-1]
        answers = {"a": mine.get(place), "b": other.get(place)}
        facts = {side: sides[side].usable(device) for side in sides}
        seem = [_is_open(answers[side], facts[side]) for side in ("a", "b")]
        was = [_was_given(answers[side], node, device, placements.get(side)) for side in ("a", "b")]
        can = [
            then if then is not None else None if is_misled else now
            for now, then, is_misled in zip(seem, was, misled, strict=True)
        ]
        misled = [before or then is False for before, then in zip(misled, was, strict=True)]
        if was in ([False, None], [None, False]) and _is_taken(device, placements):
            # Neither side could have it: the side that was refused does not show it.
            continue
        on_way = [
            ByPod(side, placements[side].on_way[device])
            for side, then in zip(("a", "b"), was, strict=True)
            if then is False and device in placements[side].on_way
        ]
        if seeming is None and not on_way and (None in seem or seem[0] == seem[1]):
            continue
        words = [
            _device_text(sides[side], device, answers[side])
            if then is None
            else ("chosen" if then else ON_ITS_WAY)
            for side, then in zip(("a", "b"), was, strict=True)
        ]
        causes = [
            *on_way,
            *_of_device(sides, device, facts["a"], facts["b"], answers["a"], answers["b"]),
        ]
        parting = Parting(
            node=node,
            device=device,
            a=words[0],
            b=words[1],
            # A device in flight follows from the first obstacle.
            causes=tuple(causes) if seeming is None else seeming.causes,
            open_on=_open_on(can),
        )
        if None not in can and can[0] != can[1]:
            yield parting
            return
        seeming = seeming or parting
    if seeming is not None:
        yield seeming


def _is_taken(device: str, placements: Placements) -> bool:
    """Whether pods on their way have the device on both sides."""
    return all(side in placements and device in placements[side].on_way for side in ("a", "b"))


def _open_on(can: Sequence[bool | None]) -> str:
    """The side that could, if the other one could not."""
    return "" if None in can or can[0] == can[1] else "a" if can[0] else "b"


def _of_words(sides: Sides, node: str) -> Iterator[Parting]:
    """The devices of a node that are excluded for a different reason on each side.

    A node at which a selector failed says nothing about its devices.
    """
    reasons = [sides[side].nodes.get(node) for side in ("a", "b")]
    mine, other = (_by_device(sides[name], node) for name in ("a", "b"))
    for place in named_lists.merged(mine, other):
        by_side = {"a": mine.get(place), "b": other.get(place)}
        if _kind(by_side["a"]) == _kind(by_side["b"]):
            continue
        words = [
            _node_text(reason)
            if by_side[side] is None
            else _device_text(sides[side], place[-1], by_side[side])
            for side, reason in zip(("a", "b"), reasons, strict=True)
        ]
        causes = [
            cause
            for side in ("a", "b")
            for cause in _of_kind(sides, place[-1], by_side[side], side)
        ]
        yield Parting(
            node=node, device=place[-1], a=words[0], b=words[1], causes=(*causes, BySettings())
        )


def _was_given(
    answer: _Answer | None, node: str, device: str, placed: DecidedPlacement | None
) -> bool | None:
    """Whether the pod was given the device; None if its placement does not show that."""
    if placed is None or placed.node != node:
        return None
    if device in placed.devices:
        return True
    return False if answer is not None and answer[1].chosen else None


def _is_open(answer: _Answer | None, facts: DeviceFacts | None) -> bool | None:
    """Whether a side could have the device; None if it was not examined."""
    if facts is None:
        return False
    if answer is None or answer[1].note.startswith(NOT_REACHED):
        return None
    return _kind(answer) is None


def _of_device(
    sides: Sides,
    device: str,
    left: DeviceFacts | None,
    right: DeviceFacts | None,
    a: _Answer | None,
    b: _Answer | None,
) -> Iterator[Cause]:
    """The causes of a difference about one device, by the answer of the side without it."""
    if left is None or right is None:
        yield from _slices(sides, device)
        return
    lacking = ("a", a) if _kind(a) is not None else ("b", b)
    yield from _of_kind(sides, device, lacking[1], lacking[0])
    if left.content != right.content:
        yield from _slices(sides, device)
    yield BySettings()


def _of_kind(sides: Sides, device: str, answer: _Answer | None, lacking: str) -> Iterator[Cause]:
    """The causes of a difference about one device that the side `lacking` excludes.

    A device is in use, or its counters are, because of the pods of that side: pods that only the
    other side has there leave more of them.
    """
    kind = _kind(answer)
    if kind in (CauseKind.SELECTOR, CauseKind.SELECTOR_ERROR):
        for name in {**sides["a"].classes, **sides["b"].classes}:
            if sides["a"].classes.get(name) != sides["b"].classes.get(name):
                yield ByObject(ObjectKey(*api_resources.DEVICE_CLASSES, "", name))
        return
    left, right = (sides[side].usable(device) for side in ("a", "b"))
    if left is None or right is None:
        # A side without the device, or one whose selector failed before it came to the device.
        yield from _slices(sides, device)
        yield from partings.by_pods(_holders(left), _holders(right))
        return
    pools = [sides[side].pools.get(pool_of(device)) for side in ("a", "b")]
    match kind:
        case CauseKind.ALLOCATED | CauseKind.TAKEN | CauseKind.CAPACITY:
            yield from partings.by_pods_of(lacking, left.holders, right.holders)
        case CauseKind.TAINT if left.taints != right.taints:
            yield from _taints(sides, device, left.taints, right.taints)
        case CauseKind.COUNTERS if pools[0] is not None and pools[1] is not None:
            yield from partings.by_pods_of(lacking, pools[0].holders, pools[1].holders)
            # The slice with the counters need not be the one with the device.
            yield from _slices(sides, device)
            # A pod of both sides may consume other counters, with another device.
            both = pools[0].holders & pools[1].holders
            yield from (ByPod(lacking, uid) for uid in sorted(both))
        case _:
            pass


def _kind(answer: _Answer | None) -> CauseKind | None:
    return None if answer is None or answer[1].cause is None else answer[1].cause.kind


def _by_device(side: Testimony, node: str) -> dict[_Place, _Answer]:
    """The answer of a node about each device, by entry, request and device."""
    reason = side.nodes.get(node)
    if reason is None:
        return {}
    entries = {f"{each.key.namespace}/{each.key.name}": name for name, each in side.claims.items()}
    return {
        (entries.get(claim, ""), request.request, device.device): (request, device)
        for claim, request in reason.requests()
        for device in request.devices
    }


def _slices(sides: Sides, device: str) -> Iterator[Cause]:
    """The slices of the pool of a device, those that publish it first."""
    published = (side.devices.get(device) for side in sides.values())
    publishing = {facts.slice for facts in published if facts is not None}
    return _slices_of(sides, pool_of(device), publishing)


def _slices_of(sides: Sides, pool: str, first: Set[str] = frozenset()) -> Iterator[Cause]:
    """The slices of a pool on both sides, those in `first` first."""
    names = {
        name
        for side in sides.values()
        if (facts := side.pools.get(pool)) is not None
        for name in facts.slices
    }
    for name in sorted(names, key=lambda name: (name not in first, name)):
        yield ByObject(ObjectKey(*api_resources.RESOURCE_SLICES, "", name))


def _taints(sides: Sides, device: str, left: _Taints, right: _Taints) -> Iterator[Cause]:
    rules = {rule for _, rule in left ^ right}
    for rule in sorted(rules):
        if rule:
            yield ByObject(ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", rule))
        else:
            yield from _slices(sides, device)


def _holders(facts: DeviceFacts | None) -> frozenset[str]:
    return frozenset() if facts is None else facts.holders


def _around(sides: Sides, nodes: Sequence[str]) -> tuple[Cause, ...]:
    """Pods and nodes that affect scores and differ although all verdicts are the same."""
    causes: list[Cause] = []
    for node in nodes:
        facts = [sides[side].node_facts.get(node) for side in ("a", "b")]
        if facts[0] is None or facts[1] is None:
            continue
        causes += partings.by_pods(facts[0].pods, facts[1].pods)
        if facts[0].content != facts[1].content:
            causes.append(ByObject(ObjectKey(*api_resources.NODES, "", node)))
    return tuple(causes)


def _node_text(reason: NodeReason | None) -> str:
    if reason is None:
        return "not asked"
    return reason.text or "would take it"


def _scores_text(scores: Mapping[str, int], nodes: Sequence[str], chosen: str) -> str:
    """The total scores of the chosen nodes, if they explain why this side chose its own.

    The scheduler counts pods in flight at that moment, which are unknown here. If the node that it
    chose is therefore not the best one, the text is empty.
    """
    if len(nodes) < 2 or any(node not in scores for node in (*nodes, chosen)):
        return ""
    if scores[chosen] < max(scores.values()):
        return ""
    listed = sorted(nodes, key=lambda node: (-scores[node], node))
    return ", ".join(f"{node} scores {scores[node]}" for node in listed)


def _device_text(side: Testimony, device: str, answer: _Answer | None) -> str:
    if side.usable(device) is None:
        return side.problem(device) or "not published"
    if answer is None:
        return "not looked at"
    if answer[1].chosen:
        return "chosen"
    if answer[1].cause is not None:
        return answer[1].cause.text
    return answer[1].note or "free"


def _taints_text(facts: DeviceFacts | None) -> str:
    if facts is None:
        return "not published"
    both = sorted(facts.taints | facts.rules)
    taints = [f"{text} by rule {rule}" if rule else text for text, rule in both]
    return f"tainted {', '.join(taints)}" if taints else "not tainted"
