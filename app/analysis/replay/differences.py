"""The comparison of two traces, aspect by aspect.

An aspect is a question about one subject (which node for this pod, which devices for this claim,
which order of writes). The cause of a difference is not examined here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from app.analysis import masks, meanings
from app.analysis.replay import facts
from app.analysis.replay.facts import Fact
from app.analysis.replay.traces import AllocationStep, Step, Trace
from app.domain.log import ObjectKey
from app.domain.objects.schema.structural import Schemas
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


class Aspect(StrEnum):
    """The aspects that are compared, in the order of reports."""

    NODES = "nodes"
    DEVICES = "devices"
    CONDITIONS = "conditions"
    RULES = "rule statuses"
    EVICTIONS = "evictions"
    SAID = "events"
    WRITES = "writes per object"
    ORDER = "writes per pod"
    FINAL = "final objects"


_TIME = "(time)"
"""Stands for the time of an allocation: that there is one counts, not which one it is."""

PLACEMENTS = (Aspect.DEVICES, Aspect.NODES, Aspect.EVICTIONS)
"""The aspects about placements of pods, in the order in which their causes are searched."""

DifferenceKey: TypeAlias = tuple[Aspect, str, str]
"""The aspect, the uid of the subject, and the condition type (empty for other aspects)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One difference: the answers of both sides for reports, and the steps that only one side has.

    If both sides have the same steps in another order, there are no such steps.
    """

    aspect: Aspect
    uid: str
    name: str = ""
    recorded: list[Any]
    again: list[Any]
    only_recorded: tuple[Step, ...] = ()
    only_again: tuple[Step, ...] = ()

    @property
    def key(self) -> DifferenceKey:
        """The key under which the difference is known in other runs."""
        return self.aspect, self.uid, self.name

    @property
    def is_order(self) -> bool:
        """Whether both sides have the same answers in another order.

        A step that directly follows an equal one does not count. So in another order a step may
        count once more: A, B, A against A, A, B.
        """
        return set(self.recorded) == set(self.again)

    def facts(self, side: str = "") -> Iterator[Fact]:
        """The facts that only one side has; `side` limits them to `recorded` or `again`."""
        if side != "again":
            yield from (fact for step in self.only_recorded for fact in step.facts)
        if side != "recorded":
            yield from (fact for step in self.only_again for fact in step.facts)


@dataclass(slots=True)
class Compared:
    """The number of equal subjects by aspect, and all differences by key."""

    same: Counter[Aspect] = field(default_factory=Counter)
    different: dict[DifferenceKey, Sides] = field(default_factory=dict)


def compare(
    recorded: Trace, again: Trace, schemas: Schemas | None = None, *, with_dates: bool = False
) -> Compared:
    """Compares all aspects; with schemas, whole objects are compared by meaning, not by notation.

    Example: a share of `5G` is equal to one of `5000000000`. With `with_dates`, an allocation that
    has a time differs from one that has none: the releases of one history may differ in that.
    """
    compared = Compared()
    for sides in _all_sides(recorded, again, with_dates=with_dates):
        key = recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
        if sides.recorded == sides.again or _mean_the_same(sides, key, schemas):
            compared.same[sides.aspect] += 1
        else:
            compared.different[sides.key] = sides
    return compared


def placed_otherwise(
    compared: Compared, recorded: Trace, again: Trace, last: Instant
) -> dict[str, ObjectKey]:
    """The pods and claims, by uid, that a run places or evicts otherwise than the recording.

    After `last`, the end of the recording, a run goes on with what was under way there: that is no
    difference.
    """
    keys = {**again.keys, **recorded.keys}
    return {
        uid: keys[uid]
        for aspect, uid, _ in compared.different
        if aspect in PLACEMENTS and not _is_continued(aspect, uid, recorded, again, last)
    }


def _is_continued(aspect: Aspect, uid: str, recorded: Trace, again: Trace, last: Instant) -> bool:
    match aspect:
        case Aspect.NODES:
            return uid not in recorded.node_of and again.node_of[uid].time > last
        case Aspect.EVICTIONS:
            return uid not in recorded.evicted and again.evicted[uid].time > last
        case _:
            theirs, ours = recorded.allocations.get(uid, ()), again.allocations.get(uid, ())
            later = ours[len(theirs) :]
            pairs = zip(theirs, ours, strict=False)
            is_alike = all(one.allocation == other.allocation for one, other in pairs)
            return is_alike and bool(later) and all(each.time > last for each in later)


def contradictions(recorded: Trace, again: Trace) -> Iterator[DifferenceKey]:
    """The sequences of writes in an unfinished run that cannot become the recorded ones.

    A run only appends to a sequence, so it must be a beginning of the recorded sequence.
    """
    for uid, steps in again.said.items():
        ours = [step.text for step in _distinct(steps)]
        theirs = [step.text for step in _distinct(recorded.said.get(uid, ()))]
        if ours != theirs[: len(ours)]:
            yield Aspect.SAID, uid, ""
    for uid, steps in again.writes.items():
        recorded_steps = recorded.writes.get(uid, ())
        read = _signed_text if all(step.writer for step in recorded_steps) else _text
        if [read(step) for step in steps] != [read(step) for step in recorded_steps[: len(steps)]]:
            yield Aspect.WRITES, uid, ""
    for uid, steps in again.of_pod.items():
        theirs = [_placed_text(step) for step in recorded.of_pod.get(uid, ())[: len(steps)]]
        if [_placed_text(step) for step in steps] != theirs:
            yield Aspect.ORDER, uid, ""


def node(step: Step) -> str:
    """The node of a binding."""
    return next(fact.node for fact in step.facts if isinstance(fact, facts.Bound))


def nodes(trace: Trace) -> dict[str, str]:
    """The node of each pod: the one to which it was bound, or for which it was nominated last.

    A nomination beside a condition is of an attempt that failed: it evicts other pods there.
    """
    nominated = {
        uid: fact.node
        for uid, steps in trace.writes.items()
        for step in steps
        for fact in step.facts
        if isinstance(fact, facts.Nominated)
        and fact.node
        and not any(isinstance(each, facts.ConditionSet) for each in step.facts)
    }
    return nominated | {uid: node(step) for uid, step in trace.node_of.items()}


def _mean_the_same(sides: Sides, key: ObjectKey | None, schemas: Schemas | None) -> bool:
    if schemas is None or key is None or len(sides.recorded) != len(sides.again):
        return False
    match sides.aspect:
        case Aspect.DEVICES:
            node = meanings.allocation_node(schemas)
        case Aspect.FINAL:
            node = meanings.node_of(schemas, key)
        case _:
            return False
    pairs = zip(sides.recorded, sides.again, strict=True)
    return all(meanings.of(left, node) == meanings.of(right, node) for left, right in pairs)


def _all_sides(left: Trace, right: Trace, *, with_dates: bool) -> Iterator[Sides]:
    yield from _allocations(left, right, with_dates=with_dates)
    yield from _conditions(left, right)
    for uid in _union(left.said, right.said):
        steps = (_distinct(left.said.get(uid, ())), _distinct(right.said.get(uid, ())))
        yield _sides(Aspect.SAID, uid, *steps, _text)
    for uid in _union(left.writes, right.writes):
        steps = (left.writes.get(uid, []), right.writes.get(uid, []))
        is_named = all(step.writer for step in steps[0])
        yield _sides(Aspect.WRITES, uid, *steps, _signed_text if is_named else _text)
    for uid in _union(left.of_pod, right.of_pod):
        steps = (left.of_pod.get(uid, []), right.of_pod.get(uid, []))
        yield _sides(Aspect.ORDER, uid, *steps, _placed_text)
    for uid in _union(left.evicted, right.evicted):
        steps = (
            ([left.evicted[uid]] if uid in left.evicted else []),
            ([right.evicted[uid]] if uid in right.evicted else []),
        )
        yield _sides(Aspect.EVICTIONS, uid, *steps, _text)
    for uid in _union(left.kept, right.kept):
        key = left.keys.get(uid) or right.keys[uid]
        if key.resource == "events":
            continue
        theirs = [masks.masked(left.kept[uid])] if uid in left.kept else []
        ours = [masks.masked(right.kept[uid])] if uid in right.kept else []
        if key.resource == "pods" and not right.pods_observed:
            # The conditions of kubelets have generations also where those of controllers have none.
            theirs, ours = ([_without_generations(one) for one in each] for each in (theirs, ours))
        yield Sides(aspect=Aspect.FINAL, uid=uid, recorded=theirs, again=ours)


def _allocations(left: Trace, right: Trace, *, with_dates: bool) -> Iterator[Sides]:
    content = _dated if with_dates else _undated
    for uid in _union(left.allocations, right.allocations):
        theirs = [content(one) for one in left.allocations.get(uid, ())]
        ours = [content(one) for one in right.allocations.get(uid, ())]
        yield Sides(aspect=Aspect.DEVICES, uid=uid, recorded=theirs, again=ours)
    for uid in _union(left.node_of, right.node_of):
        steps = (
            ([left.node_of[uid]] if uid in left.node_of else []),
            ([right.node_of[uid]] if uid in right.node_of else []),
        )
        yield _sides(Aspect.NODES, uid, *steps, node)


def _undated(step: AllocationStep) -> JsonObject:
    return step.allocation


def _dated(step: AllocationStep) -> JsonObject:
    """The allocation, with a mark in place of its time, if it has one."""
    return {**step.allocation, "allocationTimestamp": _TIME} if step.is_dated else step.allocation


def _conditions(left: Trace, right: Trace) -> Iterator[Sides]:
    for place in _union(left.conditions, right.conditions):
        uid, type_ = place
        key = left.keys.get(uid) or right.keys[uid]
        aspect = Aspect.RULES if key.resource == "devicetaintrules" else Aspect.CONDITIONS
        steps = (
            _distinct(left.conditions.get(place, ())),
            _distinct(right.conditions.get(place, ())),
        )
        yield _sides(aspect, uid, *steps, _text, type_)


def _sides(
    aspect: Aspect,
    uid: str,
    recorded: Sequence[Step],
    again: Sequence[Step],
    read: Callable[[Step], str],
    name: str = "",
) -> Sides:
    theirs, ours = [read(step) for step in recorded], [read(step) for step in again]
    return Sides(
        aspect=aspect,
        uid=uid,
        name=name,
        recorded=theirs,
        again=ours,
        only_recorded=_only(recorded, theirs, ours),
        only_again=_only(again, ours, theirs),
    )


def _only(steps: Sequence[Step], mine: list[str], others: list[str]) -> tuple[Step, ...]:
    """The steps that the other side lacks, or has less often: the last ones of these."""
    if mine == others:
        return ()
    left = Counter(mine) - Counter(others)
    only: list[Step] = []
    for step, text in zip(reversed(steps), reversed(mine), strict=True):
        if left[text] > 0:
            left[text] -= 1
            only.append(step)
    return tuple(reversed(only))


def _union(left: Mapping[Any, object], right: Mapping[Any, object]) -> Iterator[Any]:
    """The keys of both: those of the first in its order, then the additional ones of the second."""
    yield from left
    yield from (key for key in right if key not in left)


def _text(step: Step) -> str:
    return step.text


def _signed_text(step: Step) -> str:
    return f"{step.writer}: {step.text}"


def _placed_text(step: Step) -> str:
    return f"{step.key.resource[:-1]}: {step.text}"


def _distinct(steps: Iterable[Step]) -> list[Step]:
    """The steps without those that repeat the one before."""
    distinct: list[Step] = []
    for step in steps:
        if not distinct or distinct[-1].facts != step.facts:
            distinct.append(step)
    return distinct


def _without_generations(tree: JsonObject) -> JsonObject:
    """A copy of an object whose conditions do not say which generation they are about."""
    conditions = [
        {name: value for name, value in each.items() if name != "observedGeneration"}
        for each in meta.condition_trees(tree)
    ]
    return (
        {**tree, "status": {**meta.status(tree), "conditions": conditions}} if conditions else tree
    )
