"""Consumable capacity: the amount that a request consumes, and whether it fits.

Parity: allocator.md 8. `Requested` is the amount that a claim requests. With quirk q20 a check may
enlarge it, so it is the only mutable value here; it exists as long as the allocator of an attempt.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.devices.model import Capacity, CapacityPolicy
from app.domain.values import quantity
from app.domain.values.quantity import Quantity, QuantityFormat
from app.domain.values.texts import notation


@dataclass(slots=True, kw_only=True, eq=False)
class Requested:
    """An amount that a claim requests. `may_grow` is true for an amount in decimal form.

    `has_grown` is true once it differs from what the claim requests.
    """

    amount: Quantity
    has_grown: bool = False

    @property
    def may_grow(self) -> bool:
        """Whether the amount can grow: upstream shares only decimal forms by reference."""
        return not self.amount.compact

    def grow(self, by: int) -> None:
        """Adds nanos to the amount in place (quirk q20)."""
        self.has_grown = True
        nanos = self.amount.nanos + by
        self.amount = Quantity(
            nanos=nanos,
            mantissa=nanos,
            exponent=-9,
            format=self.amount.format,
            compact=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityShortage:
    """The capacity for which a device cannot be taken.

    `needed` is None where the device does not publish it, `free` where the request policy does not
    allow the needed amount, and otherwise what is left of the capacity, in nanos.
    """

    name: str
    needed: Quantity | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A consumed amount; `source` is set when it refers to the requested amount."""

    value: Quantity
    source: Requested | None = None


def amount_of(requested: Requested | None, capacity: Capacity) -> Amount:
    """The amount that one request consumes of one capacity. Parity: allocator.md 8.1."""
    policy = capacity.policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return Amount(value=policy.default)
        return Amount(value=capacity.value)
    if policy is None:
        return Amount(value=requested.amount)
    wanted = requested.amount
    if policy.ranged and policy.minimum is not None:
        if wanted.nanos < policy.minimum.nanos:
            return Amount(value=policy.minimum)
        if policy.step is None:
            return Amount(value=wanted, source=requested if requested.may_grow else None)
        return Amount(value=_stepped(wanted, policy.minimum, policy.step))
    for valid in policy.valid_values or ():
        if wanted.nanos <= valid.nanos:
            return Amount(value=valid)
    if policy.valid_values:
        return Amount(value=wanted)
    return Amount(value=wanted, source=requested if requested.may_grow else None)


def violates(amount: Quantity, policy: CapacityPolicy | None) -> bool:
    """Whether the amount breaks the policy. Parity: allocator.md 8.2."""
    if policy is None:
        return False
    if policy.default is not None and quantity.identical(amount, policy.default):
        return False
    if policy.ranged:
        if policy.maximum is not None and amount.nanos > policy.maximum.nanos:
            return True
        if policy.step is None:
            return False
        compared = amount
        if policy.maximum is not None and not policy.maximum.compact:
            compared = quantity.to_decimal(amount)
        minimum = 0 if policy.minimum is None else quantity.round_up(policy.minimum)
        step = quantity.round_up(policy.step)
        if step == 0:
            return True
        return (quantity.round_up(compared) - minimum) % step != 0
    if policy.valid_values:
        return all(amount.nanos != valid.nanos for valid in policy.valid_values)
    return False


def amounts(
    requested: Mapping[str, Requested], capacity: Mapping[str, Capacity]
) -> Mapping[str, Amount]:
    """The consumed amount of each capacity of a device, including those not requested."""
    return {name: amount_of(requested.get(name), own) for name, own in capacity.items()}


def asks_for_unknown(
    requested: Mapping[str, Requested], capacity: Mapping[str, Capacity]
) -> str | None:
    """The first requested capacity that the device does not have, or None."""
    return next((name for name in sorted(requested) if name not in capacity), None)


def shortage(
    requested: Mapping[str, Requested],
    capacity: Mapping[str, Capacity],
    aggregated: Mapping[str, int] | None,
    allocating: Mapping[str, int] | None,
    *,
    grows: bool,
) -> CapacityShortage | None:
    """The first requested capacity that the device lacks, or None. Parity: allocator.md 8.2.

    With `grows` (quirk q20) the check enlarges the requested amount.
    """
    if not requested and not aggregated and not allocating:
        # The usual case of an explanation, which asks this for every device of a cluster.
        for own in capacity.values():
            if own.policy is not None:
                break
        else:
            return None
    unknown = asks_for_unknown(requested, capacity)
    if unknown is not None:
        return CapacityShortage(name=unknown)
    for name, own in capacity.items():
        amount = amount_of(requested.get(name), own)
        if violates(amount.value, own.policy):
            return CapacityShortage(name=name, needed=amount.value)
        total = amount.value.nanos
        held = None if aggregated is None else aggregated.get(name)
        if held is not None:
            total += held
        further = None if allocating is None else allocating.get(name)
        if further is not None:
            total += further
            if grows and held is None and amount.source is not None:
                amount.source.grow(further)
        if total > own.value.nanos:
            free = max(0, own.value.nanos - (held or 0) - (further or 0))
            return CapacityShortage(name=name, needed=amount.value, free=free)
    return None


def shortages(
    requested: Mapping[str, Requested],
    capacity: Mapping[str, Capacity],
    aggregated: Mapping[str, int] | None,
    allocating: Mapping[str, int] | None,
) -> Iterator[CapacityShortage]:
    """Every requested capacity that the device lacks, that of `shortage` first."""
    wanted, rest = dict(requested), dict(capacity)
    while (short := shortage(wanted, rest, aggregated, allocating, grows=False)) is not None:
        yield short
        wanted.pop(short.name, None)
        rest.pop(short.name, None)


def lacking(short: CapacityShortage, own: Capacity, requested: Requested | None) -> tuple[str, str]:
    """The needed, free and published amounts of a capacity, and why that amount is needed.

    All have the notation of the published amount. The second text is empty where the amount is
    what a claim requests, or all that the device has.
    """
    assert short.needed is not None, "the device publishes the capacity"
    assert short.free is not None, "the policy allows the amount"
    parts = [short.needed.nanos, short.free, own.value.nanos]
    parts += [] if requested is None else [requested.amount.nanos]
    needed, free, total, *wanted = notation.alike(parts, own.value.format)
    text = f"capacity {short.name}: needs {needed}, {free} of {total} is free"
    return text, _origin(requested, own, wanted[0] if wanted else "")


def against_policy(short: CapacityShortage, own: Capacity) -> str:
    """An amount that the request policy does not allow, beside those that it allows."""
    assert short.needed is not None, "the device publishes the capacity"
    assert own.policy is not None, "a policy refuses the amount"
    limits = [one.nanos for one in _limits(own.policy)]
    needed, *allowed = notation.alike([short.needed.nanos, *limits], own.value.format)
    text = f"capacity {short.name}: {needed} is not allowed by the request policy"
    words = _allowed(own.policy, allowed)
    return f"{text} ({words})" if words else text


def policy_note(requested: Requested | None, capacity: Capacity) -> str:
    """The steps by which the request policy changes the requested amount; empty when it does not.

    For an amount that the policy does not allow, the amounts that it allows, as they are published.
    """
    policy = capacity.policy
    if policy is not None and violates(amount_of(requested, capacity).value, policy):
        return _allowed(policy, list(map(str, _limits(policy))))
    return _origin(requested, capacity, "" if requested is None else str(requested.amount))


def _origin(requested: Requested | None, capacity: Capacity, wanted: str) -> str:
    """The reason why another amount is needed than is requested, which is written `wanted`."""
    policy = capacity.policy
    if policy is None:
        return ""
    needed = amount_of(requested, capacity).value.nanos
    if requested is None:
        is_default = policy.default is not None and needed == policy.default.nanos
        return "nothing is requested, so the policy's default counts" if is_default else ""
    if needed == requested.amount.nanos:
        return ""
    return f"{wanted} is requested and rounded up by the request policy"


def most_allowed(left: int, policy: CapacityPolicy | None) -> int:
    """The largest amount, in nanos, of what is left that a policy allows; 0 if there is none."""
    if policy is None:
        return max(0, left)
    if policy.valid_values and not policy.ranged:
        return max((valid.nanos for valid in policy.valid_values if valid.nanos <= left), default=0)
    if policy.maximum is not None:
        left = min(left, policy.maximum.nanos)
    minimum = 0 if policy.minimum is None else policy.minimum.nanos
    if left < minimum:
        return 0
    if policy.step is not None and policy.step.nanos > 0:
        left -= (left - minimum) % policy.step.nanos
    return max(0, left)


def _limits(policy: CapacityPolicy) -> list[Quantity]:
    """The amounts that a policy names as allowed: its values, or minimum, maximum and step."""
    if policy.valid_values and not policy.ranged:
        return list(policy.valid_values)
    limits = (policy.minimum, policy.maximum, policy.step)
    return [one for one in limits if one is not None]


def _allowed(policy: CapacityPolicy, texts: Sequence[str]) -> str:
    """The amounts that a policy allows, for people; `texts` are those of `_limits`."""
    if policy.valid_values and not policy.ranged:
        return f"allowed: {', '.join(texts)}"
    words = (
        (policy.minimum, "at least"),
        (policy.maximum, "at most"),
        (policy.step, "in steps of"),
    )
    named = [word for limit, word in words if limit is not None]
    parts = [f"{word} {text}" for word, text in zip(named, texts, strict=True)]
    return f"allowed: {', '.join(parts)}" if parts else ""


def shown(nanos: int) -> str:
    """The readable text of an amount in nanos: in binary units for multiples of Mi."""
    binary = nanos and nanos % (2**20 * 10**9) == 0
    return str(
        Quantity(
            nanos=nanos,
            mantissa=nanos,
            exponent=-9,
            format=QuantityFormat.BINARY_SI if binary else QuantityFormat.DECIMAL_SI,
            compact=False,
        )
    )


def _stepped(wanted: Quantity, minimum: Quantity, step: Quantity) -> Quantity:
    """The smallest minimum plus multiple of step that covers `wanted`, on whole units."""
    base = quantity.round_up(minimum)
    width = quantity.round_up(step)
    if width == 0:
        return wanted
    distance = quantity.wrap_int64(quantity.round_up(wanted) - base)
    steps = abs(distance) // abs(width)
    if (distance < 0) != (width < 0):
        steps = -steps
    if distance - steps * width:
        steps += 1
    total = quantity.wrap_int64(base + quantity.wrap_int64(steps * width))
    return quantity.from_integer(total, QuantityFormat.BINARY_SI)
