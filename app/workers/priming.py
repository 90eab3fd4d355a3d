"""The start of controllers: those that start together read the past of their history together.

A controller that starts folds the objects that were last changed long ago, as an upstream
controller reads lists, and then the last events one by one. Those that start at about the same
time share one pass: each event is read, decoded and interpreted once for all of them.

In a long history there are two passes, the first for the controllers that a pod waits for until it
runs. The others, which have as much to fold, follow while pods are placed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from app.domain.controllers.garbage import pod_gc
from app.domain.controllers.plan import Reconciler, is_for_all
from app.domain.controllers.pods import PodFacts, facts_of, is_reserved_for, named_claims
from app.domain.controllers.resources import claim_key, is_of, pod_key
from app.domain.controllers.scheduling.planning import NAME as SCHEDULING
from app.domain.log import Event, ObjectKey, Revision
from app.domain.values.api_resources import NODES, PODS
from app.domain.values.fields import core
from app.domain.values.identifiers import GroupResource
from app.service import forking
from app.service.runtime import HistoryRuntime
from projections.last_events import plain

GATHERED_FROM = 10_000
"""The revision of a history from which on a pass waits for controllers that are about to start."""

GATHER_SECONDS_MAX = 5.0
"""The longest time that a pass waits for controllers that acquire their leases."""

TURN = 25
"""Events after which a pass yields to the event loop."""


@dataclass(slots=True, eq=False)
class _Starting:
    """A controller that starts; `take_in` folds an event and raises the error that ends the start.

    `primed` is the reconciler with the revision that it stands for.
    """

    make: Callable[[], Reconciler]
    take_in: Callable[[Reconciler, Event], None]
    primed: tuple[Reconciler, Revision] | None = None
    mistake: Exception | None = None


@dataclass(slots=True, eq=False)
class _Group:
    """The controllers that wait for the next pass of their group; the lock is held during one.

    `coming` is the number of those that acquire their leases now; `all_came` is set by the last.
    """

    coming: int = 0
    all_came: anyio.Event = field(default_factory=anyio.Event)
    waiting: list[_Starting] = field(default_factory=list)
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class Priming:
    """The start of the controllers of one history in this process."""

    def __init__(self, runtime: HistoryRuntime, replayed_max: int) -> None:
        """The last `replayed_max` events are folded one by one."""
        self._runtime = runtime
        self._replayed_max = replayed_max
        self._awaited = _Group()
        self._others = _Group()

    @contextmanager
    def coming(self, *, is_awaited: bool = False) -> Iterator[None]:
        """A pass waits while a controller is in this block, which ends before it calls `prime`."""
        group = self._group(is_awaited)
        if not group.coming:
            group.all_came = anyio.Event()
        group.coming += 1
        try:
            yield
        finally:
            group.coming -= 1
            if not group.coming:
                group.all_came.set()

    async def prime(
        self,
        make: Callable[[], Reconciler],
        take_in: Callable[[Reconciler, Event], None],
        *,
        is_awaited: bool = False,
    ) -> tuple[Reconciler, Revision]:
        """A new reconciler that has folded the past, and the revision up to which it has.

        In a long history, those that are awaited (`registry.AWAITED`) start before the others.
        `make` is called again when a pass does not end. Raises what `make`, `take_in` or the log
        raise.
        """
        starting = _Starting(make, take_in)
        group = self._group(is_awaited)
        group.waiting.append(starting)
        try:
            async with group.lock:
                if starting in group.waiting:
                    await self._prime_waiting(group)
        finally:
            if starting in group.waiting:
                group.waiting.remove(starting)
        if starting.mistake is not None:
            raise starting.mistake
        assert starting.primed is not None, (
            "a pass ends with a reconciler or with the error of its start"
        )
        return starting.primed

    def _group(self, is_awaited: bool) -> _Group:
        is_long = self._runtime.views.revision > GATHERED_FROM
        return self._awaited if is_awaited and is_long else self._others

    async def _prime_waiting(self, group: _Group) -> None:
        if self._runtime.views.revision > GATHERED_FROM:
            await self._gather(group)
        starting, group.waiting = group.waiting, []
        try:
            await _Pass(self._runtime, starting).run(self._replayed_max)
        except Exception as problem:
            for each in starting:
                each.mistake = each.mistake or problem
        finally:
            # The task that ran the pass was cancelled: the other controllers begin again.
            group.waiting += [
                each for each in starting if each.primed is None and each.mistake is None
            ]

    async def _gather(self, group: _Group) -> None:
        """Wait until no more controllers come; the others wait until the awaited have started."""
        with anyio.move_on_after(GATHER_SECONDS_MAX):
            for each in (self._awaited, group):
                if each.coming:
                    await each.all_came.wait()
        if group is self._others:
            async with self._awaited.lock:
                pass


class _Pass:
    """One reading of the past for several controllers."""

    def __init__(self, runtime: HistoryRuntime, starting: Sequence[_Starting]) -> None:
        self._runtime = runtime
        self._readers: list[tuple[_Starting, Reconciler]] = []
        self._by_place: dict[GroupResource, list[tuple[_Starting, Reconciler]]] = {}
        self._named: set[str] = set()
        self._unplaced: list[tuple[PodFacts, str]] = []
        for each in starting:
            try:
                self._readers.append((each, each.make()))
            except Exception as mistake:
                each.mistake = mistake

    async def run(self, replayed_max: int) -> None:
        """Fold the objects that have not changed for `replayed_max` events, then those events."""
        objects, info = self._runtime.views.objects, self._runtime.info
        # Events before a fork are the work of another control plane, under other settings.
        forked = info.parent_revision + 1 if info.is_fork else 0
        until = Revision(max(forked, objects.revision - replayed_max))
        resting = objects.left_over(until) if until else []
        await self._fold(resting)
        collectors = [pair for pair in self._readers if pair[1].name == pod_gc.NAME]
        schedulers = [pair for pair in self._readers if pair[1].name == SCHEDULING]
        if collectors or schedulers:
            for event in await self._pods_written_since(until):
                self._hand(event, [*collectors, *schedulers])
                self._note_pod(event)
        if collectors:
            names = {name for name in self._named if not self._was_there(name, until)}
            for event in await forking.removals_of(self._runtime.log, info, names, until):
                self._hand(event, collectors)
        if schedulers:
            pods = [
                pod_key(pod.namespace, pod.name)
                for pod, nominated in self._unplaced
                if nominated or self._has_claim(pod)
            ]
            for event in await forking.decisions_under_way(self._runtime.log, info, pods, until):
                self._hand(event, schedulers)
        del resting
        while events := await self._runtime.watches.past(until, self._runtime.watches.published):
            await self._fold(events)
            until = events[-1].revision
        for each, reconciler in self._readers:
            each.primed = reconciler, until

    async def _fold(self, events: Iterable[Event]) -> None:
        for number, kept in enumerate(events):
            # No controller reads managed fields. The copy is also dropped with the tree that was
            # decoded for it; an object that is never written again would keep its tree for good.
            event = kept.without_managers()
            self._hand(event, self._readers_of(event))
            if is_of(event.key, PODS):
                self._note_pod(event)
            if number % TURN == TURN - 1:
                await anyio.lowlevel.checkpoint()

    async def _pods_written_since(self, until: Revision) -> list[Event]:
        """The pods that wait for something since before `until`, as they were then.

        Those that have not been written since are among the resting objects. Of the others, a
        decision about a pod that the scheduler does not know would be lost, and a pod whose node
        is gone would wait from its last write on.
        """
        objects, log, history = (
            self._runtime.views.objects,
            self._runtime.log,
            self._runtime.info.id,
        )
        then: list[Event] = []
        for key, kept in objects.kept(*PODS):
            if kept.revision <= until or objects.created(key) > until:
                continue
            last = plain(kept).without_managers()
            if node := core.node_name(last.object):
                is_waiting = not self._was_there(node, until)
            else:
                is_nominated = core.nominated_node_name(last.object)
                is_waiting = bool(is_nominated) or self._has_claim(facts_of(last))
            if is_waiting:
                then += await log.read_object(history, key, until=until, limit=1)
        then.sort(key=lambda event: event.revision)
        return [event.without_managers() for event in then]

    def _was_there(self, node: str, until: Revision) -> bool:
        """Whether a node exists and did at `until`, as most do: nothing waits for its removal."""
        objects, key = self._runtime.views.objects, ObjectKey(*NODES, "", node)
        return objects.event(key) is not None and objects.created(key) <= until

    def _note_pod(self, event: Event) -> None:
        """Note a node that is named; and a pod that has no node yet."""
        node = core.node_name(event.object)
        self._named.add(node)
        if not node:
            self._unplaced.append((facts_of(event), core.nominated_node_name(event.object)))

    def _has_claim(self, pod: PodFacts) -> bool:
        """Whether a claim is reserved for the pod, as for one that was placed and is not bound."""
        objects = self._runtime.views.objects
        claims = (objects.get(claim_key(pod.namespace, c.name or "")) for c in named_claims(pod))
        return any(claim and is_reserved_for(claim, pod.uid) for claim in claims)

    def _hand(self, event: Event, readers: Sequence[tuple[_Starting, Reconciler]]) -> None:
        for each, reconciler in readers:
            if each.mistake is None:
                try:
                    each.take_in(reconciler, event)
                except Exception as mistake:
                    each.mistake = mistake

    def _readers_of(self, event: Event) -> Sequence[tuple[_Starting, Reconciler]]:
        if is_for_all(event):
            return self._readers
        place = event.key[:2]
        readers = self._by_place.get(place)
        if readers is None:
            readers = self._by_place[place] = [
                (each, reconciler)
                for each, reconciler in self._readers
                if reconciler.reads is None or place in reconciler.reads
            ]
        return readers
