"""The inputs and the results of the rules of one workload."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values.fields import meta
from app.domain.values.identifiers import GroupResource, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One workload at one moment. At most `pods_max` pods may be created in this step.

    `is_careful` after a refusal: what does not depend on the refused pods is stored without them.
    """

    objects: ObjectsReader
    key: ObjectKey
    tree: JsonObject
    now: Instant
    pods_max: int
    is_careful: bool = False

    @property
    def uid(self) -> Uid:
        """The workload's uid."""
        return meta.uid(self.tree)

    @property
    def is_ending(self) -> bool:
        """True when the workload is being deleted: no pod is created or replaced any more."""
        return "deletionTimestamp" in self.tree["metadata"]

    def owned(self, place: GroupResource) -> list[JsonObject]:
        """The objects of one resource that this workload controls, by name."""
        trees: list[JsonObject] = []
        for key in self.objects.dependents(self.uid):
            if (key.group, key.resource) == place:
                tree = self.objects.get(key)
                if tree is not None and meta.controller_uid(tree) == self.uid:
                    trees.append(tree)
        return trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report about the workload, which becomes a Kubernetes Event object."""

    reason: str
    message: str
    kind: str = "Normal"


Step: TypeAlias = Command | Report


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSteps:
    """The steps for a workload, in order, and the instant to process it again without an event."""

    steps: tuple[Step, ...] = ()
    due: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One kind of workload and its rules.

    `dependents` are the resources that it creates, `component` the name under which it reports.
    `release` returns the command that frees a dependent whose workload is gone, if one is needed.
    `failed` returns the steps that write the status after a refused step.
    `watches_nodes` queues every workload of the kind when a node changes.
    """

    name: str
    kind: str
    api_version: str
    place: GroupResource
    component: str
    dependents: frozenset[GroupResource]
    sync: Callable[[Situation], WorkloadSteps]
    release: Callable[[JsonObject], Command | None] | None = None
    failed: Callable[[Situation, str], tuple[Step, ...]] | None = None
    watches_nodes: bool = False
