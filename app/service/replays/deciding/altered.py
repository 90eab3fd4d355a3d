"""A changed world: the edits, and the writes that replace recorded ones that do not fit there.

The recorded inputs continue in it, and not all of them fit. A pod that a ReplicaSet made in the
recording because another one was evicted is made here when its ReplicaSet lacks a pod. The recorded
kubelets and workload controllers wrote nothing about events that happen only here; emulated ones
write it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.analysis.replay.inputs import Input
from app.analysis.replay.readiness import Readiness
from app.domain.controllers import registry
from app.domain.controllers.plan import MergingViews, Plan, Reconciler
from app.domain.log import Actor, Event, EventType, ObjectKey
from app.domain.objects import registry as kinds
from app.domain.objects.kinds import limit_ranges
from app.domain.objects.quota import limits
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, ImportObject, RecordDecision
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding.pod_progress import PodProgress

SOON = SECOND
"""A pod that the recording tries within this time after a change waits for that attempt."""

_COUNTING = frozenset(("ReplicaSet", "ReplicationController"))
"""Kinds of owners that make as many pods as they lack."""


_NAME_IN_USE = "a creation from outside of an object whose name another one has here"
_NO_NAMESPACE = "a creation from outside in a namespace that no longer exists here"


Admit: TypeAlias = Callable[[Input, Command, ObjectsReader], Command]
"""Admits a recorded write: returns the command to submit for it in the changed world."""


def _within_quotas(recorded: Input, command: Command, objects: ObjectsReader) -> Command:
    """Admits writes unchanged if quotas and limit ranges of this world allow them.

    These may be new here, or used otherwise than in the recording. Parity: api.md 6.
    """
    key, kind = recorded.event.key, kinds.find(*recorded.event.key[:2])
    is_creation = isinstance(command, ImportObject) and command.operation == "ADDED"
    if is_creation and kind is not None and kind.namespaced:
        limit_ranges.check(objects, key, recorded.event.object)
        limits.check_create(objects, kind, key, recorded.event.object)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes that make a changed world from the recorded one.

    `edits` makes the commands of the changes from the objects at the beginning, `control` is the
    readiness of a run without them. `admit` returns a recorded write as the API of that world
    accepts it, or raises Rejected.
    """

    edits: Callable[[ObjectsReader], Sequence[Command]]
    actor: Actor
    control: Readiness
    admit: Admit = _within_quotas


class StrayPods:
    """Emulated kubelets for the pods that no recorded kubelet ran or ended.

    The kubelets serve a bound pod that was never bound in the recording, or is bound earlier than
    there and has no recorded course, and a pod that terminates here but not there, or earlier than
    there. They end a running pod whose recorded end is missing, if the pod says when it ends. What
    was so at the `beginning` of the run has that instant.
    """

    def __init__(self, kubelet: Reconciler, progress: PodProgress, beginning: Instant) -> None:
        self._kubelet = kubelet
        self._progress = progress
        self._beginning = beginning
        self.name = kubelet.name
        self.reads = kubelet.reads
        self.queues = kubelet.queues
        self.step: Callable[[MergingViews, Instant], Plan | None] = kubelet.step
        self.settled = kubelet.settled
        self.due = kubelet.due
        self.redecide = kubelet.redecide

    def fold(self, event: Event, views: MergingViews) -> None:
        """Folds the events about stray pods, and about objects other than pods and nodes."""
        if event.key.resource == "nodes":
            return
        if event.key.resource != "pods" or self._is_stray(event):
            self._kubelet.fold(event, views)

    def _is_stray(self, event: Event) -> bool:
        pod = event.object
        if not core.node_name(pod):
            return False
        here = max(event.stamp.time, self._beginning)
        if self._progress.lacks_run(event.uid, here):
            return True
        if meta.is_deleting(pod):
            return self._progress.ends_earlier(event.uid, here)
        is_once = json_tree.text(pod, "spec", "restartPolicy") == "Never"
        is_running = is_once and meta.phase(pod) == "Running"
        return is_running and self._progress.lacks_end(event.uid, here)


def paced(command: Command) -> Command:
    """Marks a decision of a controller with a pace as `paced`: the log does not contain the pace.

    Decisions of a controller without a pace follow from the log alone; they stay as they are.
    """
    if not isinstance(command, RecordDecision):
        return command
    if command.body["controller"] not in registry.PACED:
        return command
    inputs = {**command.body["inputs"], "paced": True}
    return msgspec.structs.replace(command, body={**command.body, "inputs": inputs})


def lacks_no_pod(event: Event, objects: ObjectsReader) -> bool:
    """True when an event makes a pod although its ReplicaSet has enough pods here already."""
    if event.type is not EventType.OBJECT_CREATED or event.key.resource != "pods":
        return False
    owner = meta.controller(event.object)
    if owner is None or owner.kind not in _COUNTING:
        return False
    owner_key = objects.by_uid(owner.uid)
    tree = None if owner_key is None else objects.get(owner_key)
    if tree is None:
        return False
    wanted = core.replicas(tree)
    mine = (objects.get(key) for key in objects.dependents(owner.uid) if key.resource == "pods")
    active = sum(1 for pod in mine if pod is not None and _is_active(pod))
    return active >= (1 if wanted is None else wanted)


def collision(
    event: Event, ours: JsonView | None, objects: ObjectsReader, namespaces: frozenset[str]
) -> str:
    """The reason why a recorded object cannot be made here; empty if it can.

    `ours` is the object with its name here. `namespaces` are those before the alteration.
    """
    if ours is not None:
        is_made = event.type is EventType.OBJECT_CREATED
        return _NAME_IN_USE if is_made and meta.uid(ours) != event.uid else ""
    if event.key.namespace not in namespaces:
        return ""
    namespace_key = ObjectKey(*api_resources.NAMESPACES, "", event.key.namespace)
    namespace = objects.get(namespace_key)
    return _NO_NAMESPACE if namespace is None or meta.is_deleting(namespace) else ""


def refused_pods(objects: ObjectsReader) -> list[ObjectKey]:
    """The keys of the pods without a node that the scheduler has refused."""
    return [
        key
        for key in objects.keys(*api_resources.PODS)
        if (pod := objects.get(key)) is not None and core.is_refused(pod)
    ]


def _is_active(pod: JsonView) -> bool:
    return not core.is_finished(pod) and not meta.is_deleting(pod)
