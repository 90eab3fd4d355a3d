"""Section 8 of allocator.md, transcribed: consumable capacity."""

from __future__ import annotations

from app.domain.values import quantity
from app.domain.values.quantity import Quantity, QuantityFormat


def amount_of(asked, capacity):
    """8.1: the quantity, and the `Amount` it is by reference when checking can enlarge it."""
    policy = capacity.get("requestPolicy")
    if asked is None:
        if policy and policy.get("default") is not None:
            return read(policy["default"]), None
        return read(capacity["value"]), None
    wanted = asked.now
    if policy is None:
        return wanted, None
    by_reference = None if wanted.compact else asked
    within = policy.get("validRange")
    if within is not None and within.get("min") is not None:
        least = read(within["min"])
        if wanted.nanos < least.nanos:
            return least, None
        if within.get("step") is None:
            return wanted, by_reference
        base, width = whole(least), whole(read(within["step"]))
        steps = -((base - whole(wanted)) // width)
        return quantity.from_integer(base + steps * width, QuantityFormat.BINARY_SI), None
    values = policy.get("validValues")
    if values:
        for found in values:
            if wanted.nanos <= read(found).nanos:
                return read(found), None
        return wanted, None
    return wanted, by_reference


def violates(amount, policy):
    if policy is None:
        return False
    if policy.get("default") is not None and quantity.identical(amount, read(policy["default"])):
        return False
    within = policy.get("validRange")
    if within is not None:
        if within.get("max") is not None and amount.nanos > read(within["max"]).nanos:
            return True
        if within.get("step") is None:
            return False
        if within.get("max") is not None and not read(within["max"]).compact:
            amount = quantity.to_decimal(amount)
        return (whole(amount) - whole(read(within["min"]))) % whole(read(within["step"])) != 0
    values = policy.get("validValues")
    return bool(values) and all(read(found).nanos != amount.nanos for found in values)


def fits(amounts, device, aggregated, allocating, *, grows):
    """8.2; with `grows` the request may be enlarged (Q20)."""
    if any(name not in device.capacity for name in amounts):
        return False
    for name in sorted(device.capacity):
        capacity = device.capacity[name]
        amount, source = amount_of(amounts.get(name), capacity)
        if violates(amount, capacity.get("requestPolicy")):
            return False
        total = amount.nanos
        before = (aggregated or {}).get(name)
        now = (allocating or {}).get(name)
        if before is not None:
            total += before
        if now is not None:
            total += now
            if grows and before is None and source is not None:
                source.now = enlarged(source.now, now)
        if total > read(capacity["value"]).nanos:
            return False
    return True


def enlarged(amount, nanos):
    total = amount.nanos + nanos
    return Quantity(nanos=total, mantissa=total, exponent=-9, format=amount.format, compact=False)


def read(found):
    return quantity.from_json(found)


def whole(found):
    return quantity.round_up(found)
