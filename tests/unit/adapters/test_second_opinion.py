"""cel-python as a second opinion: what it says of one device, and what it says it cannot."""

import subprocess
import sys

import pytest

from app.adapters.second_opinion import CelPython, optional_syntax
from app.ports import Match
from tests import draws
from tests.together import together

YES, NO, ERROR = Match.MATCH, Match.NO_MATCH, Match.ERROR
D = 'device.attributes["d"]'
M = 'device.capacity["d"].memory'

_second = CelPython()


def answer(expression, *, attributes=None, capacity=None):
    return _second.ask(
        expression,
        driver="d",
        attributes=attributes
        or {
            "x": {"int": 3},
            "s": {"string": "Hello"},
            "b": {"bool": True},
            "v": {"version": "1.10.0-rc.1+b"},
            "d/w": {"string": "qualified"},
            "w": {"string": "bare"},
            "other.com/y": {"int": 7},
            "l": {"strings": ["a", "b"]},
        },
        capacity=capacity or {"memory": {"value": "40Gi"}, "d/share": {"value": "1500m"}},
        allow_multiple_allocations=True,
    )


ANSWERED = [
    ('device.driver == "d" && device.allowMultipleAllocations', YES),
    (f"{D}.x == 3", YES),
    (f"{D}.x > 3", NO),
    (f"{D}.missing == 3", ERROR),
    (f"{D}.missing == 3 || {D}.b", YES),
    (f"{D}.missing == 3 && {D}.missing == 4", ERROR),
    (f'{D}.w == "qualified"', YES),
    ('device.attributes["other.com"].y == 7', YES),
    # A domain that is missing is empty; membership does not lie.
    ('size(device.attributes["none"]) == 0', YES),
    ('"none" in device.attributes', NO),
    ('"x" in device.attributes["d"]', YES),
    (f"has({D}.x) && !has({D}.missing)", YES),
    (f"has({D}.missing.deeper)", ERROR),
    (f"has({D}.x.deeper)", NO),
    (f"{D}.x.deeper == 1", ERROR),
    # Values of different kinds are unequal; a version or quantity on the left refuses others.
    (f"{D}.x == {D}.s", NO),
    (f"{D}.x != {D}.s", YES),
    (f"{D}.s == {D}.v", NO),
    (f"{D}.v == {D}.s", ERROR),
    (f"{D}.v != {D}.s", YES),
    (f"{D}.s > 3", ERROR),
    (f"{D}.v.isLessThan(semver('1.10.0'))", YES),
    (f"{D}.v.isGreaterThan(semver('1.9.0')) && {D}.v.minor() == 10", YES),
    (f"{D}.v == semver('1.10.0-rc.1')", YES),
    ("semver('v1.2', true) == semver('1.2.0')", YES),
    ("isSemver('1.2') || isSemver('01.2.3')", NO),
    ("semver('1.2') == semver('1.2.0')", ERROR),
    (f"{M}.compareTo(quantity('40Gi')) == 0", YES),
    (f"{M} == quantity('41943040Ki')", YES),
    (f"{M}.add(quantity('1')).isGreaterThan({M})", YES),
    (f"{M} == {M}.sub(1).add(1)", ERROR),
    ('device.capacity["d"].share == quantity("1.5")', YES),
    ("quantity('0.1n') == quantity('1n')", YES),
    ("isQuantity('1K')", NO),
    (f"{D}.l.includes('b') && {D}.s.includes('Hello')", YES),
    (f"{D}.l.exists(each, each == 'b') && !{D}.l.all(each, each == 'b')", YES),
    (f"{D}.s.all(each, each == 'H')", ERROR),
    (f"{D}.l[5] == 'a'", ERROR),
    (f"{D}.s.lowerAscii().startsWith('hell') && {D}.s.matches('^H.*o$')", YES),
    (f"{D}.s.matches('[')", ERROR),
    (f"{D}.?x.orValue(0) == 3 && {D}.?missing.orValue(9) == 9", YES),
    (f'{D}[?"x"].hasValue() && !{D}[?"missing"].hasValue()', YES),
    ('device.attributes[?"none"].?x.orValue(1) == 1', YES),
    (f"{D}.?missing.value() == 1", ERROR),
    (f"{D}.?x.optMap(each, each + 1).orValue(0) == 4", YES),
    ('cel.bind(all, device.attributes["d"], all.x == 3 && all.b)', YES),
    (f"{D}.s", ERROR),
]


@together(ANSWERED, lambda row: row[0])
def test_selector_is_answered_as_the_specification_says(row):
    expression, wanted = row
    opinion = answer(expression)
    assert (opinion.answer, opinion.reason) == (wanted, "")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (f"{D}.s.split('l').size() == 2", "it does not know: the function split"),
        # Inside `has` or `||` an unknown function would come out as a plain answer.
        (f"has({D}.s.split('l').a) || true", "it does not know: the function split"),
        (f"[?{D}.?x].size() == 1", "it cannot parse the expression, which has optional access"),
        ("{'a': 1,}.a == 1", "it cannot parse the expression"),
        (f"{D}.x = 3", "it cannot parse the expression"),
        (f"{D}.exists(k, v, k == 'x')", "it does not know: the function exists"),
        (f"unknown == {D}.x", "it fails: KeyError"),
        (f"[{D}.missing].map(each, {D}.missing) == [] || true", None),
        ("quantity('.Ei') == quantity('0')", "it does not know: a quantity without digits"),
        (" " * 10_241 + "true", "the expression is too long for it"),
        ("(" * 3_000 + "true" + ")" * 3_000, None),
    ],
)
def test_what_cannot_be_said_has_a_reason(expression, reason):
    opinion = answer(expression)
    assert opinion.answer in (None, YES)
    if reason is not None:
        assert (opinion.answer, opinion.reason) == (None, reason)


@pytest.mark.parametrize(
    ("attributes", "capacity"),
    [({"v": {"version": "1"}}, {}), ({"v": {}}, {}), ({}, {"m": {"value": "1K"}})],
)
def test_device_that_cannot_be_converted_fails_every_selector(attributes, capacity):
    attributes = attributes or {"x": {"int": 1}}
    assert answer("true", attributes=attributes, capacity=capacity).answer is ERROR


@pytest.mark.parametrize(
    ("expression", "rewritten"),
    [
        ("a.?b", 'a.optional_field_("b")'),
        ("a[?b[0]]", "a.optional_index_(b[0])"),
        ("a[?b[?c]].d", "a.optional_index_(b.optional_index_(c)).d"),
        ("f(x)[?0]", "f(x).optional_index_(0)"),
        ('a.b == ".?c[?d]"', 'a.b == ".?c[?d]"'),
        (r'a.?b == "\".?c"', r'a.optional_field_("b") == "\".?c"'),
        ("r'\\'[?0]", "r'\\'.optional_index_(0)"),
        ("[?a]", "[?a]"),
        ("a ? [b] : [?c]", "a ? [b] : [?c]"),
    ],
)
def test_optional_access_becomes_calls(expression, rewritten):
    assert optional_syntax.rewrite(expression) == rewritten


def test_loops_stop_where_the_answer_is_decided():
    numbers = str(list(range(60)))
    nested = f"{numbers}.all(e, e == e)"
    for letter in "abcdefgh":
        nested = f"{numbers}.all({letter}, {nested})"
    assert answer(f"false && {nested}").answer is NO
    assert answer(f"{numbers}.exists(x, x == 0 || {nested})").answer is YES


def test_recursion_limit_of_the_process_stays():
    limit = sys.getrecursionlimit()
    CelPython()
    assert sys.getrecursionlimit() == limit


@draws.in_turn("ways")
def test_cel_python_is_loaded_when_it_is_asked_for_and_not_before():
    shown = (
        "import sys, app.cli.replaying, app.cli.allocating, app.bootstrap.replays, "
        "app.bootstrap.serving, app.service.replays.second_opinion; "
        "print(*[name for name in sys.modules if name.split('.')[0] in ('celpy', 'lark')])"
    )
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
