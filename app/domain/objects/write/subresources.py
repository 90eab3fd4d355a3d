"""The part of an object that each subresource writes, and the Scale of workloads.

Parity: controllers.md 6.2, api.md 5. `/status` writes only the status and some metadata; writes
of the main resource do not change the status.
"""

from app.domain.errors import BadRequest
from app.domain.objects import field_errors
from app.domain.objects.kind import Scale
from app.domain.objects.registry import Kind
from app.domain.objects.write import managed_fields, metadata
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

SCALE = managed_fields.SCALE

REPLICAS_MAX = 2**31 - 1
"""The largest number of replicas, which are numbers of 32 bits."""

_SPEC_FIELDS = {
    "ephemeralcontainers": ("ephemeralContainers",),
}
"""The subresources of pods that write whole fields of the spec."""


_METADATA = ("annotations", "finalizers", "labels", "ownerReferences")
_BESIDE_STATUS = {
    "Deployment": ("annotations", "finalizers", "ownerReferences"),
    "Pod": ("annotations", "finalizers", "labels"),
}
"""The metadata that a write of the status also changes, for kinds that do not change all of it."""

_STATUS_ALONE = frozenset(
    {
        (api_groups.ADMISSION_REGISTRATION, "ValidatingAdmissionPolicy"),
        (api_groups.API_EXTENSIONS, "CustomResourceDefinition"),
        (api_groups.API_REGISTRATION, "APIService"),
        (api_groups.NETWORKING, "ServiceCIDR"),
        (api_groups.RESOURCE, "DeviceTaintRule"),
        (api_groups.RESOURCE, "ResourceClaim"),
        (api_groups.RESOURCE, "ResourcePoolStatusRequest"),
        (api_groups.STORAGE, "VolumeAttachment"),
    }
)
"""The kinds whose status is written without metadata.

Parity: api.md 5; their strategies reset the metadata.
"""


def exists(kind: Kind, subresource: str) -> bool:
    """Whether the kind has the subresource; True for the main resource."""
    return not subresource or subresource in kind.subresources


def merged(kind: Kind, old: JsonObject, tree: JsonObject, subresource: str) -> JsonObject:
    """Merges the part that `subresource` owns from `tree` into `old`.

    The result is a new object that shares parts with both.
    """
    if subresource == "status":
        result = dict(old)
        _take(result, "status", tree)
        if kind.custom is None and (kind.group, kind.kind) not in _STATUS_ALONE:
            result["metadata"] = dict(metadata.of(old))
            for name in _BESIDE_STATUS.get(kind.kind, _METADATA):
                _take(result["metadata"], name, metadata.of(tree))
        return result
    if subresource == "approval":
        result = dict(old)
        result["status"] = dict(old.get("status") or {})
        _take(result["status"], "conditions", tree.get("status", {}))
        return result
    if subresource == "finalize":
        result = dict(tree)
        _take(result, "status", old)
        return result
    if subresource in _SPEC_FIELDS:
        result = dict(old)
        spec = dict(old.get("spec") or {})
        for name in _SPEC_FIELDS[subresource]:
            _take(spec, name, tree.get("spec", {}))
        result["spec"] = spec
        return result
    if subresource == "resize":
        return {**old, "spec": _resized(old.get("spec", {}), tree.get("spec", {}))}
    result = dict(tree)
    if kind.has_status:
        _take(result, "status", old)
    return result


def _resized(old: JsonObject, wanted: JsonView) -> JsonObject:
    """The spec of a pod with resources and resizePolicy of wanted containers of equal names."""
    pod = dict(old)
    for field in ("containers", "initContainers"):
        resources = {entries.name(item): item for item in json_tree.objects(wanted, field)}
        if field not in old:
            continue
        pod[field] = items = []
        for item in json_tree.objects(old, field):
            resized = dict(item)
            if (named := resources.get(entries.name(item))) is not None:
                _take(resized, "resources", named)
                _take(resized, "resizePolicy", named)
            items.append(resized)
    return pod


def scale_of(kind: Kind, tree: JsonView) -> JsonObject:
    """The Scale of a workload, or of a custom object whose definition declares its paths."""
    written = meta.metadata(tree)
    kept = ("creationTimestamp", "name", "namespace", "resourceVersion", "uid")
    places = _scale(kind)
    status: JsonObject = {"replicas": json_tree.integer(tree, *places.status_replicas) or 0}
    plain = (kind.group, kind.kind) == ("", "ReplicationController")
    labels = json_tree.labels(tree, "spec", "selector", *(() if plain else ("matchLabels",)))
    if places.selector:
        text = json_tree.text(tree, *places.selector)
        status |= {"selector": text} if text else {}
    elif labels and kind.custom is None:
        status["selector"] = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    replicas = json_tree.integer(tree, *places.spec_replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: written[key] for key in kept if key in written},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def with_scale(kind: Kind, old: JsonObject, scale: JsonView) -> JsonObject:
    """Returns the workload with the number of replicas of a Scale.

    Raises BadRequest for a kind without scale, and for a value that is not a number or exceeds
    REPLICAS_MAX; Invalid for a negative number.
    """
    if SCALE not in kind.subresources:
        raise BadRequest(f"{kind.kind} has no scale")
    replicas = json_tree.get(scale, "spec", "replicas")
    replicas = 0 if replicas is None else replicas
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest("spec.replicas of a Scale must be a number of at least 0")
    if replicas < 0:
        error = field_errors.invalid(
            "spec.replicas", replicas, "must be greater than or equal to 0"
        )
        name = meta.name(old)
        raise field_errors.rejection("Scale", api_groups.AUTOSCALING, name, [error])
    if replicas > REPLICAS_MAX:
        raise BadRequest(f"spec.replicas of a Scale must be at most {REPLICAS_MAX}")
    scaled = json_tree.copy(old)
    place = scaled
    *above, last = _scale(kind).spec_replicas
    for step in above:
        if not isinstance(place.get(step), dict):
            place[step] = {}
        place = place[step]
    place[last] = replicas
    wanted = meta.metadata(scale)
    for key in ("resourceVersion", "uid"):
        if wanted.get(key):
            metadata.of(scaled)[key] = wanted[key]
    result: JsonObject = scaled
    return result


_OF_WORKLOADS = Scale(spec_replicas=("spec", "replicas"), status_replicas=("status", "replicas"))


def _scale(kind: Kind) -> Scale:
    versions = kind.custom.versions.values() if kind.custom is not None else ()
    return next((row.scale for row in versions if row.scale is not None), _OF_WORKLOADS)


def _take(target: JsonObject, key: str, source: JsonView) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)
