"""The selector evaluation for the checker: whether an expression matches a device of a slice.

It is separate from the selectors of the search: it uses no compiled devices and no masks, and
evaluates one device at a time.
"""

from app.domain.cel import STORED, CompileError, DeviceInput, Program, compile_expression
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonView


class Selections:
    """Evaluates expressions for devices; compiles each expression once."""

    def __init__(self) -> None:
        self._programs: dict[str, Program | None] = {}

    def __call__(self, expression: str, driver: str, device: JsonView) -> bool:
        """True for a match; false also for an expression that does not compile or fails."""
        return self.outcome(expression, driver, device) is True

    def outcome(self, expression: str, driver: str, device: JsonView) -> bool | None:
        """Whether the expression matches the device; None if it does not compile or fails."""
        if expression not in self._programs:
            try:
                program = compile_expression(expression, environment=STORED)
            except CompileError:
                self._programs[expression] = None
            else:
                self._programs[expression] = program
        compiled = self._programs[expression]
        if compiled is None:
            return None
        shown = DeviceInput(
            driver=driver,
            attributes=dra.attributes(device),
            capacity=dra.capacity(device),
            allow_multiple_allocations=device.get("allowMultipleAllocations") is True,
        )
        outcome = compiled.evaluate(shown)
        return outcome.match if outcome.error is None else None
