"""Queueing hints: which event activates which waiting pod. Parity: controllers.md 3.9, and 4.1 for
the framework.

A hint names the plug-ins that registered for an event. Only pods that one of them rejected are
checked, and pods that wait for one claim are found by its name, so that the cost of an event
depends only on the affected pods. Recent hints are kept, because events that arrive during an
attempt are applied to the pod after it has failed.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from weakref import WeakMethod

import msgspec

from app.domain.controllers.pods import PodFacts
from app.domain.controllers.scheduling.framework import filters
from app.domain.controllers.scheduling.framework.nodes import NodeIndex, NodeInfo
from app.domain.controllers.scheduling.framework.pod_spec import PodSpec
from app.domain.controllers.scheduling.framework.pods_on_nodes import BoundPod
from app.domain.controllers.scheduling.plugins import volume_binding
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.inter_pod_affinity import NAME as INTER_POD_AFFINITY
from app.domain.controllers.scheduling.plugins.pod_topology_spread import (
    NAME as POD_TOPOLOGY_SPREAD,
)
from app.domain.controllers.scheduling.queue.waiting_pods import (
    QueuedPod,
    QueuePart,
    SchedulingQueue,
)
from app.domain.controllers.scheduling.scheduling_cycle.attempt import DEVICES
from app.domain.log import Event, EventType, Revision
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds.extended_resources import IMPLICIT
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.identifiers import NamespacedName
from app.domain.values.timestamps import Instant

RECENT_MAX = 10_000
"""The most hints that are kept for pods in flight."""

NODE_PLUGINS = frozenset(
    {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit"}
)
PORTS = "NodePorts"
POD_GONE_PLUGINS = frozenset({"NodeResourcesFit", PORTS, INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD})


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """A queueing hint: the effect of an event on waiting pods.

    `plugins` registered for the event. `claim` restricts it to pods that use this claim, `pod` to
    this pod, `resources` to pods that request one of these. `node` is set for events on nodes:
    plug-ins that filter nodes activate a pod only when they now accept it there. With `up_to` pods
    of higher priority are left out. `volume_claim` restricts it to pods with this claim in a
    volume.
    """

    plugins: frozenset[str]
    claim: NamespacedName | None = None
    pod: NamespacedName | None = None
    node: NodeInfo | None = None
    up_to: int | None = None
    resources: frozenset[str] = frozenset()
    volume_claim: NamespacedName | None = None


ANY_DEVICE = Hint(plugins=frozenset((DEVICES,)))
POD_GONE = Hint(plugins=POD_GONE_PLUGINS)
POD_CAME = Hint(plugins=frozenset((INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD)))
ANY_STORAGE_CLASS = Hint(plugins=frozenset((volume_binding.BINDING,)))


def nomination_ended(pod: BoundPod) -> Hint:
    """The hint for a pod that lost or left the node that it was nominated for.

    It can only help pods that had to leave room for it: pods of equal or lower priority.
    """
    return Hint(plugins=POD_GONE_PLUGINS, up_to=pod.priority)


def of_volumes(event: Event) -> Hint | None:
    """The hint for a new or changed PersistentVolumeClaim or StorageClass; None for other events.

    Parity: controllers.md 4.8.
    """
    kind = (event.key.group, event.key.resource)
    if event.type is EventType.OBJECT_DELETED:
        return None
    if kind == api_resources.PERSISTENT_VOLUME_CLAIMS:
        place = (event.key.namespace, event.key.name)
        return Hint(plugins=volume_binding.PLUGINS, volume_claim=place)
    return ANY_STORAGE_CLASS if kind == api_resources.STORAGE_CLASSES else None


def node_hint(info: NodeInfo, *, for_devices: bool, is_new: bool) -> Hint:
    """The hint for a new or relevantly changed node. Only a new node can help with ports."""
    extra = {INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD}
    extra |= {DEVICES} if for_devices else set()
    extra |= {PORTS} if is_new else set()
    return Hint(plugins=NODE_PLUGINS | extra, node=info)


def fold_node(nodes: NodeIndex, event: Event) -> Hint | None:
    """Updates a node in the index; returns the hint when the change may help waiting pods."""
    name = event.key.name
    if event.type is EventType.OBJECT_DELETED:
        nodes.remove(name)
        return None
    before = nodes.get(name)
    nodes.put(event.object)
    info = nodes.get(name)
    assert info is not None, "the node has just been put in"
    room = before is None or before.allocatable != info.allocatable
    labels = before is None or before.labels != info.labels
    taints = before is None or (before.taints, before.is_unschedulable) != (
        info.taints,
        info.is_unschedulable,
    )
    if not (room or labels or taints):
        return None
    return node_hint(info, for_devices=room or labels, is_new=before is None)


def own_hint(place: NamespacedName, before: PodSpec, after: PodSpec) -> Hint | None:
    """The hint for a waiting pod's own update; None when no plug-in registered for it."""
    plugins: set[str] = set()
    if after.facts.generated != before.facts.generated:
        plugins.add(DEVICES)
    if after.labels != before.labels:
        plugins |= {INTER_POD_AFFINITY, POD_TOPOLOGY_SPREAD}
    if after.tolerations != before.tolerations:
        plugins |= {"NodeUnschedulable", "TaintToleration"}
    return Hint(plugins=frozenset(plugins), pod=place) if plugins else None


class Waker:
    """Applies hints to the queue."""

    def __init__(
        self, queue: SchedulingQueue, admit: Callable[[QueuedPod, ObjectsReader, Instant], None]
    ) -> None:
        """`admit` is a method of the owner, which must outlive the waker."""
        self._queue = queue
        # The owner holds this waker: a reference back would leave both to the collector.
        self._admit = WeakMethod(admit)
        self._users: dict[NamespacedName, dict[NamespacedName, None]] = {}
        self._claims: dict[NamespacedName, tuple[NamespacedName, ...]] = {}
        self._recent: deque[tuple[Revision, Hint]] = deque(maxlen=RECENT_MAX)
        self._statuses: dict[NamespacedName, bytes] = {}
        self._served: dict[str, str] = {}

    def note_pod(self, pod: QueuedPod) -> None:
        """Indexes a pod by the claims that it may use."""
        place = pod.place
        self.forget_pod(place)
        facts = pod.spec.facts
        # A pod may name one claim in several entries.
        claims = tuple((facts.namespace, name) for name in dict.fromkeys(claim_names(facts)))
        if claims:
            self._claims[place] = claims
            for claim in claims:
                self._users.setdefault(claim, {})[place] = None

    def forget_pod(self, place: NamespacedName) -> None:
        """Removes a pod that no longer waits from the index."""
        for claim in self._claims.pop(place, ()):
            users = self._users[claim]
            users.pop(place, None)
            if not users:
                del self._users[claim]

    def has_news(self, event: Event) -> bool:
        """True when the claim of this event is new or has another status than before.

        Parity: controllers.md 3.9; other changes of a claim help no pod.
        """
        place = (event.key.namespace, event.key.name)
        if event.type is EventType.OBJECT_DELETED:
            self._statuses.pop(place, None)
            return False
        text = canonical_json([event.uid, event.object.get("status") or {}])
        digest = hashlib.blake2b(text, digest_size=8).digest()
        if self._statuses.get(place) == digest:
            return False
        self._statuses[place] = digest
        return True

    def class_hints(self, event: Event, *, serves_resources: bool) -> Iterator[Hint]:
        """The hints for a new or changed class, which may help every pod that lacks devices.

        A class that newly serves an extended resource (`serves_resources` is that gate) may also
        help pods that lack this resource. The table of controllers.md 3.9 covers only
        DynamicResources; upstream registered NodeResourcesFit for it in 1.35 (kubernetes #134991).
        """
        name = event.key.name
        before = self._served.pop(name, None)
        if event.type is EventType.OBJECT_DELETED:
            return
        yield ANY_DEVICE
        served = dra.extended_resource_name(event.object)
        self._served[name] = served
        if serves_resources and served != before:
            names = frozenset((served, f"{IMPLICIT}{name}"))
            yield Hint(plugins=frozenset(("NodeResourcesFit",)), resources=names)

    def wake_itself(
        self, pod: QueuedPod, hint: Hint, objects: ObjectsReader, now: Instant, cause: Revision
    ) -> None:
        """Activates a pod that its own update may help."""
        self._recent.append((cause, hint))
        self.wake_one(pod, hint, objects, now, cause)

    def wake(self, hint: Hint, objects: ObjectsReader, now: Instant, cause: Revision) -> None:
        """Activates the pods that the event may help."""
        self._recent.append((cause, hint))
        if hint.claim is not None:
            for place in tuple(self._users.get(hint.claim, ())):
                pod = self._queue.get(place)
                if pod is not None and pod.where is QueuePart.GATED:
                    self._let_in(pod, objects, now)
                elif pod is not None:
                    self.wake_one(pod, hint, objects, now, cause)
            return
        places: dict[NamespacedName, None] = {}
        for plugin in sorted(hint.plugins):
            places.update(self._queue.rejected_by.get(plugin, {}))
        for place in places:
            pod = self._queue.get(place)
            if pod is not None:
                self.wake_one(pod, hint, objects, now, cause)

    def replay(self, pod: QueuedPod, objects: ObjectsReader, after: Revision, now: Instant) -> None:
        """Applies the hints since revision `after` to a pod that has just failed.

        Parity: controllers.md 4.1; PreEnqueue is asked before a pod goes into back-off.
        """
        is_error = pod.where is QueuePart.ERROR_BACKOFF
        if is_error and not pod_claims.are_there(objects, pod.spec.facts):
            self._queue.gate(pod)
            return
        missed: list[tuple[Revision, Hint]] = []
        for cause, hint in reversed(self._recent):  # as a rule few of many
            if cause <= after:
                break
            missed.append((cause, hint))
        claims = self._claims.get(pod.place, ())
        for cause, hint in reversed(missed):
            concerns = hint.pod in (None, pod.place)
            if concerns and (hint.claim is None or hint.claim in claims):
                self.wake_one(pod, hint, objects, now, cause)

    def wake_one(
        self, pod: QueuedPod, hint: Hint, objects: ObjectsReader, now: Instant, cause: Revision
    ) -> None:
        """Activates one pod if one of the plug-ins that rejected it accepts the hint."""
        if pod.where is not QueuePart.UNSCHEDULABLE or not pod.plugins & hint.plugins:
            return
        if hint.up_to is not None and pod.spec.priority > hint.up_to:
            return
        if any(_may_help(plugin, pod, hint, objects) for plugin in pod.plugins & hint.plugins):
            pod.cause = cause
            self._let_in(pod, objects, now)

    def _let_in(self, pod: QueuedPod, objects: ObjectsReader, now: Instant) -> None:
        admit = self._admit()
        assert admit is not None, "the owner is in use"
        admit(pod, objects, now)


def claim_names(pod: PodFacts) -> list[str]:
    """The names of all claims that the pod may use."""
    names = [entry.claim for entry in pod.entries if entry.claim]
    return names + [name for _, name in pod.generated if name]


def _may_help(plugin: str, pod: QueuedPod, hint: Hint, objects: ObjectsReader) -> bool:
    if plugin == DEVICES:
        return pod_claims.are_there(objects, pod.spec.facts)
    if hint.volume_claim is not None:
        namespace, name = hint.volume_claim
        mine = pod.spec.volume_claims if pod.place[0] == namespace else ()
        return any(claim.name == name for claim in mine)
    if hint.resources:
        return not hint.resources.isdisjoint(pod.spec.amounts.requests)
    if plugin in NODE_PLUGINS and hint.node is not None:
        refusal = filters.check_node(pod.spec, hint.node)
        return refusal is None or refusal.plugin != plugin
    return True
