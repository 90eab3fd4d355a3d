"""Fields that are stored with little or no effect here; a write of such a field gets a warning.

These are fields that decide in a real cluster where a pod is placed, when it ends or what it gets
of a device, and fields by which webhooks and policies review writes. An update gets a warning if it
adds such a field. Beyond upstream, which acts on them.
"""

from collections.abc import Mapping, Sequence

from app.domain.objects import webhook_targets
from app.domain.objects.registry import Kind
from app.domain.objects.schema import gates
from app.domain.objects.webhook_targets import Targets
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

_POD = ("evictionResponders", "readinessGates", "schedulingGroup")
_CLAIMED = ("ephemeral", "persistentVolumeClaim")
_DISKS = ("awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd")
_VOLUMES = (*_CLAIMED, *_DISKS)
_ASKED = frozenset((*_POD, "volumes"))
_RESTARTS = ("restartPolicy", "restartPolicyRules")
"""Fields of containers; an init container with a policy is a sidecar, which is emulated."""

_REASONS: Mapping[str, str] = {
    "evictionResponders": "evictions ask nobody",
    "readinessGates": "emulated kubelets report pods as ready without them",
    "restartPolicy": "emulated kubelets read the policy of the pod",
    "restartPolicyRules": "emulated kubelets read the policy of the pod",
    "schedulingGroup": "PodGroups are not emulated",
    "ephemeral": "no controller makes the claim, and no node is refused for it",
    "persistentVolumeClaim": "no node is refused for the volume of the claim",
    **dict.fromkeys(_DISKS, "no node is refused for a disk that another pod on it has"),
    "nodeAllocatableResources": "devices take nothing of their node's resources",
    "skipNodeOperations": "allocation results get no copy of it",
    "podPreemptionPolicy": "pods are never resized",
    "clientConfig": "no setting allows that the webhook is called (REDRA_WEBHOOKS_ALLOWED)",
    "mutations": "mutating policies are not evaluated",
    "schedule": "no controller makes Jobs of CronJobs",
    "template": "no controller makes pods of ReplicationControllers",
    "scaleTargetRef": "nothing is measured, and nothing is scaled",
    "backoffLimitPerIndex": "failures are counted for the Job as a whole",
    "maxFailedIndexes": "failures are counted for the Job as a whole",
    "successPolicy": "a Job succeeds with all of its completions",
    "maxUnavailable": "pods of StatefulSets are replaced one by one",
    "maxSurge": "pods of DaemonSets end before they are replaced",
    "persistentVolumeClaimRetentionPolicy": "no controller deletes the claims",
}

_UPDATES = ("spec", "updateStrategy", "rollingUpdate")
_RETENTION = "persistentVolumeClaimRetentionPolicy"
_WORKLOADS: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "CronJob": ((("spec",), "schedule"),),
    "DaemonSet": ((_UPDATES, "maxSurge"),),
    "HorizontalPodAutoscaler": ((("spec",), "scaleTargetRef"),),
    "Job": tuple(
        (("spec",), name) for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
    ),
    "ReplicationController": ((("spec",), "template"),),
    "StatefulSet": ((_UPDATES, "maxUnavailable"), (("spec",), _RETENTION)),
}
"""The fields of kinds that nobody here acts on, or that their controller does not read."""

_UNUSED: Mapping[str, tuple[object, ...]] = {
    "maxSurge": (0, "0%"),
    "maxUnavailable": (1,),
    _RETENTION: ({"whenDeleted": "Retain", "whenScaled": "Retain"},),
}
"""Values, mostly defaults, that ask for nothing but what happens without the field."""


def warnings(
    kind: Kind,
    tree: JsonView,
    old: JsonView | None = None,
    *,
    webhooks: Targets = webhook_targets.NONE,
) -> tuple[str, ...]:
    """Returns a warning for each field of the tree without effect that `old` does not have.

    `webhooks` are the targets that are called.
    """
    fields = _fields(kind, tree, webhooks)
    if not fields:
        return ()
    known = _fields(kind, old, webhooks) if old is not None else ()
    return tuple(
        f"{place}.{name}: the field is stored and has {_effect(name)} here: {_REASONS[name]}"
        for place, name in fields
        if (place, name) not in known
    )


def _effect(name: str) -> str:
    """The effect of a field; claims of volumes may keep a pod waiting (A18)."""
    return "little effect" if name in _CLAIMED else "no effect"


def _fields(kind: Kind, tree: JsonView, webhooks: Targets) -> Sequence[tuple[str, str]]:
    """The path and name of each field without effect, each once."""
    if kind.custom is not None:
        return ()
    path = gates.POD_SPECS.get(kind.kind)
    if path is not None:
        spec = json_tree.mapping(tree, *path)
        place = ".".join(path)
        # Most pods have none of these fields.
        names = [] if spec.keys().isdisjoint(_ASKED) else _of_pod(spec, place)
        names += [
            (f"{place}.containers[]", name)
            for name in _RESTARTS
            if any(name in container for container in core.containers_of(spec))
        ]
        return names if kind.kind == "Pod" else [*_of_workload(kind, tree), *names]
    if kind.kind in _WORKLOADS:
        return _of_workload(kind, tree)
    if kind.kind == "ResourceSlice" and kind.group == api_groups.RESOURCE:
        return _of_slice(meta.spec(tree))
    if kind.kind == "Node" and "podPreemptionPolicy" in meta.spec(tree):
        return (("spec", "podPreemptionPolicy"),)
    return _of_reviews(tree, webhooks) if kind.group == api_groups.ADMISSION_REGISTRATION else ()


def _of_reviews(tree: JsonView, called: Targets) -> Sequence[tuple[str, str]]:
    """The fields of webhook configurations and mutating policies."""
    webhooks = json_tree.objects(tree, "webhooks")
    if webhooks:
        return [
            (f"webhooks[{index}]", "clientConfig")
            for index, webhook in enumerate(webhooks)
            if called.find(json_tree.mapping(webhook, "clientConfig")) is None
        ]
    return (("spec", "mutations"),) if json_tree.objects(tree, "spec", "mutations") else ()


def _of_pod(spec: JsonView, place: str) -> list[tuple[str, str]]:
    names = [(place, name) for name in _POD if name in spec]
    if "volumes" not in spec:
        return names
    volumes = json_tree.objects(spec, "volumes")
    return names + [
        (f"{place}.volumes[]", name) for name in _VOLUMES if any(name in one for one in volumes)
    ]


def _of_workload(kind: Kind, tree: JsonView) -> Sequence[tuple[str, str]]:
    """The fields of a workload that change nothing here and are not at a default."""
    return [
        (".".join(path), name)
        for path, name in _WORKLOADS.get(kind.kind, ())
        if json_tree.get(tree, *path, name) not in (None, *_UNUSED.get(name, ()))
    ]


def _of_slice(spec: JsonView) -> Sequence[tuple[str, str]]:
    names = [("spec", "skipNodeOperations")] if "skipNodeOperations" in spec else []
    devices = json_tree.objects(spec, "devices")
    if any("nodeAllocatableResources" in device for device in devices):
        names.append(("spec.devices[]", "nodeAllocatableResources"))
    return names
