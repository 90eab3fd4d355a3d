"""Every kind that is served: names, versions, scope, subresources, selectable fields, behaviour.

A kind is a row of `_KINDS`; adding one is adding a row. Parity: objects.md 1, api-surface.md 2
and 6. The storage version is the first of `versions`; keys in the log carry `group` and `plural`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.domain.objects.custom.versions import Custom
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

CORE = ""
RESOURCE = "resource.k8s.io"
EVENTS = "events.k8s.io"

READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "delete", "deletecollection", "patch", "update")
ALL_VERBS = tuple(sorted(READ_VERBS + WRITE_VERBS))


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLabel:
    """A selectable field: its label, where it stands, and its text when unset."""

    label: str
    path: tuple[str, ...]
    default: str = ""

    def value(self, tree: JsonView) -> str:
        """The field as selectors see it: booleans as `true` and `false`, numbers in digits."""
        found: Any = json_tree.get(tree, *self.path)
        if found is None:
            return self.default
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """In which releases a version of a kind is served and since when it is deprecated.

    Numbers are minor releases. `until` is the first release without it, 0 when none is planned.
    `successor` names what to use instead.
    """

    since: int = 0
    deprecated: int = 0
    until: int = 0
    successor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Kind:
    """One kind, compared by identity. `versions` has the storage version first.

    `alias_group` is a second group under which the same objects are served (events.k8s.io for
    Events). `status` tells that main-resource writes leave the status alone and `/status` writes
    only it. `unconditional_update` allows a PUT without resourceVersion, `created_by_update` one
    of an object that is not there. A delete of a kind that `orphans` keeps the dependents unless it
    says otherwise. `gate` must be on for the kind to be served at all. `custom` is set for kinds
    that a history defines itself.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    has_generation: bool = False
    unconditional_update: bool = True
    created_by_update: bool = False
    orphans: bool = False
    columns: str = "NameAge"
    field_labels: tuple[FieldLabel, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    served: Mapping[str, Served] | None = None
    gate: str = ""
    alias_group: str = ""
    name_format: str = "subdomain"
    custom: Custom | None = None

    @property
    def storage_version(self) -> str:
        """The version in which objects stand in the log."""
        return self.versions[0]

    @property
    def storage_api_version(self) -> str:
        """`apiVersion` of stored trees."""
        return api_version(self.group, self.versions[0])

    @property
    def has_status(self) -> bool:
        """True when status is written through its subresource only."""
        return "status" in self.subresources

    @property
    def qualified_plural(self) -> str:
        """`resourceclaims.resource.k8s.io`; for core kinds just the plural. As messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`ResourceClaim.resource.k8s.io`; for core kinds just the kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Every (group, version) under which objects of the kind can be read, storage first."""
        own = tuple((self.group, version) for version in self.versions)
        return (*own, (self.alias_group, "v1")) if self.alias_group else own

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.custom.list_kind if self.custom is not None else f"{self.kind}List"

    def field_label(self, label: str) -> FieldLabel | None:
        """The selectable field of that label; None when it is not supported."""
        for found in self.field_labels:
            if found.label == label:
                return found
        return None


def api_version(group: str, version: str) -> str:
    """`group/version`, or the version alone for the core group."""
    return f"{group}/{version}" if group else version


def split_api_version(text: str) -> tuple[str, str]:
    """Group and version of an `apiVersion`."""
    group, slash, version = text.partition("/")
    return (group, version) if slash else (CORE, group)


def find(group: str, resource: str) -> Kind | None:
    """The kind that a path names by group and plural; also by its alias group."""
    return _BY_RESOURCE.get((group, resource))


def find_kind(group: str, version: str, kind: str) -> Kind | None:
    """The kind that an object names; None when this version of it is not known."""
    found = _BY_KIND.get((group, kind))
    if found is None or (group, version) not in found.group_versions:
        return None
    return found


def find_name(name: str) -> list[Kind]:
    """Kinds that a person may mean by `name`: kind, plural, singular or short name, any case."""
    low = name.lower()
    plain, _, group = low.partition(".")
    return [
        kind
        for kind in _KINDS
        if plain in (kind.plural, kind.singular, kind.kind.lower(), *kind.short_names)
        and (not group or kind.group == group)
    ]


def kinds() -> tuple[Kind, ...]:
    """All kinds, in the order of the table."""
    return _KINDS


def is_served(kind: Kind, group: str, version: str, profile: Profile) -> bool:
    """True when the profile serves the kind in that group and version."""
    return _is_served(kind, group, version, profile.version, profile.open_gates)


@lru_cache(maxsize=1_024)
def _is_served(kind: Kind, group: str, version: str, release: str, on: frozenset[str]) -> bool:
    """`is_served`, which every request and every write asks, for what it depends on."""
    if (group, version) not in kind.group_versions:
        return False
    if kind.gate and kind.gate not in on:
        return False
    times = (kind.served or {}).get(version)
    if times is None:
        return True
    minor = int(release.partition(".")[2])
    return times.since <= minor and (not times.until or minor < times.until)


def served_versions(kind: Kind, profile: Profile) -> tuple[tuple[str, str], ...]:
    """The (group, version) pairs in which the profile serves the kind, preferred first."""
    pairs = [pair for pair in kind.group_versions if is_served(kind, *pair, profile)]
    return tuple(sorted(pairs, key=lambda pair: version_rank(pair[1])))


def served_kinds(profile: Profile) -> list[Kind]:
    """The kinds that the profile serves in some version."""
    return [kind for kind in _KINDS if served_versions(kind, profile)]


def deprecation(kind: Kind, version: str, profile: Profile) -> str:
    """The warning that requests for a deprecated version get; empty for others.

    Parity: api-surface.md 1 (recorded: 1.36).
    """
    if kind.custom is not None:
        found = kind.custom.versions.get(version)
        return found.warning if found is not None else ""
    times = (kind.served or {}).get(version)
    if times is None or not times.deprecated or profile.minor < times.deprecated:
        return ""
    text = f"{api_version(kind.group, version)} {kind.kind} is deprecated in v1.{times.deprecated}+"
    if times.until:
        text += f", unavailable in v1.{times.until}+"
    return f"{text}; use {times.successor}" if times.successor else text


_KUBE_LIKE = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sorts versions by preference: v1, v1beta2, v1beta1, v1alpha3, then other names."""
    found = _KUBE_LIKE.fullmatch(version)
    if found is None:
        return 3, 0, 0, version
    number, stage, step = found.groups()
    return _STAGES[stage], -int(number), -int(step or 0), ""


def _labels(*rows: str) -> tuple[FieldLabel, ...]:
    """Rows such as `spec.nodeName`, `source:source.component`, `spec.unschedulable=false`."""
    found = []
    for row in rows:
        text, _, default = row.partition("=")
        label, _, path = text.partition(":")
        found.append(
            FieldLabel(label=label, path=tuple((path or label).split(".")), default=default)
        )
    return tuple(found)


NAME_LABEL = _labels("metadata.name")
"""What every cluster-scoped kind can be selected by."""
BOTH_LABELS = _labels("metadata.name", "metadata.namespace")
"""What every namespaced kind can be selected by."""

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


_STATUS = ("status",)
_SCALED = ("scale", "status")
_ALL = ("all",)
_APPS = "apps"
_RBAC = "rbac.authorization.k8s.io"
_NETWORKING = "networking.k8s.io"
_STORAGE = "storage.k8s.io"

_KINDS: tuple[Kind, ...] = (
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
        "coordination.k8s.io", "Lease", "leases", unconditional_update=False,
        created_by_update=True,
    ),
    _plain(
        "policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=_STATUS,
        has_generation=True, unconditional_update=False,
    ),
    _plain(
        _APPS, "Deployment", "deployments", "deploy", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        _APPS, "ReplicaSet", "replicasets", "rs", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        _APPS, "StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=_SCALED,
        has_generation=True,
    ),
    _plain(
        _APPS, "DaemonSet", "daemonsets", "ds", categories=_ALL, subresources=_STATUS,
        has_generation=True,
    ),
    _plain(_APPS, "ControllerRevision", "controllerrevisions"),
    _plain(
        "batch", "Job", "jobs", field_labels=_JOB_LABELS, categories=_ALL, subresources=_STATUS,
        has_generation=True, orphans=True,
    ),
    _plain(
        "batch", "CronJob", "cronjobs", "cj", categories=_ALL, subresources=_STATUS,
        has_generation=True,
    ),
    _plain(
        "scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", namespaced=False,
        has_generation=True,
    ),
    _plain(
        "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", "crd",
        "crds", namespaced=False, subresources=_STATUS, has_generation=True,
        categories=("api-extensions",), unconditional_update=False,
    ),
    _plain(_RBAC, "Role", "roles", name_format="path", created_by_update=True),
    _plain(_RBAC, "RoleBinding", "rolebindings", name_format="path", created_by_update=True),
    _plain(
        _RBAC, "ClusterRole", "clusterroles", namespaced=False, name_format="path",
        created_by_update=True,
    ),
    _plain(
        _RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False, name_format="path",
        created_by_update=True,
    ),
    _plain(
        _NETWORKING, "Ingress", "ingresses", "ing", subresources=_STATUS, has_generation=True
    ),
    _plain(
        _NETWORKING, "IngressClass", "ingressclasses", namespaced=False, has_generation=True
    ),
    _plain(_NETWORKING, "NetworkPolicy", "networkpolicies", "netpol", has_generation=True),
    _plain("discovery.k8s.io", "EndpointSlice", "endpointslices", has_generation=True),
    _make(
        "autoscaling", ("v2",), "HorizontalPodAutoscaler", "horizontalpodautoscalers", ("hpa",),
        categories=_ALL, subresources=_STATUS,
    ),
    _plain(_STORAGE, "StorageClass", "storageclasses", "sc", namespaced=False),
    _plain(_STORAGE, "CSIDriver", "csidrivers", namespaced=False, has_generation=True),
    _plain(_STORAGE, "CSINode", "csinodes", namespaced=False),
    _plain(_STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    _plain(
        _STORAGE, "VolumeAttachment", "volumeattachments", namespaced=False, subresources=_STATUS
    ),
    _plain(
        "node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False, created_by_update=True
    ),
    _plain(
        "certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", "csr",
        namespaced=False, subresources=("approval", "status"),
        field_labels=NAME_LABEL + _labels("spec.signerName"),
    ),
)  # fmt: skip


def _by_resource(rows: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    found = {(kind.group, kind.plural): kind for kind in rows}
    found |= {(kind.alias_group, kind.plural): kind for kind in rows if kind.alias_group}
    return found


def _by_kind(rows: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    found = {(kind.group, kind.kind): kind for kind in rows}
    found |= {(kind.alias_group, kind.kind): kind for kind in rows if kind.alias_group}
    return found


_BY_RESOURCE = _by_resource(_KINDS)
_BY_KIND = _by_kind(_KINDS)
