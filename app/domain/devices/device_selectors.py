"""The interface of CEL selectors over devices.

Patches and the allocator use CEL through `SelectorCompiler`: it turns an expression into a
`DeviceSelector`, or raises SelectorCompileError with upstream's text. A selector sees only the
device's driver, attributes, capacity and flag. Parity: allocator.md 5.1 and 11.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.domain.devices.model import Device


class SelectorCompileError(Exception):
    """An expression that does not compile; the message is the detail of the API's error text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorResult:
    """The result of a selector for one device: match, no match, or the text of a run-time error.

    Errors name the device since 1.37; for earlier releases `names_device` is false.
    """

    match: bool
    error: str = ""
    names_device: bool = True


KeyOf: TypeAlias = Callable[[Device], Hashable]
"""A function that gives what a selector reads from a plain device, as a hashable value."""


def driver_of(device: Device) -> Hashable:
    """The key of plain devices for a selector that reads only the driver."""
    return device.id[0]


class DeviceSelector(Protocol):
    """A compiled selector.

    Plain devices with equal keys by `published_key` get equal results. It is None when the values
    that the selector reads are known only after conversion.
    """

    @property
    def published_key(self) -> KeyOf | None:
        """The function that gives what the selector reads from a plain device, as published."""
        ...

    def judge(
        self, devices: Sequence[Device], keys: Sequence[Hashable] | None = None
    ) -> Sequence[SelectorResult]:
        """The result for each device, in order. It depends only on the device and may be cached.

        `keys`, where they are known, are the devices' keys by `published_key`; all are plain then.
        """
        ...

    def judge_like(self, device: Device) -> SelectorResult | None:
        """The result for all plain devices of the device's driver; None if it depends on more."""
        ...


class SelectorCompiler(Protocol):
    """Compiles expressions into selectors; compiling the same text again is cheap."""

    def compile(self, expression: str) -> DeviceSelector:
        """The compiled selector. Raises SelectorCompileError."""
        ...
