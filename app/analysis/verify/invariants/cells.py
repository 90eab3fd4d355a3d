"""Judges cells: finds the rules that are broken in a cell at present."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from msgspec import Raw

from app.analysis.verify.invariants import nodes, placements, reading, strangers
from app.analysis.verify.invariants.cluster import CLAIM_FINALIZER, Cell, Cluster
from app.analysis.verify.invariants.known import NEVER, NOT_SHOWN, SOUND, Fit, KnownClaim, KnownPod
from app.analysis.verify.invariants.nodes import Selector
from app.analysis.verify.invariants.placements import RESERVATIONS_MAX, Written
from app.analysis.verify.invariants.pools import (
    CounterId,
    DeviceId,
    Held,
    Pool,
    PoolId,
    billionths,
    compared,
    drawn_by,
    draws,
)
from app.analysis.verify.invariants.stock import SINCE_EVER, Stock
from app.analysis.verify.invariants.violations import (
    IN_FLIGHT,
    Cause,
    Finding,
    HeldPart,
    HeldParts,
    Place,
    ViolationKind,
)
from app.domain.log import ObjectKey
from app.domain.values import timestamps
from app.domain.values.timestamps import Instant, TimestampError

Broken = Iterator[tuple[Place, Finding]]

_NOTHING: frozenset[str] = frozenset()
_EMPTY = Raw(b"{}")
_PODS = frozenset(("pods",))
_CLAIMS = frozenset(("resourceclaims",))


def judge(cluster: Cluster, cell: Cell, *, is_listed: bool) -> Mapping[Place, Finding]:
    """The broken rules of the cell. `is_listed` is true if its state is from the initial list."""
    if isinstance(cell, KnownPod):
        return _pod(cluster, cell, is_listed=is_listed)
    if isinstance(cell, KnownClaim):
        return dict(_claim(cluster, cell))
    if isinstance(cell, Pool):
        return dict(_pool(cluster, cell))
    pool, subject = cell
    if isinstance(pool, Pool):
        return dict(_device(cluster, pool, subject))
    return cluster.faults.get(subject, SOUND)


def _device(cluster: Cluster, pool: Pool, name: str) -> Broken:
    held = pool.holders.get(name, ())
    device = (*pool.id, name)
    path = "/".join(device)
    if held and cluster.stock.is_withdrawn(device):
        message = f"device {path} is allocated but no longer published"
        objects = _claims(held)
        kind: ViolationKind | None = ViolationKind.OUTSIDE
        if pool.is_unnoticed(name):
            message = f"device {path} is allocated, and only an older generation has it"
            kind = None
        causes = _causes(held)
        finding = Finding(
            kind=kind, objects=objects, message=message, causes=causes, pools=(pool.id,)
        )
        yield ("allocated-device-published", device), finding
    elif held and name not in pool.devices:
        yield from _never_published(pool, name, held)
    identifiers = [result.share_id for _, result in held] if len(held) > 1 else []
    if identifiers and all(identifiers) and len({*identifiers}) < len(identifiers):
        # Parity: allocator.md 8.3: each share gets an identifier of its own.
        message = f"a share of device {path} is allocated twice"
        twice = _blamed(held, message, (pool.id,))
        yield ("device-in-one-claim", device), replace(twice, uses=_shares(held))
    if identifiers and not all(identifiers):
        published = pool.devices.get(name)
        if published is None or not published.allow_multiple_allocations:
            message = f"device {path} is allocated {len(held)} times"
            # Only a result with a share can name a device that several claims may hold.
            shares = sum(map(bool, identifiers))
            if shares:
                message += f", {shares} of them in shares"
            pools = (pool.id,) if shares else ()
            often = _blamed(held, message, pools)
            yield ("device-in-one-claim", device), replace(often, uses=_shares(held))
    for capacity, amount in pool.consumed.get(name, {}).items():
        limit, is_certain = cluster.stock.capacity_of(device, capacity)
        if limit is None or amount <= limit:
            continue
        holders = [each for each in held if capacity in each[1].consumed_capacity]
        if not holders:
            continue
        consumed, owned = compared(amount, limit)
        message = (
            f"{consumed} of {capacity} of device {path} is consumed, and the device has {owned}"
        )
        place = ("consumed-within-capacity", device, capacity)
        if is_certain:
            had_enough = partial(_had_capacity, device, capacity, amount)
            finding = _weighed(cluster, had_enough, holders, message, pool.id)
            if not cluster.switches.patches and _had_no_more(pool, holders):
                finding = replace(finding, kind=ViolationKind.BROKEN)
            parts = (
                HeldPart(claim.key, billionths(result.consumed_capacity[capacity]))
                for claim, result in holders
            )
            yield place, replace(finding, reads_patches=True, uses=HeldParts((*parts,), limit))
        else:
            yield (
                place,
                Finding(kind=ViolationKind.UNSURE, objects=_claims(holders), message=message),
            )


def _never_published(pool: Pool, name: str, held: Iterable[Held]) -> Broken:
    """Claims that were found with a device which their pool certainly had not at the time."""
    path = "/".join((*pool.id, name))
    for claim, _ in held:
        decided = _chosen_at(claim)
        if decided is not None and pool.had_never(name, decided):
            message = f"device {path} is in no slice of its pool, which had all its slices when"
            message += " the claim was allocated, and has them unchanged"
            finding = Finding(
                kind=ViolationKind.BROKEN, objects=(claim.key,), message=message, pools=(pool.id,)
            )
            yield ("allocated-device-existed", claim.key, name), finding


def _chosen_at(claim: KnownClaim) -> Instant | None:
    """The earliest instant of the choice of an allocation that was found, where it shows one."""
    given = reading.text(reading.value(claim.raw_allocation), "allocationTimestamp")
    if claim.held_since != NEVER or not given:
        return None
    with suppress(TimestampError):
        return Instant(timestamps.parse(given) - IN_FLIGHT)
    return None


def _had_no_more(pool: Pool, held: Iterable[Held]) -> bool:
    """Whether the pool of claims that were found had what it has when each was allocated."""
    instants = [_chosen_at(claim) for claim, _ in held]
    known = [each for each in instants if each is not None]
    return len(known) == len(instants) > 0 and pool.is_unchanged_since(min(known))


def _found(cluster: Cluster, claim: KnownClaim) -> Broken:
    """The faults of an allocation that was found, by pools that were then what they are now.

    A patch may have changed a device, and be gone.
    """
    allocation, decided, stock = claim.allocation, _chosen_at(claim), cluster.stock
    if allocation is None or decided is None:
        return
    results = allocation.devices.results
    pools = [stock.pools.get(each.id[:2]) for each in results]
    if not all(pool is not None and pool.is_unchanged_since(decided) for pool in pools):
        return
    written = Written(
        claim=claim.key,
        spec=claim.spec,
        made=claim.made,
        results=results,
        decided_from=lambda: decided,
        is_dated=False,
        is_steady=True,
    )
    for (rule, *place), finding in placements.judge_devices(stock, cluster.switches, written):
        if finding.reads_patches and cluster.switches.patches:
            finding = replace(finding, kind=ViolationKind.UNSURE)
        yield (rule, claim.key, *place), finding


def _had_capacity(device: DeviceId, capacity: str, amount: int, stock: Stock) -> bool:
    limit, is_certain = stock.capacity_of(device, capacity)
    return not is_certain or (limit is not None and amount <= limit)


def _had_counter(pool: PoolId, counter: CounterId, stock: Stock) -> bool:
    published = stock.pools[pool]
    drawn, limit = published.drawn.get(counter, 0), published.limits.get(counter)
    return not drawn or (limit is not None and drawn <= limit)


def _pool(cluster: Cluster, pool: Pool) -> Broken:
    limits = pool.limits
    for counter, amount in pool.drawn.items() if limits else ():
        limit = limits.get(counter)
        if limit is None or amount <= limit:
            continue
        holders = [
            each
            for name, held in sorted(pool.holders.items())
            if draws(pool.devices.get(name), counter)
            for each in held
        ]
        if not holders:
            continue
        drawn, held = compared(amount, limit)
        message = (
            f"{drawn} of counter {counter[1]} of set {counter[0]} in pool "
            f"{'/'.join(pool.id)} is drawn, and the set has {held}"
        )
        had_enough = partial(_had_counter, pool.id, counter)
        finding = _weighed(cluster, had_enough, holders, message, pool.id)
        if _had_no_more(pool, holders):
            finding = replace(finding, kind=ViolationKind.BROKEN)
        uses = HeldParts((*_draws(pool, counter),), limit)
        yield ("counters-not-overdrawn", pool.id, *counter), replace(finding, uses=uses)


def _draws(pool: Pool, counter: CounterId) -> Iterator[HeldPart]:
    """The amounts that the holders of devices draw from a counter, each device once."""
    for name, held in pool.holders.items():
        amount = drawn_by(pool.devices.get(name), counter)
        for claim, _ in held:
            yield HeldPart(claim.key, amount, device=name)


def _shares(held: Iterable[Held]) -> HeldParts:
    """The results that have one device."""
    return HeldParts(tuple(HeldPart(claim.key, 1, result.share_id) for claim, result in held))


def _blamed(held: Iterable[Held], message: str, pools: tuple[PoolId, ...]) -> Finding:
    causes, objects = _causes(held), _claims(held)
    return Finding(kind=None, objects=objects, message=message, causes=causes, pools=pools)


def _weighed(
    cluster: Cluster,
    had_enough: Callable[[Stock], bool],
    held: Sequence[Held],
    message: str,
    pool: PoolId,
) -> Finding:
    """The finding that a pool has not enough for its holders, unless it had when one was chosen."""
    finding = _blamed(held, message, (pool,))
    if Cause.ALLOCATED not in finding.causes:
        return finding
    devices = {result.id for claim, result in held if claim.cause is Cause.ALLOCATED}
    if any(map(had_enough, cluster.stock.earlier(cluster.chosen_from(), devices))):
        return replace(finding, causes=finding.causes - {Cause.ALLOCATED} | {Cause.CHOSEN})
    had_ever = any(map(had_enough, cluster.stock.earlier(SINCE_EVER, devices)))
    return replace(finding, reads_times=had_ever)


def _causes(held: Iterable[Held]) -> frozenset[Cause]:
    return frozenset(claim.cause for claim, _ in held if claim.cause is not None)


def _claims(held: Iterable[Held]) -> tuple[ObjectKey, ...]:
    return tuple(dict.fromkeys(claim.key for claim, _ in held))


def _claim(cluster: Cluster, claim: KnownClaim) -> Broken:
    if not claim.is_there:
        return
    key, reserved = claim.key, claim.reserved
    is_allocated = claim.allocation is not None
    if is_allocated and not claim.is_protected and not _is_row(claim):
        message = f"the claim is allocated without the finalizer {CLAIM_FINALIZER}"
        # A claim that is about to be deleted loses the finalizer first. Parity: controllers.md 3.
        kind = ViolationKind.LATE if claim.was_protected else ViolationKind.BROKEN
        yield (
            ("allocation-has-finalizer", key),
            Finding(kind=kind, objects=(key,), message=message, reads_times=claim.was_protected),
        )
    if reserved and not is_allocated:
        message = "the claim is reserved and not allocated"
        yield ("reservation-has-allocation", key), _sure((key,), message)
    if len(reserved) > RESERVATIONS_MAX:
        message = f"the claim is reserved for {len(reserved)} consumers"
        yield ("reservations-within-limit", key), _sure((key,), message)
    for consumer in reserved:
        if consumer.resource == "pods" and not consumer.api_group:
            yield from _consumer(cluster, claim, consumer.name, consumer.uid)
    yield from claim.placed.items()
    if is_allocated and claim.held_since == NEVER:
        yield from _found(cluster, claim)


def _is_row(claim: KnownClaim) -> bool:
    """Whether the claim is known from a row of a table, which shows neither devices nor finalizers.

    Only such a row gives an allocation that is empty, in a state that was not recorded itself.
    """
    return claim.shown is NOT_SHOWN and claim.raw_allocation == _EMPTY


def _consumer(cluster: Cluster, claim: KnownClaim, name: str, uid: str) -> Broken:
    """Checks that the pod that a claim is reserved for exists and names the claim."""
    key = claim.key
    pod_key = ObjectKey("", "pods", key.namespace, name)
    pod = cluster.pods.get(pod_key)
    objects = (key, pod_key)
    if pod is None or not pod.is_there or pod.uid != uid:
        message = f"the claim is reserved for pod {name} ({uid}), which does not exist"
        kind, is_open = ViolationKind.LATE, claim.strangers.get((name, uid))
        if is_open is not None:
            kind = ViolationKind.BROKEN
            message = f"the claim was reserved for pod {name} ({uid}), which did not exist or does"
            message += " not use the claim"
        elif (other := strangers.namesake(cluster, claim, name, uid)) is not None:
            message = f"the claim is reserved for pod {name} ({uid}), and that uid is of pod "
            message += "/".join((other.namespace, other.name))
            place = ("reservation-names-pod", key, name, uid)
            yield place, _sure((key, other), message)
            return
        if "pods" in cluster.lacking or (pod is not None and pod.is_there and not pod.uid):
            kind = ViolationKind.UNSURE
        finding = Finding(
            kind=kind,
            objects=objects,
            message=message,
            unless=_PODS,
            reads_times=is_open is not False,
        )
        yield ("reservation-names-pod", key, name, uid), finding
    elif claim not in pod.claims and not strangers.is_owned(claim, uid):
        message = f"the claim is reserved for pod {name} ({uid}), which does not name it"
        yield ("reserved-pod-names-claim", key, name, uid), _sure(objects, message)


def is_settled(pod: KnownPod) -> bool:
    """Whether a bound pod certainly has what it needs: reserved claims that select its node."""
    if pod.fits is not None or pod.unmade:
        return False
    node, uid = pod.node, pod.uid
    for claim in pod.claims:
        allocation = claim.allocation
        if allocation is None:
            return False
        for consumer in claim.reserved:
            if consumer.uid == uid:
                break
        else:
            return False
        chosen = allocation.node_selector
        if chosen and nodes.selector(chosen).takes != node:
            return False
    return True


def _pod(cluster: Cluster, pod: KnownPod, *, is_listed: bool) -> Mapping[Place, Finding]:
    before, pod.fits = pod.fits, None
    broken: dict[Place, Finding] = {}
    node, uid = pod.node, pod.uid
    for entry in pod.unmade if pod.is_there and node else ():
        kind = ViolationKind.OUTSIDE if pod.came_bound else ViolationKind.BROKEN
        message = f"the pod is bound and no claim was made for its entry {entry}"
        finding = Finding(kind=kind, objects=(pod.key,), message=message)
        broken["bound-pod-claims-made", pod.key, entry] = finding
    for claim in pod.claims if pod.is_there and node else ():
        allocation = claim.allocation
        if allocation is None:
            broken |= _unready(cluster, pod, claim, "allocated")
            continue
        for consumer in claim.reserved:
            if consumer.uid == uid:
                break
        else:
            broken |= _unready(cluster, pod, claim, "reserved for it")
        if not allocation.node_selector:
            continue
        selector = nodes.selector(allocation.node_selector)
        if selector.takes != node:
            fit = None if before is None else before.get(claim.key)
            broken |= _misplaced(cluster, pod, claim, selector, fit, is_listed=is_listed)
    return broken


def _unready(
    cluster: Cluster, pod: KnownPod, claim: KnownClaim, lack: str
) -> Mapping[Place, Finding]:
    """The finding that a bound pod has a claim which lacks something."""
    kind = ViolationKind.OUTSIDE if pod.came_bound else ViolationKind.BROKEN
    unless = _NOTHING if claim.is_there else _CLAIMS
    if not cluster.lacking.isdisjoint(unless):
        kind = ViolationKind.UNSURE
    message = f"the pod is bound and its claim {claim.key.name} is not {lack}"
    finding = Finding(kind=kind, objects=(pod.key, claim.key), message=message, unless=unless)
    return {("bound-pod-has-claims", pod.key, claim.key): finding}


def _misplaced(
    cluster: Cluster,
    pod: KnownPod,
    claim: KnownClaim,
    selector: Selector,
    fit: Fit | None,
    *,
    is_listed: bool,
) -> Mapping[Place, Finding]:
    """Whether the allocation of a claim selects the pod's node, as of when the two came together.

    Labels that were found in the initial list may have been different before. Who creates a pod on
    a node has chosen the node, not a scheduler.
    """
    node = pod.node
    if selector.reads_labels:
        together = (pod.uid, node, claim.uid, selector.tree)
        if fit is None or fit.together != together:
            answer = nodes.selects(selector.tree, node, cluster.labels.get(node))
            fit = Fit(together, None if answer is False and is_listed else answer)
        pod.fits = {} if pod.fits is None else pod.fits
        pod.fits[claim.key] = fit
        answer = fit.answer
    else:
        answer = nodes.selects(selector.tree, node, None)
    if answer is True:
        return SOUND
    node_key = ObjectKey("", "nodes", "", node)
    broken = ViolationKind.OUTSIDE if pod.came_bound else ViolationKind.BROKEN
    finding = Finding(
        kind=broken if answer is False else ViolationKind.UNSURE,
        objects=(pod.key, claim.key, node_key),
        unread=() if selector.reads_labels else (node_key,),
        message=f"the pod is on node {node}, which the allocation of its claim {claim.key.name} "
        "does not select",
    )
    return {("pod-on-allocated-node", pod.key, claim.key): finding}


def _sure(objects: tuple[ObjectKey, ...], message: str) -> Finding:
    return Finding(kind=ViolationKind.BROKEN, objects=objects, message=message)
