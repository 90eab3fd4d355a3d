"""Recorded allocations, decided again: what a foreign scheduler chose, asked of our allocator.

An allocation is found by what an event did, whoever wrote it: a claim has one that it had not. The
allocator is asked for the recorded node and the recorded state before the write; the result must
mean the same as the recorded one (`meanings`). What cannot be asked is counted, by reason and
author, so that every allocation of a history is accounted for.

A real scheduler decides before it writes, several pods in a row, and writes them in any order: an
allocation written a little later may have been chosen already, a release written a little earlier
may not have been seen yet. Where the plain answer differs, such allocations are assumed one by
one, what was chosen for pods that were deleted then (`unwritten_claims`), and devices as of a
moment before (`unread_changes`); agreement under this is counted apart. What rests on deleted pods
is judged together at the end (`excuses`). The choice is older than the nomination of the pod: it is
made again from what was stored by then (`nominations`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from app.analysis import meanings
from app.analysis.verify import excuses
from app.analysis.verify.allocation_index import AllocationIndex, Written
from app.analysis.verify.class_lookup import ClassLookup
from app.analysis.verify.compare import (
    ComparisonCounts,
    Difference,
    DifferenceKind,
    Tally,
    first_difference,
)
from app.analysis.verify.in_flight import (
    WINDOW,
    AllocationsInFlight,
    allocation_written,
    devices_of,
    is_about_claim,
)
from app.analysis.verify.other_choices import ChoiceJudge
from app.analysis.verify.selector_judge import SelectorJudge
from app.analysis.verify.unread_changes import EarlierState, UnreadChanges
from app.analysis.verify.unseen_writes import (
    AllocatorInputs,
    DifferingAllocation,
    UnseenWrites,
    devices_given,
)
from app.analysis.verify.unwritten_claims import UnwrittenClaims
from app.analysis.views import LiveViews
from app.domain.allocation import Allocation, Allocator, Failure, Quirks
from app.domain.controllers import pods
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.looks import UNDATED
from app.domain.log.records import Loss, named_author
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

ASSUMED_MAX = 64
"""How many allocations are assumed to be in flight before an answer counts as different."""

CHOSEN_ANEW = "another scheduler may have taken over after the nomination of the pod"
"""The reason why an allocation is not comparable that only such a one would have chosen."""

UNRECORDED = "a write that it depends on was not recorded, or without its body"
"""The reason why an allocation is not comparable that such a write can explain."""


class AllocationChecker:
    """Checks each allocation while a log is folded event by event; see the module's text."""

    def __init__(
        self,
        index: AllocationIndex,
        views: LiveViews,
        *,
        compiler: SelectorCompiler,
        quirks: Quirks,
        schemas: Schemas,
        lacking: Sequence[str] = (),
    ) -> None:
        """`lacking` are kinds that decisions need and of which no object was recorded."""
        self._index = index
        self._lacking = ", ".join(lacking)
        self._views = views
        self._schemas = schemas
        self._compiler = compiler
        self._quirks = quirks
        self._tally = Tally()
        self._in_flight = AllocationsInFlight(index, views)
        self._unwritten = UnwrittenClaims(index, views, self._in_flight)
        self._unseen = UnseenWrites(index, views)
        self._unread = UnreadChanges(views)
        self._selectors = SelectorJudge(index, views, self._unseen, WINDOW)
        self._choices = ChoiceJudge(views, quirks)

    def begin(self, index: AllocationIndex, lacking: Sequence[str]) -> None:
        """Judge with what an index says, which was not known when events were folded ahead."""
        self._index.become(index)
        self._lacking = ", ".join(lacking)

    def follow(self, event: Event) -> None:
        """Take an event in that is not judged here: what it frees may be assumed in use later."""
        self._unseen.follow(event)
        self._unread.follow(event)
        self._unwritten.follow(event)
        if is_about_claim(event):
            self._in_flight.note(event, self._held(event), allocation_written(event))

    def before(self, event: Event, *, is_ours: bool) -> None:
        """Decide again when the event allocates a claim; the views stand before it.

        What is ours, the effect of a decision that was made again, is compared as such.
        """
        self._unseen.follow(event)
        self._unread.follow(event)
        self._unwritten.follow(event)
        if not is_about_claim(event):
            if event.type is EventType.GAP_OBSERVED and event.key.resource == "resourceclaims":
                self._not_comparable(
                    event, "a write of the claim was not recorded, or without its body"
                )
            return
        held, allocation = self._held(event), allocation_written(event)
        self._in_flight.note(event, held, allocation)
        if allocation is None or allocation == held:
            return
        old = self._views.objects.get(event.key)
        if event.stamp.verb.startswith("delete"):
            # A deletion allocates nothing: it shows what an unrecorded write did.
            self._not_comparable(event, "the claim was allocated when it was first seen")
        elif is_ours:
            self._tally.effect()
        elif old is None or meta.uid(old) != event.uid:
            self._not_comparable(event, "the claim was allocated when it was first seen")
        elif held is None and _is_look(event):
            self._not_comparable(event, "several changes were seen as one")
        elif held is None:
            self._check(event, old, allocation)
        elif self._meaning(held) != self._meaning(allocation):
            self._not_comparable(event, "it took the place of another allocation")

    def result(self) -> ComparisonCounts:
        """The result of the comparisons so far."""
        return self._tally.result()

    def _held(self, event: Event) -> JsonObject | None:
        """The allocation that the claim has before the event."""
        old = self._views.objects.get(event.key)
        held = None if old is None else dra.allocation(old)
        return held if isinstance(held, dict) else None

    def _not_comparable(self, event: Event, reason: str) -> None:
        self._tally.not_comparable(reason, event.stamp.actor.user)

    def _meaning(self, allocation: JsonView) -> JsonObject:
        return meanings.of_allocation(allocation, self._schemas)

    def _check(self, event: Event, claim: JsonObject, allocation: JsonObject) -> None:
        name, pod = self._place(event, allocation)
        reason = self._compare(event, claim, allocation, name, pod)
        if not reason:
            return
        refusal = self._selectors.refusal(event, claim, allocation)
        if refusal:
            recorded = self._meaning(allocation)
            again = {**recorded, "refused": refusal}
            judged = DifferenceKind.VIOLATION, (refusal,)
            self._note_different(event, name or "an unknown node", recorded, again, judged)
        else:
            self._not_comparable(event, reason)

    def _compare(
        self,
        event: Event,
        claim: JsonObject,
        allocation: JsonObject,
        name: str,
        pod: JsonObject | None,
    ) -> str:
        """Decides again on a node, and counts the comparison; why not, if that cannot be done."""
        if not name:
            return "the node of the allocation is not recorded"
        node = self._views.objects.get(ObjectKey("", "nodes", "", name))
        if node is None:
            return "the node's object is not recorded"
        wanted = self._claims_of(pod, claim)
        place = next(index for index, wanted_claim in enumerate(wanted) if wanted_claim is claim)
        recorded = self._meaning(allocation)

        question = DifferingAllocation(
            event=event, node=node, wanted=wanted, place=place, recorded=recorded, answers=()
        )

        def decide(inputs: AllocatorInputs) -> list[JsonObject]:
            return self._answers(question, inputs)[0]

        here = self._known(event, node)
        answers, assumed, used = self._attempt(question, here)
        if assumed is not None:
            self._tally.authors[event.stamp.actor.user] += 1
            if assumed:
                self._tally.concurrent()
            else:
                self._tally.same()
            if used:
                self._note_excuse(question, here)
            return ""
        if self._index.may_be_chosen_anew(event.revision) and self._agrees_anew(question):
            return CHOSEN_ANEW
        differing = replace(question, answers=answers)
        if self._unseen.may_explain(differing, decide):
            return UNRECORDED
        if self._lacking:
            return f"the recording has no {self._lacking}"
        if self._is_open(here, differing):
            return "the recording ends while another claim was allocated"
        devices = devices_given(recorded)
        alike = next((each for each in answers if devices_given(each) == devices), answers[0])
        judged = self._judged(differing, claim, allocation, alike, decide)
        self._note_different(event, name, recorded, alike, judged)
        return ""

    def _known(self, event: Event, node: JsonObject) -> AllocatorInputs:
        """The state from which the allocation of an event was chosen on a node."""
        state = self._unread.at_choice(self._in_flight.chosen_by(event), node)
        return AllocatorInputs(
            inventory=state.inventory, allocated=self._views.allocated, objects=state.objects
        )

    def _agrees_anew(self, question: DifferingAllocation) -> bool:
        """Whether one who took over after the nomination would choose what is recorded."""
        self._in_flight.is_chosen_anew = True
        try:
            here = self._known(question.event, question.node)
            return self._attempt(question, here)[1] is not None
        finally:
            self._in_flight.is_chosen_anew = False

    def _attempt(
        self, question: DifferingAllocation, here: AllocatorInputs
    ) -> tuple[list[JsonObject], int | None, frozenset[str]]:
        """The answers from now, how much an answer like the recorded one assumes, and which pods.

        That answer may be one of a moment before. Without it the number is None.
        """
        answers, assumed, used = self._answers(question, here)
        if answers[-1] == question.recorded:
            return answers, assumed, used
        for each in self._earlier(question, answers):
            inputs = replace(here, inventory=each.inventory, objects=each.objects)
            then, _, used_then = self._answers(question, inputs)
            if then[-1] == question.recorded:
                return answers, 1, used_then
            used |= used_then
        return answers, None, used

    def _note_excuse(self, question: DifferingAllocation, here: AllocatorInputs) -> None:
        """Note which deleted pods an agreement needs."""

        def attempt(without: frozenset[str]) -> tuple[bool, frozenset[str]]:
            _, assumed, used = self._attempt(replace(question, without=without), here)
            return assumed is not None, used

        if needed := excuses.alternatives(attempt):
            author, node = question.event.stamp.actor.user, meta.name(question.node)
            excuse = excuses.Excuse(author=author, node=node, alternatives=needed)
            self._tally.excuses.append(excuse)

    def _judged(
        self,
        differing: DifferingAllocation,
        claim: JsonObject,
        allocation: JsonObject,
        alike: JsonObject,
        decide: Callable[[AllocatorInputs], list[JsonObject]],
    ) -> tuple[DifferenceKind, tuple[str, ...]]:
        """The kind of a difference, with the rules that it breaks in every state that was known."""
        event, node = differing.event, differing.node
        latest = self._unread.at_choice(self._in_flight.chosen_by(event), node)
        held = {each.key: each.as_object for each in self._in_flight.not_yet_freed(event)}
        judged = self._choices.judge(node, claim, allocation, {**held, **latest.objects})
        states = self._earlier(differing, differing.answers)
        while judged[0] is DifferenceKind.VIOLATION and (state := next(states, None)) is not None:
            then = self._choices.judge(node, claim, allocation, {**held, **state.objects})
            if then[0] is not DifferenceKind.VIOLATION:
                allocated = self._views.allocated
                alike = decide(
                    AllocatorInputs(
                        inventory=state.inventory, allocated=allocated, objects=state.objects
                    )
                )[0]
                judged = then
        if "refused" in alike and judged[0] is DifferenceKind.OTHER_CHOICE:
            # There is no other choice: the claims of the pod do not fit together.
            return DifferenceKind.DIFFERENT, ()
        return judged

    def _earlier(
        self, question: DifferingAllocation, answers: Sequence[JsonObject]
    ) -> Iterator[EarlierState]:
        """The states that may have been known when the allocation was chosen."""
        allocations = (question.recorded, *answers)
        made, event = self._in_flight.made, question.event
        since, chosen_by = self._in_flight.decided_from(event), self._in_flight.chosen_by(event)
        return self._unread.earlier(since, made, allocations, question.node, chosen_by)

    def _answers(
        self, question: DifferingAllocation, inputs: AllocatorInputs
    ) -> tuple[list[JsonObject], int, frozenset[str]]:
        """The answers from inputs, while others are assumed in flight one by one; their number.

        The last answer is the recorded one, if any assumption leads to it. The third part are the
        deleted pods of which claims are assumed.
        """
        assumed: list[Written] = []
        held = self._in_flight.not_yet_freed(question.event)
        used: set[str] = set()
        recorded = question.recorded
        try:
            for each in held:
                inputs.allocated.add_in_flight(each.claim, each.allocation)
            answers = [self._decide(inputs, question.node, question.wanted, question.place)]
            while answers[-1] != recorded and len(assumed) < ASSUMED_MAX:
                other = self._in_flight.another(
                    question.event, recorded, answers[-1], [*held, *assumed]
                )
                others = [other] if other else []
                if not other:
                    pod, others = self._in_vain(question, inputs, answers[-1], assumed)
                    used.add(pod)
                if not others:
                    break
                for each in others:
                    inputs.allocated.add_in_flight(each.claim, each.allocation)
                assumed += others
                answers.append(self._decide(inputs, question.node, question.wanted, question.place))
        finally:
            for each in (*held, *assumed):
                inputs.allocated.remove_in_flight(each.claim)
        return answers, len(assumed), frozenset(used - {""})

    def _in_vain(
        self,
        question: DifferingAllocation,
        inputs: AllocatorInputs,
        again: JsonObject,
        assumed: Sequence[Written],
    ) -> tuple[str, list[Written]]:
        """The devices chosen differently that the claims of a pod that ended would get."""
        chosen = devices_of(again) - devices_of(question.recorded)
        uids = {other.uid for other in assumed}
        node = self._node(inputs, question.node)
        for vain in self._unwritten.in_vain(question.event, node, question.wanted):
            claims = vain.waiting.claims
            if not chosen or not uids.isdisjoint(vain.waiting.claim_uids):
                continue
            if vain.waiting.uid in question.without:
                continue
            answer = self._allocate(inputs, question.node, list(claims.values()))
            if not isinstance(answer, Allocation):
                continue
            results = answer.allocation_results(str)
            if any(chosen & devices_of(each) for each in results):
                return vain.waiting.uid, [
                    Written(
                        revision=vain.revision,
                        time=vain.time,
                        key=key,
                        uid=meta.uid(claim),
                        allocation=each,
                    )
                    for (key, claim), each in zip(claims.items(), results, strict=True)
                ]
        return "", []

    def _note_different(
        self,
        event: Event,
        node: str,
        recorded: JsonObject,
        again: JsonObject,
        judged: tuple[DifferenceKind, tuple[str, ...]],
    ) -> None:
        kind, broken = judged
        author = event.stamp.actor.user
        self._tally.authors[author] += 1
        path, left, right = first_difference(recorded, again) or ("", None, None)
        self._tally.different(
            Difference(
                revision=event.revision,
                subject=f"{event.key} on {node}, written by {named_author(author)}",
                path=path,
                recorded=left,
                again=right,
                recorded_tree=recorded,
                again_tree=again,
                kind=kind,
                broken=broken,
                objects=(str(event.key),),
            )
        )

    def _place(self, event: Event, allocation: JsonObject) -> tuple[str, JsonObject | None]:
        """The node that was chosen, and the pod for which."""
        pod = None
        node = dra.selected_node(allocation)
        for consumer in dra.consumers(event.object):
            if consumer.resource != "pods":
                continue
            key = ObjectKey("", "pods", event.key.namespace, consumer.name)
            consumer_pod = self._views.objects.get(key)
            if consumer_pod is not None and meta.uid(consumer_pod) == consumer.uid:
                pod = consumer_pod
            node = node or self._index.node_of_pod.get(consumer.uid, "")
            break
        return node, pod

    def _claims_of(self, pod: JsonObject | None, claim: JsonObject) -> list[JsonObject]:
        """The claims of the pod that are not allocated yet, in its order: decided together."""
        claims: list[JsonObject] = []
        for named in () if pod is None else pods.named_claims(pods.facts(pod)):
            namespace = meta.namespace(claim)
            key = ObjectKey(api_groups.RESOURCE, "resourceclaims", namespace, named.name or "")
            tree = self._views.objects.get(key)
            is_new = tree is not None and all(tree is not other for other in claims)
            if tree is not None and is_new and not dra.allocation(tree):
                claims.append(tree)
        return claims if any(tree is claim for tree in claims) else [claim]

    def _is_open(self, inputs: AllocatorInputs, differing: DifferingAllocation) -> bool:
        """Whether claims in flight at the end of the recording may be why an allocation differs.

        Their pods have no node yet: they may have been decided before, and written after the end.
        What each would get on the node is assumed in force, as if that had been recorded.
        """
        node, wanted, recorded = differing.node, differing.wanted, differing.recorded
        waiting = self._unwritten.under_way(differing.event, node, wanted)
        assumed: list[JsonObject] = []
        again = differing.answers[0]
        try:
            while again != recorded and len(assumed) < ASSUMED_MAX:
                chosen = devices_of(again) - devices_of(recorded)
                for claim in waiting:
                    answer = self._allocate(inputs, node, [claim])
                    tree = (
                        answer.allocation_results(str)[0] if isinstance(answer, Allocation) else {}
                    )
                    if chosen & devices_of(tree):
                        inputs.allocated.add_in_flight(claim, tree)
                        assumed.append(claim)
                        waiting.remove(claim)
                        again = self._decide(inputs, node, wanted, differing.place)
                        break
                else:
                    return False
        finally:
            for claim in assumed:
                inputs.allocated.remove_in_flight(claim)
        return again == recorded

    def _decide(
        self, inputs: AllocatorInputs, node: JsonObject, wanted: Sequence[JsonObject], place: int
    ) -> JsonObject:
        answer = self._allocate(inputs, node, wanted)
        match answer:
            case Allocation():
                return self._meaning(answer.allocation_results(str)[place])
            case Failure(text=text):
                return {"refused": text}
            case _:
                return {"refused": "does not fit on the node"}

    def _allocate(
        self, inputs: AllocatorInputs, node: JsonObject, wanted: Sequence[JsonObject]
    ) -> object:
        allocator = Allocator(
            inputs.inventory,
            ClassLookup(self._views, inputs.objects),
            inputs.allocated,
            self._views.features,
            compiler=self._compiler,
            quirks=self._quirks,
        )
        return allocator.allocate(self._node(inputs, node), wanted)

    def _node(self, inputs: AllocatorInputs, node: JsonObject) -> JsonObject:
        """A node as it is in the inputs."""
        return inputs.objects.get(ObjectKey(*api_resources.NODES, "", meta.name(node))) or node


def _is_look(event: Event) -> bool:
    """Whether the event shows what several changes made of an object, at times unknown."""
    origin = event.stamp.origin
    if origin is None or Loss.COLLAPSED not in origin.losses:
        return False
    return origin.time_quality in UNDATED
