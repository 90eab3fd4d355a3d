"""Unusual policies: whatever an expression does, a write is accepted, or refused with a message."""

import contextlib
from typing import Any

from app.domain.errors import Rejected
from tests import draws
from tests.together import together
from tests.unit.cel.random_expressions import Generator
from tests.unit.review.clusters import binding, config_map, policy, rule, serving

SEEDS = 300
ROOTS = ("object", "oldObject", "request", "namespaceObject", "params", "variables.v")
ODD = [
    "object",
    "object.data",
    "object.data.a",
    "object['data']['a'] == 'b'",
    "object[0] == 1",
    "object.data[true] == 'b'",
    "object.data.map(k, object.data[k]) == ['b']",
    "object == object",
    "object != oldObject",
    "variables == variables",
    "variables.v == variables.v",
    "size(variables) == 1",
    "has(variables.v)",
    "request == request",
    "size(request) == 1",
    "request.options.fieldManager == 'x'",
    "string(object) == 'x'",
    "type(object) == type(request)",
    "[object, object].all(o, o.kind == 'ConfigMap')",
    "{'a': object}.a.kind == 'ConfigMap'",
    "object.metadata.managedFields.size() == 0",
    "namespaceObject.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
    "object.data.all(k, object.data.all(l, object.data.all(m, true)))",
    "object.data.a.replace('', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx').size() > 1",
    "object.data.a.matches('(a+)+$')",
    "object.data.a.matches(object.data.a)",
    "quantity(object.data.a).isGreaterThan(quantity('1'))",
    "url(object.data.a).getHost() == ''",
    "format.dns1123Label().validate(object.data.a).hasValue()",
    "object.data.a == null ? true : dyn(object.data.a) == dyn(1)",
    "optional.of(object).orValue(null) != null",
    "cel.bind(o, object, o.kind == 'ConfigMap')",
    "true || object.x.y.z",
    "!object.data.a",
    "-object.data.a == 1",
    "9223372036854775807 + 1 == 0",
    "1 / 0 == 1",
    "'\\ud800' == ''",
    "\x00",
    "",
    " ",
    "(" * 200,
    "[" * 60 + "]" * 60,
    "object." + "a." * 300 + "b == 1",
]


def try_out(expression: str) -> None:
    """Write policies with an expression at every place, bind them, and write what they judge."""
    made = serving()
    made.create(config_map("limits", data={"a": "b"}))
    step = {"name": "v", "expression": expression}
    about = {"rules": [rule("configmaps")], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    trees: list[dict[str, Any]] = [
        policy(expression, name="a", variables=[{**step, "expression": "1"}], **about),
        policy("variables.v == 1", name="b", variables=[step], **about),
        policy("true", name="c", matchConditions=[step], **about),
        policy(
            "true",
            name="d",
            auditAnnotations=[{"key": "k", "valueExpression": expression}],
            **about,
        ),
        policy("false", name="e", **about),
    ]
    trees[-1]["spec"]["validations"][0]["messageExpression"] = expression
    for tree in trees:
        with contextlib.suppress(Rejected):
            made.create(tree)
            reference = {"name": "limits", "parameterNotFoundAction": "Deny"}
            name = tree["metadata"]["name"]
            made.create(binding(name=name, to=name, paramRef=reference))
            made.create(config_map(name, data={"a": "b"}))


@together(ODD, str)
def test_odd_expression_is_refused_or_judges(expression):
    try_out(expression)


def test_random_expressions_are_refused_or_judge():
    for seed in draws.of_today(range(SEEDS)):
        generator = Generator(seed)
        generator.names = [(root, kind) for root in ROOTS for kind in ("int", "string", "bool")]
        try_out(generator.boolean(3))
