"""The reconciler of cluster roles with an aggregation rule: applies the selected rules.

Parity: objects.md 15.6; upstream's clusterrole-aggregation-controller, which processes all such
roles after each change of a cluster role, and applies `rules` with force.
"""

from collections.abc import Iterator

from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Reads, Views
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.access import cluster_roles
from app.domain.objects.write.commands import PatchObject, PatchType, WriteOptions
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.timestamps import Instant

NAME = "cluster-roles"


_WRITER = WriteOptions(field_manager="clusterrole-aggregation-controller", force=True)


class ClusterRoleReconciler(KeyedController[tuple[str], Views]):
    """Follows all cluster roles and queues those with an aggregation rule."""

    name = NAME
    reads: Reads = frozenset({api_resources.CLUSTER_ROLES})

    def __init__(self) -> None:
        super().__init__()
        self._collecting: set[str] = set()

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        """All roles with an aggregation rule, because any cluster role may be part of them."""
        if (event.key.group, event.key.resource) != api_resources.CLUSTER_ROLES:
            return
        name = event.key.name
        collects = json_tree.get(event.object, "aggregationRule") is not None
        if event.type is not EventType.OBJECT_DELETED and collects:
            self._collecting.add(name)
        else:
            self._collecting.discard(name)
        for collecting in sorted(self._collecting):
            yield (collecting,)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Writes the rules of a role when they differ from the selected ones."""
        objects = views.objects
        (name,) = key
        place = ObjectKey(*api_resources.CLUSTER_ROLES, "", name)
        role = objects.get(place)
        if role is None:
            return None
        others = [
            tree
            for each in objects.keys(*api_resources.CLUSTER_ROLES)
            if (tree := objects.get(each))
        ]
        rules = cluster_roles.collected(role, others)
        if rules == json_tree.objects(role, "rules"):
            return None
        body = {
            "apiVersion": f"{api_groups.RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        }
        patch = PatchObject(
            key=place, version="v1", type=PatchType.APPLY, body=body, options=_WRITER
        )
        return Work((patch,))
