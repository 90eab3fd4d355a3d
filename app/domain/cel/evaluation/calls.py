"""Code of calls: operators, functions, logic, conditionals, optional fallbacks.

Parity: cel.md 5.2 and "calls with failing arguments": a call with one or two arguments evaluates
all of them and is charged even if one fails; other calls end at the first failing argument, and are
charged only if it is the last one.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Final

from app.domain.cel.cost import charges
from app.domain.cel.cost.charges import Rule
from app.domain.cel.evaluation.functions import Implementation
from app.domain.cel.evaluation.paths import charge
from app.domain.cel.evaluation.state import Code, Evaluation
from app.domain.cel.library import quantities
from app.domain.cel.values import equality
from app.domain.cel.values.value import (
    NO_SUCH_OVERLOAD,
    CelError,
    OptionalValue,
    QuantityValue,
    Uint,
    Value,
    size,
)
from app.domain.values.regular_expressions import Pattern

_NUMBERS: Final = frozenset({int, Uint, float})
_NATIVE: Final = frozenset({bool, int, str, bytes})


def compile_and(operands: Sequence[Code]) -> Code:
    """Code of `a && b && …`: false if an operand is false, else the first error, else true."""
    if len(operands) == 2:
        left, right = operands

        def both(ctx: Evaluation) -> Value:
            first = left(ctx)
            if first is False:
                return False
            second = right(ctx)
            if second is False:
                return False
            if first is True and second is True:
                return True
            return _problem(first if first is not True else second)

        return both

    def every(ctx: Evaluation) -> Value:
        problem: CelError | None = None
        for operand in operands:
            answer = operand(ctx)
            if answer is False:
                return False
            if answer is not True and problem is None:
                problem = _problem(answer)
        return True if problem is None else problem

    return every


def compile_or(operands: Sequence[Code]) -> Code:
    """Code of `a || b || …`: true if an operand is true, else the first error, else false."""

    def some(ctx: Evaluation) -> Value:
        problem: CelError | None = None
        for operand in operands:
            answer = operand(ctx)
            if answer is True:
                return True
            if answer is not False and problem is None:
                problem = _problem(answer)
        return False if problem is None else problem

    return some


def _problem(value: Value) -> CelError:
    return value if isinstance(value, CelError) else NO_SUCH_OVERLOAD


def compile_conditional(condition: Code, accepted: Code, rejected: Code) -> Code:
    """Code of `condition ? accepted : rejected`."""

    def choose(ctx: Evaluation) -> Value:
        chosen = condition(ctx)
        if chosen is True:
            return accepted(ctx)
        if chosen is False:
            return rejected(ctx)
        return _problem(chosen)

    return choose


def compile_not_strictly_false(operand: Code) -> Code:
    """Code of the loop condition: the loop continues unless the value is false."""

    def run(ctx: Evaluation) -> Value:
        value = operand(ctx)
        charge(ctx, 1)
        return value is not False

    return run


def compile_equality(left: Code, right: Code, *, negated: bool) -> Code:
    """Code of `==` and `!=`."""

    def ask(ctx: Evaluation) -> Value:
        first = left(ctx)
        second = right(ctx)
        kind = first.__class__
        if kind in _NUMBERS:
            own = 1
        else:
            own = charges.equality_cost(first, second)
        ctx.cost = total = ctx.cost + own
        if total > ctx.limit:
            raise ctx.over(1)
        if kind is CelError:
            return first
        if second.__class__ is CelError:
            return second
        if kind is second.__class__ and kind in _NATIVE:
            return (first == second) is not negated
        answer = _equal(ctx, first, second)
        if negated:
            return answer is not True
        return answer

    return ask


def _equal(ctx: Evaluation, left: Value, right: Value) -> bool | CelError:
    if left.__class__ is QuantityValue and right.__class__ is QuantityValue:
        assert isinstance(left, QuantityValue)
        assert isinstance(right, QuantityValue)
        answer = equality.equal(left, right)
        if not isinstance(answer, CelError):
            quantities.compare(ctx.forms, left, right)
        return answer
    return equality.equal(left, right)


def compile_equality_with_text(left: Code, text: str, *, negated: bool) -> Code:
    """Code of `x == "text"`, the most common call."""
    length = len(text)

    def ask(ctx: Evaluation) -> Value:
        value = left(ctx)
        if value.__class__ is str:
            shorter = min(length, len(value))
            own = 1 if 0 < shorter <= 10 else charges.equality_cost(value, text)
            ctx.cost = total = ctx.cost + own
            if total > ctx.limit:
                raise ctx.over(1)
            return (value == text) is not negated
        charge(ctx, charges.equality_cost(value, text))
        if value.__class__ is CelError:
            return value
        answer = equality.equal(value, text)
        return answer is not True if negated else answer

    return ask


def compile_comparison_with_int(
    code: Implementation, native: Callable[[int, int], bool], left: Code, limit: int
) -> Code:
    """Code of comparisons such as `x > 3`: native for integers, by `code` for other kinds."""

    def ask(ctx: Evaluation) -> Value:
        value = left(ctx)
        ctx.cost = total = ctx.cost + 1
        if total > ctx.limit:
            raise ctx.over(1)
        if value.__class__ is int:
            return native(value, limit)
        return value if value.__class__ is CelError else code(value, limit)

    return ask


NATIVE_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def compile_made_constant(make: Callable[[], Value], cost: int) -> Code:
    """Code of a function of a constant whose result is known but has a cost: `semver("1.0.0")`."""

    def run(ctx: Evaluation) -> Value:
        ctx.cost = total = ctx.cost + cost
        if total > ctx.limit:
            raise ctx.over(1)
        return make()

    return run


def compile_membership_in_set(element: Code, items: tuple[Value, ...]) -> Code:
    """Code of `x in [constants]`: a set look-up without cost."""
    texts = frozenset(item for item in items if isinstance(item, str))
    others = tuple(item for item in items if not isinstance(item, str))

    def run(ctx: Evaluation) -> Value:
        searched = element(ctx)
        if searched.__class__ is str:
            return searched in texts
        if searched.__class__ is CelError:
            return searched
        unhashable = _UNHASHABLE.get(searched.__class__.__name__)
        if unhashable is not None:
            return unhashable
        return any(equality.equal(searched, item) is True for item in others)

    return run


_UNHASHABLE: Final = {
    name: CelError(f"internal error: runtime error: hash of unhashable type {shown}")
    for name, shown in (("Semver", "cel.Semver"), ("bytes", "types.Bytes"))
}


def compile_unary(
    code: Implementation, operand: Code, own: Rule | None, *, is_work: bool = False
) -> Code:
    """Code of a call with one argument.

    With `is_work`, here and below, sizes count as work that the cost does not include.
    """

    def run(ctx: Evaluation) -> Value:
        value = operand(ctx)
        if is_work:
            ctx.toil(size(value))
        answer = value if value.__class__ is CelError else code(value)
        ctx.cost = total = ctx.cost + (1 if own is None else own((value,), answer))
        if total > ctx.limit:
            raise ctx.over(1)
        return answer

    return run


def compile_binary(
    code: Implementation, left: Code, right: Code, own: Rule | None, *, is_work: bool = False
) -> Code:
    """Code of a call with two arguments, both of which are always evaluated."""

    def run(ctx: Evaluation) -> Value:
        first = left(ctx)
        second = right(ctx)
        answer: Value
        if first.__class__ is CelError:
            answer = first
        elif second.__class__ is CelError:
            answer = second
        else:
            if is_work:
                ctx.toil(size(first) + size(second))
            answer = code(first, second)
        ctx.cost = total = ctx.cost + (1 if own is None else own((first, second), answer))
        if total > ctx.limit:
            raise ctx.over(1)
        return answer

    return run


def compile_many(
    code: Implementation, args: Sequence[Code], own: Rule | None, *, is_work: bool = False
) -> Code:
    """Code of a call with other numbers of arguments, which ends at the first failing argument."""
    last = len(args) - 1

    def run(ctx: Evaluation) -> Value:
        values: list[Value] = []
        for index, argument in enumerate(args):
            value = argument(ctx)
            values.append(value)
            if value.__class__ is CelError:
                if index == last:
                    charge(ctx, 1 if own is None else own(values, value))
                return value
        answer = code(*values)
        if is_work:
            ctx.toil(size(values[0]) + size(answer))
        charge(ctx, 1 if own is None else own(values, answer))
        return answer

    return run


def compile_with_forms(code: Implementation, args: Sequence[Code], *, strict: bool) -> Code:
    """Code of a function on quantities that reads or records their forms; it costs 1.

    `strict` is false for one or two arguments with a single candidate: then all are evaluated.
    """

    def run(ctx: Evaluation) -> Value:
        values: list[Value] = []
        failed: Value = None
        for index, argument in enumerate(args):
            value = argument(ctx)
            values.append(value)
            if value.__class__ is CelError and failed is None:
                failed = value
                if strict and index < len(args) - 1:
                    return value
        charge(ctx, 1)
        return failed if failed is not None else code(ctx.forms, *values)

    return run


def compile_pattern_call(
    name: str, args: Sequence[Code], pattern: Pattern, constant: str, own: Rule
) -> Code:
    """Code of `matches`, `find` or `findAll` with a constant pattern, which is already compiled.

    If the text fails, the call ends without a charge (Parity: cel.md 5.2).
    """
    text, rest = args[0], args[2:]

    def run(ctx: Evaluation) -> Value:
        value = text(ctx)
        if value.__class__ is CelError:
            return value
        limit: Value = -1
        for argument in rest:
            limit = argument(ctx)
        answer: Value
        if isinstance(limit, CelError):
            answer = limit
        elif not isinstance(value, str) or limit.__class__ is not int:
            answer = NO_SUCH_OVERLOAD
        elif name == "matches":
            answer = pattern.found_in(value)
        elif name == "find":
            answer = pattern.first(value)
        else:
            assert isinstance(limit, int)
            answer = pattern.all(value, limit)
        charge(ctx, own((value, constant), answer))
        return answer

    return run


def compile_fallback(receiver: Code, alternative: Code, *, unwrap: bool) -> Code:
    """Code of `orValue` (with `unwrap`) and `or`, without cost; the alternative is lazy."""
    refused = CelError(f"no such overload: {'orValue' if unwrap else 'or'}")

    def run(ctx: Evaluation) -> Value:
        value = receiver(ctx)
        if value.__class__ is OptionalValue:
            assert isinstance(value, OptionalValue)
            if not value.present:
                return alternative(ctx)
            return value.value if unwrap else value
        return value if value.__class__ is CelError else refused

    return run
