"""What is written into the log without rules: decisions, facts, and states of other clusters."""

import msgspec

from app.domain.errors import BadRequest
from app.domain.log import DECISION, Draft, EventType, Stamp
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import metadata
from app.domain.objects.write.commands import ImportObject, RecordDecision, RecordFact
from app.domain.objects.write.decided import Decided


def decide_decision(command: RecordDecision, stamp: Stamp) -> Decided:
    """The decision of a controller as an event of its own."""
    key = DECISION._replace(namespace=command.namespace, name=command.name)
    draft = Draft(type=EventType.DECISION_RECORDED, key=key, uid="", tree=command.body, stamp=stamp)
    return Decided(drafts=(draft,), tree=command.body)


def decide_fact(command: RecordFact, stamp: Stamp) -> Decided:
    """An event that is not about an object. Raises BadRequest for a type of another sort."""
    try:
        type_ = EventType(command.type)
    except ValueError as problem:
        raise BadRequest(f"there is no event type {command.type!r}") from problem
    draft = Draft(type=type_, key=command.key, uid="", tree=command.body, stamp=stamp)
    return Decided(drafts=(draft,), tree=command.body)


def decide_import(reader: ObjectsReader, command: ImportObject, stamp: Stamp) -> Decided:
    """A recorded state, taken over as it is.

    An object that replaces one of another uid ends that one first: the recording missed its end.
    A deletion of something that was never seen is recorded too.
    """
    if command.origin is not None:
        stamp = msgspec.structs.replace(stamp, origin=command.origin)
    old = reader.get(command.key)
    old_uid = str(metadata.of(old).get("uid", "")) if old is not None else ""
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
