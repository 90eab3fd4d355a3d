"""A violation: the broken rule, its severity, the objects concerned, and its duration."""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple

from app.domain.log import ObjectKey, Revision
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

Place = tuple[object, ...]
"""The identity of a finding: the rule, and the part of the cluster in which it is broken."""

LATE_AFTER = 60 * SECOND
"""The cluster time within which a controller has to restore a state.

Upstream names no bound: a controller acts at once, retries with a back-off, and stands still while
another kube-controller-manager takes over, which takes the 15 seconds of its lease and a start.
This is several times that. See docs/explanation/invariants.md.
"""

CLOCK_TOLERANCE = 1 * SECOND
"""The greatest difference between the clocks of a controller and of a server."""

IN_FLIGHT = 15 * SECOND
"""The longest time between the choice of an allocation and its write. Changes in that time may not
have been seen. A scheduler under its client's rate limit writes seconds after it has decided."""


class Silences:
    """The times of more than `LATE_AFTER` in which nobody wrote: controllers may not have run.

    With `are_added` all of them excuse a controller together, as where a server is stopped again
    and again. Otherwise the longest one does: a recorded cluster is not away each time that a
    controller should have written.
    """

    def __init__(self, *, are_added: bool) -> None:
        self._are_added = are_added
        self._spans: list[tuple[Instant, int]] = []

    def note(self, since: Instant, until: Instant) -> None:
        """Notes the next one."""
        self._spans.append((until, until - since))

    def since(self, begin: Instant) -> int:
        """The time for which they lasted after an instant at which somebody wrote."""
        number = bisect_right(self._spans, begin, key=lambda span: span[0])
        lengths = (length for _, length in self._spans[number:])
        return sum(lengths) if self._are_added else max(lengths, default=0)


class ViolationKind(StrEnum):
    """The severity of a violation.

    `BROKEN` must not occur. `LATE` is a state that controllers restore, but did not restore within
    `LATE_AFTER`. `OUTSIDE` was caused by a driver or a user, under allocations that were valid when
    they were written. `KNOWN` is a known defect of the release that decided. `UNSURE` may be no
    violation: the recording lacks what would decide it.
    """

    BROKEN = "broken"
    LATE = "late"
    OUTSIDE = "outside"
    KNOWN = "known"
    UNSURE = "unsure"

    @property
    def is_failure(self) -> bool:
        """Whether a history with such a violation fails verification."""
        return self is ViolationKind.BROKEN or self is ViolationKind.LATE


EVICTED = "eviction-has-taint"

RULES: Mapping[str, str] = {
    "device-in-one-claim": "A device that does not allow multiple allocations is in one result.",
    "counters-not-overdrawn": "Devices in use draw no more than the counters of their pool have.",
    "consumed-within-capacity": "Shares of a device consume no more than its capacity.",
    "allocation-has-finalizer": "A claim that is allocated has the finalizer that protects it.",
    "finalizer-outlasts-allocation": "The claim controller deallocates a claim before it removes "
    "the finalizer.",
    "reservation-has-allocation": "A claim that is reserved is allocated.",
    "reservations-within-limit": "A claim is reserved for at most 256 consumers, once for each.",
    "reservation-names-pod": "The pod that a claim is reserved for exists.",
    "reserved-pod-names-claim": "The pod that a claim is reserved for names it, or owns it.",
    "terminating-claim-unused": "A claim that is being deleted is not allocated or reserved anew.",
    "bound-pod-has-claims": "Claims of a bound pod are allocated and reserved for it.",
    "bound-pod-claims-made": "A claim was made for each template that a bound pod names.",
    "bound-pod-has-ready-devices": "A pod is bound once drivers report its devices as ready.",
    "pod-on-allocated-node": "A pod runs on a node that its allocations select.",
    "allocated-device-existed": "A device exists when it is allocated.",
    "allocated-device-published": "A device is published as long as it is allocated.",
    "allocation-unchanged": "An allocation is not changed or exchanged for another one.",
    "immutable-field-unchanged": "An immutable field has the value that it had.",
    "removed-before-renewed": "An object is removed before another one gets its name.",
    "fields-agree": "Fields that a server sets or checks together agree.",
    "admin-access-allowed": "Admin access is requested and given in namespaces that allow it.",
    "reported-device-allocated": (
        "Drivers report in a claim about its allocated devices alone, once of each."
    ),
    "request-satisfied": "Each request gets as many devices, with the access, as it asks for.",
    "constraint-holds": "Devices agree or differ in the attribute that a constraint names.",
    "share-of-shared-device": "A device that is allocated in shares allows multiple allocations.",
    "tolerations-copied": "A result has the tolerations of its request.",
    "placement-respects-taints": "A device is not allocated against a taint.",
    EVICTED: "A pod that is evicted for a taint has a device with one.",
}
"""All rules by name, each as a sentence that holds of a sound history."""

PROVEN = frozenset(("fields-agree", "immutable-field-unchanged", "removed-before-renewed"))
"""The rules that states of an object show by themselves, or versions of the store, whatever was not
recorded."""

BY_DEVICES = frozenset(
    (
        "allocated-device-existed",
        "consumed-within-capacity",
        "constraint-holds",
        "counters-not-overdrawn",
        EVICTED,
        "placement-respects-taints",
        "share-of-shared-device",
    )
)
"""The rules that depend on what is published of devices."""


class Cause(Enum):
    """The way in which a claim came to hold its devices in the current step.

    `FOUND` is a claim that was allocated when it was first seen: the state at its allocation is
    unknown. `CHOSEN` is an allocation that may have been chosen before a change of what is
    published, when there was enough.
    """

    ALLOCATED = "allocated"
    CHOSEN = "chosen"
    FOUND = "found"


class HeldPart(NamedTuple):
    """The part of a device or counter that one result of a claim takes.

    A `device` counts once, whatever the number of its holders; empty: each result counts.
    """

    claim: ObjectKey
    amount: int
    share: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class HeldParts:
    """The parts of a device or counter that are taken, and its limit.

    None is that of a device that one claim may have.
    """

    uses: tuple[HeldPart, ...]
    limit: int | None = None

    def fit_without(self, claims: Collection[ObjectKey]) -> bool:
        """Whether the limit holds without these claims."""
        left = [each for each in self.uses if each.claim not in claims]
        if self.limit is None:
            shares = {each.share for each in left}
            return len(left) <= 1 or (all(shares) and len(shares) == len(left))
        single = {each.device: each.amount for each in left if each.device}
        return sum((*single.values(), *(each.amount for each in left if not each.device))) <= (
            self.limit
        )


class HeldFrom(NamedTuple):
    """The parts that are taken from a revision on, while they are too much."""

    revision: Revision
    parts: HeldParts


def grow(before: list[HeldFrom], revision: Revision, parts: HeldParts | None) -> None:
    """Adds the parts taken too much now if any of them or the limit is another one than before."""
    if parts is None:
        return
    last = before[-1].parts if before else None
    if last is None or last.limit != parts.limit or not {*parts.uses} <= {*last.uses}:
        before.append(HeldFrom(revision, parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule broken at the current revision.

    Without a `kind`, the kind depends on who caused it since it is broken; `causes` are what claims
    did for that in the current step. A step without causes is one of drivers or administrators.
    `pools` are the pools whose devices decided it; `reads_patches` when patches decided it, too.
    `unless` are the kinds of which an object that nobody knows could make it no fault.
    `reads_times` when it depends on a duration. `unread` are those of the objects whose state does
    not matter. `uses` is what takes too much, where that is the fault.
    """

    kind: ViolationKind | None
    objects: tuple[ObjectKey, ...]
    message: str
    causes: frozenset[Cause] = frozenset()
    pools: tuple[tuple[str, str], ...] = ()
    reads_patches: bool = False
    unless: frozenset[str] = frozenset()
    reads_times: bool = False
    unread: tuple[ObjectKey, ...] = ()
    uses: HeldParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A revision and its time in the cluster."""

    revision: Revision
    time: Instant

    def to_json(self) -> JsonObject:
        """The moment as JSON for reports."""
        return {"revision": self.revision, "time": timestamps.micro_text(self.time)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A rule that did not hold from `begin` until, but not including, `end`.

    `end` is None if the violation still existed at the last revision. `objects` are all objects
    that were involved in that time. `doubt` says why an UNSURE violation is unsure, `uses` what
    was taken too much at its beginning and later.
    """

    rule: str
    kind: ViolationKind
    objects: tuple[ObjectKey, ...]
    message: str
    begin: Moment
    end: Moment | None
    doubt: str = ""
    uses: tuple[HeldFrom, ...] = ()

    def __str__(self) -> str:
        last = "" if self.end is None else str(self.end.revision)
        objects = ", ".join(str(key) for key in self.objects)
        return (
            f"{self.rule} ({self.kind}), {self.begin.revision}-{last}: {self.message} [{objects}]"
        )

    def to_json(self) -> JsonObject:
        """The violation as JSON for reports."""
        return {
            "rule": self.rule,
            "kind": self.kind.value,
            "message": self.message,
            "doubt": self.doubt,
            "objects": [str(key) for key in self.objects],
            "claims": [
                f"{key.namespace}/{key.name}"
                for key in self.objects
                if key.resource == "resourceclaims"
            ],
            "from": self.begin.to_json(),
            "until": None if self.end is None else self.end.to_json(),
        }


def blame(place: Place, causes: frozenset[Cause]) -> ViolationKind:
    """The severity when a device or counter is allocated beyond its limit, by the cause.

    Claims that were found allocated may have had enough, but no device twice. Q12 is known.
    """
    if place[0] == "allocated-device-published":
        return ViolationKind.KNOWN if Cause.ALLOCATED in causes else ViolationKind.OUTSIDE
    if Cause.ALLOCATED in causes or (causes and place[0] == "device-in-one-claim"):
        return ViolationKind.BROKEN
    return ViolationKind.UNSURE if causes else ViolationKind.OUTSIDE
