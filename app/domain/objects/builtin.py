"""The table of built-in kinds: adding a kind is adding a row.

Parity: objects.md 1, api.md 2 and 6. The storage version is the first of `versions`; keys
in the log carry `group` and `plural`.
"""

from typing import Any

from app.domain.objects.kind import ALL_VERBS, FieldLabel, Kind, Served
from app.domain.values.api_groups import (
    ADMISSION_REGISTRATION,
    API_EXTENSIONS,
    API_REGISTRATION,
    APPS,
    AUTOSCALING,
    BATCH,
    CERTIFICATES,
    COORDINATION,
    CORE,
    DISCOVERY,
    EVENTS,
    NETWORKING,
    NODE,
    POLICY,
    RBAC,
    RESOURCE,
    SCHEDULING,
    STORAGE,
)


def _labels(*rows: str) -> tuple[FieldLabel, ...]:
    """Parses rows such as `spec.nodeName`, `source:source.component`, `spec.unschedulable=false`.

    A row is a label, its path after a colon where that differs, and its default after `=`.
    """
    labels = []
    for row in rows:
        text, _, default = row.partition("=")
        label, _, path = text.partition(":")
        labels.append(
            FieldLabel(label=label, path=tuple((path or label).split(".")), default=default)
        )
    return tuple(labels)


NAME_LABEL = _labels("metadata.name")
"""The selectable fields of every cluster-scoped kind."""
BOTH_LABELS = _labels("metadata.name", "metadata.namespace")
"""The selectable fields of every namespaced kind."""

_POD_LABELS = BOTH_LABELS + _labels(
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork=false",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_JOB_LABELS = BOTH_LABELS + _labels("status.successful:status.succeeded=0")
_SERVICE_LABELS = BOTH_LABELS + _labels("spec.clusterIP", "spec.type")
_EVENT_LABELS = BOTH_LABELS + _labels(
    *(
        f"{prefix}.{field}:involvedObject.{field}"
        for prefix in ("involvedObject", "regarding")
        for field in (
            "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath",
        )
    ),
    "reason",
    "reportingComponent",
    "reportingController:reportingComponent",
    "source:source.component",
    "type",
)  # fmt: skip

_CLAIM_TIMES = {
    "v1": Served(since=34),
    "v1beta2": Served(since=33, deprecated=36, until=39),
    "v1beta1": Served(since=32, deprecated=35, until=38),
}
_RULE_TIMES = {
    "v1": Served(since=37),
    "v1beta2": Served(since=36, deprecated=39, until=42),
    "v1alpha3": Served(since=33, deprecated=36, until=39),
}


def _core(kind: str, plural: str, *short_names: str, **more: Any) -> Kind:
    return _make(CORE, ("v1",), kind, plural, short_names, **more)


def _plain(group: str, kind: str, plural: str, *short_names: str, **more: Any) -> Kind:
    return _make(group, ("v1",), kind, plural, short_names, **more)


def _resource(kind: str, plural: str, **more: Any) -> Kind:
    more.setdefault("served", _CLAIM_TIMES)
    versions = more.pop("versions", ("v1", "v1beta2", "v1beta1"))
    return _make(RESOURCE, versions, kind, plural, (), **more)


def _make(
    group: str,
    versions: tuple[str, ...],
    kind: str,
    plural: str,
    short_names: tuple[str, ...],
    **more: Any,
) -> Kind:
    more.setdefault("namespaced", True)
    more.setdefault("field_labels", BOTH_LABELS if more["namespaced"] else NAME_LABEL)
    more.setdefault("singular", kind.lower())
    return Kind(
        group=group, versions=versions, kind=kind, plural=plural, short_names=short_names, **more
    )


def _admission(kind: str, plural: str, **more: Any) -> Kind:
    return _plain(
        ADMISSION_REGISTRATION, kind, plural, namespaced=False, has_generation=True,
        categories=("api-extensions",), unconditional_update=False, **more,
    )  # fmt: skip


_FROM_36 = {"v1": Served(since=36)}
_STATUS = ("status",)
_SCALED = ("scale", "status")
_ALL = ("all",)


KINDS: tuple[Kind, ...] = (
    _core(
        "Namespace", "namespaces", "ns", namespaced=False, subresources=("finalize", "status"),
        columns="Namespace", field_labels=NAME_LABEL + _labels("status.phase"), name_format="label",
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    ),
    _core(
        "Node", "nodes", "no", namespaced=False, subresources=_STATUS, columns="Node",
        field_labels=NAME_LABEL + _labels("spec.unschedulable=false"),
    ),
    _core(
        "Pod", "pods", "po", categories=_ALL, columns="Pod", field_labels=_POD_LABELS,
        has_generation=True,
        subresources=("binding", "ephemeralcontainers", "eviction", "log", "resize", "status"),
    ),
    _core(
        "Event", "events", "ev", columns="Event", field_labels=_EVENT_LABELS, alias_group=EVENTS,
        created_by_update=True,
    ),
    _core("ConfigMap", "configmaps", "cm"),
    _core("Secret", "secrets", field_labels=BOTH_LABELS + _labels("type")),
    _core(
        "Service", "services", "svc", field_labels=_SERVICE_LABELS, categories=_ALL,
        subresources=_STATUS, name_format="label",
        created_by_update=True,
    ),
    _core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",)),
    _core(
        "Endpoints", "endpoints", "ep", singular="endpoints", created_by_update=True,
        served={"v1": Served(deprecated=33, successor="discovery.k8s.io/v1 EndpointSlice")},
    ),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=_STATUS),
    _core("PersistentVolume", "persistentvolumes", "pv", namespaced=False, subresources=_STATUS),
    _core("PodTemplate", "podtemplates", has_generation=True),
    _core("ResourceQuota", "resourcequotas", "quota", subresources=_STATUS),
    _core("LimitRange", "limitranges", "limits", created_by_update=True),
    _core(
        "ReplicationController", "replicationcontrollers", "rc",
        field_labels=BOTH_LABELS + _labels("status.replicas=0"), categories=_ALL, orphans=True,
        subresources=_SCALED, has_generation=True,
    ),
    _resource("DeviceClass", "deviceclasses", namespaced=False, has_generation=True),
    _resource("ResourceClaim", "resourceclaims", subresources=_STATUS, columns="ResourceClaim"),
    _resource("ResourceClaimTemplate", "resourceclaimtemplates"),
    _resource(
        "ResourceSlice", "resourceslices", namespaced=False, has_generation=True,
        columns="ResourceSlice",
        field_labels=NAME_LABEL + _labels("spec.nodeName", "spec.driver", "spec.pool.name"),
    ),
    _resource(
        "DeviceTaintRule", "devicetaintrules", namespaced=False, has_generation=True,
        subresources=_STATUS, columns="DeviceTaintRule", served=_RULE_TIMES,
        versions=("v1", "v1beta2", "v1alpha3"),
    ),
    _resource(
        "ResourceSlicePatch", "resourceslicepatches", namespaced=False, has_generation=True,
        versions=("v1alpha3",), served=None,
    ),
    _resource(
        "ResourcePoolStatusRequest", "resourcepoolstatusrequests", namespaced=False,
        subresources=_STATUS, versions=("v1alpha3",), served={"v1alpha3": Served(since=36)},
        gate="DRAResourcePoolStatus",
    ),
    _plain(
        COORDINATION, "Lease", "leases", unconditional_update=False,
        created_by_update=True,
    ),
    _plain(
        POLICY, "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=_STATUS,
        has_generation=True, unconditional_update=False,
    ),
    _plain(
        APPS, "Deployment", "deployments", "deploy", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        APPS, "ReplicaSet", "replicasets", "rs", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        APPS, "StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        APPS, "DaemonSet", "daemonsets", "ds", categories=_ALL, subresources=_STATUS,
        has_generation=True,
    ),
    _plain(APPS, "ControllerRevision", "controllerrevisions"),
    _plain(
        BATCH, "Job", "jobs", field_labels=_JOB_LABELS, categories=_ALL, subresources=_STATUS,
        has_generation=True, orphans=True,
    ),
    _plain(
        BATCH, "CronJob", "cronjobs", "cj", categories=_ALL, subresources=_STATUS,
        has_generation=True,
    ),
    _plain(
        SCHEDULING, "PriorityClass", "priorityclasses", "pc", namespaced=False,
        has_generation=True,
    ),
    _make(
        SCHEDULING, ("v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"), "Workload",
        "workloads", (), has_generation=True, gate="GenericWorkload",
        served={
            "v1beta1": Served(since=37),
            "v1alpha3": Served(since=37),
            "v1alpha2": Served(since=36, until=37),
            "v1alpha1": Served(since=35, until=36),
        },
    ),
    _make(
        SCHEDULING, ("v1beta1", "v1alpha3", "v1alpha2"), "PodGroup", "podgroups", (),
        has_generation=True, subresources=_STATUS, gate="GenericWorkload",
        served={
            "v1beta1": Served(since=37),
            "v1alpha3": Served(since=37),
            "v1alpha2": Served(since=36, until=37),
        },
    ),
    _plain(
        API_EXTENSIONS, "CustomResourceDefinition", "customresourcedefinitions", "crd",
        "crds", namespaced=False, subresources=_STATUS, has_generation=True,
        categories=("api-extensions",), unconditional_update=False,
    ),
    _plain(RBAC, "Role", "roles", name_format="path", created_by_update=True),
    _plain(RBAC, "RoleBinding", "rolebindings", name_format="path", created_by_update=True),
    _plain(
        RBAC, "ClusterRole", "clusterroles", namespaced=False, name_format="path",
        created_by_update=True,
    ),
    _plain(
        RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False, name_format="path",
        created_by_update=True,
    ),
    _plain(
        NETWORKING, "Ingress", "ingresses", "ing", subresources=_STATUS, has_generation=True
    ),
    _plain(
        NETWORKING, "IngressClass", "ingressclasses", namespaced=False, has_generation=True
    ),
    _plain(NETWORKING, "NetworkPolicy", "networkpolicies", "netpol", has_generation=True),
    _plain(NETWORKING, "ServiceCIDR", "servicecidrs", namespaced=False, subresources=_STATUS),
    _plain(
        NETWORKING, "IPAddress", "ipaddresses", "ip", namespaced=False, name_format="address",
        field_labels=NAME_LABEL + _labels(
            *(f"spec.parentRef.{field}" for field in ("group", "name", "namespace", "resource"))
        ),
    ),
    _plain(DISCOVERY, "EndpointSlice", "endpointslices", has_generation=True),
    _make(
        AUTOSCALING, ("v2", "v1"), "HorizontalPodAutoscaler", "horizontalpodautoscalers",
        ("hpa",), categories=_ALL, subresources=_STATUS,
    ),
    _plain(STORAGE, "StorageClass", "storageclasses", "sc", namespaced=False),
    _plain(STORAGE, "CSIDriver", "csidrivers", namespaced=False, has_generation=True),
    _plain(STORAGE, "CSINode", "csinodes", namespaced=False),
    _plain(STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    _plain(
        STORAGE, "VolumeAttachment", "volumeattachments", namespaced=False, subresources=_STATUS
    ),
    _plain(STORAGE, "VolumeAttributesClass", "volumeattributesclasses", "vac", namespaced=False),
    _plain(
        API_REGISTRATION, "APIService", "apiservices", namespaced=False,
        subresources=_STATUS, categories=("api-extensions",), unconditional_update=False,
        name_format="path",
    ),
    _plain(
        NODE, "RuntimeClass", "runtimeclasses", namespaced=False, created_by_update=True
    ),
    _plain(
        CERTIFICATES, "CertificateSigningRequest", "certificatesigningrequests", "csr",
        namespaced=False, subresources=("approval", "status"),
        field_labels=NAME_LABEL + _labels("spec.signerName"),
    ),
    _admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies", served=_FROM_36),
    _admission(
        "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", served=_FROM_36
    ),
    _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", counted="webhooks"),
    _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies", subresources=_STATUS),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _admission(
        "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", counted="webhooks"
    ),
)  # fmt: skip
