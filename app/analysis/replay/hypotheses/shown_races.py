"""Differences that tell of a race themselves, whatever a run gives.

A controller acts on its cache. Where what it says it missed was there a moment before or after, the
report is right for its cache; often it is all that is left of an act for an object that was gone.

A scheduler that places a pod, the claim controller and the collector each see the end of the pod at
another moment. What one of them has written, the others undo; which of them comes first depends on
milliseconds that no recording shows, and a run takes one of many orders. The outcome does not: the
same devices, and the same claim at the end or none.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from app.analysis.replay import tolerances
from app.analysis.replay.authors import CLAIMS, COLLECTOR, SCHEDULER
from app.analysis.replay.classes import UNPROVED, DifferenceClass, Judgement
from app.analysis.replay.differences import Aspect, DifferenceKey, Sides
from app.analysis.replay.facts import (
    Allocated,
    ConditionSet,
    DeletionAsked,
    EventSeen,
    Fact,
    FinalizerAdded,
    FinalizerRemoved,
    Nominated,
    NominationEnded,
    Released,
    Removed,
    Reserved,
    Unreserved,
    is_skip,
)
from app.analysis.replay.hypotheses.removals import (
    LATE_TEMPLATE,
    is_refused_claim,
    templates_named,
)
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import short_name
from app.domain.controllers.claims.caches import CACHE_LAG
from app.domain.controllers.eviction import reconciler as eviction
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant


def shown_race(sides: Sides, recorded: Trace) -> Judgement | None:
    """The judgement of reports that all tell of races; None for other differences.

    Only a report that an eviction was cancelled may be here alone.
    """
    if sides.aspect is not Aspect.SAID or sides.uid not in recorded.keys:
        return None
    details = {_detail(step, sides.uid, recorded) for step in sides.only_recorded}
    if sides.only_again:
        at_end = all(_is_cancelled_at_end(each, sides.uid, recorded) for each in sides.only_again)
        details.add(_CANCELLED if at_end else "")
    if not details or "" in details:
        return None
    return Judgement(reason=DifferenceClass.RACE, detail="; ".join(sorted(details)))


def is_shown_race(step: Step, pod: str, recorded: Trace) -> bool:
    """Whether a report about a pod tells of a race itself."""
    return bool(_detail(step, pod, recorded))


def _detail(step: Step, pod: str, recorded: Trace) -> str:
    if pod not in recorded.keys:
        return ""
    return next((text for text, is_one in _SHOWN.items() if is_one(step, pod, recorded)), "")


def _is_template_late(step: Step, pod: str, recorded: Trace) -> bool:
    named = templates_named([step], recorded.keys[pod], recorded)
    made = [at for key in named for at in recorded.templates.get(key, ())]
    is_late = any(at <= step.time <= at + CACHE_LAG for at in made)
    return is_late and all(map(is_refused_claim, step.facts))


def _is_template_missing(step: Step, pod: str, recorded: Trace) -> bool:
    """Whether no template was there, for a pod that had just gone."""
    key, gone = recorded.keys[pod], recorded.removed.get(pod)
    if gone is None or not gone <= step.time <= gone + CACHE_LAG:
        return False
    named = templates_named([step], key, recorded)
    is_there = any(_was_there(template, step.time, recorded) for template in named)
    return all(map(is_refused_claim, step.facts)) and not is_there


def _was_there(key: ObjectKey, at: Instant, recorded: Trace) -> bool:
    """Whether an object of this key may have been there at an instant."""
    uids = [uid for uid, each in recorded.keys.items() if each == key]
    made = recorded.templates.get(key, ())
    is_made = len(made) < len(uids) or any(each <= at for each in made)
    return is_made and any(at <= recorded.removed.get(uid, at) for uid in uids)


def _is_bound_in_vain(step: Step, pod: str, recorded: Trace) -> bool:
    note, gone = messages.binding_in_vain(recorded.keys[pod].name), recorded.removed.get(pod)
    if gone is None or not gone <= step.time <= gone + tolerances.TABLE.act_after:
        return False
    return all(isinstance(fact, EventSeen) and fact.note == note for fact in step.facts)


def _is_claim_gone(step: Step, pod: str, recorded: Trace) -> bool:
    """Whether a claim was gone, or to go, when it was written; that was asked shortly before.

    Which of the writes is refused depends on milliseconds. Parity: controllers.md 3.7.
    """
    namespace = recorded.keys[pod].namespace
    since = step.time - tolerances.TABLE.act_after
    texts = {
        text
        for uid, key in recorded.keys.items()
        if key[:2] == api_resources.RESOURCE_CLAIMS and key.namespace == namespace
        if any(
            since <= ends.get(uid, 0) <= step.time for ends in (recorded.marked, recorded.removed)
        )
        for text in messages.claim_gone(namespace, key.name)
    }
    said = {
        fact.message if isinstance(fact, ConditionSet) else fact.note
        for fact in step.facts
        if isinstance(fact, ConditionSet | EventSeen)
    }
    return bool(said) and said <= texts


def _is_skipped_late(step: Step, pod: str, recorded: Trace) -> bool:
    """Whether a pod was skipped because it was to be deleted, just before or after it was gone."""
    return all(map(is_skip, step.facts)) and _is_gone_about(step.time, pod, recorded)


def _is_cancelled_at_end(step: Step, pod: str, recorded: Trace) -> bool:
    """Whether the eviction of a pod was cancelled when the pod was gone.

    That is reported if the end of its reservation was seen before its own. Parity: controllers.md
    C20.
    """
    is_cancelled = all(
        isinstance(fact, EventSeen) and fact.note == eviction.CANCELLED for fact in step.facts
    )
    return is_cancelled and pod in recorded.evicted and _is_gone_about(step.time, pod, recorded)


def _is_gone_about(at: Instant, pod: str, recorded: Trace) -> bool:
    gone = recorded.removed.get(pod)
    return gone is not None and abs(at - gone) <= tolerances.TABLE.act_after


_POD_GONE = "the {} had not seen yet that the pod was gone"
_CANCELLED = "the end of the pod's reservation was seen before that of the pod, or after it"
_SHOWN = {
    _POD_GONE.format("scheduler"): _is_bound_in_vain,
    LATE_TEMPLATE: _is_template_late,
    _POD_GONE.format("claim controller"): _is_template_missing,
    "the claim was gone, or to go, when the scheduler wrote it": _is_claim_gone,
    "the pod was gone when the scheduler came to it": _is_skipped_late,
    _CANCELLED: _is_cancelled_at_end,
}


GIVEN_UP = Judgement(
    reason=DifferenceClass.RACE,
    detail="what was allocated for a pod that is gone was given up by others, or in other steps",
)
_COLLECTOR = short_name(COLLECTOR)
_WRITERS = frozenset(("", _COLLECTOR, *map(short_name, (SCHEDULER, CLAIMS))))
_ENDINGS = (Released, Removed, FinalizerRemoved, DeletionAsked)
_BEGINNINGS = (FinalizerAdded, Allocated, Nominated, NominationEnded)
_OUTCOMES = (Aspect.DEVICES, Aspect.FINAL)


def given_up(
    open_ones: Mapping[DifferenceKey, Sides],
    judged: Mapping[DifferenceKey, Judgement],
    recorded: Trace,
) -> Iterator[DifferenceKey]:
    """The differences of which all writes are about the end of a pod, and whose outcome is equal.

    It is not where devices, or the objects at the end, differ and nothing proves why (`judged`).
    """
    unproved = (key for key, each in judged.items() if each.reason in UNPROVED)
    wrong = {key[1] for key in (*open_ones, *unproved) if key[0] in _OUTCOMES}
    for key, sides in open_ones.items():
        steps = (*sides.only_recorded, *sides.only_again)
        if sides.aspect not in (Aspect.WRITES, Aspect.ORDER) or not steps:
            continue
        if wrong.isdisjoint(step.uid for step in steps) and all(
            step.writer in _WRITERS and _is_about_end(fact, step, recorded, late)
            for step, fact, late in _of_one_side(sides)
        ):
            yield key


def _of_one_side(sides: Sides) -> Iterator[tuple[Step, Fact, int]]:
    """The facts that only one side has, in whichever steps, and how late they may be.

    A run looks later at what no recorded act is about.
    """
    table = tolerances.TABLE
    for steps, others, late in (
        (sides.only_recorded, sides.only_again, table.act_after),
        (sides.only_again, sides.only_recorded, table.act_after + table.unseen),
    ):
        left = Counter((step.uid, step.writer, fact) for step in others for fact in step.facts)
        for step in steps:
            for fact in step.facts:
                if left[step.uid, step.writer, fact]:
                    left[step.uid, step.writer, fact] -= 1
                else:
                    yield step, fact, late


def _is_about_end(fact: Fact, step: Step, recorded: Trace, late: int) -> bool:
    """Whether a fact is lawful about the end of a pod, which was near."""
    match fact:
        case Unreserved(uid=uid):
            return _is_after(step, _ended(uid, recorded), late)
        case Reserved(uid=uid):
            return _is_near(step, _ended(uid, recorded), late)
        case FinalizerAdded() | Removed() if _is_near(step, recorded.marked.get(step.uid), late):
            return True
        case _ if isinstance(fact, _ENDINGS):
            return any(_is_after(step, at, late) for at in _ends(step, recorded))
        case _:
            is_one = isinstance(fact, _BEGINNINGS)
            return is_one and any(_is_near(step, at, late) for at in _ends(step, recorded))


def _ends(step: Step, recorded: Trace) -> Iterator[Instant | None]:
    """The ends of the pods that an object is for: itself, its owner, those it was reserved for."""
    if step.key[:2] == api_resources.PODS:
        yield _ended(step.uid, recorded)
        return
    owner = recorded.owner_of.get(step.uid, "")
    if step.writer == _COLLECTOR:
        yield recorded.removed.get(owner)  # it leaves what belongs to a pod that has only finished
        return
    for pod in {owner, *recorded.users.get(step.uid, ())} - {""}:
        yield _ended(pod, recorded)


def _ended(pod: str, recorded: Trace) -> Instant | None:
    """The instant from which a pod needs no claims: it has finished, or is removed."""
    ends = (recorded.finished.get(pod), recorded.removed.get(pod))
    return min((end for end in ends if end is not None), default=None)


def _is_after(step: Step, end: Instant | None, late: int) -> bool:
    return end is not None and 0 <= step.time - end <= late


def _is_near(step: Step, end: Instant | None, late: int) -> bool:
    return end is not None and abs(step.time - end) <= late
