"""The scheduler's attempts for one pod: their outcomes, what woke them, and when the next is due.

An attempt that found a node ends with the binding, whose steps are decisions of their own. Attempts
that only repeat what is already written share one decision for all pods of a step.
Parity: controllers.md 3.7, 4.1 and 4.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from app.analysis.explain import questions, sources
from app.analysis.explain.reasons import Reason
from app.domain.controllers.scheduling.planning import NAME
from app.domain.controllers.scheduling.queue import waiting_pods
from app.domain.log import Event, EventType
from app.domain.values import counts
from app.domain.values.fields import decision_body
from app.domain.values.timestamps import SECOND, Instant

SHOWN_MAX = 5
"""The number of attempts shown one by one, the newest first. The JSON has as many."""

ERROR = "Error"
FAILURES = frozenset(("Unschedulable", ERROR))
"""The outcomes after which a pod is tried again."""

_HELD_BACK = "not tried again until its claims can be used, whatever else happens"

_DONE = {
    EventType.OBJECT_CREATED: "was created",
    EventType.OBJECT_UPDATED: "was changed",
    EventType.OBJECT_DELETED: "was deleted",
}


def made_by_scheduler(decisions: Sequence[Event]) -> list[Event]:
    """The attempts among the decisions about a pod, newest first."""
    return [event for event in decisions if decision_body.read(event.object).controller == NAME]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedAttempts:
    """The number of attempts that repeated one without writing anything, and the last of them."""

    count: int
    last: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAttempt:
    """One attempt: the decision with which it began, and those of its binding, the first one first.

    `number` counts the attempts of the pod from 1. `failures` counts those in a row that failed in
    the same way, with this one, as the back-off does; it is 0 for one that has not failed. An
    attempt that no event woke came when the wait after the one `before` it was over, as after each
    error (`is_error`). `repeated` are the attempts behind it that wrote nothing; neither number
    counts them.
    """

    begun: Event
    number: int
    binding: tuple[Event, ...] = ()
    failures: int = 0
    is_error: bool = False
    before: "PodAttempt | None" = None
    repeated: RepeatedAttempts | None = None

    @property
    def last(self) -> Event:
        """The newest decision of the attempt."""
        return self.binding[-1] if self.binding else self.begun

    @property
    def noted_cause(self) -> int:
        """The last revision that woke the pod; the stamp has the one that began the step."""
        return decision_body.read(self.begun.object).cause or self.begun.stamp.cause

    @property
    def is_woken(self) -> bool:
        """Whether an event woke the pod after the attempt before."""
        before = self.before
        return before is None or not (before.is_error or before.noted_cause == self.noted_cause)

    @property
    def cause(self) -> int:
        """The revision that woke the pod for this attempt; 0 if none did."""
        return self.noted_cause if self.is_woken else 0


def of_decisions(
    decisions: Sequence[Event], repeated: Sequence[tuple[Event, int]] = ()
) -> list[PodAttempt]:
    """The attempts in the scheduler's decisions about a pod, both with the first one first.

    `repeated` are the decisions about attempts that wrote nothing, also for this pod, each with the
    scheduler's count of its attempts.
    """
    groups: list[list[Event]] = []
    for event in decisions:
        if groups and decision_body.read(event.object).inputs.binding_node:
            groups[-1].append(event)
        else:
            groups.append([event])
    attempts: list[PodAttempt] = []
    unfit = errors = number = 0
    is_error = False
    following = [group[0].revision for group in groups[1:]]
    for (begun, *binding), end in zip_longest(groups, following):
        counted = decision_body.read(begun.object).inputs.attempt or 1
        # Attempts without a decision of their own have repeated the one before them.
        unseen = max(0, counted - 1 - unfit - errors)
        unfit, errors = (unfit, errors + unseen) if is_error else (unfit + unseen, errors)
        # The scheduler's own count begins anew after an error.
        number = max(number + 1, counted)
        last = decision_body.read((binding or [begun])[-1].object)
        failures, has_failed = 0, last.outcome in FAILURES
        if has_failed:
            is_error = last.outcome == ERROR or not last.inputs.plugins
            unfit, errors = (unfit, errors + 1) if is_error else (unfit + 1, 0)
            failures = errors if is_error else unfit
        attempts.append(
            PodAttempt(
                begun=begun,
                number=number,
                binding=tuple(binding),
                failures=failures,
                # A decision without inputs does not say whether plug-ins refused the pod.
                is_error=has_failed
                and is_error
                and (last.outcome == ERROR or bool(last.inputs.attempt)),
                before=attempts[-1] if attempts else None,
                repeated=_repeated(
                    [
                        one
                        for one in repeated
                        if begun.revision < one[0].revision and (not end or one[0].revision < end)
                    ],
                    counted,
                ),
            )
        )
    return attempts


def _repeated(decisions: Sequence[tuple[Event, int]], counted: int) -> RepeatedAttempts | None:
    """The attempts after one with the scheduler's count `counted`; older ones may be left out."""
    if not decisions:
        return None
    last, number = decisions[-1]
    count = max(len(decisions), number - counted)
    return RepeatedAttempts(count=count, last=last.stamp.time)


def again(attempt: PodAttempt) -> Instant:
    """The end of the back-off after a failed attempt, or after the last one that repeated it."""
    return waiting_pods.backoff_end(_ended(attempt), _failures(attempt))


def _ended(attempt: PodAttempt) -> Instant:
    repeated = attempt.repeated
    return attempt.last.stamp.time if repeated is None else repeated.last


def _failures(attempt: PodAttempt) -> int:
    return attempt.failures + (0 if attempt.repeated is None else attempt.repeated.count)


def causes_of(attempts: Sequence[PodAttempt]) -> list[int]:
    """The revisions of the events that woke the attempts."""
    return [attempt.cause for attempt in attempts]


def reasons(
    attempts: Sequence[PodAttempt],
    causes: Mapping[int, Event],
    now: Instant,
    *,
    has_claims: bool = True,
) -> Iterator[Reason]:
    """The reasons for the attempts of a waiting pod; `causes` maps revisions to their events.

    `has_claims` is false of a pod that has a claim which it cannot use.
    """
    if not attempts:
        return
    last = attempts[-1]
    # The page already shows the message of the last attempt above these lines.
    known = decision_body.summary_of(last.last.object).message
    lines = [_line(attempt, causes, known) for attempt in shown(attempts)[::-1]]
    left_out = sum(each.repeated.count for each in attempts if each.repeated is not None)
    count = len(attempts) + left_out
    text = "1 attempt is recorded" if count == 1 else f"{count} attempts are recorded"
    if count > 1:
        end = last.begun.stamp.time if last.repeated is None else last.repeated.last
        lasted = sources.lasted(attempts[0].begun.stamp.time, end)
        text += " within a second" if lasted == "0s" else f" over {lasted}"
    if left_out:
        repeat = counts.verb(left_out, "repeats")
        text += f", {left_out} of which {repeat} the one before"
    following = _next(last, now) if has_claims else (Reason(text=_HELD_BACK),)
    yield Reason(text=text, children=(*following, *lines), count=count)


def failed_bindings(attempts: Sequence[PodAttempt]) -> Iterator[Reason]:
    """The failed bindings before the last attempt: their number, and the message of the last one.

    The message of the last attempt stands above, and hides those before it.
    """
    failed = [
        attempt.last
        for attempt in attempts
        if attempt.binding and decision_body.read(attempt.last.object).outcome in FAILURES
    ]
    if not failed or (len(failed) == 1 and failed[0] is attempts[-1].last):
        return
    last = failed[-1]
    text = f"its binding failed {counts.of(len(failed), 'time')}, "
    text += f"{'last ' if len(failed) > 1 else ''}at {sources.when(last.stamp.time)}"
    message = decision_body.summary_of(last.object).message
    text += f": {message}" if message else ""
    yield Reason(text=text, count=len(failed), revision=last.revision, is_kept=True)


def shown(attempts: Sequence[PodAttempt]) -> Sequence[PodAttempt]:
    """The attempts that are shown one by one."""
    return attempts[-SHOWN_MAX:]


def _line(attempt: PodAttempt, causes: Mapping[int, Event], known: str) -> Reason:
    """One attempt: its outcome, its message unless that equals `known`, and what woke it."""
    cause = causes.get(attempt.cause)
    woken = () if cause is None else (_woken(cause),)
    if attempt.before is not None and not attempt.is_woken:
        text = f"no event woke it: its wait after attempt {attempt.number - 1} was over"
        woken = (Reason(text=text),)
    text = f"attempt {attempt.number} {_outcome(attempt.begun, known)}"
    if repeated := attempt.repeated:
        often = "once" if repeated.count == 1 else f"{repeated.count} times"
        text += f", repeated {often} until {sources.when(repeated.last)}"
    binding = (
        Reason(text=f"its binding {_outcome(event, known)}", revision=event.revision)
        for event in attempt.binding
    )
    return Reason(text=text, children=(*woken, *binding), revision=attempt.begun.revision)


def _outcome(event: Event, known: str) -> str:
    """The time and the outcome of a decision, with its message unless that equals `known`."""
    text = f"at {sources.when(event.stamp.time)}: {decision_body.read(event.object).outcome}"
    message = decision_body.summary_of(event.object).message
    return f"{text}, {message}" if message and message != known else text


def _woken(cause: Event) -> Reason:
    if cause.type is EventType.DECISION_RECORDED:
        about = f"{cause.key.namespace}/{cause.key.name}".removeprefix("/")
        text = f"woken by a decision about {about}, made {sources.by(cause)}"
        return Reason(text=text, revision=cause.revision, about=cause.key)
    what = _DONE.get(cause.type, cause.type.value)
    text = f"woken by {questions.named(cause.key)}, which {what} {sources.by(cause)}"
    return Reason(text=text, revision=cause.revision, about=cause.key)


def _next(last: PodAttempt, now: Instant) -> Iterator[Reason]:
    """The instants at which the pod is tried again, as of its last attempt."""
    if not last.failures:
        return
    decision = decision_body.read(last.last.object)
    at, ready = _ended(last), again(last)
    length = waiting_pods.backoff_length(_failures(last))
    number = last.number + _failures(last) - last.failures
    backoff = f"back-off of {length // SECOND} s after attempt {number}"
    if decision.outcome == ERROR:
        yield Reason(text=f"tried again at {sources.when(ready)}, whatever happens ({backoff})")
    else:
        flush = waiting_pods.flush_end(at)
        # Parity: controllers.md 4.1: an empty active queue takes pods whose back-off goes on.
        early = (
            f"before {sources.when(ready)} only if no other pod is to be tried ({backoff})"
            if ready > now
            else "at once"
        )
        text = f"tried again when an event may help, {early}; at the latest after "
        yield Reason(text=f"{text}{sources.when(flush)}")
