"""The story that runs under kills: acts whose outcome does not depend on timing.

Pods whose selector matches one device get that device; competing pods are counted; generated
objects are counted by their owner. An act is an API request, so the same story runs in process and
against real servers. Names are fixed, so an act may be repeated: its object then already exists, or
is already gone. A finished story leaves all devices free for the next one.
"""

from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

GPU = "gpu.example.com"
NODES = 4
DEVICES = 4
CORE, RESOURCE, APPS, BATCH = "v1", "resource.k8s.io/v1", "apps/v1", "batch/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One write. `verb` is create, delete or patch (merge)."""

    verb: str
    version: str
    resource: str
    name: str
    namespace: str = ""
    body: JsonObject | None = None


def chapters(home: str) -> list[list[Act]]:
    """The story in chapters, in its own namespace; the cluster comes to rest after each."""
    return [_beginning(home), _arrivals(home), _trouble(home), _ends(home), _return(home)]


def last_acts(home: str) -> list[Act]:
    """The acts that free the devices after the story."""
    return [_delete(CORE, "namespaces", home)]


def fleet() -> list[Act]:
    """The acts that create nodes, slices and the class, which all stories share."""
    found = [
        _create(CORE, "namespaces", {"kind": "Namespace"}, "default"),
        _create(RESOURCE, "deviceclasses", {"kind": "DeviceClass", "spec": {}}, "gpu"),
    ]
    for number in range(NODES):
        name = f"n{number}"
        room = {"cpu": "32", "memory": "64Gi", "pods": "20"}
        status = {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        labels = {"kubernetes.io/hostname": name}
        node: JsonObject = {"kind": "Node", "metadata": {"labels": labels}, "status": status}
        found.append(_create(CORE, "nodes", node, name))
        devices = [
            {
                "name": f"d{place}",
                "attributes": {"slot": {"string": f"{name}-d{place}"}, "row": {"int": number}},
            }
            for place in range(DEVICES)
        ]
        spec = {
            "driver": GPU,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        }
        tree: JsonObject = {"kind": "ResourceSlice", "spec": spec}
        found.append(_create(RESOURCE, "resourceslices", tree, name))
    return found


def _beginning(home: str) -> list[Act]:
    found = [
        _create(CORE, "namespaces", {"kind": "Namespace"}, name) for name in (home, f"{home}-gone")
    ]
    for place in (f"n{number}-d{device}" for number in range(NODES) for device in range(DEVICES)):
        expression = f"device.attributes['{GPU}'].slot == '{place}'"
        found.append(_template(f"at-{place}", expression, home))
    patient = [{"operator": "Exists", "effect": "NoExecute"}]
    found.append(_template("stoic", f"device.attributes['{GPU}'].slot == 'n0-d3'", home, patient))
    for namespace in (home, f"{home}-gone"):
        found.append(_template("row", f"device.attributes['{GPU}'].row == 3", namespace))
    return found


def _arrivals(home: str) -> list[Act]:
    """The acts that create pods: rows 0 to 2 are for single pods, row 3 is for many; all fit."""
    found = [_pod(f"fixed-{n}-{d}", f"at-n{n}-d{d}", home) for n in range(2) for d in range(3)]
    found += [_pod(f"short-{d}", f"at-n2-d{d}", home, seconds=5) for d in range(2)]
    found.append(_pod("stoic", "stoic", home))
    found.append(_deployment("web", 2, home))
    found.append(_pod("visitor", "row", f"{home}-gone"))
    found.append(_job("batch", 3, home))
    return found


def _trouble(home: str) -> list[Act]:
    rule: JsonObject = {
        "kind": "DeviceTaintRule",
        "spec": {
            "deviceSelector": {"driver": GPU, "pool": "n0"},
            "taint": {"key": "example.com/bad", "effect": "NoExecute"},
        },
    }
    found = [_create(RESOURCE, "devicetaintrules", rule, f"bad-{home}")]
    found.append(_pod("after-taint", "at-n0-d0", home))
    found += [_pod(f"last-{d}", f"at-n2-d{d}", home) for d in range(2)]
    # One device is left for four.
    found += [_pod(f"crowd-{number}", "row", home) for number in range(4)]
    return found


def _ends(home: str) -> list[Act]:
    return [
        _delete(CORE, "pods", "fixed-1-0", home),
        _pod("heir", "at-n1-d0", home),
        _delete(CORE, "namespaces", f"{home}-gone"),
        _delete(BATCH, "jobs", "batch", home),
        Act(
            verb="patch",
            version=APPS,
            resource="deployments",
            name="web",
            namespace=home,
            body={"spec": {"replicas": 1}},
        ),
    ]


def _return(home: str) -> list[Act]:
    """The acts that remove the taint; waiting pods then get the devices."""
    return [
        _delete(RESOURCE, "devicetaintrules", f"bad-{home}"),
        _pod("again", "at-n0-d1", home),
        _delete(APPS, "deployments", "web", home),
    ]


def final_state(home: str, objects: list[JsonObject]) -> JsonObject:
    """The part of the existing objects of a story that does not depend on timing."""
    homes = {home, f"{home}-gone"}
    by_kind: dict[str, list[JsonObject]] = {}
    for tree in objects:
        place = json_tree.text(tree, "metadata", "namespace") or json_tree.text(
            tree, "metadata", "name"
        )
        if place in homes:
            by_kind.setdefault(json_tree.text(tree, "kind"), []).append(tree)
    claims = {
        (json_tree.text(c, "metadata", "namespace"), json_tree.text(c, "metadata", "name")): c
        for c in by_kind.get("ResourceClaim", [])
    }
    singles: JsonObject = {}
    counted: dict[str, int] = {}
    for pod in by_kind.get("Pod", []):
        name = json_tree.text(pod, "metadata", "name")
        group = _group_of(pod, name)
        if group:
            is_bound = bool(json_tree.text(pod, "spec", "nodeName"))
            place = f"{group} {json_tree.text(pod, 'status', 'phase')} bound={is_bound}"
            counted[place] = counted.get(place, 0) + 1
        else:
            singles[name] = [
                json_tree.text(pod, "status", "phase"),
                json_tree.text(pod, "spec", "nodeName"),
                _devices_of(pod, claims),
            ]
    return {
        "pods": dict(sorted(singles.items())),
        "groups": dict(sorted(counted.items())),
        "claims": len(claims),
        "allocated": sum(bool(json_tree.get(c, "status", "allocation")) for c in claims.values()),
        "namespaces": len(by_kind.get("Namespace", [])),
        "workloads": sorted(
            f"{kind} {json_tree.text(tree, 'metadata', 'name').split('-')[0]}"
            for kind in ("Deployment", "Job")
            for tree in by_kind.get(kind, [])
        ),
    }


def _group_of(pod: JsonView, name: str) -> str:
    owner = next(iter(json_tree.objects(pod, "metadata", "ownerReferences")), None)
    if owner is not None:
        return f"{owner['kind']} {owner['name'].split('-')[0]}"
    # Pods of a deleted Job stay, without an owner and under names that were drawn.
    if prefix := json_tree.text(pod, "metadata", "generateName"):
        return f"left {prefix}"
    # Who shares a row of devices with others gets one or another of them.
    return name.split("-")[0] if name.startswith(("crowd", "visitor")) else ""


def _devices_of(pod: JsonView, claims: dict[tuple[str, str], JsonObject]) -> list[str]:
    namespace = json_tree.text(pod, "metadata", "namespace")
    found = []
    for status in json_tree.objects(pod, "status", "resourceClaimStatuses"):
        claim = claims.get((namespace, json_tree.text(status, "resourceClaimName")), {})
        for result in json_tree.objects(claim, "status", "allocation", "devices", "results"):
            found.append(f"{result['pool']}/{result['device']}")
    return found


def _create(version: str, resource: str, tree: JsonObject, name: str, namespace: str = "") -> Act:
    body = {"apiVersion": version, **tree}
    body["metadata"] = {**tree.get("metadata", {}), "name": name}
    if namespace:
        body["metadata"]["namespace"] = namespace
    return Act(
        verb="create",
        version=version,
        resource=resource,
        name=name,
        namespace=namespace,
        body=body,
    )


def _delete(version: str, resource: str, name: str, namespace: str = "") -> Act:
    return Act(verb="delete", version=version, resource=resource, name=name, namespace=namespace)


def _template(
    name: str, expression: str, namespace: str, tolerations: list[JsonObject] | None = None
) -> Act:
    asked: JsonObject = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": expression}}],
    }
    if tolerations:
        asked["tolerations"] = tolerations
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}}
    tree: JsonObject = {"kind": "ResourceClaimTemplate", "spec": spec}
    return _create(RESOURCE, "resourceclaimtemplates", tree, name, namespace)


def _pod_spec(template: str) -> JsonObject:
    return {
        "containers": [{"name": "main", "image": "busybox:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
    }


def _pod(name: str, template: str, namespace: str, *, seconds: int | None = None) -> Act:
    annotations = {} if seconds is None else {"redra.dev/run-seconds": str(seconds)}
    spec = {**_pod_spec(template), "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    tree: JsonObject = {"kind": "Pod", "metadata": {"annotations": annotations}, "spec": spec}
    return _create(CORE, "pods", tree, name, namespace)


def _deployment(name: str, replicas: int, namespace: str) -> Act:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {**_pod_spec("row"), "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return _create(APPS, "deployments", {"kind": "Deployment", "spec": spec}, name, namespace)


def _job(name: str, completions: int, namespace: str) -> Act:
    template = {
        "metadata": {"annotations": {"redra.dev/run-seconds": "1"}},
        "spec": {**_pod_spec("row"), "restartPolicy": "Never"},
    }
    spec = {"completions": completions, "parallelism": 1, "template": template}
    return _create(BATCH, "jobs", {"kind": "Job", "spec": spec}, name, namespace)
