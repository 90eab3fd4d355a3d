"""What a table for people is made of: columns, and the function that fills them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

Cell: TypeAlias = str | int | float | bool | None
Cells: TypeAlias = list[Cell]

NONE = "<none>"

Row: TypeAlias = tuple[str, str, str, Callable[[JsonObject, Instant], Cells]]
"""Group and resource, the columns as text, the function that fills them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column; a `priority` above zero is shown only in wide output."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def as_json(self) -> JsonObject:
        """A TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Printer:
    """Columns and the function that fills them."""

    columns: tuple[TableColumn, ...]
    cells: Callable[[JsonObject, Instant], Cells]
