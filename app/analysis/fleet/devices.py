"""The devices of a pool: units with their partitions, and grids of hosts with their slices.

Texts of a profile may contain names in braces, which are filled in: `{unit}` is the number of the
unit, `{half}` is 0 for the first half of the units and 1 for the others, `{uuid}` and `{mac}` are
derived from the seed; the fields of a variant (`{profile}`, `{id}`, `{start}`, …) are available,
too.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.errors import InputError
from app.domain.values import json_tree, well_known
from app.domain.values.fields import dra, entries, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

UNITS_MAX = 64
HOSTS_MAX = 32
"""Each host of a grid is a counter; this is the maximum number of counters in a set."""

_HOLE = re.compile(r"\{([a-zA-Z]+)\}")
_SHAPE = re.compile(r"(\d+)x(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One counter set (empty when nothing is counted) and the devices that draw on it."""

    name: str
    counters: Mapping[str, str]
    devices: tuple[JsonObject, ...]


class _Grid(FieldRecord, frozen=True):
    """The size of a grid and of a host in it, in chips."""

    rows: int = 0
    columns: int = 0
    host_rows: int = 0
    host_columns: int = 0


_grid = records.of_tree(_Grid)


def group_size(row: JsonView) -> int:
    """The number of nodes that share a pool of this kind."""
    if "grid" not in row:
        return 1
    hosts = _hosts(row)
    return hosts[0] * hosts[1]


def selection(nodes: tuple[str, ...]) -> JsonObject:
    """The node selection of a slice or device for these nodes."""
    if len(nodes) == 1:
        return {"nodeName": nodes[0]}
    expression = {"key": well_known.HOSTNAME, "operator": "In", "values": list(nodes)}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def units(row: JsonView, seed: str) -> list[Unit]:
    """The units of one node's pool. Raises InputError for unreadable values."""
    count = json_tree.integer(row, "units") or 1
    if not 1 <= count <= UNITS_MAX:
        raise InputError(f"a pool cannot have {count} units", place="profile")
    counters = {name: str(value) for name, value in dra.counters(row).items()}
    made: list[Unit] = []
    for number in range(count):
        digest = hashlib.sha256(f"{seed}/{number}".encode()).hexdigest()
        names = {
            "unit": str(number),
            "half": str(2 * number // count),
            "uuid": "-".join(
                (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
            ),
            "mac": ":".join(("02", *(digest[start : start + 2] for start in range(0, 10, 2)))),
        }
        unit = filled(json_tree.text(row, "unitName") or "unit-{unit}", names)
        devices = tuple(
            device
            for kind in json_tree.objects(row, "devices")
            for device in _devices(row, kind, unit, counters, names)
        )
        made.append(Unit(name=unit, counters=counters, devices=devices))
    return made


def grid(row: JsonView, nodes: tuple[str, ...]) -> list[Unit]:
    """All aligned slices of a mesh of hosts, from one host to all of them."""
    rows, columns = _hosts(row)
    size = _grid(row.get("grid"))
    chips_down, chips_across = size.host_rows or 1, size.host_columns or 1
    per_host = chips_down * chips_across
    counters = {f"chips-host-{number}": str(per_host) for number in range(rows * columns)}
    devices: list[JsonObject] = []
    for shape in json_tree.texts(row, "shapes"):
        matched = _SHAPE.fullmatch(shape)
        if matched is None:
            raise InputError(f"{shape!r} is not a shape such as 2x4", place="profile")
        down, across = int(matched[1]) // chips_down, int(matched[2]) // chips_across
        if not down or not across or rows % down or columns % across:
            raise InputError(f"{shape} does not fit the grid", place="profile")
        for number, members in enumerate(_tiles(rows, columns, down, across)):
            names = {
                "shape": shape,
                "hosts": str(len(members)),
                "chips": str(len(members) * per_host),
            }
            device = _described(row, {}, names) | selection(tuple(nodes[m] for m in members))
            consumed = {f"chips-host-{m}": {"value": str(per_host)} for m in members}
            device["consumesCounters"] = [{"counterSet": "mesh", "counters": consumed}]
            devices.append({"name": f"tpu-{shape}-{number}", **device})
    return [Unit(name="mesh", counters=counters, devices=tuple(devices))]


def filled(text: str, names: Mapping[str, str]) -> str:
    """The text with its names filled in. Raises InputError for an unknown name."""

    def value(hole: re.Match[str]) -> str:
        if hole[1] not in names:
            raise InputError(f"{{{hole[1]}}} in {text!r} is not known", place="profile")
        return names[hole[1]]

    return _HOLE.sub(value, text)


def _hosts(row: JsonView) -> tuple[int, int]:
    size = _grid(row.get("grid"))
    rows = size.rows // (size.host_rows or 1)
    columns = size.columns // (size.host_columns or 1)
    if not 1 <= rows * columns <= HOSTS_MAX:
        raise InputError(f"a grid of {rows * columns} hosts cannot be made", place="profile")
    return rows, columns


def _tiles(rows: int, columns: int, down: int, across: int) -> Iterator[list[int]]:
    """The hosts of each tile, hosts numbered row by row."""
    for top in range(0, rows, down):
        for left in range(0, columns, across):
            yield [
                row * columns + column
                for row in range(top, top + down)
                for column in range(left, left + across)
            ]


def _devices(
    row: JsonView, kind: JsonView, unit: str, counters: Mapping[str, str], names: dict[str, str]
) -> Iterator[JsonObject]:
    """The device that a row describes, or one for each placement of each of its variants."""
    for variant in json_tree.objects(kind, "variants") or [{}]:
        starts = variant.get("starts")
        for start in starts if isinstance(starts, list) else [None]:
            known = names | {
                field: str(value)
                for field, value in variant.items()
                if isinstance(value, str | int)
            }
            if start is not None:
                known["start"] = str(start)
            device = _described(row, kind, known, dra.capacity(variant))
            consumed = _consumed(kind, variant, counters, start)
            if consumed:
                values = {name: {"value": str(value)} for name, value in consumed.items()}
                device["consumesCounters"] = [{"counterSet": unit, "counters": values}]
            yield {"name": filled(entries.name(kind), known), **device}


def _consumed(
    kind: JsonView, variant: JsonView, counters: Mapping[str, str], start: int | None
) -> dict[str, Any]:
    if kind.get("consumes") == "all":
        return dict(counters)
    consumed = dict(json_tree.mapping(kind, "consumes")) | dict(
        json_tree.mapping(variant, "consumes")
    )
    counter = json_tree.text(kind, "placements", "counter")
    if counter and start is not None:
        for slot in range(start, start + (json_tree.integer(variant, "size") or 1)):
            consumed[filled(counter, {"slot": str(slot)})] = "1"
    return consumed


def _described(
    row: JsonView, kind: JsonView, names: Mapping[str, str], more: JsonView = json_tree.EMPTY
) -> JsonObject:
    """Attributes, capacity and flags of a device: the pool's, then its kind's, then its own."""
    attributes = {
        **dra.attributes(row),
        **dra.attributes(kind),
    }
    capacity = {
        **dra.capacity(row),
        **dra.capacity(kind),
        **more,
    }
    described: JsonObject = {}
    if attributes:
        described["attributes"] = {
            name: _attribute(value, names) for name, value in attributes.items()
        }
    if capacity:
        described["capacity"] = {name: _capacity(value, names) for name, value in capacity.items()}
    if kind.get("allowMultipleAllocations") is True:
        described["allowMultipleAllocations"] = True
    return described


def _attribute(value: Any, names: Mapping[str, str]) -> JsonObject:
    if not isinstance(value, dict) or len(value) != 1:
        raise InputError(f"{value!r} is not an attribute such as {{string: x}}", place="profile")
    ((kind, given),) = value.items()
    if kind == "bool":
        return {"bool": given is True}
    text = filled(str(given), names)
    return {"int": int(text)} if kind == "int" else {kind: text}


def _capacity(value: Any, names: Mapping[str, str]) -> JsonObject:
    if isinstance(value, dict):
        copied: JsonObject = json_tree.copy(value)
        return copied
    return {"value": filled(str(value), names)}
