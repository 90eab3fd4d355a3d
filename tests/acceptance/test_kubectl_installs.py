"""kubectl installs an operator whole: some thirty objects of the kinds that installs bring.

The operator ("tidewater", which keeps pools of accelerators) is made up for this test.
"""

import json
import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.tidewater.example.org}
spec:
  group: tidewater.example.org
  scope: SCOPE
  names: {kind: KIND, plural: PLURAL, singular: SINGULAR, listKind: KINDList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How many devices.}
              mode: {type: string, enum: [Shared, Whole], default: Whole}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tidewater-WHO, labels: {rbac.authorization.k8s.io/aggregate-to-WHO: "true"}}
rules: [{apiGroups: [tidewater.example.org], resources: [basins, harbors], verbs: VERBS}]
"""
REST = """
apiVersion: v1
kind: Namespace
metadata: {name: tidewater, labels: {app: tidewater}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: operator, namespace: tidewater}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics, namespace: tidewater}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tidewater-operator}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {tidewater.example.org/part: "true"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tidewater-part-claims, labels: {tidewater.example.org/part: "true"}}
rules: [{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tidewater-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tidewater-operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: tidewater}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tidewater-delegation}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: metrics, namespace: tidewater}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tidewater-clients, namespace: kube-system}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects: [{kind: ServiceAccount, name: metrics, namespace: tidewater}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leases, namespace: tidewater}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leases, namespace: tidewater}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leases}
subjects: [{kind: ServiceAccount, name: operator, namespace: tidewater}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: operator, namespace: tidewater}
spec: {holderIdentity: operator-0, leaseDurationSeconds: 15}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: tidewater}
data: {level: info}
---
apiVersion: v1
kind: Secret
metadata: {name: serving, namespace: tidewater}
type: Opaque
data: {ca: bWFkZS11cA==}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits, namespace: tidewater}
spec: {limits: [{type: Container, default: {cpu: 200m}, defaultRequest: {cpu: 50m}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: tidewater}
spec: {hard: {pods: "20", requests.cpu: "4"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: tidewater-critical}
value: 1000000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: tidewater}
spec:
  replicas: 2
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec:
      serviceAccountName: operator
      priorityClassName: tidewater-critical
      containers: [{name: operator, image: "example.org/tidewater/operator:1"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: metrics, namespace: tidewater}
spec:
  selector: {matchLabels: {app: metrics}}
  template:
    metadata: {labels: {app: metrics}}
    spec:
      serviceAccountName: metrics
      containers: [{name: metrics, image: "example.org/metrics:1"}]
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: tidewater}
spec: {selector: {app: metrics}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.levels.tidewater.example.org}
spec:
  group: levels.tidewater.example.org
  version: v1alpha1
  groupPriorityMinimum: 100
  versionPriority: 15
  insecureSkipTLSVerify: true
  service: {name: metrics, namespace: tidewater}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: operator, namespace: tidewater}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: operator}}}
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: metrics, namespace: tidewater}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: metrics}
  targetCPUUtilizationPercentage: 70
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: metrics, namespace: tidewater}
spec:
  podSelector: {matchLabels: {app: metrics}}
  ingress: [{ports: [{port: 8443, protocol: TCP}]}]
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: tidewater-fast}
driverName: disks.example.org
parameters: {iops: "3000"}
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: tidewater}
spec: {cidrs: [10.200.0.0/24]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: basin.tidewater.example.org}
spec: {selectors: [{cel: {expression: "device.driver == 'tidewater.example.org'"}}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: tidewater}
webhooks:
- name: basins.tidewater.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: metrics, namespace: tidewater, path: /check}}
  rules:
  - apiGroups: [tidewater.example.org]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [basins]
    scope: "*"
"""
SAMPLE = """
apiVersion: tidewater.example.org/v1beta1
kind: Basin
metadata: {name: north, namespace: tidewater}
spec: {size: 4}
"""


def definition(kind, plural, scope):
    text = DEFINITION.replace("PLURAL", plural).replace("SCOPE", scope)
    return text.replace("KIND", kind).replace("SINGULAR", kind.lower())


def role(who, verbs):
    return ROLE.replace("WHO", who).replace("VERBS", verbs)


INSTALL = "---".join(
    (
        definition("Basin", "basins", "Namespaced"),
        definition("Harbor", "harbors", "Cluster"),
        role("view", "[get, list, watch]"),
        role("edit", "[create, delete, patch, update]"),
        REST,
    )
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("installs")) as found:
        yield found.within("")


@pytest.fixture(scope="module")
def installed(server):
    """The server after the install, and what the install said."""
    return server, server.apply(INSTALL)


def test_every_object_of_the_install_is_made(installed):
    _, said = installed
    lines = said.out.splitlines()
    assert len(lines) == len(re.findall("^kind: ", INSTALL, re.MULTILINE))
    assert all(line.endswith(" created") for line in lines), said.said


def test_second_install_changes_nothing(installed):
    """kubectl always sends the selector of a budget, which its schema tells it to replace."""
    server, said = installed
    again = server.apply(INSTALL).out
    budget = "poddisruptionbudget.policy/operator"
    assert again.replace(f"{budget} configured", f"{budget} unchanged") == said.out.replace(
        " created", " unchanged"
    )


def test_install_can_be_taken_over_by_server_side_apply(installed):
    server, _ = installed
    said = server.apply(INSTALL, "--server-side", "--force-conflicts", "--field-manager=chart")
    assert all(line.endswith(" serverside-applied") for line in said.out.splitlines()), said.said


def test_samples_of_the_operator_are_defaulted_and_judged(installed):
    server, _ = installed
    server.apply(SAMPLE)
    assert server.json("get", "basin", "north", "-n", "tidewater")["spec"]["mode"] == "Whole"
    refused = server.apply(SAMPLE.replace("size: 4", "size: 0"), code=1)
    assert "spec.size" in refused.err
    assert "How many devices." in server.kubectl("explain", "basin.spec.size").out


def test_rights_of_the_operator_reach_the_roles_of_every_cluster(installed):
    server, _ = installed

    def rules(name):
        found = server.json("get", "clusterrole", name)["rules"]
        return {
            verb
            for rule in found
            if "tidewater.example.org" in rule.get("apiGroups", ())
            for verb in rule["verbs"]
        }

    server.kubectl("wait", "--for=jsonpath={.rules[0].apiGroups[0]}=resource.k8s.io",
                   "clusterrole/tidewater-operator", "--timeout=30s")  # fmt: skip
    assert rules("view") == {"get", "list", "watch"}
    assert (
        rules("edit")
        == rules("admin")
        == {*("create", "delete", "get", "list", "patch", "update", "watch")}
    )


def test_namespaces_have_what_every_namespace_has(installed):
    server, _ = installed
    for namespace in ("default", "tidewater", "kube-system"):
        names = server.kubectl("get", "sa,cm", "-o", "name", namespace=namespace).out
        assert "serviceaccount/default\n" in names
        assert "configmap/kube-root-ca.crt\n" in names
    server.kubectl("delete", "sa", "default", namespace="tidewater")
    server.kubectl("wait", "--for=create", "sa/default", "--timeout=30s", namespace="tidewater")


def test_pods_of_the_operator_get_the_limits_of_their_namespace(installed):
    server, _ = installed
    server.kubectl("wait", "--for=create", "rs", "-l", "app=operator", "-n", "tidewater",
                   "--timeout=30s", code=None)  # fmt: skip
    server.kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deploy/operator",
                   "-n", "tidewater", "--timeout=60s")  # fmt: skip
    pods = server.json("get", "pods", "-l", "app=operator", "-n", "tidewater")["items"]
    assert len(pods) == 2
    for pod in pods:
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "50m"}
        assert "kubernetes.io/limit-ranger" in pod["metadata"]["annotations"]


def test_api_service_says_that_it_is_not_asked(installed):
    server, _ = installed
    name = "apiservice/v1alpha1.levels.tidewater.example.org"
    server.kubectl("wait", "--for=condition=Available=false", name, "--timeout=30s")
    row = "^v1alpha1.levels.tidewater.example.org +tidewater/metrics +False .FailedDiscoveryCheck."
    assert re.search(row, server.kubectl("get", "apiservices").out, re.MULTILINE)
    assert "not passed on" in server.kubectl("describe", name).out


KINDS = [
    ("apiservice", "v1alpha1.levels.tidewater.example.org", {"versionPriority": 16}),
    ("servicecidr", "tidewater", {"cidrs": ["10.200.0.0/24", "2001:db8:7::/96"]}),
]


@pytest.mark.parametrize(("kind", "name", "change"), KINDS)
def test_kind_is_explained_described_changed_and_compared(installed, kind, name, change):
    server, _ = installed
    assert "FIELDS:" in server.kubectl("explain", kind).out
    assert "FIELDS:" in server.kubectl("explain", f"{kind}.spec").out
    described = server.kubectl("describe", kind, name).out
    assert re.search(f"^Name: +{name}$", described, re.MULTILINE)
    before = server.json("get", kind, name)
    patch = json.dumps({"spec": change})
    server.kubectl("patch", kind, name, "--type=merge", "-p", patch)
    server.kubectl("label", kind, name, "seen=yes")
    after = server.json("get", kind, name)
    for field, value in change.items():
        assert after["spec"][field] == value
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    text = json.dumps({**after, "metadata": {"name": name, "labels": {"seen": "no"}}})
    difference = server.kubectl("diff", "-f", "-", stdin=text, code=1).out
    assert '-    seen: "yes"' in difference.replace("'", '"')


def test_addresses_classes_and_old_autoscalers_are_shown(installed):
    server, _ = installed
    assert re.search(
        "^tidewater-fast +disks.example.org", server.kubectl("get", "vac").out, re.MULTILINE
    )
    shown = server.kubectl(
        "get", "horizontalpodautoscalers.v1.autoscaling", "metrics", "-n", "tidewater", "-o", "yaml"
    )
    assert "targetCPUUtilizationPercentage: 70" in shown.out
    newer = server.json("get", "hpa", "metrics", "-n", "tidewater")
    assert newer["apiVersion"] == "autoscaling/v2"
    text = """
        {apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: 10.200.0.7},
         spec: {parentRef: {resource: services, namespace: tidewater, name: metrics}}}
    """
    server.apply(text)
    assert "services/tidewater/metrics" in server.kubectl("get", "ip").out
    server.kubectl("delete", "ip", "10.200.0.7")


@pytest.mark.parametrize(
    ("who", "verb", "what", "answer"),
    [
        ("operator", "list", "resourceclaims.resource.k8s.io", "yes"),
        ("operator", "delete", "basins.tidewater.example.org", "yes"),
    ],
)
def test_questions_about_rights_are_answered(installed, who, verb, what, answer):
    """Without an authorizer everything is allowed, as a real server without one answers."""
    server, _ = installed
    user = f"--as=system:serviceaccount:tidewater:{who}"
    said = server.kubectl("auth", "can-i", verb, what, user, code=None)
    assert said.out.strip().splitlines()[-1] == answer


def test_explain_knows_the_texts_of_a_field_and_the_old_document(installed):
    server, _ = installed
    explained = server.kubectl("explain", "pod.spec.restartPolicy").out
    assert re.search("ENUM:\n +Always\n +Never\n +OnFailure", explained)
    old = server.kubectl("explain", "deployment.spec.strategy", "--output=plaintext-openapiv2").out
    assert "rollingUpdate" in old
    assert "basin" in server.kubectl("explain", "basin", "--output=plaintext-openapiv2").out.lower()


def test_uninstall_leaves_nothing_behind(installed):
    server, _ = installed
    server.kubectl("delete", "-f", "-", "--wait=true", "--timeout=60s", stdin=INSTALL, seconds=120)
    left = server.kubectl("get", "-f", "-", "--ignore-not-found", stdin=INSTALL, code=None).out
    assert left == ""
    assert "tidewater" not in json.dumps(server.json("get", "clusterrole", "admin")["rules"])
