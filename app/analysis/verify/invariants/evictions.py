"""Pods that are evicted for a taint: is there one? Parity: controllers.md 1.2, 1.3, 1.5.

The device taint manager marks a pod before it deletes it. By then a device of one of the pod's
claims must have a taint that evicts, and which the claim does not tolerate for longer.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import Cluster, losses_of
from app.analysis.verify.invariants.known import KnownClaim
from app.analysis.verify.invariants.pools import DeviceId
from app.analysis.verify.invariants.reading import Taint
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE, Finding, ViolationKind
from app.domain.log import Event
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError

MARK = b"DeletionByDeviceTaintManager"
"""The reason of the condition, as it stands in the body of a pod."""

NO_EXECUTE = "NoExecute"

_NEEDED = frozenset(("resourceclaims", "resourceslices", "devicetaintrules"))


def is_marked(conditions: Raw) -> bool:
    """Whether a pod with these conditions is to be deleted for a taint of a device."""
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
    """A pod was marked: note a fault when none of its devices has a taint that evicts."""
    now, unseen = event.stamp.time, cluster.unseen
    held = [claim for claim in claims if claim.allocation is not None]
    pools = set()
    for claim in held:
        allocation = reading.value(claim.raw_allocation)
        for result in reading.objects(reading.get(allocation, "devices", "results")):
            if _evicts(cluster, result, now):
                return
            pools.add((reading.text(result, "driver"), reading.text(result, "pool")))
    is_sure = (
        len(held) == len(claims)
        and "collapsed" not in losses_of(event)
        and cluster.lacking.isdisjoint(_NEEDED)
        and cluster.stock.has_seen_slices
        and (cluster.stock.has_seen_rules or not cluster.switches.rules)
        and not (unseen.has_gap("devicetaintrules") or unseen.lossy_of("devicetaintrules"))
    )
    finding = Finding(
        kind=ViolationKind.BROKEN if is_sure else ViolationKind.UNSURE,
        objects=(event.key, *(claim.key for claim in claims)),
        message="the pod is evicted for a taint, and none of its devices has one that evicts it",
        pools=tuple(sorted(pools)),
        reads_times=True,
    )
    cluster.note_fault(event.key, ("eviction-has-taint", event.key, event.revision), finding)


def _evicts(cluster: Cluster, result: JsonObject, now: Instant) -> bool:
    """Whether a taint of the device evicts by now, or was taken away a moment before."""
    device = (
        reading.text(result, "driver"),
        reading.text(result, "pool"),
        reading.text(result, "device"),
    )
    tolerations = reading.objects(result.get("tolerations"))
    for taint, added in _taints(cluster, device, now):
        if taint.effect != NO_EXECUTE:
            continue
        seconds = _tolerated(tolerations, taint)
        if seconds is None:
            continue
        if added is None or added + seconds * SECOND <= now + CLOCK_TOLERANCE:
            return True
    return False


def _taints(
    cluster: Cluster, device: DeviceId, now: Instant
) -> Iterator[tuple[Taint, Instant | None]]:
    """The taints of a device with the instants that they name, and those that just ended.

    Rules count with their gate off, too: each component has its own gates.
    """
    stock = cluster.stock
    published = stock.device(device)
    for index, taint in enumerate(() if published is None else published.taints):
        yield taint, _instant(stock.time_added(device, index))
    for rule in stock.rules.values():
        if rule.matches(device):
            yield rule.taint, _instant(reading.get(rule.spec, "taint", "timeAdded"))
    for ended in stock.lately_ended(now):
        if ended.device == device or (ended.rule is not None and ended.rule.matches(device)):
            yield ended.taint, None


def _tolerated(tolerations: list[JsonObject], taint: Taint) -> int | None:
    """For how many seconds; None for ever. Parity: controllers.md 1.3, with C2: it evicts more."""
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
    """The instant, None for what is none."""
    if type(value) is not str:
        return None
    try:
        return timestamps.parse(value)
    except TimestampError:
        return None
