"""The cost of a call at run time, in addition to its arguments.

Parity: cel.md 5.3. A rule takes the arguments' values (a receiver first; an error counts as size 1)
and the result. Functions without a rule cost 1. "Single" rules apply only if type checking left
exactly one candidate.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from app.domain.cel.cost.amounts import PASSES_FACTOR, REGEX_FACTOR, STRING_FACTOR
from app.domain.cel.library.named_formats import NamedFormat
from app.domain.cel.library.network import Cidr, Ip, Url
from app.domain.cel.values.value import QuantityValue, Value, VisitBudget, size
from app.domain.values.semver import Semver

Rule: TypeAlias = Callable[[Sequence[Value], Value], int]

_LIST_OVERHEAD: Final = 11
_UNIT_COMPARED: Final = frozenset({QuantityValue, Semver, Url, Ip, Cidr, NamedFormat})


def rule(function: str, single: str) -> Rule | None:
    """The rule of a call; None if it costs 1. `single` is the only candidate, or empty."""
    return _BY_OVERLOAD.get(single) or _BY_FUNCTION.get(function)


def equality_cost(left: Value, right: Value) -> int:
    """The cost of `==` and `!=`."""
    if left.__class__ in _UNIT_COMPARED:
        return 1
    return _share(min(size(left), size(right)), STRING_FACTOR)


def _share(amount: int, factor: float) -> int:
    return math.ceil(amount * factor)


def _equality(args: Sequence[Value], result: Value) -> int:
    return equality_cost(args[0], args[1])


def _comparison(args: Sequence[Value], result: Value) -> int:
    return _share(min(size(args[0]), size(args[1])), STRING_FACTOR)


def _concatenation(args: Sequence[Value], result: Value) -> int:
    return _share(size(args[0]) + size(args[1]), STRING_FACTOR)


def _list_membership(args: Sequence[Value], result: Value) -> int:
    return size(args[1])


def _traversal(args: Sequence[Value], result: Value) -> int:
    return _share(size(args[0]), STRING_FACTOR)


def _two_passes(args: Sequence[Value], result: Value) -> int:
    return _share(size(args[0]), PASSES_FACTOR)


def _contains(args: Sequence[Value], result: Value) -> int:
    return _share(size(args[0]), STRING_FACTOR) * _share(size(args[1]), STRING_FACTOR)


def _regex(args: Sequence[Value], result: Value) -> int:
    return _share(1 + size(args[0]), STRING_FACTOR) * _share(size(args[1]), REGEX_FACTOR)


def _join(args: Sequence[Value], result: Value) -> int:
    return _share(size(result), PASSES_FACTOR)


def _contains_ip(args: Sequence[Value], result: Value) -> int:
    own = _share(2 * size(args[0]), STRING_FACTOR)
    return own + (_share(size(args[1]), STRING_FACTOR) if isinstance(args[1], str) else 0)


def _contains_cidr(args: Sequence[Value], result: Value) -> int:
    return _contains_ip(args, result) + _share(size(args[0]), STRING_FACTOR) + 1


def _walk(value: Value, budget: VisitBudget) -> int:
    """The cost of visiting all parts of a value."""
    budget.spend(1)
    match value:
        case str():
            return int(len(value.encode()) * STRING_FACTOR)
        case bytes():
            return int(len(value) * STRING_FACTOR)
        case tuple():
            return sum(_walk(item, budget) for item in value)
        case dict():
            return sum(_walk(key, budget) + _walk(item, budget) for key, item in value.items())
        case _:
            return 1


def _walked(args: Sequence[Value], result: Value) -> int:
    return _walk(args[0], VisitBudget())


def _validate(args: Sequence[Value], result: Value) -> int:
    wanted = args[0]
    pattern = wanted.pattern_size if isinstance(wanted, NamedFormat) else 1
    return _share(1 + size(args[1]), STRING_FACTOR) * _share(pattern, REGEX_FACTOR)


def _sets(factor: int) -> Rule:
    def own(args: Sequence[Value], result: Value) -> int:
        return 1 + factor * size(args[0]) * size(args[1])

    return own


def _made(args: Sequence[Value], result: Value) -> int:
    return _LIST_OVERHEAD + size(result)


def _flatten(args: Sequence[Value], result: Value) -> int:
    depth = args[1] if len(args) > 1 and args[1].__class__ is int else 1
    assert isinstance(depth, int)
    return _LIST_OVERHEAD + size(args[0]) * max(depth, 0)


def _quadratic(counted: int) -> Rule:
    def own(args: Sequence[Value], result: Value) -> int:
        keys = args[counted]
        is_text = isinstance(keys, tuple) and bool(keys) and isinstance(keys[0], str | bytes)
        factor = 2 + STRING_FACTOR if is_text else 2.0
        return _LIST_OVERHEAD + int(size(keys) ** 2 * factor)

    return own


_ELEMENTS: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_RELATIONS: Final = ("less", "less_equals", "greater", "greater_equals")

_BY_OVERLOAD: Final[dict[str, Rule]] = {
    **{f"{word}_{kind}": _comparison for word in _RELATIONS for kind in ("string", "bytes")},
    "add_string": _concatenation,
    "add_bytes": _concatenation,
    "in_list": _list_membership,
    "matches_string": _regex,
    "string_to_bytes": _traversal,
    "bytes_to_string": _traversal,
    "string_to_ip": _traversal,
    "list_distinct": _quadratic(0),
    **{f"list_{kind}_sort": _quadratic(0) for kind in _ELEMENTS},
    **{f"list_{kind}_sortByAssociatedKeys": _quadratic(1) for kind in _ELEMENTS},
}
"""The rules for calls with one candidate, by overload."""

_BY_FUNCTION: Final[dict[str, Rule]] = {
    "_==_": _equality,
    "_!=_": _equality,
    **dict.fromkeys(("startsWith", "endsWith"), _traversal),
    "contains": _contains,
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(("strings.quote", "format", "url"), _traversal),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _traversal),
    **dict.fromkeys(("replace", "split"), _two_passes),
    "join": _join,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _traversal),
    **dict.fromkeys(("isIP", "cidr", "isCIDR"), _traversal),
    "ip.isCanonical": _two_passes,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"), _walked),
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("slice", "reverse", "lists.range"), _made),
    "flatten": _flatten,
}
"""The rules for calls with any candidates, by function."""
