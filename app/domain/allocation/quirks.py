"""Behaviours of upstream that look like defects, each behind a named switch.

On means as upstream. An incident can only be reproduced with the defect in it, so all are on by
default; switching one off repairs just that one. Parity: allocator.md 16.
"""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """Which defects are reproduced. Numbers are those of the register.

    q1 counters stay booked when a device is refused for a taint or a constraint.
    q2 undoing a multi-allocatable device does not give back its counters.
    q3 the books of counters are keyed by pool name without driver.
    q4 a counter below zero refuses every counter-consuming device of its pool.
    q5 backtracking does not widen the common values of a matchAttribute again.
    q6 distinctAttribute remembers one value per request, the last.
    q7 an undone share without capacity leaves an entry, so its counters are not booked again.
    q8 a device that fails the last capacity check stays booked.
    q9 a device taken with admin access is in use for later requests of the same call.
    q10 a constraint refused in All mode ends the attempt for the whole pod.
    q12 a newer generation elsewhere goes unnoticed when as many slices as announced are relevant.
    q14 a DeviceTaintRule without selector taints every device.
    q15 one device with binding conditions moves its pool behind all pools without.
    q17 a share without capacity books its counters although an earlier share holds them.
    q20 checking may enlarge the requested capacity.
    """

    q1: bool = True
    q2: bool = True
    q3: bool = True
    q4: bool = True
    q5: bool = True
    q6: bool = True
    q7: bool = True
    q8: bool = True
    q9: bool = True
    q10: bool = True
    q12: bool = True
    q14: bool = True
    q15: bool = True
    q17: bool = True
    q20: bool = True

    @classmethod
    def named(cls, *marks: str) -> "Quirks":
        """Upstream with the marked defects repaired, by mark (`counter-leak`) or number (`q5`).

        Raises KeyError with the unknown mark.
        """
        return cls().without(*marks)

    def without(self, *marks: str) -> "Quirks":
        """These switches with the marked defects repaired. Raises KeyError for an unknown mark."""
        off = [name for mark in marks for name in numbers_of(mark)]
        return replace(self, **dict.fromkeys(off, False))

    def repaired(self) -> tuple[str, ...]:
        """The numbers of the defects that are switched off."""
        return tuple(name for name in NUMBERS if not getattr(self, name))


MARKS = {
    "counter-leak": ("q1", "q2"),
    "distinct-last-only": ("q6",),
    "match-intersection-not-restored": ("q5",),
    "counters-by-pool-name": ("q3",),
    "capacity-reject-leak": ("q8",),
}
"""The marks of the conformance data, and the switches that each stands for."""

NUMBERS = tuple(field.name for field in fields(Quirks))

UPSTREAM = Quirks()
"""All defects as upstream has them."""


def numbers_of(mark: str) -> tuple[str, ...]:
    """The switches of a mark or number. Raises KeyError with the unknown mark."""
    lowered = mark.lower()
    if lowered in NUMBERS:
        return (lowered,)
    return MARKS[lowered]
