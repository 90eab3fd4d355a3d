"""The syntax tree of an expression, after macro expansion.

Every node has an `id` (unique within its tree) and a `position` (the 0-based code point that
upstream names in errors: the dot of a selection, the opening bracket of a call or index, the
operator). Types, overloads and sizes are stored outside the tree, by `id`.

A chain of `&&` or `||` is one call with all operands: grouping changes neither result nor cost
(cel.md 1), and a long chain does not make a deep tree.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

LOGICAL_AND: Final = "_&&_"
LOGICAL_OR: Final = "_||_"
CONDITIONAL: Final = "_?_:_"
NOT: Final = "!_"
NEGATE: Final = "-_"
EQUALS: Final = "_==_"
NOT_EQUALS: Final = "_!=_"
ADD: Final = "_+_"
IN: Final = "@in"
INDEX: Final = "_[_]"
OPTIONAL_SELECT: Final = "_?._"
OPTIONAL_INDEX: Final = "_[?_]"
NOT_STRICTLY_FALSE: Final = "@not_strictly_false"
MAP_INSERT: Final = "cel.@mapInsert"
SORT_BY_KEYS: Final = "@sortByAssociatedKeys"
ACCUMULATOR: Final = "@result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant: None, bool, int, Uint, float, str or bytes."""

    id: int
    position: int
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Ident:
    """A name: a variable, a loop variable, the accumulator or a type."""

    id: int
    position: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """`operand.field`; with `test_only` the presence test of `has(operand.field)`."""

    id: int
    position: int
    operand: "Node"
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a function, operator, index, optional selection or method (with `target`)."""

    id: int
    position: int
    function: str
    args: tuple["Node", ...]
    target: "Node | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLiteral:
    """A list literal `[a, ?b]`; `optional` has the indices of elements that are marked with `?`."""

    id: int
    position: int
    elements: tuple["Node", ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapEntry:
    """One `key: value` of a map literal; `optional` if written `?key: value`."""

    id: int
    position: int
    key: "Node"
    value: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLiteral:
    """A map literal `{key: value, ?key: value}`."""

    id: int
    position: int
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message literal `Name{…}`. The checker always refuses it: no message type exists here."""

    id: int
    position: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comprehension:
    """The expansion of most macros (cel.md 1): a fold over `range` into `accumulator`."""

    id: int
    position: int
    range: "Node"
    variable: str
    second_variable: str
    accumulator: str
    init: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"
    is_bind: bool = False


Node: TypeAlias = (
    Literal | Ident | Select | Call | ListLiteral | MapLiteral | Message | Comprehension
)


def children(node: Node) -> tuple[Node, ...]:
    """The direct children of a node, in written order."""
    match node:
        case Literal() | Ident() | Message():
            return ()
        case Select():
            return (node.operand,)
        case Call():
            return node.args if node.target is None else (node.target, *node.args)
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case Comprehension():
            return (node.range, node.init, node.condition, node.step, node.result)


def depth(node: Node) -> int:
    """The number of nodes on the longest path from root to leaf, computed without recursion."""
    deepest = 0
    pending = [(node, 1)]
    while pending:
        lower, level = pending.pop()
        deepest = max(deepest, level)
        pending.extend((child, level + 1) for child in children(lower))
    return deepest
