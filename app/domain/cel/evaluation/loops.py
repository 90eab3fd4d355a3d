"""Code of comprehensions, bound variables, and list and map literals.

Parity: cel.md 5.2. Upstream loops over a map in random order. Here the order is that of the
object or literal: it is deterministic, one of the possible orders, and agrees with all recorded
costs of loops that stop early.
"""

from collections.abc import Sequence
from typing import Final

from app.domain.cel.evaluation import collections
from app.domain.cel.evaluation.paths import charge
from app.domain.cel.evaluation.state import Code, Evaluation, NodeCompiler
from app.domain.cel.syntax.tree import Comprehension
from app.domain.cel.values.value import (
    CelError,
    OptionalValue,
    Value,
    map_key,
    plain_text,
    type_name,
)

_LIST_BASE: Final = 10
_MAP_BASE: Final = 30


def compile_bind(compiler: NodeCompiler, node: Comprehension) -> Code:
    """Code of `cel.bind(name, init, result)`; the empty loop has no cost."""
    init = compiler.compile(node.init)
    (slot,) = compiler.declare(node.accumulator)
    result = compiler.compile(node.result)
    compiler.leave()

    def run(ctx: Evaluation) -> Value:
        ctx.slots[slot] = init(ctx)
        return result(ctx)

    return run


def compile_fold(compiler: NodeCompiler, node: Comprehension) -> Code:
    """Code of a macro's loop."""
    if compiler.wrap is None:
        # A plain fold would copy the list or map in each round.
        collected = collections.compile_collection(compiler, node)
        if collected is not None:
            return collected
    items = compiler.compile(node.range)
    init = compiler.compile(node.init)
    (accumulator,) = compiler.declare(node.accumulator)
    names = [node.variable, node.second_variable] if node.second_variable else [node.variable]
    variables = compiler.declare(*names)
    condition = compiler.compile(node.condition)
    step = compiler.compile(node.step)
    compiler.leave()
    result = compiler.compile(node.result)
    compiler.leave()
    return _fold(items, init, condition, step, result, accumulator, variables)


def _fold(
    items: Code,
    init: Code,
    condition: Code,
    step: Code,
    result: Code,
    accumulator: int,
    variables: Sequence[int],
) -> Code:
    first, second = variables[0], variables[-1]
    paired = len(variables) == 2

    def run(ctx: Evaluation) -> Value:
        over = items(ctx)
        rounds = collections.pairs(over) if paired else collections.singles(over)
        if isinstance(rounds, CelError):
            return rounds
        slots = ctx.slots
        slots[accumulator] = init(ctx)
        for each in rounds:
            if paired:
                slots[first], slots[second] = each  # type: ignore[misc]  # pairs of values
            else:
                slots[first] = each
            if condition(ctx) is False:
                break
            slots[accumulator] = step(ctx)
        return result(ctx)

    return run


def compile_list(elements: Sequence[Code], optional: frozenset[int]) -> Code:
    """Code of a list literal, which ends at a failing element; the literal is charged anyway."""

    def run(ctx: Evaluation) -> Value:
        items: list[Value] = []
        failed: CelError | None = None
        for index, element in enumerate(elements):
            value = element(ctx)
            if isinstance(value, CelError):
                failed = value
                break
            if index in optional:
                if not isinstance(value, OptionalValue):
                    failed = CelError(
                        "cannot initialize optional list element from non-optional value"
                        f" {plain_text(value)}"
                    )
                    break
                if not value.present:
                    continue
                value = value.value
            items.append(value)
        charge(ctx, _LIST_BASE)
        return tuple(items) if failed is None else failed

    return run


def compile_map(entries: Sequence[tuple[Code, Code, bool]]) -> Code:
    """Code of a map literal, which ends at a failing entry; the literal is charged anyway."""

    def run(ctx: Evaluation) -> Value:
        made: dict[Value, Value] = {}
        failed: CelError | None = None
        for key_code, value_code, optional in entries:
            failed = _enter(ctx, made, key_code, value_code, optional=optional)
            if failed is not None:
                break
        charge(ctx, _MAP_BASE)
        return made if failed is None else failed

    return run


def _enter(
    ctx: Evaluation, made: dict[Value, Value], key_code: Code, value_code: Code, *, optional: bool
) -> CelError | None:
    key = key_code(ctx)
    if isinstance(key, CelError):
        return key
    value = value_code(ctx)
    if isinstance(value, CelError):
        return value
    if optional:
        if not isinstance(value, OptionalValue):
            shown = plain_text(value)
            return CelError(
                f"cannot initialize optional entry '{plain_text(key)}' from non-optional value"
                f" {shown}"
            )
        if not value.present:
            return None
        value = value.value
    try:
        is_repeated = map_key(key) in made
    except TypeError:
        return CelError(f"unsupported key type: {type_name(key)}")
    if is_repeated:
        return CelError(f"Failed with repeated key {plain_text(key)}")
    made[map_key(key)] = value
    return None
