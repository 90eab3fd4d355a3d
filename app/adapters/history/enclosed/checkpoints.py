"""The checkpoint of a kubelet about the claims that it has prepared (`dra_manager_state`).

    {"Data": "{\\"kind\\":\\"DRACheckpoint\\",…,\\"ClaimInfoStateList\\":[…]}", "Checksum": 1}
    {"version": "v1", "entries": [{"ClaimName": "one", "Namespace": "shop", …}]}

It tells which claims exist, and that they are allocated: a kubelet prepares no others. The devices
in it are those that a driver prepared, which need not be those of the allocation.
"""

import json
from typing import Any

from app.adapters.history.printouts import parts
from app.domain.objects import registry
from app.domain.values.json_tree import JsonObject, JsonView

_LIST = "ClaimInfoStateList"


def is_checkpoint(value: Any) -> bool:
    """True for a checkpoint, also without claims."""
    return isinstance(value, dict) and _entries(value) is not None


def claims(value: JsonView) -> list[JsonObject]:
    """The claims in a checkpoint; none in other documents."""
    kind = registry.find_name("resourceclaims")[0]
    trees: list[JsonObject] = []
    for entry in _entries(value) or ():
        uid, name, namespace = (entry.get(f"Claim{part}") for part in ("UID", "Name", "Namespace"))
        namespace = namespace or entry.get("Namespace")
        if not all(isinstance(text, str) and text for text in (uid, name, namespace)):
            continue
        tree = parts.identity(kind, str(name), str(namespace))
        tree["metadata"]["uid"] = uid
        trees.append({**tree, "status": {"allocation": {}}})
    return trees


def _entries(value: JsonView) -> list[JsonObject] | None:
    data = value.get("Data")
    if isinstance(data, str) and "Checksum" in value and _LIST in data:
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            return None
    tree = data if isinstance(data, dict) else value
    entries = tree.get(_LIST)
    if entries is None and "version" in tree and "checksum" in tree:
        entries = tree.get("entries")
        if not any(isinstance(each, dict) and "ClaimUID" in each for each in entries or ()):
            return None
    if not isinstance(entries, list):
        return None
    return [each for each in entries if isinstance(each, dict)]
