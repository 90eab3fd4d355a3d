"""Compares the amounts in the causes of single devices with those that the model counts."""

import re
from collections.abc import Iterator
from fractions import Fraction

from tests.truth.facts import Published, amount, needs
from tests.truth.waiting.model import Model, Wish

_AMOUNT = r"(?:about )?-?\d[\d.]*[a-zA-Z]*"
_CAPACITY = re.compile(
    rf"capacity (\S+): needs ({_AMOUNT}), ({_AMOUNT}) of ({_AMOUNT}) is free"
    rf"(?:.*\(({_AMOUNT}) is requested and rounded up)?"
)
_POLICY = re.compile(rf"capacity (\S+): ({_AMOUNT}) is not allowed.*\(allowed: (.*)\)$")
_COUNTER = re.compile(
    rf"counter (\S+) of set (\S+?)(?: in (\S+))?: needs ({_AMOUNT}), ({_AMOUNT}) is left"
)


def units(texts: list[str]) -> set[str]:
    """The units of amounts; zero has none."""
    return {one.removeprefix("about ").lstrip("-0123456789.") for one in texts if one != "0"}


def is_amount(text: str, number: Fraction) -> bool:
    """Whether a text is an amount: exactly, or rounded at its last digit where it says so."""
    near = amount(text.removeprefix("about "))
    if not text.startswith("about "):
        return near == number
    digits = text.removeprefix("about ").rstrip("kKMGTPEinum")
    unit = amount("1" + text.removeprefix("about ").lstrip("-0123456789."))
    return abs(near - number) <= unit / 10 ** len(digits.partition(".")[2]) / 2


def differences(model: Model, wish: Wish, device: Published, cause: str, text: str) -> Iterator:
    """The amounts of one cause that are not as counted, or not in one unit."""
    if cause == "capacity":
        yield from _capacity(model, wish, device, text)
    elif cause == "capacity-policy":
        yield from _policy(model, wish, device, text)
    elif cause == "counters":
        yield from _counters(model, device, text)


def _same(text: str, shown: list[str], counted: list[Fraction]) -> Iterator[str]:
    pairs = zip(shown, counted, strict=True)
    if not all(is_amount(one, number) for one, number in pairs):
        yield f"said {text!r}, counted {[float(one) for one in counted]}"
    if len(units(shown)) > 1:
        yield f"{text!r} has several units"


def _capacity(model: Model, wish: Wish, device: Published, text: str) -> Iterator[str]:
    said = _CAPACITY.search(text)
    if said is None:
        yield f"no amounts in {text!r}"
        return
    for name, published in sorted((device.tree.get("capacity") or {}).items()):
        drawn, total = model.drawn(wish, name, published), amount(published["value"])
        held = model.consumed_of(device, name)
        if drawn is None or drawn + held <= total:
            continue
        if said[1] != name:
            yield f"said {text!r}, counted {name}"
            return
        shown, counted = list(said.group(2, 3, 4)), [drawn, max(total - held, Fraction(0)), total]
        asked = wish.capacity.get(name)
        if (said[5] is not None) != (asked is not None and asked != drawn):
            yield f"said {text!r}, counted {drawn} for {asked}"
        if said[5] is not None and asked is not None:
            shown, counted = [*shown, said[5]], [*counted, asked]
        yield from _same(text, shown, counted)
        return


def _policy(model: Model, wish: Wish, device: Published, text: str) -> Iterator[str]:
    said = _POLICY.search(text)
    if said is None:
        yield f"no amounts in {text!r}"
        return
    policy = device.tree["capacity"][said[1]]["requestPolicy"]
    limits = policy.get("validRange") or {}
    allowed = policy.get("validValues") or [limits[one] for one in ("min", "max", "step")]
    shown = re.findall(rf"(?:^|, | )({_AMOUNT})(?=,|$)", said[3])
    asked = wish.capacity[said[1]]
    if asked <= max(amount(one) for one in allowed):
        yield f"said {text!r}, counted {asked} of {allowed}"
    # An amount that is refused may have been rounded up before.
    if amount(said[2].removeprefix("about ")) < asked and not said[2].startswith("about"):
        yield f"said {text!r}, counted {asked}"
    if len(shown) != len(allowed):
        yield f"said {text!r}, counted {allowed}"
        return
    yield from _same(text, shown, [amount(one) for one in allowed])
    if len(units([said[2], *shown])) > 1:
        yield f"{text!r} has several units"


def _counters(model: Model, device: Published, text: str) -> Iterator[str]:
    left = model.facts.left(device.id[:2])
    counted = {
        (counter, group): (drawn, left[group, counter])
        for (group, counter), drawn in needs(device).items()
        if drawn > left[group, counter]
    }
    said = {one[:2]: one[3:] for one in _COUNTER.findall(text)}
    if counted and said.keys() != counted.keys():
        yield f"said {text!r}, counted {counted}"
        return
    for place, numbers in counted.items():
        yield from _same(text, list(said[place]), list(numbers))
    pools = {one[2] for one in _COUNTER.findall(text) if one[2]}
    if said and pools != {"/".join(device.id[:2])}:
        yield f"said {text!r}, counted pool {device.id[:2]}"
