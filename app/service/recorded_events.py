"""Conversion of records of a real cluster into events of the log, and back.

Each event keeps its source in its stamp's `Origin`. The recorded uid stays; the recorded resource
version moves to the origin. Import and recorder both write events this way.
"""

from app.domain.log import (
    Actor,
    Draft,
    Event,
    EventType,
    Head,
    ObjectKey,
    Origin,
    Revision,
    Stamp,
    chain,
    doubts,
)
from app.domain.log.records import (
    BASELINE_VERB,
    IMPORTER_USER,
    Loss,
    Op,
    Quality,
    Record,
    TimeQuality,
)
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.write import intake
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

IMPORTS = ObjectKey("redra", "imports", "", "")
"""Group and resource of events about an import; the name is the history's."""

IMPORTER = Actor(user=IMPORTER_USER)
"""The actor of events whose source does not name one."""

_EVENT_TYPES = {
    Op.BASELINE: EventType.OBJECT_CREATED,
    Op.ADDED: EventType.OBJECT_CREATED,
    Op.MODIFIED: EventType.OBJECT_UPDATED,
    Op.DELETED: EventType.OBJECT_DELETED,
    Op.GAP: EventType.GAP_OBSERVED,
    Op.CONTEXT: EventType.REQUEST_OBSERVED,
}
_OPS = {event: op for op, event in _EVENT_TYPES.items() if op is not Op.BASELINE}
_VERBS = {Op.BASELINE: BASELINE_VERB, Op.GAP: "gap"}


class Sealer:
    """Gives drafts their revisions and hashes, one after the other; event times never fall.

    Values of Secrets are encrypted on the way.
    """

    def __init__(self, head: Head, start: Instant, secrets: SecretCipher | None) -> None:
        self._secrets = secrets
        self._revision = head.revision
        self._hash = head.hash
        self.time = Instant(max(start, head.time))

    def advance(self, record: Record) -> Instant:
        """The time of the event: the record's time in log order, never before the last event."""
        moment = record.settled_at if record.settled_at is not None else record.observed_at
        if moment is not None and moment > self.time:
            self.time = moment
        return self.time

    def seal(self, draft: Draft) -> Event:
        """Seal the draft as the next event of the history."""
        self._revision = Revision(self._revision + 1)
        if self._secrets is not None and secret_values.is_secret(draft.key):
            draft.tree = secret_values.protected(draft.key, draft.tree, self._secrets)
        event = chain.seal(draft, self._revision, self._hash)
        self._hash = event.hash
        # The tree would live as long as the event; readers decode it again when needed.
        event.forget_tree()
        return event


def import_draft(name: str, time: Instant, body: JsonObject) -> Draft:
    """A draft about the import itself: its sources, its progress, its report."""
    return Draft(
        type=EventType.HISTORY_IMPORTED,
        key=IMPORTS._replace(name=name),
        uid=NO_UID,
        tree=body,
        stamp=Stamp(time=time, actor=IMPORTER, verb="import"),
    )


def record_draft(record: Record, time: Instant) -> Draft:
    """The draft of the event for a record."""
    return Draft(
        type=_EVENT_TYPES[record.op],
        key=record.key,
        uid=record.uid,
        tree=_body(record),
        stamp=Stamp(
            time=time,
            actor=record.actor or IMPORTER,
            verb=record.verb or _VERBS.get(record.op, "observe"),
            request_id=record.request_id,
            origin=_origin(record),
        ),
    )


def record_of(event: Event) -> Record | None:
    """The parts of an event's record that a report counts; None for other events."""
    origin, op = event.stamp.origin, _OPS.get(event.type)
    if origin is None or op is None:
        return None
    group, resource, namespace, name = event.key
    return Record(
        source=origin.source,
        position=origin.position,
        op=Op.BASELINE if event.stamp.verb == _VERBS[Op.BASELINE] else op,
        group=group,
        version=origin.version,
        resource=resource,
        namespace=namespace,
        name=name,
        uid=event.uid,
        resource_version=origin.resource_version,
        object_quality=Quality(origin.quality) if origin.quality else Quality.FULL,
        observed_at=event.stamp.time,
        time_quality=TimeQuality(origin.time_quality or TimeQuality.NONE),
        losses=tuple(Loss(loss) for loss in origin.losses),
        message=str(event.object.get("message", "")) if op is Op.GAP else "",
    )


def _origin(record: Record) -> Origin:
    quality = "" if record.object_quality is Quality.FULL else record.object_quality.value
    return Origin(
        source=record.source,
        position=record.position,
        resource_version=record.resource_version,
        version=record.version,
        time_quality=record.time_quality.value,
        quality=quality,
        losses=tuple(loss.value for loss in record.losses),
        code=record.code,
        asked=record.asked_at or 0,
        answered=(record.observed_at or 0) if record.asked_at is not None else 0,
    )


def _body(record: Record) -> JsonObject:
    """The body of the event; a copy, because sealing writes into its metadata."""
    if record.op is Op.GAP:
        gap: JsonObject = {"message": record.message}
        return {**gap, doubts.POOL: record.pool} if record.pool else gap
    if record.op is Op.CONTEXT:
        body: JsonObject = {"verb": record.verb, "code": record.code, "message": record.message}
        if record.subresource:
            body["subresource"] = record.subresource
        return body
    tree = record.object
    if tree is None:
        version = f"{record.group}/{record.version}" if record.group else record.version
        tree = {"apiVersion": version, "kind": record.kind}
    return intake.identified(tree, record.key, record.uid)
