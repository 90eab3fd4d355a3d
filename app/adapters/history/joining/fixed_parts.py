"""Parts of an object that no write changes, so that all of its states show the same.

A server refuses every change of the spec of a claim or of a template, and of what a pod asks of its
scheduler. A pod gets its node once, its tolerations only get more, and its generation never falls.
Parity: objects.md 2, objects.md 5.1, controllers.md 4.6.
"""

from collections.abc import Mapping
from typing import Any

from app.domain.log.records import Record
from app.domain.values import api_resources
from app.domain.values.fields import core, meta

_OF_CLAIMS = frozenset((api_resources.RESOURCE_CLAIMS, api_resources.RESOURCE_CLAIM_TEMPLATES))
_OF_PODS = ("priority", "resourceClaims", "schedulerName")
_NODE, _TOLERATIONS, _GENERATION = "nodeName", "tolerations", "generation"

_GROWING = frozenset((_TOLERATIONS, _GENERATION))
_ABSENT: tuple[object, ...] = (None, "", [], {})

Parts = Mapping[str, Any]
"""The parts of one state by path; what the state lacks has no value."""

NOTHING: Parts = {}


def of(record: Record) -> Parts:
    """The fixed parts of the object in a record."""
    tree = record.object or {}
    kind = record.group, record.resource
    if kind in _OF_CLAIMS:
        return {"spec": tree.get("spec"), "apiVersion": record.version}
    if kind != api_resources.PODS:
        return NOTHING
    spec = meta.spec(tree)
    return {
        **{f"spec.{name}": spec.get(name) for name in _OF_PODS},
        _NODE: core.node_name(tree),
        _TOLERATIONS: spec.get("tolerations"),
        _GENERATION: meta.generation(tree),
    }


def changed(before: Parts, after: Parts, *, may_be_earlier: bool = False) -> str:
    """The path of the first part that changed all the same; empty if none did.

    States in two versions of an API are not compared. A part that only one of them has may be a
    default that another release adds, or be left out by a source. If the second state
    `may_be_earlier` than the first one, what only grows may be less in it.
    """
    if before.get("apiVersion") != after.get("apiVersion"):
        return ""
    for path, old in before.items():
        new = after.get(path)
        is_open = may_be_earlier and path in _GROWING
        if is_open or old in _ABSENT or new in _ABSENT:
            continue
        if _lost(old, new) if path in _GROWING else _differs(old, new):
            return _PATHS.get(path, path)
    return ""


def _lost(old: Any, new: Any) -> bool:
    """Whether something is missing in a list that only grows, or a number fell."""
    if isinstance(old, list) and isinstance(new, list):
        return any(each not in new for each in old)
    return isinstance(old, int) and isinstance(new, int) and new < old


_PATHS = {
    _NODE: "spec.nodeName",
    _TOLERATIONS: "spec.tolerations",
    _GENERATION: "metadata.generation",
}


def _differs(old: Any, new: Any) -> bool:
    """Whether two values differ in something that both have."""
    if isinstance(old, dict) and isinstance(new, dict):
        return any(_differs(old[name], new[name]) for name in old.keys() & new.keys())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) != len(new) or any(map(_differs, old, new))
    return old is not None and new is not None and bool(old != new)
