"""Differences that wrong clocks cannot have caused.

Where the times of a recording contradict the order of its changes, controllers may have acted at
other instants than recorded: earlier or later, in another order, more or less often. But the
content that they give an object does not depend on instants, no controller reserves a claim for a
pod that never existed, and an act that is missing for minutes is not missing because a clock was
off by seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Created, Fact, Released, Reserved
from app.analysis.replay.traces import Trace
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.values.timestamps import Instant

_FOREVER = Instant(2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Judges differences by both traces; the recording ends at `end`."""

    recorded: Trace
    again: Trace
    end: Instant

    def may_have_caused(self, sides: Sides) -> bool:
        """Whether an act at another instant may have caused the difference."""
        if self.is_of_content(sides):
            return False
        match sides.aspect:
            case Aspect.EVICTIONS if not sides.recorded:
                return not self._was_spared(sides)
            case Aspect.NODES if not sides.recorded:
                return not self._was_passed_over(sides)
            case _:
                return True

    def is_of_content(self, sides: Sides) -> bool:
        """Whether the contents of a created object differ, or a reservation is for no pod."""
        return _is_about_content(sides) or self._is_for_nobody(sides)

    def _is_for_nobody(self, sides: Sides) -> bool:
        """Whether a claim was reserved for a consumer that never existed."""
        return any(
            isinstance(fact, Reserved) and fact.uid not in self.recorded.keys
            for fact in sides.facts("recorded")
        )

    def _was_spared(self, sides: Sides) -> bool:
        """Whether the recorded pod kept its devices long after its eviction was due."""
        pod = sides.uid
        there, here = _places(self.recorded, pod), _places(self.again, pod)
        return there == here and self._lived_on(pod, sides.only_again[0].time)

    def _was_passed_over(self, sides: Sides) -> bool:
        """Whether the recorded pod waited long although the devices that it gets here were free."""
        pod, since = sides.uid, sides.only_again[0].time
        devices = _devices(self.again, pod)
        if not devices or not self._lived_on(pod, since):
            return False
        until = self._until(pod)
        return not any(
            begin <= until and since - LATE_AFTER <= end for begin, end in self._holds(devices)
        )

    def _lived_on(self, pod: str, since: Instant) -> bool:
        return self._until(pod) - since > LATE_AFTER

    def _until(self, pod: str) -> Instant:
        """The instant at which the recorded pod was deleted, or the recording ended."""
        return self.recorded.removed.get(pod, self.end)

    def _holds(self, devices: frozenset[str]) -> Iterator[tuple[Instant, Instant]]:
        """The intervals in which recorded claims had one of the devices."""
        for uid, steps in self.recorded.allocations.items():
            freed = [
                step.time
                for step in self.recorded.writes.get(uid, ())
                if any(isinstance(fact, Released) for fact in step.facts)
            ]
            gone = self.recorded.removed.get(uid, _FOREVER)
            for step in steps:
                if devices & {_place(name) for name in step.devices}:
                    later = (each for each in freed if each > step.time)
                    yield step.time, min(next(later, _FOREVER), gone)


def _is_about_content(sides: Sides) -> bool:
    """Whether both sides created the object, with different contents."""
    theirs, ours = _contents(sides.facts("recorded")), _contents(sides.facts("again"))
    return bool(theirs) and bool(ours) and theirs != ours


def _contents(facts: Iterator[Fact]) -> set[str]:
    return {fact.content for fact in facts if isinstance(fact, Created)}


def _places(trace: Trace, pod: str) -> tuple[str, frozenset[str]]:
    node = trace.node_of.get(pod)
    return "" if node is None else node.text, _devices(trace, pod)


def _devices(trace: Trace, pod: str) -> frozenset[str]:
    return frozenset(
        _place(name)
        for steps in trace.allocations.values()
        for step in steps
        if step.pod == pod
        for name in step.devices
    )


def _place(name: str) -> str:
    """`pool/device` of `request: pool/device`."""
    return name.partition(": ")[2]
