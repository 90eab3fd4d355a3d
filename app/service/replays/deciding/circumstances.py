"""What a run takes from the recording besides inputs: who was up when, and choices of chance."""

from collections.abc import Mapping, Sequence

from app.domain.controllers.plan import MergingViews, Plan, Reconciler
from app.domain.values.timestamps import Instant


class Started:
    """A controller that begins to work when it was first seen at work in the recording.

    A control plane that has just started has controllers that are not up yet; that is no decision.
    """

    def __init__(self, reconciler: Reconciler, at: Instant) -> None:
        self._reconciler = reconciler
        self._at = at
        self._is_up = False
        self.name = reconciler.name
        self.reads = reconciler.reads
        self.queues = reconciler.queues
        self.fold = reconciler.fold
        self.settled = reconciler.settled
        self.redecide = reconciler.redecide

    def step(self, views: MergingViews, now: Instant) -> Plan | None:
        """Nothing before the start."""
        self._is_up = self._is_up or now >= self._at
        return self._reconciler.step(views, now) if self._is_up else None

    def due(self) -> Instant | None:
        """Not before the start; then there may be work at once."""
        return self._reconciler.due() if self._is_up else self._at


class RecordedTies:
    """Which of several equally good nodes a pod goes to: the recorded one, if it is among them."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self.nodes = nodes
        self.taken: set[str] = set()

    def __call__(self, pod: str, names: Sequence[str]) -> str:
        node = self.nodes.get(pod, "")
        if node in names:
            self.taken.add(pod)
            return node
        return ""
