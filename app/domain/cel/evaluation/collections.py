"""Code of loops that make a list or a map: `map`, `filter`, `transformList`, `transformMap`, ….

These loops are folds whose step appends to the accumulator. A literal fold would copy the
accumulator in each round; here it grows in place, with the same values, errors and charges as the
fold (Parity: cel.md 1 and 5.2). An error in the accumulator does not end the loop.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.domain.cel.evaluation.functions import no_such_overload
from app.domain.cel.evaluation.paths import charge
from app.domain.cel.evaluation.state import Code, Evaluation, NodeCompiler
from app.domain.cel.syntax import tree
from app.domain.cel.syntax.tree import Call, Comprehension, Ident, ListLiteral, Node
from app.domain.cel.values.value import (
    NO_SUCH_OVERLOAD,
    CelError,
    Value,
    go_type,
    key_value,
    map_key,
    plain_text,
)

_LIST_BASE: Final = 10


def singles(over: Value) -> Iterable[Value] | CelError:
    """The values that a loop with one variable visits: elements of a list, or keys of a map."""
    if isinstance(over, tuple):
        return over
    if isinstance(over, dict):
        return [key_value(key) for key in over]
    return _not_iterable(over)


def pairs(over: Value) -> Iterable[tuple[Value, Value]] | CelError:
    """The pairs that a loop with two variables visits: indexes or keys, each with its value."""
    if isinstance(over, tuple):
        return enumerate(over)
    if isinstance(over, dict):
        return [(key_value(key), value) for key, value in over.items()]
    return _not_iterable(over)


def _not_iterable(over: Value) -> CelError:
    if isinstance(over, CelError):
        return over
    return CelError(f"got '{go_type(over)}', expected iterable type")


@dataclass(frozen=True, slots=True, kw_only=True)
class _CollectingStep:
    """The parts of a step such as `predicate ? accumulator + [element] : accumulator`."""

    predicate: Node | None
    function: str
    key: Node | None
    element: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """The code of the parts that all these loops have."""

    items: Code
    predicate: Code | None
    element: Code
    element_is_constant: bool
    result: Code
    accumulator: int
    variables: tuple[int, ...]


def compile_collection(compiler: NodeCompiler, node: Comprehension) -> Code | None:
    """Code of a loop that makes a list or map; None for any other loop."""
    parts = _recognised(node)
    if parts is None:
        return None
    items = compiler.compile(node.range)
    (accumulator,) = compiler.declare(node.accumulator)
    names = [node.variable, node.second_variable] if node.second_variable else [node.variable]
    variables = tuple(compiler.declare(*names))
    predicate = None if parts.predicate is None else compiler.compile(parts.predicate)
    element = compiler.compile(parts.element)
    constant = compiler.fold(parts.element) is not None
    compiler.leave()
    result = compiler.compile(node.result)
    compiler.leave()
    loop = _Loop(
        items=items,
        predicate=predicate,
        element=element,
        element_is_constant=constant,
        result=result,
        accumulator=accumulator,
        variables=variables,
    )
    if parts.function == tree.ADD:
        return _collect(loop)
    return _gather(loop) if parts.key is not None else _merge(loop)


def _recognised(node: Comprehension) -> _CollectingStep | None:
    step, predicate = node.step, None
    if isinstance(step, Call) and step.function == tree.CONDITIONAL:
        predicate, step, otherwise = step.args
        if not _is_accumulator(otherwise):
            return None
    if not isinstance(step, Call) or not step.args or not _is_accumulator(step.args[0]):
        return None
    if step.function == tree.ADD and isinstance(step.args[1], ListLiteral):
        element, key = step.args[1].elements[0], None
    elif step.function == tree.MAP_INSERT:
        element, key = step.args[-1], step.args[1] if len(step.args) > 2 else None
    else:
        return None
    return _CollectingStep(predicate=predicate, function=step.function, key=key, element=element)


def _is_accumulator(node: Node) -> bool:
    # Names in expressions cannot begin with "@", so this is the accumulator of a macro.
    return isinstance(node, Ident) and node.name == tree.ACCUMULATOR


class _Rounds:
    """One run of a loop: sets variables, evaluates the predicate, and keeps the first error."""

    __slots__ = ("ctx", "failed", "loop")

    def __init__(self, ctx: Evaluation, loop: _Loop) -> None:
        self.ctx = ctx
        self.loop = loop
        self.failed: CelError | None = None

    def enter(self, each: Value) -> bool:
        """Begins a round; returns False if the predicate leaves the accumulator unchanged."""
        ctx, loop = self.ctx, self.loop
        if len(loop.variables) == 2:
            assert isinstance(each, tuple)
            ctx.slots[loop.variables[0]], ctx.slots[loop.variables[1]] = each
        else:
            ctx.slots[loop.variables[0]] = each
        if loop.predicate is None:
            return True
        holds = loop.predicate(ctx)
        if holds is True:
            return True
        if holds is not False:
            self.failed = holds if isinstance(holds, CelError) else NO_SUCH_OVERLOAD
        return False

    def leave(self, made: Value) -> Value:
        """Ends the loop with its result, or with its error."""
        ctx, loop = self.ctx, self.loop
        ctx.slots[loop.accumulator] = made if self.failed is None else self.failed
        return loop.result(ctx)


def _over(loop: _Loop, ctx: Evaluation) -> Iterable[Value] | CelError:
    items = loop.items(ctx)
    return pairs(items) if len(loop.variables) == 2 else singles(items)


def _collect(loop: _Loop) -> Code:
    """Code of loops with the step `accumulator + [element]`."""

    def run(ctx: Evaluation) -> Value:
        over = _over(loop, ctx)
        if isinstance(over, CelError):
            return over
        rounds = _Rounds(ctx, loop)
        made: list[Value] = []
        for each in over:
            if not rounds.enter(each):
                continue
            charge(ctx, 1)
            value = loop.element(ctx)
            if not loop.element_is_constant:
                charge(ctx, _LIST_BASE)
            charge(ctx, 1)
            if rounds.failed is None:
                if isinstance(value, CelError):
                    rounds.failed = value
                else:
                    made.append(value)
        return rounds.leave(tuple(made))

    return run


def _gather(loop: _Loop) -> Code:
    """Code of `cel.@mapInsert(accumulator, key, element)`, with the first variable as key."""

    def run(ctx: Evaluation) -> Value:
        over = _over(loop, ctx)
        if isinstance(over, CelError):
            return over
        rounds = _Rounds(ctx, loop)
        made: dict[Value, Value] = {}
        for each in over:
            if not rounds.enter(each):
                continue
            charge(ctx, 1)
            if rounds.failed is not None:
                # A call with three arguments ends at the first failing argument.
                continue
            charge(ctx, 1)
            value = loop.element(ctx)
            charge(ctx, 1)
            if isinstance(value, CelError):
                rounds.failed = value
            else:
                rounds.failed = _insert(made, {map_key(ctx.slots[loop.variables[0]]): value})
        return rounds.leave(made)

    return run


def _merge(loop: _Loop) -> Code:
    """Code of loops with the step `cel.@mapInsert(accumulator, entries)`."""

    def run(ctx: Evaluation) -> Value:
        over = _over(loop, ctx)
        if isinstance(over, CelError):
            return over
        rounds = _Rounds(ctx, loop)
        made: dict[Value, Value] = {}
        for each in over:
            if not rounds.enter(each):
                continue
            charge(ctx, 1)
            value = loop.element(ctx)
            charge(ctx, 1)
            if rounds.failed is not None:
                continue
            if isinstance(value, dict):
                rounds.failed = _insert(made, value)
            elif isinstance(value, CelError):
                rounds.failed = value
            else:
                rounds.failed = no_such_overload(tree.MAP_INSERT, (made, value))
        return rounds.leave(made)

    return run


def _insert(made: dict[Value, Value], added: dict[Value, Value]) -> CelError | None:
    for key, value in added.items():
        if key in made:
            return CelError(f"insert failed: key {plain_text(key)} already exists")
        made[key] = value
    return None
