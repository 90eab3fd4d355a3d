"""What a request finds: objects by the end of their path, made before it is sent."""

import re
from typing import Any

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
    """The object that a request for this name finds; None when nothing is known of it."""
    for pattern, tree in OBJECTS:
        if re.fullmatch(pattern, f"{resource}/{name}"):
            metadata = {"name": name, **tree.get("metadata", {})}
            return {**tree, "metadata": metadata}
    return None
