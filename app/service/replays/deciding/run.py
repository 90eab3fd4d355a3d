"""One run of the controllers over the outside inputs of a recording, under virtual time."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush, merge

from app.analysis.replay import tolerances
from app.analysis.replay.authors import NODES
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.facts import is_failed_attempt
from app.analysis.replay.inputs import Input, as_served, beside_deletion, command_of, hastened
from app.analysis.replay.instants import is_derived
from app.analysis.replay.readiness import Readiness
from app.analysis.replay.recording import Recording
from app.analysis.replay.report import REFUSED_PLAN
from app.analysis.replay.steering import NEVER, SteeredPace
from app.analysis.replay.traces import Trace
from app.analysis.replay.unapplied import Unapplied
from app.analysis.replay.variants import Variant
from app.analysis.replay.writers import short_name
from app.domain.controllers import registry
from app.domain.controllers.kubelet import KubeletReconciler
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.rule_status.reconciler import RuleStatusReconciler
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.scheduling.reports.events import repetition
from app.domain.errors import Rejected
from app.domain.log import Actor, Event, EventType, ObjectKey
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    ImportObject,
    PatchObject,
)
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import UidSource
from app.service.replays.deciding import moved_pods
from app.service.replays.deciding.altered import (
    SOON,
    Alteration,
    StrayPods,
    collision,
    lacks_no_pod,
    paced,
    refused_pods,
)
from app.service.replays.deciding.circumstances import at_work, starts_of
from app.service.replays.deciding.claim_work import ClaimWork
from app.service.replays.deciding.late_reports import LateReports, is_refusal
from app.service.replays.deciding.names import RecordedNames
from app.service.replays.deciding.pod_progress import PodProgress
from app.service.replays.deciding.replaced import ReplacedControllers
from app.service.replays.deciding.shared_steps import RunCourse
from app.service.replays.reconciling import ReplayTimeline

_GONE = "a write from outside to an object that no longer exists here"
_ANOTHER = "a write from outside to an object that has been replaced by another one here"
_NOT_NEEDED = "a pod that is not created here: its ReplicaSet has all its replicas"
_NOT_THAT_FAR = "a write of a kubelet or driver to an object that has not reached that state here"


class Run:
    """A history that is decided again under a variant."""

    def __init__(
        self,
        recording: Recording,
        variant: Variant,
        *,
        rules: Rules,
        controllers: Sequence[Reconciler],
        uids: UidSource,
        pace: SteeredPace | None,
        keep_events: bool = False,
        beginning: Beginning | None = None,
        alteration: Alteration | None = None,
    ) -> None:
        """Starts the run at its first input, or at `beginning`, and makes the alteration's edits.

        Raises Rejected when the API refuses an edit of the `alteration`.
        """
        self._recording = recording
        self._variant = variant
        self._pace = pace
        self._names = RecordedNames(uids, recording.knows)
        self._keep_events = keep_events
        self._alteration = alteration
        self._replaced = ReplacedControllers(pace)
        self._spare: dict[str, str] = {}
        for event in recording.made:
            self._names.learn(event)
        if alteration is not None:
            for recorded_input in recording.inputs:
                self._names.learn(recorded_input.event)
        recorded = recording.reached, recording.inputs, recording.removed.keys()
        self._progress = PodProgress(*recorded, is_changed=alteration is not None)
        self._waiting: dict[str, deque[Input]] = defaultdict(deque)
        self._ready: list[tuple[Instant, int, str]] = []
        self._alarms: list[tuple[Instant, int, Callable[[], None]]] = []
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._writer: str | None = None
        self._is_outside = False
        self._reports = LateReports(recording, variant)
        self._claim_work = ClaimWork(self.readiness)
        self._number = 0
        self.trace = Trace(rules.schemas, pods_observed=recording.observes_pods(rules.profile))
        self.not_done: Counter[str] = Counter()
        self.unapplied: list[Unapplied] = []
        self.is_cut_short = False
        start = recording.inputs[0].time if recording.inputs else Instant(0)
        start = start if beginning is None else beginning.head.time
        placing = (each.queue for each in controllers if isinstance(each, SchedulingReconciler))
        rules_seen = (each.queue for each in controllers if isinstance(each, RuleStatusReconciler))
        self._queue, self._rules = next(placing, None), next(rules_seen, None)
        starts = starts_of(recording, beginning, is_changed=alteration is not None)
        self.timeline = ReplayTimeline(
            rules=rules,
            uids=self._names,
            controllers=[self._placed(each, starts.get(each.name), start) for each in controllers],
            start=start,
            keep_events=keep_events,
            adapt=self._adapt,
        )
        self.timeline.followers.append(self._follow)
        if beginning is not None:
            self._begin(beginning)
        self._begun = self.timeline.head.revision
        namespaces = self.timeline.views.objects.keys(*api_resources.NAMESPACES)
        self._namespaces = frozenset(key.name for key in namespaces)
        if alteration is not None:
            self._alter(alteration)
        self._set_alarms()

    def _begin(self, beginning: Beginning) -> None:
        self.timeline.begin(beginning)
        for event in beginning.objects:
            self._objects[event.key] = event.object
            self.trace.begin(event)
            self._progress.note(event, beginning.head.time)
        self._claim_work.begin(beginning.objects, beginning.head.time)
        if self._pace is not None:
            self._pace.begin(beginning.objects, beginning.head.time)

    def _placed(self, controller: Reconciler, start: Instant | None, begun: Instant) -> Reconciler:
        """Wraps a controller for this run: kubelets serve stray pods, others wait for `start`."""
        if isinstance(controller, KubeletReconciler):
            return StrayPods(controller, self._progress, begun)
        if (here := self._replaced.place(controller)) is not None:
            return here
        idle = self._variant.unstarted | self._variant.absent
        if short_name(registry.actor_of(controller.name).user) in idle:
            start = NEVER
        return at_work(controller, self._pace, start)

    def _alter(self, alteration: Alteration) -> None:
        """Makes the edits, and has the scheduler try the pods again that it had refused.

        Pods with a recorded attempt soon afterwards wait for that attempt.
        """
        objects = self.timeline.views.objects
        commands = alteration.edits(objects)
        self._replaced.note(commands, objects)
        self._is_outside, self._writer = True, None
        try:
            if commands:
                self.timeline.submit_all(commands, actor=alteration.actor)
        finally:
            self._is_outside = False
        self.timeline.settle()
        for key in refused_pods(objects):
            pod = objects.get(key)
            if pod is None or self._pace is None:
                continue
            tries = self._pace.attempts(meta.uid(pod))
            if not any(0 <= each.first - self.timeline.now <= SOON for each in tries):
                self._pace.let_through(meta.uid(pod))
                self._try_now(key)
                self.timeline.settle()
                self._pace.let_through("")

    def share(self, course: RunCourse) -> None:
        """Takes the steps that earlier runs took alike from their course; call it at the start."""
        self.timeline.decider = course
        self.trace.read = course.facts_of

    @property
    def made(self) -> int:
        """The number of events of this run."""
        return self.timeline.head.revision - self._begun

    @property
    def readiness(self) -> Readiness:
        """The waits for the recorded pace in this run; empty without a pace."""
        return Readiness({}) if self._pace is None else self._pace.readiness

    def inputs(self) -> Iterator[Input]:
        """The inputs of this run, with the writes of controllers that are taken as recorded."""
        inputs = hastened(self._recording.inputs, self._variant.removed_soon, self._recording.skew)
        if not (self._variant.imposed or self._variant.unheard):
            yield from inputs
            return
        decided_elsewhere = (each for each in self._recording.decided if self._is_imposed(each))
        yield from merge(inputs, decided_elsewhere, key=lambda each: (each.time, each.number))

    def take(self, write: Input) -> None:
        """Advances time to the instant of an input, and applies the input or makes it wait."""
        self._advance(write.time)
        if self._replaced.replaces(write) or self._progress.is_ahead(write):
            return
        uid = write.event.uid
        is_removal = write.event.type is EventType.OBJECT_DELETED
        if uid in self._variant.postponed and is_removal and is_derived(write.event):
            self._at(Instant(write.time + tolerances.TABLE.coarse), partial(self._apply, write))
            return
        if uid in self._variant.removed_last and is_removal:
            _, until = self._recording.undated.within.get(uid, (write.time, write.time))
            self._at(until, partial(self._apply, write))
            return
        waits = write.is_of_kubelet or write.is_about_devices or uid in self._spare
        if self._is_spare(write):
            owner = meta.controller(write.event.object)
            self._spare[uid] = owner.uid if owner is not None else ""
            self._waiting[uid].append(write)
        elif waits and (self._waiting.get(uid) or not self._is_possible(write)):
            self._waiting[uid].append(write)
        else:
            self._apply(write)

    def finish(self, last: Instant) -> None:
        """Completes the work under way up to an instant, and counts the inputs that still wait."""
        self._advance(last)
        for waiting in self._waiting.values():
            for left in waiting:
                is_spare = left.event.uid in self._spare
                self._leave_out(left, _NOT_NEEDED if is_spare else _NOT_THAT_FAR)
        if refusals := len(self.timeline.refusals):
            self.not_done[REFUSED_PLAN] += refusals

    def leave(self) -> None:
        """Detaches the ended run from its timeline; else both stay until the collector runs."""
        self.timeline.adapt = None
        self.timeline.followers.clear()

    def _set_alarms(self) -> None:
        """Sets an alarm for each instant at which the variant has a pod tried."""
        if self._pace is None:
            return
        keys = self._recording.trace.keys
        for uid in sorted(self._variant.tried & keys.keys()):
            for each in self._pace.attempts(uid):
                self._at(each.first, partial(self._try_now, keys[uid]))
        if (rules := self._rules) is not None:
            for rule, at in self._pace.looks_anew():
                self._at(at, partial(rules.add, rule, self._begun))

    def _at(self, instant: Instant, act: Callable[[], None]) -> None:
        self._number += 1
        heappush(self._alarms, (instant, self._number, act))

    def _try_now(self, key: ObjectKey) -> None:
        if self._queue is not None:
            self._queue.try_now((key.namespace, key.name), self.timeline.now)

    def _advance(self, until: Instant) -> None:
        """Advances time step by step, so that waiting inputs are applied at their own instants."""
        while True:
            due = self.timeline.due()
            ready = self._ready[0][0] if self._ready else None
            alarm = self._alarms[0][0] if self._alarms else None
            steps = [each for each in (due, ready, alarm) if each is not None and each < until]
            if not steps:
                break
            now = Instant(max(min(steps), self.timeline.now))
            self.timeline.advance(now)
            self._take_ready(now)
            self._take_alarms(now)
        self.timeline.advance(until)
        self._take_ready(until)

    def _take_alarms(self, now: Instant) -> None:
        while self._alarms and self._alarms[0][0] <= now:
            _, _, act = heappop(self._alarms)
            act()
            self.timeline.settle()

    def _take_ready(self, now: Instant) -> None:
        while self._ready and self._ready[0][0] <= now:
            _, _, uid = heappop(self._ready)
            waiting = self._waiting.get(uid)
            while waiting and self._is_possible(waiting[0]):
                due = self._progress.due(waiting[0])
                if due > now:
                    self._number += 1
                    heappush(self._ready, (due, self._number, uid))
                    break
                self._apply(waiting.popleft())

    def _is_imposed(self, write: Input) -> bool:
        """True when a write of a controller is taken as recorded."""
        variant, uid = self._variant, write.event.uid
        is_of_node = uid in variant.unheard and write.author == NODES and write.is_about_status
        is_imposed = any((write.author, each) in variant.imposed for each in write.subjects)
        return write.is_under_way or is_of_node or is_imposed

    def _is_spare(self, write: Input) -> bool:
        """True when the input makes a pod although its ReplicaSet has enough pods here now."""
        return self._alteration is not None and lacks_no_pod(
            write.event, self.timeline.views.objects
        )

    def _is_possible(self, write: Input) -> bool:
        ours = self.timeline.views.objects.get(write.event.key)
        if ours is None or meta.uid(ours) != write.event.uid:
            if write.event.uid in self._spare:
                return not self._is_spare(write)
            # The object is gone here, so there is nothing to wait for and nothing to apply.
            return True
        return write.is_possible(ours)

    def _apply(self, write: Input) -> None:
        event = write.event
        ours = self.timeline.views.objects.get(event.key)
        command = command_of(write, ours)
        if command is None:
            if ours is None and not write.may_have_come_to_pass:
                # The deletion has already ended here by itself, so there is nothing to do.
                self._leave_out(write, _GONE)
            elif ours is not None and meta.uid(ours) != event.uid:
                self._leave_out(write, _ANOTHER)
            return
        self._spare.pop(event.uid, None)
        is_same = event.key[:2] == api_resources.PODS and meta.uid(ours or {}) == event.uid
        if event.type is EventType.OBJECT_CREATED and ours and (is_same or write.is_under_way):
            return  # a controller here has made it
        if self._alteration is not None:
            objects = self.timeline.views.objects
            why = collision(event, ours, objects, self._namespaces)
            if why := why or self._replaced.lack_owner(event, objects):
                self._leave_out(write, why)
                return
        if isinstance(command, DeleteObject):
            command = as_served(command, self.timeline.rules.profile)
            if event.uid in self._variant.skipped:
                self._announce(event.key)
        actor = moved_pods.kubelet_here(event, ours)
        command = moved_pods.with_host_here(event, command, self.timeline.views.objects)
        self._is_outside = True
        self._writer = short_name(write.author) if self._is_imposed(write) else write.traced_as
        try:
            if self._alteration is not None:
                command = self._alteration.admit(write, command, self.timeline.views.objects)
            self.timeline.submit(command, actor=actor, verb=event.stamp.verb)
            if isinstance(command, DeleteObject):
                beside = beside_deletion(write, self.timeline.views.objects.get(event.key))
                if beside is not None:
                    self.timeline.submit(beside, actor=actor, verb=event.stamp.verb)
        except Rejected as refusal:
            self._leave_out(write, f"a write from outside that is refused here: {refusal}")
        finally:
            self._is_outside = False
        self._recording.release(event)
        self.timeline.settle()

    def _leave_out(self, write: Input, why: str) -> None:
        """Notes an input that cannot be applied here, with the reason `why`."""
        self.not_done[why] += 1
        self.unapplied.append(Unapplied.of(write, why))

    def _announce(self, key: ObjectKey) -> None:
        """Writes the first of the two revisions of a removal, then lets the pod be tried."""
        ours = self.timeline.views.objects.get(key)
        if ours is None or self._queue is None or self._pace is None:
            return
        uid = meta.uid(ours)
        metadata = {
            **meta.metadata(ours),
            "deletionTimestamp": timestamps.seconds_text(self.timeline.now),
            "deletionGracePeriodSeconds": 0,
        }
        tree: JsonObject = {**ours, "metadata": metadata}
        command = ImportObject(operation="MODIFIED", key=key, uid=uid, tree=tree)
        self._is_outside, self._writer = True, None
        try:
            self.timeline.submit(command, actor=Actor(user=""), verb="delete")
        finally:
            self._is_outside = False
        self._pace.let_through(uid)
        self._try_now(key)
        self.timeline.settle()
        self._pace.let_through("")

    def _adapt(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The commands of a plan with recorded names, without those that the variant delays."""
        variant = self._variant
        if self._keep_events and self._pace is not None:
            commands = [paced(command) for command in commands]
        if not variant.is_of_writes:
            return self._names.adapt(commands)
        kept: list[Command] = []
        for command in commands:
            match command:
                case PatchObject(key=key, body=dict(body)) if self._is_unanswered(key, body):
                    continue
                case PatchObject(key=key) if self._reports.is_repeated(key):
                    if (at := self._reports.repetition(key)) is not None:
                        self._write_at(at, command)
                case PatchObject(key=key) if key in variant.returned:
                    self._write_at(self._recording.returned.get(key), command)
                case CreateObject(tree=tree) if self._reports.is_late(tree):
                    self._say_later(command)
                case _:
                    kept.append(command)
        return self._names.adapt(kept)

    def _is_unanswered(self, key: ObjectKey, body: JsonObject) -> bool:
        """True for a write about a pod that reached the recorded API after the pod was deleted."""
        ours = self.timeline.views.objects.get(key) or {}
        uid = meta.uid(ours)
        if uid in self._variant.unanswered and core.nominated_node_name(body):
            return True
        if uid not in self._variant.unreported or not is_refusal(body, ours):
            return False
        there, here = (
            sum(
                is_failed_attempt(fact) for step in trace.writes.get(uid, ()) for fact in step.facts
            )
            for trace in (self._recording.trace, self.trace)
        )
        return here >= there

    def _say_later(self, command: CreateObject) -> None:
        """Writes a report at its recorded instant, or repeats a report that still waits."""
        now = self.timeline.now
        waiting = self._reports.waiting(command.tree)
        if waiting is None:
            self._write_at(self._reports.put_off(command, now), command)
        elif self._reports.is_first_repetition(command.tree):
            key, until = waiting
            self._at(until, partial(self._say_again, repetition(key, now)))

    def _say_again(self, command: PatchObject) -> None:
        for kept in self._adapt((command,)):
            self._write_at(None, kept)

    def _write_at(self, recorded: Instant | None, command: Command) -> None:
        """Writes a command of the scheduler at its recorded instant, not with its plan."""
        actor = registry.actor_of("scheduling")

        def write() -> None:
            try:
                for adapted in self._names.adapt((command,)):
                    self.timeline.submit(adapted, actor=actor)
            except Rejected as refusal:
                self.not_done[f"a late write that is refused here: {refusal}"] += 1

        self._at(Instant(max(recorded or Instant(0), self.timeline.now)), write)

    def _follow(self, event: Event) -> None:
        """Adds an event of this run to the trace, and schedules inputs that waited for it."""
        if not event.is_about_object:
            return
        self._names.follow(event)
        before = self._objects.get(event.key)
        writer = self._writer if self._is_outside else short_name(event.stamp.actor.user)
        self.trace.add(event, before, writer)
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
        else:
            self._objects[event.key] = event.object
        self._reports.follow(event)
        self._claim_work.follow(event)
        if self._pace is not None:
            self._pace.follow(event)
        is_news = self._progress.note(event, event.stamp.time)
        if ahead := self._progress.taken_ahead(event):
            self._waiting[event.uid].extend(ahead)
        is_news |= event.key.resource == "resourceclaims"
        if self._spare and event.key.resource == "pods":
            self._look_again(event)
        if is_news and self._waiting.get(event.uid):
            self._number += 1
            due = self._progress.due(self._waiting[event.uid][0])
            heappush(self._ready, (due, self._number, event.uid))

    def _look_again(self, event: Event) -> None:
        """Schedules a new look at the waiting pods of an owner that may lack a pod now."""
        owner = meta.controller(event.object)
        if owner is None:
            return
        for uid in [uid for uid, owner_uid in self._spare.items() if owner_uid == owner.uid]:
            self._number += 1
            heappush(self._ready, (event.stamp.time, self._number, uid))
