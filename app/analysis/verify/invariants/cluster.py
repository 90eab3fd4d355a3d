"""What is known of a cluster as far as the rules look at it, and which cells an event touched."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from app.analysis.verify.invariants.holdings import Holdings
from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.reading import Allocation, Consumer
from app.analysis.verify.invariants.stock import DeviceId, PoolId, Stock
from app.analysis.verify.invariants.violations import IN_FLIGHT, Cause, Finding, Place
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values.timestamps import Instant

GROUP = "resource.k8s.io"

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"

LISTED = "baseline"
"""The verb of what existed before a recording began."""

LOSSES = frozenset(
    (
        "metadata_only",
        "truncated_body",
        "no_status",
        "spec_only",
        "unknown_patch",
        "undecodable",
        "encrypted",
        "redacted",
        "contradicted",
    )
)
"""What a recording may lack of an object so that a rule cannot be judged by it."""

_PARTIAL = frozenset(("partial", "identity"))

DEVICE, POOL, CLAIM, POD, OBJECT = "device", "pool", "claim", "pod", "object"
"""What is judged as a whole. Plain texts: hashing a member of an enumeration costs more."""

Cell = tuple[str, Any]

Entry = tuple[str, str]
"""Name and uid of a consumer."""


class KnownClaim(msgspec.Struct):
    """A claim: what was read of it, since when it is there, what was wrong with its allocation.

    `was_protected` tells that it had its finalizer at some time since it was allocated. `strangers`
    are pods that were not there when the claim was reserved for them. `spec` and what is named
    `raw` are the bytes of those parts.
    """

    uid: str
    made: Instant
    spec: bytes = b""
    raw_allocation: bytes = b""
    raw_reserved: bytes = b""
    raw_owners: bytes = b""
    allocation: Allocation | None = None
    reserved: tuple[Consumer, ...] = ()
    is_protected: bool = False
    was_protected: bool = False
    is_terminating: bool = False
    placed: dict[Place, Finding] = {}
    strangers: set[Entry] = set()


class KnownPod(msgspec.Struct):
    """A pod that may name claims; `came_bound` when it had its node from the first write on.

    `node` is the node that needs its claims: none for a pod that is finished. `parts` are its
    entries for claims, their statuses and that of its extended resources, as bytes.
    """

    uid: str
    node_name: str
    node: str
    parts: tuple[bytes, bytes, bytes]
    claims: tuple[ObjectKey, ...]
    came_bound: bool
    is_terminating: bool
    is_marked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether an allocation selects the node of a pod, as of when the two came together.

    `together` are the pod's uid, its node, the claim's uid and the selector.
    """

    together: tuple[str, str, str, Any]
    answer: bool | None


class Cluster:
    """The state, and the cells that have to be judged again (`dirty`).

    Most events leave everything as it must be, so a cell is dirty only when something in it may be
    broken, or is one of `open`, those in which something was broken when they were last judged.
    `lacking` are the resources of which the recording may lack whole objects.
    """

    def __init__(self, switches: Switches, lacking: frozenset[str] = frozenset()) -> None:
        self.switches = switches
        self.lacking = lacking
        self.stock = Stock()
        self.holdings = Holdings(self.stock)
        self.claims: dict[ObjectKey, KnownClaim] = {}
        self.pods: dict[ObjectKey, KnownPod] = {}
        self.templates: dict[ObjectKey, tuple[str, bytes]] = {}
        self.labels: dict[str, Mapping[str, Any]] = {}
        self.users: dict[ObjectKey, set[ObjectKey]] = {}
        self.reservers: dict[tuple[str, str], set[ObjectKey]] = {}
        self.has_seen_pods = False
        self.causes: dict[ObjectKey, Cause] = {}
        self.lossy: set[ObjectKey] = set()
        self.fits: dict[ObjectKey, dict[ObjectKey, Fit]] = {}
        self.faults: dict[ObjectKey, dict[Place, Finding]] = {}
        self.dirty: set[Cell] = set()
        self.open: dict[Cell, Any] = {}
        self._gone: dict[ObjectKey, dict[str, tuple[Instant, tuple[ObjectKey, ...]]]] = {}
        self._gone_order: deque[tuple[Instant, ObjectKey, str]] = deque()
        self.has_gap = False
        self._since_gap: set[ObjectKey] = set()

    def note_gap(self) -> None:
        """Anything may have been written unseen."""
        self.has_gap = True
        self._since_gap.clear()

    def note_write(self, event: Event) -> bool:
        """Keep how whole the object is recorded.

        False when a change may have come about otherwise than by this write: the object was or is
        recorded in part, or a stretch is missing before it.
        """
        key, lossy = event.key, self.lossy
        is_whole = not (lossy and key in lossy)
        if self.has_gap:
            is_whole = is_whole and key in self._since_gap
        if event.type is EventType.OBJECT_DELETED:
            lossy.discard(key)
            self._since_gap.discard(key)
            return is_whole
        if self.has_gap:
            self._since_gap.add(key)
        origin = event.stamp.origin
        if origin is not None and (
            (origin.losses and not LOSSES.isdisjoint(origin.losses)) or origin.quality in _PARTIAL
        ):
            lossy.add(key)
            return False
        if not is_whole and lossy:
            lossy.discard(key)
        return is_whole

    def is_doubted(self, objects: Iterable[ObjectKey]) -> bool:
        """Whether an object was recorded in part, or not since a stretch that is missing."""
        lossy, since = self.lossy, self._since_gap
        return any(key in lossy or (self.has_gap and key not in since) for key in objects)

    def note_fault(self, key: ObjectKey, place: Place, finding: Finding) -> None:
        """A write was wrong in itself: that stays, as long as the object does."""
        self.faults.setdefault(key, {})[place] = finding
        self.dirty.add((OBJECT, key))

    def forget_faults(self, key: ObjectKey) -> None:
        """The object is gone, or is another one now."""
        if self.faults and self.faults.pop(key, None) is not None:
            self.dirty.add((OBJECT, key))

    def note_device(self, device: DeviceId) -> None:
        """A device was taken or given back: judge it, and its pool, where that may matter."""
        is_open = bool(self.open) and (DEVICE, device) in self.open
        pool_id = device[:2]
        pool = self.stock.pools.get(pool_id)
        is_there = pool is not None and pool.publishes(device[2])
        if is_open or not is_there or self.holdings.is_shared(device):
            self.dirty.add((DEVICE, device))
        if (pool is not None and pool.limits) or (self.open and (POOL, pool_id) in self.open):
            self.dirty.add((POOL, pool_id))

    def note_pools(self, pools: Iterable[PoolId]) -> None:
        """What is published in pools changed."""
        for pool_id in pools:
            self.holdings.forget(pool_id)
            for device in self.holdings.in_pool(pool_id):
                self.note_device(device)

    def note_gone(self, key: ObjectKey, pod: KnownPod, now: Instant) -> None:
        """A pod went; for a moment somebody may not have seen that."""
        order = self._gone_order
        while order and now - order[0][0] > IN_FLIGHT:
            time, name, uid = order.popleft()
            uids = self._gone.get(name, {})
            if uids.get(uid, (None,))[0] == time:
                del uids[uid]
                if not uids:
                    del self._gone[name]
        order.append((now, key, pod.uid))
        self._gone.setdefault(key, {})[pod.uid] = (now, pod.claims)

    def claims_of_gone(
        self, key: ObjectKey, uid: str, now: Instant
    ) -> tuple[ObjectKey, ...] | None:
        """The claims of a pod that went a moment ago; None for one that did not."""
        time, claims = self._gone.get(key, {}).get(uid, (None, ()))
        return claims if time is not None and now - time <= IN_FLIGHT else None


def is_same(uid: str, other: str) -> bool:
    """Whether two writes are about one object, as far as it is known."""
    return uid == other or not uid or not other


def losses_of(event: Event) -> tuple[str, ...]:
    """What the recording lacks of an event."""
    origin = event.stamp.origin
    return () if origin is None else origin.losses
