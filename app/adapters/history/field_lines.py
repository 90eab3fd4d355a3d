"""In which line of a YAML or JSON file a field of an object stands."""

import re
from collections.abc import Sequence

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
WRAPPERS = ("exactly", "basic")
"""Fields that only some versions have around what a path of the storage version names."""


class FieldLines:
    """The documents of one file, parsed once for the lines of their values."""

    def __init__(self, content: bytes) -> None:
        self._documents: dict[int, Node] = {}
        try:
            loader = yaml.CSafeLoader(content)
            while loader.check_node():
                node = loader.get_node()
                if node is not None:
                    self._documents[node.start_mark.line + 1] = node
        except yaml.YAMLError:
            return  # who has read the file by another grammar knows the lines of its documents

    def line(self, document: int, path: str) -> int:
        """The line of the deepest part of the path that the document has.

        `document` is a line at or before the beginning of its first field.
        """
        begins = [line for line in self._documents if line >= document]
        if not begins:
            return document
        return _descend(self._documents[min(begins)], _steps(path)).start_mark.line + 1


def _steps(path: str) -> list[str]:
    """`spec.devices[2].attributes[a.b/c]` as its steps."""
    return [bracket or plain for bracket, plain in _STEP.findall(path)]


def _descend(node: Node, steps: Sequence[str]) -> Node:
    for number, step in enumerate(steps):
        child = _child(node, step)
        if child is None:
            for wrapper in WRAPPERS:
                inner = _child(node, wrapper)
                if inner is not None and step != wrapper and _child(inner, step) is not None:
                    return _descend(inner, steps[number:])
            if step in WRAPPERS:
                continue
            return node
        node = child
    return node


def _child(node: Node, step: str) -> Node | None:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                # The line of the key, where the value begins below it.
                value.start_mark = key.start_mark
                return value  # type: ignore[no-any-return]
    elif isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.value):
        return node.value[int(step)]  # type: ignore[no-any-return]
    return None
