"""The plan for the log, made from the result of an attempt."""

from collections.abc import Iterator

import msgspec

from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers.event_objects import without_refused
from app.domain.controllers.pacing import AttemptOutcome, Pace
from app.domain.controllers.plan import Decision, Plan
from app.domain.controllers.scheduling.binding_cycle import (
    placements,
    preemption_writes,
    waiting_binding,
    writes,
)
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.reports import events, messages
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt, SchedulerRules
from app.domain.controllers.scheduling.summaries import bounds_of, summary_of
from app.domain.log import Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values.fields import core, decision_body, dra
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "scheduling"


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of one attempt that are not part of its result.

    `start` is the first position in the node order, `number` the number of the attempt, `batch` the
    position in the step: plans with a lower position are assumed. `bounds` are the bounds of the
    summary of causes, which the decision records; without bounds the decision has no causes.
    """

    pod: PodSpec
    tree: JsonObject
    now: Instant
    cause: Revision
    start: int = 0
    number: int = 1
    batch: int = 0
    bounds: SummaryBounds | None = None

    @property
    def key(self) -> str:
        """The key of the plan."""
        return f"pod:{self.pod.facts.namespace}/{self.pod.facts.name}"


def plan_of(
    rules: SchedulerRules,
    objects: ObjectsReader,
    series: events.ReportSeries,
    turn: Turn,
    result: Attempt,
) -> Plan:
    """The plan of an attempt; empty when there is nothing new to write."""
    outcome = result.outcome
    if outcome == "Scheduled":
        if rules.bind_delay is not None:
            return _assumption(rules, objects, turn, result)
        waits = waiting_binding.is_needed(rules.features, result)
        outcome = waiting_binding.WAITING if waits else outcome
        commands = without_refused(objects, _success(rules, objects, turn, result, waits=waits))
    else:
        commands = without_refused(objects, _failure(objects, series, turn, result))
    if not commands:
        return Plan(controller=NAME, key=turn.key)
    inputs = _inputs_of(turn, result)
    if outcome == "Error" and not result.looked_at:
        inputs["refused"] = result.message
    if turn.bounds is not None and result.causes is not None:
        inputs["summary"] = [turn.bounds.bytes_max, turn.bounds.nodes_max]
    return _plan(objects, turn, commands, outcome, inputs, summary_of(result, turn.bounds))


def turn_again(tree: JsonObject, body: JsonView, now: Instant) -> Turn:
    """The inputs of an attempt, read from its recorded decision."""
    decision = decision_body.read(body)
    inputs = decision.inputs
    return Turn(
        pod=pod_spec.read(tree),
        tree=tree,
        now=now,
        cause=Revision(decision.cause),
        start=inputs.start,
        number=inputs.attempt or 1,
        batch=inputs.batch,
        bounds=bounds_of(decision_body.inputs(body)),
    )


def put_off(pace: Pace | None, turn: Turn, result: Attempt) -> Instant | None:
    """The instant to try again by the pace of a replay; None when the attempt counts."""
    if pace is None:
        return None
    devices = [name for allocation in result.allocations for name in dra.device_names(allocation)]
    tried = AttemptOutcome(
        node=result.node,
        devices=tuple(sorted(devices)),
        message=messages.note(result.message),
        moves_others=result.moves_others,
        plugins=result.plugins,
    )
    return pace.put_off(turn.pod.facts.uid, tried, turn.now)


def gives_up_node(turn: Turn, result: Attempt) -> bool:
    """True when a failed attempt ends the pod's nomination, so that others may use that node."""
    return not result.preemption.keeps_nomination and bool(core.nominated_node_name(turn.tree))


def skip_plan(objects: ObjectsReader, series: events.ReportSeries, turn: Turn) -> Plan:
    """The plan for a terminating pod; empty when that was already reported."""
    text = messages.skipped(turn.pod.facts.namespace, turn.pod.facts.name)
    command = series.failure(objects, turn.tree, text, turn.now)
    commands = () if command is None else without_refused(objects, (command,))
    if not commands:
        return Plan(controller=NAME, key=turn.key)
    return _plan(objects, turn, commands, "Skipped", _inputs(turn), {"message": text})


def wait_of(turn: Turn, inputs: decision_body.DecisionInputs) -> waiting_binding.Wait:
    """The wait for binding conditions of a recorded decision."""
    facts = turn.pod.facts
    return waiting_binding.Wait(
        place=(facts.namespace, facts.name),
        uid=inputs.uid,
        node=inputs.binding_node,
        started=turn.now,
        next_look=turn.now,
        cause=turn.cause,
    )


def _assumption(rules: SchedulerRules, objects: ObjectsReader, turn: Turn, result: Attempt) -> Plan:
    """The plan of a delayed binding: the decision; claims and binding follow at their instants."""
    assert rules.bind_delay is not None, "called in this mode only"
    claims_at, bind_at = rules.bind_delay(turn.pod.facts.uid, turn.now)
    work = writes.has_work(result, turn.tree)
    inputs = _inputs_of(turn, result)
    inputs["assumed"] = placements.record(
        result, claims_at=claims_at if work else None, bind_at=bind_at
    )
    commands: tuple[Command, ...] = ()
    if rules.gates.enabled("NominatedNodeNameForExpectation"):
        commands = tuple(writes.nominate(result, turn.tree))
    return _plan(objects, turn, commands, placements.ASSUMED, inputs, summary_of(result))


def _inputs_of(turn: Turn, result: Attempt) -> JsonObject:
    return {
        **_inputs(turn),
        "start": turn.start,
        "next": result.next_start,
        "attempt": turn.number,
        "batch": turn.batch,
        "plugins": sorted(result.plugins),
    }


def _inputs(turn: Turn) -> JsonObject:
    return {"now": turn.now, "uid": turn.pod.facts.uid}


def _plan(
    objects: ObjectsReader,
    turn: Turn,
    commands: tuple[Command, ...],
    outcome: str,
    inputs: JsonObject,
    summary: JsonObject,
) -> Plan:
    return Plan(
        controller=NAME,
        key=turn.key,
        commands=commands,
        decision=Decision(
            controller=NAME,
            resource="pods",
            namespace=turn.pod.facts.namespace,
            name=turn.pod.facts.name,
            outcome=outcome,
            inputs=inputs,
            summary=summary,
        ),
        cause=turn.cause,
        observed=objects.revision,
    )


def _success(
    rules: SchedulerRules, objects: ObjectsReader, turn: Turn, result: Attempt, *, waits: bool
) -> Iterator[Command]:
    if rules.gates.enabled("NominatedNodeNameForExpectation"):
        yield from writes.nominate(result, turn.tree)
    yield from writes.reserve(
        result,
        turn.tree,
        turn.now,
        number=turn.number,
        stamps_time=rules.features.binding_conditions,
    )
    if waits:
        yield events.waiting(objects, turn.tree, result.node, turn.now)
        return
    yield writes.bind(turn.tree, result.node)
    yield events.scheduled(objects, turn.tree, result.node, turn.now)


def _failure(
    objects: ObjectsReader, series: events.ReportSeries, turn: Turn, result: Attempt
) -> Iterator[Command]:
    if result.deallocate is not None:
        yield writes.deallocate(result.deallocate)
    if result.delete_claim is not None:
        yield from writes.delete_extended(objects, result.delete_claim)
    yield from preemption_writes.commands(objects, result.preemption, turn.tree, turn.now)
    reason = "Unschedulable" if result.outcome == "Unschedulable" else "SchedulerError"
    chosen = result.preemption.chosen
    nominated = None if result.preemption.keeps_nomination else ""
    yield from writes.report_failure(
        objects,
        series,
        turn.tree,
        reason,
        result.message,
        turn.now,
        nominated if chosen is None else chosen.node,
    )
