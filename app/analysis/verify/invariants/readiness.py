"""Bindings of pods whose devices were not ready: binding conditions that no driver had reported.

A scheduler binds a pod when the drivers have reported each binding condition of its devices as
true, and no failure condition. Devices that were ready once since they were allocated may have been
so when the scheduler looked, so only the others are followed. Parity: controllers.md 3.8.

A recorded binding may have no version, so its place among reports is a guess from its time. It came
before a report if a later line about the pod has a lower version than the report, or if a second is
between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.cluster import Cluster
from app.analysis.verify.invariants.known import KnownPod
from app.analysis.verify.invariants.unseen import is_shown
from app.analysis.verify.invariants.violations import CLOCK_TOLERANCE, Finding, ViolationKind
from app.domain.log import Event, ObjectKey
from app.domain.log.raw_parts import RawClaim, RawPod
from app.domain.log.records import Loss
from app.domain.log.store_versions import WriteSpan
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

READY = "bound-pod-has-ready-devices"
"""The rule that is broken by a report that is not there, or comes too late."""

_IDENTITY = frozenset(("driver", "pool", "device", "shareID", "conditions"))
_CONDITIONED = b'"bindingConditions"'


class _Needs(NamedTuple):
    """A device of an allocation, with the conditions that are to be true and those that are not."""

    device: tuple[str, str, str]
    conditions: frozenset[str]
    failures: frozenset[str]


@dataclass(slots=True)
class _Bound:
    """The binding of a pod; `version` is that of the first line that shows it, or 0."""

    pod: ObjectKey
    event: Event
    sent: Instant
    version: int


@dataclass(slots=True)
class Unready:
    """A claim whose devices were not ready since it got them, and the bindings that may be early.

    `reports` are those of its last line, `since` is its time, `scheduler` the user that gave it the
    devices.
    """

    uid: str
    scheduler: str
    allocation: Raw
    needs: Sequence[_Needs]
    reports: Raw
    since: Instant
    bound: list[_Bound] = field(default_factory=list)


def follow_claim(cluster: Cluster, event: Event, claim: RawClaim | None, *, was_free: bool) -> None:
    """Handles a write or the deletion of a claim, which `was_free` if it is known to be so."""
    key, unready = event.key, cluster.unready
    last = unready.pop(key, None)
    raw = None if claim is None else claim.status.allocation
    if claim is None or not raw:
        _settle(cluster, key, last, event, is_ready=False)
        return
    if last is None:
        if was_free and _CONDITIONED in bytes(raw):
            needs = _needs_of(raw)
            if needs and not _are_ready(needs, claim.status.devices):
                user, now = event.stamp.actor.user, event.stamp.time
                reports = claim.status.devices.copy()
                unready[key] = Unready(event.uid, user, raw.copy(), needs, reports, now)
        return
    if last.uid != event.uid or not reading.means_same(raw, last.allocation):
        return
    is_ready = _are_ready(last.needs, claim.status.devices)
    is_first = is_ready and event.stamp.verb == "update" and _adds_nothing(last, claim)
    _settle(cluster, key, last, event, is_ready=is_ready, is_first=is_first)
    if not is_ready:
        if is_shown(event.stamp.origin):
            last.since = event.stamp.time
        last.reports = claim.status.devices.copy()
        unready[key] = last


def follow_pod(cluster: Cluster, event: Event, known: KnownPod, pod: RawPod) -> None:
    """Handles a write of a pod, `known` as it was before; call this if some claim is unready."""
    node = pod.spec.node_name
    if not (cluster.switches.waits and node and known.is_there and known.uid == event.uid):
        return
    stamp, key = event.stamp, event.key
    for claim in known.claims:
        each = cluster.unready.get(claim.key)
        if each is None:
            continue
        if known.node_name:
            for bound in each.bound:
                if bound.pod == key:
                    bound.version = bound.version or _version_of(event)
            _settle(cluster, claim.key, each, event, is_ready=False)
        elif stamp.actor.user == each.scheduler or (stamp.origin and stamp.verb != "create"):
            arrival = stamp.origin.asked if stamp.origin else None
            sent = Instant(min(stamp.time, arrival or stamp.time))
            bound = _Bound(key, event, sent, _version_of(event))
            each.bound.append(bound)
            if stamp.origin is None or bound.version:
                _note(cluster, claim.key, each, bound)
                each.bound.remove(bound)


def _settle(
    cluster: Cluster,
    key: ObjectKey,
    claim: Unready | None,
    event: Event,
    *,
    is_ready: bool,
    is_first: bool = False,
) -> None:
    """Judges bindings that an event shows to be early: a report, or anything of long after.

    `is_first` if no report before it can have said that the devices are ready.
    """
    for bound in list(claim.bound) if claim is not None else ():
        is_before = is_ready and 0 < bound.version < _version_of(event)
        is_before |= event.stamp.time - bound.event.stamp.time >= CLOCK_TOLERANCE
        if claim is not None and (is_before or is_ready):
            claim.bound.remove(bound)
            if is_before:
                _note(cluster, key, claim, bound, is_first=is_first)


def _note(
    cluster: Cluster, key: ObjectKey, claim: Unready, bound: _Bound, *, is_first: bool = False
) -> None:
    """Notes an early binding, and when a lost line may have been written that excuses it."""
    finding = Finding(
        kind=ViolationKind.BROKEN,
        objects=(key, bound.pod),
        message=f"pod {bound.pod.name} was bound before its devices were reported as ready",
        reads_times=not bound.version,
    )
    if not is_first:
        cluster.early[key, bound.pod] = WriteSpan(claim.since, bound.sent)
    cluster.note_fault(key, (READY, key, bound.pod, bound.event.revision), finding)


def _needs_of(allocation: Raw) -> list[_Needs]:
    results = reading.objects(reading.get(reading.value(allocation), "devices", "results"))
    return [
        _Needs(
            _device_of(each),
            frozenset(reading.texts(each.get("bindingConditions"))),
            frozenset(reading.texts(each.get("bindingFailureConditions"))),
        )
        for each in results
        if reading.texts(each.get("bindingConditions"))
    ]


def _are_ready(needs: Sequence[_Needs], devices: Raw) -> bool:
    """Whether drivers report of each device what it needs. The first report of a device counts."""
    true: dict[tuple[str, str, str], set[str]] = {}
    for report in reading.objects(reading.value(devices)):
        conditions = {
            reading.text(each, "type"): reading.text(each, "status")
            for each in reading.objects(report.get("conditions"))
        }
        holding = {name for name, status in conditions.items() if status == "True"}
        true.setdefault(_device_of(report), holding)
    return all(
        each.conditions <= true.get(each.device, set())
        and not each.failures & true.get(each.device, set())
        for each in needs
    )


def _adds_nothing(last: Unready, claim: RawClaim) -> bool:
    """Whether a write of a claim changes no report but in what its devices need.

    Had a lost line made them ready, this one would change nothing.
    """
    needed = {each.device: each.conditions | each.failures for each in last.needs}
    before, after = (_rest_of(each, needed) for each in (last.reports, claim.status.devices))
    return before == after


def _rest_of(
    devices: Raw, needed: Mapping[tuple[str, str, str], frozenset[str]]
) -> list[JsonObject]:
    """The reports without the conditions that are needed of their devices."""
    rest = []
    for report in reading.objects(reading.value(devices)):
        types = needed.get(_device_of(report), frozenset())
        others = [
            each
            for each in reading.objects(report.get("conditions"))
            if reading.text(each, "type") not in types
        ]
        if others or report.keys() - _IDENTITY:
            rest.append({**report, "conditions": others})
    return rest


def _device_of(tree: Mapping[str, Any]) -> tuple[str, str, str]:
    return reading.text(tree, "driver"), reading.text(tree, "pool"), reading.text(tree, "device")


def _version_of(event: Event) -> int:
    """The version of an object in a recorded line; 0 where the line has none."""
    origin = event.stamp.origin
    version = "" if origin is None or Loss.NO_RV in origin.losses else origin.resource_version
    return int(version) if version.isdigit() else 0
