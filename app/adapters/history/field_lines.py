"""The line numbers of the fields of objects in a YAML or JSON file."""

import re
from collections.abc import Sequence

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

_STEP = re.compile(r"\[([^\[\]]*)\]|([^.\[\]]+)")
WRAPPERS = ("exactly", "basic")
"""Fields that some API versions have around the fields of a path, and others do not."""


_BORDER = b"---"


class FieldLines:
    """A file whose documents are parsed for line numbers, each document on first use.

    For a document that cannot be parsed alone, such as one of several consecutive JSON documents,
    the line of every field is the first line of the document.
    """

    def __init__(self, content: bytes) -> None:
        self._lines = content.splitlines(keepends=True)
        self._documents: dict[int, Node | None] = {}

    def line(self, document: int, path: str) -> int:
        """The line of the deepest part of the path that exists in the document.

        `document` is the number of its first line.
        """
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
            return None  # a reader with another grammar knows the first line


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
                # Report the line of the key: the value may begin below it.
                value.start_mark = key.start_mark
                return value  # type: ignore[no-any-return]  # nodes have no types
    elif isinstance(node, SequenceNode) and step.isdigit() and int(step) < len(node.value):
        return node.value[int(step)]  # type: ignore[no-any-return]  # nodes have no types
    return None
