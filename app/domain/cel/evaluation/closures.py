"""Compilation of a typed tree to code: one closure for each node, with constant folding.

Folded nodes are literals, literals of folded parts, conversions of a folded value, names of types
and `x in []` (Parity: cel.md 5, introduction). Conversions of constants run here, so a failing one
makes the expression unusable.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from app.domain.cel.checking.checker import Checked, Resolution
from app.domain.cel.cost import charges
from app.domain.cel.environment import Environment
from app.domain.cel.evaluation import calls, functions, loops, paths
from app.domain.cel.evaluation.paths import PathStep
from app.domain.cel.evaluation.state import Code, Constant, Evaluation, Wrap
from app.domain.cel.library.texts import compile_pattern
from app.domain.cel.syntax import tree
from app.domain.cel.syntax.issues import CompileError
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
from app.domain.cel.values.conversions import CONVERSIONS
from app.domain.cel.values.value import CelError, QuantityValue, Value, map_key
from app.domain.values.regular_expressions import Pattern

_SET_KINDS: Final = (bool, int, float, str)
_EAGER: Final = frozenset({"size", "isSorted", "sum", "min", "max"})
"""The functions other than operators that evaluate all arguments even with several candidates."""


@dataclass(slots=True, kw_only=True)
class Compiler:
    """The compiler of one tree. `wrap`, if set, gets the code of every node and may replace it."""

    checked: Checked
    environment: Environment
    wrap: Wrap | None = None
    scopes: list[dict[str, int]] = field(default_factory=list)
    slots: int = 0
    folded: dict[int, Constant | None] = field(default_factory=dict)

    def compile(self, node: Node) -> Code:
        """Returns the code of a node. It uses few frames: the tree may be `DEPTH_MAX` deep."""
        constant = self.fold(node)
        if constant is not None:
            code = _constant_code(constant.value)
        else:
            match node:
                case Select() if node.test_only:
                    code = self._presence(node)
                case Ident() | Select():
                    code = self.path(node, start_charged=True)
                case Call():
                    code = self._call(node, self.checked.calls[node.id])
                case ListLiteral():
                    code = self._list(node)
                case MapLiteral():
                    code = self._map(node)
                case Comprehension() if node.is_bind:
                    code = loops.compile_bind(self, node)
                case Comprehension():
                    code = loops.compile_fold(self, node)
                case Literal() | Message():
                    raise AssertionError("literals are folded and messages are refused")
        return code if self.wrap is None else self.wrap(node, code)

    # Folding

    def fold(self, node: Node) -> Constant | None:
        """The constant value of a node, or None."""
        if node.id not in self.folded:
            self.folded[node.id] = self._fold(node)
        return self.folded[node.id]

    def _fold(self, node: Node) -> Constant | None:
        match node:
            case Literal():
                return Constant(node.value)
            case Ident() | Select():
                named = self.checked.constants.get(node.id)
                return None if named is None else Constant(named)
            case ListLiteral() if not node.optional:
                return self._fold_list(node)
            case MapLiteral():
                return self._fold_map(node)
            case Call():
                return self._fold_call(node)
            case _:
                return None

    def _fold_list(self, node: ListLiteral) -> Constant | None:
        items: list[Value] = []
        for element in node.elements:
            folded = self.fold(element)
            if folded is None:
                return None
            items.append(folded.value)
        return Constant(tuple(items))

    def _fold_map(self, node: MapLiteral) -> Constant | None:
        entries: dict[Value, Value] = {}
        for entry in node.entries:
            key, value = self.fold(entry.key), self.fold(entry.value)
            if key is None or value is None or entry.optional:
                return None
            try:
                if map_key(key.value) in entries:
                    return None
            except TypeError:
                return None
            entries[map_key(key.value)] = value.value
        return Constant(entries)

    def _fold_call(self, node: Call) -> Constant | None:
        resolution = self.checked.calls[node.id]
        name, args = resolution.function, resolution.args
        if name in CONVERSIONS and len(args) == 1 and not resolution.is_method:
            argument = self.fold(args[0])
            if argument is None:
                return None
            convert, with_forms = self._bound(resolution)
            assert not with_forms
            converted = convert(argument.value)
            if isinstance(converted, CelError):
                raise CompileError(f"program instantiation failed: {converted.message}")
            return Constant(converted)
        if name == tree.IN:
            container = self.fold(args[1])
            if container is not None and container.value == ():
                return Constant(False)
        return None

    # Paths

    def path(self, node: Node, *, start_charged: bool) -> Code:
        """Code of a path, or of another node in the place of a path.

        `start_charged` is false in the branches of a conditional and inside `has()`, where the
        start has no cost.
        """
        steps: list[PathStep] = []
        while True:
            if self.fold(node) is not None:
                break
            if isinstance(node, Select) and not node.test_only:
                steps.append(PathStep(constant=node.field))
                node = node.operand
            elif isinstance(node, Call) and node.function in _STEP_CALLS:
                operand, key = self.checked.calls[node.id].args
                steps.append(self._step(key, optional=node.function != tree.INDEX))
                node = operand
            else:
                break
        steps.reverse()
        return self._path(node, steps, start_charged=start_charged)

    def _step(self, key: Node, *, optional: bool) -> PathStep:
        constant = self.fold(key)
        if constant is not None:
            return PathStep(constant=constant.value, optional=optional)
        is_path = isinstance(key, Ident | Select) and not _is_presence(key)
        is_path = is_path or (isinstance(key, Call) and key.function in _STEP_CALLS)
        return PathStep(key=self.compile(key), key_charge=0 if is_path else 1, optional=optional)

    def _path(self, start: Node, steps: list[PathStep], *, start_charged: bool) -> Code:
        if isinstance(start, Ident) and self.fold(start) is None:
            slot = self._slot(start.name)
            cost = 1 if start_charged else 0
            if slot is None:
                return _device_path(steps, cost)
            if not steps:
                return paths.compile_slot(slot, cost)
            if len(steps) == 1 and not steps[0].optional and isinstance(steps[0].constant, str):
                return paths.compile_slot_field(slot, steps[0].constant, cost + 1)
            return paths.compile_path(paths.compile_slot(slot, 0), steps, cost)
        if not steps:
            # This is not a path: a call, literal or macro has its own cost.
            return self.compile(start)
        is_conditional = isinstance(start, Call) and start.function == tree.CONDITIONAL
        cost = 1 if start_charged and not is_conditional else 0
        return paths.compile_path(self.compile(start), steps, cost)

    def _slot(self, name: str) -> int | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, *names: str) -> list[int]:
        """Opens a scope with a slot for each name."""
        numbers = list(range(self.slots, self.slots + len(names)))
        self.slots += len(names)
        self.scopes.append(dict(zip(names, numbers, strict=True)))
        return numbers

    def leave(self) -> None:
        """Closes the innermost scope."""
        self.scopes.pop()

    # Calls

    def _call(self, node: Call, resolution: Resolution) -> Code:
        name, args = resolution.function, resolution.args
        if name in _STEP_CALLS:
            return self.path(node, start_charged=True)
        if name in (tree.EQUALS, tree.NOT_EQUALS):
            return self._equality(args, negated=name == tree.NOT_EQUALS)
        if name == tree.IN and self._is_set(resolution):
            container = self.fold(args[1])
            assert container is not None
            assert isinstance(container.value, tuple)
            return calls.compile_membership_in_set(self.compile(args[0]), container.value)
        if name == tree.CONDITIONAL:
            return calls.compile_conditional(
                self.compile(args[0]), self._branch(args[1]), self._branch(args[2])
            )
        codes: list[Code] = []
        for argument in args:
            codes.append(self.compile(argument))  # a comprehension would add a frame
        return self._finished_call(resolution, codes)

    def _finished_call(self, resolution: Resolution, args: list[Code]) -> Code:
        match resolution.function:
            case tree.LOGICAL_AND:
                return calls.compile_and(args)
            case tree.LOGICAL_OR:
                return calls.compile_or(args)
            case tree.NOT_STRICTLY_FALSE:
                return calls.compile_not_strictly_false(args[0])
            case "or" | "orValue" if resolution.is_method and len(args) == 2:
                unwrap = resolution.function == "orValue"
                return calls.compile_fallback(args[0], args[1], unwrap=unwrap)
            case "matches" | "find" | "findAll":
                return self._pattern_call(resolution, args)
            case _:
                return self._plain_call(resolution, args)

    def _branch(self, node: Node) -> Code:
        """Code of a branch of a conditional, in which the start of a path has no cost."""
        is_path = isinstance(node, Ident) or (isinstance(node, Select) and not node.test_only)
        is_path = is_path or (isinstance(node, Call) and node.function in _STEP_CALLS)
        if not is_path or self.fold(node) is not None:
            return self.compile(node)
        code = self.path(node, start_charged=False)
        return code if self.wrap is None else self.wrap(node, code)

    def _equality(self, args: tuple[Node, ...], *, negated: bool) -> Code:
        right = self.fold(args[1])
        left = self.compile(args[0])
        if right is not None and isinstance(right.value, str) and self.wrap is None:
            return calls.compile_equality_with_text(left, right.value, negated=negated)
        return calls.compile_equality(left, self.compile(args[1]), negated=negated)

    def _is_set(self, resolution: Resolution) -> bool:
        container = self.fold(resolution.args[1])
        if container is None or resolution.single != "in_list":
            return False
        items = container.value
        return isinstance(items, tuple) and all(isinstance(item, _SET_KINDS) for item in items)

    def _pattern_call(self, resolution: Resolution, args: list[Code]) -> Code:
        """Code of a pattern search; a constant pattern is compiled here."""
        pattern = self.fold(resolution.args[1])
        if pattern is None or not isinstance(pattern.value, str):
            return self._plain_call(resolution, args)
        compiled = compile_pattern(pattern.value)
        if not isinstance(compiled, Pattern):
            raise CompileError(f"program instantiation failed: {compiled.message}")
        own = charges.rule(resolution.function, resolution.single)
        return calls.compile_pattern_call(
            resolution.function, args, compiled, pattern.value, own if own is not None else _one
        )

    def _plain_call(self, resolution: Resolution, args: list[Code]) -> Code:
        name = resolution.function
        code, with_forms = self._bound(resolution)
        own = charges.rule(name, resolution.single)
        last = self.fold(resolution.args[-1]) if args else None
        if last is not None and name in calls.NATIVE_COMPARISONS and last.value.__class__ is int:
            native = calls.NATIVE_COMPARISONS[name]
            assert isinstance(last.value, int)
            return calls.compile_comparison_with_int(code, native, args[0], last.value)
        if last is not None and name in _MADE and len(args) == 1 and own is not None:
            return _made(code(last.value), own((last.value,), None))
        eager = bool(resolution.single) or name in _EAGER or not name[0].isalpha()
        if with_forms:
            strict = len(args) > 2 or not (eager or len(args) == 1)
            return calls.compile_with_forms(code, args, strict=strict)
        is_work = name in _WORK
        if len(args) == 1:
            return calls.compile_unary(code, args[0], own, is_work=is_work)
        if len(args) == 2 and eager:
            return calls.compile_binary(code, args[0], args[1], own, is_work=is_work)
        return calls.compile_many(code, args, own, is_work=is_work)

    def _bound(self, resolution: Resolution) -> tuple[functions.Implementation, bool]:
        overloads = self.environment.functions[resolution.function]
        return functions.bind(resolution.function, resolution.candidates, overloads)

    # Literals

    def _list(self, node: ListLiteral) -> Code:
        elements: list[Code] = []
        for element in node.elements:
            elements.append(self.compile(element))  # a loop saves a frame for each level
        return loops.compile_list(elements, node.optional)

    def _map(self, node: MapLiteral) -> Code:
        entries: list[tuple[Code, Code, bool]] = []
        for entry in node.entries:
            key, value = self.compile(entry.key), self.compile(entry.value)
            entries.append((key, value, entry.optional))
        return loops.compile_map(entries)

    def _presence(self, node: Select) -> Code:
        """Code of `has(operand.field)`; the start of the path has no cost, the test costs 1."""
        shape = self._domain_shape(node.operand)
        if shape is not None:
            field_name, domain = shape
            return paths.compile_attribute_presence(
                domain, node.field, capacity=field_name == "capacity"
            )
        return paths.compile_presence(self.path(node.operand, start_charged=False), node.field)

    def _domain_shape(self, node: Node) -> tuple[str, str] | None:
        """The field and the domain of `device.attributes["domain"]` or capacity, else None."""
        if not (isinstance(node, Call) and node.function == tree.INDEX):
            return None
        held, key = self.checked.calls[node.id].args
        domain = self.fold(key)
        if domain is None or not isinstance(domain.value, str) or not isinstance(held, Select):
            return None
        root = held.operand
        if not isinstance(root, Ident) or self._slot(root.name) is not None:
            return None
        if held.test_only or held.field not in ("attributes", "capacity"):
            return None
        return held.field, domain.value


_STEP_CALLS: Final = frozenset({tree.INDEX, tree.OPTIONAL_INDEX, tree.OPTIONAL_SELECT})


def _is_presence(node: Node) -> bool:
    return isinstance(node, Select) and node.test_only


_WORK: Final = frozenset({"@in", "_+_", "sort", "flatten", "replace", "format"})
"""The functions whose work can exceed their cost."""

_MADE: Final = frozenset({"quantity", "semver"})


def _made(value: Value, cost: int) -> Code:
    """Code of `quantity(constant)` or `semver(constant)`.

    Each evaluation gets a new quantity, because its form may change during the evaluation.
    """
    if isinstance(value, QuantityValue):
        return calls.compile_made_constant(partial(QuantityValue, value.quantity), cost)
    return calls.compile_made_constant(lambda: value, cost)


def _one(args: object, result: object) -> int:
    return 1


def _constant_code(value: Value) -> Code:
    def constant(ctx: Evaluation) -> Value:
        return value

    return constant


def _device_path(steps: list[PathStep], start_cost: int) -> Code:
    """Code of a path from `device`; the most common shapes have their own closures."""
    keys = [step.constant for step in steps if step.key is None]
    plain = len(keys) == len(steps) and not any(step.optional for step in steps[:-1])
    if plain and keys == ["driver"] and not steps[0].optional:
        return paths.compile_driver(start_cost + 1)
    if plain and len(keys) == 3 and keys[0] in ("attributes", "capacity"):
        domain, name = keys[1], keys[2]
        if isinstance(domain, str) and isinstance(name, str):
            make = (
                paths.compile_optional_attribute if steps[2].optional else paths.compile_attribute
            )
            return make(domain, name, start_cost + 3, capacity=keys[0] == "capacity")
    return paths.compile_path(paths.device_code, steps, start_cost)
