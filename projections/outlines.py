"""Outlines: the few fields that folds read from an object's bytes without decoding the rest.

This module is not a view. Decoding a whole object costs three to five times as much as reading its
outline, and most events change no other field. A malformed field (a number where a text belongs)
counts as absent, so folding never fails. The outline of an event is kept with its page, where other
views find it.

Most events are about pods and claims; folds read them from raw parts (`seen_pod`, `seen_claim`).
Parts with equal bytes are read once: entries often come from one template, and most writes leave
most parts unchanged.
"""

from functools import lru_cache
from sys import intern

import msgspec

from app.domain.log.raw_parts import RawClaim, RawPod
from app.domain.values import condition_types
from app.domain.values.fields import core, dra, meta, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import (
    NO_DEVICE,
    NO_DRIVER,
    NO_POOL,
    DeviceName,
    DriverName,
    PoolName,
    Uid,
)
from app.domain.values.json_tree import JsonObject


class MetadataOutline(FieldRecord, frozen=True):
    """The metadata of any object."""

    generation: int = 0
    deletion_timestamp: str = ""
    owner_references: tuple[meta.Owner, ...] = ()


class Outline(FieldRecord, frozen=True):
    """The outline of any object."""

    metadata: MetadataOutline = MetadataOutline()


class TaintOutline(FieldRecord, frozen=True):
    """A taint of a device or a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class PodClaimOutline(FieldRecord, frozen=True):
    """An entry of a pod's `spec.resourceClaims` or `status.resourceClaimStatuses`."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpecOutline(FieldRecord, frozen=True):
    """The specification of a pod."""

    node_name: str = ""
    resource_claims: tuple[PodClaimOutline, ...] = ()


class PodStatusOutline(FieldRecord, frozen=True):
    """The status of a pod."""

    phase: str = ""
    conditions: tuple[meta.Condition, ...] = ()
    resource_claim_statuses: tuple[PodClaimOutline, ...] = ()
    extended_resource_claim_status: PodClaimOutline = PodClaimOutline()


class PodOutline(FieldRecord, frozen=True):
    """A pod."""

    metadata: MetadataOutline = MetadataOutline()
    spec: PodSpecOutline = PodSpecOutline()
    status: PodStatusOutline = PodStatusOutline()


class ResultsOutline(FieldRecord, frozen=True):
    """The devices of an allocation."""

    results: tuple[dra.DeviceResult, ...] = ()


class AllocationOutline(FieldRecord, frozen=True):
    """An allocation."""

    devices: ResultsOutline = ResultsOutline()


class ClaimStatusOutline(FieldRecord, frozen=True):
    """The status of a claim."""

    allocation: AllocationOutline | None = None
    reserved_for: tuple[dra.Consumer, ...] = ()


class ClaimOutline(FieldRecord, frozen=True):
    """A claim."""

    metadata: MetadataOutline = MetadataOutline()
    status: ClaimStatusOutline = ClaimStatusOutline()


class DeviceOutline(FieldRecord, frozen=True):
    """A device of a slice."""

    name: DeviceName = NO_DEVICE
    taints: tuple[JsonObject, ...] = ()


class SliceSpecOutline(FieldRecord, frozen=True):
    """The specification of a slice."""

    driver: DriverName = NO_DRIVER
    node_name: str = ""
    pool: dra.ResourcePool = dra.ResourcePool()
    devices: tuple[DeviceOutline, ...] = ()


class SliceOutline(FieldRecord, frozen=True):
    """A slice."""

    metadata: MetadataOutline = MetadataOutline()
    spec: SliceSpecOutline = SliceSpecOutline()


class SelectorOutline(FieldRecord, frozen=True):
    """The device selector of a rule."""

    driver: DriverName = NO_DRIVER
    pool: PoolName = NO_POOL
    device: DeviceName = NO_DEVICE


class RuleSpecOutline(FieldRecord, frozen=True):
    """The specification of a rule."""

    device_selector: SelectorOutline | None = None
    taint: TaintOutline = TaintOutline()


class ConditionsOutline(FieldRecord, frozen=True):
    """A status of which only the conditions are read."""

    conditions: tuple[meta.Condition, ...] = ()


class RuleOutline(FieldRecord, frozen=True):
    """A DeviceTaintRule."""

    spec: RuleSpecOutline = RuleSpecOutline()
    status: ConditionsOutline = ConditionsOutline()


class NodeSpecOutline(FieldRecord, frozen=True):
    """The specification of a node."""

    unschedulable: bool = False
    taints: tuple[TaintOutline, ...] = ()


class LabelledOutline(FieldRecord, frozen=True):
    """The metadata of an object whose labels others choose it by."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)


class NodeOutline(FieldRecord, frozen=True):
    """A node."""

    metadata: LabelledOutline = LabelledOutline()
    spec: NodeSpecOutline = NodeSpecOutline()
    status: ConditionsOutline = ConditionsOutline()


class SummaryOutline(FieldRecord, frozen=True):
    """The summary of a decision."""

    message: str = ""


class DecisionOutline(FieldRecord, frozen=True):
    """The body of a DecisionRecorded event."""

    controller: str = ""
    resource: str = ""
    outcome: str = ""
    summary: SummaryOutline = SummaryOutline()


class Held(FieldRecord, frozen=True):
    """A device of an allocation, with the fields that folds read."""

    request: str = ""
    driver: DriverName = NO_DRIVER
    pool: PoolName = NO_POOL
    device: DeviceName = NO_DEVICE
    admin_access: bool = False
    tolerations: tuple[JsonObject, ...] = ()


class _HeldDevices(FieldRecord, frozen=True):
    """The devices of an allocation."""

    results: tuple[Held, ...] = ()


class _HeldAllocation(FieldRecord, frozen=True):
    """An allocation."""

    devices: _HeldDevices = _HeldDevices()


class _ConditionText(FieldRecord, frozen=True):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class SeenPod(msgspec.Struct, frozen=True, gc=False):
    """A pod, with the fields that folds read.

    `claims` are the names of the claims that the pod uses, None when it has no claim entries;
    `named` are the claims and templates that its entries name. `disruption` and `unschedulable` are
    the reasons in its conditions, empty when the conditions do not apply.
    """

    node: str
    phase: str
    deleting: bool
    claims: tuple[str, ...] | None
    named: tuple[str, ...]
    disruption: str
    unschedulable: str


class SeenClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim: `held` are the devices of its allocation, None when it has no allocation.

    `reports` are the conditions that drivers report of its devices, each as text.
    """

    deleting: bool
    held: tuple[Held, ...] | None
    consumers: tuple[dra.Consumer, ...]
    reports: tuple[str, ...] = ()


def seen_pod(parts: RawPod) -> SeenPod:
    """The fields of a pod that folds read."""
    spec, status = parts.spec, parts.status
    conditions, extended = status.conditions, status.extended_resource_claim_status
    claims: tuple[str, ...] | None = None
    named: tuple[str, ...] = ()
    if spec.resource_claims:
        named, claims = _claims_in(
            bytes(spec.resource_claims), bytes(status.resource_claim_statuses)
        )
    if extended:
        name = _extended(extended).resource_claim_name
        claims = tuple(sorted({*(claims or ()), name})) if name else claims
    disruption, unschedulable = _reasons_in(bytes(conditions)) if conditions else ("", "")
    return SeenPod(
        intern(spec.node_name),
        intern(status.phase),
        parts.metadata.deletion_timestamp != "",
        claims,
        named,
        disruption,
        unschedulable,
    )


def seen_claim(parts: RawClaim) -> SeenClaim:
    """The fields of a claim that folds read."""
    status = parts.status
    allocation, reserved = status.allocation, status.reserved_for
    return SeenClaim(
        parts.metadata.deletion_timestamp != "",
        _held_in(bytes(allocation)) if allocation else None,
        _consumers_in(bytes(reserved)) if reserved else (),
        _reports_in(bytes(status.devices)) if status.devices else (),
    )


def is_allocated(parts: RawClaim) -> bool:
    """Whether a claim has an allocation."""
    return bytes(parts.status.allocation).startswith(b"{")


def allocation_of(parts: RawClaim) -> JsonObject:
    """The allocation of an allocated claim, as stored."""
    tree: JsonObject = msgspec.json.decode(parts.status.allocation)
    return tree


def pods_of(parts: RawClaim) -> list[str]:
    """The uids of those for which a claim is reserved."""
    reserved = bytes(parts.status.reserved_for)
    return [each.uid for each in _consumers_in(reserved)] if reserved else []


PARTS_MAX = 4_096
"""Parts of one sort whose outlines are cached."""


@lru_cache(maxsize=PARTS_MAX)
def _claims_in(part: bytes, statuses: bytes) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The claims or templates that a pod's entries name, and the sorted names of its claims.

    When an entry has several statuses, the last one counts.
    """
    entries = _entries(part)
    if not entries:
        return (), None
    named = tuple(
        entry.resource_claim_name or "from " + entry.resource_claim_template_name
        for entry in entries
    )
    made = {each.name: each.resource_claim_name for each in _entries(statuses)} if statuses else {}
    names = {entry.resource_claim_name or made.get(entry.name, "") for entry in entries}
    return named, tuple(sorted(names - {""}))


@lru_cache(maxsize=PARTS_MAX)
def _reasons_in(conditions: bytes) -> tuple[str, str]:
    """The reasons why a pod is disrupted and why it is not scheduled; empty if it is not."""
    disruption = unschedulable = ""
    for condition in _conditions(conditions):
        if condition.type == condition_types.DISRUPTION_TARGET and condition.status == "True":
            disruption = f"{condition.reason}: {condition.message}"
        elif condition.type == condition_types.POD_SCHEDULED and condition.status == "False":
            unschedulable = f"{condition.reason}: {condition.message}"
    return disruption, unschedulable


@lru_cache(maxsize=PARTS_MAX)
def _held_in(allocation: bytes) -> tuple[Held, ...] | None:
    """The devices of an allocation; None when the bytes are not an object."""
    if not allocation.startswith(b"{"):
        return None
    return tuple(
        msgspec.structs.replace(
            held,
            driver=DriverName(intern(held.driver)),
            pool=PoolName(intern(held.pool)),
            device=DeviceName(intern(held.device)),
        )
        for held in _held_allocation(allocation).devices.results
    )


_entries = records.of_list_bytes(PodClaimOutline)


@lru_cache(maxsize=PARTS_MAX)
def _reports_in(devices: bytes) -> tuple[str, ...]:
    """The conditions of devices, such as `d/p/x: Ready is False (NoPower: the rack is off)`."""
    reports = []
    for status in _device_statuses(devices):
        for one in status.conditions:
            why = ": ".join(part for part in (one.reason, one.message) if part)
            text = f"{'/'.join(status.id)}: {one.type} is {one.status}"
            reports.append(f"{text} ({why})" if why else text)
    return tuple(reports)


_extended = records.of_bytes(PodClaimOutline)
_device_statuses = records.of_list_bytes(dra.DeviceStatus)
_conditions = records.of_list_bytes(_ConditionText)
_consumers_in = lru_cache(maxsize=PARTS_MAX)(records.of_list_bytes(dra.Consumer))
_held_allocation = records.of_bytes(_HeldAllocation)


outline = records.of_bytes(Outline)
pod = records.of_bytes(PodOutline)
claim = records.of_bytes(ClaimOutline)
slice = records.of_bytes(SliceOutline)  # noqa: A001 (read as `outlines.slice`; Kubernetes' own word)
rule = records.of_bytes(RuleOutline)
node = records.of_bytes(NodeOutline)
event_object = records.of_bytes(core.EventObject)
decision = records.of_bytes(DecisionOutline)


_OWNERS = b'"ownerReferences"'


def names_owners(body: bytes) -> bool:
    """False if an object has no owner; most have none, and nothing is decoded to see that."""
    return _OWNERS in body


def owner_uids(body: bytes) -> tuple[Uid, ...]:
    """The uids of an object's owners, each once, in order."""
    if not names_owners(body):
        return ()
    owners = outline(body).metadata.owner_references
    return tuple(dict.fromkeys(owner.uid for owner in owners))
