"""When the status of a rule is computed, and the write that brings it up to date.

An item of a rule is queued at once when the rule appears or its spec changes, and ten seconds after
a pod's eviction was planned or executed because of it (controllers.md 1.6). There is no periodic
item, so a count that changes for other reasons stays as it is (C6). Every look is recorded as a
decision, also one that changes nothing, so that a restart repeats none.
"""

from collections.abc import Iterator

from app.domain.controllers.eviction.reconciler import COMPONENT, ENDED
from app.domain.controllers.eviction.reconciler import NAME as EVICTION
from app.domain.controllers.eviction.state import READ, Changes, TaintState
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import is_of
from app.domain.controllers.rule_status import condition
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import DECISION, Event, EventType, ObjectKey, Revision
from app.domain.objects.write.commands import Command, PatchObject, PatchType, WriteOptions
from app.domain.values import api_resources, json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NAME = "rule-status"

INTERVAL = 10 * SECOND
"""Least time between two writes for one generation of a rule, and the delay after an eviction."""

APPLIER = WriteOptions(field_manager=COMPONENT, force=True)

_RuleId = tuple[str, str]


class RuleStatusReconciler:
    """Keeps `EvictionInProgress` of every rule."""

    name = NAME
    reads: Reads = frozenset({*READ, DECISIONS})

    def __init__(
        self,
        quirks: ControllerQuirks = ControllerQuirks(),
        *,
        version: str = "v1",
        pace: Pace | None = None,
    ) -> None:
        self._quirks = quirks
        self._version = version
        self._state = TaintState(quirks)
        self._evicted: dict[str, int] = {}
        self._queue: WorkQueue[_RuleId] = WorkQueue(NAME, pace)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self._queue,)

    def fold(self, event: Event, views: Views) -> None:
        """Queue the rules that the event is about."""
        if event.type is EventType.DECISION_RECORDED:
            if event.key.resource == DECISION.resource:
                self._fold_decision(event)
        elif event.type is EventType.CONTROLLER_RESTARTED:
            self._restart(event.revision)
        elif event.is_about_object:
            if (
                is_of(event.key, api_resources.DEVICE_TAINT_RULES)
                and event.key.name not in self._state.rules
            ):
                self._recall(event)
            self._look_at(self._state.fold(event, has_planned=False), event)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Bring the status of one rule up to date."""
        while found := self._queue.take(now):
            rule_id, cause = found
            tree = views.objects.get(ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", rule_id[0]))
            rule = self._state.rules.get(rule_id[0])
            if tree is None or rule is None or rule.uid != rule_id[1]:
                continue
            wait = _wait(tree, rule.generation, now)
            if wait > 0:
                self._queue.add_at(rule_id, Instant(now + wait), cause)
                continue
            return self._plan(views, rule_id, tree, now, cause)
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """A refused write is tried again with back-off."""
        if plan.decision is None:
            return
        rule_id = (plan.decision.name, json_tree.text(plan.decision.inputs, "uid"))
        if problem is None:
            self._queue.forget(rule_id)
        else:
            self._queue.retry(rule_id, now)

    def due(self) -> Instant | None:
        """When the next rule is to be looked at."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """The plan again, from the state as folded up to what the decision observed."""
        body = decision.object
        name = json_tree.text(body, "name")
        tree = views.objects.get(ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", name))
        rule_id = (name, json_tree.text(body, "inputs", "uid"))
        if tree is None or name not in self._state.rules:
            return None
        now = Instant(json_tree.integer(body, "inputs", "now") or decision.stamp.time)
        return self._plan(
            views, rule_id, tree, now, Revision(json_tree.integer(body, "cause") or 0)
        )

    def _look_at(self, changes: Changes, event: Event) -> None:
        if changes.rule is not None:
            self._queue.add((changes.rule.name, changes.rule.uid), event.revision)
        if changes.gone_rule_uid:
            self._evicted.pop(changes.gone_rule_uid, None)
        for place in changes.pods:
            eviction = self._state.pod_eviction(place)
            for reason in () if eviction is None else eviction.reasons:
                if not reason.is_slice:
                    due = Instant(event.stamp.time + INTERVAL)
                    self._queue.add_at((reason.rule, reason.rule_uid), due, event.revision)

    def _recall(self, event: Event) -> None:
        """A rule that is met with a status: its message says how many pods it has evicted."""
        held = condition.stored(event.object)
        count = 0 if held is None else condition.evicted_in(json_tree.text(held, "message"))
        if count:
            self._evicted.setdefault(event.uid, count)

    def _fold_decision(self, event: Event) -> None:
        body = event.object
        if body.get("controller") == NAME:
            rule_id = (json_tree.text(body, "name"), json_tree.text(body, "inputs", "uid"))
            # Parity: the item of ten seconds after a pod's eviction was planned is another one.
            now = Instant(json_tree.integer(body, "inputs", "now") or event.stamp.time)
            self._queue.drop(rule_id, Revision(event.stamp.observed), now)
        elif body.get("controller") == EVICTION and json_tree.text(body, "outcome") in ENDED:
            for name, uid in _rules_of(body):
                rule = self._state.rules.get(name)
                if rule is None or rule.uid != uid:
                    continue
                self._evicted[uid] = self._evicted.get(uid, 0) + 1
                due = Instant(event.stamp.time + INTERVAL)
                self._queue.add_at((name, uid), due, event.revision)

    def _restart(self, revision: Revision) -> None:
        if self._quirks.c7:
            self._evicted.clear()
        for name, rule in sorted(self._state.rules.items()):
            self._queue.add((name, rule.uid), revision)

    def _plan(
        self, views: Views, rule_id: _RuleId, tree: JsonObject, now: Instant, cause: Revision
    ) -> Plan:
        name, uid = rule_id
        evicted = self._evicted.get(uid, 0)
        rule = self._state.rules[name]
        verdict = condition.compute(views.objects, self._state, rule, evicted)
        commands: tuple[Command, ...] = ()
        held = condition.stored(tree)
        if not _says(held, verdict, rule.generation):
            commands = (self._apply(rule_id, verdict, rule.generation, now),)
        decision = Decision(
            controller=NAME,
            resource="devicetaintrules",
            namespace="",
            name=name,
            outcome=verdict.reason if commands else "Unchanged",
            inputs={"now": now, "uid": uid, "evicted": evicted},
            summary={"reason": verdict.reason, "message": verdict.message},
        )
        return Plan(
            controller=NAME,
            key=f"rule:{name}",
            commands=commands,
            decision=decision,
            cause=cause,
            observed=views.objects.revision,
        )

    def _apply(
        self, rule_id: _RuleId, verdict: condition.EvictionCondition, generation: int, now: Instant
    ) -> PatchObject:
        # Parity: any change of the condition moves lastTransitionTime; it is the rate limiter.
        return PatchObject(
            key=ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", rule_id[0]),
            version=self._version,
            type=PatchType.APPLY,
            body={
                "apiVersion": f"resource.k8s.io/{self._version}",
                "kind": "DeviceTaintRule",
                "metadata": {"name": rule_id[0], "uid": rule_id[1]},
                "status": {
                    "conditions": [
                        {
                            "type": condition.TYPE,
                            "status": verdict.status,
                            "observedGeneration": generation,
                            "lastTransitionTime": timestamps.seconds_text(now),
                            "reason": verdict.reason,
                            "message": verdict.message,
                        }
                    ]
                },
            },
            subresource="status",
            options=APPLIER,
        )


def _says(held: JsonObject | None, verdict: condition.EvictionCondition, generation: int) -> bool:
    return (
        held is not None
        and held.get("status") == verdict.status
        and held.get("reason") == verdict.reason
        and (held.get("message") or "") == verdict.message
        and held.get("observedGeneration") == generation
    )


def _wait(tree: JsonObject, generation: int, now: Instant) -> int:
    held = condition.stored(tree)
    if held is None or held.get("observedGeneration") != generation:
        return 0
    try:
        since = timestamps.parse(json_tree.text(held, "lastTransitionTime"))
    except TimestampError:
        return 0
    return max(0, since + INTERVAL - now)


def _rules_of(decision: JsonObject) -> Iterator[_RuleId]:
    """The rules for which a pod was evicted; an entry that is no pair of texts is passed over."""
    entries = json_tree.get(decision, "inputs", "rules")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list) and [type(part) for part in entry] == [str, str]:
            yield entry[0], entry[1]
