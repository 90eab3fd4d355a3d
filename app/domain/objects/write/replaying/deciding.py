"""Replay of a recorded event beside writes of clients: a paced replay (`service/pacing`).

Changes of clients have priority over the recording. An event that cannot be replayed as it was
recorded is followed by `ConflictObserved`, which states what was not replayed and why.

| recorded | here | becomes |
|---|---|---|
| created | absent | created |
| created or updated | another object of that name | nothing, conflict `other-object` |
| updated, replaced | as recorded before | as recorded |
| updated | absent | nothing, conflict `deleted-here` |
| updated | changed by clients | both changes; where they meet the clients', conflict `fields` |
| deleted | as recorded before, or changed | deleted |
| deleted | with finalizers of clients | marked as deleted, conflict `held` |
| deleted | absent, or another object | nothing: it is gone here too |
"""

from typing import cast

import msgspec

from app.domain.log import Draft, EventType, Stamp
from app.domain.log.replays import CONFLICTS, ConflictBody, ConflictReason, Recorded
from app.domain.objects import history_kinds
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.schema import corrections, structural
from app.domain.objects.write import metadata
from app.domain.objects.write.commands import ReplayEvent
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.replaying import rebasing
from app.domain.values import timestamps
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView

_TEXTS = {
    ConflictReason.OTHER_OBJECT: "another object of that name is here, and stays",
    ConflictReason.DELETED_HERE: "clients deleted the object, which stays deleted",
    ConflictReason.FIELDS: "clients changed the same fields, and their values stay",
    ConflictReason.HELD: "clients hold the object by finalizers, until they remove them",
}


def decide_replay(
    reader: ObjectsReader, command: ReplayEvent, stamp: Stamp, rules: Rules
) -> Decided:
    """Returns the recorded event, merged with changes of clients. It is never refused."""
    if command.type not in (
        EventType.OBJECT_CREATED,
        EventType.OBJECT_UPDATED,
        EventType.OBJECT_DELETED,
    ):
        draft = Draft(
            type=command.type, key=command.key, uid=command.uid, tree=command.tree, stamp=stamp
        )
        return Decided(drafts=(draft,), tree=command.tree)
    present = reader.get(command.key)
    if command.type is EventType.OBJECT_DELETED:
        return _decide_deletion(present, command, stamp)
    if present is None:
        if command.before is not None and _are_of_one_object(meta.uid(command.before), command.uid):
            return _conflict(ConflictReason.DELETED_HERE, command, stamp)
        return _decided(EventType.OBJECT_CREATED, command.tree, command, stamp)
    if not _are_of_one_object(meta.uid(present), command.uid):
        return _decide_replacement(present, command, stamp)
    if rebasing.is_same(present, command.tree):
        return Decided(tree=present)
    if command.before is not None and rebasing.is_same(present, command.before):
        return _decided(EventType.OBJECT_UPDATED, command.tree, command, stamp)
    return _decide_joined(reader, present, command, stamp, rules)


def _decide_joined(
    reader: ObjectsReader, present: JsonObject, command: ReplayEvent, stamp: Stamp, rules: Rules
) -> Decided:
    """Merges the recorded change and changes of clients into one object."""
    kind = history_kinds.find(reader, command.key.group, command.key.resource)
    schemas = rules.schemas
    node = (
        schemas.root(corrections.LOOSE) if kind is None else structural.storage_node(schemas, kind)
    )
    rebased = rebasing.rebase(node, command.before or {}, command.tree, present)
    drafts: list[Draft] = []
    if not rebasing.is_same(rebased.tree, present):
        drafts.append(_draft(EventType.OBJECT_UPDATED, rebased.tree, command, stamp))
    if rebased.conflicts:
        drafts.append(_conflict_draft(ConflictReason.FIELDS, command, stamp, rebased.conflicts))
    return Decided(drafts=tuple(drafts), tree=rebased.tree)


def _decide_replacement(present: JsonObject, command: ReplayEvent, stamp: Stamp) -> Decided:
    """Decides an event whose object has another uid than the present one.

    Either the recording missed the end of the object before it, or clients created the present one.
    """
    before = command.before
    if before is None or not _are_of_one_object(meta.uid(before), meta.uid(present)):
        return _conflict(ConflictReason.OTHER_OBJECT, command, stamp)
    deletion = Draft(
        type=EventType.OBJECT_DELETED,
        key=command.key,
        uid=meta.uid(present),
        tree=_own(present),
        stamp=stamp,
    )
    creation = _draft(EventType.OBJECT_CREATED, command.tree, command, stamp)
    return Decided(drafts=(deletion, creation), tree=creation.tree, created=True)


def _decide_deletion(present: JsonObject | None, command: ReplayEvent, stamp: Stamp) -> Decided:
    if present is None or not _are_of_one_object(meta.uid(present), command.uid):
        return Decided(tree=present)
    recorded = meta.finalizers(command.before or command.tree)
    own = [name for name in meta.finalizers(present) if name not in recorded]
    if not own:
        before = command.before
        is_recorded = before is not None and rebasing.is_same(present, before)
        tree = command.tree if is_recorded else present
        return _decided(EventType.OBJECT_DELETED, tree, command, stamp)
    tree = _own(present)
    tree_metadata = cast(JsonObject, tree["metadata"])
    tree_metadata["finalizers"] = own
    tree_metadata.setdefault("deletionTimestamp", timestamps.seconds_text(stamp.time))
    tree_metadata["deletionGracePeriodSeconds"] = 0
    update = _draft(EventType.OBJECT_UPDATED, tree, command, stamp)
    conflict = _conflict_draft(ConflictReason.HELD, command, stamp, own)
    return Decided(drafts=(update, conflict), tree=update.tree)


def _are_of_one_object(uid: Uid, other: str) -> bool:
    """Whether two states can belong to one object: the uids are equal, or one is missing."""
    return not uid or not other or uid == other


def _own(tree: JsonView) -> JsonObject:
    """A copy of the tree whose metadata may be changed."""
    return {**tree, "metadata": dict(metadata.of(tree))}


def _draft(type: EventType, tree: JsonView, command: ReplayEvent, stamp: Stamp) -> Draft:
    uid = command.uid or meta.uid(tree)
    return Draft(type=type, key=command.key, uid=uid, tree=_own(tree), stamp=stamp)


def _decided(type: EventType, tree: JsonView, command: ReplayEvent, stamp: Stamp) -> Decided:
    draft = _draft(type, tree, command, stamp)
    is_new = type is EventType.OBJECT_CREATED
    return Decided(drafts=(draft,), tree=draft.tree, created=is_new)


def _conflict(conflict: ConflictReason, command: ReplayEvent, stamp: Stamp) -> Decided:
    return Decided(drafts=(_conflict_draft(conflict, command, stamp),), tree=None)


def _conflict_draft(
    conflict: ConflictReason,
    command: ReplayEvent,
    stamp: Stamp,
    places: tuple[str, ...] | list[str] = (),
) -> Draft:
    key = command.key
    named = f": {', '.join(places)}" if places else ""
    body = ConflictBody(
        conflict=conflict.value,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        uid=command.uid,
        recorded=Recorded(revision=command.origin.replayed, type=command.type.value),
        places=list(places),
        message=f"{key} is not shown as recorded: {_TEXTS[conflict]}{named}",
    )
    return Draft(
        type=EventType.CONFLICT_OBSERVED,
        key=CONFLICTS._replace(namespace=key.namespace, name=key.name),
        uid=NO_UID,
        tree=msgspec.to_builtins(body),
        stamp=stamp,
    )
