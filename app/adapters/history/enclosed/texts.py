"""Texts in the fields of documents that are no objects: bodies of issues, outputs of notebooks.

    {"title": "It hangs", "body": "See\\n```yaml\\napiVersion: v1\\nkind: Pod\\n…"}

A text that a program cut into lines (`["apiVersion: v1\\n", "kind: Pod\\n"]`) is one text.
"""

from collections.abc import Iterator
from typing import Any

DEPTH_MAX = 16
"""Levels of a document below which no text is looked for."""

_MARKS = ("apiVersion", "kind")


def within(value: Any, depth: int = DEPTH_MAX) -> Iterator[str]:
    """The texts that may hold objects. What stands within an object is a part of it."""
    if depth == 0:
        return
    if isinstance(value, str):
        if all(mark in value for mark in _MARKS):
            yield value
    elif isinstance(value, list):
        if len(value) > 1 and all(isinstance(item, str) for item in value):
            ends = "" if any(item.endswith("\n") for item in value) else "\n"
            yield from within(ends.join(value), depth - 1)
            return
        for item in value:
            yield from within(item, depth - 1)
    elif isinstance(value, dict):
        if "metadata" in value and ("apiVersion" in value or "kind" in value):
            return
        for name, part in value.items():
            # Annotations keep what was once applied, which is not what is there.
            if name != "annotations":
                yield from within(part, depth - 1)
