"""Verification: are the log and the decisions of a history right?

The log is read twice. The first pass checks the stored log (`integrity`), collects what the second
pass needs, and follows the invariants from event to event. The second pass folds event by event. It
makes every decision of our controllers again from what it observed, checks it with its effects, and
checks every allocation that others wrote. Nothing is written. Events after one that cannot be
understood are checked in the first pass alone.

The second pass may be divided (`verify.parts`). The report is the same.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from anyio import create_task_group, lowlevel

from app.analysis.recordings import uncertainty
from app.analysis.verify import parts as verifying_parts
from app.analysis.verify.compare import Compared
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation, ViolationKind
from app.analysis.verify.parts import Cut, Deciders, Division, Part, PartFound, PartVerifier
from app.analysis.verify.reallocate import AllocationIndex
from app.analysis.verify.redecide import belongs
from app.analysis.views import features_of
from app.domain.allocation import Quirks
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import Event, EventType, HistoryInfo, Revision, doubts
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.domain.log.forks import INPUTS_END
from app.domain.log.pages import Page
from app.domain.objects.profile import RULES_GATE, Profile
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import recorded_doubts
from app.service.replays import integrity, second_opinion
from app.service.replays.integrity import Attestation, Integrity, IntegrityCheck
from app.service.replays.replaying import Progress, ReplayBounds, pages, silent, stored_pages
from app.service.replays.second_opinion import (
    OpinionBounds,
    OpinionReport,
    SecondReader,
    SelectorHistory,
)
from app.service.replays.snapshot_audit import SnapshotAudit

VIOLATIONS_MAX = 100
"""The most violations that a report names; all are counted."""

NOT_JUDGED = (
    "placements of pods",
    "evictions",
    "statuses of rules",
    "claims made from templates",
    "conditions and Events",
)
"""Writes of a recorded cluster's controllers that verification does not make again: a recording
holds no decisions. A decide replay makes them again."""

TURN_MAX = 100
"""Events that are checked before the loop runs other tasks: at most about as many milliseconds."""


class Workers(Protocol):
    """Other processes that verify parts of a history; `count` includes this process."""

    @property
    def count(self) -> int: ...

    def keep(self, events: Sequence[Event]) -> None:
        """Take the next events of the history, in order, before any part is verified."""
        ...

    async def start(self, workers: int) -> None:
        """Start so many workers if there are none; they may be ready later. Raises InputError."""
        ...

    async def verify(
        self, parts: Sequence[Part], reached: Callable[[int, Revision], None]
    ) -> Sequence[PartFound]:
        """Verify each part; `reached` gets a part's place and revision. Raises InputError."""
        ...


class VerifyOutcome(StrEnum):
    """The outcome of a verification.

    `VERIFIED`: everything was compared and agrees. `PARTLY`: everything that could be compared
    agrees, but something could not be compared, or the second opinion leaves a doubt. A second
    opinion says which answers of the evaluator are in doubt; it cannot say that the history is
    wrong. `FAILED`: something does not agree.
    """

    VERIFIED = "verified"
    PARTLY = "verified in part"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The report of a verification.

    `chain` is the result for the stored log. `violations` are broken invariants, counted by kind.
    `decisions` are those of our controllers, `effects` the events that followed from them.
    `allocations` are all those of the history; those that are no effects were decided again.
    `doubts` are what the recording lacks. For a recording (`is_recorded`), the writes in
    `NOT_JUDGED` are left out. In a fork, events before its first own event, `judged_after`, are
    judged with its parent. `opinion` is the second opinion about the selectors, or None.
    """

    history: str
    revision: Revision
    events: int
    chain: Integrity
    violations_counts: Mapping[ViolationKind, int]
    violations: tuple[Violation, ...]
    decisions: Compared
    effects: Compared
    allocations: Compared
    doubts: tuple[Doubt, ...] = ()
    is_recorded: bool = False
    judged_after: Revision = Revision(0)
    opinion: OpinionReport | None = None

    @property
    def violations_count(self) -> int:
        """The number of invariants that writes of a control plane broke."""
        return sum(count for kind, count in self.violations_counts.items() if kind.is_failure)

    @property
    def agrees(self) -> bool:
        """True when everything that could be compared is as it must be."""
        return (
            not self.chain.problem
            and not self.violations_count
            and all(compared.agrees for compared in self._compared)
        )

    @property
    def outcome(self) -> VerifyOutcome:
        """The outcome: verified, in part, or failed."""
        if not self.agrees:
            return VerifyOutcome.FAILED
        is_whole = all(compared.is_complete for compared in self._compared)
        is_sure = doubts.is_settled(self.doubts) and not self.violations_counts.get(
            ViolationKind.UNSURE, 0
        )
        is_shared = self.opinion is None or self.opinion.is_complete
        return (
            VerifyOutcome.VERIFIED if is_whole and is_sure and is_shared else VerifyOutcome.PARTLY
        )

    @property
    def _compared(self) -> tuple[Compared, ...]:
        return self.decisions, self.effects, self.allocations

    def to_json(self) -> JsonObject:
        """The JSON form for the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "events": self.events,
            "outcome": self.outcome.value,
            "agrees": self.agrees,
            "chain": self.chain.to_json(),
            "invariants": {
                "violations": self.violations_count,
                "kinds": {
                    kind.value: self.violations_counts.get(kind, 0) for kind in ViolationKind
                },
                "examples": [violation.to_json() for violation in self.violations],
            },
            "decisions": self.decisions.to_json(),
            "effects": self.effects.to_json(),
            "allocations": self.allocations.to_json(),
            "certainty": "sure" if doubts.is_settled(self.doubts) else "unsure",
            "doubts": msgspec.to_builtins(self.doubts),
            "notJudged": list(NOT_JUDGED) if self.is_recorded else [],
            "judgedAfter": self.judged_after,
            "secondOpinion": None if self.opinion is None else self.opinion.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """The sharing of a verification: `workers` verify all parts but the first."""

    workers: Workers | None = None
    division: Division = Division()


async def verify(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    deciders: Deciders,
    bounds: ReplayBounds,
    sharing: Sharing = Sharing(),
    attestation: Attestation = Attestation(),
    second: SecondReader | None = None,
    progress: Progress = silent,
) -> VerifyReport:
    """Verify the history up to `until`; see the module's text.

    The log is compared with the `attestation`. The `second` reader is asked here about every
    selector.
    """
    rules, workers = deciders.rules, sharing.workers
    ends = until >= (await log.head(history.id)).revision
    recorded = await recorded_doubts.doubts_of(log, history)
    ahead = _Ahead(
        division=sharing.division,
        invariants=InvariantWatch(
            switches_of(rules.profile, deciders.quirks), uncertainty.lacking(recorded)
        ),
        recorded=recorded,
        selectors=None if second is None else _selectors(deciders, second.bounds),
    )
    stored = await _stored(log, history, attestation)
    views = attestation.views
    audit = None if views is None else SnapshotAudit(views, history.id)
    await _read_ahead(ahead, stored, audit, log, history, until, bounds, workers, progress)
    parts = ahead.parts(1 if workers is None else workers.count, ends=ends)
    here = PartVerifier(parts[0], deciders)
    telling = _Telling(parts, until, progress)

    async def verify_here() -> PartFound:
        async for page in pages(log, history, parts[0].until, bounds):
            for number, event in enumerate(page, start=1):
                here.take_sound(event)
                if number % TURN_MAX == 0:  # Checking is pure computation: let others run.
                    await lowlevel.checkpoint()
            telling.reached(0, page[-1].revision)
            await lowlevel.checkpoint()
        return here.found()

    await ahead.ask(second, deciders.compiler, progress)
    if workers is None or len(parts) == 1:
        judged = [await verify_here()]
    else:
        judged = await _divided(parts, verify_here, workers, telling)
    for unfoldable in dict.fromkeys(part.unfoldable for part in judged if part.unfoldable):
        stored.note(unfoldable)
    return ahead.report(history, stored.result(), judged)


async def _divided(
    parts: Sequence[Part],
    verify_here: Callable[[], Awaitable[PartFound]],
    workers: Workers,
    telling: "_Telling",
) -> list[PartFound]:
    """Verify the first part here and the others on the workers."""
    there: list[PartFound] = []
    # Not beside the first part: loading a library while another thread computes takes many times
    # as long, because it gives way at every file.
    await workers.start(len(parts) - 1)

    async def verify_there() -> None:
        there.extend(await workers.verify(parts[1:], lambda n, at: telling.reached(n + 1, at)))
        for place in range(1, len(parts)):
            telling.reached(place, parts[place].until)

    async with create_task_group() as tasks:
        tasks.start_soon(verify_there)
        here = await verify_here()
    return [here, *there]


async def _stored(log: EventLog, history: HistoryInfo, attestation: Attestation) -> IntegrityCheck:
    """The integrity check with the stored settings; a replay as another release has others."""
    info = await log.find_history(history.name) or history
    signed = [*attestation.heads, *await log.kept_heads(info.id)]
    return IntegrityCheck(info, signed=signed, trusted=attestation.trusted)


def _selectors(deciders: Deciders, bounds: OpinionBounds) -> SelectorHistory:
    """A collector for the selectors and devices of the history."""
    return SelectorHistory(
        compiler=deciders.compiler,
        with_patches=features_of(deciders.rules.profile).patches,
        kept_max=bounds.evaluations_max,
    )


def switches_of(profile: Profile, quirks: Quirks) -> Switches:
    """The switches of the release that matter to the invariants."""
    features = features_of(profile)
    return Switches(
        # The rules are in force even in a release whose scheduler does not see them.
        rules=features.taint_rules or (profile.ignores_rules and profile.enabled(RULES_GATE)),
        taints=features.device_taints,
        patches=features.patches,
        distinct_by_last=quirks.q6,
        rules_unseen=profile.ignores_rules,
    )


class _Telling:
    """The progress of all parts together, reported as if they were verified in a row."""

    def __init__(self, parts: Sequence[Part], until: Revision, progress: Progress) -> None:
        self._begins = [part.after for part in parts]
        self._done = [0] * len(parts)
        self._until = until
        self._progress = progress

    def reached(self, place: int, revision: Revision) -> None:
        self._done[place] = max(0, revision - self._begins[place])
        self._progress("deciding again", Revision(sum(self._done)), self._until)


class _Decider(msgspec.Struct):
    """The part of a decision that names its controller."""

    controller: str = ""


_decider = msgspec.json.Decoder(_Decider)


@dataclass(slots=True)
class _Ahead:
    """The results of the first pass.

    `observers` are the decisions by the revision that they observed, `deciders` the controllers
    that made them. `cuts` are the places at which the history may be divided. `recorded` are the
    doubts of the history. `begin` is the first own event of a fork: earlier events were decided
    with other settings, and are judged with the parent. `paced_until` is the end of the recorded
    inputs that continue in the fork.
    """

    division: Division
    invariants: InvariantWatch
    recorded: tuple[Doubt, ...] = ()
    index: AllocationIndex = field(default_factory=AllocationIndex)
    observers: dict[Revision, list[Event]] = field(default_factory=dict)
    deciders: set[str] = field(default_factory=set)
    revision: Revision = Revision(0)
    begin: Revision = Revision(0)
    paced_until: Revision = Revision(0)
    events: int = 0
    cost: int = 0
    cuts: list[Cut] = field(default_factory=list)
    decision: Event | None = None
    selectors: SelectorHistory | None = None
    opinion: OpinionReport | None = None

    def take(self, event: Event, parts: Any) -> None:
        """Read one event, with the parts that its page holds."""
        self._note_cut(event)
        if self.selectors is not None:
            self.selectors.take(event)
        self.revision = event.revision
        self.events += 1
        self.cost += self.division.fold + self.division.check
        if event.type is EventType.HISTORY_FORKED:
            self.begin, self.paced_until = event.revision, Revision(0)
            self.cuts.clear()
        elif event.type is EventType.CLOCK_ADVANCED:
            is_end = self.begin and not self.paced_until and event.object == INPUTS_END
            self.paced_until = event.revision if is_end else self.paced_until
        elif event.type is EventType.DECISION_RECORDED:
            self.decision = event
            self.cost += self.division.decide
            observed = Revision(event.stamp.observed)
            self.observers.setdefault(observed, []).append(event)
            with suppress(msgspec.DecodeError):  # a log that was tampered with
                self.deciders.add(_decider.decode(event.body).controller)
        elif event.is_about_object:
            written = len(self.index.written)
            self.index.add(event, parts)
            self.cost += self.division.allocate * (len(self.index.written) - written)
        event.forget_tree()

    async def ask(
        self,
        second: SecondReader | None,
        compiler: SelectorCompiler,
        progress: Progress,
    ) -> None:
        """Ask for a second opinion about the selectors that were collected."""
        if second is None or self.selectors is None:
            return

        def tell(done: int, total: int) -> None:
            progress("asking for a second opinion", Revision(done), Revision(total))

        self.opinion = await second_opinion.compare(
            self.selectors,
            second.opinion,
            compiler=compiler,
            bounds=second.bounds,
            progress=tell,
        )

    def _note_cut(self, event: Event) -> None:
        """Note that a part may begin with this event, unless it is a decision's effect."""
        if self.events - (self.cuts[-1].events if self.cuts else 0) < self.division.apart:
            return
        if event.type is not EventType.DECISION_RECORDED and (
            self.decision is not None and belongs(event, self.decision)
        ):
            return
        self.cuts.append(self._here())

    def _here(self) -> Cut:
        return Cut(revision=self.revision, events=self.events, cost=self.cost)

    def parts(self, count: int, *, ends: bool) -> list[Part]:
        """The history in up to `count` parts; `ends` means that it was read to its end."""
        cuts = verifying_parts.divide(self.cuts, self._here(), count, self.division)
        begins = [cut.revision for cut in cuts]
        return [
            self._part(after, until, is_last=until == self.revision, ends=ends)
            for after, until in zip([self.begin, *begins], [*begins, self.revision], strict=True)
        ]

    def _part(self, after: Revision, until: Revision, *, is_last: bool, ends: bool) -> Part:
        observers = {
            observed: decisions
            for observed, decisions in self.observers.items()
            if (after <= observed and (is_last or observed < until))
            # A decision that observed a revision before this part, and is in it with its effects.
            or (observed < after and any(after < each.revision <= until for each in decisions))
        }
        return Part(
            after=after,
            until=until,
            is_last=is_last,
            ends=ends or not is_last,
            observers=observers,
            deciders=frozenset(self.deciders),
            index=self.index.after(after),
            lacking=tuple(doubt.kind for doubt in self.recorded if doubt.code == NEVER_SEEN),
            begun=self.begin,
            paced_until=self.paced_until,
        )

    def report(
        self, history: HistoryInfo, chain: Integrity, parts: Sequence[PartFound]
    ) -> VerifyReport:
        """The report, joined from the parts in order."""
        violations = [
            each
            for each in self.invariants.violations()
            if not self.begin or each.begin.revision > self.begin
        ]
        # The gravest come first, because the list is bounded.
        named = sorted(violations, key=lambda each: not each.kind.is_failure)[:VIOLATIONS_MAX]
        return VerifyReport(
            history=history.name,
            revision=parts[-1].revision,
            events=sum(part.events for part in parts),
            chain=chain,
            violations_counts=Counter(violation.kind for violation in violations),
            violations=tuple(named),
            decisions=verifying_parts.joined([part.decisions for part in parts]),
            effects=verifying_parts.joined([part.effects for part in parts]),
            allocations=verifying_parts.joined([part.allocations for part in parts]),
            doubts=self.recorded,
            is_recorded=history.is_recorded,
            judged_after=self.begin,
            opinion=self.opinion,
        )


async def _read_ahead(
    ahead: _Ahead,
    stored: IntegrityCheck,
    audit: SnapshotAudit | None,
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    bounds: ReplayBounds,
    workers: Workers | None,
    progress: Progress,
) -> None:
    """Check the stored rows, and read ahead up to the first event that cannot be understood."""
    if audit is not None:
        await audit.begin(until)
    async for rows in stored_pages(log, history, until, bounds):
        for row in rows:
            stored.take(row)
        last = Revision(max(row.event.revision for row in rows))
        if stored.readable_until is not None:
            last = min(last, stored.readable_until)
        if last > ahead.revision:
            events = await log.read(history.id, after=ahead.revision, until=last, limit=len(rows))
            page = Page(events)
            ahead.invariants.follow_page(page)
            for event, parts in page.splits:
                ahead.take(event, parts)
            if audit is not None:
                await audit.take(events)
            if workers is not None:
                workers.keep(events)
        progress("checking the chain", stored.revision, until)
        await lowlevel.checkpoint()
    await integrity.check_end(stored, log)
    for problem in audit.problems if audit is not None else ():
        stored.note(problem)
