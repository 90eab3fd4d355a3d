"""Replay: fold a history up to a moment, or verify that it is what it says.

`fold` answers with what there was. `verify` reads the log twice. The first pass checks the hash
chain and learns what has to be known ahead. The second folds event by event and checks: the
invariants, at intervals and at the end; every decision of our controllers, made again from what it
observed, with its effects; every allocation that a foreign scheduler wrote. Nothing is written.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
from anyio import lowlevel

from app.domain.allocation import Quirks
from app.domain.controllers.plan import Reconciler
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.errors import ChainBroken
from app.domain.log import Event, EventType, HistoryInfo, Revision
from app.domain.log.chain import check_event
from app.domain.log.event import GENESIS
from app.domain.log.projection import Projection
from app.domain.objects.rules import Rules
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.ports import EventLog
from app.service import folding, invariants
from app.service.comparing import Compared
from app.service.invariants import Violation
from app.service.reallocating import AllocationChecker, AllocationIndex
from app.service.redeciding import DecisionChecker
from app.service.taint_audit import TaintAudit
from app.service.views import LiveViews

Progress = Callable[[str, Revision, Revision], None]
"""Told what is being done, the revision reached and the one to reach."""

_SUMMED = frozenset(("objects", "inventory", "claims", "decisions"))
"""The views from which a fold report is made."""

VIOLATIONS_MAX = 100
"""How many violations a report names; all are counted."""

TRANSIENT_MAX = 60 * SECOND
"""How long, in cluster time, a violation may last that controllers repair by and by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBounds:
    """Bounds of one replay.

    `page_max` events are read at once; the invariants are checked every `invariants_every` events,
    or after as many as there are objects if these are more (a check looks at all of them), and at
    the end.
    """

    page_max: int = 5_000
    invariants_every: int = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldReport:
    """What there was at a moment, and the state hash of every view."""

    history: str
    revision: Revision
    time: Instant
    objects: Mapping[str, int]
    pools: Mapping[str, int]
    devices: int
    claims: Mapping[str, int]
    pods: Mapping[str, int]
    decisions: Mapping[str, int]
    state_hashes: Mapping[str, str]

    def to_json(self) -> JsonObject:
        """For the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "time": timestamps.micro_text(self.time),
            "objects": dict(self.objects),
            "pools": dict(self.pools),
            "devices": self.devices,
            "claims": dict(self.claims),
            "pods": dict(self.pods),
            "decisions": dict(self.decisions),
            "stateHashes": dict(self.state_hashes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundViolation:
    """An invariant that did not hold, and from which revision to which it was seen broken."""

    violation: Violation
    first: Revision
    last: Revision

    def to_json(self) -> JsonObject:
        """For reports."""
        return {
            "rule": self.violation.rule,
            "message": self.violation.message,
            "objects": [str(key) for key in self.violation.objects],
            "transient": self.violation.is_transient,
            "firstRevision": self.first,
            "lastRevision": self.last,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What verification found.

    `chain_problem` is empty when every event fits. `violations` leave out transient ones that did
    not last. `decisions` are our controllers' own, `effects` the events that followed
    from them, `allocations` those that no decision of ours explains.
    """

    history: str
    revision: Revision
    events: int
    chain_problem: str
    chain_head: str
    invariant_checks: int
    violations_count: int
    violations: tuple[FoundViolation, ...]
    decisions: Compared
    effects: Compared
    allocations: Compared

    @property
    def agrees(self) -> bool:
        """True when chain, invariants, placements and everything of our own making agree.

        That a foreign scheduler chose other devices is reported and does not count: it may run
        other rules. That it placed against a taint counts.
        """
        return (
            not self.chain_problem
            and not self.violations_count
            and self.decisions.agrees
            and self.effects.agrees
        )

    def to_json(self) -> JsonObject:
        """For the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "events": self.events,
            "agrees": self.agrees,
            "chain": {"problem": self.chain_problem, "head": self.chain_head},
            "invariants": {
                "checks": self.invariant_checks,
                "violations": self.violations_count,
                "examples": [found.to_json() for found in self.violations],
            },
            "decisions": self.decisions.to_json(),
            "effects": self.effects.to_json(),
            "allocations": self.allocations.to_json(),
        }


def silent(doing: str, revision: Revision, until: Revision) -> None:
    """Report nothing."""


async def fold(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    views: Sequence[Projection],
    bounds: ReplayBounds,
    progress: Progress = silent,
) -> FoldReport:
    """Fold fresh views up to `until` (or the head, when that comes first) and sum up."""
    time = Instant(0)
    after = Revision(0)
    async for page in _pages(log, history, until, bounds):
        for view in views:
            folding.fold(view, page)
        after, time = page[-1].revision, page[-1].stamp.time
        progress("folding", after, until)
    rows: dict[str, list[JsonObject]] = {}
    for view in views:
        if view.name in _SUMMED:
            rows |= _rows(view)
    pods = (
        msgspec.json.decode(row["object"])
        for row in rows.get("view_objects", ())
        if row["resource"] == "pods"
    )
    return FoldReport(
        history=history.name,
        revision=after,
        time=time,
        objects=_count(row["resource"] for row in rows.get("view_objects", ())),
        pools=_count(row["state"] for row in rows.get("view_pools", ())),
        devices=len(rows.get("view_devices", ())),
        claims=_count(row["state"] for row in rows.get("view_claims", ())),
        pods=_count(_pod_state(pod) for pod in pods),
        decisions=_count(row["outcome"] for row in rows.get("view_decisions", ())),
        state_hashes={view.name: view.state_hash() for view in views},
    )


async def verify(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    rules: Rules,
    controllers: Sequence[Reconciler],
    compiler: SelectorCompiler,
    bounds: ReplayBounds,
    quirks: Quirks = Quirks(),
    progress: Progress = silent,
) -> VerifyReport:
    """Verify the history up to `until`; see the module's text.

    `controllers` are fresh reconcilers with the settings of the history.
    """
    first = await _read_ahead(log, history, until, bounds, progress)
    second = _SecondPass(
        first,
        rules=rules,
        # Who has decided nothing here has nothing to decide again, and need not follow the log.
        controllers=[found for found in controllers if found.name in first.deciders],
        compiler=compiler,
        quirks=quirks,
        bounds=bounds,
    )
    async for page in _pages(log, history, until, bounds):
        for event in page:
            second.take(event)
        progress("deciding again", page[-1].revision, until)
        # Checking is pure computation: let others run between pages.
        await lowlevel.checkpoint()
    head = (await log.head(history.id)).revision
    return second.report(history, is_whole=until >= head)


class _Decider(msgspec.Struct):
    """Of a decision only who made it."""

    controller: str = ""


_decider = msgspec.json.Decoder(_Decider)


@dataclass(slots=True)
class _Ahead:
    """What the first pass has learned.

    `observers` are the decisions by the revision that they observed, `deciders` the controllers
    that made them.
    """

    index: AllocationIndex = field(default_factory=AllocationIndex)
    observers: dict[Revision, list[Event]] = field(default_factory=dict)
    deciders: set[str] = field(default_factory=set)
    hash: bytes = GENESIS
    revision: Revision = Revision(0)
    problem: str = ""


async def _read_ahead(
    log: EventLog, history: HistoryInfo, until: Revision, bounds: ReplayBounds, progress: Progress
) -> _Ahead:
    ahead = _Ahead()
    async for page in _pages(log, history, until, bounds):
        for event in page:
            try:
                check_event(event, ahead.hash, Revision(ahead.revision + 1))
            except ChainBroken as problem:
                ahead.problem = ahead.problem or str(problem)
            ahead.hash, ahead.revision = event.hash, event.revision
            if event.type is EventType.DECISION_RECORDED:
                observed = Revision(event.stamp.observed)
                ahead.observers.setdefault(observed, []).append(event)
                with suppress(msgspec.DecodeError):  # a log that was tampered with
                    ahead.deciders.add(_decider.decode(event.body).controller)
            elif event.is_about_object:
                ahead.index.add(event)
            event.tree = None
        progress("checking the chain", ahead.revision, until)
        await lowlevel.checkpoint()
    return ahead


class _SecondPass:
    """Folds event by event and lets every checker look before and after."""

    def __init__(
        self,
        ahead: _Ahead,
        *,
        rules: Rules,
        controllers: Sequence[Reconciler],
        compiler: SelectorCompiler,
        quirks: Quirks,
        bounds: ReplayBounds,
    ) -> None:
        self._ahead = ahead
        self._bounds = bounds
        self._views = LiveViews(rules.profile)
        self._decisions = DecisionChecker(controllers, self._views, rules)
        self._allocations = AllocationChecker(
            ahead.index, self._views, compiler=compiler, quirks=quirks
        )
        self._invariants = _InvariantWatch(self._views)
        self._audit = TaintAudit(self._views)
        self._events = 0
        self._next_check = bounds.invariants_every

    def take(self, event: Event) -> None:
        """Check what can be checked before the event, fold it, check what follows."""
        observers = self._ahead.observers.pop(self._views.revision, None)
        if observers:
            self._decisions.decide_again(observers)
        is_ours = self._decisions.expects(event)
        self._decisions.before(event)
        if event.is_about_object:
            self._allocations.before(event, is_ours=is_ours)
            self._audit.before(event)
        self._views.fold(event)
        self._decisions.after(event)
        self._invariants.note(event)
        self._events += 1
        if self._events >= self._next_check:
            self._invariants.check()
            apart = max(self._bounds.invariants_every, self._views.objects.total)
            self._next_check = self._events + apart

    def report(self, history: HistoryInfo, *, is_whole: bool) -> VerifyReport:
        """Everything that was found, after a last look at the invariants."""
        self._invariants.check()
        self._invariants.end()
        for left in self._ahead.observers.values():
            for _ in left:
                self._decisions.not_comparable("the observed revision is not in the log")
        decisions, effects = self._decisions.result(is_whole=is_whole)
        placed = [
            FoundViolation(violation=violation, first=event.revision, last=event.revision)
            for event, violation in self._audit.found
        ]
        found = [*self._invariants.found, *placed]
        return VerifyReport(
            history=history.name,
            revision=self._views.revision,
            events=self._events,
            chain_problem=self._ahead.problem,
            chain_head=f"sha256:{self._ahead.hash.hex()}",
            invariant_checks=self._invariants.checks,
            violations_count=len(found),
            violations=tuple(found[:VIOLATIONS_MAX]),
            decisions=decisions,
            effects=effects,
            allocations=self._allocations.result(),
        )


class _InvariantWatch:
    """Looks at the invariants now and then; a transient violation counts if it stays."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self._known: set[tuple[str, str, str]] = set()
        self._open: dict[Violation, tuple[Revision, Instant]] = {}
        self._checked = Revision(0)
        self._time = Instant(0)
        self.found: list[FoundViolation] = []
        self.checks = 0

    def note(self, event: Event) -> None:
        """Remember the time, and the devices of a slice: an allocation may outlive its device."""
        self._time = event.stamp.time
        if event.key.resource == "resourceslices" and event.is_about_object:
            spec = json_tree.mapping(event.object, "spec")
            driver, pool = json_tree.text(spec, "driver"), json_tree.text(spec, "pool", "name")
            for device in json_tree.objects(spec, "devices"):
                self._known.add((driver, pool, json_tree.text(device, "name")))

    def check(self) -> None:
        """Look at the present state; what is no longer broken is closed."""
        revision = self._views.revision
        if revision == self._checked:
            return
        now = invariants.check_invariants(
            self._views.objects, self._views.inventory, known_devices=self._known
        )
        seen = (revision, self._time)
        opened = {violation: self._open.get(violation, seen) for violation in now}
        self._close({found: first for found, first in self._open.items() if found not in opened})
        self._open, self._checked = opened, revision
        self.checks += 1

    def end(self) -> None:
        """Close what is still broken."""
        self._close(self._open)
        self._open = {}

    def _close(self, closed: Mapping[Violation, tuple[Revision, Instant]]) -> None:
        for violation, (first, since) in closed.items():
            if not violation.is_transient or self._time - since >= TRANSIENT_MAX:
                found = FoundViolation(violation=violation, first=first, last=self._checked)
                self.found.append(found)


async def _pages(
    log: EventLog, history: HistoryInfo, until: Revision, bounds: ReplayBounds
) -> AsyncIterator[list[Event]]:
    after = Revision(0)
    while after < until:
        page = await log.read(history.id, after=after, limit=bounds.page_max, until=until)
        if not page:
            return
        yield page
        after = page[-1].revision


def _rows(view: Projection) -> dict[str, list[JsonObject]]:
    """All rows of a fresh view, by table, sorted by key."""
    tables: dict[str, list[JsonObject]] = {}
    for table, keys in view.take_changed().items():
        rows = (view.row(table, key) for key in sorted(keys))
        tables[table] = [row for row in rows if row is not None]
    return tables


def _count(words: Iterable[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(words).items()))


def _pod_state(pod: JsonObject) -> str:
    phase = json_tree.text(pod, "status", "phase") or "Pending"
    if phase == "Pending" and json_tree.text(pod, "spec", "nodeName"):
        return "Bound"
    return phase
