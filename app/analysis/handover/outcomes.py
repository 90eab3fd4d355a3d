"""The outcomes of claims, rules and patches, and messages about pods, for comparison by a test."""

from collections import Counter
from collections.abc import Iterable

from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, condition_types, well_known
from app.domain.values.fields import dra, meta
from app.domain.values.fields.meta import Condition
from app.domain.values.json_tree import JsonObject

_TOLD = (api_resources.DEVICE_TAINT_RULES, api_resources.RESOURCE_SLICE_PATCHES)


def claims(events: Iterable[Event]) -> dict[str, str]:
    """Each claim that existed, in the order of creation, with its last state."""
    last: dict[str, Event] = {}
    for event in events:
        if event.key[:2] == api_resources.RESOURCE_CLAIMS and event.is_about_object:
            last[event.uid] = event
    names: Counter[str] = Counter()
    states: dict[str, str] = {}
    for event in last.values():
        name = _name_of(event.key, event.object)
        names[name] += 1
        states[name if names[name] == 1 else f"{name} {names[name]}"] = _state(event)
    return states


def messages(events: Iterable[Event]) -> dict[str, str]:
    """The scheduler's message about each pod that waits at the end."""
    messages_by_pod: dict[str, str] = {}
    for event in events:
        if event.key[:2] != api_resources.PODS or not event.is_about_object:
            continue
        name = f"{event.key.namespace}/{event.key.name}"
        messages_by_pod.pop(name, None)
        condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
        is_gone = event.type is EventType.OBJECT_DELETED
        if condition is not None and condition.status == "False" and not is_gone:
            messages_by_pod[name] = condition.message
    return messages_by_pod


def conditions(events: Iterable[Event]) -> dict[str, str]:
    """The conditions of each rule and patch at the end."""
    last = {
        event.key: event
        for event in events
        if event.key[:2] in _TOLD and event.type is not EventType.OBJECT_DELETED
    }
    return {f"{key.resource}/{key.name}": _conditions(event.object) for key, event in last.items()}


def _name_of(key: ObjectKey, claim: JsonObject) -> str:
    owner = meta.controller(claim)
    entry = meta.annotation(claim, well_known.POD_CLAIM_NAME)
    name = key.name if owner is None else f"{owner.name} {entry}".strip()
    return f"{key.namespace}/{name}"


def _state(event: Event) -> str:
    if event.type is EventType.OBJECT_DELETED:
        return "deleted"
    tree = event.object
    devices = [
        " ".join([f"{each.pool}/{each.device}", *(["for an admin"] if each.admin_access else [])])
        for each in dra.results(tree)
    ]
    consumers = sorted(each.name for each in dra.consumers(tree))
    status = [
        f"{each.device}: {', '.join(map(_condition, each.conditions))}"
        for each in dra.device_statuses(tree)
        if each.conditions
    ]
    parts = [", ".join(devices) or "not allocated"]
    parts += [f"reserved for {', '.join(consumers)}"] if consumers else []
    return "; ".join([*parts, *status])


def _conditions(tree: JsonObject) -> str:
    types = dict.fromkeys(str(each.get("type")) for each in meta.condition_trees(tree))
    conditions = (meta.condition(tree, each) for each in types)
    return ", ".join(_condition(each) for each in conditions if each is not None)


def _condition(condition: Condition) -> str:
    return f"{condition.type}={condition.status} ({condition.reason})"
