"""The changes that an audited request made to objects. Parity: history-formats.md 4.3, row by row.

The mapping uses only the request and its response. Where the object has to be derived from its
state before (bindings, scales, evictions, patches) the outcome carries an effect, which the
`joining` package applies. That package also detects, by their version, writes that changed nothing.
"""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from app.adapters.history import kinds
from app.adapters.history.audit import envelopes, request_values
from app.adapters.history.audit.event import AuditEvent, ObjectRef, as_object
from app.adapters.history.joining import effects
from app.domain.log.records import (
    BoundEffect,
    Effect,
    Loss,
    Op,
    PatchedEffect,
    Quality,
    ScaledEffect,
    TerminatingEffect,
)
from app.domain.values import json_tree
from app.domain.values.fields import core, entries, meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_APPLY_PATCH = "application/apply-patch+yaml"
_USERS_OF_NODES = "system:node:"
"""The beginning of the names under which kubelets write."""

_STRATEGIC_MARKS = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """One outcome of a request.

    `is_after` places it after the last known version of its key, because it has no version of its
    own; `floor` is a version that it certainly follows. `upon` and `meant` are the version and the
    uid that the request names, `sent` is the patch that it answers. `unlike` is the path of a value
    that the request gives and the answer shows as another one.
    """

    op: Op
    namespace: str = ""
    name: str = ""
    uid: Uid = NO_UID
    tree: JsonObject | None = None
    kind: str = ""
    quality: Quality = Quality.FULL
    effect: Effect | None = None
    losses: tuple[Loss, ...] = ()
    is_after: bool = False
    floor: str = ""
    upon: str = ""
    meant: Uid = NO_UID
    sent: PatchedEffect | None = None
    unlike: str = ""
    message: str = ""


def outcomes(event: AuditEvent) -> list[RequestOutcome]:
    """The outcomes of one event, in order; empty for an event that is not a write."""
    if event.stage == "Panic":
        return [_context(event, "the server panicked")]
    if not event.is_answered or event.object_ref is None:
        return []
    if event.verb not in _WRITES:
        return []
    if event.code == 0 and (why := (event.annotations or {}).get(envelopes.UNANSWERED)):
        return [replace(_gap(event, why), floor=event.object_ref.resource_version)]
    if event.code >= 400 or not 200 <= event.code < 300:
        answer = event.response_status
        parts = (answer.reason, answer.message) if answer else ()
        return [_context(event, ": ".join(part for part in parts if part))]
    if _is_dry_run(event):
        return [_context(event, "dry run")]
    if event.level == "Metadata" or _is_truncated(event):
        return [_unseen(event)]
    reference = event.object_ref
    if event.verb == "deletecollection":
        return _collection(event, reference)
    response = as_object(event.response())
    if event.verb == "create" and reference.subresource:
        return _created_subresource(event, reference, response)
    if event.verb == "create" and reference.resource == "bindings":
        return [_bound(event, reference)]
    if response is None and event.verb == "delete":
        outcome = _conditional(event, _unanswered_deletion(event, reference))
        return [replace(outcome, uid=outcome.uid or outcome.meant)]
    if response is None:
        return [_without_response(event, reference)]
    if event.verb == "delete":
        unlike = request_values.ended(event, response)
        outcome = _conditional(event, _deleted(event, reference, response))
        return [replace(outcome, unlike=unlike)]
    if reference.subresource == "scale":
        return [_scaled(response)]
    request = as_object(event.request())
    if request is None:
        return [_written(event, response)]
    unlike = request_values.changed(event, request, response)
    if event.verb == "create":
        return [replace(_written(event, response), unlike=unlike)]
    sent = None
    if event.verb == "patch":
        sent = PatchedEffect(media_type=infer_patch_type(event, request)[0], body=request)
    # The version in a request is the only one that it may change, and the uid the only object.
    upon, meant = meta.resource_version(request), meta.uid(request)
    outcome = _written(event, response)
    return [replace(outcome, upon=upon, meant=meant, sent=sent, unlike=unlike)]


def _conditional(event: AuditEvent, outcome: RequestOutcome) -> RequestOutcome:
    """The outcome of a deletion with the version and the uid that its request names."""
    condition = json_tree.mapping(as_object(event.request()) or {}, "preconditions")
    return replace(
        outcome,
        upon=json_tree.text(condition, "resourceVersion"),
        meant=entries.uid(condition),
    )


def listed_items(event: AuditEvent) -> tuple[list[JsonObject], bool] | None:
    """The items of an audited list, and whether the list is unfiltered; None for other events."""
    if event.verb != "list" or not event.is_answered or event.code != 200:
        return None
    response = as_object(event.response())
    if response is None:
        return None
    items = kinds.list_items(response)
    query = parse_qs(urlsplit(event.request_uri).query)
    is_complete = not any(query.get(name) for name in ("fieldSelector", "labelSelector"))
    return None if items is None else (items, is_complete)


def _context(event: AuditEvent, message: str) -> RequestOutcome:
    reference = event.object_ref or ObjectRef()
    return RequestOutcome(
        op=Op.CONTEXT,
        namespace=reference.namespace,
        name=reference.name,
        uid=reference.uid,
        message=message,
        quality=Quality.IDENTITY,
        is_after=True,
    )


def _unseen(event: AuditEvent) -> RequestOutcome:
    """The gap of a change of which only the key is known."""
    reference = event.object_ref or ObjectRef()
    is_truncated = event.level not in ("Metadata", "")
    is_deletion = event.verb == "delete" and not reference.subresource
    if is_deletion and reference.resource == "pods" and _is_by_kubelet(event):
        return _unanswered_deletion(event, reference)
    if is_deletion or reference.subresource == "eviction":
        return _unseen_deletion(event, is_truncated=is_truncated)
    if is_truncated:
        return _gap(event, "the body was cut", Loss.TRUNCATED_BODY)
    return _gap(event, "the body was not recorded")


def _unseen_deletion(event: AuditEvent, *, is_truncated: bool) -> RequestOutcome:
    """The gap of an object that is gone, or that began to go."""
    noun = "an eviction" if event.verb == "create" else "a deletion"
    loss = Loss.TRUNCATED_BODY if is_truncated else Loss.METADATA_ONLY
    gap = _gap(event, f"{noun} was recorded without its object", loss)
    return replace(gap, losses=(*gap.losses, Loss.NO_DELETE_STATE))


def _gap(event: AuditEvent, reason: str, loss: Loss = Loss.METADATA_ONLY) -> RequestOutcome:
    reference = event.object_ref or ObjectRef()
    return RequestOutcome(
        op=Op.GAP,
        namespace=reference.namespace,
        name=reference.name,
        uid=reference.uid,
        losses=(Loss.GAP, loss),
        quality=Quality.IDENTITY,
        message=f"{event.verb}: {reason}",
        is_after=True,
    )


def _written(event: AuditEvent, tree: JsonObject) -> RequestOutcome:
    """The outcome of an update, a patch or a create whose response holds the object."""
    op = Op.ADDED if event.verb == "create" or event.code == 201 else Op.MODIFIED
    if op is Op.MODIFIED and _was_removed_by_write(tree):
        return _about(
            Op.DELETED,
            tree,
            losses=(Loss.NO_RV,),
            is_after=True,
            floor=meta.resource_version(tree),
        )
    return _about(op, tree)


def _was_removed_by_write(tree: JsonView) -> bool:
    """True for the row marked ‡: the write removed the last hold on a terminating object."""
    metadata = meta.metadata(tree)
    return bool(
        metadata.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not json_tree.get(tree, "spec", "finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def _deleted(event: AuditEvent, reference: ObjectRef, tree: JsonObject) -> RequestOutcome:
    if tree.get("kind") == "Status":
        return RequestOutcome(
            op=Op.DELETED,
            namespace=reference.namespace,
            name=reference.name,
            uid=Uid(json_tree.text(tree, "details", "uid")) or reference.uid,
            quality=Quality.IDENTITY,
            losses=(Loss.NO_DELETE_STATE, Loss.NO_RV),
            is_after=True,
        )
    metadata = meta.metadata(tree)
    if not metadata.get("deletionTimestamp"):
        return _about(Op.DELETED, tree)
    grace = json_tree.integer(metadata, "deletionGracePeriodSeconds") or 0
    holds = metadata.get("finalizers") or json_tree.get(tree, "spec", "finalizers")
    if holds or grace > 0:
        return _about(Op.MODIFIED, tree)
    # Before the removal, the server wrote one revision with grace 0 that is not in the log.
    losses = (Loss.COLLAPSED,) if reference.resource == "pods" else ()
    return _about(Op.DELETED, tree, losses=losses)


def _collection(event: AuditEvent, reference: ObjectRef) -> list[RequestOutcome]:
    response = as_object(event.response())
    items = kinds.list_items(response) if response is not None else None
    if items is None:
        return [
            RequestOutcome(
                op=Op.GAP,
                namespace=reference.namespace,
                losses=(Loss.GAP,),
                quality=Quality.IDENTITY,
                message="deletecollection: the deleted objects were not recorded",
                is_after=True,
            )
        ]
    effect = _termination(as_object(event.request()) or {})
    collected = (_collected(item, reference, effect) for item in items)
    return [outcome for outcome in collected if outcome is not None]


def _collected(
    tree: JsonObject, reference: ObjectRef, effect: TerminatingEffect
) -> RequestOutcome | None:
    """The outcome of a deletecollection for one object, which is recorded in its state before."""
    metadata = meta.metadata(tree)
    if metadata.get("deletionTimestamp"):
        return None
    floor = json_tree.text(metadata, "resourceVersion")
    is_graceful = reference.resource == "pods" and _has_grace(tree, effect.grace_seconds)
    if effects.finalizers_after(tree, effect) or is_graceful:
        return _about(
            Op.MODIFIED,
            tree,
            quality=Quality.RECONSTRUCTED,
            effect=effect,
            losses=(Loss.NO_RV,),
            is_after=True,
            floor=floor,
        )
    return _about(
        Op.DELETED,
        tree,
        losses=(Loss.NO_RV,),
        is_after=True,
        floor=floor,
    )


def _has_grace(pod: JsonView, wanted: int | None) -> bool:
    grace = wanted
    if grace is None:
        grace = core.termination_grace_seconds(pod)
    return bool(core.node_name(pod)) and not core.is_finished(pod) and grace != 0


def _created_subresource(
    event: AuditEvent, reference: ObjectRef, response: JsonObject | None
) -> list[RequestOutcome]:
    if reference.subresource == "binding":
        return [_bound(event, reference)]
    if reference.subresource == "eviction":
        options = json_tree.mapping(as_object(event.request()) or {}, "deleteOptions")
        return [
            RequestOutcome(
                op=Op.MODIFIED,
                namespace=reference.namespace,
                name=reference.name,
                uid=reference.uid,
                quality=Quality.RECONSTRUCTED,
                effect=_termination(options),
                losses=(Loss.NO_RV, Loss.SYNTHETIC_DELETE),
                is_after=True,
            )
        ]
    return [_context(event, f"{reference.subresource} was asked for")]


def _bound(event: AuditEvent, reference: ObjectRef) -> RequestOutcome:
    request = as_object(event.request()) or {}
    uid = reference.uid or meta.uid(request)
    return RequestOutcome(
        op=Op.MODIFIED,
        namespace=reference.namespace,
        name=reference.name or meta.name(request),
        uid=uid,
        quality=Quality.RECONSTRUCTED,
        effect=BoundEffect(
            node=json_tree.text(request, "target", "name"),
            labels=meta.labels(request),
            annotations=meta.annotations(request),
        ),
        losses=(Loss.NO_RV,) if uid else (Loss.NO_RV, Loss.NO_UID),
        is_after=True,
    )


def _scaled(response: JsonObject) -> RequestOutcome:
    """The outcome of a write to a scale, with the version of the parent, whose replicas changed."""
    return RequestOutcome(
        op=Op.MODIFIED,
        namespace=meta.namespace(response),
        name=meta.name(response),
        uid=meta.uid(response),
        quality=Quality.RECONSTRUCTED,
        effect=ScaledEffect(replicas=core.replicas(response) or 0),
        floor=meta.resource_version(response),
    )


def _without_response(event: AuditEvent, reference: ObjectRef) -> RequestOutcome:
    """The outcome at level `Request`, where only the request body is known."""
    request = event.request()
    common: dict[str, Any] = {
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "is_after": True,
    }
    tree = as_object(request)
    if event.verb == "patch" and isinstance(request, dict | list):
        media_type, is_guess = infer_patch_type(event, request)
        losses = (Loss.NO_RV, Loss.UNKNOWN_PATCH) if is_guess else (Loss.NO_RV,)
        return RequestOutcome(
            op=Op.ADDED if event.code == 201 else Op.MODIFIED,
            quality=Quality.RECONSTRUCTED,
            effect=PatchedEffect(media_type=media_type, body=request),
            losses=losses,
            **common,
        )
    if tree is None:
        return _unseen(event)
    common["name"] = common["name"] or meta.name(tree)
    if not common["name"]:
        prefix = meta.generate_name(tree)
        return RequestOutcome(
            op=Op.GAP,
            losses=(Loss.GAP, Loss.NO_UID),
            quality=Quality.IDENTITY,
            message=f"create: the name that begins with {prefix!r} was not recorded",
            **common,
        )
    is_removal = reference.subresource != "status" and _was_removed_by_write(tree)
    op = Op.DELETED if is_removal else Op.MODIFIED
    if event.verb == "create":
        # The server gives the object a uid of its own, whatever was sent.
        tree = {**tree, "metadata": {**meta.metadata(tree)}}
        tree["metadata"].pop("uid", None)
    else:
        # It refuses an update that names another object.
        common["uid"] = common["uid"] or meta.uid(tree)
    return RequestOutcome(
        op=Op.ADDED if event.verb == "create" else op,
        tree=tree,
        kind=meta.kind(tree),
        quality=Quality.PARTIAL,
        losses=(Loss.NO_RV, Loss.NO_UID),
        **common,
    )


def _unanswered_deletion(event: AuditEvent, reference: ObjectRef) -> RequestOutcome:
    """The outcome of a deletion whose answer is not known: the object may only begin to end.

    The kubelet deletes a pod when its containers have stopped, without a grace period. Such a
    deletion comes after every state of the pod, another one before those that show it.
    """
    effect = _termination(as_object(event.request()) or {})
    is_pod = reference.resource == "pods" and not reference.api_group
    if is_pod and _is_by_kubelet(event):
        effect = TerminatingEffect(grace_seconds=0)
    return RequestOutcome(
        op=Op.DELETED if is_pod and effect.grace_seconds == 0 else Op.MODIFIED,
        namespace=reference.namespace,
        name=reference.name,
        uid=reference.uid,
        quality=Quality.RECONSTRUCTED,
        effect=effect,
        losses=(Loss.NO_DELETE_STATE, Loss.NO_RV),
        is_after=True,
    )


def _is_by_kubelet(event: AuditEvent) -> bool:
    actor = event.actor()
    return actor is not None and actor.user.startswith(_USERS_OF_NODES)


def _termination(options: JsonView) -> TerminatingEffect:
    """The effect of a deletion with these options. Parity: controllers.md 6.5."""
    propagation = json_tree.text(options, "propagationPolicy")
    if not propagation and options.get("orphanDependents") is True:
        propagation = "Orphan"
    return TerminatingEffect(
        grace_seconds=request_values.requested_grace(options), propagation=propagation
    )


def infer_patch_type(event: AuditEvent, body: Any) -> tuple[str, bool]:
    """The media type of a patch whose type was not recorded, and whether it is a guess."""
    if isinstance(body, list):
        return _JSON_PATCH, False
    query = parse_qs(urlsplit(event.request_uri).query)
    if body.get("apiVersion") and body.get("kind") and query.get("fieldManager"):
        return _APPLY_PATCH, False
    if _has_strategic_marks(body):
        return _STRATEGIC_PATCH, False
    group = event.object_ref.api_group if event.object_ref else ""
    is_built_in = "." not in group or group.endswith(".k8s.io")
    if is_built_in and event.user_agent.split("/")[0].startswith(("kubectl", "kube-", "Go-http")):
        return _STRATEGIC_PATCH, True
    return _MERGE_PATCH, True


def _has_strategic_marks(body: JsonView) -> bool:
    return any(
        isinstance(part, dict) and any(name.startswith(_STRATEGIC_MARKS) for name in part)
        for part in json_tree.walk(body)
    )


def _about(
    op: Op,
    tree: JsonObject,
    *,
    quality: Quality = Quality.FULL,
    effect: Effect | None = None,
    losses: tuple[Loss, ...] = (),
    is_after: bool = False,
    floor: str = "",
) -> RequestOutcome:
    """An outcome whose identity comes from its object."""
    return RequestOutcome(
        op=op,
        namespace=meta.namespace(tree),
        name=meta.name(tree),
        uid=meta.uid(tree),
        kind=meta.kind(tree),
        tree=tree,
        quality=quality,
        effect=effect,
        losses=losses,
        is_after=is_after,
        floor=floor,
    )


def _is_dry_run(event: AuditEvent) -> bool:
    if "dryRun=All" in event.request_uri:
        return True
    options: JsonView = as_object(event.request()) or {}
    if event.object_ref is not None and event.object_ref.subresource == "eviction":
        options = json_tree.mapping(options, "deleteOptions")
    elif event.verb not in ("delete", "deletecollection"):
        return False
    return "All" in json_tree.texts(options, "dryRun")


def _is_truncated(event: AuditEvent) -> bool:
    return (event.annotations or {}).get("audit.k8s.io/truncated") == "true"
