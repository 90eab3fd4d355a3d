"""Pods of one owner that are made and removed again and again at one instant.

A ReplicaSet replaces an evicted pod at once. If nothing keeps the new pod from what evicted the old
one, this has no end: for example, if pods tolerate a NoExecute taint for less time than it has
lasted. The scheduler places such a pod, and it is evicted at once. In a cluster each round takes
the time of its requests; the ReplicaSet controller has no back-off for pods that were deleted. In
virtual time no time passes between the rounds. Parity: controllers.md 5.5.
"""

from collections import Counter

from app.domain.log import Event, EventType
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import meta
from app.domain.values.fields.meta import Owner
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant


class Replacements:
    """Counts the pods of each owner that were made and removed at the present instant.

    With more than `rounds_max` of them for each pod that the owner had at once, `problem` says so.
    """

    def __init__(self, rounds_max: int) -> None:
        self.problem = ""
        self._rounds_max = rounds_max
        self._time = Instant(0)
        self._born: dict[Uid, Owner] = {}
        self._alive: Counter[Uid] = Counter()
        self._most: Counter[Uid] = Counter()
        self._gone: Counter[Uid] = Counter()

    def follow(self, event: Event) -> None:
        """Counts the creation or removal of a pod with an owner."""
        if event.key[:2] != api_resources.PODS or event.type is EventType.OBJECT_UPDATED:
            return
        if event.stamp.time != self._time:
            self._begin(event.stamp.time)
        if event.type is EventType.OBJECT_CREATED:
            owner = meta.controller(event.object)
            if owner is not None:
                self._born[event.uid] = owner
                self._alive[owner.uid] += 1
                self._most[owner.uid] = max(self._most[owner.uid], self._alive[owner.uid])
        elif event.type is EventType.OBJECT_DELETED:
            owner = self._born.pop(event.uid, None)
            if owner is not None:
                self._alive[owner.uid] -= 1
                self._gone[owner.uid] += 1
                if self._gone[owner.uid] > self._rounds_max * self._most[owner.uid]:
                    self._note_problem(owner, event)

    def _begin(self, time: Instant) -> None:
        self._time = time
        for counts in (self._born, self._alive, self._most, self._gone):
            counts.clear()

    def _note_problem(self, owner: Owner, event: Event) -> None:
        place = f"{event.key.namespace}/{owner.name}"
        self.problem = (
            f"the pods of {owner.kind} {place} are replaced without end at "
            f"{timestamps.micro_text(self._time)}: {self._gone[owner.uid]} of them were created "
            f"and removed while no time passed, the last one {event.key.name}; a cluster would go "
            "on like this, too, as fast as it writes, for example while pods tolerate a NoExecute "
            "taint for less time than it lasts"
        )
