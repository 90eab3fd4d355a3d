"""CEL selectors asked about devices; the one place where devices meet the CEL package.

`SelectorCompiler` is what patches and the allocator need of CEL: an expression becomes a
`DeviceSelector`, or SelectorCompileError with upstream's text. A selector sees the device's driver,
attributes, capacity and flag, and nothing else. Parity: allocator.md 5.1 and 11.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.domain.devices.model import Device


class SelectorCompileError(Exception):
    """An expression that does not compile; the message is the detail of the API's error text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorResult:
    """What a selector says of one device: a match, or not, or the text of a run-time error.

    Errors name the device since 1.37; before, `names_device` is false.
    """

    match: bool
    error: str = ""
    names_device: bool = True


KeyOf: TypeAlias = Callable[[Device], Hashable]
"""What a selector reads of a plain device, comparable and hashable."""


def driver_of(device: Device) -> Hashable:
    """The key of plain devices for a selector that reads nothing but the driver."""
    return device.id[0]


class DeviceSelector(Protocol):
    """A compiled selector.

    Plain devices with equal keys by `published_key` get equal verdicts; it is None when only
    converted values tell what the selector reads.
    """

    @property
    def published_key(self) -> KeyOf | None:
        """What the selector reads of a plain device, as published."""
        ...

    def judge(self, devices: Sequence[Device]) -> Sequence[SelectorResult]:
        """The verdict for each device, in order. Pure; may remember by device."""
        ...

    def judge_like(self, device: Device) -> SelectorResult | None:
        """The verdict for all plain devices of the device's driver; None if it depends on more."""
        ...


class SelectorCompiler(Protocol):
    """Turns expressions into selectors; compiling the same text again is cheap."""

    def compile(self, expression: str) -> DeviceSelector:
        """The compiled selector. Raises SelectorCompileError."""
        ...
