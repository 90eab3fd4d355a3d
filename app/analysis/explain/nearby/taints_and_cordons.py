"""The taints that a pod does not tolerate, and the cordons, that close nodes to it.

A toleration may be meant for a taint and not fit it: its value, effect or key is written otherwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from app.analysis.explain import tainted
from app.analysis.explain.nearby import names
from app.analysis.explain.reasons import listed
from app.domain.controllers.nodes import readiness
from app.domain.controllers.scheduling.framework import filters
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.devices.taints import taint_of
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

_CORDON = "cordoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A cordon, or a taint of some key and effect, with the nodes that it closes.

    `taint` is `KEY:EFFECT`, empty for a cordon. `text` describes the first node, whose taint is
    `first`.
    """

    taint: str
    text: str
    nodes: tuple[str, ...]
    first: JsonView | None = None

    @property
    def sentence(self) -> str:
        """The nodes with what closes them. The values of taints may differ from node to node."""
        if len(self.nodes) == 1:
            return f"node {self.nodes[0]} is {self.text}"
        what = f"tainted {self.taint}" if self.taint else _CORDON
        return f"nodes {listed(self.nodes, len(self.nodes))} are {what}"

    def is_of(self, node: JsonView) -> bool:
        """Whether a state of a node has this cordon or taint."""
        if not self.taint:
            return core.unschedulable(node)
        return any(_kind(taint) == self.taint for taint in core.taints(node))


def cordon(node: str) -> Closing:
    """The cordon of a node."""
    return Closing(taint="", text=_CORDON, nodes=(node,))


def taint(name: str, node: JsonView, tree: JsonView) -> Closing:
    """The taint `tree` of a node, with the condition for which the node controller sets it."""
    text = f"tainted {taint_of(tree).text}{_condition(node, tree)}"
    return Closing(taint=_kind(tree), text=text, nodes=(name,), first=tree)


def of_pod(pod: PodSpec, nodes: Mapping[str, JsonView]) -> list[Closing]:
    """The causes that close these nodes to a pod, in their order; a cordon counts alone."""
    is_cordon_tolerated = filters.is_tolerated(pod, filters.UNSCHEDULABLE_TAINT)
    closings: dict[str, Closing] = {}
    for name, tree in sorted(nodes.items()):
        if core.unschedulable(tree) and not is_cordon_tolerated:
            here = [cordon(name)]
        else:
            here = [
                taint(name, tree, one)
                for one in core.taints(tree)
                if one.get("effect") in filters.HARD_EFFECTS and not filters.is_tolerated(pod, one)
            ]
        for one in here:
            known = closings.get(one.taint)
            both = one if known is None else replace(known, nodes=(*known.nodes, name))
            closings[one.taint] = both
    return list(closings.values())


def misfits(pod: PodSpec, closing: Closing) -> Iterator[str]:
    """The tolerations of a pod whose key is that of a taint which they do not fit, or nearly so.

    They were probably meant for the taint.
    """
    tree = closing.first
    if tree is None or tree.get("key") in readiness.CONDITION_KEYS:
        return
    for toleration in pod.tolerations:
        key = str(toleration.get("key") or "")
        if key and names.is_near(str(tree.get("key")), key):
            text = f"the pod tolerates {tainted.toleration_text(toleration)}, which does not fit "
            yield f"{text}taint {taint_of(tree).text}"


def _condition(node: JsonView, tree: JsonView) -> str:
    """The condition behind a taint, as its node reports it; empty for the taints of users."""
    wanted = next(
        (name for name, key in readiness.TROUBLES.items() if key == tree.get("key")), None
    )
    condition = meta.condition(node, wanted) if wanted else None
    if condition is None or condition.status != "True":
        return ""
    return f" ({wanted}: {condition.message or condition.reason})"


def _kind(tree: JsonView) -> str:
    """The taint without its value."""
    return f"{tree.get('key')}:{tree.get('effect')}"
