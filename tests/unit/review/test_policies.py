"""What admission policies make of writes, in upstream's words."""

from typing import Any

import pytest

from app.domain.errors import AlreadyExists, Forbidden, Invalid, NotFound, Rejected, TooLarge
from app.domain.objects.write.commands import BindPod, PatchType, UpdateObject
from tests.unit.objects.builders import claim, key, pod, stamp
from tests.unit.review.clusters import binding, config_map, policy, rule, serving


def bound(*policies: Any, cluster: Any = None) -> Any:
    """A cluster with policies; each that comes without a binding of its name is bound to deny."""
    made = serving() if cluster is None else cluster
    for tree in policies:
        made.create(tree)
    if not any(tree["kind"].endswith("Binding") for tree in policies):
        made.create(binding(to=policies[0]["metadata"]["name"]))
    return made


def refusal(made: Any, tree: Any = None, **options: Any) -> Rejected:
    """What refuses the creation of an object."""
    with pytest.raises(Rejected) as problem:
        made.create(tree or config_map(), **options)
    return problem.value


def test_denial_says_which_policy_and_what_it_wants():
    made = bound(policy("object.metadata.name != 'c'", rules=[rule("configmaps")]))
    problem = refusal(made)
    text = (
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: "
        "object.metadata.name != 'c'"
    )
    assert problem.message == f'configmaps "c" is forbidden: {text}'
    assert (problem.code, problem.reason) == (422, "Invalid")
    assert [(cause.reason, cause.message) for cause in problem.causes] == [("", text)]
    assert (problem.group, problem.resource, problem.name) == ("", "configmaps", "c")
    made.create(config_map("d"))


@pytest.mark.parametrize(
    ("validation", "text"),
    [
        ({"message": " not here "}, "not here"),
        ({"messageExpression": "'no ' + object.metadata.name"}, "no c"),
        ({"message": "fall back", "messageExpression": "string(object.nothing)"}, "fall back"),
        ({"message": "one line", "messageExpression": "'two\\nlines'"}, "one line"),
        ({"messageExpression": "'  '"}, "failed expression: false"),
        ({"messageExpression": "'x'.replace('x', 'y') + string(1)"}, "y1"),
    ],
)
def test_message_is_that_of_the_expression_else_the_written_one(validation, text):
    tree = policy()
    tree["spec"]["validations"] = [{"expression": "false", **validation}]
    assert refusal(bound(tree)).message.endswith(f"denied request: {text}")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("Forbidden", Forbidden), ("Invalid", Invalid), ("RequestEntityTooLarge", TooLarge)],
)
def test_reason_of_a_validation_is_that_of_the_answer(reason, expected):
    tree = policy()
    tree["spec"]["validations"] = [{"expression": "false", "reason": reason}]
    assert isinstance(refusal(bound(tree)), expected)


def test_actions_say_what_a_failure_does():
    made = serving()
    made.create(policy("false"))
    made.create(binding("Audit", name="audits"))
    made.create(config_map("a"))
    assert made.last.warnings == ()
    made.create(binding("Warn", name="warns"))
    made.create(config_map("b"))
    expected = (
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'warns': failed "
        "expression: false",
    )
    assert made.last.warnings == expected
    made.create(binding(name="xdenies"))
    problem = refusal(made)
    assert "with binding 'xdenies' denied request" in problem.message
    assert problem.warnings == expected


def test_policies_are_asked_in_the_order_of_their_names():
    made = serving()
    for name in ("b", "a"):
        made.create(policy("false", name=name))
    made.create(binding(name="z", to="a"))
    made.create(binding(name="y", to="b"))
    assert "'a' with binding 'z'" in refusal(made).message


def test_nobody_is_asked_without_a_binding_or_a_policy():
    made = serving()
    made.create(policy("false"))
    made.create(config_map("a"))
    made.delete(key("validatingadmissionpolicies", "p"))
    made.create(binding())
    made.create(config_map("b"))


OLDER = rule("resourceclaims", group="resource.k8s.io", version="v1beta1")
NAMED = "kubernetes.io/metadata.name"
ASKED = [
    # what is created, what the policy is about, whether it is asked
    (config_map(), {"rules": [rule("configmaps", "CREATE")]}, True),
    (config_map(), {"rules": [rule("configmaps", "UPDATE", "DELETE")]}, False),
    (config_map(), {"rules": [rule("*")]}, True),
    (config_map(), {"rules": [rule("*/*")]}, True),
    (config_map(), {"rules": [rule("configmaps/*")]}, True),
    (config_map(), {"rules": [rule("configmaps/status")]}, False),
    (config_map(), {"rules": [rule("configmaps", group="apps")]}, False),
    (config_map(), {"rules": [rule("configmaps", version="v2")]}, False),
    (config_map(), {"rules": [{**rule("configmaps"), "scope": "Cluster"}]}, False),
    (config_map(), {"rules": [{**rule("configmaps"), "scope": "Namespaced"}]}, True),
    (config_map(), {"rules": [{**rule("configmaps"), "resourceNames": ["c"]}]}, True),
    (config_map(), {"rules": [{**rule("configmaps"), "resourceNames": ["d"]}]}, False),
    (config_map(), {"constraints": {"excludeResourceRules": [rule("configmaps")]}}, False),
    (config_map(), {"constraints": {"excludeResourceRules": [rule("secrets")]}}, True),
    (
        config_map(labels={"a": "b"}),
        {"constraints": {"objectSelector": {"matchLabels": {"a": "b"}}}},
        True,
    ),
    (config_map(), {"constraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}, False),
    (
        config_map(),
        {
            "constraints": {
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": "default"},
                }
            }
        },
        True,
    ),
    (
        config_map(),
        {
            "constraints": {
                "namespaceSelector": {
                    "matchExpressions": [{"key": NAMED, "operator": "DoesNotExist"}],
                }
            }
        },
        False,
    ),
    (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"a": "b"}}},
        {"constraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
        True,
    ),
    (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
        {"constraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
        False,
    ),
    (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
        {"rules": [{**rule("namespaces"), "scope": "Cluster"}]},
        True,
    ),
    (
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}},
        {"constraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}},
        True,
    ),
    (claim(), {"rules": [OLDER]}, True),
    (claim(), {"rules": [OLDER], "constraints": {"matchPolicy": "Exact"}}, False),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "about", "is_asked"), ASKED)
def test_policy_is_asked_about_what_its_constraints_name(tree, about, is_asked):
    made = bound(policy("false", **about))
    if is_asked:
        assert "denied request" in refusal(made, tree).message
    else:
        made.create(tree)


@pytest.mark.parametrize(
    ("resources", "is_asked"),
    [
        ({}, True),
        ({"resourceRules": [rule("secrets")]}, False),
        ({"excludeResourceRules": [rule("configmaps")]}, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
    ],
)
def test_binding_narrows_what_its_policy_is_about(resources, is_asked):
    made = bound(policy("false"), binding(matchResources=resources))
    if is_asked:
        refusal(made)
    else:
        made.create(config_map())


def test_object_is_shown_in_the_version_that_the_rule_names():
    expression = "object.spec.devices.requests.all(r, r.deviceClassName == 'gpu')"
    about = rule("resourceclaims", group="resource.k8s.io", version="v1beta1")
    made = bound(policy(expression, "request.resource.version == 'v1beta1'", rules=[about]))
    made.create(claim())
    seen = "request.requestResource.version == 'v1' && request.kind.version == 'v1beta1'"
    made.update(
        {**made.create(policy(seen, rules=[about], name="q")), "kind": "ValidatingAdmissionPolicy"}
    )
    made.create(binding(name="q", to="q"))
    made.create(claim("d"))


EXPRESSIONS = [
    "object.metadata.name == 'c' && object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
    "oldObject == null",
    "request.operation == 'CREATE' && request.name == 'c' && request.namespace == 'default'",
    "request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'",
    "request.userInfo.username == 'alice' && !has(request.userInfo.uid)",
    "!request.dryRun && !has(request.subResource)",
    "namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'",
    "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'",
    "has(object.data) && object.data.all(k, size(object.data[k]) < 10)",
    "variables.size == 2 && variables.twice == 4",
    "object.data.?missing.orValue('x') == 'x'",
    "quantity('1Gi').isGreaterThan(quantity('1Mi')) && 'a,b'.split(',').size() == 2",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_see_the_write(expression):
    variables = [
        {"name": "size", "expression": "size(object.data)"},
        {"name": "twice", "expression": "variables.size * 2"},
    ]
    tree = config_map(data={"a": "b", "c": "d"})
    bound(policy(expression, variables=variables, rules=[rule("configmaps")])).create(tree)
    negated = f"!({expression})"
    made = bound(policy(negated, variables=variables, rules=[rule("configmaps")]))
    assert refusal(made, tree).message.endswith(f"failed expression: {negated}")


def test_update_shows_both_objects_and_counts_when_nothing_changes():
    made = serving()
    tree = made.create(config_map(data={"a": "1"}))
    bound(
        policy("object.data.a == oldObject.data.a", rules=[rule("configmaps", "UPDATE")]),
        cluster=made,
    )
    made.update(tree)
    with pytest.raises(Invalid, match="denied request"):
        made.update({**tree, "data": {"a": "2"}})
    with pytest.raises(Invalid, match="denied request"):
        made.patch(key("configmaps", "c", "default"), {"data": {"a": "3"}}, PatchType.MERGE)
    made.create(policy("false", name="never", rules=[rule("configmaps", "UPDATE")]))
    made.create(binding(name="never", to="never"))
    with pytest.raises(Invalid, match="denied request"):
        made.update(tree)


def test_delete_shows_the_object_that_goes():
    made = serving()
    made.create(config_map())
    about = [rule("configmaps", "DELETE")]
    bound(policy("object == null && oldObject.metadata.name != 'c'", rules=about), cluster=made)
    with pytest.raises(Invalid, match="denied request"):
        made.delete(key("configmaps", "c", "default"))
    made.create(config_map("d"))
    made.delete(key("configmaps", "d", "default"))


def test_scale_and_binding_are_shown_as_what_they_are():
    made = serving()
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template, "replicas": 1}
    metadata = {"name": "d", "namespace": "default"}
    tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    made.create(tree)
    made.create(pod())
    about = rule("deployments/scale", "UPDATE", group="apps")
    bound(policy("object.spec.replicas < 5 && oldObject.spec.replicas == 1 && "
                 "request.kind.kind == 'Scale'", rules=[about]), cluster=made)  # fmt: skip
    place = key("deployments", "d", "default")
    wanted = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata}
    scaled = UpdateObject(
        key=place, version="v1", tree={**wanted, "spec": {"replicas": 5}}, subresource="scale"
    )
    with pytest.raises(Invalid, match="denied request"):
        made.do(scaled)
    made.update({**(made.get(place) or {}), "spec": {**spec, "replicas": 1}})
    about = rule("pods/binding", "CREATE")
    made.create(policy("object.target.name != 'n'", name="q", rules=[about]))
    made.create(binding(name="q", to="q"))
    with pytest.raises(Invalid, match=r'pods "p" is forbidden: ValidatingAdmissionPolicy .q. with'):
        made.do(BindPod(key=key("pods", "p", "default"), node="n"))
    made.do(BindPod(key=key("pods", "p", "default"), node="m"))


def test_those_who_are_asked_are_not_judged_themselves():
    made = bound(policy("false"))
    made.create(policy("true", name="q"))
    made.delete(key("validatingadmissionpolicybindings", "b"))
    made.delete(key("validatingadmissionpolicies", "p"))


def test_error_of_an_expression_denies_unless_failures_are_ignored():
    expression = "object.data.a == 'b'"
    error = f"expression '{expression}' resulted in error: no such key: data"
    assert refusal(bound(policy(expression, rules=[rule("configmaps")]))).message.endswith(error)
    bound(policy(expression, failurePolicy="Ignore")).create(config_map())


def test_error_of_a_variable_names_it():
    tree = policy("variables.a == 1", variables=[{"name": "a", "expression": "object.data.x"}])
    error = 'composited variable "a" fails to evaluate: no such key: data'
    assert refusal(bound(tree)).message.endswith(error)
    unused = policy("true", variables=[{"name": "a", "expression": "object.data.x"}])
    bound(unused).create(config_map())


def test_condition_that_does_not_hold_keeps_a_policy_out():
    def conditions(*expressions: str) -> list[dict[str, str]]:
        return [{"name": f"c{i}", "expression": text} for i, text in enumerate(expressions)]

    bound(policy("false", matchConditions=conditions("false"))).create(config_map())
    refusal(bound(policy("false", matchConditions=conditions("true", "object.kind != 'x'"))))
    broken = conditions("object.data.x == 1", "false")
    bound(policy("false", matchConditions=broken)).create(config_map())
    made = bound(policy("true", matchConditions=broken[:1]))
    assert refusal(made).message.endswith(
        "expression 'object.data.x == 1' resulted in error: no such key: data"
    )
    ignoring = policy("false", matchConditions=broken[:1], failurePolicy="Ignore")
    bound(ignoring).create(config_map())


KIND = {"apiVersion": "v1", "kind": "ConfigMap"}


def reference(**more: Any) -> dict[str, Any]:
    return {"parameterNotFoundAction": "Deny", **more}


def test_parameters_are_found_by_name_selector_and_namespace():
    made = serving()
    made.namespace("other")
    made.create(config_map("limits", labels={"a": "b"}, data={"name": "x"}))
    made.create(config_map("limits", "other", data={"name": "c"}))
    made.create(config_map("more", labels={"a": "b"}, data={"name": "y"}))
    expression = "object.metadata.name != params.data.name"
    made.create(policy(expression, paramKind=KIND, rules=[rule("configmaps", "CREATE")]))
    made.create(binding(paramRef=reference(name="limits")))
    assert "denied" in refusal(made, config_map("x")).message
    assert "denied" in refusal(made, config_map("c", "other")).message
    made.create(config_map("y"))
    made.create(
        binding(
            name="all",
            paramRef=reference(selector={"matchLabels": {"a": "b"}}, namespace="default"),
        )
    )
    assert "denied" in refusal(made, config_map("y", "other")).message
    made.create(config_map("z", "other"))


def test_parameters_that_are_missing_deny_or_count_as_fine():
    made = serving()
    made.create(policy("false", paramKind=KIND, rules=[rule("configmaps")]))
    made.create(binding(paramRef=reference(name="gone")))
    assert refusal(made).message.endswith(
        "denied request: failed to configure binding: no params found for policy binding with "
        "`Deny` parameterNotFoundAction"
    )
    allowing = serving()
    allowing.create(policy("false", paramKind=KIND, rules=[rule("configmaps")]))
    allowing.create(binding(paramRef={"name": "gone", "parameterNotFoundAction": "Allow"}))
    allowing.create(config_map())


@pytest.mark.parametrize(
    ("kind", "ref", "text"),
    [
        (
            {"apiVersion": "x.io/v1", "kind": "Foo"},
            reference(name="a"),
            "failed to configure policy: failed to find resource referenced by paramKind: "
            "'x.io/v1, Kind=Foo'",
        ),
        (
            {"apiVersion": "v1", "kind": "Node"},
            reference(name="a", namespace="default"),
            "failed to configure binding: paramRef.namespace must not be provided for a "
            "cluster-scoped `paramKind`",
        ),
    ],
)
def test_wrong_parameters_are_a_failure_of_the_policy(kind, ref, text):
    made = serving()
    made.create(policy("true", paramKind=kind, rules=[rule("configmaps")]))
    made.create(binding(paramRef=ref))
    assert refusal(made).message.endswith(text)


def test_namespaced_parameters_need_a_namespace():
    made = serving()
    made.create(policy("true", paramKind=KIND, rules=[rule("nodes")]))
    made.create(binding(paramRef=reference(name="a")))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert refusal(made, node).message.endswith(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
    )


def test_parameters_are_null_where_a_binding_names_none():
    made = bound(policy("params == null", paramKind=KIND, rules=[rule("configmaps")]))
    made.create(config_map())


def test_expensive_policy_is_an_error_and_not_a_burden():
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    nested = "true"
    for name in "abcdefgh":
        nested = f"{numbers}.all({name}, {nested})"
    problem = refusal(bound(policy(nested)))
    assert problem.message.endswith("operation cancelled: actual cost limit exceeded")


def test_audit_annotation_that_cannot_be_evaluated_denies():
    annotations = [{"key": "k", "valueExpression": "object.data.x"}]
    wrong = policy(
        rules=[rule("configmaps")],
        auditAnnotations=[{"key": "k", "valueExpression": "string(object.data.x)"}],
    )
    del wrong["spec"]["validations"]
    assert "no such key: data" in refusal(bound(wrong)).message
    untyped = policy("true", auditAnnotations=annotations)
    with pytest.raises(Invalid, match="must evaluate to one of"):
        serving().create(untyped)


def test_validation_comes_before_and_what_is_there_after():
    made = bound(policy("false", rules=[rule("configmaps"), rule("pods")]))
    broken = pod(containers=[])
    assert "spec.containers: Required value" in refusal(made, broken).message
    with pytest.raises(NotFound):
        made.create(config_map(namespace="gone"))
    early = serving()
    early.create(config_map())
    bound(policy("false", rules=[rule("configmaps")]), cluster=early)
    problem = refusal(early)
    assert not isinstance(problem, AlreadyExists)
    assert "denied request" in problem.message


def test_dry_run_is_judged_and_told():
    made = bound(policy("!request.dryRun", rules=[rule("configmaps")]))
    refusal(made, config_map(), dry_run=True)
    made.create(config_map())


RIGHTS = "authorizer.group('').resource('pods').check('get').allowed()"
ONE = {"name": "a", "expression": "1"}
FIRST = "spec.validations[0].expression"


def said(expression: str, **more: Any) -> dict[str, Any]:
    return {"validations": [{"expression": expression}], **more}


WRONG = [
    (said("object."), FIRST, "Syntax error"),
    (said("thing.x == 1"), FIRST, "undeclared reference to 'thing' (in container '')"),
    (said("object.x"), FIRST, "must evaluate to bool"),
    (said("request.verb == 'x'"), FIRST, "undefined field 'verb'"),
    (said("params.x == 1"), FIRST, "undeclared reference to 'params'"),
    (said(RIGHTS), FIRST, "undeclared reference to 'authorizer'"),
    (said("variables.b == 1", variables=[ONE]), FIRST, "undefined field 'b'"),
    (
        said("variables.a == 'x'", variables=[ONE]),
        FIRST,
        "found no matching overload for '_==_' applied to '(int, string)'",
    ),
    (
        {"variables": [{"name": "a", "expression": "variables.b"}, {**ONE, "name": "b"}]},
        "spec.variables[0].expression",
        "undefined field 'b'",
    ),
    (
        {"matchConditions": [{"name": "c", "expression": "variables.a"}], "variables": [ONE]},
        "spec.matchConditions[0].expression",
        "undeclared reference to 'variables'",
    ),
    (
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        "spec.validations[0].messageExpression",
        "must evaluate to string",
    ),
]


@pytest.mark.parametrize(("spec", "field", "text"), WRONG)
def test_expression_that_cannot_be_used_is_refused_when_it_is_written(spec, field, text):
    with pytest.raises(Invalid) as problem:
        serving().create(policy("true", **spec))
    (cause,) = problem.value.causes
    assert cause.field == field
    assert text in cause.message
    assert cause.reason == "FieldValueInvalid"


def test_same_history_gives_the_same_answers():
    def lived() -> list[bytes]:
        made = bound(policy("size(object.metadata.name) < 3", rules=[rule("configmaps")]))
        for name in ("a", "aaaa", "bb"):
            try:
                made.create(config_map(name))
            except Invalid:
                continue
        return [event.hash for event in made.world.events]

    assert lived() == lived()
    assert stamp(seconds=1) == stamp(seconds=1)
