"""Deletes Event objects some time after their last change, those of a minute in one append.

The API server gives each write of an Event a lease (`--event-ttl`, one hour) and shares leases
among the writes of a minute, so Events expire together and up to a minute late. Here a deletion is
an ordinary event of the log: earlier moments still show the object.
"""

from app.domain.controllers.plan import Plan, Reads, Views
from app.domain.controllers.resources import is_of
from app.domain.controllers.work_queue import AnyQueue
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import Command, DeleteObject
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.timestamps import SECOND, Instant

NAME = "event-expiry"

ROUND = 60 * SECOND
"""The longest time that upstream shares a lease."""

ENDED_MAX = 200
"""The most Event objects that one append deletes."""

PAUSE = SECOND
"""The pause after a refused append."""


class EventExpiryReconciler:
    """Keeps the time of the last change of each Event object, oldest first."""

    name = NAME
    reads: Reads = frozenset({api_resources.EVENTS})

    def __init__(self, ttl: int) -> None:
        """`ttl` is the life of an Event object since its last change, in microseconds."""
        self._ttl = ttl
        self._changed: dict[ObjectKey, Instant] = {}
        self._refused_until = Instant(0)

    @property
    def queues(self) -> tuple[AnyQueue, ...]:
        """Empty: the controller has no queue besides the Event objects."""
        return ()

    def fold(self, event: Event, views: Views) -> None:
        """Restarts the time of a changed Event object."""
        if not event.is_about_object or not is_of(event.key, api_resources.EVENTS):
            return
        self._changed.pop(event.key, None)
        if event.type is not EventType.OBJECT_DELETED:
            self._changed[event.key] = event.stamp.time

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Deletes the expired Event objects."""
        due = self.due()
        if due is None or due > now:
            return None
        commands: list[Command] = []
        for key, changed in list(self._changed.items()):
            if self._end(changed) > now or len(commands) == ENDED_MAX:
                break
            tree = views.objects.get(key)
            if tree is None:
                del self._changed[key]
                continue
            uid = meta.uid(tree)
            commands.append(DeleteObject(key=key, uid=uid))
        return Plan(
            controller=NAME,
            key=NAME,
            commands=tuple(commands),
            observed=views.objects.revision,
        )

    def settled(self, plan: Plan, problem: str | None, now: Instant) -> None:
        """Waits a little after a refusal, which means that another client deleted an object."""
        if problem is not None:
            self._refused_until = Instant(now + PAUSE)

    def due(self) -> Instant | None:
        """The instant at which the oldest Event object expires."""
        for changed in self._changed.values():
            return max(self._end(changed), self._refused_until)
        return None

    def redecide(self, views: Views, decision: Event) -> Plan | None:
        """Always None: this controller records no decisions."""
        return None

    def _end(self, changed: Instant) -> Instant:
        end = changed + self._ttl
        return Instant(end + (-end) % ROUND)
