"""Fields that a service in front of the API server adds to an object, and that no server stores.

Rancher's API (Steve) answers with the object and fields of its own beside it. Where the object has
a field of such a name, that stands behind an underscore:

    {"id": "ns/a.1", "type": "event", "links": {…}, "kind": "Event", "_type": "Warning",
     "metadata": {"name": "a.1", "fields": […], "relationships": […], "state": {…}, …}, …}
"""

from app.domain.objects import registry
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_OWN = ("id", "type", "links", "actions")
_OF_METADATA = ("fields", "relationships", "state")
_OF_CONDITIONS = ("error", "transitioning")
_UPDATED = "lastUpdateTime"
"""A field of conditions of Deployments, which Steve adds to those of all kinds."""


def are_in(tree: JsonView) -> bool:
    """True for an object with the fields of Steve, which repeat its kind and its name."""
    if not isinstance(tree.get("links"), dict):
        return False
    group, _ = registry.split_api_version(meta.api_version(tree))
    kind = meta.kind(tree).lower()
    namespace, name = meta.namespace(tree), meta.name(tree)
    return (
        bool(kind)
        and tree.get("type") == (f"{group}.{kind}" if group else kind)
        and tree.get("id") == (f"{namespace}/{name}" if namespace else name)
    )


def stored(tree: JsonObject) -> JsonObject:
    """The object without such fields, which `are_in` it."""
    stored_tree = {name: value for name, value in tree.items() if name not in _OWN}
    for name in _OWN:
        if f"_{name}" in stored_tree:
            stored_tree[name] = stored_tree.pop(f"_{name}")
    metadata = meta.metadata(tree)
    stored_tree["metadata"] = {
        name: value for name, value in metadata.items() if name not in _OF_METADATA
    }
    status = tree.get("status")
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        added = (*_OF_CONDITIONS, _UPDATED) if _lacks_updates(tree) else _OF_CONDITIONS
        conditions = [
            {name: value for name, value in each.items() if name not in added}
            if isinstance(each, dict)
            else each
            for each in status["conditions"]
        ]
        stored_tree["status"] = {**status, "conditions": conditions}
    return stored_tree


def _lacks_updates(tree: JsonView) -> bool:
    """True for a kind of which a server stores no time of an update in conditions."""
    group, version = registry.split_api_version(meta.api_version(tree))
    kind = registry.find_kind(group, version, meta.kind(tree))
    return kind is not None and (group, kind.kind) != (api_groups.APPS, "Deployment")
