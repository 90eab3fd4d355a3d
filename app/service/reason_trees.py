"""Reasons as a tree that fits a page: equal branches of many nodes are told once, with counts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.allocation.explanation import ClaimReason, DeviceReason, RequestReason
from app.domain.controllers.scheduling.reasons import NodeAnswer
from app.domain.values.json_tree import JsonObject

NAMES_MAX = 3
"""Names given as examples where many share a reason; counts stay exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason and what is behind it; `count` is how many things it stands for."""

    text: str
    children: tuple["Reason", ...] = ()
    count: int = 1

    def to_json(self) -> JsonObject:
        """The branch as JSON."""
        found: JsonObject = {"text": self.text}
        if self.count != 1:
            found["count"] = self.count
        if self.children:
            found["children"] = [child.to_json() for child in self.children]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReason:
    """The reasons of one node, before nodes are merged."""

    node: str
    text: str
    children: tuple[Reason, ...]


def node_reason(answer: NodeAnswer) -> NodeReason:
    """What one node said, down to groups of devices."""
    explained = answer.explain()
    if explained is None:
        return NodeReason(node=answer.node, text=answer.text or "it fits", children=())
    children = [
        Reason(text=f"pool {pool} cannot be used: {problem}") for pool, problem in explained.pools
    ]
    children += [_claim(claim, answer.node) for claim in explained.claims]
    if explained.deepest is not None:
        deepest = explained.deepest
        taken = f" after taking {', '.join(explained.taken)}" if explained.taken else ""
        children.append(
            Reason(
                text=f"the search got as far as request {deepest.request}{taken}: {deepest.text}",
                children=_devices(deepest.devices, answer.node),
            )
        )
    children += [Reason(text=f"upstream quirk: {quirk}") for quirk in explained.quirks]
    text = answer.text or explained.text
    return NodeReason(node=answer.node, text=text, children=tuple(children))


def merge_nodes(found: Sequence[NodeReason]) -> tuple[Reason, ...]:
    """One branch per distinct answer, the most frequent first; ties in node order."""
    groups: dict[tuple[str, tuple[Reason, ...]], list[str]] = {}
    for reason in found:
        groups.setdefault((reason.text, reason.children), []).append(reason.node)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return tuple(
        Reason(text=f"{_names('node', names)}: {text}", children=children, count=len(names))
        for (text, children), names in ordered
    )


def _claim(claim: ClaimReason, node: str) -> Reason:
    return Reason(
        text=f"claim {claim.claim}",
        children=tuple(_request(request, node) for request in claim.requests),
    )


def _request(request: RequestReason, node: str) -> Reason:
    return Reason(
        text=request.text,
        children=_devices(request.devices, node),
    )


def _devices(devices: Iterable[DeviceReason], node: str) -> tuple[Reason, ...]:
    groups: dict[str, list[str]] = {}
    for device in devices:
        text = _device_text(device).replace(node, "<node>") if node else _device_text(device)
        groups.setdefault(text, []).append(device.device.replace(node, "<node>"))
    return tuple(
        Reason(text=f"{_names('device', names)}: {text}", count=len(names))
        for text, names in groups.items()
    )


def _device_text(device: DeviceReason) -> str:
    if device.chosen:
        return "chosen"
    if device.cause is not None:
        return device.cause.text
    return device.note or "nothing is against it"


def _names(noun: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{noun} {names[0]}"
    shown = ", ".join(names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return f"{len(names)} {noun}s ({shown}{f' and {more} more' if more > 0 else ''})"
