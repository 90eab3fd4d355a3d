"""Applies to each cluster role with an aggregation rule the rules that it selects.

Parity: upstream's clusterrole-aggregation-controller, which looks at all such roles after each
change of a cluster role, and applies `rules` with force.
"""

from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.work_queue import AnyQueue, WorkQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.access import cluster_roles
from app.domain.objects.write.commands import PatchObject, PatchType, WriteOptions
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.timestamps import Instant

NAME = "cluster-roles"


_WRITER = WriteOptions(field_manager="clusterrole-aggregation-controller", force=True)


class ClusterRoleReconciler:
    """Follows all cluster roles and queues those that collect."""

    name = NAME
    reads: Reads = frozenset({api_resources.CLUSTER_ROLES})

    def __init__(self) -> None:
        self._queue: WorkQueue[tuple[str]] = WorkQueue()
        self._collecting: set[str] = set()

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """What waits for this controller, for metrics."""
        return (self._queue,)

    def fold(self, event: Event, views: Views) -> None:
        """Any cluster role may be part of any that collects."""
        if (
            not event.is_about_object
            or (event.key.group, event.key.resource) != api_resources.CLUSTER_ROLES
        ):
            return
        name = event.key.name
        collects = json_tree.get(event.object, "aggregationRule") is not None
        if event.type is not EventType.OBJECT_DELETED and collects:
            self._collecting.add(name)
        else:
            self._collecting.discard(name)
        for found in sorted(self._collecting):
            self._queue.add((found,), event.revision)

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Write the rules of one role that has others than it should."""
        objects = views.objects
        while found := self._queue.take(now):
            (name,), cause = found
            key = ObjectKey(*api_resources.CLUSTER_ROLES, "", name)
            role = objects.get(key)
            if role is None:
                continue
            others = [
                tree
                for each in objects.keys(*api_resources.CLUSTER_ROLES)
                if (tree := objects.get(each))
            ]
            rules = cluster_roles.collected(role, others)
            if rules == json_tree.objects(role, "rules"):
                continue
            body = {
                "apiVersion": f"{api_groups.RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": rules,
            }
            patch = PatchObject(
                key=key, version="v1", type=PatchType.APPLY, body=body, options=_WRITER
            )
            return Plan(
                controller=NAME,
                key=name,
                commands=(patch,),
                cause=cause,
                observed=objects.revision,
            )
        return None

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Try again after a refusal."""
        self._queue.settle((plan.key,), problem, now)

    def due(self) -> Instant | None:
        """When refused rules are written again."""
        return self._queue.due()

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Collecting rules records no decisions."""
        return None
