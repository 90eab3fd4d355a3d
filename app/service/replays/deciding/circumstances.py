"""Facts that a run takes from the recording besides inputs: starts of controllers, and ties."""

from collections.abc import Mapping, Sequence

from app.analysis.replay.beginning import Beginning
from app.analysis.replay.recording import Recording
from app.domain.controllers.plan import MergingViews, Plan, Reconciler
from app.domain.values.timestamps import Instant

UNPACED = frozenset(("node-lifecycle",))
"""Controllers without a pace, which wait for the start that the recording shows."""


def starts_of(
    recording: Recording, beginning: Beginning | None, *, is_changed: bool = False
) -> Mapping[str, Instant]:
    """The instants at which the controllers of a run start.

    All controllers start as recorded if the control plane is not up yet at the beginning of the
    run. If it is up, or in a changed world with a `beginning`, only controllers without a pace do.
    Those with a pace wait by themselves, and their first act is no start then: in a changed world
    they may act earlier, because of the change.
    """
    starts = recording.starts
    if beginning is not None and (is_changed or beginning.shows_work):
        starts = {name: at for name, at in starts.items() if name in UNPACED}
    return starts


class Started:
    """A controller that starts at the instant of its first act in the recording.

    In a control plane that has just started, some controllers are not up yet. Their late start is a
    fact of the recording and not a decision to repeat.
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
        """The next plan; None before the start."""
        self._is_up = self._is_up or now >= self._at
        return self._reconciler.step(views, now) if self._is_up else None

    def due(self) -> Instant | None:
        """The next due instant; until the controller has started, its start."""
        return self._reconciler.due() if self._is_up else self._at


class RecordedTies:
    """A tie break that chooses the recorded node of a pod, if it is among the best nodes.

    `taken` has the pods for which the recorded node was chosen.
    """

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self.nodes = nodes
        self.taken: set[str] = set()

    def __call__(self, pod: str, names: Sequence[str]) -> str:
        node = self.nodes.get(pod, "")
        if node in names:
            self.taken.add(pod)
            return node
        return ""
