"""The hypotheses about what a recording does not date, such as removals, and what was not seen."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from app.analysis.replay import tolerances
from app.analysis.replay.authors import CLAIMS
from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import ClaimsNamed, Created, EventSeen, Fact, Removed
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Process
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.writers import short_name
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.controllers import registry
from app.domain.controllers.claims import pod_sync
from app.domain.controllers.claims.caches import CACHE_LAG
from app.domain.controllers.garbage import pod_gc
from app.domain.controllers.pods import ClaimEntry
from app.domain.log import ObjectKey
from app.domain.values import api_resources, event_reasons, well_known
from app.domain.values.fields import meta
from app.domain.values.timestamps import Instant

LATE_TEMPLATE = "the claim controller had not seen yet that the template was made"
_POD_GC = short_name(registry.actor_of(pod_gc.NAME).user)

_OF_HARDWARE = (api_resources.NODES, api_resources.RESOURCE_SLICES)
_LATE_CLAIMS = (Created, Removed, ClaimsNamed)


def emptied(sides: Sides, namespace: str, recorded: Trace) -> Iterator[Hypothesis]:
    """A hypothesis about claims that may have been gone when a namespace was looked at.

    Their last removals were requested before that and answered after it, as far as the clocks of
    servers agree. They have no versions of their own, which would show when they were stored.
    """
    gone = frozenset(
        key
        for uid, key in recorded.keys.items()
        if key[:2] == api_resources.RESOURCE_CLAIMS and key.namespace == namespace
        if uid in recorded.removed
        if any(
            recorded.removable[uid] - recorded.skew <= step.time <= recorded.removed[uid]
            for step in sides.only_again
        )
    )
    if gone:
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="the claims of the namespace were removed before the answers that say so",
            field="removed_first",
            target=gone,
        )


def refused_reports(
    sides: Sides, pod: str, key: ObjectKey, recorded: Trace
) -> Iterator[Hypothesis]:
    """A hypothesis about Events that came when their namespace was to end, and were refused.

    An Event is sent after the act that it tells of. Only the run has it, which writes both at once.
    """
    if sides.aspect is not Aspect.SAID or sides.only_recorded or not sides.only_again:
        return
    if all(recorded.refused_from(key, step.time) for step in sides.only_again):
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="the Event came when the namespace was to end, and was refused",
            field="reported",
            target=pod,
        )


def claims_removed_last(pod: str, recorded: Trace) -> Iterator[Hypothesis]:
    """A hypothesis about claims of a pod that others than its controllers removed before it."""
    removed = frozenset(
        uid
        for uid, owner in recorded.owner_of.items()
        if owner == pod and uid in recorded.removed and uid in recorded.other_writers
    )
    if removed:
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="its claims were removed just before the next recorded write",
            field="removed_last",
            target=removed,
        )


def was_looked_at(sides: Sides, gone: Instant, recorded: Trace, slack: int) -> bool:
    """Whether the claim controller surely looked at a pod before it was gone.

    It takes keys in their order, so it had looked at this one when it sent a request, without a
    wait for the limit of its client, after it could have acted here. It may only just have begun.
    """
    acts = sorted(
        step.time
        for steps in recorded.writes.values()
        for step in steps
        if step.writer == short_name(CLAIMS)
    )
    due = min((step.time for step in sides.only_again), default=gone) + slack
    until = gone - tolerances.TABLE.act_after - slack
    waits = Waits((), acts)
    return any(due <= each <= until and due <= waits.longest(each) for each in acts)


def undated(sides: Sides, recorded: Trace) -> Iterator[Hypothesis]:
    """Hypotheses about removals, and about writes about nodes, that have no time."""
    yield from _removed_last(sides, recorded)
    yield from _written_last(sides, recorded)


def _removed_last(sides: Sides, recorded: Trace) -> Iterator[Hypothesis]:
    """A hypothesis about objects that were there when only this side did without them.

    The removal of a node or a slice has no time in watch streams. A scheduler that looked before it
    wrote nothing.
    """
    removed = frozenset(
        uid
        for uid, (first, last) in recorded.removed_within.items()
        if recorded.keys[uid][:2] in _OF_HARDWARE
        and any(first <= step.time <= last for step in sides.only_again)
    )
    if removed:
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="nodes or slices were removed just before the next recorded write",
            field="removed_last",
            target=removed,
        )


def _written_last(sides: Sides, recorded: Trace) -> Iterator[Hypothesis]:
    """A hypothesis about nodes that were still tainted when pods were tried.

    That a taint was taken away leaves no time in watch streams. The write then has that of what
    came before it, which may be much earlier.
    """
    steps = (*sides.only_recorded, *sides.only_again)
    late = frozenset(
        uid
        for (uid, first), last in recorded.nodes_within.items()
        if any(first <= step.time <= last + tolerances.TABLE.act_after for step in steps)
    )
    if late:
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="the node controller wrote just before the next recorded write",
            field="written_last",
            target=late,
        )


def gone_unseen(
    sides: Sides, key: ObjectKey, recorded: Trace, manager: Process
) -> Iterator[Hypothesis]:
    """A hypothesis about an object that was gone before the next process looked at it.

    That process writes the statuses of rules, and fails pods that are terminating. The old one sent
    nothing after it could have looked, no Lease shows a process that could have, and none is away
    for longer than `LATE_AFTER`.
    """
    gone, steps = recorded.removed.get(sides.uid), sides.only_again
    is_rule = key[:2] == api_resources.DEVICE_TAINT_RULES
    if is_rule and recorded.writes.get(sides.uid):
        return
    if gone is None or not (is_rule or all(step.writer == _POD_GC for step in steps)):
        return
    late = tolerances.TABLE.unseen if is_rule else pod_gc.ROUND
    since = Instant(min((step.time for step in steps), default=gone) - late)
    end = Instant(gone - tolerances.TABLE.act_after)
    pause = manager.pause_around(since)
    if pause is None or pause[1] - pause[0] < tolerances.TABLE.replaced_after:
        return
    is_there = manager.is_seen(since, end) or manager.is_one(*pause)
    is_there |= manager.is_led(Instant(since + tolerances.TABLE.act_after), end)
    if steps and not is_there and gone - since <= LATE_AFTER:
        yield Hypothesis(
            reason=DifferenceClass.TIMING,
            detail="its controller was replaced, and it was gone before the next one looked",
            field="unsynced" if is_rule else "uncollected",
            target=key,
        )


def removed_soon(sides: Sides, recorded: Trace) -> Iterator[Hypothesis]:
    """A hypothesis about pods whose removal was dated by a server whose clock is ahead.

    A removal has no version in an audit log, so only its time places it among other writes.
    """
    steps = (*sides.only_recorded, *sides.only_again)
    removed = frozenset(
        uid
        for uid, gone in (recorded.removed.items() if recorded.skew else ())
        if recorded.keys[uid][:2] == api_resources.PODS
        and any(step.time <= gone <= step.time + recorded.skew for step in steps)
    )
    if removed:
        yield Hypothesis(
            reason=DifferenceClass.TIMING,
            detail="the clock of the server that removed a pod is ahead of another one's",
            field="removed_soon",
            target=removed,
        )


def unseen(sides: Sides, uid: str, pod: ObjectKey, recorded: Trace) -> Iterator[Hypothesis]:
    """Hypotheses that the claim controller acted for a pod on an older state of the store."""
    made = [step for step in recorded.of_pod.get(uid, ()) if _has(step, Created)]
    gone = recorded.removed.get(uid)
    only = list(sides.facts())
    is_for_it = (
        only and sides.only_recorded and all(isinstance(fact, _LATE_CLAIMS) for fact in only)
    )
    if gone is not None and is_for_it and any(abs(s.time - gone) <= CACHE_LAG for s in made):
        yield Hypothesis(
            reason=DifferenceClass.RACE,
            detail="the claim controller had not seen yet that the pod was gone",
            field="seen_late",
            target=pod,
        )
    reports = [step for step in sides.only_recorded if any(map(is_refused_claim, step.facts))]
    if sides.aspect is not Aspect.SAID or not reports:
        return
    since = min(step.time for step in reports)
    for template in templates_named(reports, pod, recorded):
        seen = [step.time for step in made if abs(step.time - since) <= CACHE_LAG]
        if seen:
            yield Hypothesis(
                reason=DifferenceClass.RACE,
                detail=LATE_TEMPLATE,
                field="templates_seen",
                target=(template, pod, min(seen)),
            )


def remade(uid: str, recorded: Trace, manager: Process) -> Iterator[Hypothesis]:
    """A hypothesis about a finished pod that got a claim from each process of the controller.

    Parity: controllers.md C22, the second claim stays in the cache of its process for an hour.
    """
    made: dict[str, list[Instant]] = {}
    for step in recorded.of_pod.get(uid, ()):
        for fact in step.facts:
            if isinstance(fact, Created) and step.key[:2] == api_resources.RESOURCE_CLAIMS:
                tree = msgspec.json.decode(fact.content or "{}")
                entry = meta.annotation(tree, well_known.POD_CLAIM_NAME)
                made.setdefault(entry, []).append(step.time)
    later = [pair for instants in made.values() for pair in pairwise(instants[1:])]
    most = max(map(len, made.values()), default=0)
    if most > 2 and all(_is_of_another(manager, *pair) for pair in later):
        yield Hypothesis(
            reason=DifferenceClass.FINISHED_POD,
            detail="a new process of the claim controller made a claim for the pod again",
            field="remade",
            target=frozenset({(uid, most)}),
        )


def _is_of_another(manager: Process, before: Instant, now: Instant) -> bool:
    """Whether another process may have made a claim than the one before it, or forgotten that."""
    pause = manager.pause_before(now, tolerances.TABLE.replaced_after)
    return (pause is not None and before < pause[1]) or now - before >= tolerances.TABLE.remembered


def is_refused_claim(fact: Fact) -> bool:
    """Whether a fact is the report that a claim could not be made for a pod."""
    return isinstance(fact, EventSeen) and fact.reason == event_reasons.FAILED_CLAIM_CREATION


def templates_named(reports: list[Step], pod: ObjectKey, recorded: Trace) -> list[ObjectKey]:
    """The templates that reports about a pod say to be missing, and that exist there."""
    notes = [fact.note for each in reports for fact in each.facts if isinstance(fact, EventSeen)]
    return sorted(
        key
        for key in set(recorded.keys.values())
        if key[:2] == api_resources.RESOURCE_CLAIM_TEMPLATES
        and key.namespace == pod.namespace
        and any(_problem(key.name) in note for note in notes)
    )


def _problem(template: str) -> str:
    return pod_sync.lacks_template(ClaimEntry(name="", template=template)).text


def _has(step: Step, kind: type) -> bool:
    return any(isinstance(fact, kind) for fact in step.facts)
