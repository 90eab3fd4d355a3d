"""Event objects of the scheduler: one per attempt; repeated ones become a series.

Two reports are one event when action, reason and the reference to the pod are equal; the reference
contains the pod's resourceVersion as the scheduler saw it. The first report creates the object, the
second patches `series` into it. Later reports are counted in the scheduler's memory only and write
nothing. Parity: controllers.md 4.3 and 11.1.
"""

from app.domain.controllers.event_objects import fresh_key, reference
from app.domain.controllers.pacing import Pace
from app.domain.controllers.resources import is_of
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    PatchObject,
    PatchType,
    WriteOptions,
)
from app.domain.values import api_groups, api_resources, event_reasons, timestamps
from app.domain.values.bounded import Bounded
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

COMPONENT = "default-scheduler"
INSTANCE = f"{COMPONENT}-redra"
MANAGER = WriteOptions(field_manager="kube-scheduler")

REMEMBERED_MAX = 16_384

_Fact = tuple[str, str, str]


class ReportSeries:
    """The failures that have been reported, folded from the Event objects."""

    def __init__(self, pace: Pace | None = None) -> None:
        """In a replay, `pace` returns the version of a pod that an attempt saw."""
        self._pace = pace
        self._reported: Bounded[_Fact, tuple[ObjectKey, bool]] = Bounded(REMEMBERED_MAX)

    def fold(self, event: Event) -> None:
        """Folds the scheduler's Event objects about failed attempts."""
        if not is_of(event.key, api_resources.EVENTS):
            return
        tree = event.object
        if (
            tree.get("reason") != event_reasons.FAILED_SCHEDULING
            or tree.get("reportingComponent") != COMPONENT
        ):
            return
        event_object = core.event_object(tree)
        fact = (
            event_object.involved_object.uid,
            event_object.involved_object.resource_version,
            event_object.action,
        )
        self._reported.pop(fact, None)
        if event.type is EventType.OBJECT_DELETED:
            return
        self._reported[fact] = (event.key, tree.get("series") is not None)

    def failure(
        self, objects: ObjectsReader, pod: JsonView, text: str, now: Instant
    ) -> Command | None:
        """The command that reports a failed attempt; None when the series has been written."""
        subject = reference(pod, kind="Pod", with_revision=True)
        if self._pace is not None:
            newest = subject["resourceVersion"]
            subject["resourceVersion"] = self._pace.version_seen(subject["uid"], newest, now)
        action = event_reasons.ACTIONS[event_reasons.FAILED_SCHEDULING]
        fact = (subject["uid"], subject["resourceVersion"], action)
        known = self._reported.get(fact)
        if known is None or objects.event(known[0]) is None:
            return _create(
                objects,
                subject,
                now,
                kind="Warning",
                reason=event_reasons.FAILED_SCHEDULING,
                note=text,
            )
        key, is_series = known
        if is_series:
            return None
        return repetition(key, now)


def repetition(key: ObjectKey, now: Instant) -> PatchObject:
    """The command that turns the report of a failed attempt into a series."""
    return PatchObject(
        key=_event_key(key),
        version="v1",
        type=PatchType.STRATEGIC,
        body={"series": {"count": 2, "lastObservedTime": timestamps.micro_text(now)}},
        options=MANAGER,
    )


def scheduled(objects: ObjectsReader, pod: JsonView, node: str, now: Instant) -> Command:
    """The Event about a pod that was bound to a node."""
    subject = reference(pod, kind="Pod", with_revision=True)
    return _create(
        objects,
        subject,
        now,
        kind="Normal",
        reason=event_reasons.SCHEDULED,
        note=messages.assigned(subject["namespace"], subject["name"], node),
    )


def waiting(objects: ObjectsReader, pod: JsonView, node: str, now: Instant) -> Command:
    """The Event about a pod that waits for the binding conditions of its devices."""
    subject = reference(pod, kind="Pod", with_revision=True)
    return _create(
        objects,
        subject,
        now,
        kind="Normal",
        reason=event_reasons.BINDING_PENDING,
        note=f"waiting for binding conditions for device on node {node}",
    )


def preempted(
    objects: ObjectsReader, victim: JsonView, pod: JsonView, node: str, now: Instant
) -> Command:
    """The Event about a pod (`victim`) that was evicted to make room for another one (`pod`)."""
    return _create(
        objects,
        reference(victim, kind="Pod", with_revision=True),
        now,
        kind="Normal",
        reason=event_reasons.PREEMPTED,
        note=messages.preempted_by(meta.uid(pod), node),
        related=reference(pod, kind="Pod", with_revision=True),
    )


def _create(
    objects: ObjectsReader,
    subject: JsonObject,
    now: Instant,
    *,
    kind: str,
    reason: str,
    note: str,
    related: JsonObject | None = None,
) -> CreateObject:
    # Parity: the scheduler writes events.k8s.io/v1, as its entry in managedFields shows. The stored
    # object, which `ReportSeries` reads, has the names of core/v1 (controllers.md 11.1).
    key = fresh_key(objects, subject, now)
    return CreateObject(
        key=_event_key(key),
        version="v1",
        tree={
            "kind": "Event",
            "apiVersion": f"{api_groups.EVENTS}/v1",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "regarding": subject,
            "reason": reason,
            "note": messages.note(note),
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
            "type": kind,
            "eventTime": timestamps.micro_text(now),
            "action": event_reasons.ACTIONS[reason],
            **({} if related is None else {"related": related}),
            "reportingController": COMPONENT,
            "reportingInstance": INSTANCE,
        },
        options=MANAGER,
    )


def _event_key(key: ObjectKey) -> ObjectKey:
    return key._replace(group=api_groups.EVENTS)
