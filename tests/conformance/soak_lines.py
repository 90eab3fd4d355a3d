"""Writes the events of a log as the audit log and the watch streams of a real cluster.

Some writes come later than in the log, because a rate limit delays them; the first one of several
that the log has at one instant comes earlier. They are applied to the object as it is by then, so
the result is another, equally legal history. A client that writes about one pod has the answer to
each request before it sends the next one.

What is sent about an object that was deleted meanwhile is refused, and so is an Event that comes
when its namespace is to end. The audit log has the line of such a request, as that of a request
that changes nothing; the watch streams show neither.
"""

import heapq
import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.analysis.replay.inputs import merge
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

SCHEDULER = "system:kube-scheduler"

FIRST_VERSION = 100

_LEAST = 200
"""Microseconds between a request, its commit and its answer, at the least."""

_PASSING = 2_000
"""The microseconds for which the server may still let pass what was asked for before an end."""

_WORDS = {"Conflict": "has been modified", "NotFound": "not found", "Forbidden": "is forbidden"}

_WATCHED = {
    EventType.OBJECT_CREATED: "ADDED",
    EventType.OBJECT_UPDATED: "MODIFIED",
    EventType.OBJECT_DELETED: "DELETED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """The final time of a write; `reported` is the instant in an Event object."""

    at: Instant
    reported: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vain:
    """A request of the scheduler that the server refuses: an update of a claim, or a binding."""

    at: Instant
    key: ObjectKey
    uid: str
    subresource: str
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """From the instant `at` on, the clock of the scheduler's host is ahead by `micros`.

    The scheduler dates its Events, its allocations and the conditions of pods that it cannot place.
    """

    at: Instant
    micros: int

    def shown(self, instant: Instant) -> Instant:
        """What the clock shows at an instant."""
        return Instant(instant + self.micros) if instant >= self.at else instant

    def dated(self, tree: JsonObject, here: JsonView | None) -> JsonObject:
        """An object with the times that the scheduler has just written as its clock shows them."""
        status = json_tree.mapping(tree, "status")
        given = json_tree.mapping(status, "allocation")
        path = ("status", "allocation", "allocationTimestamp")
        name = path[-1]
        if given and json_tree.get(here or {}, *path) != given.get(name):
            given = {**given, name: self._seconds(given[name])}
            return {**tree, "status": {**status, "allocation": given}}
        conditions = json_tree.objects(status, "conditions")
        old = {
            json_tree.text(each, "type"): each
            for each in json_tree.objects(here or {}, "status", "conditions")
        }
        name = "lastTransitionTime"
        written = [
            {**each, name: self._seconds(each[name])}
            if (each["type"], each["status"]) == ("PodScheduled", "False")
            and each[name] != old.get("PodScheduled", {}).get(name)
            else each
            for each in conditions
        ]
        return {**tree, "status": {**status, "conditions": written}} if conditions else tree

    def _seconds(self, text: str) -> str:
        return timestamps.seconds_text(self.shown(timestamps.parse(text)))


NO_STEP = ClockStep(at=Instant(2**62), micros=0)


def retell(
    events: Iterable[Event],
    late: Mapping[int, Late],
    path: Path,
    chance: random.Random,
    *,
    answers: int,
    vain: Iterable[Vain] = (),
    step: ClockStep = NO_STEP,
) -> None:
    """Writes `audit.jsonl` and `watch/*.jsonl`; most answers take up to `answers` ms."""
    (path / "watch").mkdir(parents=True, exist_ok=True)
    story = _Story(path, chance, answers, step)
    before: dict[ObjectKey, JsonObject] = {}
    events = tuple(events)
    reported = {_reported_act(event) for event in events if event.key.resource == "events"}
    queue: list[tuple[Instant, int, Event, JsonObject | None, Late | None]] = []
    for event in events:
        if not event.is_about_object:
            continue
        found = late.get(event.revision)
        old = before.get(event.key)
        if event.type is EventType.OBJECT_DELETED:
            before.pop(event.key, None)
        else:
            before[event.key] = event.object
        at = event.stamp.time if found is None else found.at
        heapq.heappush(queue, (Instant(at), event.revision, event, old, found))
    refused = deque(sorted(vain, key=lambda each: (each.at, each.serial)))
    while queue:
        at, _, event, old, found = heapq.heappop(queue)
        while refused and refused[0].at <= at:
            story.refuse(refused.popleft())
        story.tell(event, old, at, found)
        if _has_tried(event, old) and (event.uid, event.stamp.time) not in reported:
            name = f"{event.key.name}.{event.revision:x}"
            story.refuse_report(ObjectKey("", "events", event.key.namespace, name), at)
    while refused:
        story.refuse(refused.popleft())
    story.finish()


@dataclass(slots=True, kw_only=True)
class _Line:
    """A request of the audit log; its instants are in microseconds."""

    version: int
    commit: int
    asked: int
    answered: int
    tree: JsonObject

    @property
    def text(self) -> bytes:
        instants = {
            "requestReceivedTimestamp": timestamps.micro_text(Instant(self.asked)),
            "stageTimestamp": timestamps.micro_text(Instant(self.answered)),
        }
        return canonical_json({**self.tree, **instants}) + b"\n"


class _Story:
    def __init__(
        self, path: Path, chance: random.Random, answers: int, step: ClockStep = NO_STEP
    ) -> None:
        self._step = step
        self._path = path
        self._chance = chance
        self._answers = answers
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._ended: dict[str, int] = {}
        self._version = FIRST_VERSION
        self._versions: dict[int, int] = {}
        self._last_version: dict[str, int] = {}
        self._now = 0
        self._sent = 0
        self._vain_chance = random.Random("vain")
        self._lines: list[_Line] = []
        self._last: dict[tuple[str, str], _Line] = {}
        self._streams: dict[str, IO[bytes]] = {}

    def tell(self, event: Event, old: JsonView | None, at: Instant, late: Late | None) -> None:
        """One write at the instant of its commit."""
        here = self._objects.get(event.key)
        is_report = event.key.resource == "events" and event.stamp.actor.user == SCHEDULER
        if is_report and here is None and at > self._ended.get(event.key.namespace, at) + _PASSING:
            self.refuse_report(event.key, at)
            return
        tree = event.object
        if event.type is not EventType.OBJECT_CREATED:
            if here is None or json_tree.text(here, "metadata", "uid") != event.uid:
                if event.key.resource == "pods" and event.stamp.actor.user == SCHEDULER:
                    is_binding = bool(json_tree.text(tree, "spec", "nodeName"))
                    self._send(event.key, event.uid, "binding" if is_binding else "status", at)
                return
            tree = merge(old or {}, tree, here)
            if event.type is EventType.OBJECT_UPDATED and tree == here:
                self._versions[event.revision] = int(here["metadata"]["resourceVersion"])
                if late is not None and event.key.resource == "pods":
                    self._send(event.key, event.uid, "status", at, unchanged=here)
                return
        self._version += 1
        user = event.stamp.actor.user
        if user == SCHEDULER and event.type is EventType.OBJECT_UPDATED:
            tree = self._step.dated(tree, here)
        workers = [(user, uid) for uid in _subjects(event, here, tree)]
        before = [self._last[worker] for worker in workers if worker in self._last]
        ready = max((line.commit + 2 * _LEAST for line in before), default=0)
        self._now = max(self._now + 1, at, ready)
        tree = {**tree, "metadata": {**tree["metadata"], "resourceVersion": str(self._version)}}
        if event.key.resource == "devicetaintrules":
            # Parity: objects.md 8; 1.36 serves rules in no other version; in the log all of them
            # stand as v1.
            tree["apiVersion"] = "resource.k8s.io/v1beta2"
        if late is not None and late.reported is not None:
            tree = _dated(tree, self._step.shown(late.reported))
            if event.type is EventType.OBJECT_CREATED:  # a repetition names what the first one did
                tree = self._reported(tree)
        self._versions[event.revision] = self._last_version[event.uid] = self._version
        if event.key.resource == "namespaces":
            if not json_tree.get(tree, "metadata", "deletionTimestamp"):
                self._ended.pop(event.key.name, None)
            else:
                self._ended.setdefault(event.key.name, self._now)
        self._watch(event, tree)
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
        else:
            self._objects[event.key] = tree
        if not _is_first_step(event, tree):
            line = self._line(event, here, tree)
            line.asked = max(line.asked, ready - _LEAST)
            for each in before:
                each.answered = min(each.answered, line.asked - 1)
            self._last.update(dict.fromkeys(workers, line))
            self._lines.append(line)

    def refuse(self, vain: Vain) -> None:
        """One request that comes to nothing, at its instant."""
        self._send(vain.key, vain.uid, vain.subresource, vain.at)

    def refuse_report(self, report: ObjectKey, at: Instant) -> None:
        """The Event of an attempt, which is refused because the namespace of the pod is ending."""
        self._send(report, "", "", at)

    def _send(
        self,
        key: ObjectKey,
        uid: str,
        subresource: str,
        at: Instant,
        unchanged: JsonObject | None = None,
    ) -> None:
        """A line of the scheduler without an effect: refused, or `unchanged` as the answer.

        An object that is gone is not found. One that is there has another uid or version.
        """
        self._now = max(self._now + 1, at)
        self._sent += 1
        asked = self._now - self._vain_chance.randint(300, 2_000)
        answered = self._now + self._vain_chance.randint(300, 5_000)
        verb = {"binding": "create", "status": "patch" if key.resource == "pods" else "update"}.get(
            subresource, "update"
        )
        reason, code = ("Conflict", 409) if key in self._objects else ("NotFound", 404)
        if key.resource == "events":
            verb, reason, code = "create", "Forbidden", 403
        answer: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f'{key.resource} "{key.name}" {_WORDS[reason]}',
            "reason": reason,
            "code": code,
        }
        response = answer if unchanged is None else unchanged
        status = {**answer} if unchanged is None else {"metadata": {}, "code": 200}
        group, version = key.group, "v1"
        tree: JsonObject = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": f"sent-{self._sent}",
            "stage": "ResponseComplete",
            "requestURI": f"/{'apis/' + group if group else 'api'}/{version}/{key.resource}",
            "verb": verb,
            "user": {"username": SCHEDULER, "groups": ["system:authenticated"]},
            "userAgent": "kube-scheduler",
            "objectRef": {
                "resource": key.resource,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
                "apiGroup": group,
                "apiVersion": version,
                "subresource": subresource,
            },
            "responseStatus": {name: part for name, part in status.items() if name != "kind"},
            "responseObject": response,
        }
        line = _Line(
            version=self._version, commit=self._now, asked=asked, answered=answered, tree=tree
        )
        self._lines.append(line)

    def _reported(self, tree: JsonObject) -> JsonObject:
        """The Event object with the version that the one it names has here, or the last one.

        A report of a success names what is still to be written.
        """
        subject = json_tree.mapping(tree, "involvedObject")
        last = self._last_version.get(json_tree.text(subject, "uid"), 0)
        version = self._versions.get(int(json_tree.text(subject, "resourceVersion")), last)
        return {**tree, "involvedObject": {**subject, "resourceVersion": str(version)}}

    def finish(self) -> None:
        """The lines in the order of their answers."""
        self._lines.sort(key=lambda line: (line.answered, line.version))
        with (self._path / "audit.jsonl").open("wb") as file:
            file.writelines(line.text for line in self._lines)
        for stream in self._streams.values():
            stream.close()

    def _watch(self, event: Event, tree: JsonObject) -> None:
        resource = event.key.resource
        stream = self._streams.get(resource)
        if stream is None:
            stream = (self._path / "watch" / f"{resource}.jsonl").open("wb")
            self._streams[resource] = stream
        stream.write(canonical_json({"type": _WATCHED[event.type], "object": tree}) + b"\n")

    def _line(self, event: Event, here: JsonView | None, tree: JsonObject) -> _Line:
        key, user = event.key, event.stamp.actor.user
        asked = self._now - self._chance.randint(300, 2_000)
        answered = self._now + self._chance.randint(300, self._answers * 1_000)
        if self._chance.random() < 0.01:
            answered += self._chance.randint(0, 4 * self._answers * 1_000)
        verb = {EventType.OBJECT_CREATED: "create", EventType.OBJECT_DELETED: "delete"}.get(
            event.type, "update"
        )
        if event.stamp.verb in ("patch", "update", "delete") and event.type is (
            EventType.OBJECT_UPDATED
        ):
            verb = event.stamp.verb
        response, request, subresource = tree, None, ""
        if event.type is EventType.OBJECT_DELETED and _has_finalizers(tree):
            # Nobody deletes it: it goes with the update that takes its last finalizer.
            verb, response = "update", _of_version(here, _without_finalizers(tree))
        path = ("spec", "nodeName")
        if key.resource == "pods" and json_tree.text(tree, *path) != json_tree.text(
            here or tree, *path
        ):
            verb, subresource = "create", "binding"
            request = {"target": {"kind": "Node", "name": tree["spec"]["nodeName"]}}
            request["metadata"] = {"name": key.name, "namespace": key.namespace, "uid": event.uid}
            response = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}
        elif verb in ("update", "patch") and _is_of_status(here or {}, tree):
            subresource = "status"
        if event.type is EventType.OBJECT_DELETED and json_tree.get(tree, "spec", "finalizers"):
            # A namespace goes with the request that takes its last finalizer from its spec.
            verb, subresource = "update", "finalize"
            response = _of_version(here, {**tree, "spec": {}})
        group, _, version = tree["apiVersion"].rpartition("/")
        line = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse",
            "auditID": f"soak-{self._version}",
            "stage": "ResponseComplete",
            "requestURI": f"/{'apis/' + group if group else 'api'}/{version}/{key.resource}",
            "verb": verb,
            "user": {"username": user, "groups": list(event.stamp.actor.groups)},
            "userAgent": event.stamp.actor.agent,
            "objectRef": {
                "resource": key.resource,
                "namespace": key.namespace,
                "name": key.name,
                "apiGroup": group,
                "apiVersion": version,
                "subresource": subresource,
            },
            "responseStatus": {"metadata": {}, "code": 201 if verb == "create" else 200},
            "responseObject": response,
        }
        if request is not None:
            line["requestObject"] = request
        return _Line(
            version=self._version, commit=self._now, asked=asked, answered=answered, tree=line
        )


def _reported_act(event: Event) -> tuple[str, Instant]:
    """The pod (a uid) and the instant of the act that an Event object tells of."""
    return json_tree.text(event.object, "involvedObject", "uid"), event.stamp.time


def _has_tried(event: Event, old: JsonView | None) -> bool:
    """Whether the scheduler binds a pod, or writes another refusal: it reports both."""
    if event.key.resource != "pods" or event.stamp.actor.user != SCHEDULER:
        return False
    path = ("spec", "nodeName")
    is_bound = json_tree.text(event.object, *path) != json_tree.text(old or {}, *path)
    return is_bound or _refusal(event.object) not in (None, _refusal(old or {}))


def _refusal(pod: JsonView) -> str | None:
    for each in json_tree.objects(pod, "status", "conditions"):
        if (each.get("type"), each.get("status")) == ("PodScheduled", "False"):
            return json_tree.text(each, "message")
    return None


def _subjects(event: Event, here: JsonView | None, tree: JsonView) -> set[str]:
    """About which pods and claims a user asks one thing after the other: their uids.

    Reports, and conditions of pods that could not be placed, are sent by others meanwhile.
    """
    match event.key.resource:
        case "pods":
            named = ("status", "nominatedNodeName")
            is_placed = json_tree.text(tree, "spec", "nodeName") or (
                json_tree.text(tree, *named) != json_tree.text(here or {}, *named)
            )
            is_theirs = event.stamp.actor.user != SCHEDULER or is_placed
            return {event.uid} if is_theirs else set()
        case "resourceclaims":
            owners = json_tree.objects(tree, "metadata", "ownerReferences")
            pods = {json_tree.text(owner, "uid") for owner in owners}
            return {event.uid, *pods, *(_consumers(here or {}) ^ _consumers(tree))}
        case _:
            return set()


def _consumers(claim: JsonView) -> set[str]:
    reserved = json_tree.objects(claim, "status", "reservedFor")
    return {json_tree.text(each, "uid") for each in reserved}


def _is_of_status(before: JsonView, after: JsonView) -> bool:
    """Whether it changes the status, which only a write of the subresource can."""
    return before.get("status") != after.get("status")


def _is_first_step(event: Event, tree: JsonView) -> bool:
    """The revision that announces a removal is not in an audit log."""
    metadata = json_tree.mapping(tree, "metadata")
    return (
        event.type is EventType.OBJECT_UPDATED
        and bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not json_tree.get(tree, "spec", "finalizers")
    )


def _has_finalizers(tree: JsonView) -> bool:
    metadata = json_tree.mapping(tree, "metadata")
    return bool(metadata.get("deletionTimestamp") and metadata.get("finalizers"))


def _without_finalizers(tree: JsonObject) -> JsonObject:
    metadata = {name: each for name, each in tree["metadata"].items() if name != "finalizers"}
    return {**tree, "metadata": metadata}


def _of_version(here: JsonView | None, tree: JsonObject) -> JsonObject:
    """The object with the version before a removal, with which the server answers it.

    Parity: controllers.md 6.5.
    """
    version = json_tree.text(here or tree, "metadata", "resourceVersion")
    return {**tree, "metadata": {**tree["metadata"], "resourceVersion": version}}


def _dated(tree: JsonObject, instant: Instant) -> JsonObject:
    """The Event object with another instant of its report."""
    text = timestamps.micro_text(instant)
    if "series" in tree:
        return {**tree, "series": {**tree["series"], "lastObservedTime": text}}
    return {**tree, "eventTime": text}
