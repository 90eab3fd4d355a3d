"""The nodes that a slice or a device is for. Parity: allocator.md 2.1."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.values import json_tree, selectors
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView
from app.domain.values.selectors import NodeSelector, SelectorError


class NodeSelectionError(Exception):
    """A node selector that cannot be parsed. It is raised only on a match and ends the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The node of an allocation."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """A choice of nodes: by name, all nodes, or by selector. `tree` is the published selector.

    `problem` is the error text of a selector that cannot be parsed; `matches` raises it.
    """

    name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None
    tree: JsonView | None = None
    problem: str = ""

    @property
    def is_set(self) -> bool:
        """True when one of the three fields is set."""
        return bool(self.name) or self.all_nodes or self.tree is not None

    def matches(self, node: Node) -> bool:
        """Whether the choice includes the node. Raises NodeSelectionError for a bad selector."""
        if self.name:
            return self.name == node.name
        if self.all_nodes:
            return True
        if self.problem:
            raise NodeSelectionError(self.problem)
        return self.selector is not None and self.selector.matches(node.name, node.labels)


NOWHERE = NodeChoice()
"""A choice with no field set, which matches no node."""


def node_of(tree: JsonView) -> Node:
    """The node of an API object."""
    return Node(
        name=meta.name(tree),
        labels=meta.labels(tree),
    )


def choice_of(tree: JsonView) -> NodeChoice:
    """The choice in a slice's spec or in a device."""
    name = json_tree.text(tree, "nodeName")
    all_nodes = json_tree.flag(tree, "allNodes")
    selector_tree = json_tree.get(tree, "nodeSelector")
    if not isinstance(selector_tree, Mapping):
        return NodeChoice(name=name, all_nodes=all_nodes) if name or all_nodes else NOWHERE
    try:
        selector = selectors.node_selector_of(selector_tree)
    except SelectorError as problem:
        text = selectors.node_selector_text(selector_tree)
        return NodeChoice(
            name=name,
            all_nodes=all_nodes,
            tree=selector_tree,
            problem=f"failed to parse node selector {text}: {problem}",
        )
    return NodeChoice(name=name, all_nodes=all_nodes, selector=selector, tree=selector_tree)
