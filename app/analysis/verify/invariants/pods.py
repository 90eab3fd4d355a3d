"""Writes of pods: applies their changes and finds faults in the writes themselves."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from app.analysis.verify.invariants import admin, cells, evictions, readiness, reading, strangers
from app.analysis.verify.invariants.admin import note_changed
from app.analysis.verify.invariants.claims import change_between
from app.analysis.verify.invariants.cluster import LISTED, Cluster, is_same, losses_of
from app.analysis.verify.invariants.known import (
    NOT_SHOWN,
    KnownClaim,
    KnownPod,
    Shown,
    joined,
    parted,
)
from app.analysis.verify.invariants.pools import billionths
from app.analysis.verify.invariants.reading import NOTHING
from app.analysis.verify.invariants.specs import entries_in
from app.analysis.verify.invariants.unseen import is_partial, is_shown
from app.analysis.verify.invariants.violations import ViolationKind
from app.domain.log import Event, EventType
from app.domain.log.raw_parts import RawPod
from app.domain.log.records import IMPORTER_USER, Loss

FINISHED = frozenset(("Succeeded", "Failed"))
"""Phases of pods that no longer need their claims."""

_CREATED = EventType.OBJECT_CREATED
_COUNTED = ("cpu", "memory")
"""The resources that make the class of quality of service."""

_OBSERVED = b'"observedGeneration"'

_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of the pods that a kubelet makes for its files."""

_PRIORITIES = {
    "": 0,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The priorities without a class, and of the classes that every server has."""

_POLICY = "PreemptLowerPriority"
"""The policy of pre-emption of these."""


class _Observing(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The generation that a condition is about."""

    observed_generation: int = 0


class _Status(_Observing, frozen=True, gc=False, rename="camel"):
    """The generations that the status of a pod and its conditions are about."""

    conditions: tuple[_Observing, ...] = ()


class _Counted(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The generation of a pod."""

    generation: int = 0


class _Observed(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A pod, of which generations matter."""

    metadata: _Counted = _Counted()
    status: _Status = _Status()


_observed = reading.reader(_Observed)


def take(cluster: Cluster, event: Event, pod: RawPod | None) -> None:
    """Applies a write or the deletion of a pod."""
    cluster.latest["pods"] = event.revision
    key, uid, kind = event.key, event.uid, event.type
    origin = event.stamp.origin
    shows = origin is None or is_shown(origin)
    is_whole = True
    if cluster.lossy or cluster.gaps or (origin is not None and not shows and is_partial(origin)):
        is_whole = cluster.unseen.note_write(event)
    known = cluster.pods.get(key)
    if pod is None:
        if known is not None and known.is_there:
            _take_end(cluster, event, known)
        return
    if known is None:
        known = cluster.pods[key] = KnownPod(key)
    if cluster.unready:
        readiness.follow_pod(cluster, event, known, pod)
    known.written = event.revision
    if origin is None or Loss.NO_RV not in origin.losses:
        known.placed = event.revision
    if not known.is_there or kind is _CREATED or not (known.uid == uid or is_same(known.uid, uid)):
        _take_found(cluster, event, known, pod)
        known.shown = None if shows else NOT_SHOWN
    else:
        if not shows or known.shown is not None or not is_whole:
            _note_shown(cluster, event, known, pod, shows=shows)
        _take_change(cluster, event, known, pod, is_whole=is_whole)
    if pod.status.resource_claim_statuses != known.judged:
        _judge_names(cluster, event, known)
    if pod.metadata.deletion_timestamp or key in cluster.ending:
        admin.follow_deletion(cluster, event)
    if shows and uid and _OBSERVED in event.body:
        _judge_observed(cluster, event)
    if kind is _CREATED and admin.is_creation(event) and admin.is_request(event):
        new = reading.new_pod(event.body)
        _judge_quality(cluster, event, new)
        _judge_priority(cluster, event, new)


def _judge_observed(cluster: Cluster, event: Event) -> None:
    """Notes a status about a generation that the pod has not reached. Parity: controllers.md 6.1.

    A pod without a generation may be of an older server.
    """
    pod = _observed(event.body)
    statuses = (pod.status, *pod.status.conditions)
    latest = max(each.observed_generation for each in statuses)
    generation = pod.metadata.generation
    if 0 < generation < latest:
        message = f"an observedGeneration is {latest}, and metadata.generation {generation}"
        admin.note_disagreement(cluster, event.key, "observedGeneration", message)


def _judge_priority(cluster: Cluster, event: Event, pod: reading.NewPod) -> None:
    """Notes a new pod with a priority, or a policy of pre-emption, that its class does not give.

    Admission sets both, and refuses others. A pod that lacks one of them is of a server without
    that admission, which keeps what the clients send of others, too. Parity: objects.md 15.2.
    """
    spec = pod.spec
    cluster.ranks &= spec.priority is not None
    is_whole = spec.priority is not None and bool(spec.preemption_policy)
    if not (cluster.ranks and is_whole) or _MIRROR in pod.metadata.annotations:
        return
    name = spec.priority_class_name
    given = _PRIORITIES.get(name)
    if given is None:
        return
    whose = f"the class {name}" if name else "no class"
    if spec.priority != given:
        message = f"spec.priority is {spec.priority}, and the new pod with {whose} gets {given}"
        admin.note_disagreement(cluster, event.key, "spec.priority", message)
    if spec.preemption_policy != _POLICY:
        message = f"spec.preemptionPolicy is {spec.preemption_policy}, "
        message += f"and the new pod with {whose} gets {_POLICY}"
        admin.note_disagreement(cluster, event.key, "spec.preemptionPolicy", message)


def _judge_names(cluster: Cluster, event: Event, known: KnownPod) -> None:
    """Notes a claim in the status for an entry that the pod lacks. Parity: objects.md 14."""
    if not (event.uid and is_shown(event.stamp.origin)):
        return
    known.judged = known.raw_statuses
    for status in reading.pod_claims(known.raw_statuses):
        if status.name not in known.entries.names:
            field = "status.resourceClaimStatuses"
            message = f"{field} names a claim for {status.name}, which is no entry of the pod"
            admin.note_disagreement(cluster, event.key, f"{field} {status.name}", message)


def _judge_quality(cluster: Cluster, event: Event, pod: reading.NewPod) -> None:
    """Notes a new pod of another class of quality of service than its containers say.

    A server of any release works it out; resources of the whole pod only newer ones know. Parity:
    controllers.md 5.1.
    """
    spec, named = pod.spec, pod.status.qos_class
    if not named or spec.resources:
        return
    quality = _quality_of((*spec.init_containers, *spec.containers))
    if named != quality:
        message = f"status.qosClass is {named}, and the containers of the new pod are {quality}"
        admin.note_disagreement(cluster, event.key, "status.qosClass", message)


def _quality_of(containers: Iterable[reading.Container]) -> str:
    requested: Counter[str] = Counter()
    limited: Counter[str] = Counter()
    is_guaranteed = True
    for container in containers:
        limits = _amounts(container.resources.limits)
        is_guaranteed &= len(limits) == len(_COUNTED)
        limited.update(limits)
        requested.update(_amounts(container.resources.requests))
    if not (requested or limited):
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requested == limited else "Burstable"


def _amounts(values: Mapping[str, Any]) -> dict[str, int]:
    amounts = {name: billionths(values.get(name)) for name in _COUNTED}
    return {name: amount for name, amount in amounts.items() if amount}


def _take_end(cluster: Cluster, event: Event, known: KnownPod) -> None:
    """Applies the deletion of a pod."""
    cluster.note_gone(known, event)
    cluster.forget_faults(known.key)
    if not known.uid:
        strangers.settle(known, "")
    for claim in known.claims:
        claim.users = parted(claim.users, known)
        if not (claim.is_there or claim.users):
            cluster.drop(claim)
    known.forget()
    if known.fits or (cluster.open and known in cluster.open):
        cluster.dirty.add(known)
    if known.reservers:
        cluster.dirty.update(known.reservers)
    else:
        cluster.drop(known)


def _take_found(cluster: Cluster, event: Event, known: KnownPod, pod: RawPod) -> None:
    """Applies a pod that is seen for the first time, or that is a new object of the same name."""
    before = known.claims
    if known.is_there:
        cluster.forget_faults(known.key)
        if not known.uid:
            strangers.settle(known, "")
        if known.uid != event.uid:
            cluster.note_gone(known, event)
    spec, status = pod.spec, pod.status
    known.is_there = True
    known.uid, known.node_name = event.uid, spec.node_name
    known.node = "" if status.phase in FINISHED else spec.node_name
    known.came_bound = spec.node_name != "" and event.stamp.verb != LISTED
    known.is_terminating = pod.metadata.deletion_timestamp != ""
    known.is_marked = bool(status.conditions) and evictions.is_marked(status.conditions)
    known.is_own = event.stamp.origin is None
    _read_names(known, pod)
    known.judged = NOTHING
    known.claims = _claims(cluster, known)
    if known.claims != before:
        _note_names(cluster, known, before)
    if known.claims or known.unmade or known.fits or cluster.open:
        _follow(cluster, known, is_other=True)
    if known.reservers:
        cluster.dirty.update(known.reservers)


def _take_change(
    cluster: Cluster, event: Event, known: KnownPod, pod: RawPod, *, is_whole: bool
) -> None:
    """Applies a write of a known pod. Most writes change nothing that matters: a hot path."""
    uid, spec, status = event.uid, pod.spec, pod.status
    node_name = spec.node_name
    node = "" if status.phase in FINISHED else node_name
    is_terminating = pod.metadata.deletion_timestamp != ""
    is_marked = bool(status.conditions) and evictions.is_marked(status.conditions)
    is_named = (
        status.resource_claim_statuses == known.raw_statuses
        and spec.resource_claims == known.entries.raw
        and status.extended_resource_claim_status == known.raw_extended
    )
    is_other = node != known.node or uid != known.uid
    if (
        is_named
        and is_terminating is known.is_terminating
        and is_marked is known.is_marked
        and uid == known.uid
        and (node_name == known.node_name or not known.node_name)
    ):
        known.node_name = node_name
        if is_other:
            known.node = node
            if known.claims or known.unmade or known.fits or cluster.open:
                _follow(cluster, known, is_other=True)
        return
    before, is_evicted = known.claims, False
    if is_whole and uid and uid == known.uid:
        is_evicted = is_marked and not known.is_marked
        if not is_named or known.node_name or is_terminating is not known.is_terminating:
            _note_faults(cluster, event, known, pod)
        if status.resource_claim_statuses != known.raw_statuses:
            _note_namer(cluster, event)
    if not is_named:
        _read_names(known, pod)
        claims = _claims(cluster, known)
        if claims != before:
            known.claims = claims
            _note_names(cluster, known, before)
            is_other = True
    if not known.uid and uid:
        strangers.settle(known, uid)
    if known.reservers and (known.claims is not before or uid != known.uid):
        cluster.dirty.update(known.reservers)
    known.uid, known.node, known.node_name = uid, node, node_name
    known.is_terminating, known.is_marked = is_terminating, is_marked
    if is_evicted:
        evictions.note(cluster, event, known.claims)
    if (is_other and (known.claims or known.unmade)) or known.fits or cluster.open:
        _follow(cluster, known, is_other=is_other)


def _note_shown(
    cluster: Cluster, event: Event, known: KnownPod, pod: RawPod, *, shows: bool
) -> None:
    """Compares a state of the pod with the last one that was recorded itself (`shows`)."""
    last = known.shown or Shown(known.entries.raw, known.is_terminating, known.node_name)
    if known.uid != event.uid or not event.uid:
        last = NOT_SHOWN
    known.shown = None if shows and event.uid else last
    if known.shown is not None or last.part is None:
        return
    if last.node_name not in ("", pod.spec.node_name):
        note_changed(cluster, event, "spec.nodeName")
    kind = change_between(last.part, pod.spec.resource_claims)
    if kind is not None:
        note_changed(cluster, event, "spec.resourceClaims", kind)
    if last.is_terminating and not pod.metadata.deletion_timestamp:
        note_changed(cluster, event, "metadata.deletionTimestamp")


def _note_faults(cluster: Cluster, event: Event, known: KnownPod, pod: RawPod) -> None:
    """Notes changes that no server allows. Parity: controllers.md 1.5, 3.7, 3.11.

    `known` is the pod before the write.
    """
    before, after = known.node_name, pod.spec.node_name
    if before and before != after:
        losses = losses_of(event)
        # Without a uid the bound pod is unknown, and an event placed by a guess may be misplaced.
        is_guess = "no_uid" in losses or (not after and "no_rv" in losses)
        note_changed(
            cluster,
            event,
            "spec.nodeName",
            ViolationKind.UNSURE if is_guess else ViolationKind.BROKEN,
        )
    entries = pod.spec.resource_claims
    if entries != known.entries.raw and not reading.means_same(entries, known.entries.raw):
        note_changed(cluster, event, "spec.resourceClaims")
    if known.is_terminating and not pod.metadata.deletion_timestamp:
        is_guess = "no_rv" in losses_of(event)
        kind = ViolationKind.UNSURE if is_guess else ViolationKind.BROKEN
        note_changed(cluster, event, "metadata.deletionTimestamp", kind)


def _note_namer(cluster: Cluster, event: Event) -> None:
    """Records the author of the claim names in a pod's status: the claim controller."""
    user = event.stamp.actor.user
    if user not in (IMPORTER_USER, *cluster.namers) and "collapsed" not in losses_of(event):
        cluster.namers.add(user)


def _follow(cluster: Cluster, known: KnownPod, *, is_other: bool) -> None:
    """Marks a written pod to be judged if its claims, its node or its uid changed."""
    if known.node:
        if is_other and (known.claims or known.unmade) and not cells.is_settled(known):
            cluster.dirty.add(known)
    elif known.fits:
        cluster.dirty.add(known)
    if cluster.open and known in cluster.open:
        cluster.dirty.add(known)


def _read_names(known: KnownPod, pod: RawPod) -> None:
    """Reads the parts of a pod that name claims.

    A recording may lack the write that named a claim; what redra itself stored is complete.
    """
    entries, status = pod.spec.resource_claims, pod.status
    if entries != known.entries.raw:
        known.entries, known.judged = entries_in(entries), NOTHING
    known.raw_statuses = status.resource_claim_statuses.copy()
    known.raw_extended = status.extended_resource_claim_status.copy()
    known.unmade = known.entries.templated if known.is_own else ()
    if known.unmade and known.raw_statuses:
        known.unmade -= {each.name for each in reading.pod_claims(known.raw_statuses)}


def _note_names(cluster: Cluster, known: KnownPod, before: tuple[KnownClaim, ...]) -> None:
    """Updates the users of claims after a pod changed the claims that it names."""
    for claim in before:
        if claim not in known.claims:
            claim.users = parted(claim.users, known)
            if not claim.is_there:
                cluster.drop(claim)
    for claim in known.claims:
        if claim not in before:
            claim.users = joined(claim.users, known)


def _claims(cluster: Cluster, known: KnownPod) -> tuple[KnownClaim, ...]:
    """The claims that a pod names, as far as they have been created."""
    entries = known.entries
    names: Collection[str] = entries.named
    if entries.unnamed and known.raw_statuses:
        statuses = reading.pod_claims(known.raw_statuses)
        if len(statuses) == 1 and not names and not known.raw_extended:
            status = statuses[0]
            name = status.resource_claim_name
            if not name or status.name not in entries.unnamed:
                return ()
            return (cluster.claim(known.key.namespace, name),)
        # If an entry has several statuses, the last one counts.
        made = {each.name: each.resource_claim_name for each in statuses}
        names = [name for entry, name in made.items() if name and entry in entries.unnamed]
        if entries.named:
            names = {*names, *entries.named}
    if known.raw_extended:
        extended = reading.text(reading.value(known.raw_extended), "resourceClaimName")
        names = {*names, extended} if extended else names
    if not names:
        return ()
    namespace = known.key.namespace
    if len(names) > 1:
        names = sorted(set(names))
    return tuple([cluster.claim(namespace, name) for name in names])
