"""What a write of a pod changes, and what is wrong with the write itself."""

from functools import lru_cache

from app.analysis.verify.invariants import evictions, reading
from app.analysis.verify.invariants.claims import note_changed
from app.analysis.verify.invariants.cluster import (
    CLAIM,
    GROUP,
    LISTED,
    POD,
    Cluster,
    KnownPod,
    is_same,
    losses_of,
)
from app.analysis.verify.invariants.reading import PodClaim
from app.analysis.verify.invariants.violations import Kind
from app.domain.log import Event, EventType, ObjectKey

FINISHED = frozenset(("Succeeded", "Failed"))
"""Phases of pods that need their claims no longer."""

_ENTRIES_MAX = 1_024
"""Lists of entries of pods that are remembered."""

_DELETED, _CREATED = EventType.OBJECT_DELETED, EventType.OBJECT_CREATED


def take(cluster: Cluster, event: Event) -> None:
    """A pod was written or deleted."""
    cluster.has_seen_pods = True
    key, uid, kind = event.key, event.uid, event.type
    # Most pods change in what no rule reads: what comes before the first return is a hot path.
    is_whole = True
    if event.stamp.origin is not None or cluster.lossy or cluster.has_gap:
        is_whole = cluster.note_write(event)
    old = cluster.pods.get(key)
    if kind is _DELETED:
        if old is not None:
            del cluster.pods[key]
            cluster.forget_faults(key)
            cluster.note_gone(key, old, event.stamp.time)
            _follow(cluster, key, old, None)
        return
    pod = reading.pod(event.body)
    spec, status = pod.spec, pod.status
    node_name = spec.node_name
    node = "" if status.phase in FINISHED else node_name
    is_terminating = pod.metadata.deletion_timestamp != ""
    conditions = bytes(status.conditions)
    is_marked = evictions.MARK in conditions and evictions.is_marked(conditions)
    parts = (
        bytes(spec.resource_claims),
        bytes(status.resource_claim_statuses),
        bytes(status.extended_resource_claim_status),
    )
    if old is None or kind is _CREATED or not is_same(old.uid, uid):
        if old is not None:
            cluster.forget_faults(key)
            if old.uid != uid:
                cluster.note_gone(key, old, event.stamp.time)
        came_bound = node_name != "" and event.stamp.verb != LISTED
        claims = _claims(key, parts)
    else:
        is_named = parts == old.parts
        if (
            is_named
            and node == old.node
            and node_name == old.node_name
            and is_terminating is old.is_terminating
            and is_marked is old.is_marked
            and uid == old.uid
        ):
            return
        came_bound = old.came_bound
        claims = old.claims if is_named else _claims(key, parts)
    known = KnownPod(uid, node_name, node, parts, claims, came_bound, is_terminating, is_marked)
    cluster.pods[key] = known
    if old is not None:
        if is_whole and uid and uid == old.uid and kind is not _CREATED:
            _note_faults(cluster, event, old, known)
        _follow(cluster, key, old, known)
    elif claims or (key.namespace, key.name) in cluster.reservers:
        _follow(cluster, key, None, known)


def _note_faults(cluster: Cluster, event: Event, old: KnownPod, known: KnownPod) -> None:
    """What no server lets anybody do to a pod. Parity: controllers.md 1.5, 3.7, 3.11."""
    before, after = old.node_name, known.node_name
    losses = losses_of(event)
    if before and before != after:
        # Whose binding it was is not known without a uid, and a guess may stand in the wrong place.
        is_guess = "no_uid" in losses or (not after and "no_rv" in losses)
        note_changed(cluster, event, "spec.nodeName", Kind.UNSURE if is_guess else Kind.BROKEN)
    claims = old.parts[0]
    if claims != known.parts[0] and not reading.means_same(claims, known.parts[0]):
        note_changed(cluster, event, "spec.resourceClaims")
    if old.is_terminating and not known.is_terminating:
        is_guess = "no_rv" in losses
        kind = Kind.UNSURE if is_guess else Kind.BROKEN
        note_changed(cluster, event, "metadata.deletionTimestamp", kind)
    if known.is_marked and not old.is_marked:
        evictions.note(cluster, event, known.claims)


def _follow(cluster: Cluster, key: ObjectKey, old: KnownPod | None, known: KnownPod | None) -> None:
    """Keep what follows from a pod that was written or deleted."""
    before = () if old is None else old.claims
    claims = () if known is None else known.claims
    dirty = cluster.dirty
    if known is not None and known.node:
        is_other = (
            old is None
            or before is not claims
            or old.uid != known.uid
            or known.node != old.node
            or known.came_bound
        )
        if claims and is_other:
            dirty.add((POD, key))
    elif key in cluster.fits:
        dirty.add((POD, key))
    if cluster.open and (POD, key) in cluster.open:
        dirty.add((POD, key))
    is_renamed = before is not claims and before != claims
    if is_renamed:
        users = cluster.users
        for claim in before:
            of_claim = users.get(claim)
            if of_claim is not None:
                of_claim.discard(key)
                if not of_claim:
                    del users[claim]
        for claim in claims:
            users.setdefault(claim, set()).add(key)
    if is_renamed or old is None or known is None or old.uid != known.uid:
        reserved = cluster.reservers.get((key.namespace, key.name))
        if reserved:
            dirty.update((CLAIM, claim) for claim in reserved)


def _claims(key: ObjectKey, parts: tuple[bytes, bytes, bytes]) -> tuple[ObjectKey, ...]:
    """The claims that a pod names, as far as they have been made."""
    entries, statuses, extended = parts
    if not entries and not extended:
        return ()
    made = {each.name: each.resource_claim_name for each in reading.pod_claims(statuses)}
    names = {each.resource_claim_name or made.get(each.name, "") for each in _entries(entries)}
    if extended:
        names.add(reading.text(reading.value(extended), "resourceClaimName"))
    names.discard("")
    namespace = key.namespace
    ordered = sorted(names) if len(names) > 1 else names
    return tuple(ObjectKey(GROUP, "resourceclaims", namespace, name) for name in ordered)


@lru_cache(maxsize=_ENTRIES_MAX)
def _entries(part: bytes) -> tuple[PodClaim, ...]:
    """The entries of a pod, which pods of one template have in common."""
    return reading.pod_claims(part)
