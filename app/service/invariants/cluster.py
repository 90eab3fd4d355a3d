"""The objects of a cluster as far as the rules look at them, and what an event touched."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values.timestamps import Instant
from app.service.invariants import placements, reading
from app.service.invariants.holdings import Holdings
from app.service.invariants.placements import Switches, Written
from app.service.invariants.reading import Claim, Pod
from app.service.invariants.stock import SINCE_EVER, DeviceId, PoolId, Stock
from app.service.invariants.violations import Cause, Finding, Kind, Place

GROUP = "resource.k8s.io"

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"

LISTED = "baseline"
"""The verb of what existed before a recording began."""

FINISHED = frozenset(("Succeeded", "Failed"))
"""Phases of pods that need their claims no longer."""

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
    )
)
"""What a recording may lack of an object so that a rule cannot be judged by it."""


DEVICE, POOL, CLAIM, POD = "device", "pool", "claim", "pod"
"""What is judged as a whole. Plain texts: hashing a member of an enumeration costs more."""

Cell = tuple[str, Any]


@dataclass(slots=True, kw_only=True)
class KnownClaim:
    """A claim: what was read of it, since when it is there, what was wrong with its allocation.

    `was_protected` tells that it had its finalizer at some time since it was allocated.
    """

    uid: str
    claim: Claim
    made: Instant
    placed: dict[Place, Finding] = field(default_factory=dict)
    was_protected: bool = False


@dataclass(slots=True, kw_only=True)
class KnownPod:
    """A pod that names claims; `came_bound` when it had its node from the first write on."""

    uid: str
    pod: Pod
    claims: tuple[ObjectKey, ...]
    came_bound: bool

    @property
    def node(self) -> str:
        """The node that needs its claims: none for a pod that is finished."""
        pod = self.pod
        return "" if pod.status.phase in FINISHED else pod.spec.node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether an allocation selects the node of a pod, as of when the two came together.

    `together` are the pod's uid, its node, the claim's uid and the selector.
    """

    together: tuple[str, str, str, Any]
    answer: bool | None


class Cluster:
    """Takes events in; `dirty` are the cells that have to be judged again.

    Most events leave everything as it must be, so a cell is dirty only when something in it may be
    broken, or is one of `open`, those in which something was broken when they were last judged.
    """

    def __init__(self, switches: Switches) -> None:
        self.switches = switches
        self.stock = Stock()
        self.holdings = Holdings(self.stock)
        self.claims: dict[ObjectKey, KnownClaim] = {}
        self.pods: dict[ObjectKey, KnownPod] = {}
        self.has_seen_pods = False
        self.labels: dict[str, Mapping[str, Any]] = {}
        self.users: dict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        self.reservers: dict[tuple[str, str], set[ObjectKey]] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self.causes: dict[ObjectKey, Cause] = {}
        self.written: dict[ObjectKey, Revision] = {}
        self.lossy: set[ObjectKey] = set()
        self.fits: dict[ObjectKey, dict[ObjectKey, Fit]] = {}
        self.dirty: set[Cell] = set()
        self.open: dict[Cell, Any] = {}
        self._patch_uids: dict[ObjectKey, str] = {}
        self._takers: Mapping[tuple[str, str], Callable[[Event], None]] = {
            (GROUP, "resourceclaims"): self._take_claim,
            (GROUP, "resourceslices"): self._take_slice,
            (GROUP, "devicetaintrules"): self._take_rule,
            (GROUP, "resourceslicepatches"): self._take_patch,
            ("", "pods"): self._take_pod,
            ("", "nodes"): self._take_node,
        }

    def take(self, event: Event) -> None:
        """Take an event about an object in."""
        key = event.key
        take = self._takers.get(key[:2])
        if take is None:
            return
        if event.type is EventType.OBJECT_DELETED:
            self.written.pop(key, None)
            self.lossy.discard(key)
        else:
            self.written[key] = event.revision
            origin = event.stamp.origin
            if origin is not None and (
                origin.quality in ("partial", "identity") or not LOSSES.isdisjoint(origin.losses)
            ):
                self.lossy.add(key)
            elif self.lossy:
                self.lossy.discard(key)
        take(event)

    def miss(self, key: ObjectKey) -> bool:
        """A write of this object was not recorded as a whole; False when it is none of ours."""
        if key[:2] not in self._takers:
            return False
        self.lossy.add(key)
        return True

    def _take_slice(self, event: Event) -> None:
        now = event.stamp.time
        if event.type is EventType.OBJECT_DELETED:
            touched = self.stock.remove_slice(event.key, now)
        else:
            since = SINCE_EVER if event.stamp.verb == LISTED else now
            touched = self.stock.put_slice(event.key, event.body, since, now)
        self._note_pools(touched)

    def _take_rule(self, event: Event) -> None:
        if event.type is EventType.OBJECT_DELETED:
            self.stock.rules.pop(event.key, None)
        else:
            since = SINCE_EVER if event.stamp.verb == LISTED else event.stamp.time
            self.stock.put_rule(event.key, event.body, since)

    def _take_patch(self, event: Event) -> None:
        if not self.switches.patches:
            return
        if event.type is EventType.OBJECT_DELETED:
            self.stock.patches.pop(event.key, None)
        else:
            is_new = event.uid != self._patch_uids.get(event.key)
            is_new = is_new or event.type is EventType.OBJECT_CREATED
            self._patch_uids[event.key] = event.uid
            self.stock.put_patch(event.key, event.body, event.revision, is_new=is_new)
        self._note_pools(self.stock.pools)

    def _note_pools(self, pools: Iterable[PoolId]) -> None:
        for pool in pools:
            self.holdings.forget(pool)
            held = self.holdings.in_pool(pool)
            if held:
                self.dirty.add((POOL, pool))
                self.dirty.update((DEVICE, device) for device in held)

    def _take_node(self, event: Event) -> None:
        if event.type is EventType.OBJECT_DELETED:
            self.labels.pop(event.key.name, None)
        else:
            self.labels[event.key.name] = reading.node(event.body).metadata.labels

    def _take_claim(self, event: Event) -> None:
        key = event.key
        old = self.claims.get(key)
        if event.type is EventType.OBJECT_DELETED:
            if old is not None:
                del self.claims[key]
                self._note_claim(key, old.claim, None)
            return
        claim = reading.claim(event.body)
        is_same = old is not None and _is_same(old.uid, event.uid)
        is_found = not is_same or event.type is EventType.OBJECT_CREATED
        if old is not None and not is_found and old.claim == claim:
            return
        known = KnownClaim(
            uid=event.uid,
            claim=claim,
            made=event.stamp.time if is_found or old is None else old.made,
        )
        self.claims[key] = known
        before = None if old is None else old.claim
        held = None if before is None else before.status.allocation
        now = claim.status.allocation
        if now is not None and (now != held or not is_same):
            self.causes[key] = Cause.FOUND if is_found else Cause.ALLOCATED
            if not is_found:
                known.placed = self._placed(event, known, is_exchange=held is not None)
        elif now is not None and old is not None:
            known.placed = old.placed
            known.was_protected = old.was_protected
        if now is not None and CLAIM_FINALIZER in claim.metadata.finalizers:
            known.was_protected = True
        self._note_claim(key, before, claim)
        if self._is_odd(key, known):
            self.dirty.add((CLAIM, key))

    def _is_odd(self, key: ObjectKey, known: KnownClaim) -> bool:
        """Whether some rule about the claim, or the pods that it is reserved for, may be broken."""
        claim = known.claim
        reserved = claim.status.reserved_for
        if claim.status.allocation is None:
            return bool(reserved)
        if known.placed or CLAIM_FINALIZER not in claim.metadata.finalizers or len(reserved) > 1:
            return True
        uids = self._uids
        return any(uids.get((key.namespace, each.name)) != each.uid for each in reserved)

    def _placed(
        self, event: Event, known: KnownClaim, *, is_exchange: bool
    ) -> dict[Place, Finding]:
        """What is wrong with the allocation that the event wrote."""
        key, allocation = event.key, known.claim.status.allocation
        assert allocation is not None, "it was written"
        placed: dict[Place, Finding] = {}
        if is_exchange:
            origin = event.stamp.origin
            was_seen = origin is None or "collapsed" not in origin.losses
            placed["allocation-unchanged", key, event.revision] = Finding(
                kind=Kind.BROKEN if was_seen else Kind.UNSURE,
                objects=(key,),
                message="the claim got another allocation without giving the first one back",
            )
        written = Written(
            claim=key,
            tree=reading.tree(event.body),
            made=known.made,
            results=allocation.devices.results,
            now=event.stamp.time,
        )
        for (rule, *place), finding in placements.judge(self.stock, self.switches, written):
            placed[rule, key, event.revision, *place] = finding
        return placed

    def _note_claim(self, key: ObjectKey, before: Claim | None, after: Claim | None) -> None:
        """Keep what follows from a claim that was written or deleted."""
        dirty = self.dirty
        if self.open and (CLAIM, key) in self.open:
            dirty.add((CLAIM, key))
        for pod in self.users.get(key, ()):
            if self.pods[pod].node:
                dirty.add((POD, pod))
        held = before.status.allocation if before is not None else None
        now = after.status.allocation if after is not None else None
        if held != now or key in self.causes:
            devices: list[DeviceId] = []
            if held is not None:
                devices += self.holdings.release(key, held.devices.results)
            if now is not None:
                devices += self.holdings.hold(key, now.devices.results)
            for device in devices:
                self._note_device(device)
        reserved = before.status.reserved_for if before is not None else ()
        reserving = after.status.reserved_for if after is not None else ()
        if reserved != reserving:
            for consumer in reserved:
                self.reservers[key.namespace, consumer.name].discard(key)
            for consumer in reserving:
                self.reservers.setdefault((key.namespace, consumer.name), set()).add(key)

    def _note_device(self, device: DeviceId) -> None:
        """A device was taken or given back: judge it, and its pool, where that may matter."""
        if self.holdings.is_shared(device) or (self.open and (DEVICE, device) in self.open):
            self.dirty.add((DEVICE, device))
        pool_id = device[:2]
        pool = self.stock.pools.get(pool_id)
        if (pool is not None and pool.limits) or (self.open and (POOL, pool_id) in self.open):
            self.dirty.add((POOL, pool_id))

    def _take_pod(self, event: Event) -> None:
        self.has_seen_pods = True
        key = event.key
        old = self.pods.get(key)
        if event.type is EventType.OBJECT_DELETED:
            if old is not None:
                del self.pods[key]
                self._note_pod(key, old, None)
            return
        pod = reading.pod(event.body)
        is_new = old is None or not _is_same(old.uid, event.uid)
        is_new = is_new or event.type is EventType.OBJECT_CREATED
        if old is not None and not is_new and old.pod == pod:
            return
        came_bound = (
            bool(pod.spec.node_name) and event.stamp.verb != LISTED
            if is_new or old is None
            else old.came_bound
        )
        claims = old.claims if old is not None and _names_same(old.pod, pod) else _claims(key, pod)
        known = KnownPod(uid=event.uid, pod=pod, claims=claims, came_bound=came_bound)
        self.pods[key] = known
        self._note_pod(key, old, known)

    def _note_pod(self, key: ObjectKey, old: KnownPod | None, known: KnownPod | None) -> None:
        """Keep what follows from a pod that was written or deleted."""
        before = () if old is None else old.claims
        claims = () if known is None else known.claims
        node = "" if known is None else known.node
        was, now = old.uid if old is not None else "", known.uid if known is not None else ""
        if node:
            is_other = before is not claims or was != now or old is None or node != old.node
            if claims and (is_other or (known is not None and known.came_bound)):
                self.dirty.add((POD, key))
        elif key in self.fits:
            self.dirty.add((POD, key))
        if self.open and (POD, key) in self.open:
            self.dirty.add((POD, key))
        if before is not claims and before != claims:
            for claim in before:
                self.users[claim].discard(key)
            for claim in claims:
                self.users[claim].add(key)
        if was != now or known is None:
            place = key.namespace, key.name
            if known is None:
                self._uids.pop(place, None)
            else:
                self._uids[place] = now
            self.dirty.update((CLAIM, claim) for claim in self.reservers.get(place, ()))


def _is_same(uid: str, other: str) -> bool:
    """Whether two writes are about one object, as far as it is known."""
    return uid == other or not uid or not other


def _names_same(one: Pod, other: Pod) -> bool:
    """Whether both states of a pod name the same claims."""
    left, right = one.status, other.status
    return (
        one.spec.resource_claims == other.spec.resource_claims
        and left.resource_claim_statuses == right.resource_claim_statuses
        and left.extended_resource_claim_status == right.extended_resource_claim_status
    )


def _claims(key: ObjectKey, pod: Pod) -> tuple[ObjectKey, ...]:
    """The claims that a pod names, as far as they have been made."""
    status = pod.status
    extended = status.extended_resource_claim_status.resource_claim_name
    if not pod.spec.resource_claims and not extended:
        return ()
    made = {each.name: each.resource_claim_name for each in status.resource_claim_statuses}
    names = {
        each.resource_claim_name or made.get(each.name, "") for each in pod.spec.resource_claims
    }
    names.add(extended)
    return tuple(
        ObjectKey(GROUP, "resourceclaims", key.namespace, name) for name in sorted(names) if name
    )
