"""Expressions of policies, evaluated by another implementation of CEL too."""

from typing import Any

from cel_expr_python import cel as other

from app.domain.cel import policy_rules
from tests.together import together

NAMES = ("object", "oldObject", "request", "namespaceObject", "params")
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "1"}},
    "spec": {
        "replicas": 3,
        "template": {
            "spec": {
                "containers": [
                    {"name": "a", "image": "registry.example.com/a:1", "ports": [80, 443]},
                    {"name": "b", "image": "b", "resources": {"limits": {"cpu": "1"}}},
                ]
            }
        },
    },
}
VALUES = {
    "object": DEPLOYMENT,
    "oldObject": {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 2}},
    "request": {
        "operation": "UPDATE",
        "name": "web",
        "namespace": "default",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "userInfo": {"username": "ann", "groups": ["a", "b"]},
        "dryRun": False,
    },
    "namespaceObject": {"metadata": {"name": "default", "labels": {"env": "test"}}},
    "params": {"data": {"most": "5", "prefix": "registry.example.com/"}, "most": 5},
}
CONTAINERS = "object.spec.template.spec.containers"
EXPRESSIONS = [
    "object.spec.replicas <= 5",
    "object.spec.replicas <= params.most && object.spec.replicas > oldObject.spec.replicas",
    "object.spec.replicas <= int(params.data.most)",
    "object.metadata.name.startsWith('w') && !object.metadata.name.endsWith('x')",
    f"{CONTAINERS}.all(c, c.image.startsWith(params.data.prefix))",
    f"{CONTAINERS}.exists(c, c.image.startsWith(params.data.prefix))",
    f"{CONTAINERS}.exists_one(c, has(c.resources))",
    f"{CONTAINERS}.filter(c, has(c.ports)).map(c, c.name) == ['a']",
    f"{CONTAINERS}.all(c, has(c.resources) && has(c.resources.limits))",
    f"{CONTAINERS}.all(c, c.resources.limits.cpu == '1')",
    f"size({CONTAINERS}) == 2 && {CONTAINERS}[0].ports[1] == 443",
    f"{CONTAINERS}[2].name == 'c'",
    "'app' in object.metadata.labels && object.metadata.labels['tier'] == '1'",
    "object.metadata.labels.all(k, k.matches('^[a-z]+$'))",
    "has(object.metadata.annotations) ? object.metadata.annotations.x == 'y' : true",
    "object.metadata.annotations.x == 'y'",
    "object.metadata.annotations.x == 'y' || object.kind == 'Deployment'",
    "object.metadata.annotations.x == 'y' && object.kind == 'Service'",
    "request.operation in ['CREATE', 'UPDATE'] && request.kind.kind == object.kind",
    "request.userInfo.groups.exists(g, g == 'system:masters')",
    "request.userInfo.username != 'ann' || request.dryRun",
    "namespaceObject.metadata.labels['env'] != 'production'",
    "namespaceObject.metadata.labels['team'] == 'a'",
    "object.spec == oldObject.spec",
    "object.metadata == oldObject.metadata",
    "[object.spec.replicas, oldObject.spec.replicas].map(n, n * 2) == [6, 4]",
    "object.spec.replicas / 0 == 1",
    "string(object.spec.replicas) + object.metadata.name == '3web'",
    "double(object.spec.replicas) * 1.5 == 4.5",
    "type(object.spec.replicas) == int && type(object) == map",
    "duration('90s') > duration('1m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "object.metadata.name < 'x' && size(object.metadata.name) + 1 == 4",
]


def theirs(expression: str) -> Any:
    """True, False, or None for an error."""
    kinds = dict.fromkeys(NAMES, other.Type.DYN)
    environment = other.NewEnv(variables=kinds)
    program = environment.compile(expression)
    result = program.eval(data=VALUES)
    return None if result.type() == other.Type.ERROR else result.value()


@together(EXPRESSIONS, str)
def test_both_evaluators_agree(expression: str) -> None:
    scope = policy_rules.scope(has_params=True, variables=())
    values = {name: policy_rules.value_of(tree) for name, tree in VALUES.items()}
    answer = policy_rules.session(scope, values).ask(expression)
    assert (None if answer.error else answer.value) == theirs(expression), answer
