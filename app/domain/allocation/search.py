"""The search: first fit, depth first, with backtracking. Parity: allocator.md 4.

The recursion of the specification is unrolled into a stack of choice points, so that many claims
cannot exhaust the interpreter's stack. Each choice point returns FAIL or LIMIT to the one below it;
success ends the search at once, an abort leaves it as an exception.

    choice point     on FAIL                          on LIMIT
    claim boundary   FAIL                             FAIL (a limit never crosses claims)
    alternatives     next alternative                 next alternative; LIMIT if all were LIMIT
    device           next device, FAIL at the end     LIMIT
    list (mode All)  FAIL                             LIMIT

Pruning (`app.domain.allocation.pruning`) may cut branches that provably fail without a trace; the
answer is always that of the unpruned search.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from app.domain.allocation.features import AllocatorVariant
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.pruning import Key, Pruner
from app.domain.allocation.requests import DEVICES_MAX, AttemptAborted
from app.domain.allocation.usage import Books, Taken, Usage

STEPS_MAX = 20_000_000
"""The default bound of search steps per node; far more than a pod needs."""


class Observer(Protocol):
    """An observer of the dead ends of a search."""

    def stuck(self, row: RequestRow, number: int, usage: Usage) -> None:
        """Called when no device is left for device `number` of the row."""
        ...


class StepEnd(Enum):
    """The result of a step."""

    SUCCESS = auto()
    FAIL = auto()
    LIMIT = auto()


class _ChoiceKind(Enum):
    CLAIM = auto()
    ALTERNATIVES = auto()
    DEVICE = auto()
    LIST = auto()


@dataclass(slots=True, kw_only=True, eq=False)
class _Choice:
    """A choice point: its position, the devices left to try, and the current take."""

    kind: _ChoiceKind
    claim: int
    request: int
    row: RequestRow | None = None
    number: int = 0
    pending: int = 0
    take: Taken | None = None
    only_limit: bool = True
    books: Books | None = None
    key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """The outcome of a search: the takes per claim, or None, and the number of steps."""

    results: tuple[tuple[Taken, ...], ...] | None
    steps: int


class StepsExhausted(Exception):
    """The search was stopped at its bound of steps."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"stopped after {steps} steps")
        self.steps = steps


def run(
    problem: Problem,
    *,
    prune: bool = True,
    steps_max: int = STEPS_MAX,
    observer: Observer | None = None,
) -> SearchOutcome:
    """The first solution in search order.

    Raises AttemptAborted with upstream's text, and StepsExhausted at the bound of steps.
    """
    usage = Usage(problem)
    pruner = Pruner(problem, usage) if prune else None
    return Search(problem, usage, pruner, steps_max, observer).run()


class Search:
    """One search on one node."""

    def __init__(
        self,
        problem: Problem,
        usage: Usage,
        pruner: Pruner | None,
        steps_max: int,
        observer: Observer | None,
    ) -> None:
        self._observer = observer
        self._problem = problem
        self._usage = usage
        self._pruner = pruner
        self._steps_max = steps_max
        self._steps = 0
        self._stack: list[_Choice] = []
        self._permutes = problem.variant is AllocatorVariant.STABLE

    def run(self) -> SearchOutcome:
        """Runs the search from the start."""
        signal = self._enter(0, 0)
        while signal is not StepEnd.SUCCESS and self._stack:
            signal = self._resume(self._stack[-1], signal)
        results = None
        if signal is StepEnd.SUCCESS:
            results = tuple(tuple(take) for take in self._usage.results)
        return SearchOutcome(results=results, steps=self._steps)

    def _enter(self, claim: int, request: int) -> StepEnd | None:
        """Descends until a choice is needed; returns None after pushing a choice point."""
        rows = self._problem.rows
        while True:
            self._count()
            if claim == len(rows):
                return StepEnd.SUCCESS
            if request == len(rows[claim]):
                self._stack.append(_Choice(kind=_ChoiceKind.CLAIM, claim=claim, request=request))
                claim, request = claim + 1, 0
                continue
            alternatives = rows[claim][request]
            row = alternatives[0]
            if row.request.alternative is not None:
                choice = _Choice(kind=_ChoiceKind.ALTERNATIVES, claim=claim, request=request)
                if not self._problem.quirks.q18:
                    choice.books = self._usage.books()
                self._stack.append(choice)
                self._count()
            entered = self._enter_row(row, claim, request, 0)
            if entered is not _NEXT_REQUEST:
                return entered
            # A request for no device has all that it wants.
            request += 1

    def _enter_row(
        self, row: RequestRow, claim: int, request: int, number: int, start: int = 0
    ) -> "StepEnd | _Next | None":
        """Enters a row for its next device; _NEXT_REQUEST when the row has all its devices."""
        if row.takes_all and not row.listed:
            if row.postponed:
                raise AttemptAborted(row.postponed)
            return StepEnd.FAIL
        if number >= row.count:
            return _NEXT_REQUEST
        if len(self._usage.results[claim]) + row.count - number > DEVICES_MAX:
            return StepEnd.LIMIT
        if row.takes_all:
            self._stack.append(
                _Choice(kind=_ChoiceKind.LIST, claim=claim, request=request, row=row, number=number)
            )
            return None
        pending = row.candidates
        if start:
            pending &= -1 << start
        choice = _Choice(
            kind=_ChoiceKind.DEVICE,
            claim=claim,
            request=request,
            row=row,
            number=number,
            pending=pending,
        )
        if self._pruner is not None:
            prepared = self._pruner.prepare(row, number, pending)
            if prepared is None:
                return StepEnd.FAIL
            choice.pending, choice.key = prepared
        self._stack.append(choice)
        return None

    def _resume(self, choice: _Choice, signal: StepEnd | None) -> StepEnd | None:
        """Continues at a choice point; `signal` is None when it was just created."""
        match choice.kind:
            case _ChoiceKind.CLAIM:
                self._stack.pop()
                return StepEnd.FAIL
            case _ChoiceKind.ALTERNATIVES:
                return self._next_alternative(choice, signal)
            case _ChoiceKind.LIST:
                return self._list(choice, signal)
            case _ChoiceKind.DEVICE:
                return self._next_device(choice, signal)

    def _next_alternative(self, choice: _Choice, signal: StepEnd | None) -> StepEnd | None:
        if signal is not StepEnd.LIMIT:
            choice.only_limit = False
        alternatives = self._problem.rows[choice.claim][choice.request]
        choice.number += 1
        if choice.number == len(alternatives):
            self._stack.pop()
            return StepEnd.LIMIT if choice.only_limit else StepEnd.FAIL
        if choice.books is not None:
            self._usage.restore(choice.books)
        self._count()
        row = alternatives[choice.number]
        entered = self._enter_row(row, choice.claim, choice.request, 0)
        return self._deeper(entered, choice.claim, choice.request)

    def _list(self, choice: _Choice, signal: StepEnd | None) -> StepEnd | None:
        """Tries the next device of the list in mode All, once."""
        row = choice.row
        assert row is not None
        if choice.take is not None:
            assert signal is not None
            self._usage.undo(choice.take)
            self._stack.pop()
            return signal
        made = self._usage.take(row, row.listed[choice.number], must=True)
        if made is None:
            if self._observer is not None:
                self._observer.stuck(row, choice.number, self._usage)
            self._stack.pop()
            return StepEnd.FAIL
        choice.take = made
        self._count()
        entered = self._enter_row(row, choice.claim, choice.request, choice.number + 1)
        return self._deeper(entered, choice.claim, choice.request)

    def _next_device(self, choice: _Choice, signal: StepEnd | None) -> StepEnd | None:
        """Takes the next possible device in count mode and descends."""
        row = choice.row
        assert row is not None
        usage = self._usage
        if choice.take is not None:
            usage.undo(choice.take)
            if signal is StepEnd.LIMIT:
                self._stack.pop()
                return signal
            if self._pruner is not None:
                choice.pending = self._pruner.after_failure(
                    row, choice.number, choice.take.device, choice.pending
                )
            choice.take = None
        faults = row.faults
        left = choice.pending & ~usage.blocked(row)
        while left:
            low = left & -left
            left ^= low
            device = low.bit_length() - 1
            fault = faults.get(device) if faults else None
            if fault is not None:
                plan = self._problem.plans[row.claim]
                raise AttemptAborted(fault.text(row.request.class_name, plan.key))
            if not usage.has_capacity(row, device):
                continue
            made = usage.take(row, device, must=False)
            if made is None:
                if row.grows:
                    left &= ~usage.blocked(row)  # quirk q8 may have marked the device
                continue
            choice.pending = left
            choice.take = made
            self._count()
            start = 0 if self._permutes else device + 1
            entered = self._enter_row(row, choice.claim, choice.request, choice.number + 1, start)
            return self._deeper(entered, choice.claim, choice.request)
        self._stack.pop()
        if self._observer is not None:
            self._observer.stuck(row, choice.number, usage)
        if self._pruner is not None:
            self._pruner.failed(row, choice.key)
        return StepEnd.FAIL

    def _deeper(
        self, entered: "StepEnd | _Next | None", claim: int, request: int
    ) -> StepEnd | None:
        if entered is _NEXT_REQUEST:
            return self._enter(claim, request + 1)
        assert entered is None or isinstance(entered, StepEnd)
        return entered

    def _count(self) -> None:
        self._steps += 1
        if self._steps > self._steps_max:
            raise StepsExhausted(self._steps)


class _Next(Enum):
    REQUEST = auto()


_NEXT_REQUEST = _Next.REQUEST
