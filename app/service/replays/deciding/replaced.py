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
from app.domain.log import Event, EventType
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant
from app.service.replays.deciding import deployments
from app.service.replays.deciding.deployments import ChangedDeployments


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
        if controller.name == deployments.NAME:
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
