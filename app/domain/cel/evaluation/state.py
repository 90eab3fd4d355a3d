"""The state of one evaluation: the device, the cost so far, loop variables.

Code of a node is a closure that takes an `Evaluation` and gives a value, which may be an error.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from app.domain.cel.device import DeviceValue
from app.domain.cel.evaluation.values import CelError, CostExceeded, Value
from app.domain.cel.library.quantities import Forms
from app.domain.cel.limits import WORK_MAX

COST_EXCEEDED: Final = CelError("operation cancelled: actual cost limit exceeded")


_NO_SLOTS: Final[list[Value]] = []


class Evaluation:
    """Mutable state; made for one evaluation of one program and then dropped."""

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
        """Quantities that this evaluation has turned into decimal form."""
        if self.noted_forms is None:
            self.noted_forms = {}
        return self.noted_forms

    def toil(self, elements: int) -> None:
        """Counts work that costs do not count; raises CostExceeded when it is too much."""
        self.work += elements
        if self.work > WORK_MAX:
            raise CostExceeded

    def over(self, steps: int) -> CostExceeded:
        """Ends an evaluation whose last `steps` were charged one by one."""
        if steps > 1:
            self.cost = max(self.limit + 1, self.cost - steps + 1)
        return CostExceeded()


Code: TypeAlias = Callable[[Evaluation], Value]
