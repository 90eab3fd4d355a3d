"""Recorded decisions of our controllers, made again from the state that each observed.

A decision in the log is followed by its effects, all in one append. The check of a decision: when
the views are at the revision that it observed, its controller makes the plan again (`redecide`).
The record of this plan must equal the recorded one, including the plan digest. Then the object
rules decide each command again with the recorded stamps, and the resulting events must equal the
recorded ones, byte for byte.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from itertools import groupby

import msgspec

from app.analysis.verify.compare import ComparisonCounts, Difference, Tally, first_difference
from app.analysis.views import LiveViews
from app.domain.controllers import registry
from app.domain.controllers.plan import Plan, Readers, Reconciler, StepReconciler
from app.domain.controllers.record import commands_of
from app.domain.errors import Rejected
from app.domain.log import Draft, Event, EventType, Revision
from app.domain.log.chain import canonical_json
from app.domain.objects.rules import Rules
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import Command, RecordDecision
from app.domain.values import api_resources
from app.domain.values.fields import decision_body
from app.domain.values.json_tree import JsonObject

PACED = "made at the pace of a recording, which this log does not hold"
"""The reason why a paced decision of a fork is not comparable."""


_DECIDING_USERS = frozenset(registry.actor_of(name).user for name in registry.DECIDING)
_CLAIMS_USER = registry.actor_of("claims").user


class DecisionChecker:
    """Checks decisions and their effects while a log is folded event by event.

    Call `before(event)` for each event with the views at the revision before it, then fold it into
    the views, then `after(event)`, which folds the controllers. `observers` are the decisions that
    observed the current revision; `decide_again` must see them before anything is folded on top.

    Up to `paced_until`, recorded inputs continue in a fork, and a decision may state that it was
    made at their pace. Later decisions, and those of controllers that have no pace, may not.
    """

    def __init__(
        self,
        controllers: Sequence[Reconciler],
        views: LiveViews,
        rules: Rules,
        *,
        paced_until: Revision = Revision(0),
    ) -> None:
        self._use(controllers)
        self._views = views
        self._rules = rules
        self._paced_until = paced_until
        self._decisions = Tally()
        self._effects = Tally()
        self._plans: dict[int, Plan] = {}
        self._commands: deque[Command] = deque()
        self._drafts: deque[Draft] = deque()
        self._decision: Event | None = None
        self._other: Event | None = None
        self._recent: Event | None = None

    def decide_again(self, observers: Iterable[Event]) -> None:
        """Makes the plans of decisions that observed the current revision, and compares them."""
        for name, decisions in groupby(observers, _controller_of):
            controller = self._controllers.get(name)
            if controller is None:
                for decision in decisions:
                    self.not_comparable(f"no controller {name!r} here", decision)
                continue
            steps = self._steps.get(name)
            with nullcontext() if steps is None else steps.redeciding():
                for decision in decisions:
                    plan = self._check_decision(controller, decision)
                    if plan is not None:
                        self._plans[decision.revision] = plan

    def leave_out_others(self, names: Collection[str]) -> None:
        """Lets only these controllers follow the log from now on."""
        self._use([each for name, each in self._controllers.items() if name in names])

    def follow(self, event: Event) -> None:
        """Notes an event before the part that is judged: its append may go on there."""
        if event.type is EventType.DECISION_RECORDED:
            self._recent = event

    def begin(self, revision: Revision) -> None:
        """Starts judging at this revision: earlier findings are discarded.

        Plans that were made again stay for the decisions after it.
        """
        self._decisions, self._effects = Tally(), Tally()
        self._plans = {place: plan for place, plan in self._plans.items() if place > revision}

    def expects(self, event: Event) -> bool:
        """Whether the event is an effect of a repeated decision; call it before `before`."""
        return self._decision is not None and belongs(event, self._decision)

    def before(self, event: Event) -> bool:
        """Compares an event with the effect expected at this place, if any.

        Returns whether there is one, and it has the same bytes.
        """
        if event.type is EventType.DECISION_RECORDED:
            self._end_effects()
            self._recent = event
            plan = self._plans.pop(event.revision, None)
            self._other = event if plan is None else None
            if plan is not None:
                self._decision = event
                self._commands = deque(plan.commands)
            return False
        if not self.expects(event):
            self._end_effects()
            if self._other is not None and event.is_about_object and belongs(event, self._other):
                author = event.stamp.actor.user
                self._effects.not_comparable("its decision was not made again", author)
            elif self._recent is None or not belongs(event, self._recent):
                self._check_undecided(event)
            return False
        try:
            expected = self._next_draft(event)
        except Rejected as refusal:
            self._effect_differs(event, "", event.object, str(refusal), event.object, None)
            return False
        if expected is None:
            # The following events belong to a plan without a decision, in the same append.
            self._end_effects()
            self._check_undecided(event)
            return False
        return self._compare_effect(event, expected)

    def after(self, event: Event) -> None:
        """Lets the controllers fold the event, which the views already contain."""
        for controller in self._readers.of(event):
            controller.fold(event, self._views)

    def result(self, *, is_whole: bool) -> tuple[ComparisonCounts, ComparisonCounts]:
        """The comparisons of decisions and effects so far.

        `is_whole` is true if the log was read to its end: then effects that are still expected are
        missing, otherwise they may follow.
        """
        if is_whole:
            self._end_effects()
        return self._decisions.result(), self._effects.result()

    def not_comparable(self, reason: str, decision: Event) -> None:
        """Count a decision that could not be made again."""
        self._decisions.not_comparable(reason, decision.stamp.actor.user)

    def _use(self, controllers: Sequence[Reconciler]) -> None:
        self._controllers = {controller.name: controller for controller in controllers}
        self._steps = {
            controller.name: controller
            for controller in controllers
            if isinstance(controller, StepReconciler)
        }
        self._readers = Readers(controllers)

    def _check_decision(self, controller: Reconciler, decision: Event) -> Plan | None:
        recorded = decision.object
        plan = controller.redecide(self._views, decision)
        written = None if plan is None else _record_of(plan)
        is_marked = (
            decision.revision <= self._paced_until and decision_body.read(recorded).inputs.paced
        )
        body = decision.body
        if is_marked:
            recorded = _without_pace(recorded)
            body = canonical_json(recorded)
        if written == body:
            self._decisions.same()
            return plan
        again = None if written is None else msgspec.json.decode(written)
        difference = first_difference(recorded, again)
        if difference is None:
            self._decisions.same()
            return plan
        if is_marked and controller.name in registry.PACED:
            self.not_comparable(PACED, decision)
            return None
        path, left, right = difference
        self._decisions.different(
            Difference(
                revision=decision.revision,
                subject=f"{controller.name} {_subject(decision)}",
                path=path,
                recorded=left,
                again=right,
                recorded_tree=recorded,
                again_tree=again,
                objects=(_subject(decision),),
            )
        )
        return None

    def _next_draft(self, event: Event) -> Draft | None:
        """The next event that the plan's commands produce; None when they produce no more."""
        while not self._drafts and self._commands:
            command = self._commands.popleft()
            decided = lifecycle.decide(self._views.objects, command, event.stamp, self._rules)
            self._drafts.extend(decided.drafts)
        return self._drafts.popleft() if self._drafts else None

    def _compare_effect(self, event: Event, expected: Draft) -> bool:
        metadata = expected.tree.get("metadata")
        if isinstance(metadata, dict):
            metadata["resourceVersion"] = str(event.revision)
        is_same = (event.type, event.key) == (expected.type, expected.key)
        if is_same and canonical_json(expected.tree) == event.body:
            self._effects.same()
            if event.tree is None:
                # The tree is the same object, so the body need not be decoded again.
                event.tree = expected.tree
            return True
        recorded = {"type": event.type.value, "key": str(event.key), "object": event.object}
        again = {"type": expected.type.value, "key": str(expected.key), "object": expected.tree}
        difference = first_difference(recorded, again)
        path, left, right = difference if difference is not None else ("", None, None)
        self._effect_differs(event, path, left, right, recorded, again)
        return False

    def _check_undecided(self, event: Event) -> None:
        """Counts a write without a decision, by a controller that stores one with each."""
        if needs_decision(event):
            recorded = {"type": event.type.value, "key": str(event.key), "object": event.object}
            made = {"type": event.type.value, "key": str(event.key)}
            self._effect_differs(event, "", made, "no decision for it", recorded, None)

    def _effect_differs(
        self, event: Event, path: str, left: object, right: object, recorded: object, again: object
    ) -> None:
        self._effects.different(
            Difference(
                revision=event.revision,
                subject=str(event.key),
                path=path,
                recorded=left,
                again=right,
                recorded_tree=recorded,
                again_tree=again,
                objects=(str(event.key),),
            )
        )
        self._forget()

    def _end_effects(self) -> None:
        """Ends the effects of the decision: events still to be produced are missing."""
        decision = self._decision
        if decision is None:
            return
        left = list(self._drafts)
        try:
            while not left and self._commands:
                command = self._commands.popleft()
                decided = lifecycle.decide(
                    self._views.objects, command, decision.stamp, self._rules
                )
                left = list(decided.drafts)
        except Rejected:
            # A command that is refused now appends nothing, which agrees with the recording.
            left = []
        if left:
            missing = {"type": left[0].type.value, "key": str(left[0].key)}
            self._effect_differs(decision, "", None, missing, None, left[0].tree)
        self._forget()

    def _forget(self) -> None:
        self._decision = None
        self._commands.clear()
        self._drafts.clear()


def belongs(event: Event, decision: Event) -> bool:
    """Whether the event is in the same append as the decision before it."""
    ours, theirs = event.stamp, decision.stamp
    return (
        ours.time == theirs.time
        and ours.observed == theirs.observed
        and ours.cause == theirs.cause
        and ours.actor == theirs.actor
    )


def needs_decision(event: Event) -> bool:
    """Whether the event is an object's write by a controller that records a decision with it."""
    if not event.stamp.observed or not event.is_about_object:
        return False
    user = event.stamp.actor.user
    if user == _CLAIMS_USER:
        is_new = event.type is EventType.OBJECT_CREATED
        return not is_new and event.key[:2] == api_resources.RESOURCE_CLAIMS
    return user in _DECIDING_USERS


def _record_of(plan: Plan) -> bytes | None:
    """The body of the decision record of the plan; None when the plan records no decision."""
    commands = commands_of(plan)
    if not commands or not isinstance(commands[0], RecordDecision):
        return None
    return canonical_json(commands[0].body)


def _without_pace(body: JsonObject) -> JsonObject:
    """The decision as its controller made it, without the mark of a paced run."""
    inputs = {name: value for name, value in body["inputs"].items() if name != "paced"}
    return {**body, "inputs": inputs}


def _controller_of(decision: Event) -> str:
    return decision_body.read(decision.object).controller


def _subject(decision: Event) -> str:
    resource = decision_body.read(decision.object).resource
    name = decision.key.namespaced_name
    return f"{resource}/{name}" if resource else name
