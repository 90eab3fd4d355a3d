"""States of tools that manage objects: Argo CD and Terraform.

The resources of an application as Argo CD answers them (`managed-resources`):

    {"items": [{"kind": "Deployment", "targetState": "{…}", "liveState": "{…}", …}]}

`liveState` is the object in the cluster, `null` where there is none. The other states are what Argo
CD wants, expects, or compares: none of them is an object of the cluster.

The state of Terraform has whole objects of `kubernetes_manifest`, with types around them. Of other
resources, such as `kubernetes_pod_v1`, it has fields under names and in lists of its own.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from app.adapters.history import kinds
from app.domain.values.json_tree import JsonObject

_STATES = frozenset({"liveState", "targetState"})

REASON = "states of Argo CD that are wanted or expected, and not those of the cluster"


_MANIFEST = "kubernetes_manifest"


def unread(document: Any) -> Iterator[str]:
    """The losses that the resources in a state of Terraform are."""
    if not isinstance(document, dict) or "terraform_version" not in document:
        return
    resources = document.get("resources")
    kinds_of = Counter(
        str(each.get("type"))
        for each in (resources if isinstance(resources, list) else [])
        if isinstance(each, dict) and each.get("mode") == "managed"
    )
    for name, number in sorted(kinds_of.items()):
        if name.startswith("kubernetes_") and name != _MANIFEST:
            yield f"{number} of {name}, whose fields Terraform keeps in a form of its own"


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
