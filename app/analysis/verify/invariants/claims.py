"""Writes of ResourceClaims: applies their changes and finds faults in the writes themselves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Raw

from app.analysis.verify.invariants import (
    admin,
    ordinary_claims,
    placements,
    readiness,
    reading,
    strangers,
)
from app.analysis.verify.invariants.cluster import (
    CLAIM_FINALIZER,
    LISTED,
    Cluster,
    is_same,
    losses_of,
)
from app.analysis.verify.invariants.known import (
    NOT_SHOWN,
    SOUND,
    KnownClaim,
    Shown,
    joined,
    parted,
)
from app.analysis.verify.invariants.placements import Written
from app.analysis.verify.invariants.queues import Queues
from app.analysis.verify.invariants.reading import Allocation, Consumer, Result
from app.analysis.verify.invariants.specs import claim_spec
from app.analysis.verify.invariants.unseen import is_partial, is_shown
from app.analysis.verify.invariants.violations import Cause, Finding, Place, ViolationKind
from app.domain.log import Event, EventType
from app.domain.log.raw_parts import RawClaim, RawClaimStatus
from app.domain.log.records import IMPORTER_USER, Loss
from app.domain.values.timestamps import Instant

_CREATED = EventType.OBJECT_CREATED
_PROTECTED = Raw(f'["{CLAIM_FINALIZER}"]'.encode())

_CLAIM_CONTROLLERS = (
    "system:serviceaccount:kube-system:resource-claim-controller",
    "system:kube-controller-manager",
)
"""The users of the claim controller: with an account of its own, and with its manager's."""

_UNSEEN_STATES = frozenset((Loss.COLLAPSED, Loss.SYNTHETIC_DELETE))
"""The losses of an event after which the claim may have been deallocated unseen before it."""


def take(cluster: Cluster, event: Event, claim: RawClaim | None) -> None:
    """Applies a write or the deletion of a claim."""
    is_created = event.type is _CREATED and admin.is_creation(event)
    is_dated = not (is_created and cluster.unseen.covers(event.key))
    known = cluster.claims.get(event.key)
    was_free = known is not None and known.is_there and not known.raw_allocation
    was_free = was_free and not cluster.unseen.covers(event.key)
    _take(cluster, event, claim)
    if was_free or cluster.unready:
        readiness.follow_claim(cluster, event, claim, was_free=was_free)
    if claim is not None and claim.status.reserved_for:
        strangers.judge_twice(cluster, event)
    if claim is not None and claim.status.devices:
        _judge_reports(cluster, event, claim.status)
    if claim is not None and (claim.metadata.deletion_timestamp or event.key in cluster.ending):
        admin.follow_deletion(cluster, event)
    if is_created and cluster.claims[event.key].spec.asks_admin:
        admin.judge(cluster, event, is_dated=is_dated)


def _take(cluster: Cluster, event: Event, claim: RawClaim | None) -> None:
    key = event.key
    origin = event.stamp.origin
    cluster.latest["resourceclaims"] = event.revision
    shows = origin is None or is_shown(origin)
    is_whole = True
    if cluster.lossy or cluster.gaps or (origin is not None and not shows and is_partial(origin)):
        is_whole = cluster.unseen.note_write(event)
    known = cluster.claims.get(key)
    if claim is None:
        if known is not None and known.is_there:
            _take_end(cluster, event, known, is_whole=is_whole)
        return
    metadata, status = claim.metadata, claim.status
    is_protected = metadata.finalizers == _PROTECTED or _has_finalizer(metadata.finalizers)
    if known is None:
        known = cluster.claims[key] = KnownClaim(key)
        cluster.forget_faults(key)
        if not (status.allocation or status.reserved_for):
            ordinary_claims.take_first(known, event, claim, is_protected=is_protected)
            known.shown = None if shows else NOT_SHOWN
            return
    is_steady = is_whole or (known.is_there and not cluster.has_published_since(known.written))
    known.earlier, known.written = known.written, event.revision
    if (
        not known.is_there
        or event.type is _CREATED
        or not (known.uid == event.uid or is_same(known.uid, event.uid))
    ):
        _take_found(cluster, event, known, claim)
        known.shown = None if shows else NOT_SHOWN
        return
    if not shows or known.shown is not None or not is_whole:
        _note_shown(cluster, event, known, claim, shows=shows)
    if status.allocation != known.raw_allocation:
        if not known.raw_allocation:
            if ordinary_claims.take_given(cluster, event, known, claim, is_protected=is_protected):
                return
        elif not (status.allocation or status.reserved_for) and ordinary_claims.take_back(
            cluster, event, known, claim, is_protected=is_protected
        ):
            return
    elif (
        status.reserved_for == known.raw_reserved
        and is_protected is known.is_protected
        and (metadata.deletion_timestamp != "") is known.is_terminating
        and claim.spec == known.spec.raw
        and metadata.owner_references == known.raw_owners
    ):
        return
    _take_change(cluster, event, known, claim, is_whole=is_whole, is_steady=is_steady)


def _note_shown(
    cluster: Cluster, event: Event, known: KnownClaim, claim: RawClaim, *, shows: bool
) -> None:
    """Compares a state of the claim with the last one that was recorded itself (`shows`).

    Whatever happened between the two, no server changed what is immutable.
    """
    last = known.shown or Shown(known.spec.raw, known.is_terminating)
    if known.uid != event.uid or not event.uid:
        last = NOT_SHOWN
    known.shown = None if shows and event.uid else last
    if known.shown is not None or last.part is None:
        return
    if (kind := change_between(last.part, claim.spec)) is not None:
        admin.note_changed(cluster, event, "spec", kind)
    if last.is_terminating and not claim.metadata.deletion_timestamp:
        admin.note_changed(cluster, event, "metadata.deletionTimestamp")


def change_between(one: Raw, other: Raw) -> ViolationKind | None:
    """The severity of a difference of immutable parts with a gap between them; None for equal ones.

    The gap may hide that servers of two releases answered: `UNSURE` for what that may explain.
    """
    if one == other:
        return None
    before, after = (reading.meaning({"": reading.value(part)}) for part in (one, other))
    if before == after:
        return None
    is_broken = reading.contradicts(before, after)
    return ViolationKind.BROKEN if is_broken else ViolationKind.UNSURE


def _take_end(cluster: Cluster, event: Event, known: KnownClaim, *, is_whole: bool) -> None:
    """Applies the deletion of a claim."""
    allocation, reserved = known.allocation, known.reserved
    is_held = known.is_protected and allocation is not None
    is_same_object = known.uid != "" and known.uid == event.uid
    known.forget()
    cluster.forget_faults(known.key)
    if is_held and is_whole and is_same_object:
        _note_unprotected(cluster, event)
    _follow(cluster, known, allocation, None)
    if reserved:
        _reserve(cluster, known, reserved, ())
    if not known.users:
        cluster.drop(known)


def _take_found(cluster: Cluster, event: Event, known: KnownClaim, claim: RawClaim) -> None:
    """Applies a claim that is seen for the first time, or that is a new object of the same name."""
    before, reserved, placed = known.allocation, known.reserved, known.placed
    is_other = not known.is_there or not is_same(known.uid, event.uid)
    was_protected = known.was_protected
    cluster.forget_faults(known.key)
    if known.is_there:
        known.forget()
    known.is_there = True
    known.uid, known.made = event.uid, event.stamp.time
    _read(known, claim, is_new=True)
    is_kept = not is_other and reading.is_same_allocation(before, known.allocation)
    if is_kept:
        known.allocation = before
    if known.allocation is not None:
        if is_kept:
            known.placed, known.was_protected = placed, was_protected or known.is_protected
        else:
            known.was_protected = known.is_protected
    if not is_kept:
        _follow(cluster, known, before, known.allocation)
        if known.allocation is not None:
            _note_cause(cluster, event, known, Cause.FOUND)
            results = known.allocation.devices.results
            shown = _written(cluster, event, known, results, is_dated=False, is_steady=False)
            known.placed = _at(event, placements.judge_requests(shown))
    elif cluster.open and known in cluster.open:
        cluster.dirty.add(known)
    if reserved or known.reserved:
        _reserve(cluster, known, reserved, known.reserved)
    if known.reserved or _is_odd(known):
        cluster.dirty.add(known)


def _take_change(
    cluster: Cluster,
    event: Event,
    known: KnownClaim,
    claim: RawClaim,
    *,
    is_whole: bool,
    is_steady: bool,
) -> None:
    """Applies a change to a known claim in a part that a rule reads.

    `is_steady`: no device was published differently since the claim's last recorded write.
    """
    held, raw, spec = known.allocation, known.raw_allocation, known.spec.raw
    reserved, was_terminating = known.reserved, known.is_terminating
    was_protected = known.is_protected
    is_certain = is_whole and known.uid != "" and known.uid == event.uid
    known.uid = event.uid
    _read(known, claim, is_new=False)
    now = known.allocation
    if now is not held and now is not None and reading.is_same_allocation(held, now):
        known.allocation = now = held
    losses = losses_of(event) if event.stamp.origin is not None else ()
    is_collapsed = "collapsed" in losses
    if now is None:
        known.was_protected = False
        known.placed = SOUND
    elif now is not held:
        known.was_protected = False
        known.held_since = event.stamp.time
        judged = _written(
            cluster, event, known, now.devices.results, is_dated=is_certain, is_steady=is_steady
        )
        known.placed = _placed(cluster, event, judged)
        if held is not None:
            _note_exchange(event, known, is_certain=is_certain)
    elif raw != known.raw_allocation and not reading.means_same(raw, known.raw_allocation):
        if is_certain:
            _note_exchange(event, known, is_certain=True)
        else:
            _note_copies(cluster, event, known)
    if now is not None and known.is_protected:
        known.was_protected = True
    is_odd = _is_odd(known)
    if now is not held:
        _follow(cluster, known, held, now)
        if now is not None:
            _note_given(cluster, event, known, held, is_certain=is_certain)
    elif cluster.open and known in cluster.open:
        cluster.dirty.add(known)
    if reserved is not known.reserved:
        if known.strangers:
            strangers.forget(known)
        if _reserve(cluster, known, reserved, known.reserved):
            is_odd = True
            if is_certain and not is_collapsed:
                strangers.note(cluster, event, known, reserved)
    if is_odd:
        cluster.dirty.add(known)
    if is_certain:
        if spec != known.spec.raw and not reading.means_same(spec, known.spec.raw):
            admin.note_changed(cluster, event, "spec")
        if was_terminating and not known.is_terminating:
            admin.note_changed(cluster, event, "metadata.deletionTimestamp")
        if was_protected and not known.is_protected and held is not None and now is held:
            _note_unprotected(cluster, event)
        if known.is_terminating and (was_terminating or not is_collapsed):
            is_taken = held is None and now is not None
            if is_taken or strangers.added(reserved, known.reserved):
                _note_late(cluster, event, is_guess="no_rv" in losses)


def _read(known: KnownClaim, claim: RawClaim, *, is_new: bool) -> None:
    """Reads the object into `known`; parts that did not change are not read again."""
    metadata, status = claim.metadata, claim.status
    known.is_protected = _has_finalizer(metadata.finalizers)
    known.is_terminating = metadata.deletion_timestamp != ""
    if is_new or claim.spec != known.spec.raw:
        known.spec = claim_spec(claim.spec)
    if is_new or metadata.owner_references != known.raw_owners:
        known.raw_owners = metadata.owner_references.copy()
    if status.allocation != known.raw_allocation:
        known.raw_allocation = raw = status.allocation.copy()
        known.allocation = reading.allocation(raw)
    if status.reserved_for != known.raw_reserved:
        known.raw_reserved = raw = status.reserved_for.copy()
        known.reserved = reading.consumers(raw)


def _has_finalizer(finalizers: Raw) -> bool:
    """Whether the finalizer that protects an allocated claim is present."""
    return bool(finalizers) and CLAIM_FINALIZER in reading.texts(reading.value(finalizers))


def _note_given(
    cluster: Cluster, event: Event, known: KnownClaim, held: Allocation | None, *, is_certain: bool
) -> None:
    """Notes that a claim got devices, and admin access to them where its namespace forbids that."""
    _note_cause(cluster, event, known, Cause.ALLOCATED)
    cluster.chosen_from = _chosen_from(cluster, event, known)
    if is_certain and admin.is_given(known.allocation) and not admin.is_given(held):
        admin.judge(cluster, event, is_dated=True, what="given")


def _note_cause(cluster: Cluster, event: Event, known: KnownClaim, cause: Cause) -> None:
    """Records how a claim came to hold its devices, if that is needed for judging dirty cells."""
    if cluster.dirty or event.stamp.verb == LISTED:
        known.cause = cause
        cluster.caused.append(known)


def _note_late(cluster: Cluster, event: Event, *, is_guess: bool) -> None:
    key = event.key
    message = "the claim is allocated or reserved anew although it is being deleted"
    kind = ViolationKind.UNSURE if is_guess else ViolationKind.BROKEN
    place = ("terminating-claim-unused", key, event.revision)
    cluster.note_fault(key, place, Finding(kind=kind, objects=(key,), message=message))


def _note_unprotected(cluster: Cluster, event: Event) -> None:
    """Notes that the finalizer of an allocated claim was removed, if that is the controller's act.

    The claim controller deallocates first. Anybody else may remove a finalizer. Without an author
    it is unknown who did. Of a request without its answer it is unknown whether the writes that are
    shown before it were the last ones. Parity: controllers.md 2.3.
    """
    user, origin = event.stamp.actor.user, event.stamp.origin
    is_unnamed = user == IMPORTER_USER
    is_controller = user in _CLAIM_CONTROLLERS or user in cluster.namers
    if not (is_unnamed or is_controller) or not _UNSEEN_STATES.isdisjoint(losses_of(event)):
        return
    is_guess = is_unnamed or (origin is not None and is_partial(origin))
    finding = Finding(
        kind=ViolationKind.UNSURE if is_guess else ViolationKind.BROKEN,
        objects=(event.key,),
        message="the finalizer of the claim was removed while the claim was allocated",
    )
    place = ("finalizer-outlasts-allocation", event.key, event.revision)
    cluster.note_fault(event.key, place, finding)


def _note_exchange(event: Event, known: KnownClaim, *, is_certain: bool) -> None:
    """Notes an allocation that replaced another one directly. Parity: objects.md 5.4.

    A claim's allocation has to be removed before the claim gets another one. A gap may hide that.
    """
    was_seen = is_certain and "collapsed" not in losses_of(event)
    place = ("allocation-unchanged", event.key, event.revision)
    finding = Finding(
        kind=ViolationKind.BROKEN if was_seen else ViolationKind.UNSURE,
        objects=(event.key,),
        message="the claim got another allocation without giving the first one back",
    )
    known.placed = {**known.placed, place: finding}


def _note_copies(cluster: Cluster, event: Event, known: KnownClaim) -> None:
    """Notes results whose tolerations are not those of the claim, whenever they were written."""
    allocation = reading.allocation(known.raw_allocation)
    if allocation is not None:
        judged = _written(
            cluster, event, known, allocation.devices.results, is_dated=False, is_steady=False
        )
        known.placed = {**known.placed, **_at(event, placements.judge_copies(judged))}


def _written(
    cluster: Cluster,
    event: Event,
    known: KnownClaim,
    results: Sequence[Result],
    *,
    is_dated: bool,
    is_steady: bool,
) -> Written:
    """The allocation that the event shows."""
    return Written(
        claim=event.key,
        spec=known.spec,
        made=known.made,
        results=results,
        decided_from=_chosen_from(cluster, event, known),
        is_dated=is_dated,
        is_steady=is_steady,
    )


def _chosen_from(cluster: Cluster, event: Event, known: KnownClaim) -> Callable[[], Instant]:
    """The function that gives the earliest instant at which an allocation may be chosen."""
    pods = [each.uid for each in known.reserved]
    return partial(Queues.decided_from, cluster.queues, event, pods)


def _placed(cluster: Cluster, event: Event, written: Written) -> Mapping[Place, Finding]:
    """The faults of the allocation that the event shows."""
    stock, switches = cluster.stock, cluster.switches
    if placements.plain_pool(stock, switches, written.spec, written.results) is not None:
        return SOUND
    return _at(event, placements.judge(stock, switches, written))


def _at(event: Event, faults: Iterable[tuple[Place, Finding]]) -> Mapping[Place, Finding]:
    """The faults of an allocation with the claim and the revision in their places."""
    return {(rule, event.key, event.revision, *place): each for (rule, *place), each in faults}


def _is_odd(known: KnownClaim) -> bool:
    """Whether a rule about the claim, apart from its consumers, may be broken."""
    if known.allocation is None:
        return bool(known.reserved)
    if known.placed or not known.is_protected:
        return True
    return len(known.reserved) > placements.RESERVATIONS_MAX


def _follow(
    cluster: Cluster, known: KnownClaim, before: Allocation | None, now: Allocation | None
) -> None:
    """Updates what depends on a changed allocation, or on a claim that appeared or went."""
    if cluster.open and known in cluster.open:
        cluster.dirty.add(known)
    for pod in known.users:
        if pod.node:
            cluster.dirty.add(pod)
    if before is not None:
        cluster.release(known, before.devices.results)
    if now is not None:
        cluster.hold(known, now.devices.results)


def _reserve(
    cluster: Cluster, known: KnownClaim, before: Sequence[Consumer], after: Sequence[Consumer]
) -> bool:
    """Updates the consumers of the claim, and marks the pods affected by the change to be judged.

    True when an added consumer is not an existing pod that names the claim.
    """
    removed, added = strangers.added(after, before), strangers.added(before, after)
    namespace, is_odd = known.key.namespace, False
    for consumer in removed:
        if consumer.resource == "pods" and not consumer.api_group:
            if after and any(each.name == consumer.name for each in after):
                continue
            pod = cluster.pod(namespace, consumer.name)
            pod.reservers = parted(pod.reservers, known)
            if not pod.is_there:
                cluster.drop(pod)
    for consumer in added:
        if consumer.resource == "pods" and not consumer.api_group:
            pod = cluster.pod(namespace, consumer.name)
            pod.reservers = joined(pod.reservers, known)
            if not (pod.is_there and pod.uid == consumer.uid and known in pod.claims):
                is_odd = is_odd or strangers.is_stray(known, pod, consumer.uid)
    for pod in known.users:
        if pod.node and any(each.uid == pod.uid for each in (*removed, *added)):
            cluster.dirty.add(pod)
    return is_odd


def _judge_reports(cluster: Cluster, event: Event, status: RawClaimStatus) -> None:
    """Notes reports about devices that the claim does not have, and second ones.

    The server refuses such a report, and drops one whose device is deallocated. Only states that
    were recorded themselves are judged. Parity: objects.md 5.4.
    """
    if not is_shown(event.stamp.origin) or not event.uid:
        return
    allocation = reading.allocation(status.allocation)
    results = () if allocation is None else allocation.devices.results
    allocated = {(*each.id, each.share_id) for each in results}
    reported: set[tuple[str, ...]] = set()
    for report in reading.reports(status.devices):
        device = (*report.id, report.share_id)
        if device not in allocated:
            name, had = "/".join(filter(None, device)), device in reported
            message = f"status.devices reports device {name}, which the claim "
            message += "reports already" if had else "does not have"
            finding = Finding(kind=ViolationKind.BROKEN, objects=(event.key,), message=message)
            place = ("reported-device-allocated", event.key, *device)
            cluster.note_fault(event.key, place, finding)
        allocated.discard(device)
        reported.add(device)
