"""The answer of one node with its reasons: the scheduler's text, and a reason for each device."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis.explain.node_answers import NodeAnswer, OpenNode
from app.analysis.explain.tallies import grouped, missing_class
from app.domain.allocation.reasons.explanation import Explanation, RequestReason
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReason:
    """The answer of one node: the scheduler's text, and the explanation if the allocator was asked.

    `opened` is the answer that a closed node would give if it were open. `elsewhere` names the
    pod's allocated claims that cannot be used on the node. `has_devices` is whether the claims
    could be allocated on a node that refuses the pod for another reason, `detail` says more of it.
    """

    node: str
    text: str
    explained: Explanation | None = None
    opened: OpenNode | None = None
    elsewhere: frozenset[str] = frozenset()
    has_devices: bool = False
    detail: str = ""

    def requests(self) -> list[tuple[str, RequestReason]]:
        """The pairs of claim and request, in order; empty without an explanation."""
        if self.explained is None:
            return []
        return [(claim.claim, one) for claim in self.explained.claims for one in claim.requests]

    @property
    def is_error(self) -> bool:
        """True when the node gave an error rather than a refusal."""
        return self.explained is not None and self.explained.outcome == "error"

    @property
    def is_combination(self) -> bool:
        """True when each request could be satisfied alone, so that only a search explains it."""
        requests = self.requests()
        return bool(requests) and all(one.suitable >= one.needs for _, one in requests)

    @property
    def is_asked(self) -> bool:
        """Whether it is known how near the pod is to fitting: its devices were looked at."""
        if self.is_error:
            return False
        is_open = self.opened is not None and not self.opened.text
        return self.explained is not None or self.has_devices or not self.text or is_open

    @property
    def lacking(self) -> int:
        """The number of requests that find no device on the node of the class they ask for."""
        return 0 if self.is_error else sum(map(_finds_none, self.requests()))

    def to_json(self) -> JsonObject:
        """The node with every device."""
        body: JsonObject = {"node": self.node, "text": self.text}
        if self.opened is not None:
            body["opened"] = {"change": self.opened.change, "text": self.opened.text}
        if self.detail:
            body["why"] = self.detail
        if self.has_devices:
            body["hasDevices"] = True
        explained = self.explained
        if explained is None:
            return body
        body |= {"outcome": explained.outcome, "detail": explained.text}
        if explained.pools:
            body["pools"] = [{"pool": pool, "problem": why} for pool, why in explained.pools]
        body["claims"] = [
            {"claim": claim.claim, "requests": [_request_json(one) for one in claim.requests]}
            for claim in explained.claims
        ]
        if explained.tried:
            body["tried"] = [one.tree() for one in explained.tried]
            body["givenUp"] = explained.given_up
        if explained.deepest is not None:
            devices = list(explained.picks)
            body["deepest"] = {"taken": devices, **_request_json(explained.deepest)}
        if explained.quirks:
            body["quirks"] = list(explained.quirks)
        return body


def node_reason(answer: NodeAnswer, *, effort_steps: int) -> NodeReason:
    """The answer of one node, with the reasons down to the device."""
    explained = answer.explain(effort_steps=effort_steps)
    return NodeReason(
        node=answer.node,
        text=answer.text,
        explained=explained,
        opened=answer.opened,
        elsewhere=answer.elsewhere,
        has_devices=answer.has_devices,
        detail=answer.detail,
    )


def _request_json(request: RequestReason) -> JsonObject:
    return {
        "request": request.request,
        "wants": request.wants,
        "needs": request.needs,
        "suitable": request.suitable,
        "total": len(request.devices),
        "text": request.text,
        "devices": grouped(request.alike),
    }


def missing_classes(nodes: Sequence[NodeReason]) -> dict[str, None]:
    """The classes of requests for which no node that looked at its devices has one of the class."""
    seen: dict[tuple[str, str], str] = {}
    for one in nodes:
        for claim, request in one.requests():
            key, name = (claim, request.request), missing_class(request)
            seen[key] = name and seen.get(key, name)
    return dict.fromkeys(filter(None, seen.values()))


def _finds_none(of_claim: tuple[str, RequestReason]) -> bool:
    _, request = of_claim
    if request.suitable >= request.needs:
        return False
    return not request.devices or bool(missing_class(request))
