"""Races: which pods competed for a device or a node, according to both traces."""

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from app.analysis.replay.attempts import Placing, Try
from app.analysis.replay.classes import DifferenceClass, Judgement
from app.analysis.replay.differences import PLACEMENTS, Aspect, Sides
from app.analysis.replay.facts import is_failed_attempt, is_placement, meets_claim_in_flight
from app.analysis.replay.hypotheses.hypothesis import Hypothesis
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.traces import AllocationStep, Trace
from app.analysis.replay.variants import Hold
from app.domain.values.timestamps import Instant


class Races:
    """Competitors for the devices and node of a recorded pod; `pace` has the recorded attempts."""

    def __init__(self, recorded: Trace, pace: RecordedPace) -> None:
        self._recorded = recorded
        self._pace = pace

    def since(self, sides: Sides, again: Trace) -> Instant:
        """The instant from which the two runs differ about a subject."""
        return min(instants(sides, self._recorded, again), default=Instant(0))

    def earliest(self, open_ones: Iterable[Sides], again: Trace) -> Sides | None:
        """The placement from which the two runs differ first, of these differences."""
        order = {aspect: number for number, aspect in enumerate(PLACEMENTS)}
        return min(
            (sides for sides in open_ones if sides.aspect in order),
            key=lambda sides: (self.since(sides, again), order[sides.aspect]),
            default=None,
        )

    def settled_by(self, sides: Sides, again: Trace) -> Instant:
        """The instant by which everything that the difference concerns was done in both runs."""
        last = max(instants(sides, self._recorded, again), default=Instant(0))
        pod = self._pod_of(sides.uid, again)
        return max([last, *(each.last for each in self._pace.attempts(pod))])

    def concerned(self, claim: str, again: Trace) -> set[str]:
        """The claim, its pod and every pod that used it in either run."""
        users = self._recorded.users.get(claim, set()) | again.users.get(claim, set())
        return {claim, self._pod_of(claim, again), *users}

    def related(self, uid: str, again: Trace) -> set[str]:
        """The pod of a subject, the claims that it uses and all their users."""
        pod = self._pod_of(uid, again)
        related = {uid, pod}
        for trace in (self._recorded, again):
            for claim, users in trace.users.items():
                if pod in users or claim == uid:
                    related |= {claim, *users}
        return related

    def holds(self, root: Sides, pod: str, again: Trace) -> Iterator[Hypothesis]:
        """Hypotheses that competitors with the pod's devices here were tried after it there.

        It is about the placement that differs first: a pod is placed again when the devices did
        not get ready. A pod whose recorded attempt certainly ended before that of this pod is no
        competitor, by its times or by versions. An eviction has no competitors.
        """
        since = self.since(root, again)
        placed = self._placed(pod, lambda each, placing: _ends(each, placing) >= since)
        if placed is None or root.aspect is Aspect.EVICTIONS:
            return
        wanted = self._devices_of(self._recorded, pod)
        node = self._recorded.node_of.get(pod)
        for other in self._takers(again, wanted, "" if node is None else node.text):
            # What was chosen before is no rival, however long its writes took.
            theirs = self._placed(other, lambda each, _: each.last >= placed.first)
            earliest = self._placed(other)
            if other == pod or (theirs is None and earliest is not None):
                continue
            is_first = theirs is earliest
            if is_first and self._pace.is_decided_before(other, pod):
                continue
            name = self._recorded.keys.get(other) or again.keys.get(other)
            yield Hypothesis(
                reason=DifferenceClass.QUEUE_ORDER,
                detail=f"{name} wanted the same and was tried after it",
                field="held",
                target=Hold(
                    pod=other,
                    since=Instant(0) if is_first or theirs is None else theirs.first,
                    until=Instant(placed.last + 1),
                ),
            )

    def judgement(self, sides: Sides, again: Trace) -> Judgement:
        """The class of a difference that vanishes at the recorded pace alone."""
        return Judgement(
            reason=self._reason(sides, again), detail="as recorded at the recorded pace"
        )

    def _reason(self, sides: Sides, again: Trace) -> DifferenceClass:
        only = list(sides.facts())
        pod = self._pod_of(sides.uid, again)
        if sides.aspect in (Aspect.DEVICES, Aspect.NODES):
            there, here = self._devices_of(self._recorded, pod), self._devices_of(again, pod)
            competitors = self._takers(again, there, "") | self._takers(self._recorded, here, "")
            return DifferenceClass.QUEUE_ORDER if competitors - {pod} else DifferenceClass.FOLLOWS
        if any(meets_claim_in_flight(fact) for fact in only):
            return DifferenceClass.IN_FLIGHT
        if any(is_placement(fact) for fact in only):
            return DifferenceClass.FOLLOWS
        if only and all(is_failed_attempt(fact) for fact in only):
            return DifferenceClass.TIMING
        if sides.aspect is Aspect.RULES:
            return DifferenceClass.TIMING
        return DifferenceClass.RACE

    def _pod_of(self, uid: str, again: Trace) -> str:
        for trace in (self._recorded, again):
            for each in trace.allocations.get(uid, ()):
                return each.pod
        return self._recorded.owner_of.get(uid) or again.owner_of.get(uid, uid)

    def _placed(
        self, pod: str, is_one: Callable[[Try, Placing], bool] = lambda *_: True
    ) -> Try | None:
        """The first recorded attempt, of these, that placed the pod."""
        return next(
            (
                each
                for each in self._pace.attempts(pod)
                if each.placing is not None and is_one(each, each.placing)
            ),
            None,
        )

    def _devices_of(self, trace: Trace, pod: str) -> set[str]:
        return {
            _device(name)
            for each in _allocations(trace)
            if each.pod == pod
            for name in each.devices
        }

    def _takers(self, trace: Trace, devices: set[str], node: str) -> set[str]:
        """The pods that got one of the devices, or the node."""
        takers = {
            each.pod
            for each in _allocations(trace)
            if devices & {_device(name) for name in each.devices}
        }
        if node:
            takers |= {uid for uid, step in trace.node_of.items() if step.text == node}
        return takers


def instants(sides: Sides, recorded: Trace, again: Trace) -> list[Instant]:
    """The instants of the acts in which the two runs differ; none where they are not known."""
    match sides.aspect:
        case Aspect.DEVICES:
            pairs = zip(sides.recorded, sides.again, strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            return [
                each.time
                for trace in (recorded, again)
                for each in trace.allocations.get(sides.uid, ())[same:]
            ]
        case Aspect.NODES:
            return [
                trace.node_of[sides.uid].time
                for trace in (recorded, again)
                if sides.uid in trace.node_of
            ]
        case _:
            return [step.time for step in (*sides.only_recorded, *sides.only_again)]


def _ends(attempt: Try, placing: Placing) -> Instant:
    """The latest instant at which an attempt, or a recorded write of its placement, was made."""
    return max(attempt.last, placing.claims_at or attempt.last, placing.bind_at or attempt.last)


def _allocations(trace: Trace) -> Iterator[AllocationStep]:
    for steps in trace.allocations.values():
        yield from steps


def _device(name: str) -> str:
    """`pool/device` of `request: pool/device`."""
    return name.partition(": ")[2]
