"""The recorded controllers that those here replace in a changed world.

Their recorded writes are left out there: those about Deployments that edits concern, and the
answers to requests for the status of pools.
"""

from collections.abc import Callable, Sequence

from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.analysis.replay.steering import SteeredPace
from app.domain.controllers import pool_status, registry
from app.domain.controllers.plan import MergingViews, Plan, Reconciler
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

DEPLOYMENTS = "deployments"
"""The name of the controller."""

_KIND = "Deployment"
_DEPLOYMENT_USER = registry.actor_of(DEPLOYMENTS).user
_NO_OWNER = "a pod whose ReplicaSet was not made here: its Deployment was changed"


class ChangedDeployments:
    """The Deployments that edits concern, by namespace and name.

    The recorded controller of Deployments wrote what their recorded specs asked for, and its writes
    are inputs. If an edit makes or changes a Deployment, or removes one of its ReplicaSets, these
    writes no longer fit the spec, nor do the counts of pods in its ReplicaSets. So the controllers
    here act in their place. All other Deployments stay as recorded.

    No recorded act is about them and their ReplicaSets, so none gives them a `pace`.
    """

    def __init__(self, pace: SteeredPace | None) -> None:
        self._keys: set[ObjectKey] = set()
        self._unpaced: set[ObjectKey] = set()
        self._replaced: set[str] = set()
        if pace is not None:
            pace.prompt = self._unpaced

    def note(self, commands: Sequence[Command], objects: ObjectsReader) -> None:
        """Note the Deployments that edits concern; called before the edits are made."""
        for command in commands:
            key = getattr(command, "key", None)
            if key is not None and key.resource in ("deployments", "replicasets"):
                tree = objects.get(key) or getattr(command, "tree", None) or {}
                deployment = _deployment_of(key, tree)
                if deployment is not None:
                    self._keys.add(deployment)

    def shows(self, event: Event) -> bool:
        """Whether the controller here sees an event: about what edits concern, or an Event."""
        is_event = event.key[:2] == api_resources.EVENTS
        return is_event or self.concern(event.key, event.object)

    def concern(self, key: ObjectKey, tree: JsonView) -> bool:
        """Whether an object is such a Deployment, one of its ReplicaSets, or an Event about it."""
        is_one = bool(self._keys) and _deployment_of(key, tree) in self._keys
        if is_one:
            self._unpaced.add(key)
        return is_one

    def replaces(self, write: Input) -> bool:
        """Whether the controller here acts in place of a recorded write of its counterpart."""
        event = write.event
        if not self.concern(event.key, event.object) or not _is_of_controller(write):
            return False
        if event.type is EventType.OBJECT_CREATED and event.key.resource == "replicasets":
            self._replaced.add(event.uid)
        return True

    def lack_owner(self, event: Event, objects: ObjectsReader) -> str:
        """The reason not to make a recorded pod: its ReplicaSet does not exist here; or empty."""
        if event.type is not EventType.OBJECT_CREATED or event.key.resource != "pods":
            return ""
        owner = meta.controller(event.object)
        if owner is None or owner.uid not in self._replaced:
            return ""
        return _NO_OWNER if objects.by_uid(owner.uid) is None else ""


class PoolRequests:
    """The requests for the status of pools that were made since the change, by uid.

    Every change may concern the pools, so the controller here answers each of them once. An older
    request keeps its recorded answer.
    """

    def __init__(self) -> None:
        self.is_changed = False
        self._uids: set[str] = set()

    def concern(self, event: Event) -> bool:
        """Whether an event is about such a request."""
        if event.key[:2] != api_resources.RESOURCE_POOL_STATUS_REQUESTS:
            return False
        if self.is_changed and event.type is EventType.OBJECT_CREATED:
            self._uids.add(event.uid)
        return event.uid in self._uids

    def replaces(self, write: Input) -> bool:
        """Whether a write is the recorded answer to such a request."""
        if write.event.uid not in self._uids or write.event.type is not EventType.OBJECT_UPDATED:
            return False
        is_unnamed = write.author in ("", UNNAMED) and write.is_about_status
        return is_unnamed or write.author == registry.actor_of(pool_status.NAME).user


class PartlySeeing:
    """A controller that sees only the events for which `shows` is true."""

    def __init__(self, reconciler: Reconciler, shows: Callable[[Event], bool]) -> None:
        self._reconciler = reconciler
        self._shows = shows
        self.name = reconciler.name
        self.reads = reconciler.reads
        self.queues = reconciler.queues
        self.step: Callable[[MergingViews, Instant], Plan | None] = reconciler.step
        self.settled = reconciler.settled
        self.due = reconciler.due
        self.redecide = reconciler.redecide

    def fold(self, event: Event, views: MergingViews) -> None:
        """Folds an event that the controller sees."""
        if self._shows(event):
            self._reconciler.fold(event, views)


class ReplacedControllers:
    """The controllers that act here in place of recorded ones, once `note` names the edits."""

    def __init__(self, pace: SteeredPace | None) -> None:
        self._deployments = ChangedDeployments(pace)
        self._requests = PoolRequests()
        self.lack_owner = self._deployments.lack_owner

    def place(self, controller: Reconciler) -> Reconciler | None:
        """The controller as it acts here; None for a controller that replaces no recorded one."""
        if controller.name == DEPLOYMENTS:
            return PartlySeeing(controller, self._deployments.shows)
        if controller.name == pool_status.NAME:
            return PartlySeeing(controller, self._requests.concern)
        return None

    def note(self, commands: Sequence[Command], objects: ObjectsReader) -> None:
        """Notes what edits concern; called before the edits of a changed world are made."""
        self._deployments.note(commands, objects)
        self._requests.is_changed = True

    def replaces(self, write: Input) -> bool:
        """Whether the controller here acts in place of a recorded write of its counterpart."""
        return self._deployments.replaces(write) or self._requests.replaces(write)


def _is_of_controller(write: Input) -> bool:
    """Whether a write is by the controller of Deployments, or to a ReplicaSet by its controller.

    A write to a ReplicaSet by an unnamed author counts too. Its count of ready pods would be wrong
    here.
    """
    author = write.author
    if write.event.key.resource == "replicasets":
        return author in ("", UNNAMED, _DEPLOYMENT_USER, registry.actor_of("replica-sets").user)
    return author == _DEPLOYMENT_USER


def _deployment_of(key: ObjectKey, tree: JsonView) -> ObjectKey | None:
    """The Deployment that an object is, belongs to or is an Event about; None for all others."""
    name = ""
    match key[:2]:
        case api_resources.DEPLOYMENTS:
            name = key.name
        case api_resources.REPLICA_SETS:
            owner = meta.controller(tree)
            name = owner.name if owner is not None and owner.kind == _KIND else ""
        case api_resources.EVENTS:
            subject = core.event_object(tree).subject
            name = subject.name if subject.kind == _KIND else ""
    return ObjectKey(*api_resources.DEPLOYMENTS, key.namespace, name) if name else None
