"""Attempts of the recorded scheduler that a state shortly before them explains.

A scheduler decides on its cache, which follows the store, and takes some time to decide. So what it
did may be right for a state that others had changed when its first write came. A run has one state
at each instant; whether a recorded attempt is right for an earlier one is tried apart from it: the
attempt is made again on each state that the cache can have shown. Only the recorded outcome, to the
letter, proves that. Parity: controllers.md 1.1.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter, itemgetter
from typing import TypeAlias

from app.analysis.masks import masked
from app.analysis.replay import tolerances
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.classes import DifferenceClass, Judgement
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import (
    Bound,
    ConditionSet,
    EventSeen,
    Fact,
    Nominated,
    NominationEnded,
    Reserved,
    Unreserved,
    is_failed_attempt,
    is_placement,
    is_skip,
)
from app.analysis.replay.hypotheses.shown_races import is_shown_race
from app.analysis.replay.lags import Waits
from app.analysis.replay.proving.budget import Budget
from app.analysis.replay.traces import Trace
from app.analysis.replay.writers import short_name
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.scheduling.reports import messages
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt, attempt
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.log import Event, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values import condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

EARLIER_STATE = Judgement(
    reason=DifferenceClass.RACE,
    detail="the scheduler decided on a state that had just changed: on it, the outcome is as "
    "recorded",
)
_NAME = short_name(SCHEDULER)
_BY_SCHEDULER = frozenset(("", _NAME))
_PLACED = (Aspect.NODES, Aspect.DEVICES)
_OF_ATTEMPTS = (*_PLACED, Aspect.CONDITIONS, Aspect.SAID, Aspect.WRITES)
_SCHEDULED = "Scheduled"
_NEVER = Instant(2**62)
_UNDONE = Unreserved | NominationEnded
"""What the scheduler undoes when a pod that it placed cannot be bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenAttempt:
    """A recorded attempt for a pod, and the first and last instant of the states it may have seen.

    A failed one has its `message`, as the note of an Event. A placement has the masked
    `allocations` of the claims that were allocated with it, in the order of their uids, and its
    `node`; that is empty for a pod that was gone before it was nominated, with devices for any
    node.
    """

    pod: ObjectKey
    uid: str
    since: Instant
    until: Instant
    message: str = ""
    node: str = ""
    allocations: tuple[tuple[str, JsonObject], ...] = ()

    @property
    def is_placement(self) -> bool:
        """Whether the pod got a node or devices."""
        return bool(self.node or self.allocations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInFlight:
    """A claim with devices that were chosen after `since`, and written at `until`."""

    claim: ObjectKey
    since: Instant
    until: Instant
    allocation: JsonObject


MakeAgain: TypeAlias = Callable[[Sequence[SeenAttempt]], Awaitable[tuple[bool, int]]]
"""Makes attempts again on the states that they may have seen.

The result is whether each had the recorded outcome on one of them, and the work as a number of
events.
"""


async def _never(_attempts: Sequence[SeenAttempt]) -> tuple[bool, int]:
    return False, 0


class LookBack:
    """The question whether earlier states explain what the scheduler did about a pod."""

    def __init__(
        self, recorded: Trace, waits: Waits, budget: Budget, make_again: MakeAgain | None
    ) -> None:
        self._recorded, self._waits, self._budget = recorded, waits, budget
        self._make_again = make_again or _never

    async def explained(self, pod: str, open_ones: Iterable[Sides], again: Trace) -> list[Sides]:
        """The differences of a pod and its claims, of these, that earlier states explain."""
        recorded = self._recorded
        mine = [
            sides
            for sides in open_ones
            if subject_of(sides, recorded, again) == pod and _is_of_scheduler(sides, recorded)
        ]
        attempts = attempts_of(pod, mine, recorded, self._waits)
        if attempts is None or self._budget.is_spent:
            return []
        if not attempts:
            return [sides for sides in mine if sides.only_recorded]
        agree, work = await self._make_again(attempts)
        self._budget.note(work, is_whole=True)
        return mine if agree else []


def subject_of(sides: Sides, recorded: Trace, again: Trace) -> str:
    """The uid of the pod that a difference is about; the subject's own if it is about none.

    A claim without an owner is about the pod that it was allocated or reserved for.
    """
    uid = sides.uid
    owner = recorded.owner_of.get(uid) or again.owner_of.get(uid)
    key = recorded.keys.get(uid) or again.keys.get(uid)
    if owner or key is None or key.resource != "resourceclaims":
        return owner or uid
    if sides.aspect is Aspect.DEVICES:
        same = sum(1 for _ in takewhile(_are_equal, zip(sides.recorded, sides.again, strict=False)))
        given = [*recorded.allocations.get(uid, ())[same:], *again.allocations.get(uid, ())[same:]]
        return given[0].pod if given else uid
    users = {fact.uid for fact in sides.facts() if isinstance(fact, Reserved | Unreserved)}
    return users.pop() if len(users) == 1 else uid


def _are_equal(pair: tuple[object, object]) -> bool:
    return pair[0] == pair[1]


def _is_of_scheduler(sides: Sides, recorded: Trace) -> bool:
    """Whether the scheduler alone acted in a difference, apart from reports that tell of a race."""
    if sides.aspect is Aspect.SAID:
        return all(
            _message(fact) or is_placement(fact) or is_shown_race(step, sides.uid, recorded)
            for step in sides.only_recorded
            for fact in step.facts
        ) and all(_message(fact) or is_placement(fact) for fact in sides.facts("again"))
    steps = (*sides.only_recorded, *sides.only_again)
    return sides.aspect in _OF_ATTEMPTS and all(step.writer in _BY_SCHEDULER for step in steps)


def attempts_of(
    pod: str, differences: Collection[Sides], recorded: Trace, waits: Waits
) -> Sequence[SeenAttempt] | None:
    """The recorded attempts that the differences of a pod and its claims are about.

    Those whose reports tell of a race themselves are left out. None where an earlier state cannot
    explain them: another act than an attempt differs, or the pod is placed by the run alone.
    """
    key = recorded.keys.get(pod)
    if key is None or key.resource != "pods" or any(map(_differs_by_date, differences)):
        return None
    attempts: dict[tuple[Instant, str], SeenAttempt] = {}
    is_placed = any(each.aspect is Aspect.DEVICES and each.recorded for each in differences)
    is_new = is_shown = is_undone = False
    for step in (step for sides in differences for step in sides.only_recorded):
        if any(map(is_placement, step.facts)):
            is_told = any(isinstance(fact, EventSeen) for fact in step.facts)
            is_new, is_placed = is_new or is_told, is_placed or not is_told
        elif is_shown_race(step, pod, recorded):
            is_shown = True
        elif texts := {text for fact in step.facts if (text := _message(fact))}:
            since, until = _states(step.time, waits)
            text = max(texts)
            attempts[step.time, text] = SeenAttempt(
                pod=key, uid=pod, since=since, until=until, message=text
            )
        elif all(isinstance(fact, _UNDONE) for fact in step.facts):
            is_undone = True
        else:
            return None
    if is_undone and (pod in recorded.node_of or not (is_placed or is_shown)):
        return None  # nothing was in vain that would be undone
    again = [fact for sides in differences for fact in sides.facts("again")]
    if {_message(fact) for fact in again} & {each.message for each in attempts.values()}:
        return None  # both sides have the attempt, and tell of it in another way
    is_new |= any(map(is_placement, again)) or any(each.aspect in _PLACED for each in differences)
    if not is_placed:
        if not (is_new or attempts) and not any(each.only_recorded for each in differences):
            return _unwritten(pod, key, differences, recorded, waits)
        return None if is_new else list(attempts.values())
    placement = _placement(pod, key, recorded, waits)
    if placement is None or not all(
        _is_about(fact, placement) for sides in differences for fact in sides.facts("recorded")
    ):
        return None
    return [*attempts.values(), placement]


def _differs_by_date(sides: Sides) -> bool:
    """Whether a claim got the same devices, and only one side has a time for it."""
    undated = ([_undated(each) for each in side] for side in (sides.recorded, sides.again))
    return sides.aspect is Aspect.DEVICES and next(undated) == next(undated)


def _undated(allocation: JsonObject) -> JsonObject:
    return {name: value for name, value in allocation.items() if name != "allocationTimestamp"}


def _unwritten(
    pod: str, key: ObjectKey, differences: Collection[Sides], recorded: Trace, waits: Waits
) -> Sequence[SeenAttempt] | None:
    """The one attempt that the run alone reports, as one that came to what was said before it.

    Such an attempt writes nothing. None for several: a pod whose attempts all left nothing was not
    tried.
    """
    instants = {step.time for sides in differences for step in sides.only_again}
    said = recorded.conditions.get((pod, condition_types.POD_SCHEDULED), ())
    if len(instants) != 1:
        return None
    [at] = instants
    before = [step for step in said if step.time <= at]
    message = max(map(_message, before[-1].facts), default="") if before else ""
    again = {_message(fact) for sides in differences for fact in sides.facts("again")}
    if not message or _are_reported(again, pod, at, recorded):
        return None
    since, until = _states(at, waits)
    return [SeenAttempt(pod=key, uid=pod, since=since, until=until, message=message)]


def _are_reported(again: Set[str], pod: str, at: Instant, recorded: Trace) -> bool:
    """Whether an Event tells of what an attempt came to here, at the same instant."""
    said = (each for each in recorded.said.get(pod, ()) if again & set(map(_message, each.facts)))
    return any(abs(step.time - at) <= tolerances.TABLE.same_attempt for step in said)


def _is_about(fact: Fact, placement: SeenAttempt) -> bool:
    """Whether a report about a placed pod, if the fact is one, tells of this placement."""
    if not isinstance(fact, EventSeen) or not is_placement(fact):
        return True
    note = messages.assigned(placement.pod.namespace, placement.pod.name, placement.node)
    return fact == EventSeen(type=fact.type, reason=fact.reason, note=note)


def in_flight(recorded: Trace, waits: Waits) -> Iterator[ClaimInFlight]:
    """The recorded allocations, each with the instants between which it was chosen and written."""
    table = tolerances.TABLE
    for steps in recorded.allocations.values():
        for each in steps:
            since = Instant(waits.longest(each.time) - table.placed_before - table.claims_after)
            yield ClaimInFlight(
                claim=each.key, since=since, until=each.time, allocation=each.allocation
            )


def _message(fact: Fact) -> str:
    """The message of a failed attempt; empty for other facts."""
    if not is_failed_attempt(fact) or is_skip(fact):
        return ""
    match fact:
        case ConditionSet(message=message):
            return message
        case EventSeen(note=note, about="", action="", reporter=""):
            return note
        case _:
            return ""


def _states(written: Instant, waits: Waits) -> tuple[Instant, Instant]:
    """The first and the last instant of the states that an attempt may have seen."""
    table = tolerances.TABLE
    since = waits.longest(written) - table.sure_after
    return Instant(since), Instant(written + table.claims_after)


def _placement(pod: str, key: ObjectKey, recorded: Trace, waits: Waits) -> SeenAttempt | None:
    """The placement of a pod, if all that was allocated for it was allocated at once."""
    bound = recorded.node_of.get(pod)
    steps = [step for step in recorded.of_pod.get(pod, ()) if step.writer in _BY_SCHEDULER]
    given = [each for made in recorded.allocations.values() for each in made if each.pod == pod]
    nodes = {fact.node for step in steps for fact in step.facts if isinstance(fact, Nominated)}
    if bound is not None:
        nodes |= {fact.node for fact in bound.facts if isinstance(fact, Bound)}
    nodes = nodes or {_node_of(each.allocation) for each in given}
    dated = {each.is_dated for made in recorded.allocations.values() for each in made}
    if len(nodes) != 1 or len({each.uid for each in given}) != len(given):
        return None
    if len(dated) > 1 and not all(each.is_dated for each in given):
        return None
    placing = [step.time for step in steps if any(map(is_placement, step.facts))]
    placing += (each.time for each in given)
    if not placing:
        return None
    first = min(placing)
    allocations = sorted(((each.uid, each.allocation) for each in given), key=itemgetter(0))
    return SeenAttempt(
        pod=key,
        uid=pod,
        since=_states(first, waits)[0],
        until=first,
        node=nodes.pop(),
        allocations=tuple(allocations),
    )


def _node_of(allocation: JsonObject) -> str:
    """The only node on which the devices of an allocation are there; empty without such a node."""
    match allocation.get("nodeSelector"):
        case {"nodeSelectorTerms": [{"matchFields": [{"values": [str(node)]}]}]}:
            return node
        case _:
            return ""


class EarlierStates:
    """The states of a log, one after the other, and the attempts that are made again on them.

    `scheduler` is a new one: it holds the index of nodes, and its rules. It knew of claims that it
    had chosen devices for and not written yet (`in_flight`): the first of them, or more.
    """

    def __init__(
        self,
        profile: Profile,
        scheduler: SchedulingReconciler,
        attempts: Sequence[SeenAttempt],
        in_flight: Iterable[ClaimInFlight],
    ) -> None:
        self._views = LiveViews(profile)
        self._scheduler = scheduler
        self._left = list(attempts)
        self._last = max((each.until for each in attempts), default=Instant(0))
        self._since = Instant(0)
        self._in_flight = sorted(in_flight, key=attrgetter("until"))
        self._is_tried = False
        self.work = 0

    @property
    def agree(self) -> bool:
        """Whether each attempt has had the recorded outcome on one of the states so far."""
        return not self._left

    @property
    def is_over(self) -> bool:
        """Whether no attempt is left, or the log is beyond the instants of all."""
        return not self._left or self._since > self._last

    def follow(self, events: Iterable[Event]) -> None:
        """Makes the attempts again on the states of the next events, as long as one is left."""
        for event in events:
            self._try_until(event.stamp.time)
            if self.is_over:
                return
            self._fold(event)

    def end(self) -> None:
        """Makes them again on the last state of the log."""
        if not self.is_over:
            self._try_until(_NEVER)

    def _fold(self, event: Event) -> None:
        self._views.fold(event)
        self._scheduler.fold(event, self._views)
        self.work += 1
        if event.stamp.time > self._since:
            self._since, self._is_tried = event.stamp.time, False
        if event.is_about_object and event.key.resource != "events":
            self._is_tried = False

    def _try_until(self, end: Instant) -> None:
        """Makes those attempts again that may have seen the present state, which ends at `end`."""
        if self._is_tried:
            return
        self._is_tried = True
        due = [each for each in self._left if each.since < end and self._since < each.until]
        if not due:
            return
        self._try(due)
        known = [each for each in self._in_flight if each.since < end and self._since < each.until]
        put: list[JsonView] = []
        for each in known:
            tree = self._views.objects.get(each.claim)
            if tree is not None and dra.allocation(tree) is None:
                put.append(tree)
                self._views.allocated.add_in_flight(tree, each.allocation)
                self._try([one for one in due if each.since <= one.until])
        for claim in put:
            self._views.allocated.remove_in_flight(claim)

    def _try(self, due: Sequence[SeenAttempt]) -> None:
        for each in due:
            if each in self._left:
                self.work += 1
                if self._has_outcome(each):
                    self._left.remove(each)

    def _has_outcome(self, seen: SeenAttempt) -> bool:
        pod = self._views.objects.get(seen.pod)
        if pod is None or meta.uid(pod) != seen.uid or core.node_name(pod):
            return False
        made = attempt(
            self._scheduler.rules,
            self._views,
            self._scheduler.nodes,
            Verdicts(),
            pod_spec.read(pod),
            start=0,
            now=self._since,
            nominated=core.nominated_node_name(pod),
        )
        if not seen.is_placement:
            said, wanted = messages.note(made.message), messages.note(seen.message)
            return made.outcome != _SCHEDULED and said == wanted
        is_there = made.node == (seen.node or made.node)
        return made.outcome == _SCHEDULED and is_there and _given(made) == seen.allocations


def _given(made: Attempt) -> tuple[tuple[str, JsonObject], ...]:
    """The masked allocations of an attempt by the uids of their claims, in the order of uids."""
    fresh = [meta.uid(claim.tree) for claim in made.claims if claim.allocation is None]
    return tuple(
        sorted((uid, masked(each)) for uid, each in zip(fresh, made.allocations, strict=False))
    )
