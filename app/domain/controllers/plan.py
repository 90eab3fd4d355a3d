"""What a reconciler answers: commands, the decision that explains them, and when to look again.

A reconciler keeps a queue view (its informer caches and work queue in one), folded from the same
events as everything else; it reads objects and devices from `Views`. It never waits: an instant at
which something becomes due is part of its queue view.
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
"""Groups and resources whose events a controller has to see; None: all."""

DECISIONS = (DECISION.group, DECISION.resource)
"""Where the decisions of controllers stand, for `Reads`."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Why a plan is as it is, bounded in size, ready for the log.

    `subject` is namespace and name of the object decided about, `outcome` one word
    (`Scheduled`, `Unschedulable`, `Evicted`, `Cancelled`, …), `inputs` the volatile values that
    took part (attempt number, start index), `summary` the reasons.
    """

    controller: str
    resource: str
    namespace: str
    name: str
    outcome: str
    inputs: JsonObject
    summary: JsonObject


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one controller: appended as a whole or not at all.

    `cause` is the revision that provoked it, `observed` the revision of the views it was made from.
    A plan with `parts` is several plans in one append, one after the other, each made as if those
    before it had been carried out already; it has no commands and no decision of its own.
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
    """What every reconciler may look at, all at one revision."""

    @property
    def objects(self) -> ObjectsReader: ...


class DeviceViews(Views, Protocol):
    """Views with the devices and what is allocated of them."""

    @property
    def inventory(self) -> Inventory: ...
    @property
    def allocated(self) -> AllocatedState: ...


class MergingViews(DeviceViews, Protocol):
    """Views that know at which revisions a rule or patch changed what slices say.

    Parity: controllers.md 1.7 and 3.9, only such a change is as an update of slices.
    """

    def may_have_remerged(self, revision: Revision) -> bool: ...


ViewsT = TypeVar("ViewsT", bound=Views, contravariant=True)


class ReconcilerOf(Protocol[ViewsT]):
    """One controller, which reads views of type `ViewsT`.

    `fold` is called for every event of what it `reads` in order, the own ones too, and for events
    about no object, such as a restart; it may be called for others. `views` show the event's
    revision or a later one.
    `step` returns the plan for the next key that is ready at `now`, or None when nothing is ready;
    a plan without commands and decision means: looked, nothing to do (bounded work, call again).
    `settled` tells the fate of the last plan: its events were appended (and have been folded), or
    it was refused with `problem` and is to be retried by the controller's own back-off.
    `due` is the earliest instant at which `step` could have something to do without a new event.
    `redecide` makes the plan of a recorded decision again, without touching the queue: the
    reconciler and `views` must have been folded up to the revision that the decision observed.
    It returns None when the plan cannot be made from there.
    `queues` are what waits for the controller, for metrics.
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
"""A controller as whoever runs it knows it: the views have all that any of them reads."""


@runtime_checkable
class StepReconciler(Reconciler, Protocol):
    """A controller that decides about several keys in one step, each decision after the others.

    Inside `redeciding` nothing is folded, and nobody else looks at the views: what a decision
    assumes of those before it may be left in them from one `redecide` to the next.
    """

    def redeciding(self) -> AbstractContextManager[None]: ...


class Readers:
    """Controllers by what they read, in their order: who has to fold an event."""

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
    """Whether every controller has to fold the event, whatever it reads."""
    return not event.is_about_object and event.type is not EventType.DECISION_RECORDED
