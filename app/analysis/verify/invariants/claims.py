"""What a write of a ResourceClaim changes, and what is wrong with the write itself."""

from collections.abc import Iterable

from app.analysis.verify.invariants import placements, reading
from app.analysis.verify.invariants.cluster import (
    CLAIM,
    CLAIM_FINALIZER,
    POD,
    Cluster,
    KnownClaim,
    is_same,
    losses_of,
)
from app.analysis.verify.invariants.placements import Written
from app.analysis.verify.invariants.reading import Allocation, Claim, Consumer
from app.analysis.verify.invariants.violations import Cause, Finding, Kind, Place
from app.domain.log import Event, EventType, ObjectKey

_DELETED, _CREATED = EventType.OBJECT_DELETED, EventType.OBJECT_CREATED


def take(cluster: Cluster, event: Event) -> None:
    """A claim was written or deleted."""
    key = event.key
    is_whole = True
    if event.stamp.origin is not None or cluster.lossy or cluster.has_gap:
        is_whole = cluster.note_write(event)
    old = cluster.claims.get(key)
    if event.type is _DELETED:
        if old is not None:
            del cluster.claims[key]
            cluster.forget_faults(key)
            _follow(cluster, key, old.allocation, None, is_other=True)
            if old.reserved:
                _note_reserved(cluster, key, old.reserved, ())
        return
    claim = reading.claim(event.body)
    is_found = old is None or event.type is _CREATED or not is_same(old.uid, event.uid)
    if old is None or is_found:
        known = KnownClaim(event.uid, event.stamp.time)
        before = None if old is None else old.allocation
        reserved: tuple[Consumer, ...] = () if old is None else old.reserved
        is_other = old is None or not is_same(old.uid, event.uid)
        cluster.claims[key] = known
        cluster.forget_faults(key)
        _read(known, claim)
        if old is not None and not is_other and known.allocation == before is not None:
            known.placed, known.was_protected = old.placed, old.was_protected
        elif known.allocation is not None:
            cluster.causes[key] = Cause.FOUND
    else:
        known, is_other = old, False
        before, reserved = known.allocation, known.reserved
        if not _changes(known, claim):
            return
        _change(cluster, event, known, claim, is_whole=is_whole)
    now = known.allocation
    known.was_protected = now is not None and (known.was_protected or known.is_protected)
    _follow(cluster, key, before, now, is_other=is_other)
    if reserved is not known.reserved:
        _note_reserved(cluster, key, reserved, known.reserved)
    if _is_odd(cluster, key, known, () if is_found else reserved):
        cluster.dirty.add((CLAIM, key))


def _changes(known: KnownClaim, claim: Claim) -> bool:
    """Whether anything changed that a rule looks at."""
    metadata, status = claim.metadata, claim.status
    return (
        bytes(status.allocation) != known.raw_allocation
        or bytes(status.reserved_for) != known.raw_reserved
        or (CLAIM_FINALIZER in metadata.finalizers) is not known.is_protected
        or bool(metadata.deletion_timestamp) is not known.is_terminating
        or bytes(claim.spec) != known.spec
        or bytes(metadata.owner_references) != known.raw_owners
    )


def _read(known: KnownClaim, claim: Claim) -> None:
    """Take over what the object says; what did not change is not read again."""
    metadata, status = claim.metadata, claim.status
    known.spec = bytes(claim.spec)
    known.raw_owners = bytes(metadata.owner_references)
    known.is_protected = CLAIM_FINALIZER in metadata.finalizers
    known.is_terminating = bool(metadata.deletion_timestamp)
    allocation = bytes(status.allocation)
    if allocation != known.raw_allocation:
        known.raw_allocation, known.allocation = allocation, reading.allocation(allocation)
    reserved = bytes(status.reserved_for)
    if reserved != known.raw_reserved:
        known.raw_reserved, known.reserved = reserved, reading.consumers(reserved)


def _change(
    cluster: Cluster,
    event: Event,
    known: KnownClaim,
    claim: Claim,
    *,
    is_whole: bool,
) -> None:
    """Take a change of a known claim in, with what is wrong with it."""
    key = event.key
    held, raw, spec = known.allocation, known.raw_allocation, known.spec
    reserved, was_terminating = known.reserved, known.is_terminating
    is_certain = is_whole and bool(known.uid) and known.uid == event.uid
    known.uid = event.uid
    _read(known, claim)
    now = known.allocation
    losses = losses_of(event)
    is_collapsed = "collapsed" in losses
    if now is None:
        known.placed, known.was_protected = {}, False
    elif now != held:
        cluster.causes[key] = Cause.ALLOCATED
        known.was_protected = False
        known.placed = _placed(cluster, event, known)
        if held is not None:
            _note_exchange(event, known)
    elif raw != known.raw_allocation and is_certain and not _means_same(raw, known):
        known.placed = dict(known.placed)
        _note_exchange(event, known)
    if reserved is not known.reserved:
        _note_strangers(cluster, event, known, reserved, is_certain=is_certain and not is_collapsed)
    if not is_certain:
        return
    if spec != known.spec and not reading.means_same(spec, known.spec):
        note_changed(cluster, event, "spec")
    if was_terminating and not known.is_terminating:
        note_changed(cluster, event, "metadata.deletionTimestamp")
    is_taken = (now is not None and held is None) or bool(_added(reserved, known.reserved))
    if known.is_terminating and is_taken and (was_terminating or not is_collapsed):
        message = "the claim is allocated or reserved anew although it is being deleted"
        kind = Kind.UNSURE if "no_rv" in losses else Kind.BROKEN
        place = ("terminating-claim-unused", key, event.revision)
        cluster.note_fault(key, place, Finding(kind=kind, objects=(key,), message=message))


def _means_same(raw: bytes, known: KnownClaim) -> bool:
    return reading.means_same(raw, known.raw_allocation)


def note_changed(cluster: Cluster, event: Event, field: str, kind: Kind = Kind.BROKEN) -> None:
    """A field changed that the server lets nobody change. Parity: objects.md 5.1, 6, 7."""
    place = ("immutable-field-unchanged", event.key, field, event.revision)
    message = f"{field} was changed, which no server allows"
    cluster.note_fault(event.key, place, Finding(kind=kind, objects=(event.key,), message=message))


def _note_exchange(event: Event, known: KnownClaim) -> None:
    """Parity: objects.md 5.4. What is allocated goes by way of nothing."""
    was_seen = "collapsed" not in losses_of(event)
    known.placed["allocation-unchanged", event.key, event.revision] = Finding(
        kind=Kind.BROKEN if was_seen else Kind.UNSURE,
        objects=(event.key,),
        message="the claim got another allocation without giving the first one back",
    )


def _placed(cluster: Cluster, event: Event, known: KnownClaim) -> dict[Place, Finding]:
    """What is wrong with the allocation that the event wrote."""
    allocation = known.allocation
    assert allocation is not None, "it was written"
    written = Written(
        claim=event.key,
        spec=known.spec,
        raw=known.raw_allocation,
        made=known.made,
        results=allocation.devices.results,
        now=event.stamp.time,
    )
    return {
        (rule, event.key, event.revision, *place): finding
        for (rule, *place), finding in placements.judge(cluster.stock, cluster.switches, written)
    }


def _added(before: tuple[Consumer, ...], after: tuple[Consumer, ...]) -> Iterable[Consumer]:
    """The consumers of `after` that are not among those before."""
    if not before or before is after:
        return () if before is after else after
    if after[: len(before)] == before:
        return [each for each in after[len(before) :] if each not in before]
    known = set(before)
    return [each for each in after if each not in known]


def _note_strangers(
    cluster: Cluster,
    event: Event,
    known: KnownClaim,
    before: tuple[Consumer, ...],
    *,
    is_certain: bool,
) -> None:
    """Remember for which pods the claim was reserved that were gone long ago, or never there."""
    key, now = event.key, event.stamp.time
    if known.strangers:
        left = {(each.name, each.uid) for each in known.reserved}
        known.strangers &= left
    for consumer in _added(before, known.reserved) if is_certain else ():
        if consumer.resource != "pods" or consumer.api_group:
            continue
        pod_key = ObjectKey("", "pods", key.namespace, consumer.name)
        pod = cluster.pods.get(pod_key)
        if pod is not None and pod.uid == consumer.uid:
            continue
        claims = cluster.claims_of_gone(pod_key, consumer.uid, now)
        if claims is None or (key not in claims and not is_owned(known, consumer.uid)):
            known.strangers.add((consumer.name, consumer.uid))


def is_owned(known: KnownClaim, uid: str) -> bool:
    """Whether the claim was made for the pod with that uid."""
    owners = reading.objects(reading.value(known.raw_owners))
    return any(reading.text(each, "uid") == uid for each in owners)


def _is_odd(
    cluster: Cluster, key: ObjectKey, known: KnownClaim, checked: tuple[Consumer, ...]
) -> bool:
    """Whether a rule about the claim may be broken; `checked` are consumers as they were before."""
    reserved = known.reserved
    if known.allocation is None:
        return bool(reserved)
    if known.placed or not known.is_protected or len(reserved) > placements.RESERVATIONS_MAX:
        return True
    pods, users = cluster.pods, cluster.users.get(key, ())
    for consumer in _added(checked, reserved):
        place = ("", "pods", key.namespace, consumer.name)
        pod = pods.get(place)  # type: ignore[call-overload]  # a plain tuple is an equal key
        if pod is None or pod.uid != consumer.uid:
            return True
        if place not in users and not is_owned(known, consumer.uid):
            return True
    return False


def _follow(
    cluster: Cluster,
    key: ObjectKey,
    before: Allocation | None,
    now: Allocation | None,
    *,
    is_other: bool,
) -> None:
    """Keep what follows from an allocation that changed, or a claim that came or went."""
    if cluster.open and (CLAIM, key) in cluster.open:
        cluster.dirty.add((CLAIM, key))
    if before == now and not is_other and key not in cluster.causes:
        return
    for pod in cluster.users.get(key, ()):
        if cluster.pods[pod].node:
            cluster.dirty.add((POD, pod))
    if before is not None:
        for device in cluster.holdings.release(key, before.devices.results):
            cluster.note_device(device)
    if now is not None:
        for device in cluster.holdings.hold(key, now.devices.results):
            cluster.note_device(device)


def _note_reserved(
    cluster: Cluster, key: ObjectKey, before: tuple[Consumer, ...], after: tuple[Consumer, ...]
) -> None:
    """Keep for whom the claim is reserved, and judge the pods for which that changed."""
    removed, added = _added(after, before), _added(before, after)
    namespace, reservers = key.namespace, cluster.reservers
    for consumer in removed:
        claims = reservers.get((namespace, consumer.name))
        if claims is not None and all(each.name != consumer.name for each in after):
            claims.discard(key)
            if not claims:
                del reservers[namespace, consumer.name]
    for consumer in added:
        reservers.setdefault((namespace, consumer.name), set()).add(key)
    users = cluster.users.get(key)
    if users:
        changed = {each.uid for each in removed} | {each.uid for each in added}
        for pod in users:
            known = cluster.pods[pod]
            if known.node and known.uid in changed:
                cluster.dirty.add((POD, pod))
