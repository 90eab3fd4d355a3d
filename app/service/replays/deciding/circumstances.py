"""Facts that a run takes from the recording besides inputs: starts of controllers, and ties."""

from collections.abc import Mapping, Sequence

from app.analysis.replay.beginning import Beginning
from app.analysis.replay.readiness import Readiness
from app.analysis.replay.recording import Recording
from app.analysis.replay.steering import SteeredPace
from app.domain.controllers.plan import MergingViews, Plan, Reconciler
from app.domain.log import Event
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


class UnderWay:
    """A controller whose plans are under way until the instant at which they were stored.

    It made them on a state that others changed meanwhile. Like the loop of a live controller, it
    sees nothing new and makes no other plan until then. In a changed world a plan takes as long as
    that of the unchanged one at the same instant.
    """

    def __init__(self, reconciler: Reconciler, pace: SteeredPace) -> None:
        self._reconciler = reconciler
        self._pace = pace
        self._plan: Plan | None = None
        self._until = Instant(0)
        self._unseen: list[Event] = []
        self.name = reconciler.name
        self.reads = reconciler.reads
        self.queues = reconciler.queues
        self.settled = reconciler.settled
        self.redecide = reconciler.redecide

    def fold(self, event: Event, views: MergingViews) -> None:
        """Shows an event to the controller, after its plan is stored."""
        if self._plan is None:
            self._reconciler.fold(event, views)
        else:
            self._unseen.append(event)

    def step(self, views: MergingViews, now: Instant) -> Plan | None:
        """The next plan, when it was stored."""
        if self._plan is None:
            self._pace.begin_step()
            plan = self._reconciler.step(views, now)
            if plan is None or plan.is_empty:
                return plan
            until = self._pace.stored_at(self.name, now)
            if until is None:
                return plan
            self._plan, self._until = plan, until
        if now < self._until:
            return None
        plan, self._plan = self._plan, None
        for event in self._unseen:
            self._reconciler.fold(event, views)
        self._unseen.clear()
        return plan

    def due(self) -> Instant | None:
        """The next due instant: that of the plan under way, if there is one."""
        return self._reconciler.due() if self._plan is None else self._until


def at_work(controller: Reconciler, pace: SteeredPace | None, start: Instant | None) -> Reconciler:
    """The controller in a run: with a pace, its plans take time; it waits for its start, if any."""
    if pace is not None:
        controller = UnderWay(controller, pace)
    return controller if start is None else Started(controller, start)


class RecordedTies:
    """A tie break that chooses the recorded node of a pod, if it is among the best nodes.

    With a `pace` it is that of the recorded attempt: another one may have led to another node.
    Otherwise, and after the last one, it is the pod's last node, of `nodes`. `taken` has the pods
    for which the recorded node was chosen. A changed world, whose `control` shows that the recorded
    scheduler always chose what the order of the nodes gives, does so, too.
    """

    def __init__(
        self,
        nodes: Mapping[str, str],
        pace: SteeredPace | None = None,
        control: Readiness | None = None,
    ) -> None:
        self.nodes = nodes
        self.taken: set[str] = set()
        self._pace = pace
        self._control = control

    def __call__(self, pod: str, names: Sequence[str], first: str) -> str:
        if self._control is not None and not self._control.has_other_order:
            return ""
        node = self._pace.next_node(pod) if self._pace is not None else ""
        node = node or self.nodes.get(pod, "")
        if node in names:
            self.taken.add(pod)
            if self._pace is not None and node != first:
                self._pace.readiness.has_other_order = True
            return node
        return ""
