"""The device that the rows of this folder look at, and the one way to check a row.

In expressions `@.x` stands for `device.attributes["d"].x`.
"""

from app.domain import cel

DEVICE = cel.DeviceInput(
    driver="d",
    attributes={
        "x": {"int": 3},
        "zero": {"int": 0},
        "b": {"bool": True},
        "s": {"string": "hello world twelve"},
        "il": {"ints": [1, 2, 3]},
        "l": {"strings": ["a", "bb", "ccc"]},
        "bl": {"bools": [True, False]},
        "v": {"version": "1.2.3"},
        "vl": {"versions": ["1.0.0", "2.0.0"]},
        "other.example.com/x": {"int": 9},
    },
    capacity={"m": {"value": "1Gi"}, "half": {"value": "1.5Gi"}},
)


def written(expression):
    return expression.replace("@.", 'device.attributes["d"].')


def evaluate(expression, device=DEVICE):
    return cel.compile_expression(written(expression)).evaluate(device)


def check_true(expression, device=DEVICE):
    outcome = evaluate(expression, device)
    assert outcome.match is True, (expression, outcome)


def check_error(expression, error, device=DEVICE):
    outcome = evaluate(expression, device)
    assert outcome.match is None
    assert outcome.error == error


def check_costs(expression, *, estimate, actual, device=DEVICE):
    program = cel.compile_expression(written(expression))
    assert program.max_cost == estimate
    assert program.evaluate(device).cost == actual


def compile_error(expression, environment=cel.STORED):
    try:
        cel.compile_expression(written(expression), environment=environment)
    except cel.CompileError as error:
        return str(error)
    return None
