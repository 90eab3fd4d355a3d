"""Macro expansion: calls of macros become other nodes, mostly comprehensions.

The expansions are those of the table in cel.md 1; costs are those of the expansion. A macro is
recognised by its name, its number of arguments and its receiver, before types are known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.domain.cel.syntax import tree
from app.domain.cel.syntax.tree import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Node,
    Select,
)

_UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"


class MacroError(ValueError):
    """A macro does not accept its arguments; the error has the position of the first wrong one."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


@dataclass(slots=True)
class Builder:
    """Makes nodes with fresh ids; `count` is the number of ids given."""

    count: int = 0

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def literal(self, position: int, value: object) -> Literal:
        return Literal(id=self.next_id(), position=position, value=value)

    def ident(self, position: int, name: str) -> Ident:
        return Ident(id=self.next_id(), position=position, name=name)

    def select(
        self, position: int, operand: Node, field: str, *, test_only: bool = False
    ) -> Select:
        return Select(
            id=self.next_id(), position=position, operand=operand, field=field, test_only=test_only
        )

    def call(self, position: int, function: str, *args: Node, target: Node | None = None) -> Call:
        return Call(
            id=self.next_id(), position=position, function=function, args=args, target=target
        )

    def list_of(
        self, position: int, elements: list[Node], optional: frozenset[int] = frozenset()
    ) -> ListLiteral:
        return ListLiteral(
            id=self.next_id(), position=position, elements=tuple(elements), optional=optional
        )

    def entry(self, position: int, key: Node, value: Node, *, optional: bool = False) -> MapEntry:
        return MapEntry(
            id=self.next_id(), position=position, key=key, value=value, optional=optional
        )

    def map_of(self, position: int, entries: list[MapEntry]) -> MapLiteral:
        return MapLiteral(id=self.next_id(), position=position, entries=tuple(entries))

    def message(self, position: int, name: str) -> Message:
        return Message(id=self.next_id(), position=position, name=name)

    def bind(self, position: int, name: str, init: Node, result: Node) -> Comprehension:
        return Comprehension(
            id=self.next_id(),
            position=position,
            range=self.list_of(position, []),
            variable=_UNUSED,
            second_variable="",
            accumulator=name,
            init=init,
            condition=self.literal(position, False),
            step=self.ident(position, name),
            result=result,
            is_bind=True,
        )

    def copy(self, node: Node) -> Node:
        """Copies a tree with new ids, for an expansion that uses an argument twice."""
        match node:
            case Literal():
                return self.literal(node.position, node.value)
            case Ident():
                return self.ident(node.position, node.name)
            case Message():
                return self.message(node.position, node.name)
            case Select():
                operand = self.copy(node.operand)
                return self.select(node.position, operand, node.field, test_only=node.test_only)
            case Call():
                target = None if node.target is None else self.copy(node.target)
                args = [self.copy(argument) for argument in node.args]
                return self.call(node.position, node.function, *args, target=target)
            case ListLiteral():
                elements = [self.copy(element) for element in node.elements]
                return self.list_of(node.position, elements, node.optional)
            case MapLiteral():
                return self.map_of(node.position, [self._copy_entry(e) for e in node.entries])
            case Comprehension():
                return self._copy_comprehension(node)

    def _copy_entry(self, entry: MapEntry) -> MapEntry:
        key = self.copy(entry.key)
        value = self.copy(entry.value)
        return self.entry(entry.position, key, value, optional=entry.optional)

    def _copy_comprehension(self, node: Comprehension) -> Comprehension:
        return Comprehension(
            id=self.next_id(),
            position=node.position,
            range=self.copy(node.range),
            variable=node.variable,
            second_variable=node.second_variable,
            accumulator=node.accumulator,
            init=self.copy(node.init),
            condition=self.copy(node.condition),
            step=self.copy(node.step),
            result=self.copy(node.result),
            is_bind=node.is_bind,
        )


def expand(
    builder: Builder, position: int, name: str, target: Node | None, args: list[Node]
) -> Node | None:
    """Returns the expansion of a macro, or None for another call.

    Raises MacroError if the macro does not accept the arguments.
    """
    if target is None:
        if name == "has" and len(args) == 1:
            return _has(builder, args[0])
        return None
    expander = _RECEIVER_MACROS.get((name, len(args)))
    return None if expander is None else expander(builder, position, target, args)


def _has(builder: Builder, operand: Node) -> Node:
    if isinstance(operand, Select) and not operand.test_only:
        return builder.select(operand.position, operand.operand, operand.field, test_only=True)
    raise MacroError(operand.position, "invalid argument to has() macro")


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.position, "argument must be a simple name")
    if node.name == ACCUMULATOR:
        raise MacroError(node.position, "iteration variable overwrites accumulator variable")
    return node.name.removeprefix(".")


def _variables(args: list[Node]) -> tuple[str, str]:
    first, second = _variable(args[0]), _variable(args[1])
    if first == second:
        raise MacroError(args[1].position, f"duplicate variable name: {first}")
    return first, second


@dataclass(frozen=True, slots=True)
class _Fold:
    """The parts of a comprehension that several macros share."""

    builder: Builder
    position: int
    range: Node
    variable: str
    second_variable: str = ""

    def accumulator(self) -> Ident:
        return self.builder.ident(self.position, ACCUMULATOR)

    def call(self, function: str, *args: Node) -> Call:
        return self.builder.call(self.position, function, *args)

    def literal(self, value: object) -> Literal:
        return self.builder.literal(self.position, value)

    def always(self) -> Literal:
        return self.literal(True)

    def when(self, predicate: Node | None, step: Node) -> Node:
        """The step, or the unchanged accumulator if the predicate is false."""
        if predicate is None:
            return step
        return self.call(tree.CONDITIONAL, predicate, step, self.accumulator())

    def append(self, element: Node) -> Node:
        added = self.builder.list_of(self.position, [element])
        return self.call(tree.ADD, self.accumulator(), added)

    def build(
        self, init: Node, condition: Node, step: Node, result: Node | None = None
    ) -> Comprehension:
        return Comprehension(
            id=self.builder.next_id(),
            position=self.position,
            range=self.range,
            variable=self.variable,
            second_variable=self.second_variable,
            accumulator=ACCUMULATOR,
            init=init,
            condition=condition,
            step=step,
            result=result if result is not None else self.accumulator(),
        )


_Expander = Callable[[Builder, int, Node, list[Node]], Node]


def _fold(builder: Builder, position: int, target: Node, args: list[Node], names: int) -> _Fold:
    if names == 1:
        return _Fold(builder, position, target, _variable(args[0]))
    return _Fold(builder, position, target, *_variables(args))


def _all(names: int) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        fold = _fold(builder, position, target, args, names)
        condition = fold.call(tree.NOT_STRICTLY_FALSE, fold.accumulator())
        step = fold.call(tree.LOGICAL_AND, fold.accumulator(), args[names])
        return fold.build(fold.literal(True), condition, step)

    return expander


def _exists(names: int) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        fold = _fold(builder, position, target, args, names)
        negated = fold.call(tree.NOT, fold.accumulator())
        condition = fold.call(tree.NOT_STRICTLY_FALSE, negated)
        step = fold.call(tree.LOGICAL_OR, fold.accumulator(), args[names])
        return fold.build(fold.literal(False), condition, step)

    return expander


def _exists_one(names: int) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        fold = _fold(builder, position, target, args, names)
        counted = fold.call(tree.ADD, fold.accumulator(), fold.literal(1))
        step = fold.when(args[names], counted)
        result = fold.call(tree.EQUALS, fold.accumulator(), fold.literal(1))
        return fold.build(fold.literal(0), fold.always(), step, result)

    return expander


def _filter(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
    fold = _fold(builder, position, target, args, 1)
    kept = fold.append(builder.copy(args[0]))
    return fold.build(builder.list_of(position, []), fold.always(), fold.when(args[1], kept))


def _to_list(names: int) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        fold = _fold(builder, position, target, args, names)
        predicate = args[names] if len(args) > names + 1 else None
        step = fold.when(predicate, fold.append(args[-1]))
        return fold.build(builder.list_of(position, []), fold.always(), step)

    return expander


def _to_map(*, keyed: bool) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        fold = _fold(builder, position, target, args, 2)
        predicate = args[2] if len(args) > 3 else None
        key = [builder.ident(position, fold.variable)] if keyed else []
        inserted = fold.call(tree.MAP_INSERT, fold.accumulator(), *key, args[-1])
        step = fold.when(predicate, inserted)
        return fold.build(builder.map_of(position, []), fold.always(), step)

    return expander


def _bind(builder: Builder, position: int, target: Node, args: list[Node]) -> Node | None:
    if not (isinstance(target, Ident) and target.name == "cel"):
        return None
    if not isinstance(args[0], Ident):
        message = "cel.bind() variable names must be simple identifiers"
        raise MacroError(args[0].position, message)
    return builder.bind(position, args[0].name, args[1], args[2])


def _optional_map(*, wrapped: bool) -> _Expander:
    def expander(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            name = "optMap" if wrapped else "optFlatMap"
            message = f"{name}() variable name must be a simple identifier"
            raise MacroError(args[0].position, message)
        present = builder.call(position, "hasValue", target=target)
        value = builder.call(position, "value", target=builder.copy(target))
        mapped: Node = builder.bind(position, args[0].name, value, args[1])
        if wrapped:
            mapped = builder.call(position, "optional.of", mapped)
        absent = builder.call(position, "optional.none")
        return builder.call(position, tree.CONDITIONAL, present, mapped, absent)

    return expander


def _sort_by(builder: Builder, position: int, target: Node, args: list[Node]) -> Node:
    keys_input = builder.ident(position, _SORT_INPUT)
    keys = _to_list(1)(builder, position, keys_input, args)
    sorted_input = builder.ident(position, _SORT_INPUT)
    ordered = builder.call(position, tree.SORT_BY_KEYS, keys, target=sorted_input)
    return builder.bind(position, _SORT_INPUT, target, ordered)


_RECEIVER_MACROS: Final[dict[tuple[str, int], Callable[..., Node | None]]] = {
    ("all", 2): _all(1),
    ("all", 3): _all(2),
    ("exists", 2): _exists(1),
    ("exists", 3): _exists(2),
    ("exists_one", 2): _exists_one(1),
    ("exists_one", 3): _exists_one(2),
    ("existsOne", 2): _exists_one(1),
    ("existsOne", 3): _exists_one(2),
    ("filter", 2): _filter,
    ("map", 2): _to_list(1),
    ("map", 3): _to_list(1),
    ("transformList", 3): _to_list(2),
    ("transformList", 4): _to_list(2),
    ("transformMap", 3): _to_map(keyed=True),
    ("transformMap", 4): _to_map(keyed=True),
    ("transformMapEntry", 3): _to_map(keyed=False),
    ("transformMapEntry", 4): _to_map(keyed=False),
    ("bind", 3): _bind,
    ("optMap", 2): _optional_map(wrapped=True),
    ("optFlatMap", 2): _optional_map(wrapped=False),
    ("sortBy", 2): _sort_by,
}
