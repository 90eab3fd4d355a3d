"""The device that an expression is evaluated on, and its CEL values.

Parity: allocator.md 11.2. All attributes and capacities are converted before any evaluation, so one
that cannot be converted fails every expression on the device. Maps keep the order of entries in the
object; loops visit them in that order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from app.domain.cel.values.value import (
    CelError,
    DefaultingMap,
    QuantityValue,
    Value,
    register_type,
)
from app.domain.values import json_tree, quantity, semver
from app.domain.values.json_tree import EMPTY, JsonView
from app.domain.values.quantity import QuantityError
from app.domain.values.semver import SemverError


class DeviceValue:
    """The variable `device` at run time. `failure` is set if the conversion failed."""

    __slots__ = ("allow_multiple_allocations", "attributes", "capacity", "driver", "failure")

    def __init__(self, device: "DeviceInput") -> None:
        self.driver = device.driver
        self.allow_multiple_allocations = device.allow_multiple_allocations
        self.attributes = DefaultingMap()
        self.capacity = DefaultingMap()
        self.failure: CelError | None = None
        for key, raw in device.attributes.items():
            value = _attribute(key, raw)
            if isinstance(value, CelError):
                self.failure = value
                return
            _put(self.attributes, device.driver, key, value)
        for key, raw in device.capacity.items():
            amount = _amount(key, raw)
            if isinstance(amount, CelError):
                self.failure = amount
                return
            _put(self.capacity, device.driver, key, amount)

    def field(self, name: str) -> Value:
        """A field by its name in expressions; the checker ensures that the name is known."""
        if name == "attributes":
            return self.attributes
        if name == "capacity":
            return self.capacity
        if name == "driver":
            return self.driver
        return self.allow_multiple_allocations


register_type(DeviceValue, name="kubernetes.DRADevice", go_type="*types.dynamicMap")

FIELDS: Final = frozenset({"attributes", "capacity", "driver", "allowMultipleAllocations"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInput:
    """The parts of a device that expressions can read, as API objects.

    `attributes` holds values such as `{"int": 1}`, `capacity` such as `{"value": "1Gi"}`, both by
    name with or without domain. The CEL values are made once, for the first expression that
    needs them; the mappings must not change afterwards.
    """

    driver: str
    attributes: Mapping[str, JsonView] = field(default_factory=lambda: EMPTY)
    capacity: Mapping[str, JsonView] = field(default_factory=lambda: EMPTY)
    allow_multiple_allocations: bool = False
    _value: DeviceValue | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def value(self) -> DeviceValue:
        """The variable `device` for this device."""
        value = self._value
        if value is None:
            value = DeviceValue(self)
            object.__setattr__(self, "_value", value)
        return value


def _put(domains: DefaultingMap, driver: str, key: str, value: Value) -> None:
    """Stores a value by domain and name; a name with an explicit domain has priority."""
    domain, separator, name = key.partition("/")
    if not separator:
        domain, name = driver, key
    inner = domains.get(domain)
    if inner is None:
        inner = domains[domain] = {}
    assert isinstance(inner, dict)
    if separator or name not in inner:
        inner[name] = value


_LISTS: Final = (("ints", int), ("bools", bool), ("strings", str))
_SCALARS: Final = (("int", int), ("bool", bool), ("string", str))


def _attribute(key: str, raw: object) -> Value:
    """The CEL value of an attribute: the first kind of value that is present."""
    if not isinstance(raw, Mapping):
        return CelError(f"attribute {key}: unsupported attribute value")
    for name, kind in _LISTS:
        items = raw.get(name)
        if items is not None and _is_list_of(items, kind):
            return tuple(items)
    try:
        versions = raw.get("versions")
        if versions is not None and _is_list_of(versions, str):
            return tuple(semver.parse(text) for text in versions)
        for name, kind in _SCALARS:
            value: Value = raw.get(name)
            if value.__class__ is kind:
                return value
        version = raw.get("version")
        if isinstance(version, str):
            return semver.parse(version)
    except SemverError as error:
        return CelError(f"attribute {key}: parse semantic version: {error}")
    return CelError(f"attribute {key}: unsupported attribute value")


_PLAIN: Final = {"int": int, "bool": bool, "string": str}


def is_plain(attributes: Mapping[str, JsonView]) -> bool:
    """Whether every attribute is exactly one scalar, so its conversion cannot fail.

    This check is much cheaper than a conversion. False does not mean that a conversion fails.
    """
    for raw in attributes.values():
        if raw.__class__ is not dict or len(raw) != 1:
            return False
        for name, value in raw.items():
            if _PLAIN.get(name) is not value.__class__ and not (
                name == "version" and value.__class__ is str and _is_version(value)
            ):
                return False
    return True


@lru_cache(maxsize=4_096)
def _is_version(text: str) -> bool:
    try:
        semver.parse(text)
    except SemverError:
        return False
    return True


def _is_list_of(items: object, kind: type) -> bool:
    return isinstance(items, list | tuple) and all(item.__class__ is kind for item in items)


def _amount(key: str, raw: JsonView) -> QuantityValue | CelError:
    try:
        return QuantityValue(quantity.from_json(json_tree.get(raw, "value")))
    except QuantityError as error:
        return CelError(f"capacity {key}: {error}")
