"""The scheduler's attempts for one pod: each with its trigger, verdicts and back-off.

Where our controllers decided, attempts come from the decisions of the log. For a recorded cluster,
the verdicts come from conditions and Events that the scheduler wrote; triggers are not recorded.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.analysis import scheduler_messages
from app.analysis.explain import attempts as explained
from app.analysis.explain.attempts import ERROR, FAILURES, PodAttempt
from app.domain.allocation.reasons import causes
from app.domain.controllers.scheduling.binding_cycle.waiting_binding import UNDER_WAY
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values import condition_types, counts, timestamps
from app.domain.values.fields import decision_body
from app.domain.values.json_tree import mapping
from app.domain.values.timestamps import Instant
from projections.timeline import Entry

SCHEDULED, UNSCHEDULABLE = "Scheduled", "Unschedulable"

_OF_ENTRIES = {condition_types.POD_SCHEDULED: SCHEDULED, "PodUnschedulable": UNSCHEDULABLE}


class VerdictCount(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, and the number of nodes that gave it."""

    text: str
    nodes: int


class AttemptTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """The event that woke the scheduler for the pod."""

    revision: Revision
    type: str
    group: str
    resource: str
    namespace: str
    name: str
    actor: str

    @property
    def key(self) -> ObjectKey:
        """The object of the event."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


class BindingStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the binding after an attempt that found a node."""

    revision: Revision
    time: str
    outcome: str
    message: str = ""


class TriedPod(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, or one verdict of a recording.

    `number` counts from 1; it is 0 in a recording. `outcome` and `message` are those of the last
    step of its `binding`, if it had one. Without `is_woken` no event woke the pod: its wait after
    the attempt before was over. `plugins` rejected the pod, `verdicts` are those of nodes, `causes`
    excluded devices. `again` is the end of the back-off: the pod is tried earlier only when no
    other pod is to be tried. `repeated` further attempts wrote nothing, the last of them at
    `repeated_until`; the back-off is the one after that.
    """

    revision: Revision
    time: str
    number: int
    outcome: str
    message: str
    node: str = ""
    looked_at: int = 0
    feasible: int = 0
    plugins: tuple[str, ...] = ()
    verdicts: tuple[VerdictCount, ...] = ()
    causes: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    trigger: AttemptTrigger | None = None
    is_woken: bool = True
    binding: tuple[BindingStep, ...] = ()
    again: str = ""
    repeated: int = 0
    repeated_until: str = ""

    @property
    def ended(self) -> str:
        """The time of its last step or repetition, with which a back-off begins."""
        if self.repeated_until:
            return self.repeated_until
        return self.binding[-1].time if self.binding else self.time

    @property
    def has_node(self) -> bool:
        """Whether it found a node, on which the pod is or is being bound."""
        return self.outcome == SCHEDULED or self.outcome in UNDER_WAY


class AttemptList(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of a pod, the first one first; `omitted` counts older ones.

    `is_decided` is true for decisions of the log; the others come from conditions and
    Events.
    """

    history: str
    revision: Revision
    namespace: str
    name: str
    created: str
    is_decided: bool
    items: tuple[TriedPod, ...]
    omitted: int = 0


def of_attempts(attempts: Sequence[PodAttempt], events: Mapping[int, Event]) -> list[TriedPod]:
    """The attempts of our scheduler; `events` woke them, by revision."""
    return [_decided(attempt, events.get(attempt.cause)) for attempt in attempts]


def of_entries(entries: Sequence[Entry]) -> list[TriedPod]:
    """The verdicts that a recorded scheduler wrote about a pod."""
    return [_written(entry) for entry in entries if entry.kind in _OF_ENTRIES]


def verdicts_of(message: str) -> tuple[VerdictCount, ...]:
    """The verdicts of the nodes in a condition's message; empty when it has no counts."""
    return tuple(
        VerdictCount(text=text, nodes=nodes) for text, nodes in scheduler_messages.reasons(message)
    )


def _decided(attempt: PodAttempt, cause: Event | None) -> TriedPod:
    event, last = attempt.begun, attempt.last
    body = event.object
    decision, summary = decision_body.read(body), decision_body.summary_of(body)
    reasons = mapping(mapping(body, "summary"), "reasons")
    outcome = decision_body.read(last.object).outcome
    again = ""
    if outcome in FAILURES:
        again = timestamps.micro_text(explained.again(attempt))
    repeated = attempt.repeated
    return TriedPod(
        revision=event.revision,
        time=timestamps.micro_text(event.stamp.time),
        number=attempt.number,
        outcome=outcome,
        message=decision_body.summary_of(last.object).message,
        node=summary.node,
        looked_at=summary.looked_at,
        feasible=summary.feasible or 0,
        plugins=decision.inputs.plugins,
        verdicts=_verdicts(reasons) or verdicts_of(summary.message),
        causes=tuple(
            f"{one.claim} {one.request}: {one.devices} "
            f"{counts.plural(one.devices, 'device')} on {one.nodes} "
            f"{counts.plural(one.nodes, 'node')}: {causes.text_of(one.cause, one.about)}"
            for one in summary.causes
        ),
        victims=summary.preemption.victims,
        trigger=_trigger(cause),
        is_woken=attempt.is_woken,
        binding=tuple(
            BindingStep(
                revision=step.revision,
                time=timestamps.micro_text(step.stamp.time),
                outcome=decision_body.read(step.object).outcome,
                message=decision_body.summary_of(step.object).message,
            )
            for step in attempt.binding
        ),
        again=again,
        repeated=0 if repeated is None else repeated.count,
        repeated_until="" if repeated is None else timestamps.micro_text(repeated.last),
    )


def _verdicts(reasons: Mapping[str, Any]) -> tuple[VerdictCount, ...]:
    counted = [(text, nodes) for text, nodes in reasons.items() if isinstance(nodes, int)]
    return tuple(
        VerdictCount(text=text, nodes=nodes)
        for text, nodes in sorted(counted, key=lambda one: (-one[1], one[0]))
    )


def _trigger(cause: Event | None) -> AttemptTrigger | None:
    if cause is None:
        return None
    key = cause.key
    return AttemptTrigger(
        revision=cause.revision,
        type=cause.type.value,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        actor=cause.stamp.actor.user,
    )


def _written(entry: Entry) -> TriedPod:
    outcome = _OF_ENTRIES[entry.kind]
    if entry.text.startswith("SchedulerError"):
        outcome = ERROR
    return TriedPod(
        revision=entry.revision,
        time=timestamps.micro_text(Instant(entry.time)),
        number=0,
        outcome=outcome,
        message=entry.text,
        node=entry.text.removeprefix("to ") if outcome == SCHEDULED else "",
        verdicts=verdicts_of(entry.text),
    )
