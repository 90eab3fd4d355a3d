"""One small cluster, from which the files of every format are made, and what it holds."""

import copy

LABEL = "made/for"
UIDS = "00000000-0000-4000-8000-"


def _object(number, api_version, kind, name, namespace="", **parts):
    metadata = {
        "name": name,
        "uid": f"{UIDS}{number:012d}",
        "resourceVersion": str(100 + number),
        "creationTimestamp": f"2026-01-02T03:04:{number:02d}Z",
        "labels": {LABEL: "the-tests"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


OBJECTS = (
    _object(1, "v1", "Namespace", "shop", spec={"finalizers": ["kubernetes"]}),
    _object(
        2,
        "v1",
        "Node",
        "n1",
        status={"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "4"}},
    ),
    _object(
        3,
        "resource.k8s.io/v1",
        "DeviceClass",
        "gpu",
        spec={"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
    ),
    _object(
        4,
        "resource.k8s.io/v1",
        "ResourceSlice",
        "n1-gpu",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"index": {"int": 0}}}],
        },
    ),
    _object(
        5,
        "resource.k8s.io/v1",
        "ResourceClaim",
        "claim",
        "shop",
        spec={
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "allocationMode": "ExactCount",
                            "count": 1,
                        },
                    }
                ]
            }
        },
        status={},
    ),
    _object(
        6,
        "v1",
        "Pod",
        "web-1",
        "shop",
        spec={"nodeName": "n1", "containers": [{"name": "main", "image": "web:1"}]},
        status={"phase": "Running"},
    ),
    _object(
        7,
        "apps/v1",
        "DaemonSet",
        "agent",
        "shop",
        spec={
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": []}},
        },
    ),
    _object(
        8,
        "batch/v1",
        "CronJob",
        "nightly",
        "shop",
        spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": {}}},
    ),
)

PLURALS = {
    "Namespace": "namespaces",
    "Node": "nodes",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "Pod": "pods",
    "DaemonSet": "daemonsets",
    "CronJob": "cronjobs",
}


def objects(*kinds):
    """Copies of the objects of some kinds, or of all."""
    return [copy.deepcopy(tree) for tree in OBJECTS if not kinds or tree["kind"] in kinds]


def key(tree):
    """Kind, namespace and name."""
    metadata = tree["metadata"]
    return tree["kind"], metadata.get("namespace", ""), metadata["name"]


def bare(tree):
    """The object without kind and version, as typed servers and tools write items."""
    return {name: part for name, part in tree.items() if name not in ("apiVersion", "kind")}


def group(tree):
    """The group of an object, empty for the core."""
    return tree["apiVersion"].rpartition("/")[0]


def typed_list(kind, *, is_empty=False):
    """The list of one kind as a server answers it: items without kind."""
    found = objects(kind)
    return {
        "kind": f"{kind}List",
        "apiVersion": found[0]["apiVersion"],
        "metadata": {"resourceVersion": "200"},
        "items": None if is_empty else [bare(tree) for tree in found],
    }
