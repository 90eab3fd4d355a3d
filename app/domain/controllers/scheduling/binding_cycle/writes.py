"""The writes of an attempt, in the order in which the real scheduler makes them.

Success: nominated node; per claim the finalizer, then allocation and reservation; binding; event.
Failure: event, condition. Parity: controllers.md 3.5, 3.7, 4.3, 4.6. Differs from upstream: all
writes of an attempt are one append, so that a failure in the middle leaves nothing behind.
"""

from collections.abc import Iterator

from app.domain.controllers import conditions, pods
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.controllers.scheduling.plugins.dynamic_resources import extended_resources
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    ExtendedClaim,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import PodClaim
from app.domain.controllers.scheduling.reports import events
from app.domain.controllers.scheduling.reports.events import MANAGER
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
)
from app.domain.values import condition_types, json_tree, timestamps, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def nominate(attempt: Attempt, pod: JsonObject) -> Iterator[Command]:
    """The first write of a placement: the nominated node, if claims have to be written."""
    held = core.nominated_node_name(pod)
    if has_work(attempt, pod) and held != attempt.node:
        yield _pod_status(pod, {"nominatedNodeName": attempt.node})


def reserve(
    attempt: Attempt,
    pod: JsonObject,
    now: Instant,
    *,
    number: int,
    stamps_time: bool,
) -> Iterator[Command]:
    """The writes to claims."""
    lacking = _lacking(attempt, pod)
    drawn = iter(attempt.allocations)
    seen: set[ObjectKey] = set()
    for claim in attempt.claims:
        fresh = next(drawn) if claim.allocation is None else None
        if claim not in lacking:
            continue
        if claim.key in seen:
            # Parity: controllers.md C18, the second entry of the pod adds the reservation again.
            yield _reserve_again(claim, pod)
            continue
        seen.add(claim.key)
        yield from _reserve_claim(claim, fresh, pod, now, stamps_time=stamps_time)
    if attempt.extended is not None:
        yield from _make_extended(
            attempt.extended, next(drawn), pod, now, number=number, stamps_time=stamps_time
        )


def has_work(attempt: Attempt, pod: JsonView) -> bool:
    """True when claims have to be written before the binding."""
    return bool(_lacking(attempt, pod)) or attempt.extended is not None


def bind(pod: JsonObject, node: str) -> BindPod:
    """The command that binds the pod."""
    metadata = pod["metadata"]
    return BindPod(
        key=pod_key(metadata["namespace"], metadata["name"]),
        node=node,
        uid=meta.uid(pod),
        options=MANAGER,
    )


def deallocate(claim: PodClaim) -> Command:
    """The post filter's write: removes reservations, allocation and device status of a claim."""
    given_back = ("allocation", "reservedFor", "devices")
    status = {key: part for key, part in claim.tree["status"].items() if key not in given_back}
    tree = {**claim.tree, "status": status}
    return UpdateObject(
        key=claim.key, version="v1", tree=tree, subresource="status", options=MANAGER
    )


def unreserve(claim: PodClaim, pod_uid: Uid) -> Command:
    """Removes the pod's reservation; the allocation stays (C10)."""
    return PatchObject(
        key=claim.key,
        version="v1",
        type=PatchType.STRATEGIC,
        body={
            "metadata": {"uid": meta.uid(claim.tree)},
            "status": {"reservedFor": [{"$patch": "delete", "uid": pod_uid}]},
        },
        subresource="status",
        options=MANAGER,
    )


def delete_extended(objects: ObjectsReader, key: ObjectKey) -> Iterator[Command]:
    """Deletes a claim for extended resources: removes its finalizers first."""
    tree = objects.get(key)
    if tree is None:
        return
    if meta.finalizers(tree):
        changed = json_tree.copy(tree)
        changed["metadata"].pop("finalizers")
        yield UpdateObject(key=key, version="v1", tree=changed, options=MANAGER)
    if "deletionTimestamp" not in tree["metadata"]:
        yield DeleteObject(key=key, options=MANAGER)


def failed_condition(
    pod: JsonObject, reason: str, message: str, now: Instant, nominated: str | None = ""
) -> Command | None:
    """The patch with the reason why the pod is not scheduled; None when nothing changes.

    Only changed fields are sent; `lastTransitionTime` changes only with the status value.
    `nominated` is the node that victims are leaving for the pod. When it is empty, the nominated
    node is removed; when it is None, the nominated node stays.
    """
    wanted: JsonObject = {"status": "False", "reason": reason, "message": message}
    generation = meta.generation(pod)
    if generation is not None:
        wanted["observedGeneration"] = generation
    held = _condition(pod)
    changed: JsonObject
    if held is None:
        changed = {
            **wanted,
            "lastProbeTime": None,
            "lastTransitionTime": timestamps.seconds_text(now),
        }
    else:
        changed = {name: value for name, value in wanted.items() if held.get(name) != value}
        if "status" in changed:
            changed["lastTransitionTime"] = timestamps.seconds_text(now)
    status: JsonObject = {}
    if changed:
        status = conditions.patch_of(pod, {"type": condition_types.POD_SCHEDULED, **changed})
    if nominated is not None and core.nominated_node_name(pod) != nominated:
        status["nominatedNodeName"] = nominated or None
    return _pod_status(pod, status) if status else None


def report_failure(
    objects: ObjectsReader,
    series: events.ReportSeries,
    pod: JsonObject,
    reason: str,
    message: str,
    now: Instant,
    nominated: str | None = "",
) -> Iterator[Command]:
    """The Event and the condition of a failed attempt, if they are new."""
    event = series.failure(objects, pod, message, now)
    if event is not None:
        yield event
    condition = failed_condition(pod, reason, message, now, nominated)
    if condition is not None:
        yield condition


def _lacking(attempt: Attempt, pod: JsonView) -> list[PodClaim]:
    uid = meta.uid(pod)
    return [claim for claim in attempt.claims if not pods.is_reserved_for(claim.tree, uid)]


def _reserve_claim(
    claim: PodClaim, fresh: JsonObject | None, pod: JsonObject, now: Instant, *, stamps_time: bool
) -> Iterator[Command]:
    # Unchanged parts are not copied, because claims may have long lists.
    metadata = dict(claim.tree["metadata"])
    tree = {**claim.tree, "metadata": metadata}
    has_finalizer = well_known.CLAIM_PROTECTION in meta.finalizers_of(metadata)
    if fresh is not None and not has_finalizer:
        metadata["finalizers"] = [
            *meta.finalizers_of(metadata),
            well_known.CLAIM_PROTECTION,
        ]
        yield UpdateObject(key=claim.key, version="v1", tree=tree, options=MANAGER)
        # The write before has checked and changed the resourceVersion.
        tree = {**tree, "metadata": {k: v for k, v in metadata.items() if k != "resourceVersion"}}
    status = dict(tree.get("status") or {})
    if fresh is not None:
        status["allocation"] = fresh
    allocation = dict(status["allocation"])
    if stamps_time and "allocationTimestamp" not in allocation:
        # Parity: controllers.md C13, an allocation that another client wrote gets one too, which
        # is refused.
        allocation["allocationTimestamp"] = timestamps.seconds_text(now)
    status["allocation"] = allocation
    status["reservedFor"] = [
        *json_tree.objects(status, "reservedFor"),
        pods.consumer(meta.name(pod), meta.uid(pod)),
    ]
    tree["status"] = status
    yield UpdateObject(
        key=claim.key, version="v1", tree=tree, subresource="status", options=MANAGER
    )


def _reserve_again(claim: PodClaim, pod: JsonObject) -> UpdateObject:
    metadata = dict(claim.tree["metadata"])
    metadata.pop("resourceVersion", None)
    entry = pods.consumer(meta.name(pod), meta.uid(pod))
    reserved = dra.reserved_for(claim.tree)
    status = {**claim.tree["status"], "reservedFor": [*reserved, entry, entry]}
    tree = {**claim.tree, "metadata": metadata, "status": status}
    return UpdateObject(
        key=claim.key, version="v1", tree=tree, subresource="status", options=MANAGER
    )


def _make_extended(
    claim: ExtendedClaim,
    allocation: JsonObject,
    pod: JsonObject,
    now: Instant,
    *,
    number: int,
    stamps_time: bool,
) -> Iterator[Command]:
    """Creates the claim for extended resources, allocates it, and names it in the pod's status."""
    tree = extended_resources.claim_to_create(pod, claim, number)
    key = claim_key(tree["metadata"]["namespace"], tree["metadata"]["name"])
    yield CreateObject(key=key, version="v1", tree=tree, options=MANAGER)
    made = PodClaim(entry=extended_resources.PSEUDO_NAME, key=key, tree=tree, allocation=None)
    yield from _reserve_claim(made, allocation, pod, now, stamps_time=stamps_time)
    status: JsonObject = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": key.name,
            "requestMappings": list(claim.mappings),
        }
    }
    yield _pod_status(pod, status)


def _condition(pod: JsonObject) -> JsonObject | None:
    return meta.condition_tree(pod, condition_types.POD_SCHEDULED)


def _pod_status(pod: JsonObject, status: JsonObject) -> PatchObject:
    metadata = pod["metadata"]
    return PatchObject(
        key=pod_key(metadata["namespace"], metadata["name"]),
        version="v1",
        type=PatchType.STRATEGIC,
        body={"status": status},
        subresource="status",
        options=MANAGER,
    )
