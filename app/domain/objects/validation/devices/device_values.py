"""Validation of devices' attributes, capacities and policies. Parity: objects.md 7.3 and 7.4."""

import itertools
from collections.abc import Callable
from typing import Any

from app.domain.objects import profile as profiles
from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.go_form import attribute_in_go
from app.domain.values import quantity, semver
from app.domain.values.json_tree import JsonView
from app.domain.values.quantity import Quantity, QuantityError
from app.domain.values.semver import SemverError

TEXT_BYTES_MAX = 64
VALID_VALUES_MAX = 10
INTEGER_MAX = 2**63 - 1
SCALARS = ("int", "bool", "string", "version")
LISTS = ("ints", "bools", "strings", "versions")
VERSION_TEXT = "must be a string compatible with semver.org spec 2.0.0"
RANGE_TEXT = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the '
    "same time"
)


def attribute(value: Any, path: str) -> list[FieldError]:
    """Checks an attribute: exactly one value, with the type of its field."""
    tree = value if isinstance(value, dict) else {}
    kinds = [name for name in (*SCALARS, *LISTS) if tree.get(name) is not None]
    if len(kinds) != 1:
        shown = attribute_in_go(tree) if kinds else ""
        return [invalid(path, shown, "exactly one value must be specified")]
    name = kinds[0]
    place = f"{path}.{name}"
    if name in SCALARS:
        return _scalar(name, tree[name], place)
    items = tree[name] if isinstance(tree[name], list) else []
    if not items:
        return [required(place, "must not be empty if specified")]
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        errors += _scalar(name[:-1], item, f"{place}[{index}]")
    return errors


def values_in(value: Any) -> int:
    """The number of values of an attribute; each element of a list counts."""
    if not isinstance(value, dict):
        return 0
    return sum(
        len(values) if isinstance(values, list) else 1
        for name in (*SCALARS, *LISTS)
        if (values := value.get(name)) is not None
    )


def _scalar(name: str, value: Any, path: str) -> list[FieldError]:
    if name not in ("string", "version"):
        return []
    text = str(value)
    errors: list[FieldError] = []
    if len(text.encode()) > TEXT_BYTES_MAX:
        errors.append(too_long(path, TEXT_BYTES_MAX))
    if name == "version":
        try:
            semver.parse(text)
        except SemverError:
            errors.append(invalid(path, text, VERSION_TEXT))
    return errors


def quantity_errors(value: Any, path: str) -> list[FieldError]:
    """Checks a required quantity."""
    if value is None:
        return [required(path)]
    try:
        quantity.from_json(value)
    except QuantityError as problem:
        return [invalid(path, value, str(problem))]
    return []


def capacity(value: Any, path: str, *, shared_device: bool, context: Context) -> list[FieldError]:
    """Checks `{value, requestPolicy}`; a policy requires a device with allowMultipleAllocations."""
    tree = value if isinstance(value, dict) else {}
    errors = quantity_errors(tree.get("value"), f"{path}.value")
    policy = tree.get("requestPolicy")
    if policy is None or errors:
        return errors
    place = f"{path}.requestPolicy"
    if not shared_device:
        return [forbidden(place, "allowMultipleAllocations must be true")]
    try:
        return _policy(policy, quantity.from_json(tree["value"]), place, context)
    except QuantityError as problem:
        return [invalid(place, policy, str(problem))]


def _policy(policy: JsonView, total: Quantity, path: str, context: Context) -> list[FieldError]:
    values, bounds = policy.get("validValues"), policy.get("validRange")
    if values is not None and bounds is not None:
        return [forbidden(path, RANGE_TEXT)]
    chosen = policy.get("default")
    default = None if chosen is None else quantity.from_json(chosen)
    if values is not None:
        listed = values if isinstance(values, list) else []
        return _valid_values(listed, default, total, path)
    if bounds is not None:
        return _valid_range(bounds, default, total, path, context)
    return []


def _valid_values(
    values: list[Any], default: Quantity | None, total: Quantity, path: str
) -> list[FieldError]:
    place = f"{path}.validValues"
    errors: list[FieldError] = []
    if default is None:
        errors.append(required(f"{path}.default", "required when validValues is defined"))
    if len(values) > VALID_VALUES_MAX:
        return [*errors, too_many(place, len(values), VALID_VALUES_MAX)]
    options = [quantity.from_json(value) for value in values]
    if any(quantity.compare(left, right) > 0 for left, right in itertools.pairwise(options)):
        errors.append(invalid(place, values, "values must be sorted in ascending order"))
    seen: set[int] = set()
    for index, option in enumerate(options):
        at = f"{place}[{index}]"
        if quantity.compare(option, total) > 0:
            detail = f"option is larger than capacity value: {total}"
            errors.append(invalid(at, str(option), detail))
        whole = quantity.round_up(option)
        if whole in seen:
            errors.append(duplicate(at, str(whole)))
        seen.add(whole)
    if default is not None and not any(quantity.compare(default, item) == 0 for item in options):
        detail = "default value is not valid according to the requestPolicy"
        errors.append(invalid(place, str(default), detail))
    return errors


def _valid_range(
    bounds: JsonView, default: Quantity | None, total: Quantity, path: str, context: Context
) -> list[FieldError]:
    place = f"{path}.validRange"
    errors: list[FieldError] = []
    if default is None:
        errors.append(required(f"{path}.default", "required when validRange is defined"))
    low, high, step = (
        None if bounds.get(name) is None else quantity.from_json(bounds[name])
        for name in ("min", "max", "step")
    )
    if low is None:
        return [*errors, required(f"{place}.min", "required when validRange is defined")]
    more: Callable[[Quantity, Quantity], bool] = lambda left, right: (  # noqa: E731 - a table reads better with a short name
        quantity.compare(left, right) > 0
    )

    def wrong(name: str, value: Quantity, detail: str) -> None:
        errors.append(invalid(name, str(value), detail))

    if more(low, total):
        wrong(f"{place}.min", low, f"min is larger than capacity value: {total}")
    if default is not None and more(low, default):
        wrong(f"{place}.min", default, f"default is less than min: {low}")
    if high is not None:
        if more(low, high):
            wrong(f"{place}.max", low, f"min is larger than max: {high}")
        if more(high, total):
            wrong(f"{place}.max", high, f"max is larger than capacity value: {total}")
        if default is not None and more(default, high):
            wrong(f"{place}.max", default, f"default is more than max: {high}")
    if step is not None:
        errors += _step(step, low, high, default, total, path, context)
    return errors


def _step(
    step: Quantity,
    low: Quantity,
    high: Quantity | None,
    default: Quantity | None,
    total: Quantity,
    path: str,
    context: Context,
) -> list[FieldError]:
    place = f"{path}.validRange"
    zero = quantity.parse("0")
    if quantity.compare(step, zero) <= 0:
        return [invalid(f"{place}.step", str(step), "must be greater than zero")]
    errors: list[FieldError] = []
    named = ((f"{path}.default", default), (f"{place}.min", low), (f"{place}.max", high))
    if context.profile.follows(profiles.RANGE_BOUNDS):
        largest = quantity.from_integer(INTEGER_MAX)
        for name, value in (*named, (f"{place}.step", step)):
            if value is not None and quantity.compare(value, largest) > 0:
                detail = f"must not be larger than {INTEGER_MAX}"
                errors.append(invalid(name, str(value), detail))
        if errors:
            return errors
    first = quantity.add(low, step)
    if quantity.compare(first, total) > 0:
        detail = f"one step {first} is larger than capacity value: {total}"
        errors.append(invalid(f"{place}.step", str(step), detail))
    unit = quantity.round_up(step)
    for value in (default, high):
        if value is None or unit == 0:
            continue
        if (quantity.round_up(value) - quantity.round_up(low)) % unit:
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            errors.append(invalid(f"{place}.step", str(value), detail))
    return errors
