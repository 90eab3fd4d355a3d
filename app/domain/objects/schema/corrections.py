"""Additions to published schemas: our extension kind, defaults of list keys, fields always shown.

Names are as published; `short` names are the last three parts (`core.v1.Container`).
"""

from collections.abc import Mapping
from typing import Any

from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

LOOSE = "redra.Loose"
"""The definition of an object whose only known part is the metadata."""

UNKNOWN = "redra.Unknown"
"""The definition of a value without known structure: objects in it are merged field by field."""

META_REF = {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
UNKNOWN_REF = {"$ref": f"#/$defs/{UNKNOWN}"}
INT_OR_STRING_REF = {"$ref": "#/$defs/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
_QUANTITY_REF = {"$ref": "#/$defs/io.k8s.apimachinery.pkg.api.resource.Quantity"}
_PACKAGE = "io.k8s.api.resource.v1alpha3."


def _ours(name: str) -> JsonObject:
    return {"$ref": f"#/$defs/{_PACKAGE}{name}"}


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _object(description: str, required: tuple[str, ...] = (), **properties: Any) -> JsonObject:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(required),
    }


_API_VERSION = _text("The group and version in which the object is written.")
_KIND = _text("The kind of the object.")

DEFINITIONS: Mapping[str, JsonObject] = {
    LOOSE: _object(
        "An object of a kind whose schema this release does not publish.",
        apiVersion=_API_VERSION,
        kind=_KIND,
        metadata=META_REF,
        spec={},
        status={},
        data={},
    ),
    UNKNOWN: {"type": "object", "additionalProperties": UNKNOWN_REF},
    _PACKAGE + "ResourceSlicePatch": {
        **_object(
            "ResourceSlicePatch changes attributes and capacity of published devices (KEP-5027). "
            "No release ships it.",
            ("spec",),
            apiVersion=_API_VERSION,
            kind=_KIND,
            metadata=META_REF,
            spec=_ours("ResourceSlicePatchSpec"),
        ),
        "x-kubernetes-group-version-kind": [
            {"group": api_groups.RESOURCE, "kind": "ResourceSlicePatch", "version": "v1alpha3"}
        ],
    },
    _PACKAGE + "ResourceSlicePatchSpec": _object(
        "What to change, and on which devices.",
        ("devices",),
        devices=_ours("DevicePatch"),
    ),
    _PACKAGE + "DevicePatch": _object(
        "One set of changes to all devices that the filter lets through.",
        filter=_ours("DevicePatchFilter"),
        priority={
            "type": "integer",
            "format": "int32",
            "description": "The higher priority wins; 0 when unset, then the older patch wins.",
        },
        attributes={
            "type": "object",
            "description": "Attributes to set or remove, by their fully qualified name.",
            "additionalProperties": _ours("DevicePatchAttribute"),
        },
        capacity={
            "type": "object",
            "description": "Capacities to set, by their fully qualified name.",
            "additionalProperties": _ours("DevicePatchCapacity"),
        },
    ),
    _PACKAGE + "DevicePatchFilter": _object(
        "Which devices are changed; everything that is given must fit. Empty: all devices.",
        deviceClassName=_text("Devices that this class selects."),
        driver=_text("Devices of this driver."),
        pool=_text("Devices of the pool of this name."),
        device=_text("The device of this name."),
        selectors={
            "type": "array",
            "description": "Expressions that must all be true for the device.",
            "items": {"$ref": "#/$defs/io.k8s.api.resource.v1.DeviceSelector"},
            "x-kubernetes-list-type": "atomic",
        },
    ),
    _PACKAGE + "DevicePatchAttribute": _object(
        "The new value of an attribute, or null to remove it. Exactly one field is set.",
        int={"type": "integer", "format": "int64", "description": "A whole number."},
        bool={"type": "boolean", "description": "True or false."},
        string=_text("A text of at most 64 bytes."),
        version=_text("A semantic version of at most 64 bytes."),
        null={
            "type": "object",
            "properties": {},
            "description": "Removes the attribute.",
        },
    ),
    _PACKAGE + "DevicePatchCapacity": _object(
        "The new amount of a capacity.", ("value",), value=_QUANTITY_REF
    ),
}

DEFAULTS: Mapping[str, Any] = {}
"""The defaults of whole definitions."""

FIELDS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "core.v1.ContainerPort": {"protocol": {"default": "TCP"}},
    "core.v1.ServicePort": {"protocol": {"default": "TCP"}},
}
"""The schema keys to add, by short name and field. The defaults are part of associative list
keys."""

_TIMES = {"firstTimestamp": None, "lastTimestamp": None}

_RESOURCE_ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "AllocatedDeviceStatus": {"conditions": None},
    "AllocationResult": {"devices": {}},
    "DeviceClaim": {"requests": None},
    "DeviceClass": {"spec": {}},
    "DeviceTaintRule": {"status": {}},
    "ResourceClaim": {"spec": {}, "status": {}},
    "ResourceClaimSpec": {"devices": {}},
    "ResourceClaimTemplateSpec": {"metadata": {}, "spec": {}},
    "ResourcePool": {"generation": 0},
}

ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "admissionregistration.v1.MutatingAdmissionPolicy": {"spec": {}},
    "admissionregistration.v1.MutatingAdmissionPolicyBinding": {"spec": {}},
    "admissionregistration.v1.MutatingWebhook": {"clientConfig": {}},
    "admissionregistration.v1.ValidatingAdmissionPolicy": {"spec": {}, "status": {}},
    "admissionregistration.v1.ValidatingAdmissionPolicyBinding": {"spec": {}},
    "admissionregistration.v1.ValidatingWebhook": {"clientConfig": {}},
    "apps.v1.DaemonSet": {"spec": {}, "status": {}},
    "apps.v1.DaemonSetSpec": {"template": {}, "updateStrategy": {}},
    "apps.v1.Deployment": {"spec": {}, "status": {}},
    "apps.v1.DeploymentSpec": {"strategy": {}, "template": {}},
    "apps.v1.ReplicaSet": {"spec": {}, "status": {}},
    "apps.v1.ReplicaSetSpec": {"template": {}},
    "apps.v1.ReplicaSetStatus": {"replicas": 0},
    "apps.v1.StatefulSet": {"spec": {}, "status": {}},
    "apps.v1.StatefulSetSpec": {"template": {}, "updateStrategy": {}},
    "apps.v1.StatefulSetStatus": {"availableReplicas": 0, "replicas": 0},
    "apps.v1.DaemonSetStatus": {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    },
    "batch.v1.CronJob": {"spec": {}, "status": {}},
    "batch.v1.CronJobSpec": {"jobTemplate": {}},
    "batch.v1.Job": {"spec": {}, "status": {}},
    "batch.v1.JobSpec": {"template": {}},
    "batch.v1.JobTemplateSpec": {"metadata": {}, "spec": {}},
    "coordination.v1.Lease": {"spec": {}},
    "core.v1.Container": {"resources": {}},
    "core.v1.ContainerStatus": {"lastState": {}, "state": {}},
    "core.v1.EphemeralContainer": {"resources": {}},
    "core.v1.Event": {
        **_TIMES,
        "eventTime": None,
        "involvedObject": {},
        "reportingComponent": "",
        "reportingInstance": "",
        "source": {},
    },
    "core.v1.LimitRange": {"spec": {}},
    "core.v1.LimitRangeSpec": {"limits": None},
    "core.v1.Namespace": {"spec": {}, "status": {}},
    "core.v1.Node": {"spec": {}, "status": {}},
    "core.v1.NodeStatus": {"daemonEndpoints": {}, "nodeInfo": {}},
    "core.v1.NodeDaemonEndpoints": {"kubeletEndpoint": {}},
    "core.v1.DaemonEndpoint": {"Port": 0},
    "core.v1.NodeSystemInfo": dict.fromkeys(
        (
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ),
        "",
    ),
    "core.v1.PersistentVolume": {"spec": {}, "status": {}},
    "core.v1.PersistentVolumeClaim": {"spec": {}, "status": {}},
    "core.v1.PersistentVolumeClaimSpec": {"resources": {}},
    "core.v1.PersistentVolumeClaimTemplate": {"metadata": {}, "spec": {}},
    "core.v1.Pod": {"spec": {}, "status": {}},
    "core.v1.PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "core.v1.PodTemplate": {"template": {}},
    "core.v1.ReplicationController": {"spec": {}, "status": {}},
    "core.v1.ReplicationControllerStatus": {"replicas": 0},
    "core.v1.ResourceQuota": {"spec": {}, "status": {}},
    "core.v1.Service": {"spec": {}, "status": {}},
    "core.v1.ServiceStatus": {"loadBalancer": {}},
    "core.v1.PodTemplateSpec": {"metadata": {}, "spec": {}},
    "apiregistration.v1.APIService": {"spec": {}, "status": {}},
    "autoscaling.v1.HorizontalPodAutoscaler": {"spec": {}, "status": {}},
    "autoscaling.v1.HorizontalPodAutoscalerStatus": {"currentReplicas": 0, "desiredReplicas": 0},
    "autoscaling.v2.HorizontalPodAutoscaler": {"spec": {}, "status": {}},
    "autoscaling.v2.HorizontalPodAutoscalerStatus": {"currentMetrics": None, "desiredReplicas": 0},
    "certificates.v1.CertificateSigningRequest": {"spec": {}, "status": {}},
    "discovery.v1.Endpoint": {"conditions": {}},
    "discovery.v1.EndpointSlice": {"endpoints": None, "ports": None},
    "networking.v1.HTTPIngressPath": {"backend": {}},
    "networking.v1.Ingress": {"spec": {}, "status": {}},
    "networking.v1.IngressClass": {"spec": {}},
    "networking.v1.IngressStatus": {"loadBalancer": {}},
    "networking.v1.IPAddress": {"spec": {}},
    "networking.v1.ServiceCIDR": {"spec": {}, "status": {}},
    "networking.v1.NetworkPolicy": {"spec": {}},
    "networking.v1.NetworkPolicySpec": {"podSelector": {}},
    "policy.v1.PodDisruptionBudget": {"spec": {}, "status": {}},
    "policy.v1.PodDisruptionBudgetStatus": {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
    "rbac.v1.ClusterRole": {"rules": None},
    "rbac.v1.Role": {"rules": None},
    "storage.v1.CSIDriver": {"spec": {}},
    "storage.v1.CSINode": {"spec": {}},
    "storage.v1.CSINodeDriver": {"topologyKeys": None},
    "storage.v1.CSINodeSpec": {"drivers": None},
    "storage.v1.VolumeAttachment": {"spec": {}, "status": {}},
    "storage.v1.VolumeAttachmentSpec": {"source": {}},
    "storage.v1.VolumeAttachmentStatus": {"attached": False},
    "events.v1.Event": {
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
        "deprecatedSource": {},
        "eventTime": None,
        "regarding": {},
    },
    **{
        f"resource.{version}.{name}": fields
        for version in ("v1", "v1beta2", "v1beta1", "v1alpha3")
        for name, fields in _RESOURCE_ALWAYS.items()
    },
}
"""The fields that are shown even if unset, with the shown value, by short name.

They are structs without a pointer in the Go types, or lists that are written even if they are
empty. Time fields and empty lists show as null. Checked against recorded objects.
"""

KEEPS_EMPTY: Mapping[str, frozenset[str]] = {
    "ClusterRole": frozenset({"rules"}),
    "DeviceAttribute": frozenset({"bools", "ints", "strings", "versions"}),
    "DeviceClaim": frozenset({"requests"}),
    "EndpointSlice": frozenset({"endpoints", "ports"}),
    "ResourceSliceSpec": frozenset({"devices", "sharedCounters"}),
    "Role": frozenset({"rules"}),
}
"""The lists that are kept if present and empty, by type, because validation uses them or their
writer owns them."""

STORED_EMPTY: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("", "LimitRange"): (("spec", "limits"),),
    (api_groups.DISCOVERY, "EndpointSlice"): (("endpoints",), ("ports",)),
    (api_groups.RBAC, "ClusterRole"): (("rules",),),
    (api_groups.RBAC, "Role"): (("rules",),),
    (api_groups.RESOURCE, "ResourceClaim"): (("spec", "devices", "requests"),),
    (api_groups.RESOURCE, "ResourceClaimTemplate"): (("spec", "spec", "devices", "requests"),),
    (api_groups.STORAGE, "CSINode"): (("spec", "drivers"),),
}
"""The lists that are stored as null if they are sent empty, by group and kind. Their writer owns
them all the same, because the API server sets managed fields before it stores the object."""
