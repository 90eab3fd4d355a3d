"""The waits for the recorded pace in a run of the unchanged world, and which new pod comes first.

A changed world has no recording of its own. An act at an instant at which the controller would not
act in the unchanged world follows from the change, and does not wait. Acts common to both worlds
keep the recorded pace. Attempts that a recording does not show have none.

`bounded_starts` has the starts of controllers, `FirstTurns` the order in which new pods become
ready for their first attempts.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, report_of
from app.analysis.replay.attempts import Try
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.traces import is_event_object
from app.analysis.replay.writers import MANAGED
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.controllers import pods, registry
from app.domain.controllers.pacing import AttemptOutcome
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.scheduling.queue import hints
from app.domain.log import Event, EventType, Revision
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import Instant

WITH_WORK = frozenset(("claims",))
"""The queues whose controllers also look at keys without work.

Such a look does not wait: the next recorded act may follow from a later event.
"""

_OPEN = Instant(2**62)


def bounded_starts(starts: Mapping[str, Instant], acts: Iterable[Act]) -> dict[str, Instant]:
    """The latest starts of controllers that did not run at the beginning, by name.

    `starts` are the instants of their first writes. A manager starts all of its controllers
    together: one whose first write is much later had nothing to do before, or was late. A scheduler
    runs at its first attempt, which comes before any of its writes is stored.
    """
    bounded = dict(starts)
    managed = [name for name in starts if registry.actor_of(name).user in MANAGED]
    first = min((starts[name] for name in managed), default=Instant(0))
    for name in managed:
        bounded[name] = Instant(min(starts[name], first + IN_FLIGHT))
    tried = [_tried_at(act) for act in acts if act.user == SCHEDULER]
    for name in starts:
        if registry.actor_of(name).user == SCHEDULER:
            bounded[name] = min((starts[name], *tried))
    return bounded


class Readiness:
    """The waits of one run: of queue keys, of attempts whose result was deferred, and of plans.

    `starts` maps controllers to the instants at which they started: all their keys waited for that.
    `has_other_order` is whether a recorded choice among equal nodes is not what their order gives.
    """

    def __init__(self, starts: Mapping[str, Instant]) -> None:
        self.has_other_order = False
        self._starts = starts
        self._waits: dict[tuple[str, tuple[str, ...]], list[tuple[Instant, Instant]]]
        self._waits = defaultdict(list)
        self._put_off: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)
        self._work: dict[tuple[str, tuple[str, ...]], list[tuple[Instant, Instant]]]
        self._work = defaultdict(list)
        self._under_way: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)
        self._placeable: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)

    def note(self, queue: str, key: tuple[str, ...], ready: Instant, due: Instant) -> None:
        """Notes that a key was ready at `ready` and had to wait until `due`."""
        _extend(self._waits[queue, key], ready, due)

    def note_work(self, queue: str, key: tuple[str, ...], now: Instant) -> None:
        """Notes that a key of a queue in `WITH_WORK` has something to do from now on."""
        _open(self._work[queue, key], now)

    def note_no_work(self, queue: str, key: tuple[str, ...], now: Instant) -> None:
        """Notes that nothing is left to do for a key."""
        _close(self._work.get((queue, key), []), now)

    def note_placeable(self, pod: str, now: Instant, *, is_placeable: bool) -> None:
        """Notes whether a pod (a uid) could be placed from now on, although nobody tries it."""
        if is_placeable:
            _open(self._placeable[pod], now)
        else:
            _close(self._placeable.get(pod, []), now)

    def note_put_off(self, pod: str, tried: Instant, due: Instant) -> None:
        """Notes that the result of an attempt for a pod (a uid) did not count."""
        _extend(self._put_off[pod], tried, due)

    def note_counted(self, pod: str, now: Instant) -> None:
        """Notes that the result of an attempt for a pod (a uid) counts from now on."""
        spans = self._put_off.get(pod, [])
        if spans and spans[-1][1] >= now:
            spans[-1] = (spans[-1][0], Instant(now - 1))

    def note_under_way(self, controller: str, made: Instant, stored: Instant) -> None:
        """Notes that a controller made a plan at `made` which was stored later."""
        self._under_way[controller].append((made, stored))

    def under_way_until(self, controller: str, now: Instant) -> Instant | None:
        """The instant at which the plan under way was stored in the recording; None without one."""
        plans = self._under_way.get(controller, [])
        number = bisect_right(plans, (now, _OPEN)) - 1
        return plans[number][1] if number >= 0 and plans[number][1] > now else None

    def was_waiting(self, queue: str, key: tuple[str, ...], now: Instant) -> bool:
        """Whether the key waited at about this instant, for work that it had by then."""
        if queue in WITH_WORK and not _covers(self._work.get((queue, key), []), now):
            return False
        start = self._starts.get(queue.partition("/")[0])
        if start is not None and now <= start:
            return True
        return _covers(self._waits.get((queue, key), []), now)

    def was_put_off(self, pod: str, now: Instant) -> bool:
        """Whether a result for the pod was put off at about this instant."""
        return _covers(self._put_off.get(pod, []), now)

    def was_placeable(self, pod: str, now: Instant) -> bool:
        """Whether the pod could be placed at about this instant, and was not tried."""
        return _covers(self._placeable.get(pod, []), now)


class QuietAttempts:
    """Attempts that a recording does not show, in a changed world and in its control.

    An attempt that fails for a reason which is stated already writes nothing. So between two
    recorded attempts a pod may have been tried many times, each time in vain, and a run of the
    recording leaves these attempts out. In a changed world one of them may place the pod: there
    they are made, and one counts only if it places the pod and would not place it in the unchanged
    world. The control makes them, too, and notes what they would have done: it is the run without
    `control`, and keeps its notes in `readiness`.
    """

    def __init__(self, readiness: Readiness, control: Readiness | None) -> None:
        self._readiness = readiness
        self._control = control
        self._refused: set[str] = set()
        self._until: dict[str, Instant] = {}
        self._tried: dict[str, Instant] = {}

    def follow(self, event: Event) -> None:
        """Notes which pods are refused and may be tried again."""
        is_there = event.type is not EventType.OBJECT_DELETED
        if is_there and not meta.is_deleting(event.object) and core.is_refused(event.object):
            self._refused.add(event.uid)
        else:
            self._refused.discard(event.uid)

    def next_try(self, pod: str, now: Instant, due: Instant) -> Instant:
        """The instant at which a pod (a uid) is tried whose recorded attempt is due later, or then.

        A pod in the queue is tried after its back-off, so a later attempt is not the next one.
        Nor is it tried more often than that, whatever happens in between.
        """
        if due <= now + tolerances.TABLE.unseen_try or pod not in self._refused:
            return due
        last = self._tried.get(pod)
        if last is not None and now < last + tolerances.TABLE.unseen_try:
            return Instant(last + tolerances.TABLE.unseen_try)
        self._until[pod], self._tried[pod] = due, now
        return now

    def is_on(self, pod: str) -> bool:
        """Whether the attempt that is made for a pod is quiet."""
        return pod in self._until

    def end(self, pod: str) -> Instant | None:
        """The instant of the recorded attempt that a quiet one came before; None for others."""
        return self._until.pop(pod, None)

    def counts(self, pod: str, tried: AttemptOutcome, now: Instant) -> bool:
        """Whether the outcome of a quiet attempt follows from the change."""
        is_placeable = bool(tried.node) or tried.moves_others
        if self._control is None:
            self._readiness.note_placeable(pod, now, is_placeable=is_placeable)
            return False
        return is_placeable and not self._control.was_placeable(pod, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewPod:
    """A pod that was made in the run: when it was made, and when its claims were named."""

    made: Revision
    made_at: Instant
    named: Revision
    priority: int
    facts: PodFacts


class FirstTurns:
    """The order in which a scheduler takes new pods from its queue. Parity: controllers.md 4.1.

    A pod enters the queue when it and all of its claims exist and the pod names them. One watch
    shows the scheduler the pods, another one the claims, each in log order. So of two new pods, one
    that precedes the other in both, and has no lower priority, is tried first. Pods with scheduling
    gates and pods of groups enter the queue in other ways, and have no turn.
    """

    def __init__(self) -> None:
        self._pods: dict[str, _NewPod] = {}
        self._claims: dict[tuple[str, str], Revision] = {}

    def follow(self, event: Event) -> None:
        """Notes when pods and claims are made, and when pods get the names of their claims."""
        is_new = event.type is EventType.OBJECT_CREATED
        if is_new and event.key[:2] == api_resources.RESOURCE_CLAIMS:
            self._claims[event.key.namespace, event.key.name] = event.revision
        if event.key[:2] != api_resources.PODS or event.type is EventType.OBJECT_DELETED:
            return
        facts = pods.facts_of(event)
        known = self._pods.get(event.uid)
        if known is not None:
            if known.facts.generated != facts.generated:
                self._pods[event.uid] = replace(known, named=event.revision, facts=facts)
            return
        has_turn = is_new and event.stamp.verb == "create" and not facts.group
        if has_turn and not core.scheduling_gates(event.object):
            self._pods[event.uid] = _NewPod(
                made=event.revision,
                made_at=event.stamp.time,
                named=event.revision,
                priority=core.priority(event.object) or 0,
                facts=facts,
            )

    def precedes(self, pod: str, other: str, until: Instant) -> bool:
        """Whether the first attempt for a pod was surely made before that for another one.

        That one was made by the instant `until`. A scheduler that was started since the pod was
        made would have listed the pods in another order.
        """
        one, two = self._pods.get(pod), self._pods.get(other)
        if one is None or two is None or one.priority < two.priority:
            return False
        return (
            one.made < two.made
            and one.named < two.named
            and self._claimed(one) <= self._claimed(two)
            and until - one.made_at < tolerances.TABLE.replaced_after
        )

    def latest(self, pod: str, attempt_of: Callable[[str], Try | None]) -> Instant | None:
        """The last instant at which the pod is tried before all that were surely tried after it.

        `attempt_of` gives the first recorded attempt of a pod that was not tried here. An attempt
        that comes to what was recorded at no instant would else leave its node to the next pod,
        and both would differ. None without such a pod.
        """
        mine = attempt_of(pod)
        if mine is None or mine.placing is None or pod not in self._pods:
            return None
        later = takewhile(lambda other: other != pod, reversed(self._pods))
        firsts = ((other, attempt_of(other)) for other in later)
        ends = (
            Instant(each.last - 1)
            for other, each in firsts
            if each is not None
            and each.placing is not None
            and each.last <= mine.last
            and self.precedes(pod, other, each.instant)
        )
        return min(ends, default=None)

    def before(self, pod: str) -> Iterator[str]:
        """The pods that most likely entered the queue before this one, or have a higher priority.

        That is not certain: one watch may have been behind the other.
        """
        known = self._pods.get(pod)
        if known is None:
            return
        place = (-known.priority, known.named)
        for other, each in self._pods.items():
            if (-each.priority, each.named) < place:
                yield other

    def _claimed(self, pod: _NewPod) -> Revision:
        """The instant at which the last claim of a pod was made."""
        names = hints.claim_names(pod.facts)
        made = (self._claims.get((pod.facts.namespace, name), Revision(0)) for name in names)
        return max(made, default=Revision(0))


def _tried_at(act: Act) -> Instant:
    """The earliest instant of the attempt from which a write of the scheduler comes."""
    report = report_of(act) if is_event_object(act.event.key) else None
    if report is None:
        return Instant(act.requested - tolerances.TABLE.placed_before)
    return Instant(min(report.instant, act.requested) - tolerances.TABLE.failed_before)


def _open(spans: list[tuple[Instant, Instant]], now: Instant) -> None:
    if not spans or spans[-1][1] < _OPEN:
        spans.append((now, _OPEN))


def _close(spans: list[tuple[Instant, Instant]], now: Instant) -> None:
    if spans and spans[-1][1] == _OPEN:
        spans[-1] = (spans[-1][0], now)


def _extend(waits: list[tuple[Instant, Instant]], since: Instant, due: Instant) -> None:
    if waits and since <= waits[-1][1]:
        waits[-1] = (waits[-1][0], Instant(max(due, waits[-1][1])))
    else:
        waits.append((since, due))


def _covers(waits: list[tuple[Instant, Instant]], now: Instant) -> bool:
    return any(since - tolerances.TABLE.unseen <= now <= due for since, due in waits)
