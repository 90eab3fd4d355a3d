"""Estimated and run-time cost: the worked examples of the specification and rows around them."""

from app.domain import cel
from tests.together import together
from tests.unit.cel.rows import DEVICE, check_costs, evaluate

INFINITE = 2**64 - 1

ROWS = [
    # expression, estimate, run time
    ("true", 0, 0),
    ("device.driver == 'd'", 3, 3),
    ("device.driver == ''", 2, 2),
    ("device == device", 2, 3),
    ("device.allowMultipleAllocations", 2, 2),
    ('"none" in device.attributes', 3, 3),
    ("@.b", 4, 4),
    ("@.x == 3", 5, 5),
    ("@.nope == 3", 5, 5),
    ("@.s == 'hello world twelve'", 6, 6),
    ("@.s == ''", 4, 4),
    ("has(@.x)", 3, 3),
    ("has(@.nope)", 3, 3),
    ("has(device.attributes)", 1, 1),
    ("has(@.nope.foo)", 4, 3),
    ('device.attributes[device.driver].x == 3', 7, 6),
    ("[1, 2, 3].size() == 3", 12, 2),
    ("[1, 2][0] == 1", 12, 3),
    ('{"a": 1}.a == 1', 32, 3),
    ("@.x in [1, 2, 3]", 17, 4),
    ("@.x in []", 14, 0),
    ('"a" in @.l', 68, 5),
    ("@.x + 1 == 4", 6, 6),
    ("int('5') == 5", 2, 1),
    ("string(@.x) == '3'", 12, 6),
    ("type(@.x) == int", 1844674407370955270, 6),
    ("[1, 2, 3].all(x, x > 0)", 26, 16),
    ("[1, 2, 3].all(x, x > 9)", 26, 8),
    ("[1, 2, 3].exists(x, x == 2)", 29, 16),
    ("[1, 2, 3].exists(x, x == 9)", 29, 19),
    ("[1, 2, 3].exists_one(x, x == 2)", 24, 10),
    ("[1, 2, 3].map(x, x + 1) == [2, 3, 4]", 74, 44),
    ("[1, 2, 3].map(x, 1).size() == 3", 59, 9),
    ("[1, 2, 3].map(x, x > 1, x).size() == 2", 68, 35),
    ("[1, 2, 3].filter(x, x > 1).size() == 2", 68, 35),
    ("@.il.map(x, 1).size() == 3", 785, 13),
    ("[5, 6].transformList(i, v, v).size() == 2", None, 29),
    ('{"a": 1}.transformMap(k, v, v).size() == 1', None, 7),
    ('device.attributes["d"].exists(k, k == "zzz")', 196, 58),
    ('device.attributes.exists_one(k, k == "d")', 132, 10),
    ("@.b ? @.b : @.x == 3", 9, 7),
    ("true ? @.b : false", 4, 3),
    ("@.?x.orValue(0) == 3", 6, 5),
    ("@.?nope.orValue(0) == 0", 6, 4),
    ("@.?x.optMap(v, v + 1).orValue(0) == 4", 25, 14),
    ('device.attributes[?"none"].?x.orValue(3) == 3', 6, 4),
    ("optional.none().orValue(1) == 1", 3, 2),
    ('cel.bind(d, device.attributes["d"], d.x == 3 && d.b)', 18, 8),
    ("cel.bind(x, 3, cel.bind(y, 4, x * y == 12))", 24, 4),
    ("@.s.startsWith('hel')", 5, 6),
    ("@.s.contains('world')", 11, 6),
    ("@.s.matches('^hel.*')", 18, 8),
    ("@.nope.matches('a')", 11, 4),
    ("@.s.find('l+') == 'l'", 12, 7),
    ("@.s.lowerAscii() == 'x'", 12, 7),
    ("@.s.substring(0, 5) == 'hello'", 12, 7),
    ("@.s.replace('l', 'L') == 'x'", 18, 9),
    ("@.s.split(' ') == ['a']", 28, 9),
    ("['a', 'b'].join('-') == 'a-b'", 1844674407370955275, 2),
    ("@.nope == 1 || @.b", 9, 9),
    ("@.b || @.nope == 1", 9, 4),
    ("@.nope.indexOf('o') == 2", 12, 5),
    ("@.nope.isGreaterThan(@.v)", 9, 4),
    ("@.nope.isGreaterThan(semver('1.0.0'))", 6, 6),
    ("@.v == semver('1.2.3')", 12, 6),
    ("@.x.foo == 1", 5, 6),
    ("device.capacity['d'].m == quantity('1Gi')", 6, 6),
    ("@.il.sort() == [1, 2, 3]", 8628, 6),
    ("[3, 1, 2].sort() == [1, 2, 3]", 50, 30),
    ("[3, 1, 2].sortBy(x, x) == [1, 2, 3]", 112, 72),
    ("[1, 2].reverse() == [2, 1]", 34, 14),
    ("[1, 2, 3].slice(0, 2) == [1, 2]", 34, 14),
    ("lists.range(3).size() == 3", 16, 16),
    ("[[1], [2]].flatten() == [1, 2]", 54, 14),
    ("[1, 2].distinct() == [1, 2]", 40, 20),
    ("@.l.isSorted()", 11, 4),
    ("['a', 'bb'].isSorted()", 3689348814741910540, 0),
    ("[1, 2, 3].sum() == 6", 14, 4),
    ("sets.intersects([1, 2], [@.x])", 27, 17),
    ("sets.equivalent([1, 2], [2, 1])", 29, 9),
    ("@.il.includes(2)", 52, 5),
    ("ip('10.0.0.1').family() == 4", 3, 3),
    ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", 6, 3),
    ("isSemver('1.2.3')", 1, 1),
    ("url('https://example.com').getHost() == 'x'", None, 4),
    ("@.?l.orValue([]).exists(x, x == 'a')", INFINITE, 14),
    ("b'abc' == bytes('abc')", 2, 1),
]  # fmt: skip


@together([row for row in ROWS if row[1] is not None], lambda row: row[0])
def test_costs_are_those_of_the_model(row):
    expression, estimate, actual = row
    check_costs(expression, estimate=estimate, actual=actual)


@together([row for row in ROWS if row[1] is None and row[2]], lambda row: row[0])
def test_run_time_cost_is_that_of_the_model(row):
    expression, _, actual = row
    assert evaluate(expression).cost == actual


def test_loop_that_ends_early_pays_its_last_condition():
    # 3 (path) + one round of 6 + the condition that ends it 3 + the result 1.
    device = cel.DeviceInput(driver="d", attributes={"a": {"int": 1}, "b": {"int": 2}})
    assert evaluate('device.attributes["d"].exists(k, k == "a")', device).cost == 13
    # Two rounds; nothing is left that a condition could end.
    assert evaluate('device.attributes["d"].exists(k, k == "b")', device).cost == 16


def test_accumulator_with_an_error_does_not_end_a_collecting_loop():
    outcome = evaluate("[0, 1, 2].map(x, 1 / x).size() == 2")
    assert outcome.error == "division by zero"
    # Three rounds of 1 + 2 + 10 + 1, the result 1, `size` and `==`.
    assert outcome.cost == 45


def test_limit_ends_the_evaluation_at_the_first_cost_above_it():
    program = cel.compile_expression("[1, 2, 3].all(x, x > 0)")
    for limit in range(16):
        outcome = program.evaluate(DEVICE, cost_limit=limit)
        assert outcome.error == "operation cancelled: actual cost limit exceeded"
        assert outcome.cost == limit + 1
    assert program.evaluate(DEVICE, cost_limit=16).match is True


def test_limit_cannot_be_swallowed_by_logic():
    program = cel.compile_expression("[1, 2, 3].all(x, x > 0) || true")
    assert program.evaluate(DEVICE, cost_limit=3).match is None
