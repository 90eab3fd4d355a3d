"""Ends of objects that an audit log does not have, as far as later lines prove them.

The API's semantics prove an end that no line shows. A server sets `deletionTimestamp` for a
deletion alone, so another write that shows it first follows an unrecorded deletion; a deletion that
shows a finished pod, or fewer finalizers, follows an unrecorded write. A request to an object that
is gone is answered `NotFound`. The namespace controller releases a namespace after all of its
content is gone, and says so in the status. The removal of an object that nobody waits for is left
out: its intermediate state may show before the deletion.

Parity: history-formats.md 4.5.
"""

from app.adapters.history import times
from app.adapters.history.joining.spool import ORDER_BY_REVISION, Row, Spool
from app.adapters.history.reading import Notes
from app.domain.controllers import registry
from app.domain.log.records import (
    Loss,
    Op,
    Quality,
    Record,
    TerminatingEffect,
    comparable_version,
)
from app.domain.values import api_groups
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

_NOT_FOUND = 404
_COLLECTOR = registry.actor_of("garbage").user
_CONTENT_REMAINING = "NamespaceContentRemaining"


def is_judged(record: Record) -> bool:
    """True for pods and the kinds of devices, whose deletions no policy omits."""
    return record.group == api_groups.RESOURCE or (not record.group and record.resource == "pods")


def may_show_change(spool: Spool, record: Record, *, names_status: bool) -> bool:
    """True if a write on the way to an object's end may show an unrecorded change.

    A log that does not name the subresource `status`, as exported ones, writes deletions as
    updates.
    """
    if not (record.subresource == "status" or names_status) or not is_judged(record):
        return False
    if spool.order != ORDER_BY_REVISION:
        return False
    return record.verb == "delete" or bool(meta.deletion_timestamp(record.object or {}))


def shows_unseen_change(record: Record, before: JsonView) -> bool:
    """True if a write shows what it does not do: a deletion, the end of a pod, fewer finalizers.

    A deletion leaves the phase of a pod and the finalizers as they are, a write to `status` the
    finalizers, and an update sets no `deletionTimestamp`.
    """
    tree = record.object or {}
    is_deletion = record.verb == "delete"
    keeps_finalizers = is_deletion or record.subresource == "status"
    if keeps_finalizers and not set(meta.finalizers(before)) <= set(meta.finalizers(tree)):
        return True
    if is_deletion:
        is_pod = not record.group and record.resource == "pods"
        return is_pod and core.is_finished(tree) and not core.is_finished(before)
    if record.verb not in ("update", "patch") or meta.deletion_timestamp(before):
        return False
    return (meta.deletion_grace_seconds(tree) or 0) > 0 or bool(meta.finalizers(tree))


def shows_unseen_binding(spool: Spool, record: Record) -> bool:
    """True if a write shows the node of a pod that had none, and cannot have bound the pod."""
    if record.resource != "pods" or record.group or spool.order != ORDER_BY_REVISION:
        return False
    keeps_spec = record.subresource == "status" or record.verb == "delete"
    return keeps_spec and record.effect is None and bool(core.node_name(record.object or {}))


def tells_end(record: Record) -> bool:
    """True for a deletion, whether it succeeded or not: the recording does not leave them out."""
    if record.verb:
        is_request = record.verb.startswith("delete") or record.subresource == "eviction"
        return is_request or isinstance(record.effect, TerminatingEffect)
    return record.op is Op.DELETED


def shows_unseen_end(record: Record, before: JsonView) -> bool:
    """True if a write other than a deletion shows that a deletion has begun."""
    has_begun = bool(meta.deletion_timestamp(record.object or {}))
    return has_begun and not tells_end(record) and not meta.deletion_timestamp(before)


def is_told_absent(record: Record, known: Record) -> bool:
    """True if a request was answered that an object is not there, which was there before it came.

    `known` is the last record of the object.
    """
    if record.code != _NOT_FOUND or record.asked_at is None or known.observed_at is None:
        return False
    kind = record.key.qualified_resource
    is_about_it = record.message == f'NotFound: {kind} "{record.name}" not found'
    return is_about_it and record.asked_at > known.observed_at + times.CLOCK_SKEW


def is_over(tree: JsonView) -> bool:
    """True if a deletion has begun and nothing holds the object: the server removes it."""
    if not meta.deletion_timestamp(tree) or meta.finalizers(tree):
        return False
    return not meta.deletion_grace_seconds(tree) and not core.namespace_finalizers(tree)


def ends(record: Record, before: JsonView, after: JsonView) -> bool:
    """True if a write whose answer was not recorded removed the object, by the derived state.

    A deletion removes what nothing holds, another write what it releases. A write to `status`
    leaves the finalizers as they are.
    """
    if not is_over(after):
        return False
    if isinstance(record.effect, TerminatingEffect):
        return True
    return record.subresource != "status" and bool(meta.finalizers(before))


def is_doubtful(deletion: Record, known: Record) -> bool:
    """True if it is not known whether a deletion without an answer ended the object.

    That follows from the state of the object, if the last line shows it whole. What a pod's kubelet
    deletes, and what is deleted without a grace period, is no longer on its node.
    """
    is_unanswered = Loss.NO_DELETE_STATE in deletion.losses and deletion.op is Op.MODIFIED
    return is_unanswered and known.object_quality is not Quality.FULL


def is_of_successor(deletion: Record, known: str) -> bool:
    """True if a deletion with another uid is of an object that took the name after the known one.

    The versions of that object are all higher than `known`, a version of the known one.
    """
    return bool(known) and comparable_version(deletion.resource_version) > known


def is_emptied(namespace: JsonView) -> bool:
    """True if a namespace that goes says that nothing remains in it."""
    condition = meta.condition(namespace, _CONTENT_REMAINING)
    return condition is not None and condition.status == "False"


def is_shown_later(spool: Spool, row: Row, known: Record) -> bool:
    """True if the object is seen again after a row, or when the order of records is unknown."""
    if spool.order != ORDER_BY_REVISION:
        return True
    cursor = spool.database.execute(
        "SELECT 1 FROM record WHERE key = ? AND uid IN ('', ?) AND op NOT IN ('CONTEXT', 'GAP') "
        "AND row <> ? AND (epoch, version, sub) >= (?, ?, ?) LIMIT 1",
        ("\0".join(known.key), known.uid, row.row, row.epoch, row.version, row.sub),
    )
    return cursor.fetchone() is not None


def date_collected(spool: Spool, notes: Notes) -> None:
    """Date the removals of owners no later than the garbage collector shows that they were gone.

    An update that takes the last finalizer off an object removes it, and is answered without a
    version of the removal: its time places it. The collector deletes dependents as soon as the
    owner is gone, and may have its answer first. Then the owner was gone when it asked. What it
    asked for before the removal was asked for has another reason, such as an owner that waits for
    its dependents, whose finalizer the collector itself takes. Parity: controllers.md 6.6.
    """
    deletions = _collected(spool)
    if not deletions:
        return
    cursor = spool.database.execute(
        "SELECT row, epoch, uid, asked, time FROM record WHERE op = 'DELETED' AND sub > 0 "
        "AND actor AND exact AND who <> ? AND asked < time",
        (_COLLECTOR,),
    )
    dated = []
    for row, epoch, uid, begin, end in cursor.fetchall():
        instant = min(
            (at for at in deletions.get((epoch, uid), ()) if begin <= at < end), default=0
        )
        if instant:
            dated.append((instant, row))
    spool.database.executemany("UPDATE record SET time = ? WHERE row = ?", dated)
    if dated:
        notes.count("removals dated by what the garbage collector deleted next", len(dated))


def _collected(spool: Spool) -> dict[tuple[int, str], list[int]]:
    """The times at which the collector asked for deletions, by epoch and uid of the owner."""
    cursor = spool.database.execute(
        "SELECT epoch, asked, head, body FROM record WHERE who = ? AND asked IS NOT NULL "
        "AND exact AND op IN ('MODIFIED', 'DELETED')",
        (_COLLECTOR,),
    )
    instants: dict[tuple[int, str], list[int]] = {}
    for epoch, at, head, body in cursor:
        if spool.record_in(head).verb == "delete":
            for owner in meta.owners(spool.tree_in(body) or {}):
                instants.setdefault((epoch, owner.uid), []).append(at)
    return instants
