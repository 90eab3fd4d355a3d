"""Right objects of the stored kinds, from which the tests of their rules deviate."""

from typing import Any

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

GONE = object()
"""In the place of a value: the field is left out."""

TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "busybox"}]},
}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
RBAC = "rbac.authorization.k8s.io"
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
_RULE = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}}
_WRITES = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["deployments", "deployments/scale"],
}
ADMISSION = "admissionregistration.k8s.io"
WEBHOOK = {
    "name": "a.example.com",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"service": {"name": "s", "namespace": "default", "path": "/check"}},
    "matchConditions": [{"name": "named", "expression": "has(object.metadata.name)"}],
    "rules": [_WRITES],
    "sideEffects": "None",
}
POLICY = {
    "matchConstraints": {
        "excludeResourceRules": [{**_WRITES, "resourceNames": ["y"]}],
        "resourceRules": [_WRITES],
    },
    "matchConditions": [{"name": "named", "expression": "has(object.metadata.name)"}],
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "variables": [{"name": "size", "expression": "1"}],
}
BINDING = {
    "policyName": "x",
    "paramRef": {"name": "p", "namespace": "default", "parameterNotFoundAction": "Deny"},
    "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
}

RIGHT: dict[str, tuple[str, JsonObject]] = {
    "Pod": ("v1", {"spec": TEMPLATE["spec"]}),
    "PersistentVolumeClaim": (
        "v1",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "fast",
            }
        },
    ),
    "Deployment": ("apps/v1", {"spec": SELECTED}),
    "ReplicaSet": ("apps/v1", {"spec": SELECTED}),
    "StatefulSet": ("apps/v1", {"spec": {"serviceName": "s", **SELECTED}}),
    "DaemonSet": ("apps/v1", {"spec": SELECTED}),
    "Job": ("batch/v1", {"spec": JOB}),
    "CronJob": ("batch/v1", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}}),
    "PodDisruptionBudget": (
        "policy/v1",
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            }
        },
    ),
    "Lease": ("coordination.k8s.io/v1", {"spec": {"leaseDurationSeconds": 15}}),
    "Ingress": ("networking.k8s.io/v1", {"spec": {"rules": [_RULE]}}),
    "Role": (
        f"{RBAC}/v1",
        {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    ),
    "ClusterRole": (
        f"{RBAC}/v1",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]},
    ),
    "RoleBinding": (
        f"{RBAC}/v1",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "s"}],
        },
    ),
    "ClusterRoleBinding": (
        f"{RBAC}/v1",
        {
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
        },
    ),
    "StorageClass": ("storage.k8s.io/v1", {"provisioner": "a.example", "parameters": {"a": "b"}}),
    "ValidatingWebhookConfiguration": (f"{ADMISSION}/v1", {"webhooks": [WEBHOOK]}),
    "MutatingWebhookConfiguration": (f"{ADMISSION}/v1", {"webhooks": [WEBHOOK]}),
    "ValidatingAdmissionPolicy": (
        f"{ADMISSION}/v1",
        {
            "spec": {
                **POLICY,
                "auditAnnotations": [{"key": "size", "valueExpression": "'x'"}],
                "validations": [{"expression": "object.metadata.name != 'x'", "message": "no"}],
            }
        },
    ),
    "ValidatingAdmissionPolicyBinding": (
        f"{ADMISSION}/v1",
        {"spec": {**BINDING, "validationActions": ["Deny", "Audit"]}},
    ),
    "MutatingAdmissionPolicy": (
        f"{ADMISSION}/v1",
        {
            "spec": {
                **POLICY,
                "reinvocationPolicy": "Never",
                "mutations": [
                    {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}},
                    {
                        "patchType": "ApplyConfiguration",
                        "applyConfiguration": {"expression": "Object{}"},
                    },
                ],
            }
        },
    ),
    "MutatingAdmissionPolicyBinding": (f"{ADMISSION}/v1", {"spec": BINDING}),
    "VolumeAttributesClass": (
        "storage.k8s.io/v1",
        {"driverName": "a.example", "parameters": {"a": "b"}},
    ),
    "ServiceCIDR": ("networking.k8s.io/v1", {"spec": {"cidrs": ["10.99.0.0/24"]}}),
    "IPAddress": (
        "networking.k8s.io/v1",
        {"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}},
    ),
    "APIService": (
        "apiregistration.k8s.io/v1",
        {
            "spec": {
                "group": "a.example",
                "version": "v1",
                "groupPriorityMinimum": 10,
                "versionPriority": 10,
                "service": {"namespace": "n", "name": "s"},
            }
        },
    ),
}
NAMES = {"APIService": "v1.a.example", "IPAddress": "10.99.0.7"}
"""Names of the kinds of which not every name will do."""
CLUSTER_WIDE = (
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "IPAddress",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ServiceCIDR",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttributesClass",
)


def right(kind: str, **changes: Any) -> JsonObject:
    """A right object; a change such as `spec__replicas=2` puts a value at a path."""
    version, body = RIGHT[kind]
    metadata = {"name": NAMES.get(kind, "x")} | (
        {} if kind in CLUSTER_WIDE else {"namespace": "default"}
    )
    tree = {"apiVersion": version, "kind": kind, "metadata": metadata, **json_tree.copy(body)}
    for path, value in changes.items():
        place: Any = tree
        *above, last = (int(step) if step.isdigit() else step for step in path.split("__"))
        for step in above:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return tree
