"""The few fields that folds look at, read from an object's bytes without decoding the rest.

Not a view itself. Decoding a whole object costs three to five times as much as reading its
outline, and most events touch nothing else. An object that is odd (a number where a text belongs)
is read leniently: odd parts count as absent, so folding is total. Several views ask for the outline
of the same event one after the other; the last one is remembered.
"""

from collections.abc import Callable
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from app.domain.values.json_tree import JsonObject


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an object; what is absent has its default."""


class Owner(_Part, frozen=True, gc=False, rename="camel"):
    """An owner reference."""

    uid: str = ""
    kind: str = ""
    name: str = ""


class Metadata(_Part, frozen=True, gc=False, rename="camel"):
    """Of any object."""

    generation: int = 0
    deletion_timestamp: str = ""
    owner_references: tuple[Owner, ...] = ()


class Outline(_Part, frozen=True, gc=False, rename="camel"):
    """Of any object."""

    metadata: Metadata = Metadata()


class Condition(_Part, frozen=True, gc=False, rename="camel"):
    """A condition of any object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class Taint(_Part, frozen=True, gc=False, rename="camel"):
    """Of a device or a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class PodClaim(_Part, frozen=True, gc=False, rename="camel"):
    """An entry of a pod's `spec.resourceClaims` or `status.resourceClaimStatuses`."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(_Part, frozen=True, gc=False, rename="camel"):
    """Of a pod."""

    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()


class PodStatus(_Part, frozen=True, gc=False, rename="camel"):
    """Of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodClaim, ...] = ()
    extended_resource_claim_status: PodClaim = PodClaim()


class Pod(_Part, frozen=True, gc=False, rename="camel"):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Result(_Part, frozen=True, gc=False, rename="camel"):
    """One device share of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[JsonObject, ...] = ()


class Results(_Part, frozen=True, gc=False, rename="camel"):
    """The devices of an allocation."""

    results: tuple[Result, ...] = ()


class Allocation(_Part, frozen=True, gc=False, rename="camel"):
    """An allocation."""

    devices: Results = Results()


class Consumer(_Part, frozen=True, gc=False, rename="camel"):
    """An entry of `status.reservedFor`."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ClaimStatus(_Part, frozen=True, gc=False, rename="camel"):
    """Of a claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class Claim(_Part, frozen=True, gc=False, rename="camel"):
    """A claim."""

    metadata: Metadata = Metadata()
    status: ClaimStatus = ClaimStatus()


class Pool(_Part, frozen=True, gc=False, rename="camel"):
    """Of a slice."""

    name: str = ""
    generation: int = 0


class Device(_Part, frozen=True, gc=False, rename="camel"):
    """Of a slice."""

    name: str = ""
    taints: tuple[JsonObject, ...] = ()


class SliceSpec(_Part, frozen=True, gc=False, rename="camel"):
    """Of a slice."""

    driver: str = ""
    pool: Pool = Pool()
    devices: tuple[Device, ...] = ()


class Slice(_Part, frozen=True, gc=False, rename="camel"):
    """A slice."""

    metadata: Metadata = Metadata()
    spec: SliceSpec = SliceSpec()


class Selector(_Part, frozen=True, gc=False, rename="camel"):
    """Of a rule."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class RuleSpec(_Part, frozen=True, gc=False, rename="camel"):
    """Of a rule."""

    device_selector: Selector | None = None
    taint: Taint = Taint()


class Conditions(_Part, frozen=True, gc=False, rename="camel"):
    """A status of which only the conditions matter."""

    conditions: tuple[Condition, ...] = ()


class Rule(_Part, frozen=True, gc=False, rename="camel"):
    """A DeviceTaintRule."""

    spec: RuleSpec = RuleSpec()
    status: Conditions = Conditions()


class NodeSpec(_Part, frozen=True, gc=False, rename="camel"):
    """Of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class Node(_Part, frozen=True, gc=False, rename="camel"):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: Conditions = Conditions()


class Reference(_Part, frozen=True, gc=False, rename="camel"):
    """What a Kubernetes Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class EventObject(_Part, frozen=True, gc=False, rename="camel"):
    """A Kubernetes Event of either group."""

    type: str = ""
    reason: str = ""
    message: str = ""
    note: str = ""
    involved_object: Reference = Reference()
    regarding: Reference = Reference()


class Summary(_Part, frozen=True, gc=False, rename="camel"):
    """Of a decision."""

    message: str = ""


class Decision(_Part, frozen=True, gc=False, rename="camel"):
    """The body of a DecisionRecorded event."""

    controller: str = ""
    resource: str = ""
    outcome: str = ""
    summary: Summary = Summary()


_T = TypeVar("_T")


def _reader(form: type[_T]) -> Callable[[bytes], _T]:
    decode = msgspec.json.Decoder(form).decode

    @lru_cache(maxsize=1)
    def read(body: bytes) -> _T:
        try:
            return decode(body)
        except msgspec.ValidationError:
            found: _T = _lenient(form, msgspec.json.decode(body), form())
            return found

    return read


def _lenient(form: Any, value: Any, default: Any) -> Any:
    """`value` as `form`; what does not fit is `default`, below an object field by field."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError:
        pass
    if get_origin(form) in (Union, UnionType):
        form = next(part for part in get_args(form) if part is not NoneType)
    if isinstance(form, type) and issubclass(form, msgspec.Struct):
        if not isinstance(value, dict):
            return default
        fields = {field.name: field for field in msgspec.structs.fields(form)}
        parts = {
            name: _lenient(field.type, value[field.encode_name], field.default)
            for name, field in fields.items()
            if field.encode_name in value
        }
        return form(**parts)
    if get_origin(form) is tuple and isinstance(value, list):
        item = get_args(form)[0]
        if get_origin(item) is dict:
            return tuple(found for found in value if isinstance(found, dict))
        return tuple(_lenient(item, found, None) for found in value if isinstance(found, dict))
    return default


outline = _reader(Outline)
pod = _reader(Pod)
claim = _reader(Claim)
slice = _reader(Slice)  # noqa: A001 (read as `outlines.slice`; Kubernetes' own word)
rule = _reader(Rule)
node = _reader(Node)
event_object = _reader(EventObject)
decision = _reader(Decision)


def owner_uids(body: bytes) -> tuple[str, ...]:
    """The uids of an object's owners, each once, in order."""
    if b'"ownerReferences"' not in body:
        return ()
    owners = outline(body).metadata.owner_references
    return tuple(dict.fromkeys(owner.uid for owner in owners))
