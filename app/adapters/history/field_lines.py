"""In which line of a YAML or JSON file a field of an object stands."""

import re
from collections.abc import Sequence

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
WRAPPERS = ("exactly", "basic")
"""Fields that only some versions have around what a path of the storage version names."""


_BORDER = b"---"


class FieldLines:
    """A file whose documents are parsed for the lines of their values, each when it is asked for.

    A document that is not read alone, such as one of several JSON documents in a row, has the line
    of its beginning for all fields.
    """

    def __init__(self, content: bytes) -> None:
        self._lines = content.splitlines(keepends=True)
        self._documents: dict[int, Node | None] = {}

    def line(self, document: int, path: str) -> int:
        """The line of the deepest part of the path that the document which begins there has."""
        if document not in self._documents:
            self._documents[document] = self._compose(document)
        node = self._documents[document]
        if node is None:
            return document
        return int(_descend(node, _steps(path)).start_mark.line) + document

    def _compose(self, document: int) -> Node | None:
        end = document
        while end < len(self._lines) and not self._lines[end].startswith(_BORDER):
            end += 1
        try:
            return yaml.compose(b"".join(self._lines[document - 1 : end]), yaml.CSafeLoader)
        except yaml.YAMLError:
            return None  # who has read the file by another grammar knows where it begins


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
