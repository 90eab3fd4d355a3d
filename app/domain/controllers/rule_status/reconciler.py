"""The reconciler of DeviceTaintRules: computes their status at the right instants.

A rule is queued at once when it is created or its spec changes, and ten seconds after an eviction
of a pod was planned or executed because of it (controllers.md 1.6). There is no periodic update, so
a count that changes for other reasons is not written (C6). Every look is recorded as a decision,
even if it changes nothing, so that a restart does not repeat it.
"""

from collections.abc import Iterator

from app.domain.controllers.eviction.reconciler import COMPONENT, ENDED
from app.domain.controllers.eviction.reconciler import NAME as EVICTION
from app.domain.controllers.eviction.state import READ, Changes, TaintState
from app.domain.controllers.keyed import KeyedController, Work, decided_at, decided_cause
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import DECISIONS, Decision, Plan, Reads, Views
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import is_of
from app.domain.controllers.rule_status import condition
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.write.commands import Command, PatchObject, PatchType, WriteOptions
from app.domain.values import api_resources, json_tree, timestamps
from app.domain.values.fields import decision_body
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError

NAME = "rule-status"

INTERVAL = 10 * SECOND
"""The least time between two writes for a generation of a rule, and the delay after an eviction."""

APPLIER = WriteOptions(field_manager=COMPONENT, force=True)

_RuleId = tuple[str, str]


class RuleStatusReconciler(KeyedController[_RuleId, Views]):
    """Maintains the condition `EvictionInProgress` of every rule."""

    name = NAME
    reads: Reads = frozenset({*READ, DECISIONS})

    def __init__(
        self,
        quirks: ControllerQuirks = ControllerQuirks(),
        *,
        version: str = "v1",
        pace: Pace | None = None,
    ) -> None:
        super().__init__(pace=pace)
        self._quirks = quirks
        self._version = version
        self._state = TaintState(quirks)
        self._evicted: dict[str, int] = {}

    def fold(self, event: Event, views: Views) -> None:
        """Queues the rules that the event affects; all rules after a restart."""
        if event.type is EventType.CONTROLLER_RESTARTED:
            self._restart(event.revision)
        else:
            super().fold(event, views)

    def keys_of(self, event: Event, views: Views) -> Iterator[_RuleId]:
        """A new or changed rule; rules that evict pods are queued for later."""
        if (
            is_of(event.key, api_resources.DEVICE_TAINT_RULES)
            and event.key.name not in self._state.rules
        ):
            self._recall(event)
        return self._look_at(self._state.fold(event, has_planned=False), event)

    def reconcile(self, views: Views, key: _RuleId, now: Instant) -> Work | None:
        """Updates the status of one rule, at least INTERVAL after the last update."""
        tree = views.objects.get(ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", key[0]))
        rule = self._state.rules.get(key[0])
        if tree is None or rule is None or rule.uid != key[1]:
            return None
        wait = _wait(tree, rule.generation, now)
        if wait > 0:
            return Work(due=Instant(now + wait))
        return self._work(views, key, tree, now)

    def decided_key(self, decision: Event) -> _RuleId:
        """The rule of the decision."""
        recorded = decision_body.read(decision.object)
        return recorded.name, recorded.inputs.uid

    def text_of(self, key: _RuleId) -> str:
        """The text of the key: `rule:` and the name."""
        return f"rule:{key[0]}"

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Makes the plan again from the state folded up to the observed revision."""
        key = self.decided_key(decision)
        tree = views.objects.get(ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", key[0]))
        if tree is None or key[0] not in self._state.rules:
            return None
        work = self._work(views, key, tree, decided_at(decision))
        return self.plan(views, key, work, decided_cause(decision))

    def _look_at(self, changes: Changes, event: Event) -> Iterator[_RuleId]:
        if changes.rule is not None:
            yield changes.rule.name, changes.rule.uid
        if changes.gone_rule_uid:
            self._evicted.pop(changes.gone_rule_uid, None)
        for place in changes.pods:
            eviction = self._state.pod_eviction(place)
            for reason in () if eviction is None else eviction.reasons:
                if not reason.is_slice:
                    due = Instant(event.stamp.time + INTERVAL)
                    self.queue.add_at((reason.rule, reason.rule_uid), due, event.revision)

    def _recall(self, event: Event) -> None:
        """Reads the number of evicted pods from the status of a rule that is seen first."""
        held = condition.stored(event.object)
        count = 0 if held is None else condition.evicted_in(json_tree.text(held, "message"))
        if count:
            self._evicted.setdefault(event.uid, count)

    def fold_decision(self, decision: Event) -> None:
        """Drops the rule of an own decision; counts an eviction for the rules that caused it."""
        body = decision.object
        if body.get("controller") == NAME:
            # Parity: controllers.md 1.6; the item ten seconds after a planned eviction is a
            # different one.
            key, observed = self.decided_key(decision), Revision(decision.stamp.observed)
            self.queue.drop(key, observed, decided_at(decision))
        elif body.get("controller") == EVICTION and decision_body.read(body).outcome in ENDED:
            for name, uid in _rules_of(body):
                rule = self._state.rules.get(name)
                if rule is None or rule.uid != uid:
                    continue
                self._evicted[uid] = self._evicted.get(uid, 0) + 1
                due = Instant(decision.stamp.time + INTERVAL)
                self.queue.add_at((name, uid), due, decision.revision)

    def _restart(self, revision: Revision) -> None:
        if self._quirks.c7:
            self._evicted.clear()
        for name, rule in sorted(self._state.rules.items()):
            self.queue.add((name, rule.uid), revision)

    def _work(self, views: Views, rule_id: _RuleId, tree: JsonObject, now: Instant) -> Work:
        name, uid = rule_id
        evicted = self._evicted.get(uid, 0)
        rule = self._state.rules[name]
        verdict = condition.compute(views.objects, self._state, rule, evicted)
        commands: tuple[Command, ...] = ()
        held = condition.stored(tree)
        if not _is_current(held, verdict, rule.generation):
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
        return Work(commands, decision)

    def _apply(
        self, rule_id: _RuleId, verdict: condition.EvictionCondition, generation: int, now: Instant
    ) -> PatchObject:
        # Parity: controllers.md 1.6; any change of the condition moves lastTransitionTime; it is
        # the rate limiter.
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


def _is_current(
    held: JsonObject | None, verdict: condition.EvictionCondition, generation: int
) -> bool:
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
    """The rules for which a pod was evicted; an entry that is not a pair of texts is skipped."""
    entries = json_tree.get(decision, "inputs", "rules")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, list) and [type(part) for part in entry] == [str, str]:
            yield entry[0], entry[1]
