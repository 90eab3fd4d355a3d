"""Absurd expressions end soon and cleanly."""

import pytest

from app.domain import cel
from tests import draws
from tests.unit.cel.rows import DEVICE

EXCEEDED = "operation cancelled: actual cost limit exceeded"

WORKS_LONG = draws.in_turn("refusals")
"""Marks a row that takes a CPU second until its cost is over the limit."""


def _chain(init, step, count, final):
    """`count` names, each bound to `step` of the one before."""
    text = final.replace("V", f"v{count - 1}")
    for index in range(count - 1, 0, -1):
        text = f"cel.bind(v{index}, {step.replace('V', f'v{index - 1}')}, {text})"
    return f"cel.bind(v0, {init}, {text})"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("true" + " && true" * 130_000, id="a megabyte"),
        pytest.param("(" * 10_000 + "true" + ")" * 10_000, id="parentheses"),
        pytest.param("[" * 10_000 + "]" * 10_000, id="lists"),
        pytest.param("{1:" * 10_000 + "1" + "}" * 10_000, id="maps"),
        pytest.param("size(" * 10_000 + "1" + ")" * 10_000, id="calls"),
        pytest.param("true ? true : " * 5_000 + "true", id="conditionals"),
        pytest.param("1" + " + 1" * 10_000 + " == 1", id="operators"),
        pytest.param("device" + ".x" * 10_000, id="fields"),
        pytest.param("device" + "[0]" * 10_000, id="indexes"),
        pytest.param("-(" * 10_000 + "1" + ")" * 10_000 + " == 1", id="signs"),
        pytest.param("[1].all(a, " * 300 + "true" + ")" * 300, id="macros"),
        pytest.param("optional.of(1)" + ".optMap(v, v)" * 60 + ".hasValue()", id="doubling macro"),
    ],
)
def test_too_large_or_too_deep_is_refused(expression):
    with pytest.raises(cel.CompileError, match=r"exceeds limit|recursion limit exceeded"):
        cel.compile_expression(expression)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("true" + " && true" * 10_000, id="conjunction"),
        pytest.param("!" * 50_000 + "true", id="negations"),
        pytest.param("(" * 100 + "true" + ")" * 100, id="parentheses"),
        pytest.param("1" + " + 1" * 190 + " > 0", id="operators"),
        pytest.param(
            "[" * 100 + "1" + "]" * 100 + " == " + "[" * 100 + "1" + "]" * 100, id="lists"
        ),
        pytest.param("[1].all(a, " * 60 + "true" + ")" * 60, id="macros"),
        pytest.param(_chain("1", "V + 1", 90, "V > 0"), id="bindings"),
    ],
)
def test_large_but_allowed_is_evaluated_traced_and_masked(expression):
    program = cel.compile_expression(expression)
    assert program.max_cost >= 0
    assert program.evaluate(DEVICE).match is True
    assert cel.mask(program, [DEVICE]).matching == 1
    assert cel.trace(program, DEVICE).outcome.match is True


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(_chain("[1, 2]", "V + V", 60, "V.size() > 0"), id="doubled list"),
        pytest.param(_chain("'ab'", "V.replace('', V)", 9, "V.size() > 0"), id="replaced text"),
        pytest.param(
            _chain("'ab'", "'%s%s%s'.format([V, V, V])", 60, "V.size() > 0"), id="formats"
        ),
        pytest.param(_chain("[1]", "[V, V, V].flatten()", 60, "V.size() > 0"), id="flattened"),
        pytest.param("lists.range(9223372036854775807).size() > 0", id="range"),
        pytest.param("lists.range(100000).distinct().size() > 0", id="distinct", marks=WORKS_LONG),
        pytest.param("lists.range(500000).map(x, x).size() > 0", id="map"),
        pytest.param("cel.bind(b, lists.range(400000), b.all(x, (b + b).size() > 0))", id="loop"),
        pytest.param(
            _chain("[dyn(1)]", "[dyn(V), dyn(V)]", 40, "V == V"),
            id="shared parts compared",
            marks=WORKS_LONG,
        ),
    ],
)
def test_work_without_end_is_cancelled(expression):
    outcome = cel.compile_expression(expression).evaluate(DEVICE)
    assert outcome.error == EXCEEDED
    assert outcome.cost > cel.COST_LIMIT


def test_regular_expressions_take_linear_time():
    device = cel.DeviceInput(driver="d", attributes={"s": {"string": "a" * 50_000}})
    program = cel.compile_expression('device.attributes["d"].s.matches("(a*)*(a*)*b")')
    assert program.evaluate(device).match is False


def test_cache_is_bounded_and_keeps_what_was_used_last():
    cache = cel.ProgramCache(2)
    first = cel.compile_expression("1 == 1", cache=cache)
    cel.compile_expression("2 == 2", cache=cache)
    assert cel.compile_expression("1 == 1", cache=cache) is first
    cel.compile_expression("3 == 3", cache=cache)
    assert cel.compile_expression("1 == 1", cache=cache) is first


def test_programs_differ_by_environment():
    cache = cel.ProgramCache()
    stored = cel.compile_expression("device.attributes.size() > 0", cache=cache)
    fresh = cel.compile_expression(
        "device.attributes.size() > 0", environment=cel.new_environment({}), cache=cache
    )
    assert stored is not fresh
