"""What a proposed change would do, as values: the shape of every blast answer.

All counts are exact; lists are cut at a bound and `left_out` says how many entries each one lacks.
Instants are RFC 3339 texts with microseconds.
"""

from enum import StrEnum

import msgspec

from app.domain.log.doubts import Doubt


class Fate(StrEnum):
    """What becomes of a pod.

    `already` would be evicted at the same instant without the change; `tolerated` uses a device
    that is tainted by it and is never evicted; `spared` would be evicted without the change only.
    `deleted` is deleted by the change itself; `orphaned` loses its node, so that garbage collection
    removes it. `drained` is evicted by a drain, `protected` kept from that by a disruption budget.
    """

    NOW = "now"
    LATER = "later"
    TERMINATING = "terminating"
    ALREADY = "already"
    TOLERATED = "tolerated"
    SPARED = "spared"
    DELETED = "deleted"
    ORPHANED = "orphaned"
    DRAINED = "drained"
    PROTECTED = "protected"


LOST = (Fate.NOW, Fate.LATER, Fate.DRAINED)
"""Fates of pods that the change evicts."""


class Prospect(StrEnum):
    """What a change means to a pod that waits for a node.

    `fits`: it would be placed from then on; `freed`: it would be placed once the pods that the
    change evicts have ended; `kept`: it would be placed without the change only.
    """

    FITS = "fits"
    FREED = "freed"
    KEPT = "kept"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One change as the object rules take it: created, replaced, deleted or unchanged.

    `grace_seconds` is what a terminating pod has left when nothing but that keeps it.
    """

    action: str
    kind: str
    name: str
    warnings: tuple[str, ...] = ()
    status: str = ""
    grace_seconds: int | None = None


class PodFate(msgspec.Struct, frozen=True, kw_only=True):
    """One pod. `due` is the instant of its eviction, `after_seconds` how far away that is.

    `owner` is the outermost controller (`Deployment/web`), empty for a pod of its own.
    """

    namespace: str
    name: str
    node: str
    owner: str
    fate: Fate
    due: str = ""
    after_seconds: float = 0.0
    was_due: str = ""
    reasons: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


class WaitingFate(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that waits for a node, and the node that it would get (or have got)."""

    namespace: str
    name: str
    owner: str
    prospect: Prospect
    node: str


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with one device of an allocated claim from then on.

    `kind` is `tainted`, `gone` (not in its pool any more), `pool` (the pool is not usable),
    `class` (the class is gone or its selectors do not match) or `request` (those of the request).
    """

    kind: str
    device: str
    text: str


class ClaimFate(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated claim that the change concerns, with the pods that it is reserved for."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    due: str = ""


class ClaimDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that the change deletes, once the claim controller has looked at it.

    While `is_held` it stays terminating with its `devices`: `finalizers` keep it, one of them for
    the pods `reserved_for`. `blocked` are pods that name it and cannot start, `blocked_count` all
    of them; for the pods in `remade` the controller makes another claim from their template.
    """

    namespace: str
    name: str
    is_held: bool
    finalizers: tuple[str, ...] = ()
    reserved_for: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    blocked_count: int = 0
    remade: tuple[str, ...] = ()


class ClaimRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A claim whose `pods` all end by the change: it gives back its devices once they have."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]


class DeviceFate(msgspec.Struct, frozen=True, kw_only=True):
    """A device that changes: `gone`, `new`, `tainted`, `untainted`, `changed` or `pool`.

    `taints` are those it has afterwards and had not before.
    """

    device: str
    change: str
    allocatable_before: bool
    allocatable_after: bool
    taints: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of a usable pool or of a class; allocatable: without a taint that must be tolerated;
    free: allocatable, of a node that takes pods, and not given to a claim; of a shared device
    something of each capacity is left."""

    devices: int = 0
    allocatable: int = 0
    free: int = 0


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """A sum before and after."""

    before: str
    after: str


class PoolFate(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that changes. `state` is `usable`, `incomplete`, `invalid` or `absent`.

    `capacity` sums what allocatable devices have; overlapping partitions count each. `counters` are
    those that some allocatable device can draw on. Only what differs is listed.
    """

    driver: str
    pool: str
    state_before: str
    state_after: str
    problem: str
    before: Counts
    after: Counts
    capacity: dict[str, Amount]
    counters: dict[str, Amount]


class ClassFate(msgspec.Struct, frozen=True, kw_only=True):
    """A device class and the devices in usable pools that all its selectors match.

    `problem` is the first error of a selector after the change.
    """

    name: str
    before: Counts
    after: Counts
    problem: str = ""


class NamespaceFate(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods a namespace loses, and how many of its claims are concerned."""

    namespace: str
    pods: int
    claims: int


class OwnerFate(msgspec.Struct, frozen=True, kw_only=True):
    """How many pods an owner loses."""

    namespace: str
    owner: str
    pods: int


class QuotaFate(msgspec.Struct, frozen=True, kw_only=True):
    """What a quota has of one name before and after (empty: no limit), and what is used of it."""

    namespace: str
    quota: str
    name: str
    before: str
    after: str
    used: str
    is_over: bool


class WriteFate(msgspec.Struct, frozen=True, kw_only=True):
    """A write that may come next and that only one side of the change refuses, with the refusal.

    It is one more claim of `ResourceClaimTemplate/NAME`, one more pod of an owner, or the claim
    that `Pod/NAME` waits for.
    """

    namespace: str
    kind: str
    source: str
    is_refused: bool
    text: str


class BlastRadius(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer. `totals` counts pods by fate and everything that is listed.

    `preview` tells that a rule with effect None was looked at as if it were NoExecute, for pods
    and claims. `totals["waiting"]` are the pods that wait for a node and were tried, `waiting`
    those for which the change makes a difference. `revision` and `time` are those of the state
    that the change is put upon. `certainty` is `sure` or `unsure`; `doubts` say what the recording
    lacks.
    """

    revision: int
    time: str
    effects: tuple[Effect, ...]
    preview: bool
    notes: tuple[str, ...]
    totals: dict[str, int]
    pods: tuple[PodFate, ...]
    claims: tuple[ClaimFate, ...]
    namespaces: tuple[NamespaceFate, ...]
    owners: tuple[OwnerFate, ...]
    devices: tuple[DeviceFate, ...]
    pools: tuple[PoolFate, ...]
    classes: tuple[ClassFate, ...]
    left_out: dict[str, int]
    waiting: tuple[WaitingFate, ...] = ()
    claim_deletions: tuple[ClaimDeletion, ...] = ()
    claim_releases: tuple[ClaimRelease, ...] = ()
    quotas: tuple[QuotaFate, ...] = ()
    writes: tuple[WriteFate, ...] = ()
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()
