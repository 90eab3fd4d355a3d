"""Traces name the part of an expression that failed, and the values around it."""

import pytest

from app.domain import cel
from tests.unit.cel.rows import DEVICE, written


def _trace(expression, device=DEVICE):
    return cel.trace(cel.compile_expression(written(expression)), device)


def _values(found):
    return {
        step.text: step.value if step.error is None else f"! {step.error}" for step in found.steps
    }


def test_origin_is_the_smallest_part_that_failed():
    found = _trace("@.b && (@.nope.foo == 1 || false)")
    assert found.origin.text == 'device.attributes["d"].nope'
    assert found.origin.error == "no such key: nope"
    assert (found.origin.line, found.origin.column) == (1, 30)


def test_values_of_evaluated_parts_are_shown():
    found = _trace("@.x == 3 && @.s.size() > 100")
    assert found.outcome.match is False
    assert found.origin is None
    values = _values(found)
    assert values['device.attributes["d"].x'] == "3"
    assert values['device.attributes["d"].s'] == '"hello world twelve"'
    assert values['device.attributes["d"].s.size() > 100'] == "false"


def test_parts_that_were_not_evaluated_are_absent():
    texts = [step.text for step in _trace("@.b || @.x == 1").steps]
    assert texts == [
        'device.attributes["d"].b',
        'device.attributes["d"].b || device.attributes["d"].x == 1',
    ]


def test_error_inside_a_loop_is_kept():
    found = _trace("[1, 0, 2].all(i, 6 / i > 0)")
    assert found.origin.text == "6 / i"
    assert found.origin.evaluations == 3


def test_place_counts_lines():
    found = _trace("true &&\n  @.nope")
    assert (found.origin.line, found.origin.column) == (2, 3)


def test_kinds_of_values_have_readable_texts():
    values = _values(_trace("@.v == semver('1.2.3') && device.capacity['d'].m == quantity('1Gi')"))
    assert values['device.attributes["d"].v'] == 'semver("1.2.3")'
    assert values["device.capacity['d'].m"] == 'quantity("1Gi")'
    assert (
        _values(_trace("@.?x.hasValue() && @.il == [1]"))['device.attributes["d"].?x']
        == "optional(3)"
    )


def test_long_values_are_cut():
    device = cel.DeviceInput(driver="d", attributes={"s": {"string": "a" * 1000}})
    found = _trace("@.s == ''", device)
    assert all(len(step.value) <= 200 for step in found.steps)


def test_device_that_cannot_be_converted_has_no_steps():
    found = _trace("true", cel.DeviceInput(driver="d", attributes={"a": {}}))
    assert found.outcome.error == "attribute a: unsupported attribute value"
    assert found.steps == ()


@pytest.mark.parametrize(
    ("expression", "part", "reads"),
    [
        ("@.x == 4 && @.b", "@.x == 4", {"@.x": "3"}),
        ("@.b && @.x > 10", "@.x > 10", {"@.x": "3"}),
        ("@.b && (@.x > 2 && @.s == 'a')", "@.s == 'a'", {"@.s": '"hello world twelve"'}),
        ("@.x == 4 || @.zero == 1", "@.x == 4 || @.zero == 1", {"@.x": "3", "@.zero": "0"}),
        ("@.b ? @.x == 1 : true", "@.x == 1", {"@.x": "3"}),
        ("!@.b", "!@.b", {"@.b": "true"}),
        ("device.driver == 'q'", "device.driver == 'q'", {"device.driver": '"d"'}),
        ("[1, 2].exists(i, i == @.x)", "[1, 2].exists(i, i == @.x)", {"@.x": "3"}),
        ("@.?y.orValue(3) == 4", "@.?y.orValue(3) == 4", {"@.?y": "optional.none()"}),
        ("has(@.y)", "has(@.y)", {"has(@.y)": "false"}),
        ("false", "false", {}),
    ],
)
def test_part_that_makes_an_expression_false_is_told_with_what_it_read(expression, part, reads):
    (found,) = cel.falsities(cel.compile_expression(written(expression)), [DEVICE])
    assert found.text == written(part)
    assert dict(found.reads) == {written(path): value for path, value in reads.items()}


@pytest.mark.parametrize("expression", ["@.x == 3", "@.nope == 3"])
def test_what_is_true_or_fails_has_no_part_that_is_false(expression):
    assert [*cel.falsities(cel.compile_expression(written(expression)), [DEVICE])] == [None]


def test_each_device_is_asked_by_itself():
    other = cel.DeviceInput(driver="d", attributes={"x": {"int": 4}, "b": {"bool": False}})
    found = cel.falsities(cel.compile_expression(written("@.x == 4 && @.b")), [DEVICE, other])
    assert [one.reads[0][1] for one in found] == ["3", "false"]
