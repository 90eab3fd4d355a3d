"""Masks over many devices give what evaluating each device gives."""

import random

import pytest

from app.domain import cel
from app.domain.cel.evaluation import reads

EXPRESSIONS = [
    "true",
    'device.driver == "d"',
    'device.attributes["d"].model == "a"',
    'has(device.attributes["d"].model) && device.attributes["d"].model == "a"',
    'device.attributes["d"].?model.orValue("b") == "b"',
    'device.attributes["d"][?"index"].orValue(7) > 2',
    '"model" in device.attributes["d"]',
    '"e" in device.attributes || device.attributes["e"].x == 1',
    'device.attributes["d"].size() > 1',
    'device.attributes["d"].exists(k, k == "model")',
    "device.attributes.exists(k, v, v.size() > 1)",
    'device.capacity["d"].memory.compareTo(quantity("2Gi")) > 0',
    'device.capacity["d"].memory.isInteger()',
    'cel.bind(d, device.attributes["d"], d.model == "a" || d.index == 1)',
    'cel.bind(m, device.attributes["d"].model, m == "a")',
    'cel.bind(m, device.attributes["d"].?model, true)',
    "device.attributes[device.driver].index == 1",
    "device.allowMultipleAllocations",
    "device == device",
    "has(device.attributes.none)",
    "has(device.attributes.d.model)",
    'device.attributes["d"].model.foo == 1',
    "[1, 2].exists(device, device == 1)",
    'device.attributes["d"].index / device.attributes["d"].index == 1',
]


def _random_device(chooser):
    attributes = {}
    if chooser.random() < 0.8:
        attributes["model"] = chooser.choice([{"string": "a"}, {"string": "b"}, {"int": 1}])
    if chooser.random() < 0.8:
        attributes["d/index"] = chooser.choice(
            [{"int": 0}, {"int": 1}, {"bool": True}, {"ints": [1]}]
        )
    if chooser.random() < 0.2:
        attributes["e/x"] = {"int": 1}
    if chooser.random() < 0.05:
        attributes["bad"] = {}
    items = list(attributes.items())
    chooser.shuffle(items)
    memory = chooser.choice(["1Gi", "1024Mi", "1.5Gi", "3Gi"])
    return cel.DeviceInput(
        driver=chooser.choice(["d", "d", "other"]),
        attributes=dict(items),
        capacity={"memory": {"value": memory}} if chooser.random() < 0.8 else {},
        allow_multiple_allocations=chooser.random() < 0.3,
    )


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_mask_equals_one_by_one_evaluation(expression):
    chooser = random.Random(expression)
    devices = [_random_device(chooser) for _ in range(200)]
    program = cel.compile_expression(expression)
    found = cel.mask(program, devices)
    single = [program.evaluate(device) for device in devices]
    assert found.outcomes() == single
    assert [bool(found.matching >> i & 1) for i in range(200)] == [o.match is True for o in single]
    assert [bool(found.failing >> i & 1) for i in range(200)] == [
        o.error is not None for o in single
    ]
    assert found.outcome(137) == single[137]


def test_like_devices_are_evaluated_once():
    devices = [
        cel.DeviceInput(driver="d", attributes={"model": {"string": "a"}, "index": {"int": i}})
        for i in range(100)
    ]
    program = cel.compile_expression('device.attributes["d"].model == "a"')
    found = cel.mask(program, devices)
    assert len(found.groups) == 1
    assert found.matching == 2**100 - 1


def test_table_remembers_masks():
    table = cel.DeviceTable([cel.DeviceInput(driver="d")])
    program = cel.compile_expression("true")
    assert table.mask(program) is table.mask(program)
    assert cel.mask(program, table) is table.mask(program)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", set()),
        ('device.attributes["d"].x == 1', {("attributes", "d", "x")}),
        ('has(device.capacity["d"].m)', {("capacity", "d", "m")}),
        ('"d" in device.attributes', {("attributes?", "d")}),
        ('device.attributes["d"].size() == 1', {("attributes", "d")}),
        ('device.attributes["d"] == {"x": device.attributes["d"].x}', {("attributes", "d")}),
        ("device.attributes[device.driver].x == 1", {("attributes",), ("driver",)}),
        ('cel.bind(d, device.attributes["d"], d.x == 1)', {("attributes", "d", "x")}),
        ("device == device", {()}),
        ('[1].all(device, device == 1)', set()),
    ],
)  # fmt: skip
def test_reads_are_what_the_outcome_can_depend_on(expression, expected):
    assert reads.of(cel.compile_expression(expression).checked) == expected
