"""The selector compiler: CEL expressions over devices.

A selector caches its results by the values that the expression reads from a device, so that devices
with equal values (most devices of a cluster) are evaluated once. Devices with only plain scalars,
which always convert to CEL, are compared as published, without a conversion. Parity:
allocator.md 5.1, 11.1.
"""

from collections.abc import Hashable, Sequence

from app.domain import cel
from app.domain.cel.evaluation import reads
from app.domain.cel.evaluation.reads import Read
from app.domain.devices.device_selectors import (
    KeyOf,
    SelectorCompileError,
    SelectorResult,
    driver_of,
)
from app.domain.devices.model import Device
from app.domain.values.bounded import Bounded

VERDICTS_MAX = 50_000
"""The most results cached per selector; beyond it, the oldest is dropped."""

SELECTORS_MAX = 4_096
"""The most selectors cached per compiler; beyond it, the oldest is dropped."""


class CelSelector:
    """A compiled expression that is evaluated for devices."""

    __slots__ = ("_detailed", "_parts", "_plain", "_verdicts", "program", "published_key")

    def __init__(self, program: cel.Program, *, detailed_errors: bool = True) -> None:
        self.program = program
        self._detailed = detailed_errors
        # An expression that reads nothing still fails on a device that cannot be converted.
        self._parts = sorted(program.reads) or [("driver",)]
        self._verdicts: Bounded[object, SelectorResult] = Bounded(VERDICTS_MAX)
        self.published_key: KeyOf | None = _key_of(self._parts)
        self._plain: Bounded[object, SelectorResult] = Bounded(VERDICTS_MAX)

    def judge(
        self, devices: Sequence[Device], keys: Sequence[Hashable] | None = None
    ) -> Sequence[SelectorResult]:
        """The result for each device, in order; `keys`, if known, are by `published_key`."""
        key_of, known = self.published_key, self._plain
        if keys is not None:
            return [
                known.get(key) or self._judge_plain(device, key)
                for device, key in zip(devices, keys, strict=True)
            ]
        if key_of is None:
            return [self._converted(device) for device in devices]
        converted = []
        for device in devices:
            if not device.is_plain:
                converted.append(self._converted(device))
                continue
            key = key_of(device)
            converted.append(known.get(key) or self._judge_plain(device, key))
        return converted

    def _judge_plain(self, device: Device, key: Hashable) -> SelectorResult:
        """The result for a plain device, cached by its key."""
        verdict = self._plain[key] = self._converted(device)
        return verdict

    def judge_like(self, device: Device) -> SelectorResult | None:
        """The result for all plain devices of the driver; None if more than the driver is read."""
        return self.judge((device,))[0] if self.published_key is driver_of else None

    def _converted(self, device: Device) -> SelectorResult:
        """The result for a device, cached by the CEL values that the expression reads."""
        cel_input = device.cel_input
        value = cel_input.value
        known = self._verdicts
        key = tuple([reads.key(value, part) for part in self._parts])
        verdict = known.get(key)
        if verdict is None:
            verdict = known[key] = self._evaluate(cel_input)
        return verdict

    def _evaluate(self, device: cel.DeviceInput) -> SelectorResult:
        outcome = self.program.evaluate(device, hint=self._detailed)
        if outcome.error is not None:
            return SelectorResult(match=False, error=outcome.error, names_device=self._detailed)
        return SelectorResult(match=outcome.match is True)


def _key_of(parts: Sequence[Read]) -> KeyOf | None:
    """The key function for plain devices over these parts; None when it needs a conversion to CEL.

    Plain devices with equal keys have equal CEL values in these parts. The driver is part of the
    key when names are looked up, because names without a domain belong to the driver's domain.
    """
    names: list[tuple[bool, str, str, str]] = []
    flagged = False
    for part in parts:
        match part:
            case ("driver",):
                continue
            case ("allowMultipleAllocations",):
                flagged = True
            case (("attributes" | "capacity") as kind, domain, name) if "/" not in domain + name:
                names.append((kind == "attributes", domain, f"{domain}/{name}", name))
            case _:
                return None
    if not names and not flagged:
        return driver_of
    if len(names) == 1 and names[0][0] and not flagged:
        _, domain, qualified, bare = names[0]

        def one(device: Device) -> Hashable:
            driver = device.id[0]
            attribute = device.attributes.get(qualified)
            if attribute is None and domain == driver:
                attribute = device.attributes.get(bare)
            return driver, None if attribute is None else tuple(attribute.items())

        return one

    def many(device: Device) -> Hashable:
        driver = device.id[0]
        key: list[Hashable] = [driver, device.allow_multiple]
        for is_attribute, domain, qualified, bare in names:
            tree = device.attributes if is_attribute else device.capacity_tree
            value_tree = tree.get(qualified)
            if value_tree is None and domain == driver:
                value_tree = tree.get(bare)
            if value_tree is None:
                key.append(None)
            else:
                key.append(
                    tuple(value_tree.items()) if is_attribute else str(value_tree.get("value"))
                )
        return tuple(key)

    return many if any(name[0] for name in names) else _like_the_last(many)


def _like_the_last(key_of: KeyOf) -> KeyOf:
    """The same keys, of devices of which only the driver, the flag and the capacities are read.

    Devices of a kind share their capacities and mostly follow each other.
    """
    # One value, because threads read and replace it.
    last: tuple[Device, Hashable] | None = None

    def key(device: Device) -> Hashable:
        nonlocal last
        before = last
        if (
            before is not None
            and device.capacity_tree is before[0].capacity_tree
            and device.allow_multiple is before[0].allow_multiple
            and device.id[0] == before[0].id[0]
        ):
            return before[1]
        made = key_of(device)
        last = device, made
        return made

    return key


class CelCompiler:
    """Compiles expressions in the environment with all features, as the scheduler does.

    Errors are cached too, because they depend only on the text. With `detailed_errors`, run-time
    errors name the device and contain a hint, as since 1.37; recordings of 1.36 have neither.
    """

    def __init__(self, *, detailed_errors: bool) -> None:
        self._detailed_errors = detailed_errors
        self._selectors: Bounded[str, CelSelector | str] = Bounded(SELECTORS_MAX)

    def compile(self, expression: str) -> CelSelector:
        """The compiled selector. Raises SelectorCompileError."""
        selector = self._selectors.get(expression)
        if selector is None:
            selector = self._selectors[expression] = self._compile(expression)
        if isinstance(selector, str):
            raise SelectorCompileError(selector)
        return selector

    def _compile(self, expression: str) -> CelSelector | str:
        """The selector, or the text of its error."""
        try:
            program = cel.compile_expression(expression)
        except cel.CompileError as problem:
            return str(problem)
        return CelSelector(program, detailed_errors=self._detailed_errors)
