"""The deterministic loop: controllers in a fixed order, virtual time, everything in memory.

After each outside event all controllers run until none has work left. Then time jumps to the next
instant at which a controller is due. The same commands at the same instants give the same events,
byte for byte. Replay, simulation and tests use this loop; live histories use `app.workers`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from msgspec.structs import replace

from app.analysis.replay.beginning import Beginning
from app.analysis.views import LiveViews
from app.domain.controllers import registry
from app.domain.controllers.garbage import pod_gc
from app.domain.controllers.plan import Plan, Readers, Reconciler
from app.domain.controllers.record import commands_of
from app.domain.errors import RedraError, Rejected
from app.domain.log import Actor, Event, EventType, Head, LeaseToken, Revision, Stamp
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.objects.write.sealing import decide_and_seal
from app.domain.objects.write.staging import StagedObjects
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import meta
from app.domain.values.fields.meta import Owner
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from app.ports import UidSource
from app.service.writing import WriteOutcome


class _Replacements:
    """Counts the pods of each owner that were made and removed at the present instant.

    With more than `rounds_max` of them for each pod that the owner had at once, `problem` says so.

    A ReplicaSet replaces an evicted pod at once. If nothing keeps the new pod from what evicted the
    old one, this has no end: for example, if pods tolerate a NoExecute taint for less time than it
    has lasted. The scheduler places such a pod, and it is evicted at once. In a cluster each round
    takes the time of its requests; the ReplicaSet controller has no back-off for pods that were
    deleted. In virtual time no time passes between the rounds. Parity: controllers.md 5.5.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileBounds:
    """Bounds of the loop.

    At most `steps_max` plans may follow one another at one instant, and at most `jumps_max` jumps
    of the clock belong to one advance. At most `rounds_max` pods may be created and removed at one
    instant for each pod that their owner has at once. Beyond them LoopStuck is raised: controllers
    undo each other's work.
    """

    steps_max: int = 1_000_000
    jumps_max: int = 1_000_000
    rounds_max: int = 20


class Decisions(NamedTuple):
    """The result of the commands of one append: the sealed events, and one outcome per command."""

    events: Sequence[Event]
    outcomes: Sequence[WriteOutcome]


Decide: TypeAlias = Callable[[Sequence[Command], Stamp, Callable[[], Uid]], Decisions]
"""Decides the commands of one append; the last argument returns new uids. Raises Rejected."""


class Decider(Protocol):
    """Decides appends with `decide`, unless it knows already what they come to."""

    def decide(
        self, commands: Sequence[Command], stamp: Stamp, new_uid: Callable[[], Uid], decide: Decide
    ) -> Decisions: ...


class LoopStuck(RedraError):
    """The controllers have not come to rest within the bounds; names the last plan or pod."""


class ReplayTimeline:
    """One history in memory with its views, a virtual clock and controllers.

    Invariant: every view has folded exactly the events up to `head.revision`; every controller has
    folded those of them that it reads.
    """

    def __init__(
        self,
        *,
        rules: Rules,
        uids: UidSource,
        controllers: Sequence[Reconciler] = (),
        start: Instant = Instant(0),
        bounds: ReconcileBounds = ReconcileBounds(),
        keep_events: bool = True,
        adapt: Callable[[Sequence[Command]], Sequence[Command]] | None = None,
    ) -> None:
        """Start empty at `start`.

        `adapt` may replace the commands of a plan before they are decided: a replay uses it to give
        objects their recorded names.
        """
        self.rules = rules
        self.views = LiveViews(rules.profile)
        self._seals = True
        self.head = Head()
        self.now = start
        self.controllers = controllers
        self.events: list[Event] = []
        self.refusals: list[tuple[Plan, str]] = []
        self.followers: list[Callable[[Event], None]] = []
        self._uids = uids
        self._bounds = bounds
        self._replacements = _Replacements(bounds.rounds_max)
        self._keep_events = keep_events
        self.adapt = adapt
        self.decider: Decider | None = None
        self._idle: set[Reconciler] = set()
        self._rest: tuple[Instant, Revision] | None = None

    @property
    def controllers(self) -> Sequence[Reconciler]:
        """The controllers, in order. Setting others acts like a restart."""
        return self._readers.controllers

    @controllers.setter
    def controllers(self, controllers: Sequence[Reconciler]) -> None:
        self._readers = Readers(tuple(controllers))
        self._rest = None

    def seal_nothing(self) -> None:
        """Give events no hash from now on: they are compared, and never stored."""
        self._seals = False
        self.head = self._head(self.head)

    def begin(self, beginning: Beginning) -> None:
        """Start from the objects of a moment; controllers get them like a list.

        The scheduler, which went on, has the nodes in the order in which they were made.
        """
        self.views.load_objects(beginning.state)
        self.views.show_as_of(beginning.head.revision)
        self.head = self._head(beginning.head)
        self.now = Instant(max(self.now, beginning.head.time))
        self._rest = None
        nodes = (each for each in beginning.objects if each.key[:2] == api_resources.NODES)
        made = iter(sorted(nodes, key=lambda node: self.views.objects.created(node.key)))
        for each in beginning.objects:
            event = next(made) if each.key[:2] == api_resources.NODES else each
            for controller in self._readers.of(event):
                controller.fold(event, self.views)
        for event in beginning.removed_nodes:
            for controller in self._readers.of(event):
                if controller.name == pod_gc.NAME:
                    controller.fold(event, self.views)
        for event in beginning.bindings:
            for controller in self._readers.of(event):
                controller.fold(event, self.views)

    def submit(
        self, command: Command, *, actor: Actor, verb: str = "", cause: int = 0
    ) -> WriteOutcome:
        """Decide and append one outside command. Raises Rejected."""
        _, outcomes = self._append((command,), actor, verb=verb, cause=cause, observed=Revision(0))
        return outcomes[0]

    def submit_all(self, commands: Sequence[Command], *, actor: Actor) -> None:
        """Decide and append outside commands in one step. Raises Rejected."""
        self._append(commands, actor, verb="", cause=0, observed=Revision(0))

    def append(self, event: Event) -> None:
        """Append an event that is already sealed, as a replay does."""
        self.head = Head(revision=event.revision, hash=event.hash, time=event.stamp.time)
        self.now = Instant(max(self.now, event.stamp.time))
        self._fold(event)

    def submit_plan(
        self, plan: Plan, *, actor: Actor, lease: LeaseToken | None = None
    ) -> list[Event]:
        """Append all commands of a plan. Raises Rejected; then none is appended."""
        commands: Sequence[Command] = commands_of(plan)
        if self.adapt is not None:
            commands = self.adapt(commands)
        events, _ = self._append(commands, actor, verb="", cause=plan.cause, observed=plan.observed)
        return list(events)

    def settle(self) -> int:
        """Run all controllers at the present instant until none has work; counts the plans.

        A controller without work is asked again after an event that it reads.
        """
        count = 0
        working = True
        idle = self._idle
        idle.clear()
        while working:
            working = False
            for controller in self.controllers:
                if controller in idle:
                    continue
                while (plan := controller.step(self.views, self.now)) is not None:
                    count += 1
                    self._execute(controller, plan)
                    working = True
                    if self._replacements.problem:
                        raise LoopStuck(self._replacements.problem)
                    if count > self._bounds.steps_max:
                        raise LoopStuck(
                            f"{count} plans at one instant, the last one {plan.controller} "
                            f"{plan.key} at revision {self.head.revision}"
                        )
                idle.add(controller)
                if working:
                    # The write of one controller may concern those before it: start from the first.
                    break
        self._rest = (self.now, self.head.revision)
        return count

    def due(self) -> Instant | None:
        """The next instant at which a controller is due without a new event."""
        instants = [due for controller in self.controllers if (due := controller.due()) is not None]
        return min(instants, default=None)

    def advance(self, until: Instant) -> int:
        """Settle, then jump between due instants up to `until`; returns the number of plans."""
        count = self._settle_anew()
        for _ in range(self._bounds.jumps_max):
            due = self.due()
            if due is None or due > until:
                self.now = Instant(max(self.now, until))
                return count + self._settle_anew()
            self.now = Instant(max(self.now, due))
            count += self.settle()
        raise LoopStuck(f"more than {self._bounds.jumps_max} due instants before {until}")

    def _settle_anew(self) -> int:
        """The same as `settle`, unless nothing was appended and no time has passed since the last.

        Controllers that had no work then have none now. In a decide replay, in which time stops at
        each input, two of three calls would ask them in vain.
        """
        return 0 if self._rest == (self.now, self.head.revision) else self.settle()

    def _execute(self, controller: Reconciler, plan: Plan) -> None:
        if plan.is_empty:
            return
        try:
            self.submit_plan(plan, actor=registry.actor_of(plan.controller))
        except Rejected as refusal:
            self.refusals.append((plan, str(refusal)))
            controller.settled(plan, str(refusal), self.now)
        else:
            controller.settled(plan, None, self.now)

    def _append(
        self,
        commands: Sequence[Command],
        actor: Actor,
        *,
        verb: str,
        cause: int,
        observed: Revision,
    ) -> Decisions:
        now = Instant(max(self.now, self.head.time))
        stamp = Stamp(time=now, actor=actor, verb=verb, cause=cause, observed=observed)
        if self.decider is None:
            decisions = self._decide(commands, stamp, self._uids.uid)
        else:
            decisions = self.decider.decide(commands, stamp, self._uids.uid, self._decide)
        for event in decisions.events:
            self.head = Head(revision=event.revision, hash=event.hash, time=event.stamp.time)
            self._fold(event)
        return decisions

    def _head(self, head: Head) -> Head:
        """The head, without its hash when events get none."""
        return head if self._seals else replace(head, hash=b"")

    def _decide(
        self, commands: Sequence[Command], stamp: Stamp, new_uid: Callable[[], Uid]
    ) -> Decisions:
        staged = StagedObjects(self.views.objects, self.rules.secrets, hash=self.head.hash)
        events: list[Event] = []
        outcomes: list[WriteOutcome] = []
        for command in commands:
            decided, made = decide_and_seal(command, staged, stamp, self.rules, new_uid=new_uid)
            events += made
            outcomes.append(WriteOutcome.of(decided, made))
        return Decisions(events, outcomes)

    def _fold(self, event: Event) -> None:
        self.views.fold(event)
        self._replacements.follow(event)
        for controller in self._readers.of(event):
            controller.fold(event, self.views)
            self._idle.discard(controller)
        for follower in self.followers:
            follower(event)
        if self._keep_events:
            self.events.append(event)
