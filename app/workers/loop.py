"""One controller of one history: wake, fold, step, submit, until the lease is lost.

The reconciler is at the revision of the views whenever it is asked for a plan. It folds the events
that the subscription has delivered, which are all the events it reads, and nothing is awaited
between the fold and the step. A plan carries the lease. The log refuses a stale lease, and the loop
then ends its term. Every wait has a bound and ends early when an event arrives.

The first time an unexpected error occurs, the run ends and the controller starts again. When the
same error occurs again, the step or event that caused it is skipped: one odd object must not stop
the work on all others.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from app.domain.controllers import registry
from app.domain.controllers.plan import Plan, Reconciler
from app.domain.errors import Expired, LogUnavailable, Rejected, StaleLease
from app.domain.log import Event, EventType, LeaseToken, ObjectKey, Revision
from app.domain.objects.write.commands import RecordFact
from app.domain.values.timestamps import SECOND, Instant
from app.ports import Leases
from app.service.runtime import HistoryRuntime
from app.service.watches import Subscription
from app.workers.priming import Priming


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBounds:
    """Bounds of a controller's loop.

    `poll_seconds` is the longest wait for an event. `lease_seconds` is the life of a lease that is
    not renewed (it is renewed after a third). `standby_seconds` is the pause between two attempts
    to acquire the lease. At most `quiet_steps_max` steps without a write run before the loop
    yields. A controller that starts folds the last `replayed_max` events one by one. Of older
    events, and of events before a fork, it sees only the objects that remain, as upstream's
    controllers do when they start. Controllers that read all events and that nobody waits for let
    events collect for `linger_seconds`. After the log was unavailable the loop pauses for
    `pause_seconds`. It remembers `mistakes_max` different errors. The trouble that they cause is
    cleared when no error has occurred for `calm_seconds`.
    """

    poll_seconds: float = 5.0
    lease_seconds: float = 15.0
    standby_seconds: float = 2.0
    quiet_steps_max: int = 64
    replayed_max: int = 10_000
    linger_seconds: float = 0.01
    pause_seconds: float = 1.0
    mistakes_max: int = 100
    calm_seconds: float = 60.0


_log = logging.getLogger("redra")


class TermEnded(Exception):
    """Another process holds the lease now."""


class ControllerLoop:
    """The loop of one controller. It runs one reconciler at a time, a new one for each term."""

    def __init__(
        self,
        name: str,
        runtime: HistoryRuntime,
        make: Callable[[], Reconciler],
        *,
        leases: Leases,
        holder: str,
        bounds: LoopBounds = LoopBounds(),
        restarts_count: bool = False,
        priming: Priming | None = None,
    ) -> None:
        """With `restarts_count`, each term begins with a ControllerRestarted event in the log.

        Controllers of a history that start together share `priming`.
        """
        self.name = name
        self._runtime = runtime
        self._make = make
        self._leases = leases
        self._holder = holder
        self._bounds = bounds
        self._restarts_count = restarts_count
        self._priming = priming or Priming(runtime, bounds.replayed_max)
        self._actor = registry.actor_of(name)
        self._linger_seconds = bounds.linger_seconds if name in registry.UNHURRIED else 0.0
        self._is_awaited = name in registry.AWAITED
        self._mistakes: set[str] = set()
        self._calm_since = 0.0
        self.folded = Revision(0)
        self.leads = False

    async def run(self) -> None:
        """Acquire the lease, lead, and start again when the lease is lost; until cancelled."""
        while True:
            token = await self._acquire()
            self.leads = True
            try:
                await self._lead(token)
            except (TermEnded, StaleLease):
                continue
            except LogUnavailable:
                await anyio.sleep(self._bounds.pause_seconds)
            finally:
                self.leads = False
                self._runtime.leading.pop(self.name, None)
                await self._release(token)

    async def _acquire(self) -> LeaseToken:
        with self._priming.coming(is_awaited=self._is_awaited):
            token = await self._try_to_acquire()
        while token is None:
            await anyio.sleep(self._bounds.standby_seconds)
            token = await self._try_to_acquire()
        return token

    async def _try_to_acquire(self) -> LeaseToken | None:
        try:
            return await self._leases.acquire(
                self._runtime.info.id, self.name, self._holder, seconds=self._bounds.lease_seconds
            )
        except LogUnavailable:
            return None

    async def _release(self, token: LeaseToken) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2.0):
            try:
                await self._leases.release(self._runtime.info.id, token)
            except LogUnavailable:
                return  # the lease expires by itself

    async def _lead(self, token: LeaseToken) -> None:
        renew_at = self._seconds() + self._bounds.lease_seconds / 3
        reconciler, self.folded = await self._priming.prime(
            self._make, self._take_in, is_awaited=self._is_awaited
        )
        if self._restarts_count:
            # After priming: the reconciler has to fold this event, however long the history is.
            await self._runtime.submit_plan(self._restart(), actor=self._actor, lease=token)
        self._runtime.leading[self.name] = reconciler
        self._calm_since = self._seconds()
        while True:
            with self._runtime.follow(after=self.folded, reads=reconciler.reads) as subscription:
                try:
                    await self._catch_up(reconciler, subscription)
                    is_idle = False
                    while True:
                        if self._seconds() >= renew_at:
                            await self._renew(token)
                            if self._seconds() - self._calm_since > self._bounds.calm_seconds:
                                self._runtime.troubles.pop(self.name, None)
                            renew_at = self._seconds() + self._bounds.lease_seconds / 3
                        seconds = self._idle_seconds(reconciler, renew_at) if is_idle else 0.0
                        if is_idle and self._linger_seconds and await subscription.grown(seconds):
                            await anyio.sleep(self._linger_seconds)
                            seconds = 0.0
                        await self._fold(reconciler, subscription, seconds)
                        is_idle = await self._work(reconciler, subscription, token, renew_at)
                except Expired:
                    continue  # cut off: subscribe again after the last event folded

    def _restart(self) -> Plan:
        """The plan that records the start of a term in the log."""
        fact = RecordFact(
            type=EventType.CONTROLLER_RESTARTED,
            key=ObjectKey("redra", "controllers", "", self.name),
            body={"controller": self.name, "holder": self._holder},
        )
        return Plan(controller=self.name, key="restart", commands=(fact,))

    async def _catch_up(self, reconciler: Reconciler, subscription: Subscription) -> None:
        while events := await subscription.catch_up():
            for event in events:
                self._take_in(reconciler, event)
            self.folded = events[-1].revision
            await anyio.lowlevel.checkpoint()

    async def _renew(self, token: LeaseToken) -> None:
        seconds = self._bounds.lease_seconds
        if not await self._leases.renew(self._runtime.info.id, token, seconds=seconds):
            raise TermEnded

    def _idle_seconds(self, reconciler: Reconciler, renew_at: float) -> float:
        """The longest wait for events: until the reconciler is due, or until the bound."""
        left = min(self._bounds.poll_seconds, renew_at - self._seconds())
        due = reconciler.due()
        if due is not None:
            left = min(left, (due - self._now()) / SECOND)
        return max(left, 0.0)

    async def _work(
        self,
        reconciler: Reconciler,
        subscription: Subscription,
        token: LeaseToken,
        renew_at: float,
    ) -> bool:
        """Step until no key is ready (True) or the lease must be renewed (False)."""
        quiet = 0
        while self._seconds() < renew_at:
            now = self._now()
            try:
                plan = reconciler.step(self._runtime.views, now)
            except Exception as mistake:
                self._pass_over(mistake)
                plan = _PASSED_OVER
            if plan is None:
                return True
            if not plan.is_empty:
                # The clock may be put back before the append: a decision is not stored as of an
                # instant before the one at which it was made.
                self._runtime.clock.observe(now)
                await self._execute(reconciler, subscription, plan, token)
                quiet = 0
                continue
            quiet += 1
            if quiet >= self._bounds.quiet_steps_max:
                quiet = 0
                await self._fold(reconciler, subscription, 0.0)
        return False

    async def _execute(
        self,
        reconciler: Reconciler,
        subscription: Subscription,
        plan: Plan,
        token: LeaseToken,
    ) -> None:
        problem: str | None = None
        try:
            await self._runtime.submit_plan(plan, actor=self._actor, lease=token)
        except Rejected as refusal:
            problem = str(refusal)
        await self._fold(reconciler, subscription, 0.0)
        reconciler.settled(plan, problem, self._now())

    async def _fold(
        self, reconciler: Reconciler, subscription: Subscription, timeout_seconds: float
    ) -> None:
        # After `next_batch` returns, nothing is awaited: the reconciler is at the views' revision.
        events = await subscription.next_batch(timeout_seconds)
        fold, views = reconciler.fold, self._runtime.views
        for event in events:
            try:
                fold(event, views)
            except Exception as mistake:
                self._pass_over(mistake)
        self.folded = subscription.after

    def _take_in(self, reconciler: Reconciler, event: Event) -> None:
        try:
            reconciler.fold(event, self._runtime.views)
        except Exception as mistake:
            self._pass_over(mistake)

    def _pass_over(self, mistake: Exception) -> None:
        """Note an error that has occurred before and continue; raise an error that is new."""
        text = f"{type(mistake).__name__}: {mistake}"
        if text not in self._mistakes:
            if len(self._mistakes) < self._bounds.mistakes_max:
                self._mistakes.add(text)
            raise mistake
        self._calm_since = self._seconds()
        self._runtime.troubles[self.name] = f"{text}; its cause is skipped"
        history = self._runtime.info.name
        _log.error("controller %s of history %s skips: %s", self.name, history, text)

    @staticmethod
    def _seconds() -> float:
        """The loop's time, by which leases are renewed; read several times for each wake-up."""
        return asyncio.get_running_loop().time()

    def _now(self) -> Instant:
        return self._runtime.clock.now()


_PASSED_OVER = Plan(controller="", key="")
"""The plan of a step that failed; it counts as a step without a write."""
