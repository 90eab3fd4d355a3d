"""Evictions for a taint: which taint it is, if any. Parity: controllers.md 1.2, 1.3, 1.5.

The device taint manager marks a pod before it deletes the pod. By then, a device of one of the
pod's claims must have a taint that evicts and that the claim does not tolerate any longer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import Cluster, losses_of
from app.analysis.verify.invariants.known import KnownClaim
from app.analysis.verify.invariants.pools import DeviceId
from app.analysis.verify.invariants.reading import Taint
from app.analysis.verify.invariants.stock import SINCE_EVER, Evictor
from app.analysis.verify.invariants.violations import (
    CLOCK_TOLERANCE,
    EVICTED,
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


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A taint of a device: the instant from which it evicts, and what set it."""

    after: Instant
    evictor: Evictor


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
    """Handles a marked pod: notes the taints that evict it, or a fault if its devices have none."""
    now, unseen = event.stamp.time, cluster.unseen
    if doubts.TIMES not in cluster.lacking:
        cluster.stock.forget_ended(now)
    held = [claim for claim in claims if claim.allocation is not None]
    pools = set()
    candidates: list[_Candidate] = []
    for claim in held:
        allocation = reading.value(claim.raw_allocation)
        for result in reading.objects(reading.get(allocation, "devices", "results")):
            candidates += _candidates(cluster, result, claim.held_since, now)
            pools.add((reading.text(result, "driver"), reading.text(result, "pool")))
    due = [each for each in candidates if each.after <= now + CLOCK_TOLERANCE]
    if due:
        cluster.note_evictors(event.revision, _first(due, now))
        return
    is_sure = (
        len(held) == len(claims)
        and "collapsed" not in losses_of(event)
        and cluster.lacking.isdisjoint(_NEEDED)
        and cluster.stock.shown
        and not any(map(cluster.stock.may_lack, pools))
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
        reads_times=bool(candidates),
    )
    cluster.note_fault(event.key, (EVICTED, event.key, event.revision), finding)


def _first(due: Sequence[_Candidate], now: Instant) -> tuple[Evictor, ...]:
    """The taints that evict first, and those that evict by now as well.

    A taint that has ended counts only if none that exists evicts.
    """
    existing = [each for each in due if not each.evictor.is_over] or due
    until = max(now, min(each.after for each in existing))
    return tuple(sorted({each.evictor for each in existing if each.after <= until}))


def _candidates(
    cluster: Cluster, result: JsonObject, held_since: Instant, now: Instant
) -> Iterator[_Candidate]:
    """The taints of a device that the claim does not tolerate for ever."""
    device = (
        reading.text(result, "driver"),
        reading.text(result, "pool"),
        reading.text(result, "device"),
    )
    tolerations = reading.objects(result.get("tolerations"))
    for taint, added, evictor in _taints(cluster, device, held_since, now):
        if taint.effect != NO_EXECUTE:
            continue
        seconds = _tolerated(tolerations, taint)
        if seconds is not None:
            after = SINCE_EVER if added is None else Instant(added + seconds * SECOND)
            yield _Candidate(after, evictor)


def _taints(
    cluster: Cluster, device: DeviceId, held_since: Instant, now: Instant
) -> Iterator[tuple[Taint, Instant | None, Evictor]]:
    """The taints of a device with the instants in their fields, and taints that ended recently.

    Where durations are unknown, a taint that existed after the claim got the device may have ended
    recently. Rules count even if their gate is off, because each component has its own gates.
    """
    stock = cluster.stock
    published, began = stock.device(device), stock.pool(device).taints.get(device[2], {})
    for index, taint in enumerate(() if published is None else published.taints):
        place = stock.pool(device).slice_of(device[2])
        name = "" if place is None else place.name
        evictor = _evictor(taint, driver=device[0], slice=name, written=began[taint][1])
        yield taint, _instant(stock.time_added(device, index)), evictor
    for rule in stock.rules.values():
        if rule.matches(device):
            added = _instant(reading.get(rule.spec, "taint", "timeAdded"))
            yield rule.taint, added, _evictor(rule.taint, rule=rule.key.name)
    for ended in stock.ended:
        is_late = now - ended.until > IN_FLIGHT
        if is_late and ended.until < held_since:
            continue
        if ended.device == device:
            evictor = _evictor(ended.taint, driver=device[0], is_over=True)
        elif ended.rule is not None and ended.rule.matches(device):
            evictor = _evictor(ended.taint, rule=ended.rule.key.name, is_over=True)
        else:
            continue
        yield ended.taint, _NEVER if is_late else None, evictor


def _evictor(taint: Taint, **source: Any) -> Evictor:
    return Evictor(key=taint.key, value=taint.value, **source)


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
