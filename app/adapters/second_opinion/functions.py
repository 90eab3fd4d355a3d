"""Functions and operators: those for devices, and those in which cel-python differs from CEL.

cel-python raises an error when values of different kinds are compared, and treats two errors as a
wrong overload. This module implements the rules of CEL, from the specification (cel.md 4).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import re2
from celpy import celtypes, evaluation
from celpy.evaluation import CELEvalError

from app.adapters.second_opinion import amounts, versions
from app.adapters.second_opinion.amounts import Amount
from app.adapters.second_opinion.optional_syntax import FIELD, INDEX
from app.adapters.second_opinion.values import NONE, Maybe, failed, unsupported
from app.adapters.second_opinion.versions import Version

INCLUDES_MAX: Final = 48
"""Elements that `includes` examines."""

_NO_OVERLOAD: Final = "no such overload"
_INT: Final = re.compile(r"[+-]?[0-9]{1,18}")
_QUIET: Final = re2.Options()
_QUIET.log_errors = False
_NUMBERS: Final = (celtypes.IntType, celtypes.UintType, celtypes.DoubleType)


def equal(left: Any, right: Any) -> Any:
    """`==`, whose rules depend on the left value."""
    for side in (left, right):
        if isinstance(side, CELEvalError):
            return side
    if isinstance(left, Amount | Version):
        is_comparable = type(left) is type(right) and not getattr(right, "derived", False)
        if not is_comparable:
            return failed(_NO_OVERLOAD)
        if isinstance(left, Amount):
            return celtypes.BoolType(left.value == right.value)
        return celtypes.BoolType(left == right)
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        return unsupported("equality of optional values")
    if isinstance(left, celtypes.ListType) and isinstance(right, celtypes.ListType):
        if len(left) != len(right):
            return celtypes.BoolType(False)
        return _all_equal(zip(left, right, strict=True))
    if isinstance(left, celtypes.MapType) and isinstance(right, celtypes.MapType):
        if left.keys() != right.keys():
            return celtypes.BoolType(False)
        return _all_equal((left[key], right[key]) for key in left)
    if _kind(left) != _kind(right):
        return celtypes.BoolType(False)
    if isinstance(left, _NUMBERS):
        return celtypes.BoolType(_number(left) == _number(right))
    return evaluation.bool_eq(left, right)


def _all_equal(pairs: Any) -> Any:
    for left, right in pairs:
        verdict = equal(left, right)
        if isinstance(verdict, CELEvalError):
            return unsupported("equality of lists or maps that hold quantities or versions")
        if not verdict:
            return verdict
    return celtypes.BoolType(True)


def _kind(value: Any) -> object:
    return _NUMBERS if isinstance(value, _NUMBERS) else type(value)


def _number(value: Any) -> int | float:
    return float(value) if isinstance(value, float) else int(value)


def _unequal(left: Any, right: Any) -> Any:
    verdict = equal(left, right)
    if not isinstance(verdict, CELEvalError):
        return celtypes.BoolType(not verdict)
    if isinstance(left, CELEvalError) or isinstance(right, CELEvalError):
        return verdict
    return celtypes.BoolType(True) if isinstance(left, Amount | Version) else verdict


def _ordered(compare: Callable[[Any, Any], Any], plain: Callable[[Any, Any], bool]) -> Any:
    def ordered(left: Any, right: Any) -> Any:
        for side in (left, right):
            if isinstance(side, CELEvalError):
                return side
        if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
            return celtypes.BoolType(plain(_number(left), _number(right)))
        if type(left) is not type(right) or isinstance(left, Amount | Version | Maybe):
            return failed(_NO_OVERLOAD)
        return compare(left, right)

    return ordered


def _added(left: Any, right: Any) -> Any:
    """`+` with results as CEL values; cel-python leaves them as plain Python values."""
    value = left + right
    match value:
        case CELEvalError():
            return value
        case str():
            return celtypes.StringType(value)
        case bytes():
            return celtypes.BytesType(value)
        case list():
            return celtypes.ListType(value)
        case _:
            return value


def _contained(item: Any, container: Any) -> Any:
    for side in (container, item):
        if isinstance(side, CELEvalError):
            return (
                unsupported("an error in an empty list")
                if side is item and isinstance(container, celtypes.ListType) and not container
                else side
            )
    if isinstance(container, celtypes.MapType):
        if not isinstance(item, celtypes.StringType):
            return unsupported("keys of maps that are not text")
        return celtypes.BoolType(item in container.keys())  # noqa: SIM118 - domains differ in []
    if not isinstance(container, celtypes.ListType):
        return failed(_NO_OVERLOAD)
    if isinstance(item, Version) and not all(isinstance(each, Version) for each in container):
        return unsupported("a version in a list of other values")
    return celtypes.BoolType(any(equal(item, each) == True for each in container))  # noqa: E712 - errors are not equal


def _either(left: Any, right: Any) -> Any:
    both = isinstance(left, CELEvalError) and isinstance(right, CELEvalError)
    return left if both else celtypes.logical_or(left, right)


def _both(left: Any, right: Any) -> Any:
    both = isinstance(left, CELEvalError) and isinstance(right, CELEvalError)
    return left if both else celtypes.logical_and(left, right)


def _negated(value: Any) -> Any:
    if isinstance(value, CELEvalError):
        return value
    if not isinstance(value, celtypes.BoolType):
        return failed(_NO_OVERLOAD)
    return celtypes.BoolType(not value)


def _chosen(condition: Any, left: Any, right: Any) -> Any:
    if isinstance(condition, CELEvalError):
        return condition
    if not isinstance(condition, celtypes.BoolType):
        return failed(_NO_OVERLOAD)
    return left if condition else right


def item_of(container: Any, key: Any) -> Any:
    """`container[key]`, also written `.key`."""
    for side in (container, key):
        if isinstance(side, CELEvalError):
            return side
    if isinstance(container, Maybe):
        return optional_item(container, key)
    if isinstance(container, celtypes.MapType):
        if not isinstance(key, celtypes.StringType):
            return unsupported("keys of maps that are not text")
        try:
            return container[key]
        except KeyError:
            return failed(f"no such key: {key}")
    if isinstance(container, celtypes.ListType):
        if not isinstance(key, celtypes.IntType):
            return failed("unsupported index type")
        return container[key] if 0 <= key < len(container) else failed("index out of bounds")
    # A field of a value without fields: text, numbers, versions.
    return failed(f"no such key: {key}")


def optional_item(container: Any, key: Any) -> Any:
    """`container[?key]`, also written `.?key`."""
    for side in (container, key):
        if isinstance(side, CELEvalError):
            return side
    if isinstance(container, Maybe):
        return optional_item(container.value, key) if container.present else NONE
    if isinstance(container, celtypes.ListType) and not isinstance(key, celtypes.IntType):
        return failed("unsupported index type")
    inside = item_of(container, key)
    if isinstance(inside, CELEvalError):
        is_absent = not isinstance(container, celtypes.MapType) or isinstance(key, str)
        return NONE if is_absent else inside
    return Maybe(inside)


def _quantity(text: Any) -> Any:
    if not isinstance(text, celtypes.StringType):
        return failed(_NO_OVERLOAD)
    try:
        return amounts.parse(text)
    except amounts.UnreadableAmount:
        return failed("no quantity")
    except amounts.UnusualAmount as problem:
        return unsupported(str(problem))


def _semver(text: Any, is_loose: Any = False) -> Any:
    if not isinstance(text, celtypes.StringType):
        return failed(_NO_OVERLOAD)
    try:
        return versions.parse_loosely(text) if is_loose else versions.parse(text)
    except versions.UnreadableVersion:
        return failed("no semantic version")


def _is_readable(read: Callable[..., Any]) -> Callable[..., Any]:
    def is_readable(text: Any, *options: Any) -> Any:
        value = read(text, *options)
        if isinstance(text, celtypes.StringType) and not isinstance(value, CELEvalError):
            return celtypes.BoolType(True)
        is_no = value.args[0] in ("no quantity", "no semantic version")
        return celtypes.BoolType(False) if is_no else value

    return is_readable


def _compared(left: Any, right: Any) -> Any:
    if type(left) is not type(right) or not isinstance(left, Amount | Version):
        return failed(_NO_OVERLOAD)
    if isinstance(left, Amount):
        return celtypes.IntType((left.value > right.value) - (left.value < right.value))
    return celtypes.IntType((left > right) - (left < right))


def _is_beyond(sign: int) -> Callable[[Any, Any], Any]:
    def is_beyond(left: Any, right: Any) -> Any:
        order = _compared(left, right)
        return order if isinstance(order, CELEvalError) else celtypes.BoolType(order == sign)

    return is_beyond


def _summed(sign: int) -> Callable[[Any, Any], Any]:
    def summed(left: Any, right: Any) -> Any:
        if not isinstance(left, Amount) or not isinstance(right, Amount | celtypes.IntType):
            return failed(_NO_OVERLOAD)
        added = right.value if isinstance(right, Amount) else int(right)
        return Amount(left.value + sign * added, derived=True)

    return summed


def _sign(amount: Any) -> Any:
    if not isinstance(amount, Amount):
        return failed(_NO_OVERLOAD)
    return celtypes.IntType((amount.value > 0) - (amount.value < 0))


def _part(place: int) -> Callable[[Any], Any]:
    def part(version: Any) -> Any:
        if not isinstance(version, Version):
            return failed(_NO_OVERLOAD)
        number = version.core[place]
        return celtypes.IntType(number) if number < 2**63 else unsupported("very large versions")

    return part


def _includes(target: Any, item: Any) -> Any:
    elements = target if isinstance(target, celtypes.ListType) else [target]
    for place, element in enumerate(elements):
        if place >= INCLUDES_MAX:
            return failed("too many elements")
        if equal(element, item) == True:  # noqa: E712 - errors are not equal
            return celtypes.BoolType(True)
    return celtypes.BoolType(False)


def _of_text(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function restricted to text; the functions of cel-python also accept lists and maps."""

    def of_text(*texts: Any) -> Any:
        if not all(isinstance(text, celtypes.StringType) for text in texts):
            return failed(_NO_OVERLOAD)
        return function(*texts)

    return of_text


def _matches(text: Any, pattern: Any) -> Any:
    try:
        return celtypes.BoolType(re2.search(pattern, text, _QUIET) is not None)
    except re2.error:
        return failed("the pattern cannot be read")


def _in_ascii(change: Callable[[str], str]) -> Callable[..., Any]:
    return _of_text(
        lambda text: celtypes.StringType(
            "".join(change(letter) if letter.isascii() else letter for letter in text)
        )
    )


def _size(value: Any) -> Any:
    sized = celtypes.StringType | celtypes.BytesType | celtypes.ListType | celtypes.MapType
    return celtypes.IntType(len(value)) if isinstance(value, sized) else failed(_NO_OVERLOAD)


def _int(value: Any) -> Any:
    if isinstance(value, celtypes.IntType):
        return value
    if isinstance(value, celtypes.StringType):
        is_number = _INT.fullmatch(value) is not None
        return celtypes.IntType(int(value)) if is_number else unsupported("int() of such a text")
    return unsupported("int() of such a value")


def _string(value: Any) -> Any:
    if isinstance(value, celtypes.StringType):
        return value
    if isinstance(value, celtypes.BoolType):
        return celtypes.StringType("true" if value else "false")
    if isinstance(value, celtypes.IntType | celtypes.UintType):
        return celtypes.StringType(str(int(value)))
    return unsupported("string() of such a value")


def _optional_of_some(value: Any) -> Any:
    is_zero = isinstance(value, str | bytes | int | float | list | dict) and not value
    return NONE if is_zero or value is None else Maybe(value)


def _value_of(optional: Any) -> Any:
    if not isinstance(optional, Maybe):
        return failed(_NO_OVERLOAD)
    return optional.value if optional.present else failed("optional.none() dereference")


def _has_value(optional: Any) -> Any:
    is_optional = isinstance(optional, Maybe)
    return celtypes.BoolType(optional.present) if is_optional else failed(_NO_OVERLOAD)


def _careful(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for values: if an argument is an error, the first error is the result."""

    def careful(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, CELEvalError):
                return argument
        return function(*arguments)

    return careful


OPTIONAL: Final[Mapping[str, Callable[..., Any]]] = {
    "none": lambda: NONE,
    "of": Maybe,
    "ofNonZeroValue": _optional_of_some,
}
"""Functions of the namespace `optional`."""

_LIBRARY: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _is_readable(_quantity),
    "semver": _semver,
    "isSemver": _is_readable(_semver),
    "compareTo": _compared,
    "isGreaterThan": _is_beyond(1),
    "isLessThan": _is_beyond(-1),
    "add": _summed(1),
    "sub": _summed(-1),
    "sign": _sign,
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "includes": _includes,
    "contains": _of_text(evaluation.function_contains),
    "startsWith": _of_text(evaluation.function_startsWith),
    "endsWith": _of_text(evaluation.function_endsWith),
    "matches": _of_text(_matches),
    "lowerAscii": _in_ascii(str.lower),
    "upperAscii": _in_ascii(str.upper),
    "size": _size,
    "int": _int,
    "string": _string,
    "value": _value_of,
    "hasValue": _has_value,
    FIELD: optional_item,
    INDEX: optional_item,
}

NAMES: Final = frozenset(_LIBRARY)
"""Functions and methods that can be evaluated."""

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _careful(function) for name, function in _LIBRARY.items()},
    "_==_": equal,
    "_!=_": _unequal,
    "_<_": _ordered(evaluation.bool_lt, lambda left, right: left < right),
    "_<=_": _ordered(evaluation.bool_le, lambda left, right: left <= right),
    "_>_": _ordered(evaluation.bool_gt, lambda left, right: left > right),
    "_>=_": _ordered(evaluation.bool_ge, lambda left, right: left >= right),
    "_in_": _contained,
    "_+_": _added,
    "_||_": _either,
    "_&&_": _both,
    "!_": _negated,
    "_?_:_": _chosen,
    "_[_]": item_of,
}
"""The functions that are registered with cel-python; operators have cel-python's names."""
