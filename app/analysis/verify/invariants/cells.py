"""What is broken in a cell at present."""

from collections.abc import Iterable, Iterator

from app.analysis.verify.invariants import amounts, nodes
from app.analysis.verify.invariants.claims import is_owned
from app.analysis.verify.invariants.cluster import (
    CLAIM,
    CLAIM_FINALIZER,
    DEVICE,
    OBJECT,
    POD,
    Cell,
    Cluster,
    Entry,
    Fit,
    KnownClaim,
)
from app.analysis.verify.invariants.holdings import Held, draws
from app.analysis.verify.invariants.placements import RESERVATIONS_MAX
from app.analysis.verify.invariants.stock import DeviceId, PoolId
from app.analysis.verify.invariants.violations import Finding, Kind, Place
from app.domain.log import ObjectKey

Broken = Iterator[tuple[Place, Finding]]


def judge(cluster: Cluster, cell: Cell, *, is_listed: bool) -> dict[Place, Finding]:
    """What is broken in the cell. `is_listed` tells that it was found as it is."""
    kind, subject = cell
    if kind == CLAIM:
        return dict(_claim(cluster, subject))
    if kind == POD:
        return dict(_pod(cluster, subject, is_listed=is_listed))
    if kind == OBJECT:
        return cluster.faults.get(subject, {})
    return dict(_device(cluster, subject) if kind == DEVICE else _pool(cluster, subject))


def _device(cluster: Cluster, device: DeviceId) -> Broken:
    held = cluster.holdings.of(device)
    name = "/".join(device)
    if held and cluster.stock.is_withdrawn(device):
        message = f"device {name} is allocated and is published no more"
        finding = Finding(kind=Kind.OUTSIDE, objects=_claims(held), message=message)
        yield ("allocated-device-published", device), finding
    if len(held) > 1 and not all(result.share_id for _, result in held):
        published = cluster.stock.device(device)
        if published is None or not published.allow_multiple_allocations:
            message = f"device {name} is allocated {len(held)} times"
            yield ("device-in-one-claim", device), _blamed(cluster, held, message)
    for capacity, amount in cluster.holdings.consumed(device).items():
        limit, is_certain = cluster.stock.capacity_of(device, capacity)
        if limit is None or amount <= limit:
            continue
        holders = [each for each in held if capacity in each[1].consumed_capacity]
        if not holders:
            continue
        message = (
            f"of {capacity} of device {name} {amounts.text(amount)} is consumed, and there is "
            f"{amounts.text(limit)}"
        )
        place = ("consumed-within-capacity", device, capacity)
        if is_certain:
            yield place, _blamed(cluster, holders, message)
        else:
            yield place, Finding(kind=Kind.UNSURE, objects=_claims(holders), message=message)


def _pool(cluster: Cluster, pool_id: PoolId) -> Broken:
    pool = cluster.stock.pools.get(pool_id)
    if pool is None or not pool.limits:
        return
    drawn = cluster.holdings.drawn(pool_id)
    for counter, amount in drawn.items():
        limit = pool.limits.get(counter)
        if limit is None or amount <= limit:
            continue
        holders = [
            held
            for device in cluster.holdings.in_pool(pool_id)
            if draws(pool.device(device[2]), counter)
            for held in cluster.holdings.of(device)
        ]
        if not holders:
            continue
        message = (
            f"of counter {counter[1]} of set {counter[0]} in pool {'/'.join(pool_id)} "
            f"{amounts.text(amount)} is drawn, and there is {amounts.text(limit)}"
        )
        yield ("counters-not-overdrawn", pool_id, *counter), _blamed(cluster, holders, message)


def _blamed(cluster: Cluster, held: Iterable[Held], message: str) -> Finding:
    claims = _claims(held)
    causes = frozenset(cluster.causes[claim] for claim in claims if claim in cluster.causes)
    return Finding(kind=None, objects=claims, message=message, causes=causes)


def _claims(held: Iterable[Held]) -> tuple[ObjectKey, ...]:
    return tuple(dict.fromkeys(claim for claim, _ in held))


def _claim(cluster: Cluster, key: ObjectKey) -> Broken:
    known = cluster.claims.get(key)
    if known is None:
        return
    reserved = known.reserved
    is_allocated = known.allocation is not None
    if is_allocated and not known.is_protected:
        message = f"the claim is allocated without the finalizer {CLAIM_FINALIZER}"
        # A claim that is about to be deleted loses it before. Parity: controllers.md 3.
        kind = Kind.LATE if known.was_protected else Kind.BROKEN
        yield (
            ("allocation-has-finalizer", key),
            Finding(kind=kind, objects=(key,), message=message),
        )
    if reserved and not is_allocated:
        message = "the claim is reserved and not allocated"
        yield ("reservation-has-allocation", key), _sure((key,), message)
    if len(reserved) > RESERVATIONS_MAX:
        message = f"the claim is reserved for {len(reserved)} consumers"
        yield ("reservations-within-limit", key), _sure((key,), message)
    for consumer in reserved:
        if consumer.resource == "pods" and not consumer.api_group:
            yield from _consumer(cluster, key, known, (consumer.name, consumer.uid))
    yield from known.placed.items()


def _consumer(cluster: Cluster, key: ObjectKey, known: KnownClaim, entry: Entry) -> Broken:
    """Whether the pod that a claim is reserved for is there, and names the claim."""
    name, uid = entry
    pod_key = ObjectKey("", "pods", key.namespace, name)
    pod = cluster.pods.get(pod_key)
    objects = (key, pod_key)
    if pod is None or pod.uid != uid:
        message = f"the claim is reserved for pod {name} ({uid}), which does not exist"
        kind = Kind.LATE
        if entry in known.strangers:
            kind = Kind.BROKEN
            message = f"the claim was reserved for pod {name} ({uid}), which was not there or whose"
            message += " claims it is not of"
        if "pods" in cluster.lacking:
            kind = Kind.UNSURE
        finding = Finding(kind=kind, objects=objects, message=message)
        yield ("reservation-names-pod", key, name, uid), finding
    elif key not in pod.claims and not is_owned(known, uid):
        message = f"the claim is reserved for pod {name} ({uid}), which does not name it"
        yield ("reserved-pod-names-claim", key, name, uid), _sure(objects, message)


def _pod(cluster: Cluster, key: ObjectKey, *, is_listed: bool) -> Broken:
    pod = cluster.pods.get(key)
    before = cluster.fits.pop(key, {})
    if pod is None or not pod.node:
        return
    fits: dict[ObjectKey, Fit] = {}
    for claim_key in pod.claims:
        known = cluster.claims.get(claim_key)
        allocation = None if known is None else known.allocation
        lack = ""
        if known is None or allocation is None:
            lack = "allocated"
        elif not any(each.uid == pod.uid for each in known.reserved):
            lack = "reserved for it"
        if lack:
            kind = Kind.OUTSIDE if pod.came_bound else Kind.BROKEN
            if known is None and "resourceclaims" in cluster.lacking:
                kind = Kind.UNSURE
            message = f"the pod is bound and its claim {claim_key.name} is not {lack}"
            finding = Finding(kind=kind, objects=(key, claim_key), message=message)
            yield ("bound-pod-has-claims", key, claim_key), finding
        if known is None or allocation is None:
            continue
        together = (pod.uid, pod.node, known.uid, allocation.node_selector)
        fit = before.get(claim_key)
        if fit is None or fit.together != together:
            answer = _answer(cluster, pod.node, allocation.node_selector, is_listed=is_listed)
            fit = Fit(together=together, answer=answer)
        fits[claim_key] = fit
        if fit.answer is not True:
            node_key = ObjectKey("", "nodes", "", pod.node)
            yield (
                ("pod-on-allocated-node", key, claim_key),
                Finding(
                    kind=Kind.BROKEN if fit.answer is False else Kind.UNSURE,
                    objects=(key, claim_key, node_key),
                    message=f"the pod is on node {pod.node}, which the allocation of its claim "
                    f"{claim_key.name} does not select",
                ),
            )
    if fits:
        cluster.fits[key] = fits


def _answer(cluster: Cluster, node: str, selector: object, *, is_listed: bool) -> bool | None:
    """Whether the node is selected; labels that were found may have been others before."""
    answer = nodes.selects(selector, node, cluster.labels.get(node))
    if answer is False and is_listed and nodes.reads_labels(selector):
        return None
    return answer


def _sure(objects: tuple[ObjectKey, ...], message: str) -> Finding:
    return Finding(kind=Kind.BROKEN, objects=objects, message=message)
