"""Behaviours of upstream that look like defects, each behind a named switch.

A switch that is on reproduces upstream. An incident can only be reproduced together with the
defect, so all switches are on by default; switching one off repairs only that defect.
Parity: allocator.md 16.
"""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """The defects that are reproduced, by their numbers in the register.

    q1 counters stay booked when a device is refused for a taint or a constraint.
    q2 undoing a multi-allocatable device does not give back its counters.
    q3 the books of counters are keyed by pool name without driver.
    q4 a counter below zero refuses every counter-consuming device of its pool.
    q5 backtracking does not widen the common values of a matchAttribute again.
    q6 distinctAttribute remembers one value per request, the last.
    q7 an undone share without capacity leaves an entry, so its counters are not booked again.
    q8 a device that fails the last capacity check stays booked.
    q9 a device taken with admin access is in use for later requests of the same call. Repaired, it
    is so for its own claim only, as in the reverse order of requests.
    q10 a constraint refused in All mode ends the attempt for the whole pod.
    q11 an alternative in All mode raises its errors even if it is never reached. Repaired, they
    are raised when the search reaches it; until then it counts as asking for no device.
    q12 a newer generation elsewhere goes unnoticed when as many slices as announced are relevant.
    q13 a pool of which a newer generation exists elsewhere disappears. Repaired, it is incomplete
    ("being updated") as long as the node's slices are of the old generation.
    q14 a DeviceTaintRule without selector taints every device.
    q15 one device with binding conditions moves its pool behind all pools without.
    q16 a selector that fails on a device ends the attempt even if the request could never take the
    device. Repaired, devices that are allocated (but for admin access), have a taint that is not
    tolerated, or have counters while these are switched off are passed over instead, in All mode
    too. How much is left of counters still does not matter.
    q17 a share without capacity books its counters although an earlier share holds them.
    q18 alternatives that failed leave the traces of q1, q2, q5 to q8 for later alternatives of the
    list. Repaired, each begins with the books as they were before the first.
    q20 checking may enlarge the requested capacity.

    Upstream's q20 lasts as long as the scheduler's copy of the claim, so over several attempts for
    a pod. Here it ends with the attempt: a decision must follow from the log alone, and what
    earlier failed attempts looked at is not in it.
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
    q11: bool = True
    q12: bool = True
    q13: bool = True
    q14: bool = True
    q15: bool = True
    q16: bool = True
    q17: bool = True
    q18: bool = True
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
"""The marks of the conformance data, with the switches of each mark."""

NOT_SWITCHES = {
    "q19": (
        "with both `x` and `<driver>/x` on a device upstream's selectors see either; here they see "
        "the qualified one, as constraints do, so nothing is left to repair"
    ),
}
"""The entries of the register without a switch, with the reason."""

NUMBERS = tuple(field.name for field in fields(Quirks))

UPSTREAM = Quirks()
"""All defects as upstream has them."""


def numbers_of(mark: str) -> tuple[str, ...]:
    """The switches of a mark or number. Raises KeyError with the unknown mark."""
    lowered = mark.lower()
    if lowered in NUMBERS:
        return (lowered,)
    return MARKS[lowered]
