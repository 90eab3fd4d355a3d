"""Verification: the check of a history's log and decisions.

There are two passes. The first one checks the stored log (`integrity`), collects what the second
pass needs, and follows the invariants from event to event. The second pass gets the events that
were checked; those beyond a bound are read again (`kept_events`). It folds event by event. It
makes every decision of our controllers again from what it observed, checks it with its effects, and
checks every allocation that others wrote. Nothing is written. Events after one that cannot be
understood are checked in the first pass alone.

The second pass may be divided (`verify.parts`). The report is the same.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Protocol

import msgspec
from anyio import create_task_group, lowlevel

from app.analysis.chronicle import Chronicle
from app.analysis.recordings import recorded_gates, uncertainty
from app.analysis.verify import parts as verifying_parts
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import ComparisonCounts
from app.analysis.verify.invariants import InvariantWatch, Switches, Violation, ViolationKind
from app.analysis.verify.parts import Deciders, Division, PartFindings, PartVerifier, VerifiedPart
from app.analysis.views import features_of, projections_of
from app.domain.allocation import Quirks
from app.domain.controllers import registry
from app.domain.log import CLOCKS, Event, HistoryInfo, Revision, doubts
from app.domain.log.doubts import Doubt
from app.domain.log.forks import INPUTS_END
from app.domain.objects import profile as profiles
from app.domain.objects.profile import RULES_GATE, Profile
from app.domain.values.json_tree import JsonObject
from app.ports import EventLog
from app.service import moments, recorded_doubts
from app.service.folding.kept_chronicles import ChronicleStore
from app.service.replays import integrity
from app.service.replays.chronicle_audit import ChronicleAudit
from app.service.replays.first_pass import FirstPass, conclude, read_ahead
from app.service.replays.integrity import (
    FORGED_HEAD,
    Attestation,
    Integrity,
    IntegrityCheck,
    SettingsProof,
)
from app.service.replays.kept_events import KeptEvents
from app.service.replays.replaying import Progress, ReplayBounds, silent, stored_pages
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
    "the order and number of reservations in writes of others than kube-scheduler and the claim "
    "controller, and in patches",
    "what drivers report of the devices that a claim has",
    "the number of allocated devices in the status of pools",
    "conditions and Events",
)
"""Writes of a recorded cluster's controllers that verification does not make again: a recording
holds no decisions. A decide replay makes them again."""

_LAST = Revision(2**62)
"""A revision after all others."""

DECODED_MAX = 100
"""Decoded trees that a view keeps while it is folded again."""

TURN_MAX = 100
"""Events that are checked before the loop runs other tasks: at most about as many milliseconds."""


class Workers(Protocol):
    """Other processes that verify parts of a history; `count` includes this process."""

    @property
    def count(self) -> int: ...

    def expect(self, beside: int) -> None:
        """Note, before events are kept, what this process does besides (`Division.beside`)."""

    def keep(self, events: Sequence[Event], kept: KeptEvents | None) -> None:
        """Take the next events of the history, in order, before any part is verified.

        `kept` are the events up to these, when this process keeps all of them.
        """
        ...

    async def start(self, parts: Sequence[VerifiedPart]) -> None:
        """Start a worker for each part if there are none; they may be ready later.

        Raises InputError.
        """
        ...

    async def verify(
        self, parts: Sequence[VerifiedPart], reached: Callable[[int, Revision], None]
    ) -> Sequence[PartFindings]:
        """Verify the parts that were given to `start`.

        `reached` gets a part's place and revision. Raises InputError.
        """
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
    decisions: ComparisonCounts
    effects: ComparisonCounts
    allocations: ComparisonCounts
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
    def _compared(self) -> tuple[ComparisonCounts, ...]:
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
    lacking = uncertainty.lacking(recorded)
    switches = switches_of(rules.profile, deciders.quirks, history.settings)
    audit = await _audit(log, history, until, attestation, lacking)
    division = replace(sharing.division, beside=0 if audit is None else audit.cost)
    if workers is not None:
        workers.expect(division.beside)
    ahead = FirstPass(
        division=division,
        invariants=InvariantWatch(switches, lacking),
        index=AllocationIndex(
            lacks_ends=doubts.ENDS in lacking, lacks_times=doubts.TIMES in lacking
        ),
        recorded=recorded,
        selectors=None if second is None else _selectors(deciders, second.bounds),
        may_lack_end=await _may_lack_end(log, history, until),
    )
    stored = await _stored(log, history, attestation)
    kept = KeptEvents(bounds.kept_bytes_max)
    keep = _keeping(kept, workers)
    # Other processes wait for the first pass. Alone, this one reads a long log once less with it.
    early = audit if (is_alone := workers is None or workers.count == 1) else None
    consistency = await read_ahead(
        ahead, stored, early, log, history, until, bounds, keep, progress
    )
    parts = ahead.parts(1 if workers is None else workers.count, ends=ends)
    here = PartVerifier(parts[0], deciders)
    parts_progress = _PartsProgress(parts, until, progress)

    async def verify_here() -> PartFindings:
        async for page in kept.pages(log, history, parts[0].until, bounds):
            for number, event in enumerate(page, start=1):
                # The body is judged, not the tree that the log in memory still holds beside it.
                here.take_sound(event.undecoded())
                if number % TURN_MAX == 0:  # Checking is pure computation: let others run.
                    await lowlevel.checkpoint()
            parts_progress.reached(0, page[-1].revision)
            await lowlevel.checkpoint()
        if audit is not None:
            pages = kept.pages(log, history, ahead.revision, bounds)
            await audit.finish(None if is_alone else pages, to_end=ends)
        return here.findings()

    await ahead.ask(second, deciders.compiler, progress)
    if workers is None or len(parts) == 1:
        judged = [await verify_here()]
    else:
        judged = await _divided(parts, verify_here, workers, parts_progress)
    await conclude(stored, consistency, audit, log, judged)
    return _report(ahead, history, stored.result(), judged)


def _keeping(kept: KeptEvents, workers: Workers | None) -> Callable[[Sequence[Event]], None]:
    """A function that keeps the next events here and hands them to the workers."""

    def keep(events: Sequence[Event]) -> None:
        is_kept = kept.keep(events)
        if workers is not None:
            workers.keep(events, kept if is_kept else None)

    return keep


async def _audit(
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    attestation: Attestation,
    lacking: frozenset[str],
) -> SnapshotAudit | None:
    """The audit of what is kept of the views, if there is a store of them."""
    if attestation.views is None:
        return None
    make = projections_of(history.settings, decoded_max=DECODED_MAX)
    switches = await switches_over_time(log, history)
    begin = partial(Chronicle, switches, lacking, is_recorded=history.is_recorded)
    store = ChronicleStore(views=attestation.views, log=log, info=history)
    audit = SnapshotAudit(attestation.views, history.id, make, ChronicleAudit(store, begin))
    await audit.begin(log, until)
    return audit


async def verify_stored(
    log: EventLog,
    history: HistoryInfo,
    *,
    bounds: ReplayBounds,
    attestation: Attestation = Attestation(),
    problem: str = "",
) -> VerifyReport:
    """Verify only the stored log, because the history cannot be used for another reason.

    `problem` is about its settings. Settings that are in the chain may be those of a newer program;
    others count as altered.
    """
    stored = await _stored(log, history, attestation)
    events = 0
    async for rows in stored_pages(log, history, _LAST, bounds):
        for row in rows:
            stored.take(row)
        events += len(rows)
        await lowlevel.checkpoint()
    await integrity.check_end(stored, log)
    if problem and stored.settings is not SettingsProof.ANCHORED:
        stored.note(problem)
    return VerifyReport(
        history=history.name,
        revision=stored.revision,
        events=events,
        chain=stored.result(),
        violations_counts={},
        violations=(),
        decisions=verifying_parts.joined([]),
        effects=verifying_parts.joined([]),
        allocations=verifying_parts.joined([]),
        is_recorded=history.is_recorded,
    )


async def _may_lack_end(log: EventLog, history: HistoryInfo, until: Revision) -> bool:
    """Whether recorded inputs that continue in a fork may end after `until`.

    A fork is made with all of its inputs. A copy, or a bundle, may end among them.
    """
    if not history.is_fork:
        return True
    end = (await log.head(history.id)).revision
    clocks = await log.read_object(history.id, CLOCKS, until=end, limit=1)
    return any(each.revision > until and each.object == INPUTS_END for each in clocks)


async def _divided(
    parts: Sequence[VerifiedPart],
    verify_here: Callable[[], Awaitable[PartFindings]],
    workers: Workers,
    parts_progress: "_PartsProgress",
) -> list[PartFindings]:
    """Verify the first part here and the others on the workers."""
    there: list[PartFindings] = []
    # Before the first part is begun: a process must not be forked while a thread computes, and
    # loading a library beside that thread takes many times as long.
    await workers.start(parts[1:])

    async def verify_there() -> None:
        there.extend(
            await workers.verify(parts[1:], lambda n, at: parts_progress.reached(n + 1, at))
        )
        for place in range(1, len(parts)):
            parts_progress.reached(place, parts[place].until)

    async with create_task_group() as tasks:
        tasks.start_soon(verify_there)
        here = await verify_here()
    return [here, *there]


async def _stored(log: EventLog, history: HistoryInfo, attestation: Attestation) -> IntegrityCheck:
    """The integrity check with the stored settings, which a replay as another release changes."""
    info = await log.find_history(history.name) or history
    kept = await log.kept_heads(info.id)
    signed = [*attestation.heads, *filter(attestation.is_signed, kept)]
    check = IntegrityCheck(info, signed=signed, trusted=attestation.trusted)
    for head in kept:
        if not attestation.is_signed(head):
            check.note(FORGED_HEAD.format(revision=head.revision))
    return check


def _selectors(deciders: Deciders, bounds: OpinionBounds) -> SelectorHistory:
    """A collector for the selectors and devices of the history."""
    return SelectorHistory(
        compiler=deciders.compiler,
        with_patches=features_of(deciders.rules.profile).patches,
        kept_max=bounds.evaluations_max,
    )


def switches_of(
    profile: Profile, quirks: Quirks, settings: Mapping[str, object] | None = None
) -> Switches:
    """The switches of the release that matter to the invariants.

    `settings` are those of a history that may be a recording.
    """
    features = features_of(profile)
    known = settings or {}
    return Switches(
        rules_open=recorded_gates.leave_rules_open(known),
        stops=bool(known) and not (known.get("recorded") or known.get("paced")),
        # The rules are in force even in a release whose scheduler does not see them.
        rules=features.taint_rules or (profile.ignores_rules and profile.enabled(RULES_GATE)),
        taints=features.device_taints,
        patches=features.patches,
        waits=features.binding_conditions,
        distinct_by_last=quirks.q6,
        rules_unseen=profile.ignores_rules,
    )


async def switches_over_time(log: EventLog, history: HistoryInfo) -> Switches:
    """The switches of a history at its beginning, and later those of its forks."""
    stages = await moments.settings_over_time(log, history)
    (_, first), *later = [(since, _switches_in(info)) for since, info in stages]
    return replace(first, later=tuple(later))


def _switches_in(info: HistoryInfo) -> Switches:
    profile = profiles.from_settings(info.settings)
    quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
    return switches_of(profile, quirks, info.settings)


class _PartsProgress:
    """The progress of all parts together, reported as if they were verified in a row."""

    def __init__(self, parts: Sequence[VerifiedPart], until: Revision, progress: Progress) -> None:
        self._begins = [part.after for part in parts]
        self._done = [0] * len(parts)
        self._until = until
        self._progress = progress

    def reached(self, place: int, revision: Revision) -> None:
        self._done[place] = max(0, revision - self._begins[place])
        self._progress("deciding again", Revision(sum(self._done)), self._until)


def _report(
    ahead: FirstPass, history: HistoryInfo, chain: Integrity, parts: Sequence[PartFindings]
) -> VerifyReport:
    """The report, joined from the parts in order."""
    violations = [
        each
        for each in (*ahead.invariants.violations(), *ahead.writes.violations())
        if not ahead.begin or each.begin.revision > ahead.begin
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
        doubts=ahead.recorded,
        # Old imports lack the setting, and a person who rewrites a log can remove it.
        is_recorded=history.is_recorded or (ahead.is_imported and not ahead.begin),
        judged_after=ahead.begin,
        opinion=ahead.opinion,
    )
