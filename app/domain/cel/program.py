"""Programs: compiled expressions for evaluation on devices.

The steps of compilation are syntax → types → literals → result type → code (Parity: cel.md 3). A
program is immutable and may be shared; programs are cached by expression and environment, errors
are not.
"""

from typing import Final

import msgspec

from app.domain.cel.checking import checker, literals
from app.domain.cel.checking.checker import Checked
from app.domain.cel.cost import estimate
from app.domain.cel.device import DeviceInput, DeviceValue
from app.domain.cel.environment import STORED, Environment
from app.domain.cel.evaluation import reads
from app.domain.cel.evaluation.closures import Compiler
from app.domain.cel.evaluation.reads import Read
from app.domain.cel.evaluation.state import COST_EXCEEDED, Code, Evaluation
from app.domain.cel.limits import COST_LIMIT, DEPTH_MAX
from app.domain.cel.syntax import parser
from app.domain.cel.syntax.issues import CompileError
from app.domain.cel.values.value import CelError, CostExceeded, Value
from app.domain.cel.values.value import type_name as name_of_type
from app.domain.values.bounded import Bounded

CACHED_PROGRAMS_MAX: Final = 4_096
"""The default number of cached programs."""

HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)
"""The text that the allocator appends to errors about missing keys. Parity: allocator.md 11.2."""


class SelectorOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an expression for a device: `match` or `error`, and the run-time cost."""

    match: bool | None
    error: str | None
    cost: int


class Program:
    """A compiled expression. `max_cost` is the static estimate of cel.md 6."""

    __slots__ = (
        *("_code", "_max_cost", "_reads", "_slots"),
        *("checked", "environment", "expression"),
    )

    def __init__(
        self, expression: str, environment: Environment, checked: Checked, code: Code, slots: int
    ) -> None:
        self.expression = expression
        self.environment = environment
        self.checked = checked
        self._code = code
        self._slots = slots
        self._max_cost: int | None = None
        self._reads: frozenset[Read] | None = None

    @property
    def max_cost(self) -> int:
        """The maximum cost of the expression, estimated without a device."""
        if self._max_cost is None:
            self._max_cost = estimate.maximum(self.checked)
        return self._max_cost

    @property
    def reads(self) -> frozenset[Read]:
        """The parts of a device that the outcome can depend on."""
        if self._reads is None:
            self._reads = reads.of(self.checked)
        return self._reads

    def evaluate(
        self, device: DeviceInput, *, cost_limit: int = COST_LIMIT, hint: bool = False
    ) -> SelectorOutcome:
        """Returns the outcome for a device. With `hint`, errors about missing keys have advice.

        An attribute that cannot be converted fails every expression (allocator.md 11.2).
        """
        match, cost = self.run(device.value, cost_limit)
        if match is True or match is False:
            return SelectorOutcome(match=match, error=None, cost=cost)
        error = error_text(match)
        if hint and "no such key:" in error and HINT not in error:
            error += HINT
        return SelectorOutcome(match=None, error=error, cost=cost)

    def run(self, device: DeviceValue, cost_limit: int = COST_LIMIT) -> tuple[Value, int]:
        """Returns the value for a converted device, which may be an error, and the cost."""
        if device.failure is not None:
            return device.failure, 0
        ctx = Evaluation(device, cost_limit, self._slots)
        try:
            return self._code(ctx), ctx.cost
        except CostExceeded:
            return COST_EXCEEDED, max(ctx.cost, cost_limit + 1)


def error_text(value: Value) -> str:
    """The error text of a result that is not a bool. Parity: allocator.md 11.2, last list."""
    if isinstance(value, CelError):
        return value.message
    name = name_of_type(value)
    return f"CEL result of type {name} could not be converted to bool: {_cause(name)}"


def _cause(name: str) -> str:
    match name:
        case "string":
            return "unsupported native conversion from string to 'bool'"
        case "int" | "uint":
            return f"unsupported type conversion from '{name}' to bool"
        case "list" | "map":
            return f"type conversion error from {name} to 'bool'"
        case "double":
            return "type conversion error from Double to 'bool'"
        case _:
            return f"type conversion error from '{name.rpartition('.')[2]}' to 'bool'"


class ProgramCache:
    """A cache of programs by expression and environment; it drops the least recently used first."""

    def __init__(self, entries_max: int = CACHED_PROGRAMS_MAX) -> None:
        self._programs: Bounded[tuple[str, Environment], Program] = Bounded(entries_max)

    def get(self, expression: str, environment: Environment) -> Program:
        """Returns the program of an expression. Raises CompileError; errors are not cached."""
        key = expression, environment
        program = self._programs.recent(key)
        if program is None:
            program = self._programs[key] = build(expression, environment)
        return program


_shared: Final = ProgramCache()


def compile_expression(
    expression: str, *, environment: Environment = STORED, cache: ProgramCache | None = None
) -> Program:
    """Returns the program of an expression, from `cache` or else from a shared cache.

    Raises CompileError with upstream's text.
    """
    return (cache if cache is not None else _shared).get(expression, environment)


def build(expression: str, environment: Environment) -> Program:
    """Compiles a new program; see `compile_expression`."""
    try:
        checked = checker.check(parser.parse(expression), environment)
        literals.check_literals(checked)
        literals.check_result(checked)
        compiler = Compiler(checked=checked, environment=environment)
        code = compiler.compile(checked.root)
    except RecursionError:
        # The bounds of `limits` leave room for callers; a caller with a deep stack can fail here.
        message = f"expression recursion limit exceeded: {DEPTH_MAX}"
        raise CompileError(f"compilation failed: ERROR: <input>:-1:0: {message}") from None
    return Program(expression, environment, checked, code, compiler.slots)
