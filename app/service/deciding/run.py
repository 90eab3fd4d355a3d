"""One run of the controllers over the outside inputs of a recording, under virtual time."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from heapq import heappop, heappush

from app.domain.controllers.plan import Plan, Reconciler, Views
from app.domain.errors import Rejected
from app.domain.log import Actor, Event, EventType, ObjectKey
from app.domain.objects.rules import Rules
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import UidSource
from app.service.deciding.inputs import Input, command_of
from app.service.deciding.names import RecordedNames
from app.service.deciding.recording import Recording, note_reached
from app.service.deciding.traces import Trace
from app.service.deciding.writers import is_kubelet
from app.service.reconciling import Timeline


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
        self.fold = reconciler.fold
        self.settled = reconciler.settled
        self.redecide = reconciler.redecide

    def step(self, views: Views, now: Instant) -> Plan | None:
        """Nothing before the start."""
        self._is_up = self._is_up or now >= self._at
        return self._reconciler.step(views, now) if self._is_up else None

    def due(self) -> Instant | None:
        """Not before the start; then there may be work at once."""
        return self._reconciler.due() if self._is_up else self._at


class RecordedTies:
    """Which of several equally good nodes a pod goes to: the recorded one, if it is among them."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.taken: set[str] = set()

    def __call__(self, pod: str, names: Sequence[str]) -> str:
        node = self.nodes.get(pod, "")
        if node in names:
            self.taken.add(pod)
            return node
        return ""


class Run:
    """The history that is decided again."""

    def __init__(
        self,
        recording: Recording,
        *,
        rules: Rules,
        controllers: Sequence[Reconciler],
        uids: UidSource,
    ) -> None:
        self._names = RecordedNames(uids)
        for event in recording.made:
            self._names.learn(event)
        self._recorded_at = recording.reached
        self._reached: dict[tuple[str, str], Instant] = {}
        self._waiting: dict[str, deque[Input]] = defaultdict(deque)
        self._ready: list[tuple[Instant, int, str]] = []
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._is_outside = False
        self._number = 0
        self.trace = Trace()
        self.not_comparable: Counter[str] = Counter()
        start = recording.inputs[0].time if recording.inputs else Instant(0)
        self.timeline = Timeline(
            rules=rules,
            uids=self._names,
            controllers=controllers,
            start=start,
            keep_events=False,
            adapt=self._names.adapt,
        )
        self.timeline.followers.append(self._follow)

    def take(self, found: Input) -> None:
        """Let time pass up to the write, then do it here."""
        self._advance(found.time)
        uid = found.event.uid
        is_about_pod = is_kubelet(found.event) and found.event.key.resource == "pods"
        waits = is_about_pod or found.is_about_devices
        if waits and (self._waiting.get(uid) or not self._is_possible(found)):
            self._waiting[uid].append(found)
        else:
            self._apply(found)

    def finish(self, last: Instant) -> None:
        """Let what is under way come to an end, up to an instant."""
        self._advance(last)
        left = sum(len(waiting) for waiting in self._waiting.values())
        if left:
            what = "a kubelet's or driver's write about an object that is not that far here"
            self.not_comparable[what] += left
        if refusals := len(self.timeline.refusals):
            self.not_comparable["a plan of ours that was refused"] += refusals

    def _advance(self, until: Instant) -> None:
        """Step by step, so that what a kubelet has waited for comes at its own instant."""
        while True:
            due = self.timeline.due()
            ready = self._ready[0][0] if self._ready else None
            steps = [moment for moment in (due, ready) if moment is not None and moment < until]
            if not steps:
                break
            now = Instant(max(min(steps), self.timeline.now))
            self.timeline.advance(now)
            self._take_ready(now)
        self.timeline.advance(until)
        self._take_ready(until)

    def _take_ready(self, now: Instant) -> None:
        while self._ready and self._ready[0][0] <= now:
            _, _, uid = heappop(self._ready)
            waiting = self._waiting.get(uid)
            while waiting and self._is_possible(waiting[0]):
                due = self._due(waiting[0])
                if due > now:
                    self._number += 1
                    heappush(self._ready, (due, self._number, uid))
                    break
                self._apply(waiting.popleft())

    def _due(self, found: Input) -> Instant:
        """As long after the pod came that far here as it was there."""
        late = Instant(0)
        for what in ("bound", "terminating"):
            here = self._reached.get((found.event.uid, what))
            there = self._recorded_at.get((found.event.uid, what))
            if here is not None and there is not None and there <= found.time:
                late = Instant(max(late, here - there))
        return Instant(found.time + late)

    def _is_possible(self, found: Input) -> bool:
        ours = self.timeline.views.objects.get(found.event.key)
        if ours is None or json_tree.text(ours, "metadata", "uid") != found.event.uid:
            # It is gone here: nothing to wait for, and nothing will be done.
            return True
        return found.is_possible(ours)

    def _apply(self, found: Input) -> None:
        event = found.event
        ours = self.timeline.views.objects.get(event.key)
        command = command_of(found, ours)
        if command is None:
            if ours is None:
                self.not_comparable["a write from outside about an object that is gone here"] += 1
            return
        actor: Actor = event.stamp.actor
        self._is_outside = True
        try:
            self.timeline.submit(command, actor=actor, verb=event.stamp.verb)
        except Rejected as refusal:
            self.not_comparable[f"a write from outside that is refused here: {refusal}"] += 1
        finally:
            self._is_outside = False
        event.tree = None
        self.timeline.settle()

    def _follow(self, event: Event) -> None:
        """Write the trace of what happens here, and see which pods come further."""
        if not event.is_about_object:
            return
        self._names.follow(event)
        before = self._objects.get(event.key)
        self.trace.add(event, before, is_decided=not self._is_outside)
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
        else:
            self._objects[event.key] = event.object
        is_news = note_reached(self._reached, event, event.stamp.time)
        is_news |= event.key.resource == "resourceclaims"
        if is_news and self._waiting.get(event.uid):
            self._number += 1
            due = self._due(self._waiting[event.uid][0])
            heappush(self._ready, (due, self._number, event.uid))
