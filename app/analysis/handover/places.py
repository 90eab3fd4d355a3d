"""The fields of a redacted history that may contain text: kinds, fields, and words of Kubernetes.

Text of any other field is replaced, so that unknown fields reveal nothing.
"""

import re

from app.domain.objects import registry as kinds
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

_GROUPS = frozenset(
    (
        api_groups.APPS,
        api_groups.BATCH,
        api_groups.POLICY,
        api_groups.RESOURCE,
        api_groups.SCHEDULING,
    )
)

READ = frozenset(
    (kind.group, kind.plural) for kind in kinds.kinds() if kind.group in _GROUPS
) | frozenset(
    (api_groups.CORE, resource)
    for resource in (
        "limitranges",
        "namespaces",
        "nodes",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "services",
    )
)
"""The groups and resources whose objects decisions may use; nothing else is exported."""

NAMES = frozenset(
    (
        "name",
        "namespace",
        "nodeName",
        "generateName",
        "resourceClaimName",
        "resourceClaimTemplateName",
        "deviceClassName",
        "pool",
        "poolName",
        "device",
        "request",
        "serviceAccountName",
        "serviceAccount",
        "serviceName",
        "schedulerName",
        "priorityClassName",
        "claimName",
        "counterSet",
        "hostname",
        "subdomain",
        "nominatedNodeName",
        "podName",
        "image",
        "namespaces",
        "node",
        "parentRequests",
        "requests",
    )
)
"""Fields whose text, or whose items, are names, even if they look like numbers."""

UIDS = frozenset(("uid", "shareID"))
"""Fields whose text is a random identifier, which logs of the real cluster may contain."""

VALUES = frozenset(("string", "strings", "values"))
"""Fields whose text, or whose items, are replaced except for integers, which may be compared."""

COUNTERS = "counters"
"""The field whose keys are names of counters, which no selector and no claim names."""

NAMED_BY_USERS = frozenset(
    (COUNTERS, "attributes", "capacity", "labels", "matchLabels", "nodeSelector", "selector")
)
"""Fields with objects whose keys are names that drivers and users choose, not fields."""

RESOURCES = frozenset(("extendedResourceName", "resource", "resourceName"))
"""Fields whose text is the name of a resource, which may contain the name of a class."""

LABELS = frozenset(("labels", "matchLabels", "nodeSelector", "selector"))
"""Fields with objects whose texts are values of labels."""

TAINTS = frozenset(("taint", "taints", "tolerations"))
"""Fields whose `value` is a text; elsewhere it is an amount."""

LEFT_OUT = frozenset(
    (
        "annotations",
        "managedFields",
        "selfLink",
        "env",
        "envFrom",
        "args",
        "command",
        "description",
        "message",
        "volumes",
        "volumeMounts",
        "volumeDevices",
        "volumeClaimTemplates",
        "imagePullSecrets",
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
        "images",
        "os",
        "workingDir",
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "terminationMessagePath",
        "securityContext",
        "hostAliases",
        "dnsConfig",
        "runtimeClassName",
        "runtimeHandlers",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "addresses",
        "nodeInfo",
        "externalID",
        "providerID",
        "podCIDR",
        "podCIDRs",
        "configSource",
        "config",
        "volumesInUse",
        "volumesAttached",
        "timeZone",
        "data",
        "stringData",
        "binaryData",
        "networkData",
    )
)
"""Fields that are left out of the export."""

STAYING = frozenset(
    (
        # Types and identity.
        "apiGroup",
        "apiVersion",
        "kind",
        "resourceVersion",
        "version",
        "driver",
        # Keys of labels, taints and attributes, names of resources and types of conditions.
        "bindingConditions",
        "bindingFailureConditions",
        "conditionType",
        "distinctAttribute",
        "extendedResourceName",
        "key",
        "labelKeys",
        "matchAttribute",
        "matchLabelKeys",
        "mismatchLabelKeys",
        "resourceName",
        "topologyKey",
        "type",
        # Words of which the API has a fixed set.
        "action",
        "allocationMode",
        "completionMode",
        "concurrencyPolicy",
        "declaredFeatures",
        "disruptionMode",
        "dnsPolicy",
        "effect",
        "imagePullPolicy",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "operator",
        "phase",
        "podManagementPolicy",
        "podReplacementPolicy",
        "preemptionPolicy",
        "protocol",
        "qosClass",
        "restartPolicy",
        "scopeName",
        "scopes",
        "status",
        "terminationMessagePolicy",
        "unhealthyPodEvictionPolicy",
        "whenDeleted",
        "whenScaled",
        "whenUnsatisfiable",
    )
)
"""Fields whose text is kept."""

_WORDS = frozenset(
    (
        "None",
        "default-scheduler",
        "foregroundDeletion",
        "kubernetes",
        "orphan",
        # Reasons of pods and of their conditions.
        "Completed",
        "ContainersNotReady",
        "ContainersNotInitialized",
        "DeadlineExceeded",
        "DeletionByDeviceTaintManager",
        "DeletionByPodGC",
        "DeletionByTaintManager",
        "Evicted",
        "EvictionByEvictionAPI",
        "NodeAffinity",
        "NodeLost",
        "NodeShutdown",
        "OutOfcpu",
        "OutOfmemory",
        "OutOfpods",
        "PodCompleted",
        "PodFailed",
        "Preempting",
        "PreemptionByScheduler",
        "SchedulerError",
        "SchedulingGated",
        "Shutdown",
        "Terminated",
        "TerminationByKubelet",
        "UnexpectedAdmissionError",
        "Unschedulable",
        # Reasons of nodes.
        "KubeletHasDiskPressure",
        "KubeletHasInsufficientMemory",
        "KubeletHasInsufficientPID",
        "KubeletHasNoDiskPressure",
        "KubeletHasSufficientDisk",
        "KubeletHasSufficientMemory",
        "KubeletHasSufficientPID",
        "KubeletNotReady",
        "KubeletReady",
        "NodeStatusUnknown",
        "NodeStatusNeverUpdated",
        # Strategies of workloads.
        "OnDelete",
        "Recreate",
        "RollingUpdate",
    )
)
"""Texts that are kept in any field, except as names of objects."""

_AMOUNT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i|%)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_SCHEDULE = re.compile(r"@[a-z]{5,8}|[\d*/,-]+( [\d*/,-]+){4}")
_OF_KUBERNETES = re.compile(r"([a-z0-9-]+\.)?kubernetes\.io/[a-z0-9-]+")


def reveals_nothing(field: str, text: str) -> bool:
    """Whether a text other than a name reveals nothing: an amount, a time, a word of Kubernetes."""
    return (
        field in STAYING
        or text in _WORDS
        or bool(_AMOUNT.fullmatch(text) or _TIME.fullmatch(text))
        or (field == "schedule" and bool(_SCHEDULE.fullmatch(text)))
        or (field == "finalizers" and bool(_OF_KUBERNETES.fullmatch(text)))
    )


def is_exported(group: str, resource: str) -> bool:
    """Whether objects of a resource are exported."""
    return (group, resource) in READ


def exported_part(tree: JsonObject) -> JsonObject:
    """The exported part of an object: for a Service, only the pods that it selects."""
    if tree.get("kind") != "Service" or tree.get("apiVersion") != "v1":
        return tree
    spec: JsonObject = {"clusterIP": "None"}  # so that the API asks for neither addresses nor ports
    selector = tree.get("spec", {}).get("selector")
    if selector:
        spec["selector"] = selector
    kept: JsonObject = {
        name: tree[name] for name in ("apiVersion", "kind", "metadata") if name in tree
    }
    return {**kept, "spec": spec}
