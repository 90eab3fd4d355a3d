"""What API validation says of new expressions."""

from app.domain import cel

NEW = cel.new_environment({})


def test_good_expression_is_admitted():
    assert cel.check_admission('device.driver == "d"', environment=NEW) is None


def test_length_is_checked_before_anything_else():
    problem = cel.check_admission("é" * 5121, environment=NEW)
    assert problem.reason == "FieldValueTooLong"
    assert str(problem) == "Too long: may not be more than 10240 bytes"
    assert cel.check_admission("é" * 5120, environment=NEW).reason == "FieldValueInvalid"


def test_what_does_not_compile_is_invalid():
    problem = cel.check_admission("device.nope", environment=NEW)
    assert problem.reason == "FieldValueInvalid"
    assert problem.detail.startswith("compilation failed: ERROR: <input>:1:7: undefined field")


def test_estimated_cost_is_limited():
    dear = "[1,2,3,4,5,6,7,8,9,10]"
    nested = "true"
    for name in "abcdef":
        nested = f"{dear}.all({name}, {nested})"
    problem = cel.check_admission(nested, environment=NEW)
    assert str(problem) == "Forbidden: too complex, exceeds cost limit"
    assert cel.check_admission(nested, environment=NEW, cost_limit=10**9) is None


def test_bounds_are_parameters():
    assert cel.check_admission("true", environment=NEW, bytes_max=3).reason == "FieldValueTooLong"
