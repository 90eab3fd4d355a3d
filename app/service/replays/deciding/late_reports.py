"""Events of the scheduler that a variant writes at their recorded instant, not with the attempt.

The scheduler remembers a report also while its client has not sent it yet. When a later attempt saw
the same version of the pod as a report that still waits, it repeats that report (controllers.md
4.3).
"""

from collections import Counter, deque
from typing import TypeAlias

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.facts import ConditionSet, is_failed_attempt, subject_of
from app.analysis.replay.recording import Recording
from app.analysis.replay.variants import Variant
from app.domain.controllers.scheduling.reports.events import COMPONENT
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values import api_resources, condition_types, event_reasons, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_Attempt: TypeAlias = tuple[str, str]
"""The uid of a pod, and the resourceVersion of it that a failed attempt saw."""


class LateReports:
    """The instants at which the scheduler's reports are written.

    `follow` must be called for each event of the run.
    """

    def __init__(self, recording: Recording, variant: Variant) -> None:
        self._evicted, self._recorded = recording.evicted, recording.trace
        self._variant = variant
        self._reports = {pod: deque(at) for pod, at in recording.reported.items()}
        self._repeats = {pod: deque(at) for pod, at in recording.repeated.items()}
        self._written: dict[ObjectKey, tuple[str, int]] = {}
        self._written_of: Counter[str] = Counter()
        self._waiting: dict[_Attempt, tuple[ObjectKey, Instant]] = {}
        self._repeated: set[_Attempt] = set()

    def follow(self, event: Event) -> None:
        """Notes the reports that are written in the run."""
        is_report = event.key.resource == "events" and event.type is EventType.OBJECT_CREATED
        if is_report and event.stamp.actor.user == SCHEDULER:
            uid = subject_of(event.object)
            self._written[event.key] = (uid, self._written_of[uid])
            self._written_of[uid] += 1
            self._waiting.pop(_attempt_of(event.object), None)

    def is_late(self, tree: JsonView) -> bool:
        """True when an object is an Event that is written at its recorded instant.

        Events of other controllers about the same pod are written with their plan.
        """
        return tree.get("reportingController") == COMPONENT and (
            subject_of(tree) in self._variant.reported
        )

    def is_repeated(self, key: ObjectKey) -> bool:
        """True when the repetitions of an Event are written at their recorded instants."""
        return self._place(key)[0] in self._variant.repeated

    def repetition(self, key: ObjectKey) -> Instant | None:
        """The recorded instant of the next repetition of an Event; None when there is none left."""
        instants = self._repeats.get(self._place(key))
        return instants.popleft() if instants else None

    def waiting(self, tree: JsonView) -> tuple[ObjectKey, Instant] | None:
        """The waiting report that this one repeats, and the instant of its write; or None."""
        is_joined = _is_failure(tree) and subject_of(tree) in self._variant.joined
        return self._waiting.get(_attempt_of(tree)) if is_joined else None

    def is_first_repetition(self, tree: JsonView) -> bool:
        """True for the first repetition of a waiting report; later ones are only counted."""
        attempt = _attempt_of(tree)
        is_first = attempt not in self._repeated
        self._repeated.add(attempt)
        return is_first

    def put_off(self, command: CreateObject, now: Instant) -> Instant:
        """The recorded instant at which to write a report; `now` without one. Notes failures.

        One that is not recorded was refused where its namespace is about to end.
        """
        at = self._reported_at(command.tree, now) or self._refused_at(command, now)
        until = Instant(max(at or now, now))
        if _is_failure(command.tree):
            self._waiting[_attempt_of(command.tree)] = (command.key, until)
        return until

    def _place(self, key: ObjectKey) -> tuple[str, int]:
        """The pod (a uid) that an Event is about, and the Event's index; empty for others."""
        # Events of both groups are stored as those of the core group.
        return self._written.get(key._replace(group=""), ("", 0))

    def _reported_at(self, tree: JsonView, now: Instant) -> Instant | None:
        """The recorded instant of the next Event with this reason about this pod, or None.

        Only the instant of an eviction's write to the pod is known, so its Event is written with it
        here. A report that was recorded after that Event is written after it here too.
        """
        uid = subject_of(tree)
        reports = self._reports.get((uid, json_tree.text(tree, "reason")))
        if not reports:
            # This repeats a report that is itself written later.
            return self._repeated_at(uid, now) if uid in self._variant.repeated else None
        report = reports.popleft()
        evicted = self._evicted.get(uid)
        if report.is_after_marking and evicted is not None and report.at < evicted:
            return Instant(evicted + tolerances.MILLI)
        return report.at

    def _refused_at(self, report: CreateObject, now: Instant) -> Instant | None:
        """The instant from which the end of its namespace refuses an Event that is not recorded."""
        name = core.event_object(report.tree).subject.name
        pod = ObjectKey(*api_resources.PODS, report.key.namespace, name)
        end = self._recorded.refused_from(pod, now)
        return None if end is None else Instant(end + 1)

    def _repeated_at(self, uid: str, now: Instant) -> Instant | None:
        """The first recorded instant from `now` on of a repetition about this pod, or None."""
        left = [
            instants
            for (pod, _), instants in self._repeats.items()
            if pod == uid and instants and instants[0] >= now
        ]
        return min(left, key=lambda instants: instants[0]).popleft() if left else None


def is_refusal(body: JsonObject, pod: JsonView) -> bool:
    """True when a patch of a pod, which has only changed fields, reports a failed attempt."""
    condition = meta.condition(body, condition_types.POD_SCHEDULED)
    before = meta.condition(pod, condition_types.POD_SCHEDULED)
    if condition is None:
        return False
    status = condition.status or (before.status if before is not None else "")
    reason = condition.reason or (before.reason if before is not None else "")
    return is_failed_attempt(ConditionSet(condition.type, status, reason, condition.message))


def _is_failure(tree: JsonView) -> bool:
    return tree.get("reason") == event_reasons.FAILED_SCHEDULING


def _attempt_of(tree: JsonView) -> _Attempt:
    subject = core.event_object(tree).subject
    return subject.uid, subject.resource_version
