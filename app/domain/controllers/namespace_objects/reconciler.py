"""Keeps one object in each namespace: creates it and restores it, except in deleted namespaces.

Parity: controllers.md 5.5; upstream's serviceaccount-controller and root-ca-cert-publisher, each a
controller with an account of its own. Namespaces that are ready together share an append here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import Plan, Views
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command, CreateObject
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

TOGETHER_MAX = 100
"""The most namespaces in which one append creates objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceObject:
    """An object that every namespace has: its controller, its resource and its content.

    Only its existence is ensured: changes by other clients stay.
    """

    controller: str
    place: tuple[str, str]
    kind: str
    name: str
    annotations: tuple[tuple[str, str], ...] = ()
    data: tuple[tuple[str, str], ...] = ()

    def key(self, namespace: str) -> ObjectKey:
        """The key of the object in a namespace."""
        return ObjectKey(*self.place, namespace, self.name)

    def tree(self, namespace: str) -> JsonObject:
        """The object as it is created in a namespace."""
        metadata: JsonObject = {"name": self.name, "namespace": namespace}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        made: JsonObject = {"apiVersion": "v1", "kind": self.kind, "metadata": metadata}
        return made | ({"data": dict(self.data)} if self.data else {})


SERVICE_ACCOUNTS = NamespaceObject(
    controller="service-accounts",
    place=api_resources.SERVICE_ACCOUNTS,
    kind="ServiceAccount",
    name="default",
)
ROOT_CA = NamespaceObject(
    controller="root-ca",
    place=("", "configmaps"),
    kind="ConfigMap",
    name="kube-root-ca.crt",
    annotations=(
        (
            "kubernetes.io/description",
            "Contains a CA bundle that can be used to verify the kube-apiserver when using "
            "internal endpoints such as the internal service IP or kubernetes.default.svc. No "
            "other usage is guaranteed across distributions of Kubernetes clusters.",
        ),
    ),
    data=(("ca.crt", ""),),
)
"""The certificate is empty, because a history does not know the server that serves it. A
certificate written by a real kube-controller-manager is left unchanged."""


class NamespaceObjectReconciler(KeyedController[tuple[str], Views]):
    """Ensures that each namespace has the object."""

    def __init__(self, wanted: NamespaceObject) -> None:
        self.name = wanted.controller
        self.reads = frozenset({api_resources.NAMESPACES, wanted.place})
        super().__init__()
        self._wanted = wanted
        self._written: tuple[tuple[str], ...] = ()
        self._is_careful = False

    def keys_of(self, event: Event, views: Views) -> Iterator[tuple[str]]:
        """A new or changed namespace, and a namespace whose object was deleted."""
        key = event.key
        if is_of(key, api_resources.NAMESPACES):
            if event.type is EventType.OBJECT_DELETED:
                self.queue.drop((key.name,), event.revision)
            else:
                yield (key.name,)
        elif key.name == self._wanted.name and event.type is EventType.OBJECT_DELETED:
            yield (key.namespace,)

    def reconcile(self, views: Views, key: tuple[str], now: Instant) -> Work | None:
        """Creates the object in one namespace."""
        command = self._command(views.objects, key[0])
        return None if command is None else Work((command,))

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Creates the object in several namespaces; in one at a time after a refusal."""
        commands: list[Command] = []
        written: list[tuple[str]] = []
        first = Revision(0)
        most = 1 if self._is_careful else TOGETHER_MAX
        while len(commands) < most and (item := self.queue.take(now)):
            key, cause = item
            work = self.reconcile(views, key, now)
            if work is not None:
                commands += work.commands
                written.append(key)
                first = first or cause
        if not commands:
            return None
        self._written = tuple(written)
        return self.plan(views, written[0], Work(tuple(commands)), first)

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Retries after a refusal, each namespace separately."""
        self._is_careful = problem is not None
        for key in self._written:
            self.queue.settle(key, problem, now)

    def _command(self, objects: ObjectsReader, namespace: str) -> Command | None:
        holder = objects.get(ObjectKey(*api_resources.NAMESPACES, "", namespace))
        if holder is None or "deletionTimestamp" in holder["metadata"]:
            return None
        key = self._wanted.key(namespace)
        if objects.get(key) is not None:
            return None
        tree = self._wanted.tree(namespace)
        return CreateObject(key=key, version="v1", tree=tree, options=MANAGER)
