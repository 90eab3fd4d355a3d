"""Cached verdicts about kinds of pods on nodes, valid while the nodes do not change.

Two pods are of one kind when they are the same to all filters and scores that look at a node
alone: equal shape, equal claims. The verdict of a kind on a node is reused while the node's version
is the same, so the second of two equal pods costs one comparison per node. The cache never changes
a result: a verdict depends only on the kind of pod and on the state that the node's version
identifies.

The verdicts of devices depend on the claims alone. Kinds with equal claims share them, so pods that
differ from each other in requests check the devices of a node once.
"""

from dataclasses import dataclass, field

from app.domain.allocation import Allocation
from app.domain.allocation.reasons.summary import NodeCauses
from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.log import ObjectKey
from app.domain.values.bounded import Bounded

KINDS_MIN = 32
"""The kinds of pods that are cached however many nodes there are; the least recently used goes
first."""

VERDICTS_MAX = 64_000
"""The verdicts on nodes up to which more kinds are cached: on 500 nodes 128 kinds, some 12 MB."""


@dataclass(slots=True, kw_only=True, eq=False)
class DeviceVerdict:
    """The result of the DynamicResources filter for a node.

    `served` are the extended resources that devices serve on the node. `causes` are the devices'
    reasons, counted when a decision is written. `error` ends the attempt. `claims` are set when the
    refusal or error may name one of them; the verdict is then valid only for pods with these
    claims. `unavailable` are the indexes of allocated claims that cannot be used from the node.
    `allocation` is set when unallocated claims fit.
    """

    refusal: NodeRejection | None = None
    error: str = ""
    unavailable: tuple[int, ...] = ()
    allocation: Allocation | None = None
    served: frozenset[str] = frozenset()
    claims: tuple[ObjectKey, ...] | None = None
    score: int = 0
    causes: NodeCauses | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class NodeVerdict:
    """The verdict about a kind of pod on one node, at one version of the node."""

    version: int
    refusal: NodeRejection | None
    devices: DeviceVerdict | None = None
    room: int = 0
    soft_taints: int = 0
    preference: int = 0


_UNCHECKED = NodeVerdict(version=-1, refusal=None)
"""Stands for the verdict on a node that was not checked yet."""

UNKNOWN, FITS, REFUSED = 0, 1, 2
"""The states of a node for a kind of pod, as bytes in the order of the nodes."""


@dataclass(slots=True, kw_only=True, eq=False)
class KindOfPod:
    """The verdicts of one kind, by node name; `by_claims` are the last ones with its claims.

    `states` has a byte per node in the order of nodes, so that many nodes are searched at once, and
    `in_order` the verdicts of those whose state is known; `era` and `cursor` identify the last
    change of nodes that the states include. `hopeless_at` is
    the version of all nodes at which the last attempt found no node, `hopeless` its tally.
    """

    by_node: dict[str, NodeVerdict] = field(default_factory=dict)
    by_claims: dict[str, NodeVerdict] = field(default_factory=dict)
    states: bytearray = field(default_factory=bytearray)
    in_order: list[NodeVerdict] = field(default_factory=list)
    era: int = -1
    cursor: int = 0
    hopeless_at: int = -1
    hopeless: object = None

    def refresh(self, nodes: NodeIndex) -> bytearray:
        """Updates and returns the states: nodes that have changed become unknown."""
        if self.era != nodes.era:
            self.states = bytearray(len(nodes))
            self.in_order = [_UNCHECKED] * len(nodes)
            self.era = nodes.era
            self.cursor = nodes.cursor
            return self.states
        places, self.cursor = nodes.touched_since(self.cursor)
        for place in places:
            self.states[place] = UNKNOWN
        return self.states


class Verdicts:
    """The cached kinds of pods, least recently used first."""

    def __init__(self) -> None:
        self._kinds: Bounded[tuple[bytes, bytes], KindOfPod] = Bounded(KINDS_MIN)
        self._by_claims: Bounded[bytes, dict[str, NodeVerdict]] = Bounded(KINDS_MIN)

    def of(self, shape: bytes, claims: bytes, *, nodes: int) -> KindOfPod:
        """The verdicts of pods with this shape and these claims; they are empty for a new kind.

        The fewer `nodes` there are, the more kinds are kept.
        """
        kind = (shape, claims)
        known = self._kinds.recent(kind)
        if known is None:
            kinds_max = max(KINDS_MIN, VERDICTS_MAX // max(nodes, 1))
            self._kinds.resize(kinds_max)
            self._by_claims.resize(kinds_max)
            by_claims = self._by_claims.recent(claims)
            if by_claims is None:
                by_claims = self._by_claims[claims] = {}
            known = self._kinds[kind] = KindOfPod(by_claims=by_claims)
        return known

    def clear(self) -> None:
        """Removes all verdicts, after a change that the versions of nodes do not cover."""
        self._kinds.clear()
        self._by_claims.clear()
