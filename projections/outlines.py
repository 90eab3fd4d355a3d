"""The few fields that folds look at, read from an object's bytes without decoding the rest.

Not a view itself. Decoding a whole object costs three to five times as much as reading its
outline, and most events touch nothing else. An object that is odd (a number where a text belongs)
is read leniently: odd parts count as absent, so folding is total. Several views ask for the outline
of the same event one after the other; the last one is remembered.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from app.domain.values.fields import core, dra, meta, records
from app.domain.values.fields.records import Record
from app.domain.values.json_tree import JsonObject

_T = TypeVar("_T")


class Metadata(Record, frozen=True):
    """Of any object."""

    generation: int = 0
    deletion_timestamp: str = ""
    owner_references: tuple[meta.Owner, ...] = ()


class Outline(Record, frozen=True):
    """Of any object."""

    metadata: Metadata = Metadata()


class Taint(Record, frozen=True):
    """Of a device or a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class PodClaim(Record, frozen=True):
    """An entry of a pod's `spec.resourceClaims` or `status.resourceClaimStatuses`."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Record, frozen=True):
    """Of a pod."""

    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()


class PodStatus(Record, frozen=True):
    """Of a pod."""

    phase: str = ""
    conditions: tuple[meta.Condition, ...] = ()
    resource_claim_statuses: tuple[PodClaim, ...] = ()
    extended_resource_claim_status: PodClaim = PodClaim()


class Pod(Record, frozen=True):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Results(Record, frozen=True):
    """The devices of an allocation."""

    results: tuple[dra.DeviceResult, ...] = ()


class Allocation(Record, frozen=True):
    """An allocation."""

    devices: Results = Results()


class ClaimStatus(Record, frozen=True):
    """Of a claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[dra.Consumer, ...] = ()


class Claim(Record, frozen=True):
    """A claim."""

    metadata: Metadata = Metadata()
    status: ClaimStatus = ClaimStatus()


class Device(Record, frozen=True):
    """Of a slice."""

    name: str = ""
    taints: tuple[JsonObject, ...] = ()


class SliceSpec(Record, frozen=True):
    """Of a slice."""

    driver: str = ""
    node_name: str = ""
    pool: dra.Pool = dra.Pool()
    devices: tuple[Device, ...] = ()


class Slice(Record, frozen=True):
    """A slice."""

    metadata: Metadata = Metadata()
    spec: SliceSpec = SliceSpec()


class Selector(Record, frozen=True):
    """Of a rule."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class RuleSpec(Record, frozen=True):
    """Of a rule."""

    device_selector: Selector | None = None
    taint: Taint = Taint()


class Conditions(Record, frozen=True):
    """A status of which only the conditions matter."""

    conditions: tuple[meta.Condition, ...] = ()


class Rule(Record, frozen=True):
    """A DeviceTaintRule."""

    spec: RuleSpec = RuleSpec()
    status: Conditions = Conditions()


class NodeSpec(Record, frozen=True):
    """Of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Node(Record, frozen=True):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: Conditions = Conditions()


class Summary(Record, frozen=True):
    """Of a decision."""

    message: str = ""


class Decision(Record, frozen=True):
    """The body of a DecisionRecorded event."""

    controller: str = ""
    resource: str = ""
    outcome: str = ""
    summary: Summary = Summary()


def _reader(form: type[_T]) -> Callable[[bytes], _T]:
    return lru_cache(maxsize=1)(records.of_bytes(form))


outline = _reader(Outline)
pod = _reader(Pod)
claim = _reader(Claim)
slice = _reader(Slice)  # noqa: A001 (read as `outlines.slice`; Kubernetes' own word)
rule = _reader(Rule)
node = _reader(Node)
event_object = _reader(core.EventObject)
decision = _reader(Decision)


def owner_uids(body: bytes) -> tuple[str, ...]:
    """The uids of an object's owners, each once, in order."""
    if b'"ownerReferences"' not in body:
        return ()
    owners = outline(body).metadata.owner_references
    return tuple(dict.fromkeys(owner.uid for owner in owners))
