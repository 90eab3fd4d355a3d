"""The expected number of pods: the sum of the scales of all owners of the protected pods.

A Deployment counts instead of its ReplicaSets; any other kind counts by its scale subresource.
Parity: controllers.md 5.5, the finders of upstream's disruption controller, texts included.
"""

from collections.abc import Iterable

from app.domain.log import ObjectKey
from app.domain.objects import history_kinds, registry
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write import subresources
from app.domain.values import api_groups
from app.domain.values.fields import core, meta
from app.domain.values.fields.meta import Owner
from app.domain.values.json_tree import JsonObject, JsonView

_OWNED_BY_DEPLOYMENTS = "ReplicaSet"
_GROUPS = (api_groups.APPS, "extensions")


class ScaleUnknown(Exception):
    """The expected number of pods cannot be determined; the message is upstream's."""


def expected(
    objects: ObjectsReader, namespace: str, owners: Iterable[tuple[str, Owner | None]]
) -> tuple[int, bool]:
    """The sum of scales over all owners, and whether some pods have no owner.

    `owners` are the names of the pods with their controller references. Raises ScaleUnknown for
    an owner that does not exist or has no scale.
    """
    scales: dict[str, int] = {}
    some_unmanaged = False
    counted: set[str] = set()
    for pod, owner in owners:
        if owner is None:
            some_unmanaged = True
            continue
        if owner.uid in counted:
            continue
        counted.add(owner.uid)
        of_whom, number = _scale(objects, namespace, owner, pod)
        scales[of_whom] = number
    return sum(scales.values()), some_unmanaged


def _scale(objects: ObjectsReader, namespace: str, owner: Owner, pod: str) -> tuple[str, int]:
    """The uid and the replicas of the owner that the pod counts for."""
    group, version = registry.split_api_version(owner.api_version)
    if owner.kind == _OWNED_BY_DEPLOYMENTS and group in _GROUPS:
        group, version = _GROUPS[0], "v1"
        above = _deployment(objects, namespace, owner)
        if above is not None:
            return meta.uid(above), _replicas(above)
    served = history_kinds.find_kind(objects, group, version, owner.kind)
    if served is None:
        place = registry.api_version(group, version)
        raise ScaleUnknown(f'no matches for kind "{owner.kind}" in version "{place}"')
    if subresources.SCALE not in served.subresources:
        raise ScaleUnknown(f"{served.qualified_plural} does not implement the scale subresource")
    scope = namespace if served.namespaced else ""
    tree = objects.get(ObjectKey(served.group, served.plural, scope, owner.name))
    if tree is None or meta.uid(tree) != owner.uid:
        raise ScaleUnknown(f'found no controllers for pod "{pod}"')
    scale = subresources.scale_of(served, tree)
    return owner.uid, core.replicas(scale) or 0


def _deployment(objects: ObjectsReader, namespace: str, owner: Owner) -> JsonObject | None:
    """The Deployment of a pod's ReplicaSet; None when there is none."""
    replica_set = objects.get(ObjectKey(api_groups.APPS, "replicasets", namespace, owner.name))
    if replica_set is None or meta.uid(replica_set) != owner.uid:
        return None
    above = meta.controller(replica_set)
    if above is None or above.kind != "Deployment":
        return None
    deployment = objects.get(ObjectKey(api_groups.APPS, "deployments", namespace, above.name))
    return None if deployment is None or meta.uid(deployment) != above.uid else deployment


def _replicas(tree: JsonView) -> int:
    return core.replicas(tree) or 0
