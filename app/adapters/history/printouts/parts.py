"""Functions for readers of tables and descriptions: cells of rows, and objects with few fields."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.objects.kind import Kind
from app.domain.values.json_tree import JsonObject

ROW_NAME = re.compile(r"[a-z0-9](?:[a-z0-9:/_-]|\.(?!\.|$))*")
"""The name of an object; three dots stand for what was cut."""

NOT_SHOWN = ("<none>", "<unset>", "<unknown>", "")
"""The words of kubectl for a field without a value."""


@dataclass(slots=True)
class Printout:
    """The objects of a table or description, and its number of lines: 0 when none begins there.

    `damage` has the index of a line, counted from the first, and a sentence for what is missing.
    """

    objects: list[JsonObject] = field(default_factory=list)
    lines: int = 0
    damage: list[tuple[int, str]] = field(default_factory=list)


def cells(line: str, titles: Sequence[tuple[int, str]]) -> dict[str, str]:
    """The cells of a row, by title.

    Cells are split at the positions of the titles. In a wider row of `--watch`, or where tabs were
    changed, they are split at runs of spaces instead. The result is empty when neither works.
    """
    borders = [start for start, _ in titles[1:]] + [len(line) + 1]
    texts = [line[start:border].strip() for (start, _), border in zip(titles, borders, strict=True)]
    if any(line[at - 1 : at].strip() for at in borders[:-1]) or any("  " in c for c in texts[:-1]):
        words = re.split(r"\s{2,}", line.strip(), maxsplit=len(titles) - 1)
        if len(words) != len(titles):
            return {}
        texts = words
    return {title: cell for (_, title), cell in zip(titles, texts, strict=True)}


def identity(kind: Kind, name: str, namespace: str) -> JsonObject:
    """The object with its name, in the version in which redra stores it."""
    metadata: JsonObject = {"name": name}
    if kind.namespaced and namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.storage_api_version, "kind": kind.kind, "metadata": metadata}


def fill(tree: JsonObject, part: str, **fields: str) -> None:
    """Adds the fields that are shown to a part of the object."""
    shown = {name: text for name, text in fields.items() if text not in NOT_SHOWN}
    if shown:
        tree.setdefault(part, {}).update(shown)
