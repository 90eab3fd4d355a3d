"""The real selector compiler: CEL over devices.

A selector remembers its verdicts by what the expression reads of a device, so that devices which
agree there (most devices of a cluster) are judged once. Parity: allocator.md 5.1, 11.1.
"""

from collections.abc import Sequence

from app.domain import cel
from app.domain.cel import reads
from app.domain.devices.device_selectors import SelectorCompileError, Verdict
from app.domain.devices.model import Device

VERDICTS_MAX = 50_000
"""Verdicts remembered per selector; when there are more, all are forgotten."""

SELECTORS_MAX = 4_096
"""Selectors remembered per compiler; when there are more, all are forgotten."""


class CelSelector:
    """A compiled expression, asked about devices."""

    __slots__ = ("_detailed", "_parts", "_verdicts", "program")

    def __init__(self, program: cel.Program, *, detailed_errors: bool = True) -> None:
        self.program = program
        self._detailed = detailed_errors
        # An expression that reads nothing still fails on a device that cannot be converted.
        self._parts = sorted(program.reads) or [("driver",)]
        self._verdicts: dict[object, Verdict] = {}

    def judge(self, devices: Sequence[Device]) -> Sequence[Verdict]:
        """The verdict for each device, in order."""
        parts = self._parts
        known = self._verdicts
        single = parts[0] if len(parts) == 1 else None
        found = []
        for device in devices:
            given = device.cel_input
            value = given.value
            key: object = (
                reads.key(value, single)
                if single is not None
                else tuple([reads.key(value, part) for part in parts])
            )
            verdict = known.get(key)
            if verdict is None:
                verdict = self._evaluate(given)
                if len(known) >= VERDICTS_MAX:
                    known.clear()
                known[key] = verdict
            found.append(verdict)
        return found

    def _evaluate(self, device: cel.DeviceInput) -> Verdict:
        outcome = self.program.evaluate(device, hint=self._detailed)
        if outcome.error is not None:
            return Verdict(match=False, error=outcome.error, names_device=self._detailed)
        return Verdict(match=outcome.match is True)


class CelCompiler:
    """Compiles in the environment that knows everything, as the scheduler does.

    Errors are remembered too: the answer depends on the text alone. With `detailed_errors` run-time
    errors name the device and carry advice, as since 1.37; 1.36 was recorded without.
    """

    def __init__(self, *, detailed_errors: bool = True) -> None:
        self._detailed_errors = detailed_errors
        self._selectors: dict[str, CelSelector | str] = {}

    def compile(self, expression: str) -> CelSelector:
        """The compiled selector. Raises SelectorCompileError."""
        found = self._selectors.get(expression)
        if found is None:
            found = self._compile(expression)
            if len(self._selectors) >= SELECTORS_MAX:
                self._selectors.clear()
            self._selectors[expression] = found
        if isinstance(found, str):
            raise SelectorCompileError(found)
        return found

    def _compile(self, expression: str) -> CelSelector | str:
        """The selector, or the text of its error."""
        try:
            program = cel.compile_expression(expression)
        except cel.CompileError as problem:
            return str(problem)
        return CelSelector(program, detailed_errors=self._detailed_errors)
