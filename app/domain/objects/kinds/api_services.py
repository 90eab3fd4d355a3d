"""APIServices: the servers of groups and versions.

This server serves local APIServices. An APIService that names a service is only stored; requests
are never forwarded.
"""

from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

RESOURCE = "apiservices"
NOT_PASSED_ON = "requests are not passed on to services: an emulated node runs no containers"


def prepare_create(tree: JsonObject, now: Instant) -> None:
    """Sets the status of a new APIService in place: a local one is available at once.

    Parity: objects.md 15.1; recorded with 1.36.2.
    """
    tree["status"] = {} if is_remote(tree) else {"conditions": [local(now)]}


def is_remote(tree: JsonView) -> bool:
    """Whether the APIService names a service that serves it."""
    return isinstance(json_tree.get(tree, "spec", "service"), dict)


def local(now: Instant) -> JsonObject:
    """The condition Available of a local APIService."""
    return _condition("True", "Local", "Local APIServices are always available", now)


def unavailable(reason: str, message: str, now: Instant) -> JsonObject:
    """The condition Available, with status False, of an APIService that names a service."""
    return _condition("False", reason, message, now)


def _condition(state: str, reason: str, message: str, now: Instant) -> JsonObject:
    return {
        "lastTransitionTime": timestamps.seconds_text(now),
        "message": message,
        "reason": reason,
        "status": state,
        "type": "Available",
    }
