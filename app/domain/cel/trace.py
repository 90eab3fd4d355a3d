"""The trace of an evaluation: the value or error of each written part of an expression.

A trace evaluates the expression again with code that records every part. Parts that are not
evaluated (after a deciding operand, in the branch not taken) are left out. Costs are those of the
plain evaluation.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from app.domain.cel.device import DeviceInput, DeviceValue
from app.domain.cel.evaluation.closures import Compiler
from app.domain.cel.evaluation.state import Code, Evaluation
from app.domain.cel.limits import COST_LIMIT
from app.domain.cel.program import Program, SelectorOutcome
from app.domain.cel.syntax.tree import (
    CONDITIONAL,
    INDEX,
    LOGICAL_AND,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    Call,
    Ident,
    Literal,
    Node,
    Select,
    children,
)
from app.domain.cel.values.value import (
    CelError,
    CostExceeded,
    OptionalValue,
    QuantityValue,
    Value,
    VisitBudget,
    key_value,
    plain_text,
    type_name,
)
from app.domain.values.semver import Semver

_SHOWN_MAX = 200
_PARTS_SHOWN_MAX = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One part of the expression: its position, and its value or error.

    `line` counts from 1, `column` from 1. `value` is the text of the value, `error` that of the
    error; exactly one is set. `evaluations` is more than 1 inside a loop; then the error is
    the first one, or without an error the value is the last one.
    """

    start: int
    end: int
    line: int
    column: int
    text: str
    value: str | None
    error: str | None
    evaluations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationTrace:
    """The outcome, the parts in the order of evaluation, and the part that failed.

    `origin` is the smallest part that gave the error of the outcome.
    """

    outcome: SelectorOutcome
    steps: tuple[TraceStep, ...]
    origin: TraceStep | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Falsity:
    """The smallest part that makes an expression false for a device, and the values that it read.

    For `a && b` it is the operand that is false, for `a || b` the whole, because both operands are
    false. `reads` are paths into the device with their values, each once.
    """

    text: str
    reads: tuple[tuple[str, str], ...]


def trace(
    program: Program, device: DeviceInput, *, cost_limit: int = COST_LIMIT
) -> EvaluationTrace:
    """The trace of a program on a device."""
    outcome = program.evaluate(device, cost_limit=cost_limit)
    if device.value.failure is not None:
        return EvaluationTrace(outcome=outcome, steps=(), origin=None)
    tracer = _Tracer(program)
    answer = tracer.evaluate(device, cost_limit)
    recorder = tracer.recorder
    origin = recorder.origin_of(answer) if isinstance(answer, CelError) else None
    return EvaluationTrace(
        outcome=outcome,
        steps=tuple(recorder.step(node) for node in recorder.order),
        origin=None if origin is None else recorder.step(origin),
    )


def falsities(program: Program, devices: Iterable[DeviceInput]) -> Iterator[Falsity | None]:
    """Yields the reason why a program is false for each device; None if it is not false."""
    tracer = _Tracer(program)
    for device in devices:
        is_false = device.value.failure is None and tracer.evaluate(device, COST_LIMIT) is False
        yield tracer.recorder.falsity() if is_false else None


class _Tracer:
    """The code of a program that records every part, made once for many devices."""

    def __init__(self, program: Program) -> None:
        self.recorder = _Recorder(program)
        self._compiler = Compiler(
            checked=program.checked, environment=program.environment, wrap=self.recorder.wrap
        )
        self.recorder.compiler = self._compiler
        self._code = self._compiler.compile(program.checked.root)

    def evaluate(self, device: DeviceInput, cost_limit: int) -> Value:
        """Returns the value of the program; None beyond the cost limit. Clears previous records."""
        self.recorder.notes.clear()
        self.recorder.order.clear()
        try:
            return self._code(Evaluation(device.value, cost_limit, self._compiler.slots))
        except CostExceeded:
            return None


@dataclass(slots=True)
class _Note:
    value: Value
    count: int


@dataclass(slots=True)
class _Recorder:
    program: Program
    compiler: Compiler | None = None
    notes: dict[int, _Note] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    inside: int = 0

    def wrap(self, node: Node, code: Code) -> Code:
        """Returns code that also records the value of a written node other than a literal."""
        if node.id not in self.program.checked.parsed.spans or isinstance(node, Literal):
            return code
        prefixes = self._prefixes(node)

        def noted(ctx: Evaluation) -> Value:
            value = code(ctx)
            if isinstance(value, CelError):
                self._note_prefixes(ctx, prefixes)
            self._note(node, value)
            return value

        return noted

    def _prefixes(self, node: Node) -> list[tuple[Node, Code]]:
        """The prefixes of a path, shortest first, each with its own code."""
        if self.inside or self.compiler is None:
            return []
        self.inside += 1
        prefixes: list[tuple[Node, Code]] = []
        for prefix in _path_operands(node):
            if prefix.id in self.program.checked.parsed.spans:
                prefixes.append((prefix, self.compiler.path(prefix, start_charged=False)))
        self.inside -= 1
        prefixes.reverse()
        return prefixes

    def _note_prefixes(self, ctx: Evaluation, prefixes: list[tuple[Node, Code]]) -> None:
        cost, limit = ctx.cost, ctx.limit
        ctx.limit = cost + limit
        for prefix, code in prefixes:
            try:
                self._note(prefix, code(ctx))
            except CostExceeded:
                break
        ctx.cost, ctx.limit = cost, limit

    def _note(self, node: Node, value: Value) -> None:
        note = self.notes.get(node.id)
        if note is None:
            self.notes[node.id] = _Note(value, 1)
            self.order.append(node)
            return
        note.count += 1
        if not isinstance(note.value, CelError):
            note.value = value

    def origin_of(self, error: CelError) -> Node | None:
        """The first recorded node that gave this error."""
        for node in self.order:
            value = self.notes[node.id].value
            if isinstance(value, CelError) and value.message == error.message:
                return node
        return None

    def falsity(self) -> Falsity:
        """The smallest part that made the recorded expression false, and the values it read."""
        node = self._deciding(self.program.checked.root)
        reads: dict[str, str] = {}
        self._read_in(node, reads)
        start, end = self.program.checked.parsed.spans[node.id]
        return Falsity(
            text=self.program.checked.parsed.source.text[start:end], reads=tuple(reads.items())
        )

    def _deciding(self, node: Node) -> Node:
        """The smallest written part of a false node that alone makes it false."""
        if isinstance(node, Call) and node.function == LOGICAL_AND:
            false = [part for part in node.args if self._is(part, False)]
            return self._deciding(false[0]) if false else node
        if isinstance(node, Call) and node.function == CONDITIONAL:
            condition, yes, no = node.args
            branch = yes if self._is(condition, True) else no
            return self._deciding(branch) if self._is(branch, False) else node
        return node

    def _is(self, node: Node, value: bool) -> bool:
        """Whether the recorded value of a written node is this value."""
        note = self.notes.get(node.id)
        return note is not None and note.value is value

    def _read_in(self, node: Node, reads: dict[str, str]) -> None:
        """Adds the longest paths into the device below a node to `reads`, with their values."""
        note = self.notes.get(node.id)
        if note is not None and _begins_at_device(node):
            step = self.step(node)
            reads.setdefault(step.text, step.value or f"an error ({step.error})")
            return
        for child in children(node):
            self._read_in(child, reads)

    def step(self, node: Node) -> TraceStep:
        """The record of a node as a TraceStep."""
        parsed = self.program.checked.parsed
        start, end = parsed.spans[node.id]
        line, column = parsed.source.place(start)
        note = self.notes[node.id]
        value = note.value
        is_error = isinstance(value, CelError)
        return TraceStep(
            start=start,
            end=end,
            line=line,
            column=column + 1,
            text=parsed.source.text[start:end],
            value=None if is_error else shown(value),
            error=value.message if isinstance(value, CelError) else None,
            evaluations=note.count,
        )


def _path_operands(node: Node) -> list[Node]:
    """The nodes to the left of the last step of a path, longest first."""
    operands: list[Node] = []
    while True:
        if isinstance(node, Select):
            node = node.operand
        elif isinstance(node, Call) and node.target is None and node.function[:1] == "_":
            if node.function not in _STEPS:
                return operands
            node = node.args[0]
        else:
            return operands
        if isinstance(node, Select | Call):
            operands.append(node)


def _begins_at_device(node: Node) -> bool:
    """Whether a node is a path into the device with at least one step."""
    operands = [node, *_path_operands(node)]
    if len(operands) < 2 and not isinstance(node, Select):
        return False
    last = operands[-1]
    first = last.operand if isinstance(last, Select) else None
    if first is None and isinstance(last, Call) and last.function in _STEPS:
        first = last.args[0]
    return isinstance(first, Ident) and first.name == _DEVICE


_STEPS = (INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT)

_DEVICE = "device"


def shown(value: Value) -> str:
    """The text of a value for users, shortened to a bounded length."""
    try:
        text = _shown(value, VisitBudget(_PARTS_SHOWN_MAX))
    except CostExceeded:
        text = f"{type_name(value)} of many parts"
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def _shown(value: Value, budget: VisitBudget) -> str:
    budget.spend(1)
    match value:
        case str():
            return '"' + value[:_SHOWN_MAX].replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple():
            return "[" + ", ".join(_shown(item, budget) for item in value[:20]) + "]"
        case dict():
            pairs = list(value.items())[:20]
            inner = ", ".join(
                f"{_shown(key_value(k), budget)}: {_shown(v, budget)}" for k, v in pairs
            )
            return "{" + inner + "}"
        case OptionalValue():
            return (
                f"optional({_shown(value.value, budget)})" if value.present else "optional.none()"
            )
        case QuantityValue():
            return f'quantity("{value.quantity}")'
        case Semver():
            return f'semver("{value}")'
        case DeviceValue():
            return "device"
        case bytes():
            return repr(value[:_SHOWN_MAX])
        case bool() | int() | float() | None:
            return plain_text(value)
        case _:
            return type_name(value)
