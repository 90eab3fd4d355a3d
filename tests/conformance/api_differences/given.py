"""The objects that exist before a request is sent, by the end of their path."""

import re
from typing import Any

from app.domain.objects import registry
from tests.conformance.api_differences.blocks import Block

CONTAINER = {"name": "a", "image": "b"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
SUBREQUEST = {"name": "s", "deviceClassName": "c"}
TWO_REQUESTS = [
    {"name": "a", "exactly": {"deviceClassName": "c"}},
    {"name": "b", "firstAvailable": [SUBREQUEST]},
]
DEPLOYMENT = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
POD = {"spec": {"schedulerName": "none", "containers": [CONTAINER]}}
RULE = {"taint": {"key": "k", "effect": "NoSchedule"}}
SMP_STATUS = {
    "allocation": {
        "devices": {"results": [{"request": "r", "driver": "d.io", "pool": "p", "device": "x"}]}
    },
    "reservedFor": [{"resource": "pods", "name": "p2", "uid": "u2"}],
    "devices": [
        {
            "driver": "d.io",
            "pool": "p",
            "device": "x",
            "conditions": [
                {
                    "type": "B",
                    "status": "True",
                    "reason": "R",
                    "message": "",
                    "lastTransitionTime": "2020-01-01T00:00:00Z",
                }
            ],
        }
    ],
}

OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (r"configmaps/a", {"data": {"a": "1"}, "immutable": True}),
    (r"configmaps/p", {"metadata": {"labels": {"l": "1"}}, "data": {"a": "1"}}),
    (r"configmaps/ap", {"data": {"x": "1"}}),
    (r"configmaps/xb", {"metadata": {"labels": {"d": "1"}, "finalizers": ["a.b/c"]}}),
    (r"configmaps/xe", {"metadata": {"labels": {"d": "1"}}, "data": {"a": "1"}}),
    (r"configmaps/xf", {"metadata": {"labels": {"d": "1"}}, "data": {"a": "1"}}),
    (r"deployments/s[cd]", {"spec": DEPLOYMENT}),
    (r"replicationcontrollers/rc", {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}}),
    (r"resourceclaims/fvw", {"spec": CLAIM}),
    (r"resourceclaims/l[024]", {"metadata": {"labels": {"g": "y"}}, "spec": CLAIM}),
    (r"resourceclaims/l[13]", {"metadata": {"labels": {"g": "x"}}, "spec": CLAIM}),
    (r"resourceclaims/smp", {"spec": CLAIM, "status": SMP_STATUS}),
    (r"resourceclaims/st\d+", {"spec": {"devices": {"requests": TWO_REQUESTS}}}),
    (r"resourceslices/ok\w+", {"spec": {"driver": "x.y", "nodeName": "n", "pool": POOL}}),
    (r"devicetaintrules/tb\w+", {"spec": RULE}),
    (r"services/ss", {"spec": {"selector": {"a": "b"}, "ports": [{"name": "p1", "port": 80}]}}),
    (r"pods/su", POD),
    (r"pods/b1", {"spec": {"nodeName": "somewhere", "containers": [CONTAINER]}}),
    (r"persistentvolumeclaims/pvc", {"spec": {"accessModes": ["ReadWriteOnce"]}}),
]
"""Objects by their resource and name; a name is a pattern where several are alike."""

LISTED = {
    "configmaps": ("xb", "xe", "xf"),
    "resourceclaims": ("fvw", "l0", "l1", "l2", "l3", "l4", "smp"),
}
"""What a collection holds when it is read or deleted."""


def object_for(resource: str, name: str) -> dict[str, Any] | None:
    """The object that a request for this name needs; None when none is known."""
    for pattern, tree in OBJECTS:
        if re.fullmatch(pattern, f"{resource}/{name}"):
            metadata = {"name": name, **tree.get("metadata", {})}
            return {**tree, "metadata": metadata}
    return None


TABLES: dict[str, dict[str, Any]] = {
    "secrets": {"data": {"a": "YQ=="}},
    "serviceaccounts": {},
    "limitranges": {"spec": {"limits": []}},
    "replicationcontrollers": {
        "spec": {
            "selector": {"a": "b"},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "a", "image": "x:1"}]},
            },
        }
    },
    "events": {
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "dt49949"},
        "reason": "R",
        "message": "m",
        "type": "Normal",
        "count": 1,
    },
    "deployments": {
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "a", "image": "x:1"}]},
            },
        }
    },
    "controllerrevisions": {"revision": 1},
    "horizontalpodautoscalers": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "maxReplicas": 3,
        }
    },
    "roles": {"rules": []},
    "clusterroles": {"rules": []},
    "rolebindings": {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [
            {"kind": "User", "name": "x", "apiGroup": "rbac.authorization.k8s.io"},
            {"kind": "ServiceAccount", "name": "y"},
        ],
    },
    "persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
    },
    "storageclasses": {"provisioner": "p.q"},
    "volumeattachments": {
        "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "x"}}
    },
    "resourcepoolstatusrequests": {"spec": {"driver": "x.y"}},
    "validatingwebhookconfigurations": {"webhooks": []},
    "ipaddresses": {"spec": {"parentRef": {"resource": "services", "name": "x"}}},
    "servicecidrs": {"spec": {"cidrs": ["10.99.0.0/24"]}},
    "apiservices": {
        "spec": {
            "group": "xdt49949.io",
            "version": "v1",
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
        }
    },
    "customresourcedefinitions": {
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": {"plural": "foosdt49949", "kind": "Foo"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        }
    },
}
"""What tables show, by resource; what is not here is absent."""


def table_object(block: Block) -> tuple[str, dict[str, Any]]:
    """The collection of a block's table, and the object that it shows."""
    api_version, plural = block.path.split(" ")
    group, version = registry.split_api_version(api_version)
    prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
    kind = registry.find(group, plural)
    if kind is not None and kind.namespaced:
        prefix += f"/namespaces/{block.namespace}"
    shown = "\n".join(line for hunk in block.hunks for line in hunk.real)
    name = re.search(r'(?m)^\[\["([^"]+)",[^\[]*$', shown)
    name = name or re.search(r'\\"(.+?)\\" not found', shown)
    events = re.search(r'"(\w+)"\]\]$', shown)
    found = events if plural == "events" else name
    assert found is not None, block.title
    tree = {"metadata": {"name": found.group(1)}, **TABLES.get(plural, {})}
    return f"{prefix}/{plural}", tree
