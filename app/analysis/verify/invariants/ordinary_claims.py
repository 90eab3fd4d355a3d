"""The fast path for ordinary claims: one device for one pod, allocated and deallocated.

Each function here has the effect of its counterpart in `claims` for a write in which no rule can be
broken. It checks everything that a rule may object to before it changes any state. It returns False
when something may be broken or is unknown; then `claims` applies the write. So a rule may be
omitted here only if every write that passes satisfies it. The tests in
`tests/unit/analysis/invariants` check both paths against the model.
"""

from app.analysis.verify.invariants import placements, reading
from app.analysis.verify.invariants.cluster import LISTED, Cluster
from app.analysis.verify.invariants.known import SOUND, KnownClaim, KnownPod, joined, parted
from app.analysis.verify.invariants.reading import NOTHING, Consumer
from app.analysis.verify.invariants.specs import claim_spec
from app.domain.log import Event
from app.domain.log.raw_parts import RawClaim


def take_first(known: KnownClaim, event: Event, claim: RawClaim, *, is_protected: bool) -> None:
    """Applies the first write of a claim that nothing names, without allocation or reservation."""
    known.is_there = True
    known.uid, known.made, known.written = event.uid, event.stamp.time, event.revision
    known.is_protected = is_protected
    known.is_terminating = claim.metadata.deletion_timestamp != ""
    known.spec = claim_spec(claim.spec)
    known.raw_owners = claim.metadata.owner_references.copy()


def take_given(
    cluster: Cluster, event: Event, known: KnownClaim, claim: RawClaim, *, is_protected: bool
) -> bool:
    """Applies the allocation of a free device to a claim, for an unbound pod that names it."""
    metadata, status, spec = claim.metadata, claim.status, known.spec
    if (
        spec.single is None
        or not is_protected
        or known.is_terminating
        or metadata.deletion_timestamp
        or known.reserved
        or claim.spec != spec.raw
        or event.stamp.verb == LISTED
    ):
        return False
    reserved = reading.consumers(status.reserved_for)
    pod = _waiting(known, reserved)
    if pod is None:
        return False
    allocation = reading.allocation(status.allocation)
    if allocation is None:
        return False
    results = allocation.devices.results
    pool = placements.plain_pool(cluster.stock, cluster.switches, spec, results)
    if pool is None:
        return False
    result = results[0]
    name = result.device
    if result.consumed_capacity or name in pool.holders or pool.may_draw(name):
        return False
    if cluster.open and not cluster.open.keys().isdisjoint((known, pool, (pool, name))):
        return False
    known.uid, known.held_since = event.uid, event.stamp.time
    known.is_protected = known.was_protected = True
    if metadata.owner_references != known.raw_owners:
        known.raw_owners = metadata.owner_references.copy()
    known.raw_allocation, known.allocation = status.allocation.copy(), allocation
    known.raw_reserved, known.reserved = status.reserved_for.copy(), reserved
    pool.hold(known, result)
    pod.reservers = joined(pod.reservers, known)
    return True


def take_back(
    cluster: Cluster, event: Event, known: KnownClaim, claim: RawClaim, *, is_protected: bool
) -> bool:
    """Applies the deallocation of a claim's only device, which no bound pod needs."""
    metadata, held = claim.metadata, known.allocation
    if held is None or known.strangers or claim.spec != known.spec.raw:
        return False
    if known.is_terminating and not metadata.deletion_timestamp:
        return False
    results = held.devices.results
    pod = _waiting(known, known.reserved)
    if pod is None or len(results) != 1 or results[0].admin_access:
        return False
    result = results[0]
    name = result.device
    pool = cluster.stock.pool_of(result.driver, result.pool)
    if len(pool.holders[name]) > 1 or pool.may_draw(name):
        return False
    if cluster.open and not cluster.open.keys().isdisjoint((known, pool, (pool, name))):
        return False
    known.uid = event.uid
    known.is_protected, known.was_protected = is_protected, False
    known.is_terminating = metadata.deletion_timestamp != ""
    if metadata.owner_references != known.raw_owners:
        known.raw_owners = metadata.owner_references.copy()
    known.raw_allocation = known.raw_reserved = NOTHING
    known.allocation, known.reserved, known.placed = None, (), SOUND
    pool.release(known, result)
    pod.reservers = parted(pod.reservers, known)
    return True


def _waiting(known: KnownClaim, reserved: tuple[Consumer, ...]) -> KnownPod | None:
    """The only pod that names a claim, if the claim is reserved for it alone and it is not bound.

    A pod that names a claim exists.
    """
    if len(reserved) != 1 or len(known.users) != 1:
        return None
    (pod,), consumer = known.users, reserved[0]
    if (
        pod.node
        or consumer.uid != pod.uid
        or consumer.name != pod.key.name
        or consumer.resource != "pods"
        or consumer.api_group
    ):
        return None
    return pod
