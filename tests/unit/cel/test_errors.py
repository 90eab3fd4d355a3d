"""What compilation refuses and what fails at run time, with upstream's texts."""

import pytest

from app.domain import cel
from tests.together import together
from tests.unit.cel.rows import DEVICE, check_error, check_true, compile_error, evaluate

SYNTAX = [
    ("", "1:0: Syntax error: mismatched input '<EOF>' expecting {'[',"),
    ("true &&", "1:8: Syntax error: mismatched input '<EOF>' expecting {'[',"),
    ("()", "1:2: Syntax error: mismatched input ')' expecting {'[',"),
    ("?!", "1:1: Syntax error: extraneous input '?' expecting {'[',"),
    ("true true", "1:6: Syntax error: extraneous input 'true' expecting <EOF>"),
    ("[1", "1:3: Syntax error: mismatched input '<EOF>' expecting ']'"),
    ("true ? false", "1:13: Syntax error: mismatched input '<EOF>' expecting ':'"),
    ("1 ? 2 ? 3 : 4 : 5", "1:7: Syntax error: mismatched input '?' expecting ':'"),
    ("@", "1:1: Syntax error: token recognition error at: '@'"),
    ('"open', "1:1: Syntax error: token recognition error at: '\"open'"),
    ("device.in", "1:8: Syntax error: no viable alternative at input '.in'"),
    ("9223372036854775808 == 0", "1:1: invalid int literal"),
    ("18446744073709551616u == 0u", "1:1: invalid uint literal"),
    (r'"\q" == ""', "1:1: unable to unescape string: \\q"),
    (r'"\ud800" == ""', "1:1: invalid unicode code point"),
    ("for == 1", "1:1: reserved identifier: for"),
    ("has(device)", "1:5: invalid argument to has() macro"),
    ("[1].all(1, true)", "1:9: argument must be a simple name"),
    ("cel.bind(1, 2, true)", "1:10: cel.bind() variable names must be simple identifiers"),
    ("[1].all(x, x, true)", "1:12: duplicate variable name: x"),
    ("[1].map(x, x, true, false)", "1:8: undeclared reference to 'map' (in container '')"),
]

TYPES = [
    ("x == 1", "1:1: undeclared reference to 'x' (in container '')"),
    ("foo(1)", "1:4: undeclared reference to 'foo' (in container '')"),
    ("device.nope == 1", "1:7: undefined field 'nope'"),
    ("1.0 == 1", "1:5: found no matching overload for '_==_' applied to '(double, int)'"),
    ('"a" == 1', "1:5: found no matching overload for '_==_' applied to '(string, int)'"),
    ("1 + 1u", "1:3: found no matching overload for '_+_' applied to '(int, uint)'"),
    (
        '"a".charAt("b")',
        "1:11: found no matching overload for 'charAt' applied to 'string.(string)'",
    ),
    ("size(1, 2)", "1:5: found no matching overload for 'size' applied to '(int, int)'"),
    ("!1", "1:1: found no matching overload for '!_' applied to '(int)'"),
    ("1 && true", "1:1: expected type 'bool' but found 'int'"),
    (
        "1 ? true : false",
        "1:3: found no matching overload for '_?_:_' applied to '(int, bool, bool)'",
    ),
    (
        "true ? 1 : 'a'",
        "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
    ),
    ("[1, 'a'].size() == 2", "1:5: expected type 'int' but found 'string'"),
    ('{"a": 1, 2: 3}.size() == 2', "1:10: expected type 'string' but found 'int'"),
    ('{"a": 1, "b": "c"}.size() == 2', "1:15: expected type 'int' but found 'string'"),
    ("[1, @.x].size() == 2", "1:27: expected type 'int' but found 'dyn'"),
    ("(1).all(x, true)", "1:2: expression of type 'int' cannot be range of a comprehension"),
    ('"a".b == 1', "1:4: type 'string' does not support field selection"),
    ("@.x.includes()", "includes' applied to 'dyn.()'"),
    ('quantity("1").x == 1', "1:14: unexpected failed resolution of 'kubernetes.Quantity'"),
    ('semver("1.0.0").major', "1:16: unexpected failed resolution of 'kubernetes.Semver'"),
    ("quantity('1') == 1", "'_==_' applied to '(kubernetes.Quantity, int)'"),
    (
        'semver("1.0.0") < semver("2.0.0")',
        "'_<_' applied to '(kubernetes.Semver, kubernetes.Semver)'",
    ),
    ("sign(1) == 1", "'sign' applied to '(int)'"),
    ('quantity("1").sign() == 1', "'sign' applied to 'kubernetes.Quantity.()'"),
    ("google.protobuf.Foo{} == 1", "undeclared reference to 'google.protobuf.Foo'"),
    ("[1].flatten() == [1]", "'flatten' applied to 'list(int).()'"),
    ("optional.of(1) == 1", "'_==_' applied to '(optional_type(int), int)'"),
    ("[?1].size() == 1", "1:3: expected type 'optional_type(int)' but found 'int'"),
]

LITERALS = [
    ('"a".matches("[")', "1:13: invalid matches argument"),
    ('duration("1x") == duration("1s")', "1:10: invalid duration argument"),
    ('timestamp("x") == timestamp(0)', "1:11: invalid timestamp argument"),
    ('"%d".format(["a"]) == ""', "decimal clause can only be used on integers, was given string"),
    (
        '"%s".format([1, 2]) == ""',
        "too many arguments supplied to string.format (expected 1, got 2)",
    ),
    ('"%s %s".format([1]) == ""', "index 1 out of range"),
]


@together(SYNTAX + TYPES + LITERALS, lambda row: row[0])
def test_refusal_names_place_and_cause(row):
    expression, expected = row
    found = compile_error(expression)
    assert found is not None
    assert found.startswith("compilation failed: ERROR: <input>:")
    assert expected in found


def test_issue_shows_the_line_and_a_caret_below_the_place():
    assert compile_error('"é" ==\n\tdevice.x') == (
        "compilation failed: ERROR: <input>:2:8: undefined field 'x'\n |  device.x\n | .......^"
    )
    assert compile_error('"é".x == 1') == (
        "compilation failed: ERROR: <input>:1:4: type 'string' does not support field selection\n"
        ' | "é".x == 1\n | .．.^'
    )


def test_issues_come_in_the_order_of_their_places():
    found = compile_error("b == 1 || a == 1")
    assert found.index("'b'") < found.index("'a'")


def test_at_most_a_hundred_issues_are_listed():
    found = compile_error(" || ".join(f"x{n}" for n in range(150)))
    assert found.count("ERROR:") == 100
    assert found.endswith("50 more errors were truncated")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("[1]", "must evaluate to bool or the unknown type, not list(int)"),
        ("null", "must evaluate to bool or the unknown type, not null_type"),
        ('semver("1.0.0")', "must evaluate to bool or the unknown type, not kubernetes.Semver"),
        ('int("1x") == 1', "failed: type conversion error from 'string' to 'int'"),
        ('false && int("1x") == 1', "program instantiation failed: type conversion error"),
        ('"a".find("[") == ""', "failed: error parsing regexp: missing closing ]"),
        (r"'é'.find(r'\C') == ''", r"failed: error parsing regexp: invalid escape sequence: `\C`"),
    ],
)  # fmt: skip
def test_refusal_without_a_place(expression, expected):
    assert expected in compile_error(expression)


def test_letter_of_a_refused_escape_is_taken_where_it_is_none():
    check_true(r"r'\C'.find(r'\Q\C\E') == r'\C' && r'\C'.find(r'\\C') == r'\C'")
    check_true(r"'é€C'.find('€.') == '€C' && 'é€C'.matches('^..C$')")


def test_lists_inside_format_arguments_may_be_mixed():
    check_true('"%s %d".format(["a", 1]) == "a 1"')


def test_gates_decide_what_new_expressions_may_use():
    plain = cel.new_environment({})
    lists = cel.new_environment({"DRAListTypeAttributes": True})
    shares = cel.new_environment({"DRAConsumableCapacity": True})
    assert "undefined field" in compile_error("device.allowMultipleAllocations", plain)
    assert compile_error("device.allowMultipleAllocations", shares) is None
    assert "undeclared reference to 'includes'" in compile_error("@.l.includes('a')", plain)
    assert compile_error("@.l.includes('a')", lists) is None
    assert "expression of type 'any'" in compile_error("@.l.exists(x, x == 'a')", plain)
    assert compile_error("@.l.exists(x, x == 'a')", lists) is None
    assert compile_error("@.x > 1 && @.b", plain) is None


REGULAR = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
NO_QUANTITY = f"quantities must match the regular expression {REGULAR}"
TOO_LONG = "'includes' function cannot be applied to lists longer than 48 values"


UNPARSED = "attribute a: parse semantic version: "


OF_QUANTITY = "type conversion error from 'Quantity' to 'bool'"


def not_bool(kind, cause):
    return f"CEL result of type {kind} could not be converted to bool: {cause}"


RUN_TIME = [
    ("@.nope == 1", "no such key: nope"),
    ("@.x.foo == 1", "no such key: foo"),
    ('device.attributes["d"]["nope"] == 1', "no such key: nope"),
    ("@.il.foo == 1", "unsupported index type 'string' in list"),
    ("@.il[3] == 1", "index out of bounds: 3"),
    ("@.il[-1] == 1", "index out of bounds: -1"),
    ('@.il["a"] == 1', "unsupported index type 'string' in list"),
    ("{1: 2}[3] == 1", "no such key: 3"),
    ("has(device.attributes[\"d\"].nope.foo)", "no such key: nope"),
    ("@.s > 3", "no such overload"),
    ("!@.x", "no such overload"),
    ("@.x && true", "no such overload"),
    ("@.x ? true : false", "no such overload"),
    ("@.s.startsWith(@.x)", "no such overload"),
    ("@.v == 1", "no such overload"),
    ("@.x.isGreaterThan(@.v)", "no such overload: isGreaterThan(int, kubernetes.Semver)"),
    ('dyn(quantity("1")) == 1', "no such overload"),
    ('quantity("2") == quantity("1").add(1)', "no such overload"),
    ("@.x / @.zero == 1", "division by zero"),
    ("@.x % @.zero == 1", "modulus by zero"),
    ("9223372036854775807 + @.x > 0", "integer overflow"),
    ("-9223372036854775808 / (@.zero - 1) > 0", "integer overflow"),
    ("1u - uint(@.x) > 0u", "unsigned integer overflow"),
    ("int(1e30) > 0", None),
    ("int(double(@.x) * 1e30) > 0", "integer overflow"),
    ("uint(@.zero - 1) == 1u", "unsigned integer overflow"),
    ('int(@.s) == 1', "type conversion error from 'string' to 'int'"),
    ("0.0 / double(@.zero) < 1.0", "NaN values cannot be ordered"),
    ("@.s.substring(0, 100) == ''", "index out of range: 100"),
    ("@.s.substring(3, 1) == ''", "invalid substring range. start: 3, end: 1"),
    ("@.s.charAt(-1) == ''", "index out of range: -1"),
    ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("@.?nope.value() == 1", "optional.none() dereference"),
    ('quantity("x") == quantity("1")', NO_QUANTITY),
    ('semver("x") == semver("1.0.0")', "No Major.Minor.Patch elements found"),
    ('quantity("1.5").asInteger() == 1', "cannot convert value to integer"),
    ("@.x.exists(i, true)", "got 'types.Int', expected iterable type"),
    ("@.v.exists(i, true)", "got 'cel.Semver', expected iterable type"),
    ("[dyn(1)].min() == 1 && dyn([]).max() == 1", "max called on empty list"),
    ("@.s.matches(@.s + '[')", "error parsing regexp: missing closing ]: `[`"),
    ("@.s.find(@.s + '[') == ''", "Illegal regex: error parsing regexp: missing closing ]: `[`"),
    (r"@.s.matches(@.s + r'\C')", r"error parsing regexp: invalid escape sequence: `\C`"),
    ("semver('1.0.0') in [dyn(1)].map(x, x)", None),
    ("@.v in [1, 2]", "internal error: runtime error: hash of unhashable type cel.Semver"),
    ("{dyn('a'): 1, dyn('a'): 2}.size() == 1", "Failed with repeated key a"),
    ("[1, 2].transformMapEntry(i, v, {'a': v}).size() == 1", "insert failed: key a already exists"),
    ("dyn(lists.range(49)).includes(-1)", TOO_LONG),
    ("@.x", not_bool("int", "unsupported type conversion from 'int' to bool")),
    ("@.s", not_bool("string", "unsupported native conversion from string to 'bool'")),
    ("@.il", not_bool("list", "type conversion error from list to 'bool'")),
    ("@.v", not_bool("kubernetes.Semver", "type conversion error from 'Semver' to 'bool'")),
    ("dyn(1.5)", not_bool("double", "type conversion error from Double to 'bool'")),
    ("dyn({})", not_bool("map", "type conversion error from map to 'bool'")),
    ("dyn(quantity('1'))", not_bool("kubernetes.Quantity", OF_QUANTITY)),
]  # fmt: skip


@together([row for row in RUN_TIME if row[1] is not None], lambda row: row[0])
def test_run_time_error_has_upstreams_text(row):
    check_error(*row)


def test_constant_conversions_fail_before_any_evaluation():
    assert compile_error("int(1e30) > 0") == "program instantiation failed: integer overflow"


def test_the_first_error_counts_when_nothing_decides():
    check_error("@.first == 1 || @.second == 1", "no such key: first")
    check_error("@.first == 1 && @.second == 1", "no such key: first")
    check_error("@.first + @.second == 1", "no such key: first")


def test_hint_is_added_once_and_only_for_missing_keys():
    program = cel.compile_expression('device.attributes["d"].nope == 1')
    hint = (
        ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check"
        " with has() for optional fields"
    )
    assert program.evaluate(DEVICE, hint=True).error == "no such key: nope" + hint
    assert program.evaluate(DEVICE).error == "no such key: nope"
    other = cel.compile_expression('device.attributes["d"].x / 0 == 1')
    assert other.evaluate(DEVICE, hint=True).error == "division by zero"


@pytest.mark.parametrize(
    ("attributes", "capacity", "error"),
    [
        ({"a": {}}, {}, "attribute a: unsupported attribute value"),
        ({"a": {"version": "x"}}, {}, UNPARSED + "No Major.Minor.Patch elements found"),
        ({"a": {"versions": ["1.0.0", ""]}}, {}, UNPARSED + "Version string empty"),
    ],
)  # fmt: skip
def test_one_bad_attribute_fails_every_expression(attributes, capacity, error):
    device = cel.DeviceInput(driver="d", attributes=attributes, capacity=capacity)
    assert evaluate("true", device) == cel.SelectorOutcome(match=None, error=error, cost=0)


def test_name_with_the_drivers_domain_wins_over_the_short_one():
    for names in (("a", "d/a"), ("d/a", "a")):
        attributes = {name: {"int": 1 if "/" in name else 2} for name in names}
        check_true("@.a == 1", cel.DeviceInput(driver="d", attributes=attributes))


def test_first_present_kind_of_value_counts():
    device = cel.DeviceInput(driver="d", attributes={"a": {"int": 1, "ints": [2], "bool": True}})
    check_true("@.a == [2]", device)


def test_domain_is_cut_at_the_first_slash():
    device = cel.DeviceInput(driver="d", attributes={"e/b/c": {"int": 1}})
    check_true('device.attributes["e"]["b/c"] == 1', device)
