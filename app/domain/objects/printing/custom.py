"""Tables of custom kinds: the name, then the declared columns, or the age if none is declared.

Parity: api.md 6, "Columns"; additionalPrinterColumns of apiextensions.k8s.io/v1.
"""

from typing import Any

import msgspec

from app.domain.objects.kind import CustomVersion
from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import Cells, Printer, TableColumn
from app.domain.values import json_paths, json_tree, timestamps
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_NAME = TableColumn(
    name="Name", format="name", description="Name of the object, unique within its kind"
)
_AGE: JsonView = {
    "name": "Age",
    "type": "date",
    "description": "Time since the object was created",
    "jsonPath": ".metadata.creationTimestamp",
}


def printer(version: CustomVersion) -> Printer:
    """Columns and cells of one version of a custom kind."""
    rows = version.columns or (_AGE,)
    columns = [_NAME]
    columns += [
        TableColumn(
            name=entries.name(row),
            type=json_tree.text(row, "type"),
            format=json_tree.text(row, "format"),
            description=json_tree.text(row, "description"),
            priority=json_tree.integer(row, "priority") or 0,
        )
        for row in rows
    ]
    places = [(json_tree.text(row, "jsonPath"), json_tree.text(row, "type")) for row in rows]

    def cells(tree: JsonObject, now: Instant) -> Cells:
        name = meta.name(tree)
        return [name, *(_cell(tree, path, kind, now) for path, kind in places)]

    return Printer(columns=tuple(columns), cells=cells)


def _cell(tree: JsonObject, path: str, kind: str, now: Instant) -> str | int | float | bool | None:
    """The cell of one column; None, which is shown as empty, if the object has no such value."""
    try:
        values = json_paths.select(tree, path)
    except json_paths.JsonPathError:
        return None
    if not values:
        return None
    if kind == "string":
        return " ".join(_shown(value) for value in values)
    value = values[0]
    match kind:
        case "integer" if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value)
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            return _age(value, now)
    return None


def _age(value: str, now: Instant) -> str:
    try:
        timestamps.parse(value)
    except timestamps.TimestampError:
        return "<invalid>"
    return age_text(value, now)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
