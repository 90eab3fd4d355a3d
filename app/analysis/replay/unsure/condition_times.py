"""Times in conditions of pods and in Events that are not of the clock of their writer.

A controller dates a condition with its own clock, then sends it. How far that clock is off nobody
knows, but all of its conditions tell: each time is before its answer by no more than a request
takes, apart from that offset. Which clock a single time came from, no line shows: a clock that was
set for a moment writes the same as somebody who changed the time. So such a time is a doubt.

Example: answers at 100 s, 200 s and 300 s show conditions of 97 s, 196 s and 10,900 s. The clock of
the writer is about 4 s behind, and the third time is none of it.

An Event may be sent long after it happened, so only one that is dated before its pod was made, or
after its answer, is of another clock.
"""

import statistics
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.domain.log import Event, EventType, ObjectKey, doubts
from app.domain.values import api_resources, condition_types, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import TimestampError

_OF_CONTROLLERS = frozenset((condition_types.POD_SCHEDULED, condition_types.DISRUPTION_TARGET))
"""The conditions of pods that controllers write. Those of kubelets decide nothing here."""

_SERVERS = "the API server"
"""The writer of the condition of a pod that is bound: a binding itself has none."""

_ODD = "a condition whose time is not of the clock of its writer"

_ODD_REPORT = "an Event whose time is not of the clock of its writer"

Place = tuple[str, str]
"""The uid of a pod and the type of a condition."""


@dataclass(slots=True)
class _Dated:
    """A condition since its status changed: its writer (empty if unknown) and its shown times."""

    key: ObjectKey
    status: str
    writer: str
    answered: int
    times: set[str]

    def offsets(self) -> Iterator[int]:
        """The distances of its times from the answer to its write."""
        for text in self.times:
            try:
                yield timestamps.parse(text) - self.answered
            except TimestampError:
                continue


@dataclass(frozen=True, slots=True)
class _Report:
    """An Event of the scheduler: the pod that it is about, its time, and when it was stored."""

    key: ObjectKey
    uid: str
    dated: int
    answered: int


class ConditionTimes:
    """Follows a recording event by event."""

    def __init__(self) -> None:
        self._reports: list[_Report] = []
        self._made: dict[str, int] = {}
        # When each pod was made, by the clock of the server.
        self._dated: dict[Place, _Dated] = {}
        self._past: list[_Dated] = []
        self._seen: set[str] = set()

    def note(self, event: Event, author: str) -> None:
        """Processes a write of a pod by a controller, or by an `author` without a name.

        A write that leaves the status of a condition as it is also leaves its time.
        """
        if event.type is EventType.OBJECT_DELETED or doubts.of_event(event):
            return
        if event.key.resource == "events" and author == SCHEDULER:
            self._note_report(event)
        if event.key[:2] != api_resources.PODS:
            return
        if event.uid not in self._made:
            with suppress(TimestampError):
                self._made[event.uid] = timestamps.parse(meta.creation_timestamp(event.object))
        if author == SCHEDULER and core.node_name(event.object):
            author = _SERVERS
        for each in meta.conditions(event.object):
            if each.type not in _OF_CONTROLLERS:
                continue
            place = event.uid, each.type
            before = self._dated.get(place)
            if before is not None and before.status == each.status:
                before.times.add(each.last_transition_time)
                continue
            writer = author if event.uid in self._seen else ""
            if before is not None:
                self._past.append(before)
            self._dated[place] = _Dated(
                event.key, each.status, writer, event.stamp.time, {each.last_transition_time}
            )
        self._seen.add(event.uid)

    def _note_report(self, event: Event) -> None:
        report = core.event_object(event.object)
        about = report.subject
        if event.type is EventType.OBJECT_CREATED and about.kind == "Pod" and report.event_time:
            key = ObjectKey(*api_resources.PODS, about.namespace, about.name)
            with suppress(TimestampError):
                dated = timestamps.parse(report.event_time)
                self._reports.append(_Report(key, about.uid, dated, event.stamp.time))

    def odd(self) -> Iterator[str]:
        """A reason for each condition or Event with such a time; call it after the last event."""
        yield from self._odd_reports()
        writers: dict[str, list[_Dated]] = {}
        for each in (*self._past, *self._dated.values()):
            if each.writer:
                writers.setdefault(each.writer, []).append(each)
        for dated in writers.values():
            offsets = [offset for each in dated for offset in each.offsets()]
            if not offsets:
                continue
            usual = statistics.median(offsets)
            for each in dated:
                if any(
                    abs(offset - usual) > tolerances.TABLE.request_takes
                    for offset in each.offsets()
                ):
                    yield f"{_ODD}: {each.key}"

    def _odd_reports(self) -> Iterator[str]:
        """A reason for each Event that is dated before its pod was made, or after its answer."""
        if not self._reports:
            return
        usual = statistics.median(each.dated - each.answered for each in self._reports)
        for each in self._reports:
            at, slack = each.dated - usual, tolerances.TABLE.request_takes
            if not self._made.get(each.uid, at) - slack <= at <= each.answered + slack:
                yield f"{_ODD_REPORT}: {each.key}"
