"""The recorded scheduler's attempts to place a pod: when each was made, and its outcome.

The Event of a failed attempt has the attempt's instant. Its condition, the nomination, the claims
and the binding show only when they were sent, which may be seconds later (`lags`). A repeated Event
does not contain its own text, and from the third attempt on there may be no Event.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, DecidedAttempt, version_of
from app.analysis.replay.lags import Made, Refused, Waits, in_order
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.scheduling.reports import messages
from app.domain.values.timestamps import Instant


@dataclass(slots=True)
class Placing:
    """One successful attempt: when its first write was sent, its claims written, and its pod bound.

    By `free_at` the previous consumers had released all of its devices. `earliest` is the earliest
    possible instant of the attempt, where times are not exact. `cut_at` is the instant
    at which the pod was deleted or the recording ended, if not all of this was written by then.
    `written` is the version of the first write, which is later than the attempt; 0 if unknown.
    `seen_from` is the instant at which others could see that write, with all older versions.
    `has_failed` if the scheduler took back what it had reserved, `refused_at` when it said why the
    placement failed. Its claims were all there `since`.
    """

    began: Instant
    node: str = ""
    devices: list[str] = field(default_factory=list)
    claims_at: Instant | None = None
    bind_at: Instant | None = None
    free_at: Instant = Instant(0)
    earliest: Instant | None = None
    cut_at: Instant | None = None
    written: int = 0
    seen_from: Instant | None = None
    has_failed: bool = False
    since: Instant = Instant(0)
    refused_at: Instant | None = None

    def note_first_write(self, act: Act) -> None:
        """Notes a write of the placement, unless an earlier one is known."""
        if not self.written:
            self.written, self.seen_from = version_of(act.event), act.known


@dataclass(slots=True)
class PodTries:
    """The traces of the attempts of one pod in the log, in its order.

    `failures` are reports (instant of the attempt, note; empty when repeated), `refusals` are
    conditions (instant of the request, message). Where the source has resource versions, `seen` are
    the pod versions that the reports name, `written` those that the conditions created, in order.
    `was_refused` is True when the pod had a condition before the first of them. `stated` is the
    message of its condition where the recording was entered; empty without one.
    """

    failures: list[tuple[Instant, str]] = field(default_factory=list)
    refusals: list[tuple[Instant, str]] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    placings: list[Placing] = field(default_factory=list)
    was_refused: bool = False
    stated: str = ""

    def placing_of(self, act: Act) -> Placing:
        """The placing that a write belongs to: the last one, unless it has ended."""
        last = self.placings[-1] if self.placings else None
        if last is None or last.bind_at is not None or last.has_failed:
            self.placings.append(last := Placing(began=act.requested))
        last.note_first_write(act)
        return last

    def give_up(self, refused_at: Instant | None = None, *, has_failed: bool = False) -> None:
        """Forgets the first write of a placement that is not finished: its attempt has failed.

        The next one need not write the same node again. With `has_failed` nothing more is written.
        At `refused_at` others could see that the pod was refused.
        """
        for each in self.placings[-1:]:
            if each.bind_at is None:
                each.written, each.has_failed = 0, each.has_failed or has_failed
                each.refused_at = refused_at

    def seen_by(self, report: int) -> int:
        """The pod version that a report names; 0 where the source has none."""
        return self.seen[report] if report < len(self.seen) else 0

    def is_later(self, report: int, refusal: int) -> bool:
        """Whether a report's attempt is later than a condition: it saw the condition."""
        return refusal < len(self.written) and (0 < self.written[refusal] <= self.seen_by(report))


@dataclass(slots=True, kw_only=True)
class Try:
    """One recorded attempt, made between `first` and `last`, with its outcome.

    `also` are other messages that it may have had, where the log leaves that open. `is_exact` is
    True when the attempt's instant is recorded. `version` is that of the pod that it saw, 0 if
    unknown. `is_paired_by_time` is True when a condition counts as this attempt's although the
    report is a repetition, which does not contain its own text: the instants alone say so.
    `is_reported` is True when an Event reports the attempt. `written` is the version of the pod
    with the condition of a failed attempt, 0 if unknown.
    """

    instant: Instant
    first: Instant
    last: Instant
    tried: AttemptOutcome
    placing: Placing | None = None
    also: frozenset[str] = frozenset()
    is_exact: bool = True
    version: int = 0
    is_paired_by_time: bool = False
    is_reported: bool = False
    written: int = 0

    def came_to(self, ours: AttemptOutcome) -> bool:
        """Whether an attempt here had the same outcome. A pod that was never bound has no node."""
        tried = self.tried
        if not tried.node and not tried.message and tried.devices:
            return bool(ours.node) and ours.devices == tried.devices
        if self.placing is not None and (self.placing.cut_at or self.placing.refused_at):
            # The pod was deleted, or refused, or the recording ended, before all of its devices
            # were written.
            return ours.node == tried.node and set(tried.devices) <= set(ours.devices)
        return ours == tried or (not ours.node and ours.message in self.also)


@dataclass(slots=True)
class PodCourse:
    """The attempts of one pod, the number and the last of those made here, and how late it was."""

    tries: list[Try]
    number: int = 0
    made: Try | None = None
    made_at: Instant | None = None
    strayed: bool = False
    left_since: Instant | None = None
    late: int = 0

    def begun(self, tried: AttemptOutcome, now: Instant) -> Try:
        """The recorded attempt that this one is: the next, or a later one with the same outcome.

        Recorded attempts that have no cause here are skipped.
        """
        for number in range(self.number, len(self.tries)):
            each = self.tries[number]
            if each.first > now:
                break
            if each.came_to(tried):
                self.number = number
                return each
        return self.tries[self.number]

    def leave(self, now: Instant) -> Instant | None:
        """The instant until which an unrecorded placement is deferred; None: it counts now.

        A scheduler that had not seen what makes it possible tries the pod again when it does, at
        the latest after its back-off. The second attempt of a pod has a report, as the first one.
        """
        if any(each.placing is not None for each in self.tries[: self.number]):
            # The recorded pod is placed by now.
            return None
        if self.left_since is None:
            self.left_since = now
        until = Instant(self.left_since + tolerances.TABLE.unseen_try)
        has_second = not self.number and len(self.tries) > 1 and self.tries[0].is_reported
        if has_second and until < self.tries[1].first:
            return None
        return until if now < until else None


def waits_of(
    pods: Mapping[str, PodTries], writes: Iterable[Instant], refused: Refused = Refused()
) -> Waits:
    """The waits of the scheduler's requests, from the reports and conditions of all pods.

    Pairs of a report and a condition show the waits. For the first attempt of a pod the pair is
    certain. Later attempts may have no report of their own, and a report with the same message may
    be about another attempt. The order of all requests shows which pairs can be true together.
    """
    pairs = [pair for tries in pods.values() for pair in _pairs(tries)]
    sure, likely = (
        [(sent, made) for sent, made, is_first in pairs if is_first is wanted]
        for wanted in (True, False)
    )
    return Waits(in_order(sure), writes, in_order(likely), refused)


def attempts_of(
    tries: PodTries,
    waits: Waits,
    removed: Instant | None,
    slack: int = 0,
    *,
    are_apart: bool = False,
    have_waited: bool = False,
) -> list[Try]:
    """All attempts of a pod in order: reports, writes without a report, and placings.

    `slack` is the possible error of the recording's instants, in microseconds. With `are_apart` no
    condition is paired with a report by time alone: it belongs to an attempt of its own. With
    `have_waited` a placement may have waited longer than `waits` assumes.
    """
    refused, tried = _failures(tries, waits, slack, are_apart=are_apart)
    stated = messages.note(tries.stated)
    for placing in tries.placings:
        began = Instant(placing.began - slack)
        earliest = began if placing.earliest is None else placing.earliest
        made = waits.of(placing.began)
        if have_waited:
            made = replace(made, first=waits.longest(placing.began))
        last = made.last + tolerances.TABLE.sure_after + slack
        if not made.has_waited:
            last = max(last, placing.claims_at or 0)
        if placing.written and placing.seen_from is not None:
            # What has a later version was stored after the attempt.
            last = min(last, placing.seen_from)
        tried.append(
            Try(
                # While a pod is being bound it is not tried. So a failure before the first write
                # of the placement was earlier, however long that write had waited.
                # A claim that it writes may have been answered later than its first request came.
                instant=Instant(max(placing.began, min(placing.since, last))),
                first=Instant(
                    max(
                        min(made.first, earliest) - tolerances.TABLE.placed_before,
                        min(placing.free_at, earliest - tolerances.TABLE.placed_before),
                        placing.since,
                    )
                ),
                last=Instant(last),
                tried=AttemptOutcome(node=placing.node, devices=tuple(sorted(placing.devices))),
                placing=placing,
            )
        )
    tried = _in_order_of_attempts(tried)
    before: Instant | None = None
    version, message = 0, stated
    for each in tried:
        # An attempt without a report, such as a third one, saw at least the last version seen.
        version = each.version = max(each.version, version)
        if removed is not None and each.instant >= removed:
            each.instant = Instant(removed - 1)
        if before is not None:
            each.first = Instant(max(each.first, before + 1))
        each.first = Instant(min(each.first, each.instant))
        before = each.instant if each.is_exact else each.first
        if not each.tried.message and each.placing is None:
            each.tried = AttemptOutcome(message=_message_at(refused, each.instant) or stated)
            # The condition of the attempt before may have arrived after the pod was deleted.
            each.also = frozenset(
                (
                    message,
                    *(text for made, text in refused if made.first <= each.instant <= made.last),
                )
            )
        message = each.tried.message
    return tried


def _in_order_of_attempts(tries: Sequence[Try]) -> list[Try]:
    """The attempts of a pod in order: by time, where versions do not tell another order.

    A failed attempt came before a placement if its condition was stored before the placement's
    first write. Two servers may date these writes, and their clocks differ.
    """
    placed = [each for each in tries if each.placing is not None and each.placing.written]
    for each in tries:
        later = (
            other.instant
            for other in placed
            if other.placing is not None and 0 < each.written < other.placing.written
        )
        each.instant = Instant(min(each.instant, min(later, default=each.instant + 1) - 1))
    return sorted(tries, key=lambda each: each.instant)


def divided(placings: Sequence[Placing], until: Instant) -> list[Placing]:
    """The placings of a pod where another scheduler took over, whose first write came at `until`.

    What the first one had chosen and not written was lost: the rest is of a placing of its own.
    """
    begun = [each for each in placings if each.began < until]
    if not begun or (begun[-1].bind_at is not None and begun[-1].bind_at < until):
        return list(placings)
    last, others = begun[-1], [each for each in placings if each.began >= until]
    late = [at for at in (last.claims_at, last.bind_at) if at is not None and at >= until]
    has_claims = last.claims_at is not None and last.claims_at < until
    known = replace(last, bind_at=None, cut_at=until)
    rest = replace(last, began=min(late, default=until), earliest=until, written=0, seen_from=None)
    if has_claims:
        rest = replace(rest, claims_at=None, devices=[])
    else:
        known = replace(known, claims_at=None, devices=[], since=Instant(0))
    return [*begun[:-1], known, *((rest,) if late else ()), *others]


def attempts_decided(decided: Sequence[DecidedAttempt], tries: PodTries) -> list[Try] | None:
    """All attempts of a pod whose decisions are recorded; None where its writes show others.

    Each was made on the state that the scheduler had seen. The placings of `tries` are those that
    the writes show. An attempt that wrote nothing had the reason that an earlier one had stated.
    """
    if sum(each.is_placed for each in decided) != len(tries.placings):
        return None
    written = iter(tries.placings)
    tried: list[Try] = []
    reasons = [messages.note(tries.stated)] if tries.stated else []
    for each in decided:
        placing = next(written) if each.is_placed else None
        outcome = AttemptOutcome(message=each.message or (reasons[-1] if reasons else ""))
        if placing is not None:
            outcome = AttemptOutcome(node=placing.node, devices=tuple(sorted(placing.devices)))
        at = each.at if not tried else Instant(max(each.at, tried[-1].instant + 1))
        claims_at = placing.claims_at or 0 if placing is not None else 0
        tried.append(
            Try(
                instant=at,
                first=at,
                last=Instant(max(at + tolerances.TABLE.sure_after, claims_at)),
                tried=outcome,
                placing=placing,
                also=frozenset(reasons) if not (each.is_placed or each.message) else frozenset(),
            )
        )
        if each.message:
            reasons.append(each.message)
    return tried


def leave_under_way(pods: Iterable[Sequence[Try]], end: Instant) -> None:
    """Notes which placements of pods were still being written when the recording ended.

    They are those that began shortly before the end: within the time that other placements took.
    A run writes their missing parts after the end.
    """
    courses = list(pods)
    done = [each.placing for tries in courses for each in tries if each.placing is not None]
    least = tolerances.TABLE.sure_after
    to_claims = max([least, *(one.claims_at - one.began for one in done if one.claims_at)])
    to_binding = max(
        [
            least,
            *(one.bind_at - (one.claims_at or one.began) for one in done if one.bind_at),
        ]
    )
    for tries in courses:
        placing = tries[-1].placing if tries else None
        if placing is None or placing.bind_at is not None or placing.cut_at is not None:
            continue
        since, longest = placing.claims_at, to_binding
        if since is None:
            since, longest = placing.began, to_claims
        if end - since <= longest:
            placing.cut_at = end


_Refused = list[tuple[Made, str]]
"""Conditions: the time of the attempt, and the message."""


def _failures(
    tries: PodTries, waits: Waits, slack: int, *, are_apart: bool
) -> tuple[_Refused, list[Try]]:
    """The conditions of failed attempts, and these attempts; a reported condition adds none."""
    refused: _Refused = []
    failures: list[Try] = []
    notes = dict(enumerate(note for _, note in tries.failures))
    instants = [instant for instant, _ in tries.failures]
    with_condition: set[int] = set()
    by_time: set[int] = set()
    versions: dict[int, int] = {}
    for number, (sent, message) in enumerate(tries.refusals):
        made = waits.of(sent)
        version = tries.written[number] if number < len(tries.written) else 0
        note = messages.note(message)
        # The interval of a request that waited has its margin already.
        apart = 0 if made.has_waited else tolerances.TABLE.same_attempt
        near = [
            index
            for index, instant in enumerate(instants)
            if index not in with_condition
            and made.first - apart <= instant <= made.last + apart
            and notes[index] in ((note,) if are_apart else ("", note))
            and not tries.is_later(index, number)
        ]
        if near:
            index = min(near, key=lambda each: abs(instants[each] - made.middle))
            with_condition.add(index)
            versions[index] = version
            if not notes[index]:
                by_time.add(index)
            notes[index] = note
            # The report may have a later time than the condition, but the attempt was earlier.
            instant = instants[index] = min(instants[index], sent)
            refused.append((Made(first=instant, last=instant), note))
            continue
        if slack and (dated := _report_dated(tries, number, notes, with_condition)) is not None:
            with_condition.add(dated)
            versions[dated] = version
            refused.append((Made(first=instants[dated], last=instants[dated]), note))
            continue
        refused.append((made, note))
        # A later attempt that is reported saw the condition, which a coarse time may place after.
        seen = (each for index, each in enumerate(instants) if tries.is_later(index, number))
        before = min(seen, default=made.last + tolerances.TABLE.sure_after + slack + 1) - 1
        failures.append(
            Try(
                instant=Instant(min(made.middle, before)),
                first=Instant(min(made.first, before) - tolerances.TABLE.failed_before - slack),
                last=Instant(min(made.last + tolerances.TABLE.sure_after + slack, before)),
                tried=AttemptOutcome(message=note),
                is_exact=not made.has_waited,
                written=version,
            )
        )
    failures += (
        Try(
            instant=instant,
            first=Instant(instant - tolerances.TABLE.failed_before - slack),
            last=Instant(instant + tolerances.TABLE.sure_after + slack),
            tried=AttemptOutcome(message=notes[index]),
            version=tries.seen_by(index),
            is_paired_by_time=index in by_time,
            is_reported=True,
            written=versions.get(index, 0),
        )
        for index, instant in enumerate(instants)
    )
    return refused, failures


def _report_dated(
    tries: PodTries, refusal: int, notes: Mapping[int, str], others: Set[int]
) -> int | None:
    """The first report of the attempt that wrote a condition, as versions show; None without one.

    Where a source has no times of writes, a condition has the time of what came before it. Its
    attempt saw the condition before and not this one, and said the same.
    """
    sent, message = tries.refusals[refusal]
    return next(
        (
            index
            for index, (instant, _) in enumerate(tries.failures)
            if index not in others
            and notes[index] == messages.note(message)
            and abs(instant - sent) <= tolerances.TABLE.reported_before
            and tries.seen_by(index)
            and (not refusal or tries.is_later(index, refusal - 1))
            and not tries.is_later(index, refusal)
        ),
        None,
    )


def _pairs(tries: PodTries) -> Iterable[tuple[Instant, Instant, bool]]:
    """Pairs: when a condition was sent, when its attempt was made, and whether the pair is certain.

    A pair is certain for the first attempt of a pod: no other one can have the first condition.
    """
    for number, (sent, message) in enumerate(tries.refusals):
        note = messages.note(message)
        for index, (instant, text) in enumerate(tries.failures):
            if instant > sent + tolerances.TABLE.same_attempt:
                break
            if text != note or tries.is_later(index, number):
                continue
            is_first = not (index or number or tries.was_refused)
            if is_first or sent - instant <= tolerances.TABLE.reported_before:
                yield sent, min(sent, instant), is_first


def _message_at(refused: _Refused, instant: Instant) -> str:
    """The message of a failed attempt: of the condition that it wrote or left unchanged."""
    known = ""
    for made, message in refused:
        if made.first > instant + tolerances.TABLE.same_attempt:
            break
        known = message
    return known
