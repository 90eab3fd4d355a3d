"""The nominations of pods: until when the devices of a pod were chosen, at the latest.

A scheduler chooses node and devices before it nominates the node, and writes the devices after it.
What was stored after the nomination played no part in the choice. Only versions tell that order.

Example: a pod is nominated, and a second later a claim gives back a device. The pod cannot have
been given that device, although it is free when the allocation is written.

A pod that is refused after its nomination, or nominated anew, is decided again: nothing is known of
it any more. The same holds for a pod whose nomination came with a refusal: others make room for it.
Others than the scheduler may nominate a pod, too, long before it is tried. So the one who nominates
it and the one who allocates have to be the same, by name. If the scheduler paused in between, it
may have been replaced, and the next one chose anew (`handovers`).
"""

from typing import NamedTuple

from msgspec import Raw, Struct

from app.domain.log import Event, EventType, Revision
from app.domain.log.raw_parts import ABSENT, RawPod, splitter
from app.domain.log.records import IMPORTER_USER
from app.domain.values.timestamps import Instant

_NAMED = b'"nominatedNodeName"'


class _NominatedStatus(Struct, frozen=True, gc=False, rename="camel"):
    nominated_node_name: Raw = ABSENT


class _NominatedPod(Struct, frozen=True, gc=False):
    """The one part of a pod that says for which node it is nominated."""

    status: _NominatedStatus = _NominatedStatus()


_nominated = splitter(_NominatedPod)


class DatedNomination(NamedTuple):
    """The first nomination of a pod; without a revision the pod was decided again since."""

    revision: Revision
    time: Instant
    node: bytes
    user: str


_DECIDED_AGAIN = DatedNomination(Revision(0), Instant(0), b"", "")


class PodNominations:
    """The nominations of pods, while a log is read event by event."""

    def __init__(self) -> None:
        self._conditions: dict[str, int] = {}
        # The digests of the conditions that pods had last, until they have a node.
        self._of: dict[str, DatedNomination] = {}

    def note(self, event: Event, parts: RawPod, *, is_placed: bool) -> None:
        """Reads an event of a pod; `is_placed` tells that its place in the order is known.

        A pod that was deleted keeps its nomination: its claims are written all the same.
        """
        uid = event.uid
        if event.type is EventType.OBJECT_DELETED or parts.spec.node_name:
            self._conditions.pop(uid, None)
            if parts.spec.node_name:
                self._of.pop(uid, None)
            return
        conditions = hash(bytes(parts.status.conditions))
        is_same = self._conditions.get(uid) == conditions
        self._conditions[uid] = conditions
        node = b""
        if _NAMED in event.body:
            node = bytes(_nominated(event.body).status.nominated_node_name)
        known = self._of.get(uid)
        if known is not None:
            if not is_same or node != known.node:
                self._of[uid] = _DECIDED_AGAIN
        elif node:
            is_first = is_same and is_placed
            stamp = event.stamp
            first = DatedNomination(event.revision, stamp.time, node, stamp.actor.user)
            self._of[uid] = first if is_first else _DECIDED_AGAIN

    def forget(self) -> None:
        """Forgets what was noted: changes that are missing may have decided any pod again."""
        self._of = dict.fromkeys(self._of, _DECIDED_AGAIN)
        self._conditions.clear()

    def of(self, uid: str, user: str, since: Instant) -> Revision:
        """The nomination before which a user chose the devices of a pod; 0 if it is not known.

        One that is older than `since`, the earliest instant of the choice, is of another attempt.
        """
        known = self._of.get(uid, _DECIDED_AGAIN)
        is_its_own = known.user == user != IMPORTER_USER and known.time >= since
        return known.revision if is_its_own else Revision(0)
