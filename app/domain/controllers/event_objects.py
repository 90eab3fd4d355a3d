"""Kubernetes Event objects as the controllers of the controller manager write them.

The first report of a fact creates a core/v1 Event; a repetition patches count, lastTimestamp and
message of the same object. Earlier reports are folded from the log, so that counting continues
after a restart. Parity: controllers.md 11.1.
"""

import hashlib
import uuid
from collections.abc import Iterable, Mapping

from app.domain.controllers.resources import is_of
from app.domain.errors import Rejected
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import registry
from app.domain.objects.quota import limits
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import creation
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    PatchObject,
    PatchType,
    WriteOptions,
)
from app.domain.values import api_resources, timestamps
from app.domain.values import names as object_names
from app.domain.values.bounded import Bounded
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

MANAGER = WriteOptions(field_manager="kube-controller-manager")

REMEMBERED_MAX = 4096
"""The most facts that a reporter counts; the oldest are dropped first, as in upstream's cache."""

_Fact = tuple[str, str, str, str, str]
"""The uid and name of the subject, type, reason and message. Parity: the resourceVersion in the
reference does not count, unlike in reports of the scheduler (controllers.md 4.3, 11.1)."""


class Reporter:
    """Writes the Event objects of one component. `writer` is the binary of the component."""

    def __init__(self, component: str, writer: WriteOptions = MANAGER) -> None:
        self.component = component
        self._writer = writer
        self._reported: Bounded[_Fact, tuple[ObjectKey, int]] = Bounded(REMEMBERED_MAX)

    def fold(self, event: Event) -> None:
        """Records the component's own Event objects."""
        if not is_of(event.key, api_resources.EVENTS):
            return
        tree = event.object
        if core.source_component(tree) != self.component:
            return  # most Event objects are of other components
        event_object = core.event_object(tree)
        subject = event_object.involved_object
        fact: _Fact = (
            subject.uid,
            subject.name,
            event_object.type,
            event_object.reason,
            event_object.message,
        )
        if event.type is EventType.OBJECT_DELETED:
            self._reported.pop(fact, None)
            return
        self._reported.pop(fact, None)
        self._reported[fact] = (event.key, event_object.count or 1)

    def report(
        self,
        objects: ObjectsReader,
        now: Instant,
        subject: JsonObject,
        *,
        kind: str,
        reason: str,
        message: str,
        names: frozenset[ObjectKey] = frozenset(),
    ) -> CreateObject | PatchObject:
        """The command that reports `message` about `subject` (an object reference).

        `names` are the names that other reports of the same plan use.
        """
        text = timestamps.seconds_text(now)
        fact: _Fact = (
            entries.uid(subject),
            entries.name(subject),
            kind,
            reason,
            message,
        )
        known = self._reported.get(fact)
        if known is not None and objects.get(known[0]) is not None:
            key, count = known
            return PatchObject(
                key=key,
                version="v1",
                type=PatchType.STRATEGIC,
                body={"count": count + 1, "lastTimestamp": text, "message": message},
                options=self._writer,
            )
        key = fresh_key(objects, subject, now, names)
        return CreateObject(
            key=key,
            version="v1",
            tree={
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "involvedObject": subject,
                "reason": reason,
                "message": message,
                "source": {"component": self.component},
                "firstTimestamp": text,
                "lastTimestamp": text,
                "count": 1,
                "type": kind,
                "eventTime": None,
                "reportingComponent": self.component,
                "reportingInstance": "",
            },
            options=self._writer,
        )


def reference(
    tree: JsonView, *, kind: str, api_version: str = "v1", with_revision: bool = False
) -> JsonObject:
    """An object reference in the form that Events use."""
    regarding: JsonObject = {"kind": kind}
    if namespace := meta.namespace(tree):
        regarding["namespace"] = namespace
    regarding["name"] = meta.name(tree)
    regarding["uid"] = meta.uid(tree)
    regarding["apiVersion"] = api_version
    if with_revision:
        regarding["resourceVersion"] = meta.resource_version(tree)
    return regarding


def fresh_key(
    objects: ObjectsReader,
    subject: Mapping[str, object],
    now: Instant,
    names: frozenset[ObjectKey] = frozenset(),
) -> ObjectKey:
    """The key of a new Event: `<object>.<16 hex digits of nanoseconds>`, or a UUID if that is long.

    While the name is taken, the time is increased by one nanosecond. Upstream's clock never returns
    the same nanosecond twice; virtual time may.
    """
    namespace = str(subject.get("namespace") or "default")
    nanos = now * 1000
    while True:
        name = f"{subject.get('name')}.{nanos:016x}"
        if len(name) > object_names.SUBDOMAIN_MAX:
            # Parity: controllers.md 11.1: a name that is not valid gives way to a random UUID. Here
            # it is made from the name, so that a decision that is made again is the same.
            digest = hashlib.sha256(f"{namespace}/{name}".encode()).digest()
            name = str(uuid.UUID(bytes=digest[:16], version=4))
        key = ObjectKey(*api_resources.EVENTS, namespace, name)
        if key not in names and objects.event(key) is None:
            return key
        nanos += 1


def without_refused(objects: ObjectsReader, commands: Iterable[Command]) -> tuple[Command, ...]:
    """The commands without the Event objects that the API would refuse now.

    Upstream sends Events separately from its work and drops refused ones, for example in a
    terminating namespace or one whose quota is full. In one append a refused Event would undo the
    work.
    """
    return tuple(command for command in commands if not _is_refused(objects, command))


def is_about_event(problem: str) -> bool:
    """Whether a plan was refused because of an Event object, which the next plan leaves out.

    It could be made when the plan was, but not when the plan was stored.
    """
    return problem.startswith(f'{api_resources.EVENTS[1]} "')


def _is_refused(objects: ObjectsReader, command: Command) -> bool:
    if not isinstance(command, CreateObject) or command.key.resource != api_resources.EVENTS[1]:
        return False
    kind = registry.find(*api_resources.EVENTS)
    assert kind is not None, "Events are served always"
    try:
        creation.check_namespace(objects, kind, command.key)
        limits.check_create(objects, kind, command.key, command.tree)
    except Rejected:
        return True
    return False
