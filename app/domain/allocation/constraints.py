"""The state of constraints during a search, which decides whether a further device is accepted.

Parity: allocator.md 6. The methods take the index of a device; the attribute values are collected
beforehand (`facts`). `add` may refuse and then has no effect; `remove` undoes an accepted `add`,
except for the traces of quirks q5 and q6.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, overload

from app.domain.allocation.quirks import Quirks
from app.domain.allocation.requests import Constraint
from app.domain.devices.model import Device
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

_SCALARS = ("string", "int", "bool", "version")
_CLASSES = {"string": str, "int": int, "bool": bool, "version": str}
_SET_ORDER = (
    ("ints", "int"),
    ("bools", "bool"),
    ("strings", "string"),
    ("versions", "version"),
)
_SCALAR_SET_ORDER = ("int", "bool", "string", "version")

ValueSet: TypeAlias = tuple[str, frozenset[object]]
"""The type of the values, and the values; the set is never empty."""

Saved: TypeAlias = tuple[object, ...]
"""The saved state of a constraint, for `restore` of the same constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One attribute of one device.

    `scalars` are the scalar fields that are set, in the order in which they are inspected;
    `values` is the attribute as a set, or None when its type is unknown.
    """

    scalars: tuple[tuple[str, object], ...]
    values: ValueSet | None

    def shown(self) -> object:
        """The value for messages: a scalar, a list, or None."""
        if self.scalars:
            return self.scalars[0][1]
        return _in_order(self.values[1]) if self.values else None


def _in_order(values: frozenset[object]) -> list[object]:
    """The values of one type: numbers by their size, texts by their characters."""
    return sorted(values, key=lambda each: (each if isinstance(each, int) else 0, str(each)))


def lookup(device: Device, constraint: Constraint) -> JsonView | None:
    """The attribute that the constraint names: by its exact key, else by the driver's short key."""
    attribute = device.attributes.get(constraint.attribute)
    if attribute is None and constraint.domain == device.id[0]:
        attribute = device.attributes.get(constraint.identifier)
    return attribute if isinstance(attribute, Mapping) else None


class ConstraintFacts(Sequence[Facts | None]):
    """The facts of devices for one constraint, each read on first use.

    A search that succeeds at once looks at few devices. Equal scalars share their facts.
    """

    __slots__ = ("_constraint", "_devices", "_known", "_shared")

    def __init__(self, devices: Sequence[Device], constraint: Constraint) -> None:
        self._devices = devices
        self._constraint = constraint
        self._known: dict[int, Facts | None] = {}
        self._shared: dict[tuple[str, object], Facts] = {}

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Facts | None]:
        return map(self._at, range(len(self._devices)))

    @overload
    def __getitem__(self, index: int) -> Facts | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Facts | None]: ...
    def __getitem__(self, index: int | slice) -> Facts | Sequence[Facts | None] | None:
        if isinstance(index, slice):
            return [self._at(number) for number in range(len(self._devices))[index]]
        return self._at(index)

    def _at(self, index: int) -> Facts | None:
        if index in self._known:
            return self._known[index]
        attribute = lookup(self._devices[index], self._constraint)
        facts = None if attribute is None else self._facts(attribute)
        self._known[index] = facts
        return facts

    def _facts(self, attribute: JsonView) -> Facts:
        if len(attribute) != 1:
            return _facts(attribute)
        ((kind, value),) = attribute.items()
        if value.__class__ is not _CLASSES.get(kind):
            return _facts(attribute)
        # Each kind has one Python class, so that equal values of a kind are interchangeable.
        facts = self._shared.get((kind, value))
        if facts is None:
            facts = self._shared[kind, value] = _facts(attribute)
        return facts


def _facts(attribute: JsonView) -> Facts:
    scalars = tuple(
        (kind, attribute[kind])
        for kind in _SCALARS
        if attribute.get(kind).__class__ is _CLASSES[kind]
    )
    return Facts(scalars=scalars, values=_as_set(attribute))


class ConstraintState(Protocol):
    """The state of a constraint during one search."""

    constraint: Constraint

    def accepts(self, device: int) -> bool:
        """Whether `add` would accept the device; changes nothing."""
        ...

    def add(self, device: int, main: str) -> bool:
        """Accepts the device for the request named `main`, or refuses it."""
        ...

    def remove(self, device: int, main: str) -> None:
        """Undoes an accepted `add`."""
        ...

    def key(self) -> object:
        """The complete state that later answers depend on, as a hashable value."""
        ...

    def reference(self) -> object:
        """The value that devices must have (facts or a set of values); None while any is valid."""
        ...

    def seen(self) -> list[object]:
        """The values that a further device is compared with, for messages."""
        ...

    def save(self) -> Saved:
        """The complete state, for `restore`."""
        ...

    def restore(self, saved: Saved) -> None:
        """Sets the state to a saved one."""
        ...


def state_of(
    constraint: Constraint,
    facts: Sequence[Facts | None],
    quirks: Quirks,
    *,
    list_attributes: bool,
) -> ConstraintState:
    """A fresh state; `facts[i]` is about device i."""
    if constraint.matching:
        if list_attributes:
            return MatchSets(constraint, facts, keep_narrow=quirks.q5)
        return MatchScalars(constraint, facts)
    return Distinct(constraint, facts, last_only=quirks.q6, sets=list_attributes)


class MatchScalars:
    """matchAttribute without ListTypeAttributes: all devices equal the first."""

    __slots__ = ("_count", "_facts", "_reference", "constraint")

    def __init__(self, constraint: Constraint, facts: Sequence[Facts | None]) -> None:
        self.constraint = constraint
        self._facts = facts
        self._count = 0
        self._reference: Facts | None = None

    def accepts(self, device: int) -> bool:
        """The first device is accepted with any type; later devices must equal it."""
        facts = self._facts[device]
        if facts is None:
            return False
        if self._count == 0:
            return True
        assert self._reference is not None
        return bool(facts.scalars) and facts.scalars[0] in self._reference.scalars

    def add(self, device: int, main: str) -> bool:
        """Accepts the device; later devices must equal the first."""
        if not self.accepts(device):
            return False
        if self._count == 0:
            self._reference = self._facts[device]
        self._count += 1
        return True

    def remove(self, device: int, main: str) -> None:
        """Removes one device; removing the last also drops the reference."""
        self._count -= 1

    def key(self) -> object:
        """The number of devices, and the reference when there is one."""
        return (self._count, self.reference())

    def reference(self) -> object:
        """The facts that all devices must equal."""
        return self._reference if self._count else None

    def seen(self) -> list[object]:
        """The value that all devices must equal."""
        return [self._reference.shown()] if self._count and self._reference else []

    def save(self) -> Saved:
        """The number of devices and the reference."""
        return (self._count, self._reference)

    def restore(self, saved: Saved) -> None:
        """Sets the number of devices and the reference."""
        self._count, self._reference = saved  # type: ignore[assignment]  # made by `save`


class MatchSets:
    """matchAttribute with ListTypeAttributes: all devices have a value in common.

    With `keep_narrow` (quirk q5) a removal does not widen the common values again.
    """

    __slots__ = ("_common", "_count", "_facts", "_history", "_keep_narrow", "constraint")

    def __init__(
        self, constraint: Constraint, facts: Sequence[Facts | None], *, keep_narrow: bool
    ) -> None:
        self.constraint = constraint
        self._facts = facts
        self._keep_narrow = keep_narrow
        self._count = 0
        self._common: ValueSet | None = None
        self._history: list[ValueSet | None] = []

    def accepts(self, device: int) -> bool:
        """Whether a common value would remain."""
        return self._narrowed(device) is not None

    def add(self, device: int, main: str) -> bool:
        """Narrows the common values; refuses when none would remain."""
        narrowed = self._narrowed(device)
        if narrowed is None:
            return False
        if not self._keep_narrow:
            self._history.append(self._common)
        self._common = narrowed
        self._count += 1
        return True

    def remove(self, device: int, main: str) -> None:
        """Removes one device; the common values widen again unless `keep_narrow` is set."""
        self._count -= 1
        if not self._keep_narrow:
            self._common = self._history.pop()

    def _narrowed(self, device: int) -> ValueSet | None:
        facts = self._facts[device]
        if facts is None or facts.values is None:
            return None
        if not self._count:
            return facts.values
        assert self._common is not None
        kind, values = self._common
        shared = values & facts.values[1]
        return (kind, shared) if kind == facts.values[0] and shared else None

    def key(self) -> object:
        """The number of devices, and the common values when there are any."""
        return (self._count, self.reference())

    def reference(self) -> object:
        """The common values."""
        return self._common if self._count else None

    def seen(self) -> list[object]:
        """The values that all devices so far have in common."""
        return _in_order(self._common[1]) if self._count and self._common else []

    def save(self) -> Saved:
        """The number of devices, the common values, and those before each narrowing."""
        return (self._count, self._common, *self._history)

    def restore(self, saved: Saved) -> None:
        """Sets the number of devices and the common values with their history."""
        self._count, self._common, *self._history = saved  # type: ignore[assignment]  # of `save`


class Distinct:
    """distinctAttribute: no two devices share a value.

    With `last_only` (quirk q6) only the last value of each request is remembered. With `sets`
    values are compared as sets.
    """

    __slots__ = ("_accepted", "_count", "_facts", "_last_only", "_sets", "constraint")

    def __init__(
        self,
        constraint: Constraint,
        facts: Sequence[Facts | None],
        *,
        last_only: bool,
        sets: bool,
    ) -> None:
        self.constraint = constraint
        self._facts = facts
        self._last_only = last_only
        self._sets = sets
        self._count = 0
        self._accepted: dict[object, Facts] = {}

    def accepts(self, device: int) -> bool:
        """Whether the value is new; the first device is accepted with any type."""
        facts = self._facts[device]
        return facts is not None and not (self._count and self._conflicts(facts))

    def add(self, device: int, main: str) -> bool:
        """Remembers the value of the device, or refuses a remembered value."""
        if not self.accepts(device):
            return False
        facts = self._facts[device]
        assert facts is not None
        self._accepted[main if self._last_only else (main, device)] = facts
        self._count += 1
        return True

    def remove(self, device: int, main: str) -> None:
        """Drops the value of the device, or with `last_only` the value of its request."""
        self._accepted.pop(main if self._last_only else (main, device), None)
        self._count -= 1

    def key(self) -> object:
        """The number of devices and the remembered values."""
        return (self._count, frozenset(self._accepted.items()))

    def reference(self) -> object:
        """None: devices need no particular value."""
        return None

    def seen(self) -> list[object]:
        """The values that are already used."""
        return [facts.shown() for facts in self._accepted.values()]

    def save(self) -> Saved:
        """The number of devices and a copy of the remembered values."""
        return (self._count, dict(self._accepted))

    def restore(self, saved: Saved) -> None:
        """Sets the number of devices and the remembered values."""
        self._count, accepted = saved  # type: ignore[assignment]  # made by `save`
        self._accepted = dict(accepted)  # type: ignore[call-overload]  # made by `save`

    def _conflicts(self, facts: Facts) -> bool:
        if self._sets:
            if facts.values is None:
                return True
            kind, values = facts.values
            return any(
                other.values is not None and other.values[0] == kind and other.values[1] & values
                for other in self._accepted.values()
            )
        if not facts.scalars:
            return bool(self._accepted)
        return any(facts.scalars[0] in other.scalars for other in self._accepted.values())


def _as_set(attribute: JsonView) -> ValueSet | None:
    for field, kind in _SET_ORDER:
        listed = json_tree.get(attribute, field)
        if isinstance(listed, list) and listed:
            typed = [value for value in listed if value.__class__ is _CLASSES[kind]]
            return (kind, frozenset(typed)) if len(typed) == len(listed) else None
    for kind in _SCALAR_SET_ORDER:
        value = attribute.get(kind)
        if value.__class__ is _CLASSES[kind]:
            return (kind, frozenset((value,)))
    return None
