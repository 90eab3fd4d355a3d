"""The state of one evaluation: the device, the cost so far, loop variables.

The code of a node is a closure that takes an `Evaluation` and returns a value, which may be an
error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from app.domain.cel.device import DeviceValue
from app.domain.cel.library.quantities import Forms
from app.domain.cel.limits import WORK_MAX
from app.domain.cel.syntax.tree import Node
from app.domain.cel.values.value import CelError, CostExceeded, Value

COST_EXCEEDED: Final = CelError("operation cancelled: actual cost limit exceeded")


_NO_SLOTS: Final[list[Value]] = []


class Evaluation:
    """The mutable state of one evaluation of one program."""

    __slots__ = ("cost", "device", "limit", "noted_forms", "slots", "work")

    def __init__(self, device: DeviceValue, limit: int, slots: int) -> None:
        self.device = device
        self.cost = 0
        self.limit = limit
        self.work = 0
        self.slots: list[Value] = [None] * slots if slots else _NO_SLOTS
        self.noted_forms: Forms | None = None

    @property
    def forms(self) -> Forms:
        """The quantities that this evaluation has converted to decimal form."""
        if self.noted_forms is None:
            self.noted_forms = {}
        return self.noted_forms

    def toil(self, elements: int) -> None:
        """Counts work that costs do not include. Raises CostExceeded above WORK_MAX."""
        self.work += elements
        if self.work > WORK_MAX:
            raise CostExceeded

    def over(self, steps: int) -> CostExceeded:
        """Returns the error that ends an evaluation, and sets its cost.

        The cost is what charging the last `steps` one by one would give.
        """
        if steps > 1:
            self.cost = max(self.limit + 1, self.cost - steps + 1)
        return CostExceeded()


Code: TypeAlias = Callable[[Evaluation], Value]

Wrap: TypeAlias = Callable[[Node, Code], Code]
"""A function that gets the code of a node and may replace it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The value of a folded node."""

    value: Value


class NodeCompiler(Protocol):
    """The interface of the compiler for the code of single constructs."""

    wrap: Wrap | None

    def compile(self, node: Node) -> Code:
        """The code of a node."""
        ...

    def fold(self, node: Node) -> Constant | None:
        """The constant value of a node, or None."""
        ...

    def declare(self, *names: str) -> list[int]:
        """Opens a scope with a slot for each name."""
        ...

    def leave(self) -> None:
        """Closes the innermost scope."""
        ...
