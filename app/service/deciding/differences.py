"""The comparison of a decide replay: aspect by aspect, with a reason class for each difference.

Both runs are traces. An aspect is a question about one subject (which node for this pod, which
devices for this claim, in which order the writes). Equal answers count as same; others are named
with both sides and a class (`classes`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.domain.log import Revision
from app.domain.values.json_tree import JsonObject
from app.service.deciding.authors import UNNAMED
from app.service.deciding.classes import Classes, End, Found, Reason
from app.service.deciding.traces import Step, Trace, masked

LISTED_MAX = 1_000
"""How many differences a report lists; all are counted."""


class Aspect(StrEnum):
    """What is compared, in the order of reports."""

    NODES = "nodes"
    DEVICES = "devices"
    CONDITIONS = "conditions"
    RULES = "rule statuses"
    EVICTIONS = "evictions"
    SAID = "events"
    WRITES = "writes per object"
    ORDER = "writes per pod"
    FINAL = "final objects"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideDifference:
    """One difference: what about, why, and both sides."""

    aspect: Aspect
    subject: str
    revision: int
    reason: Reason
    detail: str
    recorded: Any
    again: Any

    def to_json(self) -> JsonObject:
        """For reports."""
        return {
            "aspect": self.aspect.value,
            "subject": self.subject,
            "revision": self.revision,
            "class": self.reason.value,
            "detail": self.detail,
            "recorded": self.recorded,
            "again": self.again,
        }


@dataclass(slots=True)
class AspectCounts:
    """Counts of one aspect: the same, and different by class."""

    same: int = 0
    different: Counter[Reason] = field(default_factory=Counter)

    def to_json(self) -> JsonObject:
        """For reports."""
        return {
            "same": self.same,
            "different": sum(self.different.values()),
            "classes": {why.value: self.different[why] for why in Reason if self.different[why]},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideReport:
    """What a decide replay found.

    `inputs` counts recorded writes by what was done with them; `not_comparable` counts what could
    not be compared, by why; `ties` counts pods for which the recorded one of equally good nodes was
    taken.
    """

    history: str
    revision: Revision
    inputs: Mapping[str, int]
    aspects: Mapping[Aspect, AspectCounts]
    differences: tuple[DecideDifference, ...]
    not_comparable: Mapping[str, int]
    ties: int = 0

    @property
    def explained(self) -> bool:
        """True when every difference has a known reason."""
        return not any(
            counts.different.get(Reason.UNEXPLAINED, 0) for counts in self.aspects.values()
        )

    def to_json(self) -> JsonObject:
        """For the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "explained": self.explained,
            "inputs": dict(sorted(self.inputs.items())),
            "aspects": {aspect.value: counts.to_json() for aspect, counts in self.aspects.items()},
            "tiesTakenFromTheRecording": self.ties,
            "differences": [found.to_json() for found in self.differences],
            "notComparable": dict(sorted(self.not_comparable.items())),
        }


class Comparison:
    """Compares two traces."""

    def __init__(
        self,
        *,
        history: str,
        revision: Revision,
        recorded: Trace,
        again: Trace,
        inputs: Mapping[str, int],
        notes: Counter[str],
        ties: Collection[str],
        violations: Mapping[str, bool],
        end: End,
    ) -> None:
        self._history = history
        self._revision = revision
        self._recorded = recorded
        self._again = again
        self._inputs = inputs
        self._notes = notes
        self._ties = len(ties)
        self._classes = Classes(recorded, again, violations=violations, end=end)
        self._aspects = {aspect: AspectCounts() for aspect in Aspect}
        self._differences: list[DecideDifference] = []

    def report(self) -> DecideReport:
        """Compare everything."""
        self._compare_allocations()
        self._compare_conditions()
        self._compare_steps(Aspect.SAID, self._recorded.said, self._again.said, _distinct)
        is_named = any(
            step.writer != UNNAMED for steps in self._recorded.writes.values() for step in steps
        )
        read = _texts if is_named else _bare_texts
        self._compare_steps(Aspect.WRITES, self._recorded.writes, self._again.writes, read)
        self._compare_steps(Aspect.ORDER, self._recorded.of_pod, self._again.of_pod, _placed)
        self._compare_evictions()
        self._compare_final()
        return DecideReport(
            history=self._history,
            revision=self._revision,
            inputs=self._inputs,
            aspects=self._aspects,
            differences=tuple(self._differences),
            not_comparable=dict(self._notes),
            ties=self._ties,
        )

    def _compare_allocations(self) -> None:
        left, right = self._recorded, self._again
        for uid in _union(left.allocations, right.allocations):
            ours = [found.allocation for found in right.allocations.get(uid, ())]
            theirs = [found.allocation for found in left.allocations.get(uid, ())]
            self._judge(Aspect.DEVICES, uid, theirs, ours)
        for uid in _union(left.node_of, right.node_of):
            nodes = [left.node_of[uid].text] if uid in left.node_of else []
            again = [right.node_of[uid].text] if uid in right.node_of else []
            self._judge(Aspect.NODES, uid, nodes, again)

    def _compare_conditions(self) -> None:
        left, right = self._recorded.conditions, self._again.conditions
        for place in _union(left, right):
            uid, type_ = place
            key = self._recorded.keys.get(uid) or self._again.keys[uid]
            aspect = Aspect.RULES if key.resource == "devicetaintrules" else Aspect.CONDITIONS
            theirs = [f"{type_} {text}" for text in _distinct(left.get(place, ()))]
            ours = [f"{type_} {text}" for text in _distinct(right.get(place, ()))]
            self._judge(aspect, uid, theirs, ours)

    def _compare_evictions(self) -> None:
        left, right = self._recorded.evicted, self._again.evicted
        for uid in _union(left, right):
            theirs = [left[uid].text] if uid in left else []
            ours = [right[uid].text] if uid in right else []
            self._judge(Aspect.EVICTIONS, uid, theirs, ours)

    def _compare_steps(
        self,
        aspect: Aspect,
        left: Mapping[str, list[Step]],
        right: Mapping[str, list[Step]],
        read: Callable[[Iterable[Step]], list[str]],
    ) -> None:
        for uid in _union(left, right):
            self._judge(aspect, uid, read(left.get(uid, ())), read(right.get(uid, ())))

    def _compare_final(self) -> None:
        left, right = self._recorded.kept, self._again.kept
        for uid in _union(left, right):
            key = self._recorded.keys.get(uid) or self._again.keys[uid]
            if key.resource == "events":
                continue
            theirs = [masked(left[uid])] if uid in left else []
            ours = [masked(right[uid])] if uid in right else []
            self._judge(Aspect.FINAL, uid, theirs, ours)

    def _judge(self, aspect: Aspect, uid: str, theirs: list[Any], ours: list[Any]) -> None:
        counts = self._aspects[aspect]
        if theirs == ours:
            counts.same += 1
            return
        found = Found(aspect=aspect.value, uid=uid, recorded=theirs, again=ours)
        reason, detail = self._classes.of(found)
        counts.different[reason] += 1
        if len(self._differences) >= LISTED_MAX:
            return
        steps = self._recorded.writes.get(uid) or self._again.writes.get(uid)
        key = self._recorded.keys.get(uid) or self._again.keys.get(uid)
        self._differences.append(
            DecideDifference(
                aspect=aspect,
                subject=str(key) if key is not None else uid,
                revision=steps[0].revision if steps else 0,
                reason=reason,
                detail=detail,
                recorded=theirs,
                again=ours,
            )
        )


def _union(left: Mapping[Any, object], right: Mapping[Any, object]) -> Iterator[Any]:
    """Keys of both, those of the first in its order, then what only the second has."""
    yield from left
    yield from (key for key in right if key not in left)


def _texts(steps: Iterable[Step]) -> list[str]:
    return [f"{step.writer}: {step.text}" for step in steps]


def _bare_texts(steps: Iterable[Step]) -> list[str]:
    """Without writers, for recordings that do not name them."""
    return [step.text for step in steps]


def _placed(steps: Iterable[Step]) -> list[str]:
    return [f"{step.key.resource[:-1]}: {step.text}" for step in steps]


def _distinct(steps: Iterable[Step]) -> list[str]:
    """Texts without repetition of the one before."""
    found: list[str] = []
    for step in steps:
        if not found or found[-1] != step.text:
            found.append(step.text)
    return found
