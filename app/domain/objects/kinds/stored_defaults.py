"""Defaults of kinds that are only stored: networks, volumes, autoscalers, certificates.

The functions change trees in place like `defaults`, which is the only caller, except of
`prepare_signing_request`.
"""

from collections.abc import Callable

from app.domain.log import Actor
from app.domain.objects.kinds import limit_ranges
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject

_CPU_PERCENT = 80
"""The default CPU utilization of an autoscaler in percent."""
_SCALING_SECONDS = 15
"""The period of an autoscaler's default policies in seconds."""


def prepare_signing_request(tree: JsonObject, actor: Actor) -> None:
    """Replaces the user fields of a certificate request by the actor, in place."""
    spec = tree.setdefault("spec", {})
    for name in ("extra", "groups", "uid", "username"):
        spec.pop(name, None)
    spec["username"] = actor.user
    if actor.groups:
        spec["groups"] = list(actor.groups)


def _storage_class(tree: JsonObject) -> None:
    tree.setdefault("reclaimPolicy", "Delete")
    tree.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _network_policy(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for way in ("ingress", "egress"):
        for rule in json_tree.objects(spec, way):
            for port in core.ports(rule):
                port.setdefault("protocol", "TCP")


def _ingress_class(tree: JsonObject) -> None:
    parameters = json_tree.get(tree, "spec", "parameters")
    if isinstance(parameters, dict):
        parameters.setdefault("scope", "Cluster")


def _endpoint_slice(tree: JsonObject) -> None:
    for port in core.ports(tree):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _autoscaler(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _CPU_PERCENT}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        behavior["scaleUp"] = {"stabilizationWindowSeconds": 0} | _scaling(behavior, "scaleUp")
        behavior["scaleDown"] = _scaling(behavior, "scaleDown")


def _scaling(behavior: JsonObject, way: str) -> JsonObject:
    """The scaling rules for one direction with defaults: up by 100% or four pods, down by 100%."""
    rules = dict(behavior.get(way) or {})
    rules.setdefault("selectPolicy", "Max")
    if not rules.get("policies"):
        whole = {"periodSeconds": _SCALING_SECONDS, "type": "Percent", "value": 100}
        some = {"periodSeconds": _SCALING_SECONDS, "type": "Pods", "value": 4}
        rules["policies"] = [some, whole] if way == "scaleUp" else [whole]
    return rules


def _endpoints(tree: JsonObject) -> None:
    for subset in json_tree.objects(tree, "subsets"):
        for port in core.ports(subset):
            port.setdefault("protocol", "TCP")


def fill_volume_claim(tree: JsonObject) -> None:
    """Sets the defaults of a PersistentVolumeClaim, also of the templates in StatefulSets."""
    spec = tree.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)
    tree.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(tree: JsonObject) -> None:
    spec = tree.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    tree.setdefault("status", {}).setdefault("phase", "Pending")


def _api_service(tree: JsonObject) -> None:
    service = json_tree.get(tree, "spec", "service")
    if isinstance(service, dict):
        service.setdefault("port", 443)


def _binding(tree: JsonObject) -> None:
    role = tree.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        role["apiGroup"] = api_groups.RBAC
    for subject in json_tree.objects(tree, "subjects"):
        if not subject.get("apiGroup") and subject.get("kind") in ("Group", "User"):
            subject["apiGroup"] = api_groups.RBAC


BY_KIND: dict[tuple[str, str], Callable[[JsonObject], None]] = {
    ("", "Endpoints"): _endpoints,
    ("", "LimitRange"): limit_ranges.fill_range,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): fill_volume_claim,
    (api_groups.API_REGISTRATION, "APIService"): _api_service,
    (api_groups.AUTOSCALING, "HorizontalPodAutoscaler"): _autoscaler,
    (api_groups.DISCOVERY, "EndpointSlice"): _endpoint_slice,
    (api_groups.NETWORKING, "IngressClass"): _ingress_class,
    (api_groups.NETWORKING, "NetworkPolicy"): _network_policy,
    (api_groups.RBAC, "ClusterRoleBinding"): _binding,
    (api_groups.RBAC, "RoleBinding"): _binding,
    (api_groups.STORAGE, "CSIDriver"): _csi_driver,
    (api_groups.STORAGE, "StorageClass"): _storage_class,
}
"""The functions that set defaults, by group and kind."""
