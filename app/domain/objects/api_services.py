"""APIServices: which server answers for a group and version.

A local one is answered for here. One that names a service is stored; requests are never passed on.
"""

from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

GROUP = "apiregistration.k8s.io"
RESOURCE = "apiservices"
AVAILABLE = "Available"


def prepare_create(tree: JsonObject, now: Instant) -> None:
    """A local one is available from its first moment. Parity: recorded with 1.36.2."""
    tree["status"] = {}
    if not is_remote(tree):
        text = "Local APIServices are always available"
        tree["status"] = {"conditions": [_condition("True", "Local", text, now)]}


def is_remote(tree: JsonView) -> bool:
    """Whether the APIService names a service that is to answer."""
    return isinstance(json_tree.get(tree, "spec", "service"), dict)


def _condition(state: str, reason: str, message: str, now: Instant) -> JsonObject:
    return {
        "lastTransitionTime": timestamps.seconds_text(now),
        "message": message,
        "reason": reason,
        "status": state,
        "type": AVAILABLE,
    }
