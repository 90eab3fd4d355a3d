"""The decision of every command: it becomes drafts of events, or is refused.

`decide` is pure: the same objects, command, stamp and rules give the same result. It never changes
its input trees; the trees of its drafts belong to the drafts.

Decisions of controllers, facts, and states of other clusters are written without rules.
"""

from typing import assert_never

import msgspec

from app.domain.errors import BadRequest
from app.domain.log import DECISION, Draft, EventType, Stamp
from app.domain.objects.access import escalation
from app.domain.objects.kinds import limit_ranges
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write import (
    apply,
    binding,
    creation,
    deletion,
    metadata,
    patching,
    updating,
)
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    ImportObject,
    PatchObject,
    PatchType,
    RecordDecision,
    RecordFact,
    ReplayEvent,
    UpdateObject,
)
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.replaying import deciding as replaying
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID

__all__ = ["Decided", "Rules", "decide"]


def decide(reader: ObjectsReader, command: Command, stamp: Stamp, rules: Rules) -> Decided:
    """Returns the effect of the command on the objects of `reader`. Raises Rejected."""
    decided = _decide(reader, command, stamp, rules)
    if isinstance(command, CreateObject | UpdateObject | PatchObject):
        rights = command.options.rights
        if isinstance(rights, escalation.GiverRights) and decided.tree is not None:
            escalation.check(reader, command.key, decided.tree, rights)
    if isinstance(command, UpdateObject | PatchObject) and decided.tree is not None:
        limit_ranges.check_change(reader, command.key, command.subresource, decided.tree)
    return decided


def _decide(reader: ObjectsReader, command: Command, stamp: Stamp, rules: Rules) -> Decided:
    match command:
        case CreateObject():
            return creation.decide_create(reader, command, stamp, rules)
        case UpdateObject():
            return updating.decide_update(reader, command, stamp, rules)
        case PatchObject():
            if command.type is PatchType.APPLY:
                return apply.decide_apply(reader, command, stamp, rules)
            return patching.decide_patch(reader, command, stamp, rules)
        case DeleteObject():
            return deletion.decide_delete(reader, command, stamp, rules)
        case BindPod():
            return binding.decide_binding(reader, command, stamp, rules)
        case RecordDecision():
            return _decide_decision(command, stamp)
        case RecordFact():
            return _decide_fact(command, stamp)
        case ImportObject():
            return _decide_import(reader, command, stamp)
        case ReplayEvent():
            return replaying.decide_replay(reader, command, stamp, rules)
        case _:
            assert_never(command)


def _decide_decision(command: RecordDecision, stamp: Stamp) -> Decided:
    """Returns the event of a controller's decision."""
    key = DECISION._replace(namespace=command.namespace, name=command.name)
    draft = Draft(
        type=EventType.DECISION_RECORDED, key=key, uid=NO_UID, tree=command.body, stamp=stamp
    )
    return Decided(drafts=(draft,), tree=command.body)


def _decide_fact(command: RecordFact, stamp: Stamp) -> Decided:
    """Returns an event that is not about an object. Raises BadRequest for an unknown event type."""
    try:
        type_ = EventType(command.type)
    except ValueError as problem:
        raise BadRequest(f"there is no event type {command.type!r}") from problem
    draft = Draft(type=type_, key=command.key, uid=NO_UID, tree=command.body, stamp=stamp)
    return Decided(drafts=(draft,), tree=command.body)


def _decide_import(reader: ObjectsReader, command: ImportObject, stamp: Stamp) -> Decided:
    """Returns the event of a recorded state, which is stored unchanged.

    If the object replaces one with another uid, a deletion of the old one comes first, because the
    recording missed it. A deletion of an object that was never recorded is stored too.
    """
    if command.origin is not None:
        stamp = msgspec.structs.replace(stamp, origin=command.origin)
    old = reader.get(command.key)
    old_uid = meta.uid(old) if old is not None else NO_UID
    tree = {**command.tree, "metadata": dict(metadata.of(command.tree))}
    drafts = []
    if command.operation == "DELETED":
        type_ = EventType.OBJECT_DELETED
    elif command.operation not in ("ADDED", "MODIFIED"):
        raise BadRequest(f"there is no import operation {command.operation!r}")
    elif old is None:
        type_ = EventType.OBJECT_CREATED
    elif command.uid and old_uid and command.uid != old_uid:
        type_ = EventType.OBJECT_CREATED
        last = {**old, "metadata": dict(metadata.of(old))}
        drafts.append(
            Draft(
                type=EventType.OBJECT_DELETED,
                key=command.key,
                uid=old_uid,
                tree=last,
                stamp=stamp,
            )
        )
    else:
        type_ = EventType.OBJECT_UPDATED
    uid = command.uid or old_uid
    drafts.append(Draft(type=type_, key=command.key, uid=uid, tree=tree, stamp=stamp))
    return Decided(drafts=tuple(drafts), tree=tree, created=type_ is EventType.OBJECT_CREATED)
