"""Statuses of pods by users that are no kubelets, such as a simulator of nodes.

Parity: history-formats.md 4.5.
"""

from app.domain.log.doubts import LOST_OF_MIN
from app.domain.log.event import Event, EventType
from app.domain.values.condition_types import DISRUPTION_TARGET
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_FAILED = "Failed"
"""The phase that a controller, too, writes: with the condition that says why it ended the pod."""

_OF_CONTROLLERS = ("nominatedNodeName", "resourceClaimStatuses")

_STAMPED = frozenset(("managedFields", "resourceVersion"))
"""The metadata that each write of a status changes."""


class PlayedKubelets:
    """Learns whether all that pods ran is written by users that are no kubelets, in plain sight.

    A simulator of nodes writes the statuses of pods under an account of its own. Where kubelets are
    left out, some line shows a phase that it did not write: beside what it wrote itself.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, JsonObject, JsonObject]] = {}
        self._written = 0
        self._has_unwritten = False

    def follow(self, event: Event) -> None:
        """Notes the phase of a pod, and whether the line changes nothing but what kubelets write.

        A controller that evicts a running pod shows the phase in its answer, beside its own change.
        """
        if event.type is EventType.OBJECT_DELETED:
            # Its answer shows what others wrote before.
            was = self._known.pop(event.uid, None)
            if was is not None and was[0] != meta.phase(event.object):
                self._has_unwritten = True
            return
        now = meta.phase(event.object), _without_status(event.object), _of_controllers(event.object)
        was = self._known.get(event.uid)
        self._known[event.uid] = now
        if was is None or was[0] == now[0]:
            return
        if was[1] == now[1] and (was[2] == now[2] or now[0] == _FAILED):
            self._written += 1
        else:
            self._has_unwritten = True

    @property
    def is_sure(self) -> bool:
        """Whether several lines wrote phases of pods, and every change of one was written so.

        One may be a write without effect, whose answer shows what an unrecorded line wrote.
        """
        return self._written >= LOST_OF_MIN and not self._has_unwritten


def _without_status(pod: JsonObject) -> JsonObject:
    """The pod without its status, and without what writes of it change besides."""
    metadata = {name: value for name, value in meta.metadata(pod).items() if name not in _STAMPED}
    return {
        **{name: value for name, value in pod.items() if name != "status"},
        "metadata": metadata,
    }


def _of_controllers(pod: JsonObject) -> JsonObject:
    """The part of the status of a living pod that controllers write, and kubelets do not."""
    status, disruption = meta.status(pod), meta.condition(pod, DISRUPTION_TARGET)
    return {
        DISRUPTION_TARGET: None if disruption is None else disruption.status,
        **{name: status.get(name) for name in _OF_CONTROLLERS},
    }
