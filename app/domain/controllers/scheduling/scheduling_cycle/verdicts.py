"""What was found out about kinds of pods on nodes, kept as long as the nodes stay as they are.

Two pods are of one kind when no filter or score can tell them apart: equal shape, equal claims. The
verdict of a kind on a node is reused while the node's version is the same, so the second of two
equal pods costs one comparison per node. Nothing here changes an answer: a verdict is a function of
the pod's kind and of what the node's version stands for.
"""

from dataclasses import dataclass, field

from app.domain.allocation import Allocation
from app.domain.allocation.reasons.summary import NodeCauses
from app.domain.controllers.scheduling.framework.filters import NodeRejection
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.log import ObjectKey
from app.domain.values.bounded import Bounded

KINDS_MAX = 32
"""How many kinds of pods are remembered; the one not seen for longest is forgotten first."""


@dataclass(slots=True, kw_only=True, eq=False)
class DeviceVerdict:
    """What the DynamicResources filter says of a node.

    `served` are the extended resources that devices serve on the node. `causes` are the devices'
    reasons, counted when a decision is written. `error` ends the attempt. `claims` are set when the
    refusal or error names one of them: it is told to nobody else. `unavailable` are the numbers of
    allocated claims that cannot be used from the node. `allocation` is set when unallocated claims
    fit.
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
    """A kind of pod on one node, at one version of the node."""

    version: int
    refusal: NodeRejection | None
    devices: DeviceVerdict | None = None
    room: int = 0
    soft_taints: int = 0
    preference: int = 0


UNKNOWN, FITS, REFUSED = 0, 1, 2
"""What is known of a node for a kind of pod, as bytes in the order of the nodes."""


@dataclass(slots=True, kw_only=True, eq=False)
class KindOfPod:
    """The verdicts of one kind, by node name.

    `states` has a byte per node in the order of nodes, so that a run of nodes is looked through at
    once; `era` and `cursor` tell up to which change of nodes they hold. `hopeless_at` is the
    version of all nodes at which the last attempt found no node, with what it found.
    """

    by_node: dict[str, NodeVerdict] = field(default_factory=dict)
    states: bytearray = field(default_factory=bytearray)
    era: int = -1
    cursor: int = 0
    hopeless_at: int = -1
    hopeless: object = None

    def refresh(self, nodes: NodeIndex) -> bytearray:
        """The states of all nodes now; those that changed are unknown."""
        if self.era != nodes.era:
            self.states = bytearray(len(nodes))
            self.era = nodes.era
            _, self.cursor = nodes.touched_since(0)
            return self.states
        places, self.cursor = nodes.touched_since(self.cursor)
        for place in places:
            self.states[place] = UNKNOWN
        return self.states


class Verdicts:
    """Kinds of pods, least recently used first."""

    def __init__(self) -> None:
        self._kinds: Bounded[bytes, KindOfPod] = Bounded(KINDS_MAX)

    def of(self, kind: bytes) -> KindOfPod:
        """The verdicts of a kind; empty ones when it is new."""
        known = self._kinds.recent(kind)
        if known is None:
            known = self._kinds[kind] = KindOfPod()
        return known

    def clear(self) -> None:
        """Forget everything: something changed that versions do not cover."""
        self._kinds.clear()
