"""One allocation of a history as a case in the format of upstream's allocator tables."""

from collections.abc import Iterable, Sequence

from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.profile import GATES, Profile
from app.domain.values import api_resources
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.json_tree import JsonObject

_SERVERS_OWN = frozenset(("managedFields", "resourceVersion", "creationTimestamp", "generation"))


def case(events: Sequence[Event], profile: Profile, name: str, pod: str = "") -> JsonObject:
    """The last allocation that the scheduler decided, or that of a pod. Raises InputError.

    `pod` is NAMESPACE/NAME or NAME. The objects are those that the scheduler saw.
    """
    place, decision = _chosen(events, pod)
    objects: dict[ObjectKey, JsonObject] = {}
    for event in events[:place]:
        if event.type is EventType.OBJECT_DELETED:
            objects.pop(event.key, None)
        elif event.is_about_object:
            objects[event.key] = event.object
    subject = objects[ObjectKey(*api_resources.PODS, decision.key.namespace, decision.key.name)]
    claims = _claims(subject, objects)
    later: dict[ObjectKey, Event] = {}
    for event in events[place:]:
        if event.key[:2] == api_resources.RESOURCE_CLAIMS and dra.results(event.object):
            later.setdefault(event.key, event)
    summary = decision_body.summary_of(decision.object)
    nodes = [tree for key, tree in sorted(objects.items()) if key[:2] == api_resources.NODES]
    chosen = [tree for tree in nodes if meta.name(tree) == summary.node] or nodes
    if not chosen:
        raise InputError("there is no node on which the pod could be allocated devices")
    return {
        "name": name,
        "suite": "allocator",
        "features": {gate: True for gate in GATES if profile.enabled(gate)},
        "node": _plain({"metadata": chosen[0]["metadata"]}),
        "claims": [
            _plain({"metadata": each["metadata"], "spec": each["spec"]}) for _, each in claims
        ],
        "classes": _all(objects, api_resources.DEVICE_CLASSES),
        "slices": _all(objects, api_resources.RESOURCE_SLICES),
        "allocatedState": _allocated(objects, {key for key, _ in claims}),
        "expected": {"allocations": _expected(claims, later, is_placed=bool(summary.node))},
    }


def _chosen(events: Sequence[Event], pod: str) -> tuple[int, Event]:
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if event.type is not EventType.DECISION_RECORDED:
            continue
        decision = decision_body.read(event.object)
        names = (decision.name, f"{decision.namespace}/{decision.name}")
        is_about_pod = decision.controller == "scheduling" and decision.resource == "pods"
        if is_about_pod and pod in ("", *names):
            return place, event
    whose = f" about pod {pod}" if pod else ""
    raise InputError(f"the scheduler decided nothing{whose} in this history")


def _claims(
    pod: JsonObject, objects: dict[ObjectKey, JsonObject]
) -> list[tuple[ObjectKey, JsonObject]]:
    names = [
        str(entry["resourceClaimName"])
        for entry in (*core.resource_claims(pod), *core.resource_claim_statuses(pod))
        if entry.get("resourceClaimName")
    ]
    keys = [
        ObjectKey(*api_resources.RESOURCE_CLAIMS, meta.namespace(pod), name)
        for name in dict.fromkeys(names)
    ]
    claims = [
        (key, objects[key]) for key in keys if key in objects and not dra.results(objects[key])
    ]
    if not claims:
        raise InputError(f"pod {meta.namespace(pod)}/{meta.name(pod)} has no claim to be allocated")
    return claims


def _expected(
    claims: Iterable[tuple[ObjectKey, JsonObject]],
    later: dict[ObjectKey, Event],
    *,
    is_placed: bool,
) -> list[JsonObject | None] | None:
    if not is_placed:
        return None
    allocations = [dra.allocation(later[key].object) if key in later else None for key, _ in claims]
    return [
        None if each is None else {k: v for k, v in each.items() if k != "allocationTimestamp"}
        for each in allocations
    ]


def _allocated(objects: dict[ObjectKey, JsonObject], mine: set[ObjectKey]) -> JsonObject:
    devices: list[JsonObject] = []
    for key, tree in sorted(objects.items()):
        if key[:2] != api_resources.RESOURCE_CLAIMS or key in mine:
            continue
        for result in dra.results(tree):
            if result.share_id:
                raise InputError(
                    f"{key} holds a share of {result.text}, which a case does not say here",
                    cure="minimise the history before, or export it as pytest",
                )
            if not result.admin_access:
                place = {"driver": result.driver, "pool": result.pool, "device": result.device}
                devices.append(place)
    return {"devices": devices}


def _all(objects: dict[ObjectKey, JsonObject], resource: tuple[str, str]) -> list[JsonObject]:
    return [
        _plain({"metadata": tree["metadata"], "spec": tree["spec"]})
        for key, tree in sorted(objects.items())
        if key[:2] == resource and "spec" in tree
    ]


def _plain(tree: JsonObject) -> JsonObject:
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _SERVERS_OWN}
    return {**tree, "metadata": metadata}
