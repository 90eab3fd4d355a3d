"""Selectors that compare devices as published judge as a single evaluation does."""

from random import Random

import pytest

from app.domain import cel
from app.domain.devices import compiling
from app.domain.devices.cel_selectors import CelCompiler

EXPRESSIONS = (
    'device.driver == "a.com"',
    "device.allowMultipleAllocations",
    'device.attributes["a.com"].x == 1',
    'device.attributes["a.com"].?x.orValue(0) == 1 && device.driver != "b.com"',
    'has(device.attributes["b.com"].x) && device.attributes["b.com"].x == "1"',
    'device.attributes["a.com"].?v.hasValue() && device.attributes["a.com"].v.major() == 1',
    'device.capacity["a.com"].m.compareTo(quantity("1Gi")) >= 0 || device.driver == "b.com"',
    'device.attributes["a.com/x"].?y.orValue(true)',
    '"a.com" in device.attributes',
    'device.attributes["a.com"].exists(k, k == "x")',
    "true",
    'device.attributes["a.com"].?x.orValue(0) == 1 || device.attributes["a.com"].?v.hasValue()',
    'device.attributes["a.com"].?x.orValue(0) == 1 && "m" in device.capacity["a.com"]',
    'device.allowMultipleAllocations && device.attributes["a.com"].?x.orValue(1) == 1',
)
KEYED = [
    text
    for text in EXPRESSIONS
    if CelCompiler(detailed_errors=True).compile(text).published_key is not None
]
VALUES = (
    {"int": 1},
    {"int": 0},
    {"string": "1"},
    {"bool": True},
    {"version": "1.2.3"},
    {"version": "1.2"},
    {"ints": [1]},
    {"int": 1, "string": "1"},
    {"int": True},
    {},
)
NAMES = ("x", "v", "a.com/x", "b.com/x", "a.com/x/y", "a.com/v")
AMOUNTS = ("1Gi", "1024Mi", "2", 3)


def device(rng: Random):
    tree = {
        "name": "d",
        "allowMultipleAllocations": rng.random() < 0.5,
        "attributes": {name: rng.choice(VALUES) for name in NAMES if rng.random() < 0.35},
        "capacity": {
            name: {"value": rng.choice(AMOUNTS)}
            for name in ("m", "a.com/m", "b.com/m")
            if rng.random() < 0.5
        },
    }
    return compiling.device_of((rng.choice(("a.com", "b.com")), "p"), tree, "d")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_devices_compared_as_published_are_judged_as_alone(expression: str) -> None:
    rng = Random(f"selectors-{expression}")
    devices = [device(rng) for _ in range(600)]
    program = cel.compile_expression(expression)
    verdicts = CelCompiler(detailed_errors=True).compile(expression).judge(devices)
    alone = [program.evaluate(found.cel_input, hint=True) for found in devices]
    assert [(found.match, found.error) for found in verdicts] == [
        (found.match is True, found.error or "") for found in alone
    ]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_verdict_for_a_driver_holds_for_all_its_plain_devices(expression: str) -> None:
    rng = Random(f"drivers-{expression}")
    devices = [found for found in (device(rng) for _ in range(300)) if found.is_plain]
    selector = CelCompiler(detailed_errors=True).compile(expression)
    common = {found.id[0]: selector.judge_like(found) for found in devices}
    for found, verdict in zip(devices, selector.judge(devices), strict=True):
        assert common[found.id[0]] in (None, verdict)


@pytest.mark.parametrize("expression", KEYED)
def test_devices_whose_keys_are_known_are_judged_as_alone(expression: str) -> None:
    rng = Random(f"keys-{expression}")
    # Devices of a kind follow each other, as in a slice, also where their drivers differ.
    kinds = [found for found in (device(rng) for _ in range(150)) if found.is_plain]
    devices = [
        compiling.device_of((driver, "p"), {**found.tree, "name": name}, "d")
        for found in kinds
        for driver in ("a.com", "b.com")
        for name in ("d", "e")
    ]
    selector = CelCompiler(detailed_errors=True).compile(expression)
    assert selector.published_key is not None
    verdicts = selector.judge(devices, [selector.published_key(found) for found in devices])
    program = cel.compile_expression(expression)
    alone = [program.evaluate(found.cel_input, hint=True) for found in devices]
    assert [(found.match, found.error) for found in verdicts] == [
        (found.match is True, found.error or "") for found in alone
    ]


def test_plain_devices_are_those_that_surely_convert() -> None:
    rng = Random("plain")
    found = [device(rng) for _ in range(500)]
    assert {one.is_plain for one in found} == {True, False}
    assert all(one.cel_input.value.failure is None for one in found if one.is_plain)
