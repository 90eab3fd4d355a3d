"""The comparison of two printed places: they show one state of an object, or two.

    NAME   READY   STATUS    AGE          NAME   READY   STATUS    AGE
    web    0/1     Pending   5s           web    1/1     Running   65s

Two places show one state unless a field that both print has two values. What is printed of an
object is never complete, so a field that one of them lacks says nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.values.fields import core, meta
from app.domain.values.fields.core import ContainerState, ContainerStatus
from app.domain.values.json_tree import JsonObject, JsonView

_CONTAINERS = ("containerStatuses", "initContainerStatuses")
_OF_A_MOMENT = ("conditions", "containerStatuses", "initContainerStatuses", "phase", "reason")
"""The fields of a status that tell a moment: a later state has those that it shows itself."""


def contradict(before: JsonView, after: JsonView) -> bool:
    """Whether a field has two values in the two.

    A row shows whether its pod is being deleted, and the container that is not well if there is
    one; a page shows each container that its kubelet has reported.
    """
    if "status" in before and meta.is_deleting(after) and not meta.is_deleting(before):
        return True
    if "status" in after and any(
        _containers_differ(read(before), read(after), before, after)
        for read in (core.container_statuses, core.init_container_statuses)
    ):
        return True
    return _fields_differ(_without_containers(before), _without_containers(after))


def _containers_differ(
    first: Sequence[ContainerStatus],
    second: Sequence[ContainerStatus],
    before: JsonView,
    after: JsonView,
) -> bool:
    """Whether two places show containers in two states; a page without states shows none."""
    is_page, is_next_page = (bool(core.containers(tree)) for tree in (before, after))
    if not is_page and not is_next_page:
        return first != second
    if is_page and is_next_page:
        known = {each.name: each for each in first}
        return any(known.get(each.name, each) != each for each in second)
    page, row, of_row = (first, second, after) if is_page else (second, first, before)
    shown = {_trouble(each.state) for each in page}
    if not row and meta.phase(of_row) == "Running":
        # The word of the row would be what a container waits for.
        return any(each.state.waiting.reason for each in page)
    return bool(page) and any(_trouble(each.state) not in shown for each in row)


def _trouble(state: ContainerState) -> str:
    """The word of a row about a container in this state; empty for one that runs."""
    ended = state.terminated
    return state.waiting.reason if ended is None else ended.reason


def _without_containers(tree: JsonView) -> JsonView:
    status = tree.get("status")
    if not isinstance(status, Mapping):
        return tree
    return {**tree, "status": {k: v for k, v in status.items() if k not in _CONTAINERS}}


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
    """The fields of two places that show one state, with the conditions of both.

    A page names the containers; the container of a row has no name.
    """
    joined = _with_named_containers(before, joined)
    shown = {each.type for each in meta.conditions(after)}
    others = [each for each in meta.condition_trees(before) if each.get("type") not in shown]
    if not shown or not others:
        return joined
    conditions = [*others, *meta.condition_trees(after)]
    return {**joined, "status": {**joined["status"], "conditions": conditions}}


def _with_named_containers(before: JsonView, joined: JsonObject) -> JsonObject:
    status, known = joined.get("status"), before.get("status")
    if not isinstance(status, Mapping) or not isinstance(known, Mapping):
        return joined
    named = {
        name: known[name]
        for name in _CONTAINERS
        if _are_named(known.get(name)) and not _are_named(status.get(name))
    }
    return {**joined, "status": {**status, **named}} if named else joined


def _are_named(statuses: Any) -> bool:
    return isinstance(statuses, list) and any(each.get("name") for each in statuses)


def next_state(joined: JsonObject, after: JsonView) -> JsonObject:
    """The later of two states: what the earlier place shows of its own moment is left out."""
    if "status" not in joined:
        return joined
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
