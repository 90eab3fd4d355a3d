"""The known state of claims and pods, linked to each other.

A claim or a pod that another object names has an entry before it is seen and after it is gone
(`is_there` is False then), so that both sides find each other without a table lookup.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from msgspec import Raw

from app.analysis.verify.invariants.reading import NOTHING, Allocation, Consumer
from app.analysis.verify.invariants.specs import NO_ENTRIES, ClaimSpec
from app.analysis.verify.invariants.violations import Cause, Finding, Place
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import Instant

_T = TypeVar("_T")

Entry = tuple[str, str]
"""Name and uid of a consumer."""

SOUND: Mapping[Place, Finding] = {}
"""The findings where nothing is broken."""

NO_STRANGERS: Mapping[Entry, bool] = {}

NEVER = Instant(0)
"""The allocation time of a claim that is not allocated."""


class Shown(NamedTuple):
    """The immutable parts of an object, as of its last state that was recorded itself.

    `part` is the spec of a claim or the claim entries of a pod; None when no such state is known.
    """

    part: Raw | None
    is_terminating: bool = False
    node_name: str = ""


NOT_SHOWN = Shown(None)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether an allocation selects the node of a pod, as of when the two came together.

    `together` is the pod's uid, its node, the claim's uid and the selector.
    """

    together: tuple[str, str, str, Any]
    answer: bool | None


class KnownNamespace(NamedTuple):
    """A namespace: whether it exists and allows admin access, and when it last ceased to allow it.

    `allowed_once` when it has the label that allowed admin access in releases before 1.34.
    """

    is_there: bool
    uid: str
    allows: bool
    allowed_once: bool
    lost: Instant | None


class KnownClaim:
    """A claim: its parts as read, since when it exists, and the faults of its allocation.

    `was_protected` is True when it had its finalizer at some time since it was allocated.
    `strangers` are pods that did not exist when the claim was reserved for them, each with whether
    clock differences leave that open. `held_since` is the time of the allocation, 0 if the claim
    was found allocated; `written` is its last write, `earlier` the one before. Names with `raw`
    hold the bytes of those parts. `users` are the pods that name the claim. `cause` is how it came
    to hold its devices, if that happened in the current step. `shown` is what it was when it was
    last recorded itself, None where that is what is known of it. Attributes that `__init__` does
    not set are set when the claim is read.
    """

    __slots__ = (
        "allocation",
        "cause",
        "earlier",
        "held_since",
        "is_protected",
        "is_terminating",
        "is_there",
        "key",
        "made",
        "placed",
        "raw_allocation",
        "raw_owners",
        "raw_reserved",
        "reserved",
        "shown",
        "spec",
        "strangers",
        "uid",
        "users",
        "was_protected",
        "written",
    )

    uid: str
    made: Instant
    spec: ClaimSpec
    raw_owners: Raw
    is_protected: bool
    is_terminating: bool

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.users: Collection[KnownPod] = ()
        self.cause: Cause | None = None
        self.is_there = self.was_protected = False
        self.earlier = self.written = Revision(0)
        self.raw_allocation = self.raw_reserved = NOTHING
        self.allocation: Allocation | None = None
        self.held_since = NEVER
        self.reserved: tuple[Consumer, ...] = ()
        self.placed: Mapping[Place, Finding] = SOUND
        self.strangers = NO_STRANGERS
        self.shown: Shown | None = None

    def forget(self) -> None:
        """Resets the claim to one that does not exist."""
        self.is_there = self.was_protected = False
        self.raw_allocation = self.raw_reserved = NOTHING
        self.allocation = None
        self.held_since = NEVER
        self.reserved = ()
        self.placed = SOUND
        self.strangers = NO_STRANGERS


class KnownPod:
    """A pod that may name claims; `came_bound` when its first write already had a node.

    `node` is the node that needs the pod's claims; empty for a finished pod. Names with `raw` hold
    the bytes of the claim statuses and of the status of its extended resources. `reservers` are the
    claims that are reserved for a pod of that name. `shown` and `written` are as in `KnownClaim`;
    `placed` is the last write whose place among those of other objects is no guess. `is_own` tells
    that redra itself stored its creation; `unmade` are the entries of such a pod that name a
    template from which no claim was made. `judged` are the claim statuses that were judged last.
    Attributes that `__init__` does not set are set when the pod is read.
    """

    __slots__ = (
        "came_bound",
        "claims",
        "entries",
        "fits",
        "is_marked",
        "is_own",
        "is_terminating",
        "is_there",
        "judged",
        "key",
        "node",
        "node_name",
        "placed",
        "raw_extended",
        "raw_statuses",
        "reservers",
        "shown",
        "uid",
        "unmade",
        "written",
    )

    node_name: str
    raw_statuses: Raw
    raw_extended: Raw
    came_bound: bool
    is_terminating: bool
    is_marked: bool
    is_own: bool

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.entries = NO_ENTRIES
        self.reservers: Collection[KnownClaim] = ()
        self.fits: dict[ObjectKey, Fit] | None = None
        self.is_there = False
        self.placed = self.written = Revision(0)
        self.uid = self.node = ""
        self.claims: tuple[KnownClaim, ...] = ()
        self.unmade: Collection[str] = ()
        self.judged = NOTHING
        self.shown: Shown | None = None

    def forget(self) -> None:
        """Resets the pod to one that does not exist."""
        self.is_there = False
        self.uid = self.node = ""
        self.claims = self.unmade = ()
        self.judged = NOTHING


def joined(some: Collection[_T], one: _T) -> Collection[_T]:
    """Adds a member. An empty tuple becomes a tuple of one, which becomes a set."""
    if not some:
        return (one,)
    if isinstance(some, set):
        some.add(one)
        return some
    return {*some, one}


def parted(some: Collection[_T], one: _T) -> Collection[_T]:
    """Removes a member."""
    if isinstance(some, set):
        some.discard(one)
        return some
    return () if one in some else some
