"""Claim sync: the reservations, allocation, finalizer and deletion of one claim.

Upstream makes three writes, one after the other, from the state of its cache at the beginning. They
are normally one append; with bindings that take time each is a separate act:

    act            write                       after it
    first          reservations, allocation    another client's write ends the sync: a conflict
    finalizer      protection goes             the collector may come first: nothing is left to do
    deletion       DELETE

A claim that is terminating, or has no reservations and a finished pod, begins with the write that
it needs. Parity: controllers.md 2.3. The cache here is always current, so upstream's live read and
its list of recently deleted pods, which protect against a stale cache, are not needed.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from app.domain.controllers import pods
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, DeleteObject, UpdateObject, WriteOptions
from app.domain.values import well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.dra import Consumer
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject, JsonView

MANAGER = WriteOptions(field_manager="kube-controller-manager")

NO_PODS: Mapping[NamespacedName, Uid] = {}


class ClaimAct(StrEnum):
    """The writes of one sync, when each is a separate act."""

    FIRST = "first"
    FINALIZER = "finalizer"
    DELETION = "deletion"


class NeededWrites(msgspec.Struct, frozen=True, kw_only=True):
    """The writes that a claim needs, and the reason; `follows` are acts that may come next."""

    commands: tuple[Command, ...]
    outcome: str
    removed: tuple[JsonObject, ...] = ()
    kept: int = 0
    follows: tuple[ClaimAct, ...] = ()


def needed_writes(
    objects: ObjectsReader,
    namespace: str,
    name: str,
    gone: Collection[str] = (),
    running: Mapping[NamespacedName, Uid] = NO_PODS,
) -> NeededWrites | None:
    """The writes that the claim needs; None when it needs none.

    `gone` are uids of deleted pods that the emulated cache still has as finished. `running` are
    pods known not to be done, which keep their reservations; others are read from `objects`.
    """
    key = claim_key(namespace, name)
    claim = objects.get(key)
    if claim is None or _is_untouched(claim):
        return None
    remaining, removed = _sort_out(objects, namespace, claim, running)
    has_finalizer = well_known.CLAIM_PROTECTION in meta.finalizers(claim)
    is_deleting = meta.is_deleting(claim)
    allocated = pods.is_allocated(claim)
    clears = allocated and not remaining and has_finalizer and (bool(removed) or is_deleting)
    commands: list[Command] = []
    if removed or clears:
        commands.append(_status_update(claim, remaining, clears=clears))
    free = not allocated or clears
    unfinalizes = has_finalizer and free and (bool(removed) or (is_deleting and not remaining))
    if unfinalizes:
        commands.append(_finalizer_update(claim, is_first=not commands))
    if not remaining and not is_deleting and _owner_is_done(objects, claim, gone):
        commands.append(DeleteObject(key=key, version="v1", options=MANAGER))
    if not commands:
        return None
    return NeededWrites(
        commands=tuple(commands),
        outcome=_outcome(commands, clears=clears, ends=is_deleting and unfinalizes),
        removed=tuple(removed),
        kept=len(remaining),
    )


def _is_untouched(claim: JsonView) -> bool:
    """True for most new claims: no status to release or clear, no owner to be deleted with."""
    metadata = meta.metadata(claim)
    return not claim.get("status") and metadata.keys().isdisjoint(_TOUCHED)


_TOUCHED = frozenset({"deletionTimestamp", "finalizers", "ownerReferences"})
"""The metadata fields without which a claim that has no status needs no write."""


def next_write(
    objects: ObjectsReader,
    namespace: str,
    name: str,
    act: ClaimAct,
    gone: Collection[str] = (),
    running: Mapping[NamespacedName, Uid] = NO_PODS,
) -> NeededWrites | None:
    """The single write of this act; None when there is nothing to do or nothing left to do."""
    claim = objects.get(claim_key(namespace, name))
    if claim is None:
        return None
    match act:
        case ClaimAct.FIRST:
            return _first_of(claim, needed_writes(objects, namespace, name, gone, running))
        case ClaimAct.FINALIZER:
            if well_known.CLAIM_PROTECTION not in meta.finalizers(claim):
                return None
            command = _finalizer_update(claim, is_first=True)
            return NeededWrites(commands=(command,), outcome="Unprotected")
        case ClaimAct.DELETION:
            if meta.is_deleting(claim):
                return None
            delete = DeleteObject(key=_key_of(claim), version="v1", options=MANAGER)
            return NeededWrites(commands=(delete,), outcome="Deleted")


def _first_of(claim: JsonObject, writes: NeededWrites | None) -> NeededWrites | None:
    """The first write of a sync, with the acts that follow."""
    if writes is None:
        return None
    first, *more = writes.commands
    outcome = writes.outcome
    if isinstance(first, UpdateObject) and first.subresource == "status":
        clears = "allocation" not in meta.status(first.tree)
        outcome = "Deallocated" if clears and pods.is_allocated(claim) else "Released"
    follows = tuple(
        ClaimAct.DELETION if isinstance(command, DeleteObject) else ClaimAct.FINALIZER
        for command in more
    )
    return msgspec.structs.replace(writes, commands=(first,), outcome=outcome, follows=follows)


def _sort_out(
    objects: ObjectsReader,
    namespace: str,
    claim: JsonView,
    running: Mapping[NamespacedName, Uid],
) -> tuple[list[JsonObject], list[JsonObject]]:
    """The reservations that stay, as stored, and those that go, with the reason."""
    reserved, consumers = dra.reserved_for(claim), dra.consumers(claim)
    # A claim that many pods share changes with each of them, and then mostly all of them stay.
    if all(running.get((namespace, each.name)) == each.uid for each in consumers):
        return list(reserved), []
    remaining: list[JsonObject] = []
    removed: list[JsonObject] = []
    for consumer, tree in zip(consumers, reserved, strict=True):
        why = _why_dropped(objects, namespace, consumer)
        if why:
            removed.append({"name": consumer.name, "uid": consumer.uid, "why": why})
        else:
            remaining.append(tree)
    return remaining, removed


def _why_dropped(objects: ObjectsReader, namespace: str, consumer: Consumer) -> str:
    """The reason why a claim loses a reservation; empty when it keeps it."""
    if consumer.api_group or consumer.resource != "pods":
        return ""  # consumers of other kinds are never removed
    tree = objects.get(pod_key(namespace, consumer.name))
    if tree is None:
        return "pod is gone"
    if meta.uid(tree) != consumer.uid:
        return "pod was replaced"
    if pods.is_done(tree):
        phase = meta.phase(tree)
        return f"pod is {phase}" if phase in core.FINISHED else "pod was deleted"
    return ""


def _status_update(claim: JsonObject, remaining: list[JsonObject], *, clears: bool) -> UpdateObject:
    status = dict(claim["status"])
    if remaining:
        status["reservedFor"] = remaining
    else:
        status.pop("reservedFor", None)
    if clears:
        status.pop("allocation", None)
    tree = {**claim, "status": status}
    return UpdateObject(
        key=_key_of(claim), version="v1", tree=tree, subresource="status", options=MANAGER
    )


def _finalizer_update(claim: JsonObject, *, is_first: bool) -> UpdateObject:
    metadata = dict(claim["metadata"])
    left = [f for f in meta.finalizers_of(metadata) if f != well_known.CLAIM_PROTECTION]
    if left:
        metadata["finalizers"] = left
    else:
        metadata.pop("finalizers", None)
    if not is_first:
        # The previous write of the same append changed the version; that write was checked.
        metadata.pop("resourceVersion", None)
    tree = {**claim, "metadata": metadata}
    return UpdateObject(key=_key_of(claim), version="v1", tree=tree, options=MANAGER)


def _owner_is_done(objects: ObjectsReader, claim: JsonView, gone: Collection[str]) -> bool:
    owner = meta.controller(claim)
    if owner is None or owner.kind != "Pod":
        return False
    tree = objects.get(pod_key(meta.namespace(claim), owner.name))
    if tree is None:
        # Garbage collection deletes the claim when the cache already knows that the owner is gone.
        return owner.uid in gone
    return meta.uid(tree) != owner.uid or pods.is_done(tree)


def _outcome(commands: list[Command], *, clears: bool, ends: bool) -> str:
    if ends or isinstance(commands[-1], DeleteObject):
        return "Deleted"
    return "Deallocated" if clears else "Released"


def _key_of(claim: JsonView) -> ObjectKey:
    return claim_key(*meta.place(claim))
