"""Records of a recorded cluster as events of the log, and events as the records that they were.

Each event keeps where it came from in its stamp's `Origin`; the recorded uid stays, the recorded
resource version moves to the origin. Import and recorder both write so.
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
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

IMPORTS = ObjectKey("redra", "imports", "", "")
"""Group and resource of events about an import; the name is the history's."""

IMPORTER = Actor(user=IMPORTER_USER)
"""Who is named where the source does not say who acted."""

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
    """Gives drafts their revisions and hashes, one after the other, and keeps the time rising.

    Values of Secrets are protected on the way.
    """

    def __init__(self, head: Head, start: Instant, secrets: SecretCipher | None) -> None:
        self._secrets = secrets
        self._revision = head.revision
        self._hash = head.hash
        self.time = Instant(max(start, head.time))

    def advance(self, record: Record) -> Instant:
        """The event's time: the record's in log order, never before the event that precedes it."""
        moment = record.settled_at if record.settled_at is not None else record.observed_at
        if moment is not None and moment > self.time:
            self.time = moment
        return self.time

    def seal(self, draft: Draft) -> Event:
        """The next event of the history."""
        self._revision = Revision(self._revision + 1)
        if self._secrets is not None and secret_values.is_secret(draft.key):
            draft.tree = secret_values.protected(draft.key, draft.tree, self._secrets)
        event = chain.seal(draft, self._revision, self._hash)
        self._hash = event.hash
        # The tree would live as long as the event; readers decode it again when they need it.
        event.forget_tree()
        return event


def import_draft(name: str, time: Instant, body: JsonObject) -> Draft:
    """An event about the import itself: what it reads, how it goes, its report."""
    return Draft(
        type=EventType.HISTORY_IMPORTED,
        key=IMPORTS._replace(name=name),
        uid="",
        tree=body,
        stamp=Stamp(time=time, actor=IMPORTER, verb="import"),
    )


def record_draft(record: Record, time: Instant) -> Draft:
    """The event that a record becomes."""
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
    """What a report counts of the record that became an event; None for other events."""
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
    """The event's body; sealing writes into its metadata, so both levels are our own."""
    if record.op is Op.GAP:
        return {"message": record.message}
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
