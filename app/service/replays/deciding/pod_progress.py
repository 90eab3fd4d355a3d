"""The progress of pods in a run and in the recording, and when the writes about them are due.

A recorded kubelet runs a pod for some time after it was bound. Where the pod is bound later here,
its writes come as much later. In a changed world it may also be bound earlier than it was recorded:
then its writes come as much earlier, and are taken from the inputs ahead of their turn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import cached_property

from app.analysis.replay import tolerances
from app.analysis.replay.inputs import Input, note_reached
from app.domain.log import Event, EventType
from app.domain.values.fields import core
from app.domain.values.timestamps import Instant


class PodProgress:
    """The instants at which pods were bound and terminating, here and in the recording.

    `there` are the recorded ones, by uid; what was so at the beginning of the run has that instant.
    """

    def __init__(
        self,
        there: Mapping[tuple[str, str], Instant],
        inputs: Sequence[Input],
        removed: Set[str] = frozenset(),
        *,
        is_changed: bool,
    ) -> None:
        """`removed` has the objects (uids) that the recording removes.

        `is_changed` is True for the run of a changed world.
        """
        self._there = there
        self._removed = removed
        self._inputs = inputs
        self._is_changed = is_changed
        self._here: dict[tuple[str, str], Instant] = {}
        self._ahead: set[int] = set()

    def note(self, event: Event, known: Instant) -> bool:
        """Notes what an event shows that others know since `known`; True if it is new."""
        return note_reached(self._here, event, known)

    def taken_ahead(self, event: Event) -> Sequence[Input]:
        """The recorded kubelet's writes about a pod that this event binds earlier than there.

        Each is returned once; `is_ahead` is true of them from then on.
        """
        uid, now = event.uid, event.stamp.time
        if not self._is_changed or self._here.get((uid, "bound")) != now:
            return ()
        if not self.is_earlier(uid, now):
            return ()
        writes = [each for each in self._runs.get(uid, ()) if not self.is_ahead(each)]
        self._ahead |= {each.number for each in writes}
        return writes

    def is_ahead(self, write: Input) -> bool:
        """Whether a write was taken before its turn."""
        return write.number in self._ahead

    def is_earlier(self, uid: str, now: Instant) -> bool:
        """Whether a pod that is bound now is bound later in the recording."""
        there = self._there.get((uid, "bound"))
        return there is not None and there > now + tolerances.TABLE.unseen

    def lacks_run(self, uid: str, now: Instant) -> bool:
        """Whether no recorded kubelet ran a pod, which may be bound here before it was there."""
        if (uid, "bound") not in self._there:
            return True
        here = self._here.get((uid, "bound"), now)
        return self._is_changed and uid not in self._runs and self.is_earlier(uid, here)

    def lacks_end(self, uid: str, now: Instant) -> bool:
        """Whether the recorded kubelet of a running pod did not come to its end, and does here.

        There the pod was removed before that, or the recording ended: here it is bound earlier.
        """
        if not self._is_changed or uid in self._ended:
            return False
        here = self._here.get((uid, "bound"), now)
        return uid in self._removed or self.is_earlier(uid, here)

    def ends_earlier(self, uid: str, now: Instant) -> bool:
        """Whether a pod that is terminating now is so later in the recording, or never."""
        there = self._there.get((uid, "terminating"))
        return there is None or there > now + tolerances.TABLE.unseen

    def due(self, write: Input) -> Instant:
        """The recorded instant of an input, plus the delay of its pod's progress in this run."""
        late: int | None = None
        for what in ("bound", "terminating"):
            here = self._here.get((write.event.uid, what))
            there = self._there.get((write.event.uid, what))
            if here is not None and there is not None and there <= write.time:
                late = here - there if late is None else max(late, here - there)
        least = late if self.is_ahead(write) else max(late or 0, 0)
        return Instant(write.time + (least or 0))

    @cached_property
    def _ended(self) -> Set[str]:
        """The pods (uids) that recorded kubelets ended."""
        ends = (each for each in self._inputs if each.is_of_kubelet)
        return {each.event.uid for each in ends if core.is_finished(each.event.object)}

    @cached_property
    def _runs(self) -> Mapping[str, Sequence[Input]]:
        """The writes of recorded kubelets about bound pods that are not terminating, by uid."""
        runs: dict[str, list[Input]] = defaultdict(list)
        for each in self._inputs:
            is_change = each.event.type is EventType.OBJECT_UPDATED
            if is_change and each.is_bound and each.is_of_kubelet and not each.ends_pod:
                runs[each.event.uid].append(each)
        return runs
