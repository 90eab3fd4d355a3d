"""Whether two printed places show one state of an object, or two.

    NAME   READY   STATUS    AGE          NAME   READY   STATUS    AGE
    web    0/1     Pending   5s           web    1/1     Running   65s

Two places show one state unless a field that both print has two values. What is printed of an
object is never complete, so a field that one of them lacks says nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView

_OF_A_MOMENT = ("conditions", "containerStatuses", "initContainerStatuses", "phase", "reason")
"""The fields of a status that tell a moment: a later state has those that it shows itself."""


def contradict(before: JsonView, after: JsonView) -> bool:
    """Whether a field has two values in the two.

    A row shows whether its pod is being deleted, and the container that is not well if there is
    one; a page does not show the containers.
    """
    if "status" in before and meta.is_deleting(after) and not meta.is_deleting(before):
        return True
    if not (core.containers(before) or core.containers(after)) and "status" in after:
        statuses = (core.container_statuses, core.init_container_statuses)
        if any(read(before) != read(after) for read in statuses):
            return True
    return _fields_differ(before, after)


def is_another(before: JsonView, after: JsonView) -> bool:
    """Whether the later state is that of a new object of the same name.

    No object comes back from its deletion, no pod from its end, and none moves to another node.
    """
    if meta.is_deleting(before) and "status" in after and not meta.is_deleting(after):
        return True
    nodes = {core.node_name(before), core.node_name(after)} - {""}
    is_revived = core.is_finished(before) and meta.phase(after) in ("Pending", "Running")
    return is_revived or (after.get("kind") == "Pod" and len(nodes) > 1)


def together(before: JsonView, joined: JsonObject, after: JsonView) -> JsonObject:
    """The fields of two places that show one state, with the conditions of both."""
    shown = {each.type for each in meta.conditions(after)}
    others = [each for each in meta.condition_trees(before) if each.get("type") not in shown]
    if not shown or not others:
        return joined
    conditions = [*others, *meta.condition_trees(after)]
    return {**joined, "status": {**joined["status"], "conditions": conditions}}


def next_state(joined: JsonObject, after: JsonView) -> JsonObject:
    """The later of two states: what the earlier place shows of its own moment is left out."""
    status = after.get("status") or {}
    kept = {
        name: value
        for name, value in (joined.get("status") or {}).items()
        if name in status or name not in _OF_A_MOMENT
    }
    return {**joined, "status": kept}


def _fields_differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return any(name in after and _differ(value, after[name]) for name, value in before.items())


def _differ(before: Any, after: Any) -> bool:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return _fields_differ(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return _lists_differ(before, after)
    return before != after and meta.UNKNOWN_TIME not in (before, after)


def _lists_differ(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether lists differ; of conditions, whether one of a type does."""
    types = [each.get("type") for each in before if isinstance(each, Mapping)]
    if len(types) < len(before) or None in types:
        return before != after
    known = dict(zip(types, before, strict=True))
    return any(
        isinstance(each, Mapping) and _fields_differ(known.get(each.get("type"), {}), each)
        for each in after
    )
