"""Strangers: consumers of claims that are no pods which exist, or none that use the claim.

Also consumers that a claim has twice.
"""

from collections import Counter
from collections.abc import Sequence

from app.analysis.verify.invariants import admin, reading
from app.analysis.verify.invariants.cluster import Cluster
from app.analysis.verify.invariants.known import NEVER, KnownClaim, KnownPod
from app.analysis.verify.invariants.reading import Consumer
from app.analysis.verify.invariants.unseen import is_shown
from app.domain.log import Event, ObjectKey


def added(before: Sequence[Consumer], after: Sequence[Consumer]) -> Sequence[Consumer]:
    """The consumers of `after` that are not among those before."""
    if not after or before is after:
        return ()
    if not before:
        return after
    if after[: len(before)] == before:
        return [each for each in after[len(before) :] if each not in before]
    known = set(before)
    return [each for each in after if each not in known]


def namesake(cluster: Cluster, claim: KnownClaim, name: str, uid: str) -> ObjectKey | None:
    """The pod that has the uid, if it is another one than that for which a claim is reserved.

    Asked of claims that were found allocated: the reservations of others were judged as they came.
    """
    if claim.held_since != NEVER or not uid:
        return None
    key = ObjectKey("", "pods", claim.key.namespace, name)
    others = (each.key for each in cluster.pods.values() if each.is_there and each.uid == uid)
    return next((other for other in others if other != key), None)


def note(cluster: Cluster, event: Event, known: KnownClaim, before: Sequence[Consumer]) -> None:
    """Records the pods of reservations that were long gone, or never existed."""
    key = event.key
    for consumer in added(before, known.reserved):
        if consumer.resource != "pods" or consumer.api_group:
            continue
        pod_key = ObjectKey("", "pods", key.namespace, consumer.name)
        pod = cluster.pods.get(pod_key)
        if pod is not None and pod.is_there and pod.uid == consumer.uid:
            continue
        since = cluster.queues.decided_from(event)
        if cluster.has_lost_unnamed(pod_key, since):
            continue
        claims = cluster.claims_of_gone(pod_key, consumer.uid, since)
        if claims is None or (key not in claims and not is_owned(known, consumer.uid)):
            is_open = not cluster.went_before(pod_key, consumer.uid, known.made)
            known.strangers = {**known.strangers, (consumer.name, consumer.uid): is_open}


def forget(known: KnownClaim) -> None:
    """Drops the strangers for which the claim is reserved no more."""
    left = {(each.name, each.uid) for each in known.reserved}
    strangers = known.strangers.items()
    known.strangers = {entry: is_open for entry, is_open in strangers if entry in left}


def settle(known: KnownPod, uid: str) -> None:
    """Drops the strangers that a pod was which came without its uid.

    `uid` is that uid, learned later; empty when the pod ended and no event had it.
    """
    name = known.key.name
    for claim in known.reservers:
        if claim.strangers:
            claim.strangers = {
                entry: is_open
                for entry, is_open in claim.strangers.items()
                if entry[0] != name or uid not in ("", entry[1])
            }


def is_owned(known: KnownClaim, uid: str) -> bool:
    """Whether the claim was created for the pod with that uid."""
    owners = reading.objects(reading.value(known.raw_owners))
    return any(reading.text(each, "uid") == uid for each in owners)


def is_stray(known: KnownClaim, pod: KnownPod, uid: str) -> bool:
    """Whether the pod does not exist, is a different one, or is unrelated to the claim."""
    if not pod.is_there or pod.uid != uid:
        return True
    return known not in pod.claims and not is_owned(known, uid)


def judge_twice(cluster: Cluster, event: Event) -> None:
    """Notes a claim that is reserved twice for a consumer. Parity: controllers.md 6.2.

    The uid is the key of the list.
    """
    reserved = cluster.claims[event.key].reserved
    uids = {each.uid for each in reserved}
    if len(reserved) == len(uids) or not (event.uid and is_shown(event.stamp.origin)):
        return
    for uid, count in Counter(each.uid for each in reserved).items():
        if uid and count > 1:
            message = f"status.reservedFor names the consumer {uid} {count} times"
            admin.note_disagreement(cluster, event.key, f"status.reservedFor {uid}", message)
