"""The data types of blast answers.

All counts are exact; lists are cut at a bound, and `left_out` has the number of missing entries of
each. Instants are RFC 3339 texts with microseconds.
"""

from enum import StrEnum

import msgspec

from app.domain.log.doubts import Doubt


class Fate(StrEnum):
    """The fate of a pod.

    `already` would be evicted at the same instant without the change. `tolerated` uses a device
    that the change taints and is never evicted. `spared` would be evicted only without the change.
    `deleted` is deleted by the change itself. `orphaned` loses its node, so that garbage collection
    removes it. `drained` is evicted by a drain, `protected` is kept from that by a disruption
    budget.
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
"""The fates of pods that the change evicts."""


class Prospect(StrEnum):
    """The effect of a change on a pod that waits for a node.

    `fits`: it would be placed after the change; `freed`: it would be placed once the pods that the
    change evicts have ended; `evicted`: it would be placed then or now, and evicted at once;
    `kept`: it would be placed only without the change.
    """

    FITS = "fits"
    FREED = "freed"
    EVICTED = "evicted"
    KEPT = "kept"


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One change according to the object rules: created, replaced, deleted or unchanged.

    `grace_seconds` is the remaining time of a terminating pod if nothing else keeps it.
    """

    action: str
    kind: str
    name: str
    warnings: tuple[str, ...] = ()
    status: str = ""
    grace_seconds: int | None = None


class PodFate(msgspec.Struct, frozen=True, kw_only=True):
    """One pod. `due` is the instant of its eviction, `after_seconds` the time until then.

    `owner` is the outermost controller (`Deployment/web`), empty for a pod without one.
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
    """A pod that waits for a node, and the node that it would get (or have got).

    `evicted_after` are the seconds until it is evicted from the node for `reasons`, null for never.
    """

    namespace: str
    name: str
    owner: str
    prospect: Prospect
    node: str
    evicted_after: float | None = None
    reasons: tuple[str, ...] = ()


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """The problem with one device of an allocated claim after the change.

    `kind` is `tainted`, `gone` (not in its pool any more), `pool` (the pool is not usable), `class`
    (the class is gone or its selectors do not match) or `request` (those of the request).
    """

    kind: str
    device: str
    text: str


class ClaimFate(msgspec.Struct, frozen=True, kw_only=True):
    """An allocated claim that the change affects, with the pods that it is reserved for."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    troubles: tuple[Trouble, ...]
    due: str = ""


class ClaimDeletion(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that the change deletes, after the claim controller has handled it.

    While `is_held`, it stays terminating with its `devices`: `finalizers` keep it, one of them for
    the pods in `reserved_for`. `blocked` are pods that name it and cannot start, `blocked_count`
    the number of all of them. For the pods in `remade`, the controller creates another claim from
    their template.
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
    """A claim whose `pods` all end by the change: its devices are released after that."""

    namespace: str
    name: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]


class DeviceFate(msgspec.Struct, frozen=True, kw_only=True):
    """A device that changes: `gone`, `new`, `tainted`, `untainted`, `changed` or `pool`.

    `taints` are the additional ones afterwards.
    """

    device: str
    change: str
    allocatable_before: bool
    allocatable_after: bool
    taints: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of devices of a usable pool or of a class.

    `allocatable`: without a taint that must be tolerated. `free`: allocatable, of a node that takes
    pods, and not allocated to a claim; for a shared device, some of each capacity is left.
    """

    devices: int = 0
    allocatable: int = 0
    free: int = 0


class AmountChange(msgspec.Struct, frozen=True, kw_only=True):
    """A sum before and after."""

    before: str
    after: str


class PoolFate(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that changes. `state` is `usable`, `incomplete`, `invalid` or `absent`.

    `capacity` is the sum over allocatable devices, including overlapping partitions. `counters` are
    those that some allocatable device can draw on. Only differences are listed.
    """

    driver: str
    pool: str
    state_before: str
    state_after: str
    problem: str
    before: Counts
    after: Counts
    capacity: dict[str, AmountChange]
    counters: dict[str, AmountChange]


class ClassFate(msgspec.Struct, frozen=True, kw_only=True):
    """A device class and the devices in usable pools that all its selectors match.

    `problem` is the first error of a selector after the change.
    """

    name: str
    before: Counts
    after: Counts
    problem: str = ""


class NamespaceFate(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pods that a namespace loses, and of its claims concerned."""

    namespace: str
    pods: int
    claims: int


class OwnerFate(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pods that an owner loses."""

    namespace: str
    owner: str
    pods: int


class QuotaFate(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of one name in a quota before and after, and the amount used.

    Empty limits are no limits; an empty amount is unknown.
    """

    namespace: str
    quota: str
    name: str
    before: str
    after: str
    used: str
    is_over: bool


class WriteFate(msgspec.Struct, frozen=True, kw_only=True):
    """A possible next write that only one side of the change refuses, with the refusal.

    It is one more claim of `ResourceClaimTemplate/NAME`, one more pod of an owner, or the claim
    that `Pod/NAME` waits for.
    """

    namespace: str
    kind: str
    source: str
    is_refused: bool
    text: str


class BlastRadius(msgspec.Struct, frozen=True, kw_only=True):
    """The complete answer. `totals` counts pods by fate and everything that is listed.

    `preview` tells that a rule with effect None was treated as NoExecute, for pods and claims.
    `totals["waiting"]` counts the waiting pods that were tried; `waiting` lists those that the
    change affects. `revision` and `time` are those of the state to which the change is applied.
    `certainty` is `sure` or `unsure`; `doubts` are what the recording lacks.
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
