"""kubectl with admission policies: from their manifest to what they refuse, and away again.

Parity: api.md 6 and 10.
"""

import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  variables:
  - {name: most, expression: int(params.data.most)}
  validations:
  - expression: object.spec.replicas <= variables.most
    messageExpression: "'at most ' + string(variables.most) + ' replicas'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec:
  policyName: replicas
  validationActions: [Deny]
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Allow}
  matchResources: {namespaceSelector: {matchLabels: {limited: "yes"}}}
"""


SHOWN = POLICY.replace("name: replicas}", "name: shown}").replace("me: replicas\n", "me: shown\n")
ALL = "validatingadmissionpolicies,validatingadmissionpolicybindings"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("policies")) as found:
        yield found


def test_policy_limits_deployments_until_it_is_gone(server):
    server.apply(POLICY)
    server.kubectl("create", "configmap", "limits", "--from-literal=most=2")
    server.kubectl("create", "namespace", "n")
    server.kubectl("label", "namespace", "n", "limited=yes")
    space = server.within("n")
    space.kubectl("create", "deployment", "d", "--image=i", "--replicas=2")
    refused = space.kubectl("create", "deployment", "e", "--image=i", "--replicas=3", code=1)
    assert refused.err == (
        'error: failed to create deployment: deployments.apps "e" is forbidden: '
        "ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at most 2 "
        "replicas\n"
    )
    changed = space.kubectl("set", "image", "deployment/d", "i=j")
    assert "image updated" in changed.out
    patch = '{"spec":{"replicas":9}}'
    refused = space.kubectl("patch", "deployment", "d", "-p", patch, code=1)
    assert "denied request: at most 2 replicas" in refused.err
    server.kubectl("create", "deployment", "free", "--image=i", "--replicas=3")
    server.kubectl("delete", "validatingadmissionpolicybinding", "replicas")
    space.kubectl("patch", "deployment", "d", "-p", patch)
    server.kubectl("delete", "validatingadmissionpolicy", "replicas")


def test_policies_are_shown_described_and_explained(server):
    server.apply(SHOWN)
    listed = server.kubectl("get", "validatingadmissionpolicies").out
    assert re.search("^NAME +VALIDATIONS +PARAMKIND +AGE\n", listed)
    assert re.search("^shown +1 +v1/ConfigMap +", listed, re.MULTILINE)
    listed = server.kubectl("get", "validatingadmissionpolicybindings").out
    assert re.search("^shown +shown +default/limits +", listed, re.MULTILINE)
    described = server.kubectl("describe", "validatingadmissionpolicy", "shown").out
    assert "Expression:          object.spec.replicas <= variables.most" in described
    path = "validatingadmissionpolicy.spec.validations.messageExpression"
    assert "FIELD: messageExpression <string>" in server.kubectl("explain", path).out
    assert "unchanged" in server.apply(SHOWN).out
    wrong = POLICY.replace("object.spec.replicas <=", "object.spec.replicas <<")
    refused = server.kubectl("apply", "-f", "-", stdin=wrong, code=1)
    assert "spec.validations[0].expression: Invalid value" in refused.err
    assert "compilation failed: ERROR: <input>:1:23: Syntax error" in refused.err
    server.kubectl("delete", ALL, "--all")


def test_warnings_of_a_policy_reach_the_user(server):
    tree = POLICY.replace("validationActions: [Deny]", "validationActions: [Warn, Audit]")
    tree = tree.replace('{matchLabels: {limited: "yes"}}', "{}")
    server.apply(tree)
    said = server.kubectl("create", "deployment", "w", "--image=i", "--replicas=3")
    assert said.err == (
        "Warning: Validation failed for ValidatingAdmissionPolicy 'replicas' with binding "
        "'replicas': at most 2 replicas\n"
    )
    server.kubectl("delete", ALL, "--all")
