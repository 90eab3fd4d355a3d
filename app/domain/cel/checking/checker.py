"""Type checking: the candidate overloads of each call, and the type of every node.

Parity: cel.md 2. All overloads whose parameters accept the arguments are kept as candidates; they
decide the result type here, the cost in `estimate` and `charges`, and dispatch in `calls`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.domain.cel.environment import TYPE_NAMES, Environment
from app.domain.cel.signatures import types
from app.domain.cel.signatures.declarations import Overload
from app.domain.cel.signatures.types import Type, Unifier
from app.domain.cel.syntax import tree
from app.domain.cel.syntax.issues import Issue
from app.domain.cel.syntax.parser import Parsed
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
from app.domain.cel.values.value import TypeValue, Uint

_LITERAL_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}
_QUALIFIED_TYPES: Final[dict[str, Type]] = {
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The resolution of a call: function, arguments (a receiver first), and candidates."""

    function: str
    args: tuple[Node, ...]
    is_method: bool
    candidates: tuple[Overload, ...]

    @property
    def single(self) -> str:
        """The id of the only candidate; empty if there are several."""
        return self.candidates[0].id if len(self.candidates) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A tree with its types. `constants` has the names and selections whose value is a type."""

    parsed: Parsed
    types: dict[int, Type]
    calls: dict[int, Resolution]
    constants: dict[int, TypeValue]

    @property
    def root(self) -> Node:
        return self.parsed.root


def check(
    parsed: Parsed,
    environment: Environment,
    variables: dict[str, Type] | None = None,
    fields: Mapping[str, Mapping[str, Type]] | None = None,
) -> Checked:
    """Returns the typed tree. Raises CompileError with all type errors found.

    `variables` are those of rules over objects; without them `device` is the only variable.
    `fields` are the fields of object types, by the name of the type.
    """
    checker = _Checker(environment=environment, fields=fields or {})
    checker.scopes.append({"device": types.DEVICE} if variables is None else variables)
    checker.visit(parsed.root)
    if checker.issues:
        raise parsed.source.failure(checker.issues)
    final = {
        number: checker.unifier.resolve(kind, free_as_dyn=True)
        for number, kind in checker.types.items()
    }
    return Checked(parsed=parsed, types=final, calls=checker.calls, constants=checker.constants)


@dataclass(slots=True)
class _Checker:
    environment: Environment
    fields: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    unifier: Unifier = field(default_factory=Unifier)
    types: dict[int, Type] = field(default_factory=dict)
    calls: dict[int, Resolution] = field(default_factory=dict)
    constants: dict[int, TypeValue] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    scopes: list[dict[str, Type]] = field(default_factory=list)

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(position=position, message=message))

    def _mismatch(self, node: Node, expected: Type, actual: Type) -> None:
        expected, actual = self.unifier.resolve(expected), self.unifier.resolve(actual)
        self._report(node.position, f"expected type '{expected}' but found '{actual}'")

    def visit(self, node: Node) -> Type:
        """Checks a node and all nodes below it; the type is `!error!` for a node without a type."""
        match node:
            case Literal():
                kind = _LITERAL_TYPES[node.value.__class__]
            case Ident():
                kind = self._ident(node)
            case Select():
                kind = self._select(node)
            case Call():
                kind = self._call(node)
            case ListLiteral():
                kind = self._list(node)
            case MapLiteral():
                kind = self._map(node)
            case Comprehension():
                kind = self._comprehension(node)
            case Message():
                self._undeclared(node.position, node.name)
                kind = types.ERROR
        self.types[node.id] = kind
        return kind

    # Names and fields

    def _undeclared(self, position: int, name: str) -> None:
        self._report(position, f"undeclared reference to '{name}' (in container '')")

    def _lookup(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _ident(self, node: Ident) -> Type:
        name = node.name.removeprefix(".")
        kind = self._lookup(name)
        if kind is not None:
            return kind
        if name in TYPE_NAMES:
            self.constants[node.id] = TypeValue(name)
            return types.type_of(_type_named(name))
        self._undeclared(node.position, name)
        return types.ERROR

    def _select(self, node: Select) -> Type:
        name = None if node.test_only else _qualified_name(node)
        if name in _QUALIFIED_TYPES and self._lookup(name.split(".", 1)[0]) is None:
            self.constants[node.id] = TypeValue(name)
            return types.type_of(_QUALIFIED_TYPES[name])
        kind = self._field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else kind

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        """The type of a field. Parity: cel.md 2, first rule."""
        holder = self.unifier.resolve(self.visit(operand))
        is_optional = holder.kind == "optional_type"
        if is_optional:
            holder = self.unifier.resolve(holder.params[0])
        if holder.kind == "map":
            kind = holder.params[1]
        elif holder == types.DEVICE or holder.kind in self.fields:
            known = self.fields.get(holder.kind, self.environment.device_fields)
            kind = known.get(name, types.ERROR)
            if kind is types.ERROR:
                self._report(node.position, f"undefined field '{name}'")
        elif holder in (types.QUANTITY, types.SEMVER):
            self._report(node.position, f"unexpected failed resolution of '{holder}'")
            kind = types.ERROR
        else:
            kind = types.DYN
            if holder.variable:
                self.unifier.assign([types.DYN], [holder])
            elif not types.is_wildcard(holder):
                message = f"type '{holder}' does not support field selection"
                self._report(node.position, message)
        return types.optional_of(kind) if is_optional or optional else kind

    # Calls

    def _call(self, node: Call) -> Type:
        if node.function == tree.OPTIONAL_SELECT:
            return self._optional_select(node)
        for argument in node.args:
            self.visit(argument)
        function, args, is_method = node.function.removeprefix("."), node.args, False
        if node.target is not None:
            prefix = _qualified_name(node.target)
            qualified = f"{prefix}.{function}"
            if prefix is not None and qualified in self.environment.functions:
                function = qualified
            else:
                self.visit(node.target)
                args, is_method = (node.target, *node.args), True
        overloads = self.environment.functions.get(function)
        if overloads is None:
            self._undeclared(node.position, function)
            return types.ERROR
        if function in (tree.LOGICAL_AND, tree.LOGICAL_OR):
            self._logical(args)
            candidates, result = overloads, types.BOOL
        else:
            candidates, result = self._resolve(node, overloads, args, is_method=is_method)
        self.calls[node.id] = Resolution(
            function=function, args=args, is_method=is_method, candidates=candidates
        )
        return self.unifier.resolve(result)

    def _optional_select(self, node: Call) -> Type:
        name = node.args[1]
        assert isinstance(name, Literal)
        self.visit(name)
        kind = self._field(node, node.args[0], str(name.value), optional=True)
        self.calls[node.id] = Resolution(
            function=node.function, args=node.args, is_method=False, candidates=()
        )
        return kind

    def _logical(self, args: tuple[Node, ...]) -> None:
        for argument in args:
            kind = self.types[argument.id]
            if not self.unifier.assign([kind], [types.BOOL]):
                self._mismatch(argument, types.BOOL, kind)

    def _resolve(
        self,
        node: Call,
        overloads: tuple[Overload, ...],
        args: tuple[Node, ...],
        *,
        is_method: bool,
    ) -> tuple[tuple[Overload, ...], Type]:
        """Returns the candidates and the result type, `dyn` if the candidates' types differ."""
        given = [self.types[argument.id] for argument in args]
        candidates: list[Overload] = []
        result: Type | None = None
        for overload in overloads:
            if overload.is_method != is_method or len(overload.params) != len(given):
                continue
            params, promised = self._instantiate(overload)
            if not self.unifier.assign(given, params):
                continue
            candidates.append(overload)
            own = self.unifier.resolve(promised)
            if result is None:
                result = own
            elif result.kind != "dyn" and own != result:
                result = types.DYN
        if result is None:
            self._report(node.position, self._no_overload(overloads[0], given, is_method))
            return (), types.ERROR
        return tuple(candidates), result

    def _instantiate(self, overload: Overload) -> tuple[list[Type], Type]:
        if not overload.variables:
            return list(overload.params), overload.result
        fresh = {name: self.unifier.fresh() for name in overload.variables}
        params = [_substitute(param, fresh) for param in overload.params]
        return params, _substitute(overload.result, fresh)

    def _no_overload(self, overload: Overload, types: list[Type], is_method: bool) -> str:
        shown = [str(self.unifier.resolve(kind, free_as_dyn=True)) for kind in types]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if is_method else f"({', '.join(shown)})"
        return f"found no matching overload for '{overload.function}' applied to '{applied}'"

    # Literals and folds

    def _joined(self, common: Type | None, element: Type) -> Type:
        """The common type of a literal's elements so far; `dyn` if they have no common type."""
        if common is None:
            return element
        return self.unifier.join(common, element) or types.DYN

    def _optional_part(self, node: Node, element: Type, *, optional: bool) -> Type:
        if not optional:
            return element
        resolved = self.unifier.resolve(element)
        if resolved.kind == "optional_type":
            return resolved.params[0]
        if not types.is_wildcard(resolved):
            self._mismatch(node, types.optional_of(element), element)
        return element

    def _list(self, node: ListLiteral) -> Type:
        common: Type | None = None
        for index, element in enumerate(node.elements):
            kind = self.visit(element)
            kind = self._optional_part(element, kind, optional=index in node.optional)
            common = self._joined(common, kind)
        return types.list_of(self.unifier.fresh() if common is None else common)

    def _map(self, node: MapLiteral) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._joined(keys, self.visit(entry.key))
            kind = self.visit(entry.value)
            kind = self._optional_part(entry.value, kind, optional=entry.optional)
            values = self._joined(values, kind)
        if keys is None or values is None:
            return types.map_of(self.unifier.fresh(), self.unifier.fresh())
        return types.map_of(keys, values)

    def _comprehension(self, node: Comprehension) -> Type:
        over = self.unifier.resolve(self.visit(node.range))
        accumulated = self.visit(node.init)
        first, second = self._loop_variables(node, over)
        self.scopes.append({node.accumulator: accumulated})
        loop = {node.variable: first}
        if node.second_variable:
            loop = {node.variable: first, node.second_variable: second}
        self.scopes.append(loop)
        self._expect(node.condition, types.BOOL)
        self._expect(node.step, accumulated)
        self.scopes.pop()
        kind = self.visit(node.result)
        self.scopes.pop()
        return self.unifier.resolve(kind)

    def _expect(self, node: Node, expected: Type) -> None:
        kind = self.visit(node)
        if not self.unifier.assign([kind], [expected]):
            self._mismatch(node, expected, kind)

    def _loop_variables(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            element = over.params[0]
            return (types.INT, element) if node.second_variable else (element, element)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.variable:
            self.unifier.assign([types.DYN], [over])
            return types.DYN, types.DYN
        if over.kind in ("dyn", "!error!"):
            return types.DYN, types.DYN
        message = (
            f"expression of type '{over}' cannot be range of a comprehension"
            " (must be list, map, or dynamic)"
        )
        self._report(node.range.position, message)
        return types.ERROR, types.ERROR


def _type_named(name: str) -> Type:
    if name == "list":
        return types.list_of(types.DYN)
    if name == "map":
        return types.map_of(types.DYN, types.DYN)
    return Type(name)


def _qualified_name(node: Node) -> str | None:
    """The text `a.b.c` of a chain of plain selections that begins with a name, else None."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name.removeprefix("."))
    return ".".join(reversed(parts))


def _substitute(type_: Type, fresh: dict[str, Type]) -> Type:
    if type_.variable:
        return fresh[type_.variable]
    if not type_.params:
        return type_
    return Type(type_.kind, tuple(_substitute(param, fresh) for param in type_.params))
