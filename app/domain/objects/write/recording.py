"""Log entries that are written without rules: decisions, facts, and states of other clusters."""

import msgspec

from app.domain.errors import BadRequest
from app.domain.log import DECISION, Draft, EventType, Stamp
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import metadata
from app.domain.objects.write.commands import ImportObject, RecordDecision, RecordFact
from app.domain.objects.write.decided import Decided
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID


def decide_decision(command: RecordDecision, stamp: Stamp) -> Decided:
    """Returns the event of a controller's decision."""
    key = DECISION._replace(namespace=command.namespace, name=command.name)
    draft = Draft(
        type=EventType.DECISION_RECORDED, key=key, uid=NO_UID, tree=command.body, stamp=stamp
    )
    return Decided(drafts=(draft,), tree=command.body)


def decide_fact(command: RecordFact, stamp: Stamp) -> Decided:
    """Returns an event that is not about an object. Raises BadRequest for an unknown event type."""
    try:
        type_ = EventType(command.type)
    except ValueError as problem:
        raise BadRequest(f"there is no event type {command.type!r}") from problem
    draft = Draft(type=type_, key=command.key, uid=NO_UID, tree=command.body, stamp=stamp)
    return Decided(drafts=(draft,), tree=command.body)


def decide_import(reader: ObjectsReader, command: ImportObject, stamp: Stamp) -> Decided:
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
