"""The tables of `kubectl get -o custom-columns`, whose command tells which fields they show.

    $ kubectl get events -A -o custom-columns=AT:.lastTimestamp,ON:.involvedObject.kind,…
    AT                     ON    …
    2026-01-02T03:04:05Z   Pod   …

Only fields of the tables below are taken; a path into a list shows no place in it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from app.adapters.history.printouts import event_objects, parts
from app.adapters.history.printouts.parts import Printout
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import TimestampError

COLUMNS_MAX = 64
"""Columns of a table that are read."""

_COUNT = re.compile(r"[0-9]{1,9}")
_Reader: TypeAlias = Callable[[str], str | int | None]
_EVENTS = registry.find_name("events")[0]


def _word(cell: str) -> str | int | None:
    return cell


def _count(cell: str) -> str | int | None:
    return int(cell) if _COUNT.fullmatch(cell) else None


def _time(cell: str) -> str | int | None:
    try:
        timestamps.parse(cell)
    except TimestampError:
        return None
    return cell


_OF_ALL: Mapping[str, _Reader] = {
    "metadata.creationTimestamp": _time,
    "metadata.deletionTimestamp": _time,
    "metadata.uid": _word,
}
_OF_KINDS: Mapping[str, Mapping[str, _Reader]] = {
    "Pod": {"spec.nodeName": _word, "status.phase": _word, "status.podIP": _word},
    "Node": {"status.nodeInfo.kubeletVersion": _word},
    "ResourceSlice": {
        "spec.driver": _word,
        "spec.nodeName": _word,
        "spec.pool.name": _word,
        "spec.pool.generation": _count,
        "spec.pool.resourceSliceCount": _count,
    },
    "Event": {
        "count": _count,
        "firstTimestamp": _time,
        "lastTimestamp": _time,
        "eventTime": _time,
        "source.component": _word,
        "source.host": _word,
        "involvedObject.uid": _word,
        "involvedObject.fieldPath": _word,
    },
}
"""The fields that are taken, beside those that tell the object, and the readers of their cells."""


def of_output(output: str) -> tuple[tuple[str, str], ...]:
    """Title and path of each column of an output format; empty for another format.

    Example: `custom-columns=NODE:.spec.nodeName` has the column NODE of `spec.nodeName`.
    """
    form, equals, text = output.strip("'\"").partition("=")
    columns = [column.partition(":") for column in text.split(",")]
    if form != "custom-columns" or not equals or len(columns) > COLUMNS_MAX:
        return ()
    if not all(title and path for title, _, path in columns):
        return ()
    return tuple((title, path.strip("{}'\"").lstrip(".")) for title, _, path in columns)


def begins(line: str, columns: Sequence[tuple[str, str]]) -> bool:
    """True for the line of titles of such a table."""
    return bool(columns) and line.split() == [title for title, _ in columns]


def parse(
    lines: Sequence[str],
    at: int,
    columns: Sequence[tuple[str, str]],
    kind: Kind,
    namespace: str,
) -> Printout:
    """The table whose titles are at a line; without lines where its columns tell no object."""
    table = Printout()
    titles: list[tuple[int, str]] = []
    begin = 0
    for title, path in columns:
        begin = lines[at].index(title, begin)
        titles.append((begin, path))
        begin += len(title)
    for line in lines[at + 1 :]:
        row = {
            path: cell
            for path, cell in parts.cells(line, titles).items()
            if cell not in parts.NOT_SHOWN
        }
        tree = _event(row, namespace) if kind is _EVENTS else _identity(kind, row, namespace)
        if not line.strip() or tree is None:
            break
        for path, reader in {**_OF_ALL, **_OF_KINDS.get(kind.kind, {})}.items():
            if path in row and (value := reader(row[path])) is not None:
                _set(tree, path, value)
        table.objects.append(tree)
    table.lines = 1 + len(table.objects) if table.objects else 0
    return table


def _identity(kind: Kind, row: Mapping[str, str], namespace: str) -> JsonObject | None:
    name = row.get("metadata.name", "")
    if not parts.ROW_NAME.fullmatch(name):
        return None
    return parts.identity(kind, name, row.get("metadata.namespace", namespace))


def _event(row: Mapping[str, str], namespace: str) -> JsonObject | None:
    """The Event of a row with its reason, and the kind and name of its subject."""
    kinds = registry.find_name(row.get("involvedObject.kind", ""))
    name, reason = row.get("involvedObject.name", ""), row.get("reason", "")
    if not kinds or not reason or not parts.ROW_NAME.fullmatch(name):
        return None
    shown = row.get("involvedObject.namespace", row.get("metadata.namespace", namespace))
    subject = parts.identity(kinds[0], name, shown)
    event = event_objects.about_subject(
        subject, kinds[0], row.get("type", ""), reason, row.get("message", "")
    )
    if parts.ROW_NAME.fullmatch(row.get("metadata.name", "")):
        event["metadata"]["name"] = row["metadata.name"]
    return event


def _set(tree: JsonObject, path: str, value: str | int) -> None:
    *above, name = path.split(".")
    for step in above:
        tree = tree.setdefault(step, {})
    tree[name] = value
