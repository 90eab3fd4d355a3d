"""Events of the scheduler that a variant has written when they were recorded, not with the attempt.

The scheduler remembers what it has said, also while its client has not sent it yet: an attempt that
saw the same version of its pod as a report that still waits repeats that one (controllers.md 4.3).
"""

from collections import Counter, deque
from typing import TypeAlias

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.facts import subject_of
from app.analysis.replay.recording import Recording
from app.analysis.replay.variants import Variant
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import CreateObject
from app.domain.values import json_tree
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

_Attempt: TypeAlias = tuple[str, str]
"""The uid of a pod, and its version that a failed attempt saw."""


class LateReports:
    """When each report of the scheduler is written; feed it the events of the run by `follow`."""

    def __init__(self, recording: Recording, variant: Variant) -> None:
        self._evicted = recording.evicted
        self._variant = variant
        self._reports = {place: deque(at) for place, at in recording.reported.items()}
        self._repeats = {place: deque(at) for place, at in recording.repeated.items()}
        self._written: dict[ObjectKey, tuple[str, int]] = {}
        self._written_of: Counter[str] = Counter()
        self._waiting: dict[_Attempt, tuple[ObjectKey, Instant]] = {}
        self._repeated: set[_Attempt] = set()

    def follow(self, event: Event) -> None:
        """See which reports are written."""
        is_report = event.key.resource == "events" and event.type is EventType.OBJECT_CREATED
        if is_report and event.stamp.actor.user == SCHEDULER:
            uid = subject_of(event.object)
            self._written[event.key] = (uid, self._written_of[uid])
            self._written_of[uid] += 1
            self._waiting.pop(_attempt_of(event.object), None)

    def is_late(self, tree: JsonView) -> bool:
        """Whether an object is an Event that is written when it was recorded."""
        return tree.get("kind") == "Event" and subject_of(tree) in self._variant.reported

    def is_repeated(self, key: ObjectKey) -> bool:
        """Whether the repetitions of an Event are written when they were recorded."""
        return self._place(key)[0] in self._variant.repeated

    def repetition(self, key: ObjectKey) -> Instant | None:
        """When the next repetition of an Event was recorded; None when it was no more."""
        instants = self._repeats.get(self._place(key))
        return instants.popleft() if instants else None

    def waiting(self, tree: JsonView) -> tuple[ObjectKey, Instant] | None:
        """The report that still waits and that this one adds to, and until when it waits."""
        is_joined = _is_failure(tree) and subject_of(tree) in self._variant.joined
        return self._waiting.get(_attempt_of(tree)) if is_joined else None

    def is_first_repetition(self, tree: JsonView) -> bool:
        """Whether what waits was not repeated before: what is said a third time is only counted."""
        attempt = _attempt_of(tree)
        is_first = attempt not in self._repeated
        self._repeated.add(attempt)
        return is_first

    def put_off(self, command: CreateObject, now: Instant) -> Instant:
        """Until when a report waits, from now on; not at all when it is not known."""
        until = Instant(max(self._reported_at(command.tree, now) or now, now))
        if _is_failure(command.tree):
            self._waiting[_attempt_of(command.tree)] = (command.key, until)
        return until

    def _place(self, key: ObjectKey) -> tuple[str, int]:
        """Of which pod an Event object is a report, and the how many-th; empty for others."""
        # Events of both groups are stored as those of the core group.
        return self._written.get(key._replace(group=""), ("", 0))

    def _reported_at(self, tree: JsonView, now: Instant) -> Instant | None:
        """When the next Event of this reason about this pod was recorded.

        Of an eviction only the write to the pod is known, and its own Event comes with it. What was
        said after that Event is said after it here.
        """
        uid = subject_of(tree)
        reports = self._reports.get((uid, json_tree.text(tree, "reason")))
        if not reports:
            # It repeats a report that is written later itself.
            return self._repeated_at(uid, now) if uid in self._variant.repeated else None
        report = reports.popleft()
        evicted = self._evicted.get(uid)
        if report.is_after_marking and evicted is not None and report.at < evicted:
            return Instant(evicted + tolerances.MILLI)
        return report.at

    def _repeated_at(self, uid: str, now: Instant) -> Instant | None:
        """When the next repetition of a report about this pod was recorded that is to come."""
        left = [
            instants
            for (pod, _), instants in self._repeats.items()
            if pod == uid and instants and instants[0] >= now
        ]
        return min(left, key=lambda instants: instants[0]).popleft() if left else None


def _is_failure(tree: JsonView) -> bool:
    return tree.get("reason") == "FailedScheduling"


def _attempt_of(tree: JsonView) -> _Attempt:
    subject = core.event_object(tree).subject
    return subject.uid, subject.resource_version
