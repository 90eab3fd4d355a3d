"""Values that cel-python lacks: optional values, domain maps, errors that count as answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from celpy import celtypes
from celpy.evaluation import CELEvalError

from app.adapters.second_opinion import amounts, versions


class Failed(Exception):
    """The kind of errors that the specification requires; they count as an answer."""


class Unsupported(Exception):
    """The kind of errors for features that this evaluator lacks; they are no answer."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional value."""

    value: Any = None
    present: bool = True


NONE: Final = Maybe(present=False)

FAILURES: Final = frozenset((Failed, KeyError, IndexError, ZeroDivisionError))
"""Kinds of errors that count as an answer."""


class Domains(celtypes.MapType):
    """A map of domains: a missing domain is an empty map, but `in` reports it as missing."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key not in self:
            return celtypes.MapType()
        return super().__getitem__(key)


def failed(text: str) -> CELEvalError:
    """An error that counts as an answer."""
    return CELEvalError(text, Failed, (text,))


def unsupported(text: str) -> CELEvalError:
    """An error for a feature that cannot be evaluated."""
    return CELEvalError(text, Unsupported, (text,))


def device_of(
    driver: str,
    attributes: Mapping[str, Any],
    capacity: Mapping[str, Any],
    allow_multiple_allocations: bool,
) -> celtypes.MapType:
    """The variable `device`. Raises Failed for a device that cannot be converted.

    Raises Unsupported for values that this package does not support. Parity: allocator.md 11.2.
    """
    return celtypes.MapType(
        {
            celtypes.StringType("driver"): celtypes.StringType(driver),
            celtypes.StringType("allowMultipleAllocations"): celtypes.BoolType(
                allow_multiple_allocations
            ),
            celtypes.StringType("attributes"): _by_domain(driver, attributes, _attribute),
            celtypes.StringType("capacity"): _by_domain(driver, capacity, _capacity),
        }
    )


def _by_domain(driver: str, entries: Mapping[str, Any], convert: Any) -> Domains:
    domains = Domains()
    # Qualified names come last, because they take precedence.
    for key in sorted(entries, key=lambda key: "/" in key):
        domain, slash, name = key.partition("/")
        if not slash:
            domain, name = driver, key
        place = celtypes.StringType(domain)
        if place not in domains:
            domains[place] = celtypes.MapType()
        domains[place][celtypes.StringType(name)] = convert(key, entries[key])
    return domains


_KINDS: Final = {
    "int": (int, celtypes.IntType),
    "bool": (bool, celtypes.BoolType),
    "string": (str, celtypes.StringType),
    "version": (str, versions.parse),
}


def _attribute(key: str, raw: Mapping[str, Any]) -> Any:
    for kind, (native, make) in _KINDS.items():
        listed = raw.get(f"{kind}s")
        if isinstance(listed, list | tuple) and all(type(item) is native for item in listed):
            return celtypes.ListType([_made(key, make, item) for item in listed])
    for kind, (native, make) in _KINDS.items():
        value = raw.get(kind)
        if type(value) is native:
            return _made(key, make, value)
    raise Failed(f"attribute {key} has no value")


def _made(key: str, make: Any, value: Any) -> Any:
    try:
        return make(value)
    except ValueError as problem:
        raise Failed(f"attribute {key} cannot be read") from problem


def _capacity(key: str, raw: Mapping[str, Any]) -> amounts.Amount:
    value = raw.get("value")
    try:
        return amounts.parse(value.strip() if isinstance(value, str) else str(value))
    except amounts.UnreadableAmount as problem:
        raise Failed(f"capacity {key} cannot be read") from problem
    except amounts.UnusualAmount as problem:
        raise Unsupported(str(problem)) from problem
