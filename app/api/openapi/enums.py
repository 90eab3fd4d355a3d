"""The allowed texts of fields for OpenAPI v3, which the published schema files leave out.

Only the documents contain them; validation decides what is accepted. Parity: api.md 4; enumerations
in the v3 documents of a real server.
"""

from collections.abc import Mapping
from functools import lru_cache

from app.domain.objects.schema import structural
from app.domain.values.json_tree import JsonObject

_EFFECTS = "NoExecute NoSchedule PreferNoSchedule"
_PREEMPTION = "Never PreemptLowerPriority"
_PROTOCOLS = "SCTP TCP UDP"
_PROFILES = "Localhost RuntimeDefault Unconfined"
_PULLS = "Always IfNotPresent Never"
_MESSAGES = "FallbackToLogsOnError File"
_VOLUME_MODES = "Block Filesystem"
_ACCESS = "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod"
_RECLAIM = "Delete Recycle Retain"
_SCOPES = (
    "BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating PriorityClass Terminating "
    "VolumeAttributesClass"
)
_TRAFFIC = "Cluster Local"
_CONTAINER = {"imagePullPolicy": _PULLS, "terminationMessagePolicy": _MESSAGES}

ENUMS: Mapping[str, Mapping[str, str]] = {
    "apps.v1.DaemonSetUpdateStrategy": {"type": "OnDelete RollingUpdate"},
    "apps.v1.DeploymentStrategy": {"type": "Recreate RollingUpdate"},
    "apps.v1.StatefulSetSpec": {"podManagementPolicy": "OrderedReady Parallel"},
    "apps.v1.StatefulSetUpdateStrategy": {"type": "OnDelete RollingUpdate"},
    "batch.v1.CronJobSpec": {"concurrencyPolicy": "Allow Forbid Replace"},
    "batch.v1.JobSpec": {
        "completionMode": "Indexed NonIndexed",
        "podReplacementPolicy": "Failed TerminatingOrFailed",
    },
    "batch.v1.PodFailurePolicyOnExitCodesRequirement": {"operator": "In NotIn"},
    "batch.v1.PodFailurePolicyRule": {"action": "Count FailIndex FailJob Ignore"},
    "core.v1.AppArmorProfile": {"type": _PROFILES},
    "core.v1.Container": _CONTAINER,
    "core.v1.ContainerPort": {"protocol": _PROTOCOLS},
    "core.v1.EndpointPort": {"protocol": _PROTOCOLS},
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.HTTPGetAction": {"scheme": "HTTP HTTPS"},
    "core.v1.NamespaceStatus": {"phase": "Active Terminating"},
    "core.v1.NodeSelectorRequirement": {"operator": "DoesNotExist Exists Gt In Lt NotIn"},
    "core.v1.NodeStatus": {"phase": "Pending Running Terminated"},
    "core.v1.PersistentVolumeClaimSpec": {"accessModes": _ACCESS, "volumeMode": _VOLUME_MODES},
    "core.v1.PersistentVolumeClaimStatus": {"accessModes": _ACCESS, "phase": "Bound Lost Pending"},
    "core.v1.PersistentVolumeSpec": {
        "accessModes": _ACCESS,
        "persistentVolumeReclaimPolicy": _RECLAIM,
        "volumeMode": _VOLUME_MODES,
    },
    "core.v1.PersistentVolumeStatus": {"phase": "Available Bound Failed Pending Released"},
    "core.v1.PodSecurityContext": {
        "fsGroupChangePolicy": "Always OnRootMismatch",
        "supplementalGroupsPolicy": "Merge Strict",
    },
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
        "preemptionPolicy": _PREEMPTION,
        "restartPolicy": "Always Never OnFailure",
    },
    "core.v1.PodStatus": {
        "phase": "Failed Pending Running Succeeded Unknown",
        "qosClass": "BestEffort Burstable Guaranteed",
    },
    "core.v1.PortStatus": {"protocol": _PROTOCOLS},
    "core.v1.ResourceQuotaSpec": {"scopes": _SCOPES},
    "core.v1.ScopedResourceSelectorRequirement": {
        "operator": "DoesNotExist Exists In NotIn",
        "scopeName": _SCOPES,
    },
    "core.v1.SeccompProfile": {"type": _PROFILES},
    "core.v1.SecurityContext": {"procMount": "Default Unmasked"},
    "core.v1.ServicePort": {"protocol": _PROTOCOLS},
    "core.v1.ServiceSpec": {
        "externalTrafficPolicy": _TRAFFIC,
        "internalTrafficPolicy": _TRAFFIC,
        "ipFamilyPolicy": "PreferDualStack RequireDualStack SingleStack",
        "sessionAffinity": "ClientIP None",
        "type": "ClusterIP ExternalName LoadBalancer NodePort",
    },
    "core.v1.Taint": {"effect": _EFFECTS},
    "core.v1.Toleration": {"effect": _EFFECTS, "operator": "Equal Exists"},
    "core.v1.TopologySpreadConstraint": {
        "nodeAffinityPolicy": "Honor Ignore",
        "nodeTaintsPolicy": "Honor Ignore",
        "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
    },
    "discovery.v1.EndpointPort": {"protocol": _PROTOCOLS},
    "discovery.v1.EndpointSlice": {"addressType": "FQDN IPv4 IPv6"},
    "networking.v1.HTTPIngressPath": {"pathType": "Exact ImplementationSpecific Prefix"},
    "networking.v1.IngressPortStatus": {"protocol": _PROTOCOLS},
    "networking.v1.NetworkPolicyPort": {"protocol": _PROTOCOLS},
    "networking.v1.NetworkPolicySpec": {"policyTypes": "Egress Ingress"},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": _PREEMPTION},
    "storage.v1.StorageClass": {
        "reclaimPolicy": _RECLAIM,
        "volumeBindingMode": "Immediate WaitForFirstConsumer",
    },
}
"""Sorted texts by short name of a definition and field; for a list the texts of its items."""

_SINCE = {("core.v1.Toleration", "operator"): (35, "Equal Exists Gt Lt")}
"""Texts of a field from a minor release on."""


def add(name: str, component: JsonObject, minor: int) -> None:
    """Add the allowed texts of a definition's fields to its component, in place."""
    short = structural.short_name(name)
    for field, text in ENUMS.get(short, {}).items():
        since, more = _SINCE.get((short, field), (0, text))
        place = component.get("properties", {}).get(field)
        if place is None:
            continue
        if place.get("type") == "array":
            place = place["items"]
        place["enum"] = list(_words(more if minor >= since else text))


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
