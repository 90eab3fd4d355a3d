"""The same steps of the real kubectl for each kind that is served.

The kinds are those of discovery, so one that comes later fails here until it has its manifest.
Each is explained, created, created again, compared, applied, read, described, patched, scaled or
rolled out where it can be, asked about and deleted.
"""

import json
import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

SECRET = "c2VjcmV0"
REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0="
SELECTOR = {"matchLabels": {"a": "b"}}
POD = {"containers": [{"name": "c", "image": "i:1"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
WORKLOAD = {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}
DEVICES = {"requests": [{"name": "r", "exactly": {"deviceClassName": "none"}}]}
JOB = {"template": {"spec": POD | {"restartPolicy": "Never"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "name": "x"}
POLICY = {
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": ["x.y"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["none"],
            }
        ]
    }
}
BINDING = {"policyName": "x"}
WEBHOOK = {
    "name": "w.x.y",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://w.x.y/"},
    "failurePolicy": "Ignore",
    "rules": [
        {
            "apiGroups": ["x.y"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["none"],
        }
    ],
}
DEFINITION = {
    "group": "x.y",
    "scope": "Namespaced",
    "names": {"plural": "things", "kind": "Thing"},
    "versions": [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
    ],
}
MANIFESTS = {
    "APIService": {
        "metadata": {"name": "v1.a.b"},
        "spec": {
            "group": "a.b",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
            "service": {"name": "s", "namespace": "default"},
            "insecureSkipTLSVerify": True,
        },
    },
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": [{"name": "disk.example.com", "nodeID": "one"}]}},
    "CSIStorageCapacity": {"storageClassName": "s"},
    "CertificateSigningRequest": {
        "spec": {"request": REQUEST, "signerName": "a.b/c", "usages": ["client auth"]}
    },
    "ClusterRole": {"rules": RULES},
    "ClusterRoleBinding": {"roleRef": ROLE_REF | {"kind": "ClusterRole"}},
    "ConfigMap": {"data": {"a": "b"}},
    "ControllerRevision": {"revision": 1},
    "CronJob": {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}}},
    "CustomResourceDefinition": {"metadata": {"name": "things.x.y"}, "spec": DEFINITION},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "Deployment": {"spec": WORKLOAD},
    "DeviceClass": {"spec": {}},
    "DeviceTaintRule": {"spec": {"taint": {"key": "k", "effect": "NoSchedule"}}},
    "EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80, "name": "web"}],
    },
    "Endpoints": {"subsets": []},
    "Event": {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}},
    "HorizontalPodAutoscaler": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 2,
        }
    },
    "IPAddress": {
        "metadata": {"name": "10.96.7.7"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}},
    },
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "IngressClass": {"spec": {"controller": "a.b/c"}},
    "Job": {"spec": JOB},
    "Lease": {"spec": {"holderIdentity": "h"}},
    "LimitRange": {
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}]}
    },
    "MutatingAdmissionPolicy": {
        "spec": POLICY
        | {
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{}"},
                }
            ],
        }
    },
    "MutatingAdmissionPolicyBinding": {"spec": BINDING},
    "MutatingWebhookConfiguration": {"webhooks": [WEBHOOK]},
    "Namespace": {},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "Node": {},
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
    },
    "PersistentVolumeClaim": {"spec": VOLUME},
    "Pod": {"spec": POD | {"schedulerName": "nobody"}},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "PodTemplate": {"template": TEMPLATE},
    "PriorityClass": {"value": 1},
    "ReplicaSet": {"spec": WORKLOAD},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    "ResourceClaim": {"spec": {"devices": DEVICES}},
    "ResourceClaimTemplate": {"spec": {"spec": {"devices": DEVICES}}},
    "ResourceQuota": {"spec": {"hard": {"pods": "100"}}},
    "ResourceSlice": {
        "spec": {
            "driver": "d.x.y",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        }
    },
    "ResourceSlicePatch": {
        "spec": {"devices": {"attributes": {"d.x.y/a": {"string": "x"}}}},
    },
    "Role": {"rules": RULES},
    "RoleBinding": {"roleRef": ROLE_REF | {"kind": "Role"}},
    "RuntimeClass": {"handler": "h"},
    "Secret": {"data": {"a": SECRET}},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "ServiceAccount": {},
    "ServiceCIDR": {"spec": {"cidrs": ["10.99.0.0/24"]}},
    "StatefulSet": {
        "spec": WORKLOAD
        | {
            "serviceName": "s",
            "template": TEMPLATE
            | {
                "spec": {
                    "containers": [
                        POD["containers"][0] | {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
                    ]
                }
            },
            "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": VOLUME}],
        }
    },
    "StorageClass": {"provisioner": "a.b/c"},
    "ValidatingAdmissionPolicy": {
        "spec": POLICY | {"validations": [{"expression": "true"}]},
    },
    "ValidatingAdmissionPolicyBinding": {"spec": BINDING | {"validationActions": ["Deny"]}},
    "ValidatingWebhookConfiguration": {"webhooks": [WEBHOOK]},
    "VolumeAttachment": {
        "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    "VolumeAttributesClass": {"driverName": "a.b", "parameters": {"a": "b"}},
}
"""The least of each kind; each is named `k-` and its kind in lower case unless it has a name."""


def manifest(kind, api_version):
    tree = MANIFESTS[kind]
    metadata = {"name": f"k-{kind.lower()}"} | tree.get("metadata", {})
    return {"apiVersion": api_version, "kind": kind, **tree, "metadata": metadata}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("kinds")) as found:
        yield found


@pytest.fixture(scope="module")
def kinds(server):
    """Kind, resource with its group, and apiVersion, of all that can be made and listed."""
    lines = server.kubectl(
        "api-resources", "--verbs=create,delete,get,list,patch,update,watch", "--no-headers"
    ).out.splitlines()
    rows = [re.split(r"\s+", line) for line in lines]
    found = {}
    for row in rows:
        api_version, _, kind = row[-3:]
        group = api_version.rpartition("/")[0]
        found.setdefault(kind, (f"{row[0]}.{group}" if group else row[0], api_version))
    return found


def text_of(kinds, *, labels=None):
    trees = []
    for kind, (_, api_version) in kinds.items():
        tree = manifest(kind, api_version)
        if labels:
            tree["metadata"]["labels"] = labels
        trees.append(tree)
    return "\n---\n".join(json.dumps(tree) for tree in trees)


def test_each_kind_lives_through_the_story(server, kinds):
    assert set(kinds) == set(MANIFESTS)
    text = text_of(kinds)
    made = server.create(text).out.splitlines()
    assert len(made) == len(kinds)
    assert all(line.endswith(" created") for line in made)
    again = server.create(text, code=1)
    assert again.err.count("AlreadyExists") == len(kinds)

    # What is stored is what was asked for. Forced: atomic fields with defaults inside conflict.
    forced = ("--server-side", "--force-conflicts")
    server.kubectl("diff", *forced, "-f", "-", stdin=text)
    applied = server.apply(text, *forced).out.splitlines()
    assert sum(line.endswith(" serverside-applied") for line in applied) == len(kinds)
    labelled = text_of(kinds, labels={"story": "told"})
    changed = server.kubectl("diff", *forced, "-f", "-", stdin=labelled, code=1)
    assert changed.out.count("+    story: told") == len(kinds)

    listed = server.kubectl("get", "-f", "-", "-o", "name", stdin=text).out.split()
    assert len(listed) == len(kinds)
    table = server.kubectl("get", "-f", "-", stdin=text).out
    unseen = {name for name in listed if name.partition("/")[2] not in table}
    assert {name.partition("/")[0] for name in unseen} == {"event"}  # no such column
    # kubectl itself parses the request of a CertificateSigningRequest, here a stand-in.
    told = {kind: row for kind, row in kinds.items() if kind != "CertificateSigningRequest"}
    described = server.kubectl("describe", "-f", "-", stdin=text_of(told)).out
    assert len(re.findall(r"^Name: ", described, re.MULTILINE)) >= len(told)

    patch = '{"metadata":{"annotations":{"story":"patched"}}}'
    patched = server.kubectl("patch", "-f", "-", "--type=merge", "-p", patch, stdin=text).out
    assert patched.count(" patched") == len(kinds)
    server.kubectl("wait", "--for=condition=Established", "crd/things.x.y", "--timeout=20s")

    deleted = server.kubectl("delete", "-f", "-", "--wait=false", stdin=text).out
    assert deleted.count("deleted") == len(kinds)
    server.kubectl("wait", "--for=delete", "-f", "-", "--timeout=60s", stdin=text)
    gone = server.kubectl("get", "-f", "-", "--ignore-not-found", "-o", "name", stdin=text)
    assert gone.out == ""


def test_each_kind_is_explained_and_can_be_asked_about(server, kinds):
    # What is served of each kind is in `tests/api/test_openapi.py`; the command reads it alike.
    for kind, (resource, api_version) in draws.part(list(kinds.items()), 5):
        plural = resource.partition(".")[0]
        said = server.kubectl("explain", plural, f"--api-version={api_version}").out
        assert re.search(rf"^KIND: +{kind}$", said, re.MULTILINE), resource
        assert "metadata" in said, resource
    allowed = server.kubectl("auth", "can-i", "delete", "resourceslices.resource.k8s.io").out
    assert allowed == "yes\n"
    rights = server.kubectl("auth", "can-i", "--list").out
    assert re.search(r"^\*\.\* +\[\] +\[\] +\[\*\]", rights, re.MULTILINE)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_workload_is_rolled_out_with_its_volumes(server, kind):
    name = f"rolled-{kind.lower()}"
    tree = manifest(kind, "apps/v1")
    tree["metadata"] = {"name": name}
    server.kubectl(
        "apply", "-f", "-", stdin='{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}'
    )
    server.apply(json.dumps(tree))
    if kind == "StatefulSet":  # Its pod waits for a volume, and nobody provides any.
        server.kubectl("wait", "--for=create", f"pvc/v-{name}-0", "--timeout=20s")
        server.kubectl("patch", "pvc", f"v-{name}-0", "-p", '{"spec":{"volumeName":"volume"}}')
    said = server.kubectl("rollout", "status", f"{kind}/{name}", "--timeout=60s").out
    assert re.search("successfully rolled out|rolling update complete|roll out complete", said)
    if kind == "StatefulSet":
        claim = server.json("get", "pvc", f"v-{name}-0")
        assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    server.kubectl("delete", kind, name)


def test_job_applied_by_the_client_may_be_applied_by_the_server(server):
    text = json.dumps(manifest("Job", "batch/v1") | {"metadata": {"name": "both"}})
    assert "created" in server.apply(text).out
    assert "serverside-applied" in server.apply(text, "--server-side").out
    managers = server.json("get", "job", "both", "--show-managed-fields")["metadata"]
    owners = {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in managers["managedFields"]
        if entry.get("subresource") is None
    }
    applied = owners[("kubectl", "Apply")]
    template = applied["f:spec"]["f:template"]["f:spec"]
    assert set(template) == {"f:containers", "f:restartPolicy"}
    assert set(applied["f:spec"]) == {"f:template"}
    server.kubectl("delete", "job", "both")
