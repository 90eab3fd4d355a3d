"""Deletion of objects: at once, after a grace period, or after the last finalizer is removed.

Parity: api.md 5, controllers.md 5.2, 5.5 and 6.5. The removal of a pod takes two events, of which
the first sets its deletionTimestamp; other kinds are removed by one event.
"""

import msgspec

from app.domain.log import Draft, EventType, ObjectKey, Stamp
from app.domain.objects import rejections
from app.domain.objects.custom import definitions, naming
from app.domain.objects.kinds import priorities
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.write import admission, metadata, review_calls
from app.domain.objects.write.commands import DeleteObject, Propagation
from app.domain.objects.write.context import WriteContext
from app.domain.objects.write.decided import Decided
from app.domain.values import timestamps
from app.domain.values.fields import core, meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"

_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning",
)

_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})


def decide_delete(
    reader: ObjectsReader, command: DeleteObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Deletes an object or marks it as terminating. Raises NotFound, Conflict, Forbidden.

    Without drafts, the object is already terminating and the delete changes nothing.
    """
    kind = admission.find_kind(reader, command.key, command.version, rules)
    key = admission.storage_key(kind, command.key)
    old = reader.get(key)
    if old is None:
        raise rejections.not_found(admission.in_group(kind, command.key.group), key.name)
    _check_preconditions(kind, key, command, old)
    warnings: tuple[str, ...] = ()
    if kind.orphans and command.propagation is None:
        command = msgspec.structs.replace(command, propagation=_kept_or_orphan(old))
        warnings = _PRESERVED if kind.qualified_kind == "Job.batch" else ()
    priorities.check_deletion(key)
    if kind.qualified_kind == "Namespace":
        if key.name in _IMMORTAL:
            raise rejections.forbidden(kind, key.name, "this namespace may not be deleted")
        trees = _namespace_steps(old, stamp)
    elif kind.qualified_kind == "Pod":
        trees = _pod_steps(old, command, stamp)
    elif kind.qualified_kind == definitions.KIND:
        trees = _definition_steps(old, command, stamp)
    else:
        trees = _steps(old, command, stamp)
    if not trees:
        return Decided(tree=old, warnings=warnings)
    write = WriteContext(
        reader=reader,
        rules=rules,
        stamp=stamp,
        kind=kind,
        key=key,
        group=command.key.group,
        version=command.version,
        options=command.options,
    )
    warnings += review_calls.ask(write, review_calls.DELETE, tree=None, old=old)
    if command.options.dry_run:
        return Decided(tree=trees[-1][1], warnings=warnings)
    uid: Uid = metadata.of(old).get("uid") or NO_UID
    drafts = tuple(
        Draft(type=type_, key=key, uid=uid, tree=tree, stamp=stamp) for type_, tree in trees
    )
    return Decided(drafts=drafts, tree=drafts[-1].tree, warnings=warnings)


_Steps = list[tuple[EventType, JsonObject]]


def _check_preconditions(
    kind: Kind, key: ObjectKey, command: DeleteObject, old: JsonObject
) -> None:
    meta_of_old = metadata.of(old)
    uid = meta_of_old.get("uid", "")
    if command.uid and command.uid != uid:
        raise rejections.precondition(
            kind,
            key.name,
            f"the UID in the precondition ({command.uid}) does not match the UID in record "
            f"({uid}). The object might have been deleted and then recreated",
        )
    version = meta_of_old.get("resourceVersion", "")
    if command.resource_version and command.resource_version != version:
        raise rejections.precondition(
            kind,
            key.name,
            f"the ResourceVersion in the precondition ({command.resource_version}) does not match "
            f"the ResourceVersion in record ({version}). The object might have been modified",
        )


def _steps(old: JsonObject, command: DeleteObject, stamp: Stamp) -> _Steps:
    """The steps without a grace period: removed at once, or terminating with finalizers."""
    before = metadata.of(old)
    finalizers = _finalizers(before, command.propagation)
    if not finalizers:
        last = dict(before)
        if before.get("finalizers"):
            last.pop("finalizers")
        return [(EventType.OBJECT_DELETED, {**old, "metadata": last})]
    after = dict(before)
    after["finalizers"] = finalizers
    _mark_deleting(after, stamp.time, grace_seconds=0)
    if after == before:
        return []
    return [(EventType.OBJECT_UPDATED, {**old, "metadata": after})]


def _pod_steps(old: JsonObject, command: DeleteObject, stamp: Stamp) -> _Steps:
    """The steps for a pod: marked with its grace period, and removed if the period is 0."""
    before = metadata.of(old)
    finalizers = _finalizers(before, command.propagation)
    after = dict(before)
    if finalizers:
        after["finalizers"] = finalizers
    else:
        after.pop("finalizers", None)
    if "deletionTimestamp" not in before:
        _mark_deleting(after, stamp.time, grace_seconds=_grace_seconds(old, command))
    elif command.grace_seconds is not None:
        _shorten(after, max(command.grace_seconds, 0), stamp.time)
    steps: _Steps = []
    if after != before:
        steps.append((EventType.OBJECT_UPDATED, {**old, "metadata": after}))
    if not finalizers and not after.get("deletionGracePeriodSeconds"):
        steps.append((EventType.OBJECT_DELETED, {**old, "metadata": dict(after)}))
    return steps


def _namespace_steps(old: JsonObject, stamp: Stamp) -> _Steps:
    """The steps for a namespace, which terminates until it has no finalizers."""
    before = metadata.of(old)
    if "deletionTimestamp" not in before:
        after = {**before, "deletionTimestamp": timestamps.seconds_text(stamp.time)}
        status = {**meta.status(old), "phase": "Terminating"}
        if core.namespace_finalizers(old) or before.get("finalizers"):
            tree = {**old, "metadata": after, "status": status}
            return [(EventType.OBJECT_UPDATED, tree)]
    elif core.namespace_finalizers(old) or before.get("finalizers"):
        return []
    return [(EventType.OBJECT_DELETED, {**old, "metadata": dict(before)})]


def _definition_steps(old: JsonObject, command: DeleteObject, stamp: Stamp) -> _Steps:
    """The steps for a definition; the `definitions` controller deletes its objects first."""
    before = metadata.of(old)
    if "deletionTimestamp" in before:
        return []
    finalizers = _finalizers(before, command.propagation)
    if naming.CLEANUP not in finalizers:
        finalizers.append(naming.CLEANUP)
    after = {**before, "finalizers": finalizers}
    _mark_deleting(after, stamp.time, grace_seconds=0)
    status = naming.terminating(
        old,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        stamp.time,
    )
    return [(EventType.OBJECT_UPDATED, {**old, "metadata": after, "status": status})]


def _grace_seconds(pod: JsonObject, command: DeleteObject) -> int:
    """The grace period of a pod in seconds; 0 for a pod without a node and for a finished pod."""
    if not core.node_name(pod):
        return 0
    if core.is_finished(pod):
        return 0
    wanted = command.grace_seconds
    if wanted is None:
        wanted = core.termination_grace_seconds(pod)
    if wanted is None:
        return 0
    return wanted if wanted >= 0 else 1


def _mark_deleting(object_meta: JsonObject, now: Instant, *, grace_seconds: int) -> None:
    """Sets missing deletion fields of metadata in place and increments the generation."""
    if "deletionTimestamp" in object_meta:
        return
    due = Instant(now + grace_seconds * timestamps.SECOND)
    object_meta["deletionTimestamp"] = timestamps.seconds_text(due)
    object_meta["deletionGracePeriodSeconds"] = grace_seconds
    if object_meta.get("generation", 0) > 0:
        object_meta["generation"] += 1


def _shorten(object_meta: JsonObject, grace_seconds: int, now: Instant) -> None:
    """Shortens the grace period in place; a later delete cannot extend it."""
    current = object_meta.get("deletionGracePeriodSeconds")
    if current is None or grace_seconds >= current:
        return
    due = timestamps.parse(object_meta["deletionTimestamp"])
    moved = Instant(due + (grace_seconds - current) * timestamps.SECOND)
    object_meta["deletionTimestamp"] = timestamps.seconds_text(max(moved, now))
    object_meta["deletionGracePeriodSeconds"] = grace_seconds


def _kept_or_orphan(old: JsonObject) -> Propagation | None:
    """The propagation of a delete without one: None if an earlier delete set it, else Orphan."""
    finalizers = metadata.finalizers(old)
    return None if ORPHAN in finalizers or FOREGROUND in finalizers else Propagation.ORPHAN


def _finalizers(before: JsonObject, propagation: Propagation | None) -> list[str]:
    """The finalizers after a delete with this propagation; None leaves them unchanged."""
    present = meta.finalizers_of(before)
    if propagation is None:
        return present
    kept = [item for item in present if item not in (ORPHAN, FOREGROUND)]
    if propagation is Propagation.ORPHAN:
        return [*kept, ORPHAN]
    if propagation is Propagation.FOREGROUND:
        return [*kept, FOREGROUND]
    return kept
