"""The plan of a reconciler: commands, and the decision that explains them; and its interface.

A reconciler keeps a queue view (its informer caches and work queue in one), folded from the same
events as all views; it reads objects and devices from `Views`. It never waits: an instant at which
work becomes due is part of its queue view.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from app.domain.allocation import AllocatedState
from app.domain.controllers.work_queue import AnyQueue
from app.domain.devices.inventory import Inventory
from app.domain.log import DECISION, Event, EventType, Revision
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import Command
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

Reads: TypeAlias = frozenset[tuple[str, str]] | None
"""The groups and resources whose events a controller reads; None means all."""

DECISIONS = (DECISION.group, DECISION.resource)
"""The group and resource of controllers' decisions, for `Reads`."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a plan, bounded in size, in the form of the log.

    `resource`, `namespace` and `name` identify the object of the decision, `outcome` is one word
    (`Scheduled`, `Unschedulable`, `Evicted`, `Cancelled`, …), `inputs` are the volatile values that
    it depends on (attempt number, start index), `summary` has the reasons.
    """

    controller: str
    resource: str
    namespace: str
    name: str
    outcome: str
    inputs: JsonObject
    summary: JsonObject


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one controller, appended as a whole or not at all.

    `cause` is the revision that caused it, `observed` the revision of the views it was made from.
    A plan with `parts` is a sequence of plans in one append, each made as if the earlier ones were
    already appended; it has no commands and no decision of its own.
    """

    controller: str
    key: str
    commands: tuple[Command, ...] = ()
    decision: Decision | None = None
    cause: int = 0
    observed: Revision = Revision(0)
    parts: tuple["Plan", ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to append."""
        return not (self.commands or self.parts) and self.decision is None


class Views(Protocol):
    """The views that every reconciler may read, all at one revision."""

    @property
    def objects(self) -> ObjectsReader: ...


class DeviceViews(Views, Protocol):
    """Views with the devices and their allocated state."""

    @property
    def inventory(self) -> Inventory: ...
    @property
    def allocated(self) -> AllocatedState: ...


class MergingViews(DeviceViews, Protocol):
    """Views that know the revisions at which a rule or patch changed the merged slices.

    Parity: controllers.md 1.7 and 3.9, only such a change acts as an update of slices.
    """

    def may_have_remerged(self, revision: Revision) -> bool: ...


ViewsT = TypeVar("ViewsT", bound=Views, contravariant=True)


class ReconcilerOf(Protocol[ViewsT]):
    """One controller, which reads views of type `ViewsT`.

    `fold` is called in order for every event of the resources in `reads`, including the events of
    the controller itself, and for events that are not about an object, such as a restart; it may be
    called for other events. `views` show the event's revision or a later one.
    `step` returns the plan for the next key that is ready at `now`, or None when nothing is ready;
    a plan without commands and decision means that a key had no work (bounded work, call again).
    `settled` reports the result of the last plan: its events were appended (and have been folded),
    or it was refused with `problem`, and the controller retries it with its own back-off.
    `due` is the earliest instant at which `step` could have work without a new event.
    `redecide` makes the plan of a recorded decision again, without touching the queue: the
    reconciler and `views` must have been folded up to the revision that the decision observed.
    It returns None when the plan cannot be made from there.
    `queues` are the queues of the controller, for metrics.
    """

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Reads: ...

    @property
    def queues(self) -> Sequence[AnyQueue]: ...

    def fold(self, event: Event, views: ViewsT) -> None: ...

    def step(self, views: ViewsT, now: Instant) -> Plan | None: ...

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None: ...

    def due(self) -> Instant | None: ...

    def redecide(self, views: ViewsT, decision: Event) -> Plan | None: ...


Reconciler: TypeAlias = ReconcilerOf[MergingViews]
"""A controller as its runner sees it: the views include all that any controller reads."""


@runtime_checkable
class StepReconciler(Reconciler, Protocol):
    """A controller that decides about several keys in one step, each based on the earlier ones.

    Inside `redeciding` nothing is folded and the views have no other reader, so the assumptions of
    one decision may stay in them from one `redecide` to the next.
    """

    def redeciding(self) -> AbstractContextManager[None]: ...


class Readers:
    """The index of controllers, in their order, by the resources that they read."""

    def __init__(self, controllers: Sequence[Reconciler]) -> None:
        self.controllers = controllers
        self._by_place: dict[tuple[str, str], tuple[Reconciler, ...]] = {}

    def of(self, event: Event) -> Sequence[Reconciler]:
        """The controllers that have to fold the event."""
        if is_for_all(event):
            return self.controllers
        place = (event.key.group, event.key.resource)
        place_keys = self._by_place.get(place)
        if place_keys is None:
            place_keys = tuple(
                controller
                for controller in self.controllers
                if controller.reads is None or place in controller.reads
            )
            self._by_place[place] = place_keys
        return place_keys


def is_for_all(event: Event) -> bool:
    """Whether every controller has to fold the event, independent of `reads`."""
    return not event.is_about_object and event.type is not EventType.DECISION_RECORDED
