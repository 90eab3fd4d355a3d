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
    """The last attempt of the scheduler to allocate claims, or that for a pod. Raises InputError.

    `pod` is NAMESPACE/NAME or NAME. The objects are those that the scheduler saw.
    """
    decision = _chosen(events, pod)
    place = events.index(decision)
    objects: dict[ObjectKey, JsonObject] = {}
    for event in events[:place]:
        _fold(objects, event)
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


def _chosen(events: Sequence[Event], pod: str) -> Event:
    """The last decision about a pod, or about that pod, that had claims to be allocated."""
    objects: dict[ObjectKey, JsonObject] = {}
    without_claims = ""
    chosen: Event | None = None
    for event in events:
        if event.type is EventType.DECISION_RECORDED:
            key = _tried(event, pod)
            subject = None if key is None else objects.get(key)
            if subject is not None and _claims(subject, objects):
                chosen = event
            elif subject is not None:
                without_claims = f"{meta.namespace(subject)}/{meta.name(subject)}"
        else:
            _fold(objects, event)
    if chosen is not None:
        return chosen
    if without_claims:
        raise InputError(f"pod {without_claims} has no claim to be allocated")
    whose = f" about pod {pod}" if pod else ""
    raise InputError(f"the scheduler decided nothing{whose} in this history")


def _tried(event: Event, pod: str) -> ObjectKey | None:
    """The pod that a decision of the scheduler is about; None for others than that pod.

    A decision about attempts that wrote nothing names no pod.
    """
    decision = decision_body.read(event.object)
    names = (decision.name, f"{decision.namespace}/{decision.name}")
    is_about_pod = decision.controller == "scheduling" and decision.resource == "pods"
    if not is_about_pod or pod not in ("", *names):
        return None
    return ObjectKey(*api_resources.PODS, decision.namespace, decision.name)


def _fold(objects: dict[ObjectKey, JsonObject], event: Event) -> None:
    if event.type is EventType.OBJECT_DELETED:
        objects.pop(event.key, None)
    elif event.is_about_object:
        objects[event.key] = event.object


def _claims(
    pod: JsonObject, objects: dict[ObjectKey, JsonObject]
) -> list[tuple[ObjectKey, JsonObject]]:
    """The claims of a pod that are not allocated yet."""
    names = [
        str(entry["resourceClaimName"])
        for entry in (*core.resource_claims(pod), *core.resource_claim_statuses(pod))
        if entry.get("resourceClaimName")
    ]
    keys = [
        ObjectKey(*api_resources.RESOURCE_CLAIMS, meta.namespace(pod), name)
        for name in dict.fromkeys(names)
    ]
    return [(key, objects[key]) for key in keys if key in objects and not dra.results(objects[key])]


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
                    f"{key} holds a share of {result.text}, and this export writes no shares",
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
