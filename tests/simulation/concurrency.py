"""A timeline on which controllers act at the same time, as the loops of a live server do.

A controller makes a plan from the state that it sees. Until the plan is stored, other controllers
and clients may write, and the controller does not see it. The seed decides which of them runs next.
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.domain.controllers import registry
from app.domain.controllers.plan import Plan, Readers, Reconciler
from app.domain.errors import Rejected
from app.domain.log import Event
from app.domain.values.timestamps import Instant
from app.service.replays.reconciling import ReplayTimeline
from tests.cluster import Cluster

MOVES_MAX = 200_000
"""The most moves until the controllers rest; more are a loop without end."""


@dataclass
class Loop:
    """A controller with the events that it has not seen yet, and its plan that is not stored."""

    controller: Reconciler
    unseen: deque[Event] = field(default_factory=deque)
    plan: Plan | None = None


class ConcurrentTimeline(ReplayTimeline):
    """Controllers in drawn turns, with plans under way between them."""

    def __init__(self, whole: ReplayTimeline, chance: random.Random) -> None:
        """Continues `whole`, which is at rest."""
        self.__dict__.update(whole.__dict__)
        self.chance = chance
        self.loops = [Loop(each) for each in whole.controllers]
        self._loop_of = {id(loop.controller): loop for loop in self.loops}

    @property
    def controllers(self) -> Sequence[Reconciler]:
        """The controllers, in order."""
        return [loop.controller for loop in self.loops]

    def settle(self) -> int:
        """Lets the controllers act until none has work or a plan under way."""
        for count in range(MOVES_MAX):
            if not self.move():
                self._rest = (self.now, self.head.revision)
                return count
        raise AssertionError(f"no rest after {MOVES_MAX} moves")

    def stir(self, moves: int) -> None:
        """Lets the controllers make some moves, and leaves plans under way."""
        for _ in range(moves):
            if not self.move():
                return

    def move(self) -> bool:
        """One controller plans, or one plan is stored; False when there is nothing to do."""
        loops = self.loops[:]
        self.chance.shuffle(loops)
        for loop in loops:
            if loop.plan is not None:
                if self.chance.random() < 0.5:
                    continue
                self._store(loop)
                return True
            self._see(loop)
            plan = loop.controller.step(self.views, self.now)
            while plan is not None and plan.is_empty:
                plan = loop.controller.step(self.views, self.now)
            if plan is not None:
                loop.plan = plan
                return True
        return any(loop.plan is not None for loop in loops)

    def _store(self, loop: Loop) -> None:
        plan = loop.plan
        assert plan is not None
        self.now = Instant(self.now + self.chance.choice((0, 0, 100, 3_000)))
        problem: str | None = None
        try:
            self.submit_plan(plan, actor=registry.actor_of(plan.controller))
        except Rejected as refusal:
            problem = str(refusal)
        self._see(loop)
        loop.plan = None
        loop.controller.settled(plan, problem, self.now)

    def _see(self, loop: Loop) -> None:
        while loop.unseen:
            loop.controller.fold(loop.unseen.popleft(), self.views)

    def _fold(self, event: Event) -> None:
        self.views.fold(event)
        for controller in Readers(tuple(self.controllers)).of(event):
            self._loop_of[id(controller)].unseen.append(event)
        for follower in self.followers:
            follower(event)
        self.events.append(event)


def concurrent(cluster: Cluster, seed: int) -> ConcurrentTimeline:
    """Lets the controllers of a cluster at rest act at the same time from now on."""
    line = ConcurrentTimeline(cluster.line, random.Random(f"turns {seed}"))
    cluster.line = line
    return line
