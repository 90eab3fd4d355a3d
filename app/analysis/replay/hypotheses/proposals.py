"""The proposals: which hypotheses about a difference are worth a run.

The facts that only one side has determine them.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import PLACEMENTS, Aspect, Sides
from app.analysis.replay.facts import (
    ClaimsNamed,
    ConditionSet,
    Created,
    DeletionAsked,
    Fact,
    FinalizerRemoved,
    Nominated,
    NominationEnded,
    Released,
    Removed,
    Reserved,
    Unreserved,
    is_failed_attempt,
    is_skip,
)
from app.analysis.replay.hypotheses import attempts, removals
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.hypotheses.successors import Successors
from app.analysis.replay.lags import Made, Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import Step, Trace
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

_ENDINGS = (DeletionAsked, FinalizerRemoved, Released, Removed, Unreserved)
_RESYNCS = (Created, Removed, ClaimsNamed, Reserved, Unreserved)
_LATE_CLAIMS = (Created, Removed, ClaimsNamed)
_LAST = ("collected_last", "released_last", "released_first+handed_over")
_COUNTED = (
    ("counted_last", "when the write was answered"),
    ("counted", "when the write was asked for"),
    ("counted_first", "at once"),
)


class Proposals:
    """Proposes hypotheses about differences, the likeliest first.

    `paired_by_time` are the pods with a condition that only its instant assigns to an attempt,
    `waits` those of the scheduler's requests, `scheduler` is its process, `manager` that of the
    other controllers.
    """

    def __init__(
        self,
        recorded: Trace,
        paired_by_time: Set[str] = frozenset(),
        waits: Waits = Waits((), ()),
        scheduler: Process = Process(()),
        manager: Process = Process(()),
    ) -> None:
        self._recorded, self._manager = recorded, manager
        self._paired_by_time, self._waits = paired_by_time, waits
        self._successors = Successors(recorded, waits, scheduler)

    def group_of(self, sides: Sides, again: Trace) -> str:
        """The uid of the pod that the subject belongs to, or of the subject itself."""
        return self._recorded.owner_of.get(sides.uid) or again.owner_of.get(sides.uid, sides.uid)

    def of_placement(
        self, root: Sides, again: Trace, others: Iterable[Sides]
    ) -> Iterator[Hypothesis]:
        """Those of `local`, and those about other pods that a new scheduler tried anew, or never.

        Such a pod may have got another place since, and have left the first one to this pod.
        """
        yield from self.local(root, again)
        own = self.group_of(root, again)
        for pod in dict.fromkeys(self.group_of(each, again) for each in others):
            if pod != own:
                yield from self._successors.lost(pod, "another pod", again)
                yield from self._successors.gone_before(pod, again)

    def local(self, sides: Sides, again: Trace) -> Iterator[Hypothesis]:
        """Hypotheses about acts that concern the subject alone."""
        key = self._recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
        if key is None:
            # Only a report names the subject: the history does not contain the object.
            return
        yield from removals.removed_soon(sides, self._recorded)
        if key[:2] in (api_resources.PODS, api_resources.DEVICE_TAINT_RULES):
            yield from removals.gone_unseen(sides, key, self._recorded, self._manager)
        group = self.group_of(sides, again)
        pod = self._recorded.keys.get(group) or again.keys.get(group)
        if pod is not None and pod.resource == "pods":
            yield from self._of_pod(sides, again, group, pod)
        if key.resource == "devicetaintrules":
            yield Hypothesis(
                reason=DifferenceClass.TIMING,
                detail="its removal from outside came later in its second",
                field="postponed",
                target=sides.uid,
            )
            detail = "its controller was replaced, and the next one looked at it again"
            for name in ("begun_anew", *(f"begun_anew+{each}" for each, _ in _COUNTED)):
                yield Hypothesis(
                    reason=DifferenceClass.TIMING, detail=detail, field=name, target=key.name
                )
            for name, when in _COUNTED:
                yield Hypothesis(
                    reason=DifferenceClass.TIMING,
                    detail=f"what its status tells was counted {when}",
                    field=name,
                    target=key.name,
                )
        if key[:2] == api_resources.NAMESPACES:
            yield from removals.emptied(sides, key.name, self._recorded)
        for claim in self._claims_of(sides, key, again):
            if self._is_of_end(sides, claim, again):
                if self._returns(claim):
                    yield Hypothesis(
                        reason=DifferenceClass.RACE,
                        detail="the scheduler took the reservation back when it was recorded",
                        field="returned",
                        target=claim,
                    )
                yield from _orders(claim, is_kept=self._is_kept(claim))

    def _is_of_end(self, sides: Sides, claim: ObjectKey, again: Trace) -> bool:
        """Whether the difference is, or may follow from, an act that ends the claim."""
        only = list(sides.facts())
        if only:
            return all(isinstance(fact, _ENDINGS) for fact in only)
        both = (self._recorded, again)
        match sides.aspect:
            case Aspect.WRITES | Aspect.ORDER:
                # Both sides have the same writes, but in another order.
                steps = (
                    step
                    for trace in both
                    for step in (*trace.writes.get(sides.uid, ()), *trace.of_pod.get(sides.uid, ()))
                )
                return any(step.key == claim and _has(step, *_ENDINGS) for step in steps)
            case Aspect.DEVICES:
                pairs = enumerate(zip(sides.recorded, sides.again, strict=False))
                same = min(len(sides.recorded), len(sides.again))
                first = next((number for number, (one, two) in pairs if one != two), same)
                theirs, ours = (_ends_before(trace, sides.uid, first) for trace in both)
                return theirs != ours
            case Aspect.FINAL:
                theirs, ours = (_ends_before(trace, sides.uid, None) for trace in both)
                return theirs != ours
            case _:
                return False

    def _is_kept(self, claim: ObjectKey) -> bool:
        """Whether the claim exists at the end of the recording: nobody has ended it by then."""
        return any(self._recorded.keys[uid] == claim for uid in self._recorded.kept)

    def _returns(self, claim: ObjectKey) -> bool:
        """Whether the recorded scheduler removed a reservation of the claim."""
        return any(
            step.key == claim
            and step.writer in ("", attempts.SCHEDULER_NAME)
            and _has(step, Unreserved)
            for steps in self._recorded.writes.values()
            for step in steps
        )

    def _of_pod(self, sides: Sides, again: Trace, uid: str, key: ObjectKey) -> Iterator[Hypothesis]:
        yield from self._again_looked_at(sides, again, uid)
        yield from removals.unseen(sides, uid, key, self._recorded)
        yield from removals.undated(sides, self._recorded)
        yield from removals.refused_reports(sides, uid, key, self._recorded)
        yield from self._attempts(sides, uid)
        yield from self._successors.lost(uid, "the pod", again)
        yield from self._hiding(self._hidden(sides, again) | self._place_in_vain(again, uid), sides)
        yield from self._successors.gone_before(uid, again)
        is_placed_otherwise = _is_placed(sides)
        if is_placed_otherwise:
            yield Hypothesis(
                reason=DifferenceClass.TIMING,
                detail="the pod was tried earlier, and the requests for it waited longer",
                field="waited",
                target=uid,
            )
        if self._is_nomination_in_vain(sides, uid):
            yield Hypothesis(
                reason=DifferenceClass.RACE,
                detail="the nomination came when the pod was gone",
                field="unanswered",
                target=uid,
            )
        if self._is_report_in_vain(sides, uid):
            yield Hypothesis(
                reason=DifferenceClass.RACE,
                detail="the condition of the attempt came when the pod was gone",
                field="unreported",
                target=uid,
            )
        if sides.aspect is Aspect.SAID and sides.is_order:
            yield from _late_reports(uid)
        elif sides.aspect is Aspect.SAID and attempts.is_tried_more(sides):
            # The client that made the attempt also sent its reports late.
            for each in _late_reports(uid):
                detail = f"the pod was tried at each recorded attempt, and {each.detail}"
                yield replace(each, detail=detail, field=f"tried+{each.field}")
        gone, slack = self._recorded.removed.get(uid), self._waits.slack
        if (
            gone is not None
            and self._is_unsynced(sides, again, uid)
            and not removals.was_looked_at(sides, gone, self._recorded, slack)
        ):
            yield Hypothesis(
                reason=DifferenceClass.RACE,
                detail="the pod was gone before the claim controller looked",
                field="unsynced",
                target=key,
            )
        if _all(sides.facts("again"), *_LATE_CLAIMS) and not sides.only_recorded:
            yield from removals.claims_removed_last(uid, self._recorded)
        if is_placed_otherwise or self._is_refusal(sides):
            yield Hypothesis(
                reason=DifferenceClass.TIMING,
                detail="the scheduler's client had a lower limit, and all its requests for "
                "placements may have waited longer",
                field="is_limited",
            )

    def _is_unsynced(self, sides: Sides, again: Trace, pod: str) -> bool:
        """Whether the claim controller alone acted late, or for the pod only here.

        In the latter case all that others did here may follow from its acts.
        """
        if _all(sides.facts("again"), *_LATE_CLAIMS):
            return True
        only = list(sides.facts())
        if (
            sides.only_again
            and all(map(removals.is_refused_claim, only))
            and not sides.only_recorded
        ):
            return True
        acts = () if self._recorded.of_pod.get(pod) else again.of_pod.get(pod, ())
        return any(_has(step, *_LATE_CLAIMS) for step in acts)

    def _is_refusal(self, sides: Sides) -> bool:
        """Whether conditions differ in failed attempts alone, or only there some are reported.

        Of attempts with one message, only the first writes a condition.
        """
        is_reported = sides.aspect is Aspect.SAID and not sides.only_again
        only = list(sides.facts()) if is_reported or sides.aspect is Aspect.CONDITIONS else []
        return bool(only) and all(is_failed_attempt(fact) for fact in only)

    def _is_nomination_in_vain(self, sides: Sides, uid: str) -> bool:
        """Whether only this side nominates a node for a pod, and that may have come too late.

        A pod that was bound there was nominated before, by requests of the same client.
        """
        gone = self._recorded.removed.get(uid)
        if gone is None or uid in self._recorded.node_of:
            return False
        since = self._waits.longest(gone)
        nominations = [step for step in sides.only_again if _has(step, Nominated)]
        return _all(sides.facts("again"), Nominated) and all(
            step.time >= since for step in nominations
        )

    def _is_report_in_vain(self, sides: Sides, uid: str) -> bool:
        """Whether only this side has the last conditions of a pod, and they may have come too late.

        The request for each may have waited in the queue of the client until the pod was deleted.
        """
        gone = self._recorded.removed.get(uid)
        if gone is None or sides.aspect is Aspect.SAID or sides.only_recorded:
            return False
        since = self._waits.longest(gone)
        said = [fact for fact in sides.facts("again") if not isinstance(fact, NominationEnded)]
        return (
            bool(said)
            and all(isinstance(fact, ConditionSet) and is_failed_attempt(fact) for fact in said)
            and all(step.time >= since for step in sides.only_again)
        )

    def _hiding(self, hidden: Set[object], sides: Sides) -> Iterator[Hypothesis]:
        detail = "pods that were gone before they were nominated had a place until then"
        fields = ("hidden", "hidden+is_limited") if _is_placed(sides) else ("hidden",)
        for field in fields if hidden else ():
            yield Hypothesis(reason=DifferenceClass.RACE, detail=detail, field=field, target=hidden)

    def _hidden(self, sides: Sides, again: Trace) -> frozenset[tuple[str, Instant]]:
        """Pods that may have had a node, without a write, at a recorded failed attempt.

        The request for the nomination may have waited in the queue of the client until the pod was
        deleted. Each pod has the instant by which it and all objects made for it were deleted.
        """
        group = self._recorded.owner_of.get(sides.uid, sides.uid)
        writes = self._recorded.writes.get(group, ()) if sides.aspect in PLACEMENTS else ()
        refused = [
            self._waits.of(step.time)
            for step in (*sides.only_recorded, *writes)
            if any(is_failed_attempt(fact) and not is_skip(fact) for fact in step.facts)
        ]
        placed = [
            Made(first=self._waits.longest(step.time), last=step.time)
            for step in writes
            if _has(step, Nominated)
        ]
        return frozenset(
            (uid, self._all_gone(uid, again))
            for uid, gone in self._recorded.removed.items()
            if self._recorded.keys[uid].resource == "pods"
            and uid not in self._recorded.node_of
            and not any(_has(step, Nominated) for step in self._recorded.writes.get(uid, ()))
            and any(self._waits.reach_over(gone, made) for made in (refused, placed))
        )

    def _place_in_vain(self, again: Trace, uid: str) -> frozenset[tuple[str, Instant]]:
        """The pod itself, if it got a node here alone, and its requests may have come too late.

        They may have waited in the queue of the client until the pod was deleted.
        """
        gone, placed = self._recorded.removed.get(uid), again.node_of.get(uid)
        if gone is None or placed is None or uid in self._recorded.node_of:
            return frozenset()
        is_nominated = any(_has(each, Nominated) for each in self._recorded.writes.get(uid, ()))
        if is_nominated or placed.time < self._waits.longest(gone):
            return frozenset()
        return frozenset({(uid, self._all_gone(uid, again))})

    def _all_gone(self, pod: str, again: Trace) -> Instant:
        """The instant at which a pod and its claims were deleted on both sides."""
        claims = (uid for uid, owner in self._recorded.owner_of.items() if owner == pod)
        both = (self._recorded.removed, again.removed)
        return max(each[uid] for uid in (pod, *claims) for each in both if uid in each)

    def _reserved_again(self, sides: Sides) -> frozenset[ObjectKey]:
        """Claims that one side reserves once more; these acts are milliseconds apart."""
        steps = (*sides.only_recorded, *sides.only_again)
        return frozenset(step.key for step in steps if _has(step, Reserved))

    def _again_looked_at(self, sides: Sides, again: Trace, uid: str) -> Iterator[Hypothesis]:
        only = list(sides.facts())
        has_finished = uid in self._recorded.finished or uid in again.finished
        is_resync = sides.aspect is not Aspect.SAID and all(
            isinstance(fact, _RESYNCS) for fact in only
        )
        if has_finished and is_resync:
            yield Hypothesis(
                reason=DifferenceClass.FINISHED_POD,
                detail="with c8 and c22 on, the pod is synced again when it was recorded",
                field="quirks",
                target=self._reserved_again(sides),
            )
            yield from removals.remade(uid, self._recorded, self._manager)

    def _attempts(self, sides: Sides, uid: str) -> Iterator[Hypothesis]:
        yield from attempts.of_pod(sides, uid, self._recorded, is_apart=uid in self._paired_by_time)
        if sides.aspect in PLACEMENTS and len(sides.recorded) > len(sides.again):
            yield from self._successors.begun(uid)

    def _claims_of(self, sides: Sides, key: ObjectKey, again: Trace) -> Sequence[ObjectKey]:
        if key.resource == "resourceclaims":
            return (key,)
        if sides.aspect is not Aspect.ORDER:
            return ()
        steps = (*sides.only_recorded, *sides.only_again) or (
            *self._recorded.of_pod.get(sides.uid, ()),
            *again.of_pod.get(sides.uid, ()),
        )
        return sorted({step.key for step in steps if step.key.resource == "resourceclaims"})


def _orders(claim: ObjectKey, *, is_kept: bool) -> Iterator[Hypothesis]:
    """Hypotheses about the order in which collector and claim controller end a claim.

    One of them comes last only where the other one, or a user, ended the claim before it.
    """
    for name, detail in (
        ("collected_last", "the collector came after the claim controller"),
        ("collected_first", "the collector came before the others"),
        ("released_last", "the claim controller came after the collector"),
        ("released_first", "the claim controller came before the others"),
        (
            "released_first+handed_over",
            "the claim controller came before the others, and the collector after its last update",
        ),
    ):
        if not (is_kept and name in _LAST):
            yield Hypothesis(reason=DifferenceClass.RACE, detail=detail, field=name, target=claim)


def _late_reports(uid: str) -> Iterator[Hypothesis]:
    """Hypotheses about the instants of the scheduler's Events about a pod, and repeated ones."""
    yield Hypothesis(
        reason=DifferenceClass.RACE,
        detail="the scheduler's Events were written when they were recorded",
        field="reported",
        target=uid,
    )
    yield Hypothesis(
        reason=DifferenceClass.RACE,
        detail="the scheduler's Events, and those that it sent again, were written when "
        "they were recorded",
        field="reported+repeated",
        target=uid,
    )
    yield Hypothesis(
        reason=DifferenceClass.RACE,
        detail="the scheduler's Events were written when they were recorded, and what it "
        "said again meanwhile was added to them",
        field="reported+repeated+joined",
        target=uid,
    )


def _ends_before(trace: Trace, claim: str, number: int | None) -> list[Fact]:
    """The facts about the end of a claim before its allocation of this number, or all of them."""
    made = trace.allocations.get(claim, ())
    until = made[number].revision if number is not None and number < len(made) else None
    return [
        fact
        for step in trace.writes.get(claim, ())
        if until is None or step.revision < until
        for fact in step.facts
        if isinstance(fact, _ENDINGS)
    ]


def _is_placed(sides: Sides) -> bool:
    return sides.aspect in (Aspect.NODES, Aspect.DEVICES) and bool(sides.recorded)


def _has(step: Step, *types: type) -> bool:
    return any(isinstance(fact, types) for fact in step.facts)


def _all(facts: Iterator[Fact], *types: type) -> bool:
    listed = list(facts)
    return bool(listed) and all(isinstance(fact, types) for fact in listed)
