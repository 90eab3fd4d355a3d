"""The resources of an application as Argo CD answers them (`managed-resources`).

    {"items": [{"kind": "Deployment", "targetState": "{…}", "liveState": "{…}", …}]}

`liveState` is the object in the cluster, `null` where there is none. The other states are what Argo
CD wants, expects, or compares: none of them is an object of the cluster.
"""

import json
from typing import Any

from app.adapters.history import kinds
from app.domain.values.json_tree import JsonObject

_STATES = frozenset({"liveState", "targetState"})

REASON = "states of Argo CD that are wanted or expected, and not those of the cluster"


def is_managed(value: Any) -> bool:
    """True for one resource with its states."""
    return isinstance(value, dict) and value.keys() >= _STATES


def is_answer(value: Any) -> bool:
    """True for a list of such resources."""
    items = value.get("items") if isinstance(value, dict) else None
    return isinstance(items, list) and any(is_managed(item) for item in items)


def plain(document: Any, depth: int = kinds.WITHIN_MAX) -> Any:
    """The document with the live objects in place of the resources."""
    if isinstance(document, list):
        return [plain(item, depth - 1) for item in document] if depth else document
    if not isinstance(document, dict) or not depth:
        return document
    if is_managed(document):
        return {"live": _live(document)}
    return {name: plain(part, depth - 1) for name, part in document.items()}


def count(document: Any, depth: int = kinds.WITHIN_MAX) -> int:
    """The number of the resources in a document, each of which has other states."""
    if not depth or not isinstance(document, dict | list):
        return 0
    if is_managed(document):
        return 1
    parts = document.values() if isinstance(document, dict) else document
    return sum(count(part, depth - 1) for part in parts)


def _live(resource: JsonObject) -> Any:
    text = resource["liveState"]
    try:
        return json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None
