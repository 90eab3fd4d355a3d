"""Evaluation of one expression over all devices of a slice, once for each distinct input.

A `DeviceTable` groups devices by the values that an expression reads (`reads`). The expression is
evaluated for one device of each group, and the outcome applies to the group, so a mask over 128
equal devices takes one evaluation. Outcomes equal those of separate evaluations, which a test
checks. Masks are bit sets: bit i stands for device i.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.cel.device import DeviceInput
from app.domain.cel.evaluation import reads
from app.domain.cel.evaluation.reads import Read
from app.domain.cel.limits import COST_LIMIT
from app.domain.cel.program import Program, SelectorOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """The outcomes of an expression over a table. `matching` and `failing` are bit sets."""

    count: int
    matching: int
    failing: int
    groups: tuple[tuple[int, SelectorOutcome], ...]

    def outcome(self, index: int) -> SelectorOutcome:
        """The outcome for one device."""
        bit = 1 << index
        for bits, outcome in self.groups:
            if bits & bit:
                return outcome
        raise IndexError(index)

    def outcomes(self) -> list[SelectorOutcome]:
        """The outcomes of all devices, in their order."""
        by_device: dict[int, SelectorOutcome] = {}
        for bits, outcome in self.groups:
            while bits:
                lowest = bits & -bits
                by_device[lowest.bit_length() - 1] = outcome
                bits ^= lowest
        return [by_device[index] for index in range(self.count)]


@dataclass(slots=True, eq=False)
class DeviceTable:
    """Devices with cached results: groups by reads, masks by program.

    The devices never change; a changed slice gets a new table.
    """

    devices: Sequence[DeviceInput]
    _groups: dict[frozenset[Read], list[tuple[int, int]]] = field(default_factory=dict)
    _masks: dict[tuple[Program, int, bool], Mask] = field(default_factory=dict)

    def groups(self, read: frozenset[Read]) -> list[tuple[int, int]]:
        """The first device and the bits of each group of devices with equal values of `read`."""
        groups = self._groups.get(read)
        if groups is None:
            groups = self._groups[read] = self._group(read)
        return groups

    def _group(self, read: frozenset[Read]) -> list[tuple[int, int]]:
        if not read:
            # Even a constant expression fails on a device that cannot be converted.
            read = frozenset({("attributes?", "")})
        ordered = sorted(read)
        groups: dict[tuple[object, ...], list[int]] = {}
        for index, device in enumerate(self.devices):
            value = device.value
            key = tuple([reads.key(value, part) for part in ordered])
            group = groups.get(key)
            if group is None:
                groups[key] = [index, 1 << index]
            else:
                group[1] |= 1 << index
        return [(first, bits) for first, bits in groups.values()]

    def mask(self, program: Program, *, cost_limit: int = COST_LIMIT, hint: bool = False) -> Mask:
        """The outcomes of a program on these devices; computed once for each program."""
        wanted = program, cost_limit, hint
        known = self._masks.get(wanted)
        if known is None:
            known = self._evaluate(program, cost_limit, hint)
            self._masks[wanted] = known
        return known

    def _evaluate(self, program: Program, cost_limit: int, hint: bool) -> Mask:
        groups: list[tuple[int, SelectorOutcome]] = []
        matching = failing = 0
        for first, bits in self.groups(program.reads):
            outcome = program.evaluate(self.devices[first], cost_limit=cost_limit, hint=hint)
            groups.append((bits, outcome))
            if outcome.match:
                matching |= bits
            elif outcome.error is not None:
                failing |= bits
        return Mask(
            count=len(self.devices), matching=matching, failing=failing, groups=tuple(groups)
        )


def mask(
    program: Program,
    devices: DeviceTable | Sequence[DeviceInput],
    *,
    cost_limit: int = COST_LIMIT,
    hint: bool = False,
) -> Mask:
    """The outcomes of a program over devices; pass a table to reuse its results."""
    table = devices if isinstance(devices, DeviceTable) else DeviceTable(devices)
    return table.mask(program, cost_limit=cost_limit, hint=hint)
