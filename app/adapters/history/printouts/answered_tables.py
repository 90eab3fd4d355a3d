"""Tables as a server answers them (`kind: Table`), whose rows hold what kubectl prints.

    {"kind": "Table", "metadata": {"selfLink": "/api/v1/namespaces/shop/pods"},
     "columnDefinitions": [{"name": "Name"}, {"name": "Ready"}, …],
     "rows": [{"cells": ["web-1", "1/1", …], "object": {"kind": "PartialObjectMetadata", …}}]}

The path of the request tells the kind, as do the titles of some kinds. A row has the metadata of
its object unless the client asked for none (`includeObject=None`).

Parity: history-formats.md 6.
"""

import re

from app.adapters.history.printouts import printed
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/?]+)/[^/?]+)(?:/namespaces/(?P<namespace>[^/?]+))?"
    r"/(?P<plural>[a-z0-9]+)(?:/(?P<name>[^/?]+))?(?=\?|\Z)"
)


def is_empty(table: JsonView) -> bool:
    """True for the answer that there is no object."""
    return table.get("rows", []) in ([], None)


def objects(table: JsonView) -> list[JsonObject]:
    """The parts of objects that the rows show; none where nothing tells their kind."""
    titles = [entries.name(column).upper() for column in _trees(table, "columnDefinitions")]
    path = _PATH.search(str(meta.metadata(table).get("selfLink") or ""))
    kind = _kind(path, set(titles))
    if kind is None:
        return []
    namespace = (path and path["namespace"]) or ""
    trees = (_object(row, titles, kind, namespace) for row in _trees(table, "rows"))
    return [tree for tree in trees if tree is not None]


def _kind(path: re.Match[str] | None, titles: set[str]) -> Kind | None:
    if path is not None:
        return registry.find(path["group"] or "", path["plural"])
    return printed.kind_of_titles(titles)


def _object(row: JsonView, titles: list[str], kind: Kind, namespace: str) -> JsonObject | None:
    cells = row.get("cells")
    if not isinstance(cells, list) or len(cells) != len(titles):
        return None
    texts = ("" if cell is None else str(cell) for cell in cells)
    shown = dict(zip(titles, texts, strict=True))
    sent = row.get("object")
    metadata = dict(meta.metadata(sent)) if isinstance(sent, dict) else {}
    metadata.pop("managedFields", None)
    if name := metadata.get("name"):
        namespace = str(metadata.get("namespace") or "")
        shown["NAME"] = str(name)
    tree = printed.object_of_row(shown, kind, namespace)
    return None if tree is None else {**tree, "metadata": {**tree["metadata"], **metadata}}


def _trees(table: JsonView, name: str) -> list[JsonObject]:
    items = table.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
