"""Declarations of tables: columns, and the functions that make the cells of an object.

A table is declared by its columns, `Name, Node=.spec.nodeName, #Pools, Age [Selector]`:

- Before a title: `#` integers, `?` booleans, `@` dates, `=` names; others are strings. Brackets
  hold the columns of wide output.
- After a title: the path of its cell, `.path` a string, `#path` an integer or 0, `?path` a boolean,
  `*path` the strings of a list, `+path` the length of a list. The text after `|` is the cell of a
  missing value.
- A title without a path has a function of the object and the current time, or one of
  `cells.STANDARD`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

Cell: TypeAlias = str | int | float | bool | None
Cells: TypeAlias = list[Cell]
CellOf: TypeAlias = Callable[[JsonObject, Instant], Cell]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column; one with a `priority` above zero is shown only in wide output."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def as_json(self) -> JsonObject:
        """The column as a TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Printer:
    """The columns of a table, and the function that makes the cells of an object."""

    columns: tuple[TableColumn, ...]
    cells: Callable[[JsonObject, Instant], Cells]


def table(declared: str, functions: Mapping[str, CellOf]) -> Printer:
    """The printer of the declared columns; `functions` make the cells of titles without a path."""
    row = [cell_at(path) if path else functions[title] for _, title, path, _ in _declared(declared)]
    return Printer(
        columns=columns(declared), cells=lambda tree, now: [cell(tree, now) for cell in row]
    )


def columns(declared: str) -> tuple[TableColumn, ...]:
    """The declared columns, for tables whose rows are made by one function."""
    return tuple(
        TableColumn(
            name=title,
            type=_TYPES.get(sort, "string"),
            format="name" if sort == "=" or (title == "Name" and not number) else "",
            description=_DESCRIPTIONS.get(title, ""),
            priority=priority,
        )
        for number, (sort, title, _, priority) in enumerate(_declared(declared))
    )


def _declared(declared: str) -> Iterator[tuple[str, str, str, int]]:
    """Yields type mark, title, path and priority of each column."""
    shown, _, wide = declared.partition("[")
    for priority, part in ((0, shown), (1, wide.rstrip("]"))):
        for piece in filter(None, (piece.strip() for piece in part.split(","))):
            sort = piece[0] if piece[0] in _SORTS else ""
            title, _, path = piece.removeprefix(sort).partition("=")
            yield sort, title, path, priority


def cell_at(declared: str) -> CellOf:
    """Returns the function of a cell for a path, as written after a title."""
    place, _, otherwise = declared.partition("|")
    path = place[1:].split(".")
    match place[0]:
        case "#":
            return lambda tree, _: json_tree.integer(tree, *path) or 0
        case "?":
            return lambda tree, _: json_tree.flag(tree, *path)
        case "*":
            return lambda tree, _: ",".join(json_tree.texts(tree, *path)) or otherwise
        case "+":
            return lambda tree, _: len(json_tree.objects(tree, *path))
        case _:
            return lambda tree, _: json_tree.text(tree, *path) or otherwise


_SORTS = "#?@="
_TYPES = {"#": "integer", "?": "boolean", "@": "date"}
_DESCRIPTIONS = {
    "Name": "Name of the object, unique within its namespace and kind",
    "Age": "Time since the object was created",
    "State": "What has become of the claim: pending, allocated, reserved, deleted",
    "Node": "Node that the object belongs to or runs on",
    "Driver": "Driver that publishes the devices",
    "Pool": "Pool that the slice is part of",
    "TimeAdded": "Time since the taint was added",
    "Status": "Present state",
    "Ready": "How many parts are ready, of how many",
    "Restarts": "How often containers were started again, and when last",
    "Last Seen": "Time since it was last observed",
    "Object": "Kind and name of the object concerned",
}
