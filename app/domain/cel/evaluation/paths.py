"""Paths: a start followed by fields and indexes, evaluated step by step with presence.

Parity: cel.md 5.1. A step costs 1. A start that is a name or another expression costs 1 where it is
charged. `.?f` and `[?k]` without a value have no cost and end the path. The most common shapes,
which begin at `device` and have only constant steps, have their own closures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.cel.device import FIELDS, DeviceValue
from app.domain.cel.evaluation.state import Code, Evaluation
from app.domain.cel.values.value import (
    EMPTY_DOMAIN,
    NONE,
    CelError,
    DefaultingMap,
    OptionalValue,
    Uint,
    Value,
    map_key,
    no_such_key,
    plain_text,
    type_name,
)


class Missing:
    """The result of a look-up without a value; never a CEL value."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One field or index. `key` is the code of a computed key, `constant` a constant key."""

    constant: Value = None
    key: Code | None = None
    key_charge: int = 1
    optional: bool = False


def charge(ctx: Evaluation, amount: int) -> None:
    """Adds to the cost. Raises CostExceeded above the limit."""
    ctx.cost += amount
    if ctx.cost > ctx.limit:
        raise ctx.over(1)


def look_up(holder: Value, key: Value) -> Value | Missing:
    """Returns the result of a step: a value, MISSING, or an error."""
    match holder:
        case dict():
            try:
                value: Value | Missing = holder.get(map_key(key), MISSING)
            except TypeError:
                return MISSING
            if value is MISSING and holder.__class__ is DefaultingMap and isinstance(key, str):
                return EMPTY_DOMAIN
            return value
        case tuple():
            return _item(holder, key)
        case DeviceValue():
            return holder.field(key) if isinstance(key, str) and key in FIELDS else MISSING
        case _:
            return MISSING


def _item(items: tuple[Value, ...], key: Value) -> Value | Missing:
    index: int
    if key.__class__ is int or key.__class__ is Uint:
        assert isinstance(key, int)
        index = key
    elif isinstance(key, float) and key.is_integer():
        index = int(key)
    elif isinstance(key, float):
        return CelError(f"unsupported index value {plain_text(key)} in list")
    else:
        return CelError(f"unsupported index type '{type_name(key)}' in list")
    return items[index] if 0 <= index < len(items) else MISSING


def missing(holder: Value, key: Value) -> CelError:
    """The error of a step without a value."""
    if isinstance(holder, tuple):
        return CelError(f"index out of bounds: {plain_text(key)}")
    return no_such_key(key)


def compile_path(start: Code, steps: Sequence[PathStep], start_charge: int) -> Code:
    """Code of a path. `start_charge` is the cost of its start, charged at the end of the path."""
    if not steps:
        return _bare(start, start_charge)
    walked = tuple(steps)

    def walk(ctx: Evaluation) -> Value:
        holder = start(ctx)
        optional = False
        if holder.__class__ is OptionalValue:
            assert isinstance(holder, OptionalValue)
            if not holder.present:
                charge(ctx, start_charge)
                return NONE
            holder, optional = holder.value, True
        if holder.__class__ is not CelError:
            for step in walked:
                optional = optional or step.optional
                value = _take(ctx, holder, step, optional=optional)
                if value is MISSING:
                    holder = NONE
                    break
                holder = value
                if holder.__class__ is CelError:
                    break
            else:
                if optional:
                    holder = OptionalValue(holder)
        if start_charge:
            charge(ctx, start_charge)
        return holder

    return walk


def _bare(start: Code, start_charge: int) -> Code:
    if not start_charge:
        return start

    def run(ctx: Evaluation) -> Value:
        value = start(ctx)
        charge(ctx, start_charge)
        return value

    return run


def _take(ctx: Evaluation, holder: Value, step: PathStep, *, optional: bool) -> Value | Missing:
    """Evaluates one step with its charge; the result is MISSING only if the path is optional."""
    key = step.constant
    if step.key is not None:
        key = step.key(ctx)
        if isinstance(key, CelError):
            charge(ctx, step.key_charge)
            return key
    value = look_up(holder, key)
    if value is MISSING:
        if optional:
            return MISSING
        value = missing(holder, key)
    charge(ctx, step.key_charge)
    return value


def compile_presence(holder: Code, field: str) -> Code:
    """Code of `has(holder.field)`; the path before the field is charged by `holder`."""

    def run(ctx: Evaluation) -> Value:
        optional_value = holder(ctx)
        if optional_value.__class__ is OptionalValue:
            assert isinstance(optional_value, OptionalValue)
            if not optional_value.present:
                return False
            optional_value = optional_value.value
        if optional_value.__class__ is CelError:
            return optional_value
        present = look_up(optional_value, field)
        charge(ctx, 1)
        return present if isinstance(present, CelError) else present is not MISSING

    return run


# Closures for the most common shapes.


def device_code(ctx: Evaluation) -> Value:
    """The start of a path at the variable `device`."""
    return ctx.device


def compile_attribute(domain: str, name: str, cost: int, *, capacity: bool) -> Code:
    """Code of `device.attributes[domain].name`, or of `device.capacity[domain].name`."""
    absent = no_such_key(name)

    def attribute(ctx: Evaluation) -> Value:
        ctx.cost = total = ctx.cost + cost
        if total > ctx.limit:
            raise ctx.over(cost)
        inner = ctx.device.attributes.get(domain, EMPTY_DOMAIN)
        return inner.get(name, absent)  # type: ignore[attr-defined]  # domains hold maps

    def amount(ctx: Evaluation) -> Value:
        ctx.cost = total = ctx.cost + cost
        if total > ctx.limit:
            raise ctx.over(cost)
        inner = ctx.device.capacity.get(domain, EMPTY_DOMAIN)
        return inner.get(name, absent)  # type: ignore[attr-defined]  # domains hold maps

    return amount if capacity else attribute


def compile_optional_attribute(domain: str, name: str, cost: int, *, capacity: bool) -> Code:
    """Code of `device.attributes[domain].?name`; it costs 1 less without a value."""

    def run(ctx: Evaluation) -> Value:
        domains = ctx.device.capacity if capacity else ctx.device.attributes
        inner = domains.get(domain, EMPTY_DOMAIN)
        value = inner.get(name, MISSING)  # type: ignore[attr-defined]  # domains hold maps
        steps = cost - 1 if value is MISSING else cost
        ctx.cost = total = ctx.cost + steps
        if total > ctx.limit:
            raise ctx.over(steps)
        return NONE if value is MISSING else OptionalValue(value)

    return run


def compile_attribute_presence(domain: str, name: str, *, capacity: bool) -> Code:
    """Code of `has(device.attributes[domain].name)`."""

    def run(ctx: Evaluation) -> Value:
        ctx.cost = total = ctx.cost + 3
        if total > ctx.limit:
            raise ctx.over(3)
        domains = ctx.device.capacity if capacity else ctx.device.attributes
        return name in domains.get(domain, EMPTY_DOMAIN)  # type: ignore[operator]  # maps

    return run


def compile_driver(cost: int) -> Code:
    """Code of `device.driver`."""

    def run(ctx: Evaluation) -> Value:
        ctx.cost = total = ctx.cost + cost
        if total > ctx.limit:
            raise ctx.over(cost)
        return ctx.device.driver

    return run


def compile_slot_field(slot: int, name: str, cost: int) -> Code:
    """Code of `variable.name` for variables of loops and `cel.bind`."""
    absent = no_such_key(name)
    general = compile_path(compile_slot(slot, 0), [PathStep(constant=name)], cost - 1)

    def run(ctx: Evaluation) -> Value:
        holder = ctx.slots[slot]
        if holder.__class__ is not dict:
            return general(ctx)
        ctx.cost = total = ctx.cost + cost
        if total > ctx.limit:
            raise ctx.over(cost)
        return holder.get(name, absent)

    return run


def compile_slot(slot: int, cost: int) -> Code:
    """Code of a loop variable, bound variable or accumulator."""

    def run(ctx: Evaluation) -> Value:
        if cost:
            ctx.cost = total = ctx.cost + cost
            if total > ctx.limit:
                raise ctx.over(cost)
        return ctx.slots[slot]

    return run
