"""Rules over parts of objects, and how JSON becomes values for them."""

import pytest

from app.domain.cel import object_rules

ANY = {"x-kubernetes-preserve-unknown-fields": True}


def holds(rule, value, old=None, schema=ANY, **options):
    return object_rules.broken(rule, schema, value, old, **options) is None


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.a == 1", {"a": 1}),
        ("has(self.a) && !has(self.b)", {"a": 1, "b": None}),
        ("self.l.exists(x, x == 'b')", {"l": ["a", "b"]}),
        ("self.__namespace__ == 'n'", {"namespace": "n"}),
        ("self.a__dash__b__dot__c__slash__d == 1", {"a-b.c/d": 1}),
        ("self.x__underscores__y == 1", {"x__y": 1}),
        ("self.startsWith('kube')", "kubectl"),
        ("self.matches('^[a-z]+$')", "abc"),
        ("size(self) == 2", [1, 2]),
        ("isQuantity(self) && quantity(self).isGreaterThan(quantity('1Mi'))", "1Gi"),
    ],
)
def test_rule_that_holds(rule, value):
    assert holds(rule, value)


@pytest.mark.parametrize(
    ("schema", "rule", "value"),
    [
        ({"type": "number"}, "self * 2.0 == 2.0", 1),
        (
            {"type": "string", "format": "date-time"},
            "self < timestamp('2027-01-01T00:00:00Z')",
            "2026-01-01T00:00:00Z",
        ),
        ({"type": "string", "format": "duration"}, "self < duration('1h')", "5m"),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            "self['a-b'] == 1",
            {"a-b": 1},
        ),
    ],
)
def test_schema_says_what_a_value_is(schema, rule, value):
    assert holds(rule, value, schema=schema)


def test_broken_rule_says_nothing_and_an_error_says_what():
    assert object_rules.broken("self > 1", ANY, 1, None) == ""
    assert object_rules.broken("self.a > 1", ANY, {}, None) == "no such key: a"
    assert "could not be converted to bool" in object_rules.broken("self", ANY, "x", None)


def test_value_before_may_be_optional():
    rule = "!oldSelf.hasValue() || oldSelf.value() <= self"
    assert holds(rule, 1, is_optional=True)
    assert holds(rule, 2, 1, is_optional=True)
    assert not holds(rule, 1, 2, is_optional=True)


def test_endless_work_is_ended():
    deep = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))"
    said = object_rules.broken(deep, ANY, list(range(200)), None)
    assert "cost limit exceeded" in said


def test_rule_that_cannot_be_compiled_says_why():
    assert "Syntax error" in object_rules.problem_of("self.")
    assert "undeclared reference to 'device'" in object_rules.problem_of("device.driver == ''")
    assert object_rules.problem_of("self.a") == ""
