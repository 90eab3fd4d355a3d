"""Evictions for a taint: whether such a taint exists. Parity: controllers.md 1.2, 1.3, 1.5.

The device taint manager marks a pod before it deletes the pod. By then, a device of one of the
pod's claims must have a taint that evicts and that the claim does not tolerate any longer.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import Cluster, losses_of
from app.analysis.verify.invariants.known import KnownClaim
from app.analysis.verify.invariants.pools import DeviceId
from app.analysis.verify.invariants.reading import Taint
from app.analysis.verify.invariants.stock import SINCE_EVER
from app.analysis.verify.invariants.violations import (
    CLOCK_TOLERANCE,
    IN_FLIGHT,
    Finding,
    ViolationKind,
)
from app.domain.log import Event, doubts
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError

MARK = b"DeletionByDeviceTaintManager"
"""The reason of the condition, as it stands in the body of a pod."""

NO_EXECUTE = "NoExecute"

_NEVER = Instant(2**62)

_NEEDED = frozenset(("resourceclaims", "resourceslices", "devicetaintrules"))


def is_marked(conditions: Raw) -> bool:
    """Whether the conditions mark a pod for deletion because of a device taint."""
    return (
        bool(conditions)
        and MARK in bytes(conditions)
        and any(
            reading.text(each, "type") == "DisruptionTarget"
            and reading.text(each, "status") == "True"
            and reading.text(each, "reason") == MARK.decode()
            for each in reading.objects(reading.value(conditions))
        )
    )


def note(cluster: Cluster, event: Event, claims: tuple[KnownClaim, ...]) -> None:
    """Handles a marked pod: notes a fault when none of its devices has a taint that evicts."""
    now, unseen = event.stamp.time, cluster.unseen
    if doubts.TIMES not in cluster.lacking:
        cluster.stock.forget_ended(now)
    held = [claim for claim in claims if claim.allocation is not None]
    pools = set()
    is_early = False
    for claim in held:
        allocation = reading.value(claim.raw_allocation)
        for result in reading.objects(reading.get(allocation, "devices", "results")):
            after = _evicts_after(cluster, result, claim.held_since, now)
            if after is not None and after <= now + CLOCK_TOLERANCE:
                return
            is_early = is_early or after is not None
            pools.add((reading.text(result, "driver"), reading.text(result, "pool")))
    is_sure = (
        len(held) == len(claims)
        and "collapsed" not in losses_of(event)
        and cluster.lacking.isdisjoint(_NEEDED)
        and cluster.stock.has_seen_slices
        and not (unseen.has_gap("devicetaintrules") or unseen.lossy_of("devicetaintrules"))
    )
    cluster.rule_statuses.note_eviction(event)
    finding = Finding(
        kind=ViolationKind.BROKEN if is_sure else ViolationKind.UNSURE,
        objects=(event.key, *(claim.key for claim in claims)),
        message="the pod is evicted for a taint, and none of its devices has one that evicts it",
        pools=tuple(sorted(pools)),
        unless=_NEEDED,
        # Clock differences matter only if a taint exists: they cannot create one.
        reads_times=is_early,
    )
    cluster.note_fault(event.key, ("eviction-has-taint", event.key, event.revision), finding)


def _evicts_after(
    cluster: Cluster, result: JsonObject, held_since: Instant, now: Instant
) -> Instant | None:
    """The instant from which a taint of the device evicts; None when no taint does."""
    device = (
        reading.text(result, "driver"),
        reading.text(result, "pool"),
        reading.text(result, "device"),
    )
    tolerations = reading.objects(result.get("tolerations"))
    instants = []
    for taint, added in _taints(cluster, device, held_since, now):
        if taint.effect != NO_EXECUTE:
            continue
        seconds = _tolerated(tolerations, taint)
        if seconds is not None:
            instants.append(SINCE_EVER if added is None else Instant(added + seconds * SECOND))
    return min(instants, default=None)


def _taints(
    cluster: Cluster, device: DeviceId, held_since: Instant, now: Instant
) -> Iterator[tuple[Taint, Instant | None]]:
    """The taints of a device with the instants in their fields, and taints that ended recently.

    Where durations are unknown, a taint that existed after the claim got the device may have ended
    recently. Rules count even if their gate is off, because each component has its own gates.
    """
    stock = cluster.stock
    published = stock.device(device)
    for index, taint in enumerate(() if published is None else published.taints):
        yield taint, _instant(stock.time_added(device, index))
    for rule in stock.rules.values():
        if rule.matches(device):
            yield rule.taint, _instant(reading.get(rule.spec, "taint", "timeAdded"))
    for ended in stock.ended:
        is_late = now - ended.until > IN_FLIGHT
        if is_late and ended.until < held_since:
            continue
        if ended.device == device or (ended.rule is not None and ended.rule.matches(device)):
            yield ended.taint, _NEVER if is_late else None


def _tolerated(tolerations: list[JsonObject], taint: Taint) -> int | None:
    """The tolerated seconds; None for ever. Parity: controllers.md 1.3, with C2: it evicts more."""
    shortest: int | None = None
    for each in tolerations:
        if reading.text(each, "effect") != NO_EXECUTE or not _matches(each, taint):
            continue
        seconds = each.get("tolerationSeconds")
        if seconds is None:
            return None
        bounded = max(0, seconds) if type(seconds) is int else 0
        shortest = bounded if shortest is None else min(shortest, bounded)
    return shortest or 0


def _matches(toleration: JsonObject, taint: Taint) -> bool:
    key, operator = reading.text(toleration, "key"), reading.text(toleration, "operator")
    if key not in ("", taint.key):
        return False
    if operator == "Exists":
        return True
    return operator in ("", "Equal") and reading.text(toleration, "value") == taint.value


def _instant(value: Any) -> Instant | None:
    """The instant of a field; None when the value is not an instant."""
    if type(value) is not str:
        return None
    try:
        return timestamps.parse(value)
    except TimestampError:
        return None
