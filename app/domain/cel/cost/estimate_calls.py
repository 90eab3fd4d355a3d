"""The estimate of single calls: own cost and size of the result, from sizes of the arguments.

Parity: cel.md 6.3, second table. Each rule takes the candidate's id and the arguments (a receiver
first) and returns the maximum own cost and, if the table has one, the size of the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from app.domain.cel.cost import amounts
from app.domain.cel.cost.amounts import PASSES_FACTOR, REGEX_FACTOR, STRING_FACTOR, UNKNOWN, Size
from app.domain.cel.limits import COST_MAX, INCLUDES_ELEMENTS_MAX
from app.domain.cel.signatures.types import Type

_LIST_OVERHEAD: Final = 11
_ADDRESS_KINDS: Final = frozenset({"net.IP", "net.CIDR"})
_OPAQUE_KINDS: Final = frozenset({"kubernetes.Quantity", "kubernetes.Semver"}) | _ADDRESS_KINDS
_TEXT_KINDS: Final = frozenset({"string", "bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """The known properties of an argument; `literal` is its value if it is a literal."""

    size: Size
    type: Type
    literal: object
    element_size: Size


Result: TypeAlias = tuple[int, Size | None]
_Rule: TypeAlias = Callable[[str, Sequence[Argument]], Result]


def own(function: str, overload: str, args: Sequence[Argument]) -> Result:
    """Returns own cost and result size of one candidate; 1 and None without a rule."""
    rule = _RULES.get(function)
    return (1, None) if rule is None else rule(overload, args)


def _text(argument: Argument, factor: float = STRING_FACTOR) -> int:
    return amounts.scaled(argument.size.greatest, factor)


def _equality(overload: str, args: Sequence[Argument]) -> Result:
    left, right = args
    if left.type == right.type and left.type.kind in _OPAQUE_KINDS:
        return 1, None
    smaller = min(left.size.greatest, right.size.greatest)
    return amounts.scaled(smaller, STRING_FACTOR), None


def _comparison(overload: str, args: Sequence[Argument]) -> Result:
    if overload.endswith(("_string", "_bytes")):
        smaller = min(args[0].size.greatest, args[1].size.greatest)
        return amounts.scaled(smaller, STRING_FACTOR), None
    return 1, None


def _addition(overload: str, args: Sequence[Argument]) -> Result:
    if overload in ("add_string", "add_bytes"):
        total = amounts.sum_of(args[0].size, args[1].size)
        return amounts.scaled(total.greatest, STRING_FACTOR), total
    if overload == "add_list":
        return 1, amounts.sum_of(args[0].size, args[1].size)
    return 1, None


def _membership(overload: str, args: Sequence[Argument]) -> Result:
    return (args[1].size.greatest if overload == "in_list" else 1), None


def _affix(overload: str, args: Sequence[Argument]) -> Result:
    return _text(args[1]), None


def _contains(overload: str, args: Sequence[Argument]) -> Result:
    return amounts.times(_text(args[0]), _text(args[1])), None


def _regex_cost(args: Sequence[Argument]) -> int:
    passes = amounts.scaled(amounts.plus(args[0].size.greatest, 1), STRING_FACTOR)
    return amounts.times(passes, _text(args[1], REGEX_FACTOR))


def _matches(overload: str, args: Sequence[Argument]) -> Result:
    return _regex_cost(args), None


def _find(overload: str, args: Sequence[Argument]) -> Result:
    return _regex_cost(args), amounts.up_to(args[0].size.greatest)


def _bytes(overload: str, args: Sequence[Argument]) -> Result:
    if overload != "string_to_bytes":
        return 1, None
    size = args[0].size
    return _text(args[0]), Size(size.least, amounts.times(size.greatest, 4))


def _string(overload: str, args: Sequence[Argument]) -> Result:
    if overload != "bytes_to_string":
        return 1, None
    size = args[0].size
    return _text(args[0]), Size(size.least // 4, size.greatest)


def _quote(overload: str, args: Sequence[Argument]) -> Result:
    size = args[0].size
    greatest = amounts.plus(amounts.times(size.greatest, 2), 2)
    return _text(args[0]), Size(amounts.plus(size.least, 2), greatest)


def _traversal(overload: str, args: Sequence[Argument]) -> Result:
    return _text(args[0]), None


def _same_size(overload: str, args: Sequence[Argument]) -> Result:
    return _text(args[0]), args[0].size


def _replace(overload: str, args: Sequence[Argument]) -> Result:
    text, old, new = args[0].size, args[1].size, args[2].size
    greatest = _replaced(text.greatest, old.least, old.greatest, new.greatest)
    least = _replaced(text.least, old.greatest, old.least, new.least)
    return _text(args[0], PASSES_FACTOR), Size(min(least, greatest), greatest)


def _replaced(text: int, old: int, old_other: int, new: int) -> int:
    """The maximum length after `replace`; `old` is the bound with the most replacements."""
    if old == 0:
        count, kept = amounts.plus(text, 1), text
    elif old_other <= old and new <= old:
        count, kept = 0, text
    else:
        count, kept = -(-text // old), 0
    return amounts.plus(amounts.times(count, new), kept)


def _split(overload: str, args: Sequence[Argument]) -> Result:
    greatest = args[0].size.greatest
    limit = args[2].literal if len(args) > 2 else None
    if isinstance(limit, int) and limit >= 0:
        greatest = limit
    return _text(args[0], PASSES_FACTOR), amounts.up_to(greatest)


def _join(overload: str, args: Sequence[Argument]) -> Result:
    count = args[0].size
    total = Size(0, 0)
    if args[0].type.kind == "list":
        total = amounts.product(count, args[0].element_size)
    if len(args) > 1:
        gaps = Size(max(count.least - 1, 0), max(count.greatest - 1, 0))
        total = amounts.sum_of(total, amounts.product(gaps, args[1].size))
    return amounts.scaled(total.greatest, STRING_FACTOR), total


def _ip(overload: str, args: Sequence[Argument]) -> Result:
    return (_text(args[0]) if overload == "string_to_ip" else 1), None


def _is_canonical(overload: str, args: Sequence[Argument]) -> Result:
    return _text(args[0], PASSES_FACTOR), None


def _contains_ip(overload: str, args: Sequence[Argument]) -> Result:
    return amounts.plus(4, _text(args[1]) if overload.endswith("_string") else 0), None


def _contains_cidr(overload: str, args: Sequence[Argument]) -> Result:
    return amounts.plus(4 + 2 + 1, _text(args[1]) if overload.endswith("_string") else 0), None


def _list_traversal(overload: str, args: Sequence[Argument]) -> Result:
    held = args[0].type
    if held.kind != "list":
        return _text(args[0]), None
    each = 1
    if held.params[0].kind in _TEXT_KINDS:
        each = amounts.plus(1, amounts.scaled(args[0].element_size.greatest, STRING_FACTOR))
    return amounts.times(args[0].size.greatest, each), None


def _validate(overload: str, args: Sequence[Argument]) -> Result:
    return amounts.times(_text(args[1]), 32), None


def _includes(overload: str, args: Sequence[Argument]) -> Result:
    return INCLUDES_ELEMENTS_MAX, None


def _sets(factor: int) -> _Rule:
    def rule(overload: str, args: Sequence[Argument]) -> Result:
        pairs = amounts.times(args[0].size.greatest, args[1].size.greatest)
        return amounts.plus(amounts.times(pairs, factor), 1), None

    return rule


def _slice(overload: str, args: Sequence[Argument]) -> Result:
    start = args[1].literal if isinstance(args[1].literal, int) else 0
    end = args[2].literal if isinstance(args[2].literal, int) else args[0].size.greatest
    length = max(end - start, 0)
    return amounts.plus(_LIST_OVERHEAD, length), amounts.exactly(length)


def _range(overload: str, args: Sequence[Argument]) -> Result:
    length = args[0].literal
    if not isinstance(length, int):
        return COST_MAX, UNKNOWN
    length = max(length, 0)
    return amounts.plus(_LIST_OVERHEAD, length), amounts.exactly(length)


def _reverse(overload: str, args: Sequence[Argument]) -> Result:
    return amounts.plus(_LIST_OVERHEAD, args[0].size.greatest), args[0].size


def _flatten(overload: str, args: Sequence[Argument]) -> Result:
    depth = args[1].literal if len(args) > 1 else 1
    levels = max(depth, 0) if isinstance(depth, int) else 1
    work = amounts.times(args[0].size.greatest, levels)
    return amounts.plus(_LIST_OVERHEAD, work), args[0].size


def _quadratic(counted: int) -> _Rule:
    """Returns a rule for pairwise comparisons; `counted` is the argument whose length counts."""

    def rule(overload: str, args: Sequence[Argument]) -> Result:
        squared = amounts.product(args[counted].size, args[counted].size)
        texts = overload.startswith(("list_string_", "list_bytes_"))
        held = args[0].type
        if overload == "list_distinct" and held.kind == "list":
            texts = held.params[0].kind in _TEXT_KINDS
        factor = 2 + STRING_FACTOR if texts else 2.0
        cost = amounts.scaled(squared.greatest, factor)
        return amounts.plus(_LIST_OVERHEAD, cost), squared

    return rule


_RULES: Final[dict[str, _Rule]] = {
    "_==_": _equality,
    "_!=_": _equality,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _comparison),
    "_+_": _addition,
    "@in": _membership,
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    "contains": _contains,
    "matches": _matches,
    **dict.fromkeys(("find", "findAll"), _find),
    "bytes": _bytes,
    "string": _string,
    "strings.quote": _quote,
    "format": _traversal,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(
        ("quantity", "isQuantity", "semver", "isSemver", "isIP", "cidr", "isCIDR"), _traversal
    ),
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"), _list_traversal),
    "validate": _validate,
    "includes": _includes,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _quadratic(0),
    "sort": _quadratic(0),
    "@sortByAssociatedKeys": _quadratic(1),
    "dyn": lambda overload, args: (1, args[0].size),
}
