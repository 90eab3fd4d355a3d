"""Decide replay: keep what came from outside, decide the rest again, compare.

The recording is read once. Each write from outside is put into a fresh history in memory at its own
instant of virtual time, where the same reconcilers as ever do what the recorded controllers did.
Two traces, of what was recorded and of what happened here, are compared; every difference has a
reason class. Nothing is written. Parity: design 8, controllers.md 7.
"""

from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from heapq import heappop, heappush

from anyio import lowlevel

from app.domain.controllers.plan import Plan, Reconciler, Views
from app.domain.controllers.scheduling.attempt import TieBreak
from app.domain.errors import Rejected
from app.domain.log import Actor, Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.objects import registry as kinds
from app.domain.objects.rules import Rules
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant
from app.ports import EventLog, UidSource
from app.service.deciding_attempts import SURE_AFTER
from app.service.deciding_authors import Authors
from app.service.deciding_classes import End
from app.service.deciding_differences import Comparison, DecideReport
from app.service.deciding_inputs import Input, command_of, is_terminating
from app.service.deciding_names import RecordedNames
from app.service.deciding_pace import Act, RecordedPace, known_instants
from app.service.deciding_traces import Trace, consumers, is_event_object
from app.service.deciding_writers import Writer, Writers, is_kubelet
from app.service.invariants import Violation
from app.service.reconciling import Timeline
from app.service.replaying import Progress, ReplayBounds, silent
from app.service.taint_audit import TaintAudit
from app.service.views import LiveViews

_UNREAD = frozenset(("leases", "secrets", "configmaps", "serviceaccounts"))
"""Kinds that no decision here depends on; logs often have no bodies of them."""

AFTERWARDS = 30 * SECOND
"""How long the clock goes on after the last recorded event, for what was under way."""


class Pacing(StrEnum):
    """When controllers act in a decide replay."""

    RECORDED = "recorded"
    """When they were seen acting in the recording."""
    VIRTUAL = "virtual"
    """As soon as there is something to do; bindings take no time."""


async def decide(
    log: EventLog,
    history: HistoryInfo,
    *,
    until: Revision,
    rules: Rules,
    controllers: Callable[[TieBreak, RecordedPace | None], Sequence[Reconciler]],
    uids: UidSource,
    bounds: ReplayBounds,
    pace: Pacing = Pacing.RECORDED,
    progress: Progress = silent,
) -> DecideReport:
    """Decide the history again up to `until`; see the module's text.

    `controllers` makes fresh reconcilers with the settings of the history; among equally good nodes
    they take the recorded one, as names and uids are taken from the recording, and by `pace` they
    act when they were seen acting.
    """
    ties = _RecordedTies()
    recorded = RecordedPace() if pace is Pacing.RECORDED else None
    made = controllers(ties, recorded)
    events = [event async for page in _pages(log, history, bounds) for event in page]
    instants = known_instants(events)
    writers = Writers([controller.name for controller in made])
    recording = _Recording(writers, LiveViews(rules.profile))
    for event, known in zip(events, instants, strict=True):
        recording.is_over = event.revision > until
        recording.take(event, known if recorded is not None else event.stamp.time)
    if recorded is not None:
        recorded.learn(recording.acts, writers.names, recording.removed)
    for event in events:
        event.tree = None
    bound = {**recording.later.node_of, **recording.trace.node_of}
    ties.nodes = {uid: step.text for uid, step in bound.items()}
    starts = recording.starts
    paced = [
        Started(found, starts[found.name]) if found.name in starts else found for found in made
    ]
    run = _Run(recording, rules=rules, controllers=paced, uids=uids)
    for number, found in enumerate(recording.inputs):
        run.take(found)
        if number % 200 == 0:
            progress("deciding again", found.event.revision, until)
            # Deciding is pure computation: let others run now and then.
            await lowlevel.checkpoint()
    # What was under way when a recording ended comes to its end here; what comes after a moment
    # inside it is known, and left out.
    run.finish(Instant(recording.last + (SURE_AFTER if recording.is_over else AFTERWARDS)))
    progress("deciding again", until, until)
    comparison = Comparison(
        history=history.name,
        revision=until,
        recorded=recording.trace,
        again=run.trace,
        inputs=recording.counts,
        notes=recording.not_comparable + run.not_comparable,
        ties=ties.taken,
        violations=recording.violations(recorded),
        end=End(at=recording.last, later=recording.later),
    )
    return comparison.report()


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


class _RecordedTies:
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


class _Recording:
    """The recording sorted out: inputs, names, trace and what cannot be compared."""

    def __init__(self, writers: Writers, views: LiveViews) -> None:
        self._writers = writers
        self._authors = Authors()
        self._views = views
        self._audit = TaintAudit(views)
        self._objects: dict[ObjectKey, JsonObject] = {}
        self.inputs: list[Input] = []
        self.made: list[Event] = []
        self.acts: list[Act] = []
        self.removed: dict[str, Instant] = {}
        self.trace = Trace()
        self.later = Trace()
        self.later.owner_of = self.trace.owner_of
        self.is_over = False
        self.counts: Counter[str] = Counter()
        self.not_comparable: Counter[str] = Counter()
        self.reached: dict[tuple[str, str], Instant] = {}
        self._changed: dict[str, Instant] = {}
        self._forbidden: dict[str, Instant | None] = {}
        self.starts: dict[str, Instant] = {}
        self.last = Instant(0)

    def take(self, event: Event, known: Instant) -> None:
        """Sort one event that others could see from instant `known` on, and audit it.

        Once `is_over` is set, only the pace and the names are learnt, and what will come `later`.
        """
        if not self.is_over:
            before = len(self._audit.found)
            self._audit.before(event)
            if len(self._audit.found) > before:
                self._forbidden[event.uid] = self._rule_of(self._audit.found[-1][1])
            self._views.fold(event)
        self._sort(event, known)

    def violations(self, pace: RecordedPace | None) -> dict[str, bool]:
        """Uids of the claims that were allocated against a taint, and whether by a rule that had
        been there when the attempt was made: its writes may have waited long for their limit."""
        found: dict[str, bool] = {}
        for event, _ in self._audit.found:
            since = self._forbidden[event.uid]
            pods = consumers(event.object)
            began = [pace.began_before(pod) for pod in pods] if pace is not None else []
            tried = min((each for each in began if each is not None), default=event.stamp.time)
            found[event.uid] = since is not None and since < tried
        return found

    def _rule_of(self, violation: Violation) -> Instant | None:
        """Since when the rule was there that a placement breaks; None when it is no rule."""
        rules = [key.name for key in violation.objects if key.resource == "devicetaintrules"]
        return max((self._changed.get(name, Instant(0)) for name in rules), default=None)

    def _sort(self, event: Event, known: Instant) -> None:
        if not self.is_over:
            self.last = Instant(max(self.last, known))
        if not event.is_about_object:
            if not self.is_over:
                self._take_fact(event)
            return
        before = self._objects.get(event.key)
        if before is not None and json_tree.text(before, "metadata", "uid") != event.uid:
            before = None
        author = self._authors.of(event, before)
        sort = self._writers.of(event, before, author)
        if not self.is_over:
            self.counts[sort.value] += 1
        if sort is Writer.ECHO:
            return
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
            self.removed[event.uid] = known
        else:
            self._objects[event.key] = event.object
        note_reached(self.reached, event, known)
        if event.key.resource == "devicetaintrules" and sort is Writer.OUTSIDE:
            self._changed[event.key.name] = known
        is_decided = sort is Writer.DECIDED
        trace = self.later if self.is_over else self.trace
        trace.add(event, before, is_decided=is_decided)
        if is_decided:
            for name in self._writers.controllers_of(author):
                self.starts.setdefault(name, known)
            self.made.append(event)
            self.acts.append(Act(event=event, before=before, known=known, user=author))
        elif not is_event_object(event.key) and not self.is_over:
            self.inputs.append(Input(event=event, before=before, time=known))

    def _take_fact(self, event: Event) -> None:
        if event.type is EventType.GAP_OBSERVED:
            if _is_read(event.key):
                self.not_comparable["the recording has a gap"] += 1
        elif event.type is EventType.REQUEST_OBSERVED:
            user = event.stamp.actor.user
            if user.startswith("system:"):
                self.not_comparable[
                    "a controller's request that was refused or changed nothing"
                ] += 1


def _is_read(key: ObjectKey) -> bool:
    """Whether a gap there matters: all of a stream, or a kind that controllers read here."""
    kind = kinds.find(key.group, key.resource)
    return not key.resource or (kind is not None and key.resource not in _UNREAD)


class _Run:
    """The history that is decided again."""

    def __init__(
        self,
        recording: _Recording,
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


def note_reached(reached: dict[tuple[str, str], Instant], event: Event, known: Instant) -> bool:
    """Remember when a pod got its node and when it began to end; True when it is news."""
    if event.key.resource != "pods":
        return False
    is_news = False
    if json_tree.text(event.object, "spec", "nodeName") and (event.uid, "bound") not in reached:
        reached[event.uid, "bound"] = known
        is_news = True
    if is_terminating(event.object) and (event.uid, "terminating") not in reached:
        reached[event.uid, "terminating"] = known
        is_news = True
    return is_news


async def _pages(
    log: EventLog, history: HistoryInfo, bounds: ReplayBounds
) -> AsyncIterator[list[Event]]:
    after = Revision(0)
    while page := await log.read(history.id, after=after, limit=bounds.page_max):
        yield page
        after = page[-1].revision
