"""Readers of the few fields that the rules use, from the bytes of an object.

Reading never fails: a value of the wrong type (a number instead of a text) counts as absent, and in
a list the item does. Pods and claims arrive split into raw parts (`app.domain.log.raw_parts`). This
split is all that the judge shares with the folds: it reads the meaning of the parts itself. Parts
that seldom change stay bytes until they differ from the previous ones.
"""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw

from app.domain.log import raw_parts
from app.domain.values.json_tree import JsonObject

_T = TypeVar("_T")


NOTHING = raw_parts.ABSENT
"""The bytes of a part that is absent."""


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an object; an absent field has its default."""


class Result(_Part, frozen=True, gc=False, rename="camel"):
    """A device of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: dict[str, Any] = {}
    tolerations: Raw = NOTHING

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and name of the device."""
        return self.driver, self.pool, self.device


class Report(_Part, frozen=True, gc=False, rename="camel"):
    """An entry of `status.devices`: what a driver reports about a device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = msgspec.field(default="", name="shareID")

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and name of the device."""
        return self.driver, self.pool, self.device


class Results(_Part, frozen=True, gc=False, rename="camel"):
    """The devices of an allocation."""

    results: tuple[Result, ...] = ()


class Allocation(_Part, frozen=True, gc=False, rename="camel"):
    """An allocation; its node selector is kept as bytes."""

    devices: Results = Results()
    node_selector: Raw = NOTHING


class Consumer(_Part, frozen=True, gc=False, rename="camel"):
    """An entry of `status.reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class PodClaim(_Part, frozen=True, gc=False, rename="camel"):
    """An entry of `spec.resourceClaims` or `status.resourceClaimStatuses`."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class Taint(_Part, frozen=True, gc=False, rename="camel"):
    """A taint of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Amount(_Part, frozen=True, gc=False, rename="camel"):
    """A counter or a capacity."""

    value: Any = None


class Counters(_Part, frozen=True, gc=False, rename="camel"):
    """A counter set, or the amounts that a device draws from one."""

    name: str = ""
    counter_set: str = ""
    counters: dict[str, Amount] = {}


class Device(_Part, frozen=True, gc=False, rename="camel"):
    """A device of a slice; its attributes are read on demand."""

    name: str = ""
    allow_multiple_allocations: bool = False
    taints: tuple[Taint, ...] = ()
    consumes_counters: tuple[Counters, ...] = ()
    capacity: dict[str, Any] = {}


class PoolName(_Part, frozen=True, gc=False, rename="camel"):
    """The pool of a slice."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(_Part, frozen=True, gc=False, rename="camel"):
    """The spec of a slice."""

    driver: str = ""
    node_name: str = ""
    all_nodes: bool = False
    node_selector: dict[str, Any] | None = None
    per_device_node_selection: bool = False
    pool: PoolName = PoolName()
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[Counters, ...] = ()


class Slice(_Part, frozen=True, gc=False, rename="camel"):
    """A ResourceSlice."""

    spec: SliceSpec = SliceSpec()


class _Timed(_Part, frozen=True, gc=False, rename="camel"):
    """A taint, of which the time matters."""

    key: str = ""
    time_added: str = ""


class _Tainted(_Part, frozen=True, gc=False, rename="camel"):
    """A device with its taints."""

    name: str = ""
    taints: tuple[_Timed, ...] = ()


class _Tainting(_Part, frozen=True, gc=False, rename="camel"):
    """The taint of a rule, or those of the devices of a slice."""

    taint: _Timed | None = None
    devices: tuple[_Tainted, ...] = ()


class Tainting(_Part, frozen=True, gc=False, rename="camel"):
    """A DeviceTaintRule or a ResourceSlice with its taints."""

    spec: _Tainting = _Tainting()


class _Counted(_Part, frozen=True, gc=False, rename="camel"):
    """The metadata of an object of devices."""

    generation: int = 0
    creation_timestamp: str = ""


class Specified(_Part, frozen=True, gc=False, rename="camel"):
    """An object of devices with its generation; its spec is kept as bytes."""

    metadata: _Counted = _Counted()
    spec: Raw = NOTHING


class Template(_Part, frozen=True, gc=False, rename="camel"):
    """A ResourceClaimTemplate; its spec is kept as bytes."""

    spec: Raw = NOTHING


class _Labels(_Part, frozen=True, gc=False, rename="camel"):
    """The metadata of a node."""

    labels: dict[str, Any] = {}


class Labelled(_Part, frozen=True, gc=False, rename="camel"):
    """A node, of which the labels matter."""

    metadata: _Labels = _Labels()


class _Dated(_Labels, frozen=True, gc=False, rename="camel"):
    """The metadata of a namespace."""

    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class _Phased(_Part, frozen=True, gc=False, rename="camel"):
    """The status of a namespace."""

    phase: str = ""


class Namespace(_Part, frozen=True, gc=False, rename="camel"):
    """A namespace."""

    metadata: _Dated = _Dated()
    status: _Phased = _Phased()


class EndingMetadata(_Part, frozen=True, gc=False, rename="camel"):
    """The metadata of an object that is being deleted."""

    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None


class Ending(_Part, frozen=True, gc=False, rename="camel"):
    """An object that is being deleted."""

    metadata: EndingMetadata = EndingMetadata()


class Resources(_Part, frozen=True, gc=False, rename="camel"):
    """The amounts of resources that a container requests, and its limits."""

    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}


class Container(_Part, frozen=True, gc=False, rename="camel"):
    """A container of a pod, of which the resources matter."""

    resources: Resources = Resources()


class _Contained(_Part, frozen=True, gc=False, rename="camel"):
    """The containers of a new pod, and its priority."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: dict[str, Any] = {}
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""


class _Classed(_Part, frozen=True, gc=False, rename="camel"):
    """The status of a new pod."""

    qos_class: str = ""


class _Annotated(_Part, frozen=True, gc=False, rename="camel"):
    """The metadata of a new pod."""

    annotations: dict[str, Any] = {}


class NewPod(_Part, frozen=True, gc=False, rename="camel"):
    """A new pod: what its class of quality of service and its priority follow from."""

    metadata: _Annotated = _Annotated()
    spec: _Contained = _Contained()
    status: _Classed = _Classed()


def reader(form: type[_T]) -> Callable[[bytes], _T]:
    """A function that reads objects of that form."""
    decode = msgspec.json.Decoder(form).decode

    def read(body: bytes) -> _T:
        try:
            return decode(body)
        except msgspec.ValidationError:
            return cast(_T, _read(form, msgspec.json.decode(body), form()))

    return read


template = reader(Template)
specified = reader(Specified)
labelled = reader(Labelled)
namespace = reader(Namespace)
ending = reader(Ending)
new_pod = reader(NewPod)
tainting = reader(Tainting)
slice_ = reader(Slice)
_allocation = msgspec.json.Decoder(Allocation).decode
_decode = msgspec.json.Decoder().decode


def allocation(part: Raw) -> Allocation | None:
    """The allocation of a claim; None when there is none."""
    if not part:
        return None
    try:
        return _allocation(part)
    except msgspec.ValidationError:
        tree = value(part)
        return _read(Allocation, tree, None) if isinstance(tree, dict) else None


def is_same_allocation(one: Allocation | None, other: Allocation | None) -> bool:
    """Whether two allocations give the same devices on the same nodes.

    Tolerations are not compared, because they are part of the request.
    """
    if one is None or other is None:
        return one is other
    return _given(one) == _given(other) and (
        one.node_selector == other.node_selector
        or bool(value(one.node_selector) == value(other.node_selector))
    )


def _given(allocation: Allocation) -> list[Result]:
    return [
        msgspec.structs.replace(each, tolerations=NOTHING) for each in allocation.devices.results
    ]


def _list_reader(form: type[_T]) -> Callable[[Raw], tuple[_T, ...]]:
    """A function that reads lists of that form; of invalid lists, the items that are objects."""
    decode = msgspec.json.Decoder(tuple[form, ...]).decode  # type: ignore[valid-type]  # a form made here

    def read(part: Raw) -> tuple[_T, ...]:
        if not part:
            return ()
        try:
            return cast("tuple[_T, ...]", decode(part))
        except msgspec.ValidationError:
            return tuple(_read(form, each, form()) for each in objects(_decode(part)))

    return read


consumers = _list_reader(Consumer)
reports = _list_reader(Report)
pod_claims = _list_reader(PodClaim)


def value(part: Raw | bytes) -> Any:
    """The decoded value of a part of an object; None for an absent part."""
    return _decode(part) if part else None


def get(value: Any, *path: str) -> Any:
    """The value at the end of a path of names; None when there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Any, name: str) -> str:
    """A text field; empty when the field is not a text."""
    value_text = value.get(name) if isinstance(value, dict) else None
    return value_text if isinstance(value_text, str) else ""


def objects(value: Any) -> list[JsonObject]:
    """The objects in a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The texts in a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def meaning(value: Any) -> Any:
    """The value without the parts that a writer may omit: null and empty ones."""
    if isinstance(value, dict):
        return {
            name: part
            for name, each in value.items()
            if (part := meaning(each)) is not None and part != {} and part != []
        }
    return [meaning(each) for each in value] if isinstance(value, list) else value


def means_same(one: Raw, other: Raw) -> bool:
    """Whether two parts of objects are equal apart from what a writer may omit."""
    return one == other or bool(meaning({"": value(one)}) == meaning({"": value(other)}))


def may_mean_same(one: Raw, other: Raw) -> bool:
    """Whether two parts of objects are equal apart from what one of two servers may not know."""
    parts = (meaning({"": value(part)}) for part in (one, other))
    return one == other or not contradicts(*parts, is_item=True)


def contradicts(one: Any, other: Any, *, is_item: bool = False) -> bool:
    """Whether a value that both have differs, or one lacks a part that every release has.

    In the items of a list, a server of another release may add a field by default or not know it.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if not is_item and one.keys() != other.keys():
            return True
        shared = one.keys() & other.keys()
        return any(contradicts(one[name], other[name], is_item=is_item) for name in shared)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) != len(other) or any(
            contradicts(*pair, is_item=True) for pair in zip(one, other, strict=True)
        )
    return bool(one != other)


def _read(form: Any, value: Any, default: Any) -> Any:
    """The value, reduced to what matches the form."""
    if form is Any:
        return value
    if form is Raw:
        return Raw(msgspec.json.encode(value))
    origin = get_origin(form)
    if origin in (Union, UnionType):
        (inner,) = (each for each in get_args(form) if each is not NoneType)
        return _read(inner, value, default)
    if origin is tuple:
        inner = get_args(form)[0]
        items = value if isinstance(value, list) else []
        return tuple(_read(inner, item, None) for item in items if _has_form(inner, item))
    if origin is dict:
        inner = get_args(form)[1]
        pairs = value.items() if isinstance(value, dict) else ()
        return {name: _read(inner, item, None) for name, item in pairs if _has_form(inner, item)}
    if issubclass(form, msgspec.Struct):
        if not isinstance(value, dict):
            return default
        return form(
            **{
                field.name: _read(field.type, value[field.encode_name], field.default)
                for field in msgspec.structs.fields(form)
                if field.encode_name in value
            }
        )
    return value if _has_form(form, value) else default


def _has_form(form: Any, value: Any) -> bool:
    if form is Any or form is Raw:
        return True
    if isinstance(form, type) and issubclass(form, msgspec.Struct):
        return isinstance(value, dict)
    return isinstance(value, form) and (form is bool or not isinstance(value, bool))
