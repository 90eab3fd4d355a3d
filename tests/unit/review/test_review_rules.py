"""What is refused in webhook configurations and admission policies, in upstream's words."""

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Invalid
from app.domain.objects.profile import Profile
from tests.together import together
from tests.unit.objects.builders import cluster
from tests.unit.objects.stored_rules import GONE, right

VALIDATING = "ValidatingWebhookConfiguration"
MUTATING = "MutatingWebhookConfiguration"
POLICY = "ValidatingAdmissionPolicy"
BINDING = "ValidatingAdmissionPolicyBinding"
CHANGER = "MutatingAdmissionPolicy"
HOOK = "webhooks__0"
RULE = "webhooks__0__rules__0"
CONSTRAINTS = "spec__matchConstraints"
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
UNSET = "validations or auditAnnotations must be set"

REFUSED = [
    (VALIDATING, {f"{HOOK}__name": GONE}, "webhooks[0].name: Required value"),
    (
        MUTATING,
        {f"{HOOK}__name": "a.b"},
        'webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments '
        "separated by dots",
    ),
    (
        VALIDATING,
        {f"{HOOK}__sideEffects": GONE},
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
    ),
    (
        VALIDATING,
        {f"{HOOK}__sideEffects": "Some"},
        'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", '
        '"NoneOnDryRun"',
    ),
    (
        VALIDATING,
        {f"{HOOK}__failurePolicy": "Stop"},
        'webhooks[0].failurePolicy: Unsupported value: "Stop": supported values: "Fail", "Ignore"',
    ),
    (
        VALIDATING,
        {f"{HOOK}__matchPolicy": "Like"},
        'webhooks[0].matchPolicy: Unsupported value: "Like": supported values: "Equivalent", '
        '"Exact"',
    ),
    (
        MUTATING,
        {f"{HOOK}__reinvocationPolicy": "Ever"},
        'webhooks[0].reinvocationPolicy: Unsupported value: "Ever": supported values: '
        '"IfNeeded", "Never"',
    ),
    (
        VALIDATING,
        {f"{HOOK}__timeoutSeconds": 31},
        "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and "
        "30 seconds",
    ),
    (
        VALIDATING,
        {f"{HOOK}__clientConfig": GONE},
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
    ),
    (
        VALIDATING,
        {f"{HOOK}__clientConfig": {"url": "http://ann@h/p?q=1#f"}},
        "[webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL "
        "scheme; desired format: https://host[/path], "
        'webhooks[0].clientConfig.url: Invalid value: "ann": user information is not permitted in '
        "the URL, "
        'webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL, '
        'webhooks[0].clientConfig.url: Invalid value: "q=1": query parameters are not permitted in '
        "the URL]",
    ),
    (
        VALIDATING,
        {f"{HOOK}__clientConfig": {"service": {"port": 0, "path": "a//B"}}},
        "[webhooks[0].clientConfig.service.name: Required value: service name is required, "
        "webhooks[0].clientConfig.service.namespace: Required value: service namespace is "
        "required, "
        "webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be "
        "between 1 and 65535, inclusive, "
        "webhooks[0].clientConfig.service.path: Invalid value: \"a//B\": must start with a '/', "
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[0] may not be '
        "empty, "
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[1] may not be '
        "empty, "
        'webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[2]: a lowercase '
        "RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
        "must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
        r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]",
    ),
    (
        VALIDATING,
        {f"{HOOK}__admissionReviewVersions": []},
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ),
    (
        VALIDATING,
        {f"{HOOK}__admissionReviewVersions": ["v2", "v2", "2"]},
        '[webhooks[0].admissionReviewVersions[1]: Duplicate value: "v2", '
        f'webhooks[0].admissionReviewVersions[2]: Invalid value: "2": {LABEL_1035}, '
        'webhooks[0].admissionReviewVersions: Invalid value: ["v2","v2","2"]: must include at '
        "least one of v1, v1beta1]",
    ),
    (VALIDATING, {f"{RULE}__operations": []}, "webhooks[0].rules[0].operations: Required value"),
    (
        VALIDATING,
        {f"{RULE}__operations": ["*", "READ"]},
        '[webhooks[0].rules[0].operations: Invalid value: ["*","READ"]: if \'*\' is present, must '
        "not specify other operations, "
        'webhooks[0].rules[0].operations[1]: Unsupported value: "READ": supported values: "*", '
        '"CONNECT", "CREATE", "DELETE", "UPDATE"]',
    ),
    (
        VALIDATING,
        {f"{RULE}__apiGroups": ["*", "apps"], f"{RULE}__apiVersions": ["v1", ""]},
        '[webhooks[0].rules[0].apiGroups: Invalid value: ["*","apps"]: if \'*\' is present, must '
        "not specify other API groups, "
        "webhooks[0].rules[0].apiVersions[1]: Required value]",
    ),
    (
        VALIDATING,
        {f"{RULE}__resources": ["pods/*", "pods/log", "*/scale", "x/scale"]},
        "[webhooks[0].rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, "
        "must not specify pods/log, "
        "webhooks[0].rules[0].resources[3]: Invalid value: \"x/scale\": if '*/scale' is present, "
        "must not specify x/scale]",
    ),
    (
        VALIDATING,
        {f"{RULE}__resources": ["*", "pods"]},
        'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must '
        "not specify other resources without subresources",
    ),
    (
        VALIDATING,
        {f"{RULE}__scope": "All"},
        'webhooks[0].rules[0].scope: Unsupported value: "All": supported values: "*", "Cluster", '
        '"Namespaced"',
    ),
    (
        VALIDATING,
        {f"{HOOK}__matchConditions": [{"name": "a", "expression": " "}, {"expression": "true"}]},
        "[webhooks[0].matchConditions[0].expression: Required value, "
        "webhooks[0].matchConditions[1].name: Required value]",
    ),
    (POLICY, {CONSTRAINTS: GONE}, "spec.matchConstraints: Required value"),
    (
        POLICY,
        {f"{CONSTRAINTS}__resourceRules": []},
        "spec.matchConstraints.resourceRules: Required value",
    ),
    (
        POLICY,
        {f"{CONSTRAINTS}__resourceRules__0__resourceNames": ["a", "a", "b/c"]},
        '[spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a", '
        'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not '
        "contain '/']",
    ),
    (
        POLICY,
        {"spec__validations": [], "spec__auditAnnotations": GONE},
        f"[spec.validations: Required value: {UNSET}, spec.auditAnnotations: Required value: "
        f"{UNSET}]",
    ),
    (
        POLICY,
        {"spec__validations__0": {"expression": "", "message": " ", "reason": "Gone"}},
        "[spec.validations[0].expression: Required value: expression is not specified, "
        'spec.validations[0].message: Invalid value: " ": message must be non-empty if specified, '
        'spec.validations[0].reason: Unsupported value: "Gone": supported values: "Forbidden", '
        '"Invalid", "RequestEntityTooLarge", "Unauthorized"]',
    ),
    (
        POLICY,
        {"spec__validations__0": {"expression": "1 ==\n1"}},
        "spec.validations[0].message: Required value: message must be specified if expression "
        "contains line breaks",
    ),
    (
        POLICY,
        {"spec__paramKind": {"apiVersion": "a/b/c", "kind": "A_b"}},
        '[spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: '
        'a/b/c, spec.paramKind.kind: Invalid value: "A_b": may have mixed case, but should '
        f"otherwise match: {LABEL_1035}]",
    ),
    (
        POLICY,
        {"spec__variables": [{"name": "a-b", "expression": "1"}, {"name": "in"}]},
        '[spec.variables[0].name: Invalid value: "a-b": name is not a valid CEL identifier, '
        'spec.variables[1].name: Invalid value: "in": name is not a valid CEL identifier, '
        "spec.variables[1].expression: Required value: expression is not specified]",
    ),
    (
        POLICY,
        {"spec__auditAnnotations": [{"key": "a b", "valueExpression": ""}]},
        '[spec.auditAnnotations[0].key: Invalid value: "a b": name part must consist of '
        "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), "
        "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not "
        "specified]",
    ),
    (
        BINDING,
        {"spec__validationActions": []},
        "spec.validationActions: Required value: at least one validation action is required",
    ),
    (
        BINDING,
        {"spec__validationActions": ["Warn", "Deny", "Warn"]},
        '[spec.validationActions[2]: Duplicate value: "Warn", '
        'spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and '
        "Warn (repeating the same validation failure information in the API response and headers "
        "serves no purpose)]",
    ),
    (
        BINDING,
        {"spec__paramRef": {"name": "p", "selector": {}}},
        "[spec.paramRef.name: Forbidden: name and selector are mutually exclusive, "
        "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive, "
        "spec.paramRef.parameterNotFoundAction: Required value]",
    ),
    (
        BINDING,
        {"spec__paramRef": {"parameterNotFoundAction": "Skip"}},
        "[spec.paramRef: Required value: one of name or selector must be specified, "
        'spec.paramRef.parameterNotFoundAction: Unsupported value: "Skip": supported values: '
        '"Allow", "Deny"]',
    ),
    (CHANGER, {"spec__reinvocationPolicy": GONE}, "spec.reinvocationPolicy: Required value"),
    (
        CHANGER,
        {"spec__mutations__0__patchType": "Merge"},
        'spec.mutations[0].patchType: Unsupported value: "Merge": supported values: '
        '"ApplyConfiguration", "JSONPatch"',
    ),
]


@together(REFUSED, lambda row: f"{row[0]}: {row[2][:40]}")
def test_wrong_object_is_refused_with_its_reason(row):
    kind, changes, text = row
    made = cluster()
    made.rules = rules_for(Profile())
    with pytest.raises(Invalid) as problem:
        made.create(right(kind, **changes))
    assert problem.value.message.partition(" is invalid: ")[2] == text


@pytest.mark.parametrize("kind", [VALIDATING, MUTATING])
def test_webhooks_get_upstreams_defaults(kind):
    made = cluster()
    (webhook,) = made.create(right(kind))["webhooks"]
    expected = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
    expected |= {"namespaceSelector": {}, "objectSelector": {}}
    expected |= {"reinvocationPolicy": "Never"} if kind == MUTATING else {}
    assert {name: webhook[name] for name in expected} == expected
    assert "reinvocationPolicy" in webhook or kind == VALIDATING
    assert webhook["rules"][0]["scope"] == "*"
    assert webhook["clientConfig"]["service"]["port"] == 443


@pytest.mark.parametrize("kind", [POLICY, CHANGER])
def test_policies_get_upstreams_defaults(kind):
    spec = cluster().create(right(kind))["spec"]
    constraints = spec["matchConstraints"]
    assert spec["failurePolicy"] == "Fail"
    assert constraints["matchPolicy"] == "Equivalent"
    assert constraints["namespaceSelector"] == constraints["objectSelector"] == {}
    rules = (*constraints["resourceRules"], *constraints["excludeResourceRules"])
    assert [rule["scope"] for rule in rules] == ["*", "*"]


def test_binding_gets_a_match_policy_and_selectors_for_its_resources_alone():
    made = cluster()
    bound = made.create(right(BINDING))["spec"]["matchResources"]
    assert bound["matchPolicy"] == "Equivalent"
    assert bound["objectSelector"] == {}
    plain = right(BINDING, metadata__name="plain", spec__matchResources=GONE)
    assert "matchResources" not in made.create(plain)["spec"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [(VALIDATING, "webhooks"), (MUTATING, "webhooks"), (POLICY, "spec"), (BINDING, "spec")],
)
def test_generation_counts_changes_of_what_the_kind_is_about(kind, path):
    made = cluster()
    tree = made.create(right(kind))
    assert tree["metadata"]["generation"] == 1
    labelled = {**tree, "metadata": {**tree["metadata"], "labels": {"a": "b"}}}
    again = made.update(labelled)
    assert again["metadata"]["generation"] == 1
    other = {"name": "b.example.com"} if path == "webhooks" else {"policyName": "other"}
    part = [{**again["webhooks"][0], **other}] if path == "webhooks" else {**again["spec"], **other}
    if kind == POLICY:
        part = {**again["spec"], "failurePolicy": "Ignore"}
    assert made.update({**again, path: part})["metadata"]["generation"] == 2


@pytest.mark.parametrize("kind", [VALIDATING, POLICY, BINDING])
def test_replacement_needs_the_version_that_it_replaces(kind):
    made = cluster()
    tree = made.create(right(kind))
    blind = {**tree, "metadata": {"name": tree["metadata"]["name"]}}
    with pytest.raises(Invalid, match="must be specified for an update"):
        made.update(blind)
