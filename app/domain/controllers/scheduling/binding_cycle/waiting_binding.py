"""Pods that wait for the binding conditions of their devices, and the checks of these conditions.

A check follows at once and then every five seconds; no event starts one earlier. Parity:
controllers.md 3.8. The wait begins with a decision in the log and ends with the next one about the
pod.
"""

import heapq
from dataclasses import dataclass

from app.domain.allocation import Features
from app.domain.controllers import pods
from app.domain.controllers.event_objects import without_refused
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Decision, DeviceViews, Plan
from app.domain.controllers.resources import pod_key
from app.domain.controllers.scheduling.binding_cycle import placements, writes
from app.domain.controllers.scheduling.binding_cycle.placements import (
    ASSUMED,
    RESERVED,
    Assumed,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources import (
    binding_conditions,
    pod_claims,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.binding_conditions import (
    POLL,
    BindingReadiness,
)
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import (
    ClaimsNotReady,
    PodClaim,
)
from app.domain.controllers.scheduling.reports import events, messages
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.log import Revision
from app.domain.objects.write.commands import Command
from app.domain.values.fields import decision_body, meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "scheduling"

WAITING = "WaitingForBinding"
"""The outcome after which a pod waits for the binding conditions of its devices."""

UNDER_WAY = frozenset((ASSUMED, RESERVED, WAITING))
"""The outcomes after which a pod has a node but no binding yet."""


@dataclass(slots=True, kw_only=True)
class Wait:
    """The wait of one pod that has its devices but no binding yet.

    `assumed` is set while its claims are still to be written. `refused` is set after a refused
    write: the name of the claim that could not be written, and the reason. `is_lost` is set when
    the process that waited has ended.
    """

    place: NamespacedName
    uid: Uid
    node: str
    started: Instant
    next_look: Instant
    cause: Revision
    assumed: Assumed | None = None
    refused: tuple[str, str] | None = None
    is_lost: bool = False


class BindingWaits:
    """All waits, ordered by the instant of their next check."""

    def __init__(self, pace: Pace | None = None) -> None:
        """With a `pace`, the check that ends a wait is made at the recorded instant."""
        self._pace = pace
        self._waits: dict[NamespacedName, Wait] = {}
        self._heap: list[tuple[Instant, NamespacedName]] = []

    def begin(self, held: Wait) -> None:
        """Adds a wait; its first check is due at `next_look`."""
        self._waits[held.place] = held
        if (lost := self._lost_at(held)) is not None:
            held.next_look = min(held.next_look, lost)
        heapq.heappush(self._heap, (held.next_look, held.place))

    def get(self, place: NamespacedName) -> Wait | None:
        """The wait of a pod, or None."""
        return self._waits.get(place)

    def end(self, place: NamespacedName) -> bool:
        """Removes the wait of a pod that is bound, refused or gone; true when there was one."""
        return self._waits.pop(place, None) is not None

    def may_have(self, now: Instant) -> bool:
        """False when no check is due."""
        return bool(self._heap and self._heap[0][0] <= now)

    def take(self, now: Instant) -> Wait | None:
        """The next wait that is due; its following check is on the grid of five seconds.

        A restarted scheduler skips missed checks and continues with the grid, so that a restart
        changes no instant.
        """
        while (due := self.due()) is not None and due <= now:
            _, place = heapq.heappop(self._heap)
            waiting = self._waits[place]
            lost = self._lost_at(waiting)
            if lost is not None and lost <= now:
                waiting.is_lost = True
                return waiting
            passed, rest = divmod(now - waiting.started, POLL)
            waiting.next_look = Instant(waiting.started + (passed + 1) * POLL)
            end = self._end(waiting, now)
            is_later = end is not None and now < end < waiting.next_look
            if end is not None and is_later:
                waiting.next_look = end
            if lost is not None:
                waiting.next_look = min(waiting.next_look, lost)
            heapq.heappush(self._heap, (waiting.next_look, place))
            if not is_later and (now - due < POLL or rest == 0):
                return waiting
        return None

    def _lost_at(self, waiting: Wait) -> Instant | None:
        """The instant from which a wait is lost with its process; None if that does not end."""
        lost = None if self._pace is None else self._pace.wait_lost(waiting.uid, waiting.started)
        return None if lost is None else max(lost, waiting.started)

    def _end(self, waiting: Wait, now: Instant) -> Instant | None:
        """The recorded end of a wait for binding conditions; None while claims are not written."""
        is_unwritten = waiting.assumed is not None and waiting.assumed.claims_at is not None
        if self._pace is None or is_unwritten:
            return None
        return self._pace.wait_ends(waiting.uid, now)

    def due(self) -> Instant | None:
        """The instant of the next check."""
        while self._heap:
            due, place = self._heap[0]
            waiting = self._waits.get(place)
            if waiting is not None and waiting.next_look == due:
                return due
            heapq.heappop(self._heap)
        return None


def read(body: JsonView, place: NamespacedName, now: Instant, revision: Revision) -> Wait:
    """The wait that begins with a decision (`body`) about the pod.

    A delayed binding continues at the instants in its decision; a check of binding conditions
    follows at once.
    """
    decision = decision_body.read(body)
    assumed = None
    due = now
    if decision.outcome == ASSUMED:
        assumed = placements.read(decision_body.inputs(body))
        due = assumed.bind_at if assumed.claims_at is None else assumed.claims_at
        assumed = assumed if assumed.claims_at is not None else None
    elif decision.outcome == RESERVED:
        due = Instant(decision.inputs.bind_at or now)
    return Wait(
        place=place,
        uid=decision.inputs.uid,
        node=decision_body.summary_of(body).node,
        started=now,
        next_look=Instant(max(due, now)),
        cause=revision,
        assumed=assumed,
    )


def is_needed(features: Features, attempt: Attempt) -> bool:
    """True when a device of the pod has binding conditions."""
    if not features.binding_conditions:
        return False
    known = [claim.allocation for claim in attempt.claims if claim.allocation is not None]
    return any(
        binding_conditions.has_conditions(allocation)
        for allocation in (*attempt.allocations, *known)
    )


def look(
    views: DeviceViews, series: events.ReportSeries, held: Wait, now: Instant, timeout: int
) -> Plan | None:
    """Binds the pod when all devices are ready, gives up after a failure; None while waiting.

    Whether a claim is to be deleted matters only until it is written.
    """
    tree = views.objects.get(pod_key(*held.place))
    if tree is None or meta.uid(tree) != held.uid:
        return None
    try:
        claims = pod_claims.of_placed(views.objects, pods.facts(tree))
    except ClaimsNotReady as problem:
        return give_up(views, series, held, tree, (), str(problem), now)
    for claim in claims:
        if claim.allocation is None:
            text = f"claim {claim.name} got deallocated elsewhere in the meantime"
            return give_up(views, series, held, tree, claims, text, now)
        state = binding_conditions.look(claim.tree, claim.allocation, now, timeout)
        if state.readiness is BindingReadiness.WAITING:
            return None
        if state.readiness is not BindingReadiness.READY:
            return give_up(views, series, held, tree, claims, state.text, now)
    commands = (
        writes.bind(tree, held.node),
        events.scheduled(views.objects, tree, held.node, now),
    )
    return plan(views, held, commands, "Scheduled", {"node": held.node, "waited": True}, now)


def give_up(
    views: DeviceViews,
    series: events.ReportSeries,
    held: Wait,
    tree: JsonObject,
    claims: tuple[PodClaim, ...],
    text: str,
    now: Instant,
    extra: JsonObject | None = None,
    before: tuple[Command, ...] = (),
) -> Plan:
    """Removes the pod's reservations and reports the failure; `extra` is as for `plan`.

    `before` are writes that come first and reserve all `claims`.
    """
    message = messages.prebind_failure(text)
    own = pods.facts(tree).extended_claim
    reserved = [claim for claim in claims if before or pods.is_reserved_for(claim.tree, held.uid)]
    commands = (
        *before,
        *(writes.unreserve(claim, held.uid) for claim in reserved if claim.key.name != own),
        *(
            command
            for claim in reserved
            if claim.key.name == own
            for command in writes.delete_extended(views.objects, claim.key)
        ),
        *writes.report_failure(views.objects, series, tree, "SchedulerError", message, now),
    )
    return plan(views, held, commands, "Error", {"message": message}, now, extra)


def plan(
    views: DeviceViews,
    held: Wait,
    commands: tuple[Command, ...],
    outcome: str,
    summary: JsonObject,
    now: Instant,
    extra: JsonObject | None = None,
) -> Plan:
    """The plan of one step for a pod that has its devices; `extra` is added to its inputs."""
    namespace, name = held.place
    return Plan(
        controller=NAME,
        key=f"pod:{namespace}/{name}",
        commands=without_refused(views.objects, commands),
        decision=Decision(
            controller=NAME,
            resource="pods",
            namespace=namespace,
            name=name,
            outcome=outcome,
            inputs={
                "now": now,
                "uid": held.uid,
                "bindingNode": held.node,
                "plugins": [],
                **(extra or {}),
            },
            summary=summary,
        ),
        cause=held.cause,
        observed=views.objects.revision,
    )
