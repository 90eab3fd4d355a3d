"""Values at run time.

CEL's bool, int, double, string, bytes, null, list and map are Python's bool, int, float, str,
bytes, None, tuple and dict. Map keys that are bool are stored as `BoolKey`, because in Python
`True` and `1` are the same key. Kinds that Python lacks are defined here. Errors are values too: a
function returns a `CelError` instead of raising (Parity: cel.md 4).
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from app.domain.cel.limits import COMPARISONS_MAX, ELEMENTS_MAX, TEXT_MAX
from app.domain.values.quantity import Quantity
from app.domain.values.semver import Semver

Value: TypeAlias = object

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class CelError:
    """An error as a value, with upstream's text."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return f"CelError({self.message!r})"


class CostExceeded(Exception):
    """An evaluation exceeded its cost or work. It ends the whole evaluation; it is not a CEL value,
    so `||` cannot ignore it."""


class VisitBudget:
    """The number of parts of nested values that one operation may still visit."""

    __slots__ = ("left",)

    def __init__(self, parts: int = COMPARISONS_MAX) -> None:
        self.left = parts

    def spend(self, parts: int) -> None:
        """Subtracts parts from the budget. Raises CostExceeded if it is exceeded."""
        self.left -= parts
        if self.left < 0:
            raise CostExceeded


def check_elements(count: int) -> None:
    """Raises CostExceeded for a list with more elements than ELEMENTS_MAX."""
    if count > ELEMENTS_MAX:
        raise CostExceeded


def check_text(code_points: int) -> None:
    """Raises CostExceeded for a string with more code points than TEXT_MAX."""
    if code_points > TEXT_MAX:
        raise CostExceeded


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A bool as the key of a map."""

    value: bool


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in nanoseconds, within 64 bits."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """An instant in nanoseconds since 1970-01-01T00:00:00Z."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, such as `int` or the result of `type(x)`."""

    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """`optional.of(value)`; `present` is false for `optional.none()`."""

    value: Value
    present: bool = True


class QuantityValue:
    """A quantity during evaluations.

    `derived` marks results of `add` and `sub`, which cannot be the right side of `==`
    (allocator.md 11.4). Identity matters: see `Evaluation.forms`.
    """

    __slots__ = ("derived", "quantity")

    def __init__(self, quantity: Quantity, *, derived: bool = False) -> None:
        self.quantity = quantity
        self.derived = derived


class DefaultingMap(dict[str, Value]):
    """A map of domains: a missing domain is an empty map in a look-up, and absent for `in`."""

    __slots__ = ()


EMPTY_DOMAIN: Final[dict[str, Value]] = {}
NONE: Final = OptionalValue(None, present=False)
NO_SUCH_OVERLOAD: Final = CelError("no such overload")
INT_OVERFLOW: Final = CelError("integer overflow")
UINT_OVERFLOW: Final = CelError("unsigned integer overflow")


def no_such_key(key: Value) -> CelError:
    """The error of a look-up of a missing key."""
    return CelError(f"no such key: {plain_text(key)}")


def plain_text(value: Value) -> str:
    """A scalar as upstream prints it in errors; other values by their type."""
    match value:
        case bool():
            return "true" if value else "false"
        case BoolKey():
            return "true" if value.value else "false"
        case None:
            return "null"
        case Semver() | QuantityValue() | tuple() | dict():
            return type_name(value)
        case _:
            return str(value)


def map_key(value: Value) -> Value:
    """The key of a Python dict for a CEL value."""
    return BoolKey(value) if value.__class__ is bool else value


def key_value(key: Value) -> Value:
    """The CEL value of a key of a Python dict."""
    return key.value if isinstance(key, BoolKey) else key


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DefaultingMap: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    QuantityValue: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
}

_GO_TYPES: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    OptionalValue: "*types.Optional",
    QuantityValue: "cel.Quantity",
    Semver: "cel.Semver",
}


def register_type(python_type: type, *, name: str, go_type: str) -> None:
    """Declares a run-time type of a library module; the module calls it on import."""
    _TYPE_NAMES[python_type] = name
    _GO_TYPES[python_type] = go_type


def type_name(value: Value) -> str:
    """The name of the run-time type, as in `type(x)` and errors."""
    return _TYPE_NAMES.get(value.__class__, "dyn")


def go_type(value: Value) -> str:
    """The name of upstream's implementation type, which some errors contain."""
    return _GO_TYPES.get(value.__class__, "types.Value")


def size(value: Value) -> int:
    """The size for costs: the length of strings, bytes, lists and maps, otherwise 1.

    Addresses count their own sizes (Parity: cel.md 5.3). An optional counts as its value.
    """
    kind = value.__class__
    if kind is str or kind is bytes or kind is tuple or kind is dict or kind is DefaultingMap:
        return len(value)  # type: ignore[arg-type]  # one of the five sized kinds
    measured = getattr(value, "cost_size", None)
    if measured is not None:
        return int(measured)
    if isinstance(value, OptionalValue) and value.present:
        return size(value.value)
    return 1
