"""Parts of a history that are verified separately, and the verification of one part.

A part is a range of revisions. Its verifier folds all events before it, which is cheap, and then
checks each event as if it had checked those before, too. Example with parts up to 500 and 900: the
second part is folded up to 500. A decision at 510 that observed 498 is made again at 498, for its
effects from 511 on. Whether the decision was the same is reported by the first part, which reaches
498 as well. So each decision, effect and allocation is judged once, and the findings of the parts,
in order, equal those of a single process.

A part begins where no effect of an earlier decision is expected any more.

A verifier may fold events before it is known which part it will verify. In the example it may have
folded 498 events at most when it gets the second part.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from app.analysis.verify import compare, consistency, excuses
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import (
    ComparisonCounts,
    ComparisonResult,
    Difference,
    DifferenceKind,
)
from app.analysis.verify.reallocate import AllocationChecker
from app.analysis.verify.redecide import DecisionChecker
from app.analysis.views import LiveViews
from app.domain.allocation import Quirks
from app.domain.controllers.plan import Reconciler
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.log import Event, Revision
from app.domain.objects.rules import Rules

_ALL = Revision(2**62)
"""A revision after all others."""

_HALVINGS = 40
"""The number of bisection steps for the time of the longest part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The parameters for dividing a history.

    Costs are microseconds of an ordinary machine: until other processes can be started (`load`),
    until one of them has started, to fold an event, to check it in addition, to make a command of a
    decision again with its effects (a decision costs about as much as its effects), to allocate a
    claim again. They affect only the balance of the parts, never the findings. One more part must
    reduce the time to at most `worth_percent` of the time without it. Places to divide at are at
    least `apart` events apart. `ahead` is the time that other processes have to fold while the log
    is read, for each event of the history; each folds at most up to where its part would begin if
    all events cost `usual`. `beside` is what this process has to do besides its part, for each
    event.
    """

    load: int = 900_000
    start: int = 1_000_000
    fold: int = 45
    check: int = 15
    command: int = 160
    allocate: int = 300
    worth_percent: int = 90
    apart: int = 64
    ahead: int = 0
    beside: int = 0
    usual: int = 100

    def fold_ahead(self, events: int, number: int, count: int) -> int:
        """The events that are folded ahead for part `number` of `count`, the first one being 0.

        What this process has to do besides makes its part shorter, and others begin earlier.
        """
        if not self.ahead or not number:
            return 0
        others, share = count - 1, events * self.beside // self.usual
        first = max(0, (events - others * share) // count)
        return first + (events - first) * (number - 1) // others

    def cost_before(self, begin: "Cut", end: "Cut", number: int, count: int) -> int:
        """The cost of a part that begins there before its first check, beyond the first pass."""
        folded = self.fold_ahead(end.events, number, count)
        # A part that begins earlier is folded anew.
        saved = min(self.ahead * end.events, self.fold * folded) if begin.events > folded else 0
        return max(0, self.start + self.fold * begin.events - saved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A revision after which a part may begin: the events up to there, and the cost to verify them.

    The cost of an empty range is 0.
    """

    revision: Revision
    events: int
    cost: int


START = Cut(revision=Revision(0), events=0, cost=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedPart:
    """A range of a history, and the information needed in advance to verify it.

    Events up to `after` are folded; those up to `until`, or all others, are verified. `observers`
    are decisions by the revision that they observed: those that observed a revision of the range,
    and those in the range that observed an earlier one. `deciders` are the controllers that decided
    anything in the history. `ends` tells that effects of the part's last decision cannot follow
    after it. `lacking` are kinds that decisions need and of which the recording has no object.
    Controllers began at `begun`, the first own event of a fork, with the objects that existed then.
    Up to `paced_until`, recorded inputs continued in the fork. With `is_live`, redra's own writer
    wrote the objects.
    """

    after: Revision
    until: Revision = _ALL
    ends: bool = True
    observers: Mapping[Revision, Sequence[Event]]
    deciders: frozenset[str]
    index: AllocationIndex
    lacking: tuple[str, ...] = ()
    begun: Revision = Revision(0)
    paced_until: Revision = Revision(0)
    is_live: bool = False

    def may_continue(self, ahead: Revision, followed: Set[str]) -> bool:
        """Whether a verifier that has folded so far ahead, without knowing the part, may take it.

        It must not have passed the beginning of the part, nor a revision that is observed, and the
        controllers that `followed` the log must be enough.
        """
        is_before = ahead < self.after and ahead <= min(self.observers, default=ahead)
        return is_before and self.deciders <= followed and not self.begun


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFindings:
    """The findings of a part: its last revision, the number of events, and the comparisons.

    `unfoldable` says which event could not be folded and why; later events are not judged.
    `malformed` are the first problems with the form of objects, with their revisions.
    """

    revision: Revision
    events: int
    decisions: ComparisonCounts
    effects: ComparisonCounts
    allocations: ComparisonCounts
    unfoldable: str = ""
    malformed: tuple[tuple[Revision, str], ...] = ()


def divide(cuts: Sequence[Cut], end: Cut, count: int, division: Division) -> list[Cut]:
    """Chooses where parts begin after the first one, so that up to `count` parts finish soonest.

    Fewer parts are made when one more would hardly finish earlier, because each part is folded from
    the beginning.
    """
    chosen: list[Cut] = []
    shortest = end.cost + division.beside * end.events
    for number in range(2, count + 1):
        division_cuts, time = _divide_by(cuts, end, number, division)
        time += division.load
        if time * 100 > shortest * division.worth_percent:
            break
        chosen, shortest = division_cuts, time
    return chosen


def _divide_by(
    cuts: Sequence[Cut], end: Cut, count: int, division: Division
) -> tuple[list[Cut], int]:
    """The beginnings of up to `count` parts, and the cost of the longest."""
    costs = [cut.cost for cut in cuts]
    best: list[Cut] = []
    low, high = 0, end.cost + division.beside * end.events
    for _ in range(_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        cuts_within = _within(cuts, costs, end, count, middle, division)
        if cuts_within is None:
            low = middle
        else:
            best, high = cuts_within, middle
    return best, high


def _within(
    cuts: Sequence[Cut], costs: Sequence[int], end: Cut, count: int, limit: int, division: Division
) -> list[Cut] | None:
    """The beginnings of parts that cost at most `limit` each; None when that is impossible."""
    chosen: list[Cut] = []
    begin = START
    for _ in range(count):
        if chosen:
            before = division.cost_before(begin, end, len(chosen), count)
        else:
            before = division.beside * end.events
        left = limit - before
        if left < 0:
            return None
        if end.cost <= begin.cost + left:
            return chosen
        place = bisect_right(costs, begin.cost + left) - 1
        if place < 0 or cuts[place].revision <= begin.revision:
            return None
        begin = cuts[place]
        chosen.append(begin)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciders:
    """The objects that make a history's decisions again, with the settings of the history.

    `controllers` are fresh reconcilers, so each verification has its own.
    """

    rules: Rules
    controllers: Sequence[Reconciler]
    compiler: SelectorCompiler
    quirks: Quirks = Quirks()


class PartVerifier:
    """Verifies one part; takes all events of a history from the first to the end of the part.

    Controllers that have decided nothing need not follow the log.
    """

    def __init__(self, part: VerifiedPart, deciders: Deciders) -> None:
        rules = deciders.rules
        self._part = part
        self._observers = dict(part.observers)
        self._views = LiveViews(rules.profile)
        deciding = [each for each in deciders.controllers if each.name in part.deciders]
        self._decisions = DecisionChecker(
            deciding, self._views, rules, paced_until=part.paced_until
        )
        self._allocations = AllocationChecker(
            part.index,
            self._views,
            compiler=deciders.compiler,
            quirks=deciders.quirks,
            schemas=rules.schemas,
            lacking=part.lacking,
        )
        self._events = 0
        self._unfoldable = ""
        self._malformed: list[tuple[Revision, str]] = []

    @classmethod
    def ahead(cls, deciders: Deciders, following: frozenset[str]) -> "PartVerifier":
        """A verifier that folds events until it is known which part it verifies; see `begin`.

        `following` are the controllers that follow the log.
        """
        part = VerifiedPart(after=_ALL, observers={}, deciders=following, index=AllocationIndex())
        return cls(part, deciders)

    def begin(self, part: VerifiedPart) -> None:
        """Verify this part, which follows from what was folded ahead (`may_continue`)."""
        may_continue = part.may_continue(self._views.revision, self._part.deciders)
        assert may_continue, "its beginning was not passed, and its controllers followed the log"
        self._part = part
        self._observers = dict(part.observers)
        self._decisions.leave_out_others(part.deciders)
        self._allocations.begin(part.index, part.lacking)

    def expect(self, decision: Event) -> None:
        """Adds a decision to be made again at the revision, still to come, that it observed."""
        observed = Revision(decision.stamp.observed)
        self._observers[observed] = [*self._observers.get(observed, ()), decision]

    def differences(self) -> tuple[Sequence[Difference], ...]:
        """The differences so far in decisions, effects and allocations; the first ones of each."""
        decisions, effects = self._decisions.result(is_whole=False)
        return decisions.differences, effects.differences, self._allocations.result().differences

    def take(self, event: Event) -> None:
        """Folds an event before the part, or checks an event of the part."""
        observers = self._observers.pop(self._views.revision, None)
        if event.revision <= self._part.after:
            self._follow(event, observers)
        else:
            self._check(event, observers)

    def take_sound(self, event: Event) -> None:
        """Like `take`, but stops at the first event that cannot be folded.

        A log whose hashes were recomputed may contain anything.
        """
        if self._unfoldable:
            return
        try:
            self.take(event)
        except Exception as mistake:
            cause = " ".join(f"{type(mistake).__name__}: {mistake}".split())
            self._unfoldable = (
                f"revision {event.revision}: it cannot be folded ({cause}); the log was "
                "altered, or this is a defect of redra"
            )

    def findings(self) -> PartFindings:
        """The findings of the part."""
        missing = "the observed revision is not in the log"
        reason = "an event before it cannot be folded" if self._unfoldable else missing
        for observed, left in self._observers.items():
            if observed >= self._part.after:
                for decision in left:
                    self._decisions.not_comparable(reason, decision)
        decisions, effects = self._decisions.result(is_whole=self._part.ends)
        return PartFindings(
            revision=self._views.revision,
            events=self._events,
            decisions=decisions,
            effects=effects,
            allocations=self._allocations.result(),
            unfoldable=self._unfoldable,
            malformed=tuple(self._malformed[: consistency.KEPT_MAX]),
        )

    def _follow(self, event: Event, observers: Sequence[Event] | None) -> None:
        if observers:
            self._decisions.decide_again(observers)
        self._allocations.follow(event)
        self._decisions.follow(event)
        self._views.fold(event)
        if event.revision == self._part.begun:
            for left in self._views.objects.left_over(event.revision):
                self._decisions.after(left)
        elif event.revision > self._part.begun:
            self._decisions.after(event)
        if event.revision == self._part.after:
            self._decisions.begin(event.revision)

    def _check(self, event: Event, observers: Sequence[Event] | None) -> None:
        """Runs the checks before the event, folds it, and runs the checks after it."""
        if observers:
            self._decisions.decide_again(observers)
        is_ours = self._decisions.expects(event)
        is_same = self._decisions.before(event)
        if self._part.is_live and not is_same and event.is_about_object:
            self._check_form(event)
        self._allocations.before(event, is_ours=is_ours)
        self._views.fold(event)
        self._decisions.after(event)
        self._events += 1

    def _check_form(self, event: Event) -> None:
        """Notes problems with the form of an object; an effect with the same bytes has none."""
        if len(self._malformed) < consistency.KEPT_MAX:
            for problem in consistency.form_problems(event):
                self._malformed.append((event.revision, problem))


def joined(parts: Sequence[ComparisonCounts]) -> ComparisonCounts:
    """Merges the comparisons of consecutive parts, and judges their excuses together."""
    counts: Counter[ComparisonResult] = Counter()
    reasons: dict[str, Counter[str]] = {}
    wrote: Counter[str] = Counter()
    kinds: Counter[DifferenceKind] = Counter()
    for part in parts:
        counts.update(part.counts)
        wrote.update(part.authors)
        kinds.update(part.kinds)
        for reason, authors in part.reasons.items():
            reasons.setdefault(reason, Counter()).update(authors)
    for excuse in excuses.unexcused([excuse for part in parts for excuse in part.excuses]):
        counts[ComparisonResult.CONCURRENT] -= 1
        counts[ComparisonResult.NOT_COMPARABLE] += 1
        wrote[excuse.author] -= 1
        reasons.setdefault(excuses.REASON, Counter())[excuse.author] += 1
    differences = (difference for part in parts for difference in part.differences)
    return ComparisonCounts(
        counts=+counts,
        differences=compare.first_of_each_kind(differences),
        reasons=reasons,
        authors=+wrote,
        kinds=kinds,
    )
