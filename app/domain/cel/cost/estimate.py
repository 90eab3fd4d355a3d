"""The estimated maximum cost of an expression, before any device is known.

Parity: cel.md 6. The estimate uses the tree after macro expansion and without folding; sizes come
from literals, from the declared bounds of `device` along paths, and from calls.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from app.domain.cel.checking.checker import Checked, Resolution
from app.domain.cel.cost import amounts, estimate_calls
from app.domain.cel.cost.amounts import ONE, UNKNOWN, Size
from app.domain.cel.cost.estimate_calls import Argument
from app.domain.cel.signatures import types
from app.domain.cel.signatures.types import Type
from app.domain.cel.syntax import tree
from app.domain.cel.syntax.tree import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Node,
    Select,
)

Path: TypeAlias = tuple[str, ...]

_LIST_BASE: Final = 10
_MAP_BASE: Final = 30
_DOMAIN_MAX: Final = 63
_IDENTIFIER_MAX: Final = 32
_ENTRIES_MAX: Final = 32
_ATTRIBUTE_MAX: Final = 64
_UNIT_KINDS: Final = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})
_COUNTED_HOLDERS: Final = frozenset({"map", "kubernetes.Quantity", "kubernetes.Semver"})
_ROOTS: Final[dict[Path, int]] = {
    ("device",): 0,
    ("device", "driver"): 63,
    ("device", "allowMultipleAllocations"): 1,
}


def maximum(checked: Checked) -> int:
    """The estimated maximum cost, at most `COST_MAX`."""
    return _Estimator(checked=checked).visit(checked.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoopVariable:
    """The path and the size of a loop variable or bound variable, if known."""

    path: Path | None
    size: Size | None


@dataclass(slots=True, kw_only=True)
class _Estimator:
    checked: Checked
    sizes: dict[int, Size] = field(default_factory=dict)
    entries: dict[int, tuple[Size, Size]] = field(default_factory=dict)
    paths: dict[int, Path] = field(default_factory=dict)
    scopes: list[dict[str, _LoopVariable]] = field(default_factory=list)

    def visit(self, node: Node) -> int:
        """Returns the maximum cost of a node; records its path and sizes."""
        match node:
            case Literal() | Message():
                return 0
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._bind(node) if node.is_bind else self._comprehension(node)

    # Sizes (cel.md 6.1) and paths (6.2)

    def size(self, node: Node) -> Size:
        """The size of a visited node, by the first rule that applies."""
        size = self.sizes.get(node.id) or _literal_size(node)
        if size is not None:
            return size
        path = self.paths.get(node.id)
        greatest = None if path is None else _path_size(path)
        if greatest is not None:
            return amounts.up_to(greatest)
        if _has_unit_size(self.checked.types[node.id]):
            return ONE
        if isinstance(node, Ident):
            variable = self._lookup(node.name)
            if variable is not None and variable.size is not None:
                return variable.size
        return UNKNOWN

    def element_size(self, node: Node) -> Size:
        """The size of the elements of a list, by its path; unknown without one."""
        path = self.paths.get(node.id)
        greatest = None if path is None else _path_size((*path, "@items"))
        return UNKNOWN if greatest is None else amounts.up_to(greatest)

    def _lookup(self, name: str) -> _LoopVariable | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    # Nodes

    def _ident(self, node: Ident) -> int:
        name = node.name.removeprefix(".")
        variable = self._lookup(name)
        path = (name,) if variable is None else variable.path
        if path is not None:
            self.paths[node.id] = path
        return 1

    def _select(self, node: Select) -> int:
        if node.id in self.checked.constants:
            return 1
        cost = self.visit(node.operand)
        path = self.paths.get(node.operand.id)
        if path is not None:
            self.paths[node.id] = (*path, node.field)
        if node.test_only:
            return cost
        holder = self.checked.types[node.operand.id]
        counted = holder.kind in _COUNTED_HOLDERS or holder == types.DEVICE
        return amounts.plus(cost, 1) if counted else cost

    def _list(self, node: ListLiteral) -> int:
        cost = _LIST_BASE
        entry: Size | None = None
        for element in node.elements:
            cost = amounts.plus(cost, self.visit(element))
            own = self.size(element)
            entry = own if entry is None else _larger(entry, own)
        if entry is not None:
            self.entries[node.id] = (ONE, entry)
        return cost

    def _map(self, node: MapLiteral) -> int:
        cost = _MAP_BASE
        entry: tuple[Size, Size] | None = None
        for pair in node.entries:
            cost = amounts.plus(cost, self.visit(pair.key), self.visit(pair.value))
            key, value = self.size(pair.key), self.size(pair.value)
            if entry is None:
                entry = key, value
            else:
                entry = _larger(entry[0], key), _larger(entry[1], value)
        if entry is not None:
            self.entries[node.id] = entry
        return cost

    def _bind(self, node: Comprehension) -> int:
        cost = amounts.plus(_LIST_BASE, self.visit(node.init))
        bound = _LoopVariable(path=self.paths.get(node.init.id), size=self.size(node.init))
        self.scopes.append({node.accumulator: bound})
        cost = amounts.plus(cost, self.visit(node.result))
        self.sizes[node.id] = self.size(node.result)
        self.scopes.pop()
        return cost

    def _comprehension(self, node: Comprehension) -> int:
        cost = amounts.plus(self.visit(node.range), self.visit(node.init))
        rounds = self.size(node.range)
        self.scopes.append({node.accumulator: _LoopVariable(path=None, size=self.size(node.init))})
        self.scopes.append(self._loop_variables(node))
        each = amounts.plus(self.visit(node.condition), self.visit(node.step))
        self.scopes.pop()
        cost = amounts.plus(cost, self.visit(node.result))
        self.scopes.pop()
        if isinstance(node.init, Literal):
            self.sizes[node.id] = self.size(node.init)
        elif isinstance(node.init, ListLiteral | MapLiteral):
            self.sizes[node.id] = rounds
        return amounts.plus(cost, amounts.times(rounds.greatest, each))

    def _loop_variables(self, node: Comprehension) -> dict[str, _LoopVariable]:
        path = self.paths.get(node.range.id)
        key_size, value_size = self.entries.get(node.range.id, (None, None))
        is_list = self.checked.types[node.range.id].kind == "list"
        if not node.second_variable:
            step, size = ("@items", value_size) if is_list else ("@keys", key_size)
            return {node.variable: _LoopVariable(path=_extended(path, step), size=size)}
        first, second = ("@indices", "@items") if is_list else ("@keys", "@values")
        return {
            node.variable: _LoopVariable(path=_extended(path, first), size=key_size),
            node.second_variable: _LoopVariable(path=_extended(path, second), size=value_size),
        }

    def _call(self, node: Call) -> int:
        resolution = self.checked.calls[node.id]
        args = resolution.args
        if resolution.function == tree.CONDITIONAL:
            cost = self.visit(args[0])
            cost = amounts.plus(cost, max(self.visit(args[1]), self.visit(args[2])))
            self.sizes[node.id] = amounts.union(self.size(args[1]), self.size(args[2]))
            return cost
        cost = 0
        for argument in args:
            cost = amounts.plus(cost, self.visit(argument))
        if resolution.function in (tree.LOGICAL_AND, tree.LOGICAL_OR):
            return cost
        if resolution.function == tree.INDEX:
            self._index(node, resolution)
        return amounts.plus(cost, self._own(node, resolution))

    def _index(self, node: Call, resolution: Resolution) -> None:
        """Records the path and the size of an indexed value."""
        operand = resolution.args[0]
        path = self.paths.get(operand.id)
        names = [overload.id for overload in resolution.candidates]
        if "index_list" in names:
            path = _extended(path, "@items")
        if "index_map" in names:
            path = _extended(path, "@values")
        if path is not None:
            self.paths[node.id] = path
        entry = self.entries.get(operand.id)
        if entry is not None:
            self.sizes[node.id] = entry[1]

    def _own(self, node: Call, resolution: Resolution) -> int:
        """Returns the call's own cost, the candidates' maximum; records the union of sizes."""
        args = [self._argument(argument) for argument in resolution.args]
        own, size = 0, None
        for name in [overload.id for overload in resolution.candidates] or [""]:
            cost, result = estimate_calls.own(resolution.function, name, args)
            own = max(own, cost)
            if result is not None:
                size = result if size is None else amounts.union(size, result)
        if size is not None:
            self.sizes[node.id] = size
        return own

    def _argument(self, node: Node) -> Argument:
        return Argument(
            size=self.size(node),
            type=self.checked.types[node.id],
            literal=node.value if isinstance(node, Literal) else None,
            element_size=self.element_size(node),
        )


def _larger(left: Size, right: Size) -> Size:
    return Size(max(left.least, right.least), max(left.greatest, right.greatest))


def _extended(path: Path | None, step: str) -> Path | None:
    return None if path is None else (*path, step)


def _literal_size(node: Node) -> Size | None:
    match node:
        case Literal(value=str() | bytes() as value):
            return amounts.exactly(len(value))
        case Literal():
            return ONE
        case ListLiteral():
            return amounts.exactly(len(node.elements))
        case MapLiteral():
            return amounts.exactly(len(node.entries))
        case _:
            return None


def _has_unit_size(type_: Type) -> bool:
    if type_.kind == "optional_type" and type_.params:
        type_ = type_.params[0]
    return type_.kind in _UNIT_KINDS


def _path_size(path: Path) -> int | None:
    """The maximum size of the value at a path; None if no size is declared."""
    if path in _ROOTS:
        return _ROOTS[path]
    if path[:1] != ("device",) or path[1:2] not in (("attributes",), ("capacity",)):
        return None
    match path[1:]:
        case (_,):
            return _ENTRIES_MAX
        case (_, "@keys"):
            return _DOMAIN_MAX
        case (_, "@values"):
            return _ENTRIES_MAX
        case (_, "@values", "@keys"):
            return _IDENTIFIER_MAX
        case ("attributes", "@values", step) if step not in ("@items", "@indices"):
            return _ATTRIBUTE_MAX
        case _:
            return None
