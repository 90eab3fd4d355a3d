"""The first pass of a verification: the stored log, the invariants, and what the second needs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from anyio import lowlevel

from app.analysis.verify import parts as verifying_parts
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.claim_writes import ClaimWriteWatch
from app.analysis.verify.consistency import ConsistencyWatch
from app.analysis.verify.invariants import InvariantWatch
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.analysis.verify.parts import Cut, Division, PartFindings, VerifiedPart
from app.analysis.verify.redecide import belongs
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import Event, EventType, HistoryInfo, Revision
from app.domain.log.doubts import NEVER_SEEN, Doubt
from app.domain.log.forks import INPUTS_END
from app.domain.log.pages import Page
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.service.replays import integrity, second_opinion
from app.service.replays.integrity import IntegrityCheck
from app.service.replays.replaying import Progress, ReplayBounds, stored_pages
from app.service.replays.second_opinion import OpinionReport, SecondReader, SelectorHistory
from app.service.replays.snapshot_audit import SnapshotAudit


class _Decider(msgspec.Struct):
    """The parts of a decision that name its controller, and say how many commands it has."""

    controller: str = ""
    commands: object = 0

    @property
    def count(self) -> int:
        """The number of commands; 0 in a log that was tampered with."""
        return min(max(self.commands, 0), _COMMANDS_MAX) if isinstance(self.commands, int) else 0


_COMMANDS_MAX = 1_000
"""The greatest number of commands that counts in the cost of a decision."""


_decider = msgspec.json.Decoder(_Decider)


@dataclass(slots=True)
class FirstPass:
    """The results of the first pass.

    `observers` are the decisions by the revision that they observed, `deciders` the controllers
    that made them. `cuts` are the places at which the history may be divided. `recorded` are the
    doubts of the history. `begin` is the first own event of a fork: earlier events were decided
    with other settings, and are judged with the parent. `is_imported` is true if the log begins
    with an import. `paced_until` is the end of the recorded inputs that continue in the fork; with
    `may_lack_end`, they may go on after the last event that is read. With `is_live`, redra's own
    writer wrote the objects.
    """

    division: Division
    invariants: InvariantWatch
    recorded: tuple[Doubt, ...] = ()
    index: AllocationIndex = field(default_factory=AllocationIndex)
    observers: dict[Revision, list[Event]] = field(default_factory=dict)
    deciders: set[str] = field(default_factory=set)
    revision: Revision = Revision(0)
    begin: Revision = Revision(0)
    is_imported: bool = False
    paced_until: Revision = Revision(0)
    may_lack_end: bool = False
    is_live: bool = False
    events: int = 0
    cost: int = 0
    cuts: list[Cut] = field(default_factory=list)
    decision: Event | None = None
    selectors: SelectorHistory | None = None
    opinion: OpinionReport | None = None
    writes: ClaimWriteWatch = field(default_factory=ClaimWriteWatch)

    def take(self, event: Event, parts: Any) -> None:
        """Read one event, with the parts that its page holds."""
        self._note_cut(event)
        if self.selectors is not None:
            self.selectors.take(event)
        self.revision = event.revision
        self.events += 1
        self.cost += self.division.fold + self.division.check
        if event.revision == 1:
            self.is_imported = event.type is EventType.HISTORY_IMPORTED
        if event.type is EventType.HISTORY_FORKED:
            self.begin, self.paced_until = event.revision, Revision(0)
            self.cuts.clear()
        elif event.type is EventType.CLOCK_ADVANCED:
            is_end = self.begin and not self.paced_until and event.object == INPUTS_END
            self.paced_until = event.revision if is_end else self.paced_until
        elif event.type is EventType.DECISION_RECORDED:
            self.decision = event
            observed = Revision(event.stamp.observed)
            self.observers.setdefault(observed, []).append(event)
            with suppress(msgspec.DecodeError):  # a log that was tampered with
                decider = _decider.decode(event.body)
                self.deciders.add(decider.controller)
                self.cost += self.division.command * decider.count
        elif event.type is EventType.REQUEST_OBSERVED:
            self.index.note_sent(event)
        elif event.is_about_object or event.type is EventType.GAP_OBSERVED:
            written = len(self.index.written)
            self.index.add(event, parts)
            self.writes.take(event, parts if event.type is not EventType.OBJECT_DELETED else None)
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

        def report_progress(done: int, total: int) -> None:
            progress("asking for a second opinion", Revision(done), Revision(total))

        self.opinion = await second_opinion.compare(
            self.selectors,
            second.opinion,
            compiler=compiler,
            bounds=second.bounds,
            progress=report_progress,
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

    def parts(self, count: int, *, ends: bool) -> list[VerifiedPart]:
        """The history in up to `count` parts; `ends` is whether it was read to its end."""
        self.index.lacks_rules = self.invariants.lacks_rules
        for key, since in self.invariants.last_lost().items():
            # What it was given may have been chosen before, and not be free any more.
            self.index.note_last_lost(key, self.index.written_before(Instant(since - IN_FLIGHT)))
        if self.begin and not self.paced_until and self.may_lack_end:
            self.paced_until = self.revision
        cuts = verifying_parts.divide(self.cuts, self._here(), count, self.division)
        begins = [cut.revision for cut in cuts]
        return [
            self._part(after, until, ends=ends)
            for after, until in zip([self.begin, *begins], [*begins, self.revision], strict=True)
        ]

    def _part(self, after: Revision, until: Revision, *, ends: bool) -> VerifiedPart:
        is_last = until == self.revision
        observers = {
            observed: decisions
            for observed, decisions in self.observers.items()
            if (after <= observed and (is_last or observed < until))
            # Or the decision is in this part with its effects, and observed an earlier revision.
            or (observed < after and any(after < each.revision <= until for each in decisions))
        }
        return VerifiedPart(
            after=after,
            until=until,
            ends=ends or not is_last,
            observers=observers,
            deciders=frozenset(self.deciders),
            index=self.index.after(after),
            lacking=tuple(doubt.kind for doubt in self.recorded if doubt.code == NEVER_SEEN),
            begun=self.begin,
            paced_until=self.paced_until,
            is_live=self.is_live,
        )


async def read_ahead(
    ahead: FirstPass,
    stored: IntegrityCheck,
    audit: SnapshotAudit | None,
    log: EventLog,
    history: HistoryInfo,
    until: Revision,
    bounds: ReplayBounds,
    keep: Callable[[Sequence[Event]], None],
    progress: Progress,
) -> ConsistencyWatch:
    """Check the stored rows, and read ahead up to the first event that cannot be understood.

    `keep` gets the events that were read, for the second pass. The rest of what is checked is
    noted by `conclude`.
    """
    consistency = ConsistencyWatch(stored.info)
    async for rows in stored_pages(log, history, until, bounds):
        # Rows are interpreted here once: reading them again as events would cost as much.
        events = [event for row in rows if (event := stored.take(row)) is not None]
        if events:
            # First: other processes may fold them while they are checked here.
            keep(events)
            page = Page(events)
            ahead.invariants.follow_page(page)
            for event, parts in page.splits:
                ahead.take(event, parts)
                for problem in consistency.take(event):
                    stored.note(problem)
            if audit is not None:
                await audit.take(page)
        progress("checking the chain", stored.revision, until)
        await lowlevel.checkpoint()
    ahead.is_live = consistency.is_live
    return consistency


async def conclude(
    stored: IntegrityCheck,
    consistency: ConsistencyWatch,
    audit: SnapshotAudit | None,
    log: EventLog,
    judged: Sequence[PartFindings],
) -> None:
    """Note the problems of the history's own events, its end, kept states, and all parts."""
    for problem in consistency.end([each for part in judged for each in part.malformed]):
        stored.note(problem)
    await integrity.check_end(stored, log)
    for problem in audit.problems if audit is not None else ():
        stored.note(problem)
    for unfoldable in dict.fromkeys(part.unfoldable for part in judged if part.unfoldable):
        stored.note(unfoldable)
