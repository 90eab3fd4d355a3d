"""Traces: what controllers did, in a form that a decide replay can compare.

A trace is made from events alone, so recording and replay are read the same way. Each write of a
controller becomes a line about its object (`allocated worker-1/gpu-0`, `unschedulable: …`), without
random values and times of a clock.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from app.analysis.masks import masked
from app.analysis.replay import facts, tolerances
from app.analysis.replay.facts import (
    Bound,
    ConditionSet,
    Fact,
    condition_changes,
    consumers,
    facts_of,
)
from app.analysis.replay.instants import is_derived, seen_from
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.records import Loss
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

FactReader: TypeAlias = Callable[[Event, JsonObject | None], tuple[Fact, ...]]
"""Gives the facts of an event after the object before it."""

_REPLICATING = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One write of one controller, or one Event object that it wrote.

    `writer` is the short name of the controller, empty where the recording does not identify it.
    """

    revision: int
    time: Instant
    writer: str
    key: ObjectKey
    uid: str
    facts: tuple[Fact, ...]

    @property
    def text(self) -> str:
        """The facts as text, for reports."""
        return "; ".join(facts.text(fact) for fact in self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationStep:
    """One allocation of one claim: the devices in order, the whole result, and its pod.

    `is_dated` is false for an allocation without a time.
    """

    revision: int
    time: Instant
    key: ObjectKey
    uid: str
    pod: str
    devices: tuple[str, ...]
    allocation: JsonObject
    is_dated: bool = True


@dataclass(slots=True)
class Trace:
    """Everything that controllers did in one run.

    `writes` are by object uid. `of_pod` is by pod uid and includes the writes to the pod's claims.
    `conditions` are by object uid and condition type, `said` by uid of the object that an Event is
    about, `node_of` by pod uid. `finished` has the instants at which pods finished, `removed` those
    at which objects were gone, `removable` the earliest at which they may have been, `marked` those
    at which claims were marked for deletion,
    `removed_within` the first and last one for those whose removal has no time, `nodes_within` the
    last one, by uid and instant, for writes about nodes without a time, `replicas` the pods of
    replica controllers, `users` the pods for which a claim was ever reserved, `schedulers` the
    names of those of pods, `priorities` their priorities, `templates` the instants at which
    templates of claims were made, `kept` the objects at the end. `due` has, by uid and
    instant, when steps near the end of a run were due, `ready` when they could be made, attempts
    among them.
    `ends` has the first and last instants at which namespaces of a name may have begun to end, the
    first one for acts of a source that is as exact, `ended` the instants of the
    namespaces that are ending, `crossing` the revisions of Events that were stored afterwards and
    asked for before, `unmade` those of Events whose creation no line shows, `refused_reports` the
    names and instants of the scheduler's Events that were refused, by namespace (None where a
    recording may lack them).
    `skew` is by how much clocks of servers differ at least. With `schemas`, contents are normalized
    to their meaning. Without `pods_observed`, the observed generations in conditions of pods are
    left out. `read` may spare reading facts.
    """

    schemas: Schemas | None = None
    pods_observed: bool = True
    writes: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    of_pod: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    conditions: dict[tuple[str, str], list[Step]] = field(default_factory=lambda: defaultdict(list))
    said: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))
    evicted: dict[str, Step] = field(default_factory=dict)
    allocations: dict[str, list[AllocationStep]] = field(default_factory=lambda: defaultdict(list))
    node_of: dict[str, Step] = field(default_factory=dict)
    keys: dict[str, ObjectKey] = field(default_factory=dict)
    owner_of: dict[str, str] = field(default_factory=dict)
    finished: dict[str, Instant] = field(default_factory=dict)
    removed: dict[str, Instant] = field(default_factory=dict)
    removable: dict[str, Instant] = field(default_factory=dict)
    marked: dict[str, Instant] = field(default_factory=dict)
    removed_within: Mapping[str, tuple[Instant, Instant]] = field(default_factory=dict)
    nodes_within: Mapping[tuple[str, Instant], Instant] = field(default_factory=dict)
    kept: dict[str, JsonObject] = field(default_factory=dict)
    other_writers: set[str] = field(default_factory=set)
    replicas: set[str] = field(default_factory=set)
    schedulers: dict[str, str] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    templates: dict[ObjectKey, list[Instant]] = field(default_factory=lambda: defaultdict(list))
    users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    due: dict[tuple[str, Instant], Instant] = field(default_factory=dict)
    ready: dict[tuple[str, Instant], Instant] = field(default_factory=dict)
    crossing: set[int] = field(default_factory=set)
    unmade: set[int] = field(default_factory=set)
    ended: dict[str, Instant] = field(default_factory=dict)
    ends: dict[str, list[tuple[Instant, Instant]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    refused_reports: Mapping[str, Sequence[tuple[str, Instant]]] | None = None
    skew: int = 0
    read: FactReader | None = None

    def due_at(self, step: Step) -> Instant:
        """The instant at which a step was due, before any delay of the pace, as far as known."""
        return self.due.get((step.uid, step.time), step.time)

    def soon_ends(self, namespace: str, now: Instant) -> Instant | None:
        """The end of a namespace that an Event about an act of now came too late for, if any."""
        return self._end_of(namespace, now, Instant(now + tolerances.TABLE.same_attempt))

    def _end_of(self, namespace: str, now: Instant, until: Instant) -> Instant | None:
        ends = self.ends.get(namespace, ())
        return next((last for first, last in ends if now <= last and first <= until), None)

    def refused_from(self, pod: ObjectKey, now: Instant) -> Instant | None:
        """The instant from which the end of a namespace refuses an Event about an act of now.

        None if it refuses none. A recording that has failed requests has that of the Event, however
        long it waited. Otherwise the Event came soon. A name that is too long gives an Event none.
        """
        if self.refused_reports is None:
            return self.soon_ends(pod.namespace, now)
        near = tolerances.TABLE.same_attempt
        sent = max(
            (
                at
                for name, at in self.refused_reports.get(pod.namespace, ())
                if at >= now - near and (name.startswith(f"{pod.name}.") or "." not in name)
            ),
            default=now - near - 1,
        )
        return self._end_of(pod.namespace, now, Instant(sent + near))

    def begin(self, event: Event) -> None:
        """Adds the last event of an object that existed before the first step."""
        self._note(event)

    def add(
        self,
        event: Event,
        before: JsonObject | None,
        writer: str | None,
        known: Instant | None = None,
    ) -> None:
        """Adds one event.

        `before` is the object before it. `writer` is the short name of the controller that wrote it
        and decides again, None for any other writer. Others could see it from `known` on.
        """
        key = event.key
        self._note(event, known)
        if is_event_object(key):
            if writer is not None:
                self._add_event(event, writer)
            return
        if writer is None:
            self.other_writers.add(event.uid)
            return
        if self.read is None:
            seen = tuple(facts_of(event, before, self.schemas))
        else:
            seen = self.read(event, before)
        if key.resource == "pods" and not self.pods_observed:
            seen = tuple(_without_generation(fact) for fact in seen)
        if not seen:
            return
        step = Step(
            revision=event.revision,
            time=event.stamp.time,
            writer=writer,
            key=key,
            uid=event.uid,
            facts=seen,
        )
        self.writes[event.uid].append(step)
        for pod in self.pods_of(event, before):
            self.of_pod[pod].append(step)
        self._add_conditions(event, before, step)
        if key.resource == "pods":
            self._add_pod(event, step)
        elif key.resource == "resourceclaims":
            self._add_claim(event, before)

    def shows_generations(self) -> bool:
        """Whether a condition of a pod has an observed generation."""
        return any(
            isinstance(fact, ConditionSet) and fact.observed is not None
            for (uid, _), steps in self.conditions.items()
            if self.keys[uid].resource == "pods"
            for step in steps
            for fact in step.facts
        )

    def _note(self, event: Event, known: Instant | None = None) -> None:
        uid = event.uid
        self.keys[uid] = event.key
        if event.type is EventType.OBJECT_DELETED:
            self.removed.setdefault(uid, event.stamp.time)
            self.removable.setdefault(uid, seen_from(event, event.stamp.time))
            self.kept.pop(uid, None)
        else:
            self.kept[uid] = event.object
        if event.key.resource == "pods":
            self.schedulers.setdefault(uid, core.scheduler_name(event.object))
            self.priorities.setdefault(uid, core.priority(event.object) or 0)
            if core.is_finished(event.object):
                self.finished.setdefault(uid, event.stamp.time)
            for owner in meta.owners(event.object):
                if owner.kind in _REPLICATING:
                    self.replicas.add(uid)
        elif event.key[:2] == api_resources.NAMESPACES:
            if not meta.deletion_timestamp(event.object):
                self.ended.pop(event.key.name, None)
            elif event.key.name not in self.ended:
                self.ended[event.key.name] = event.stamp.time
                self.ends[event.key.name].append(_span(event, known or event.stamp.time))
        elif (
            event.type is EventType.OBJECT_CREATED
            and event.key[:2] == api_resources.RESOURCE_CLAIM_TEMPLATES
        ):
            self.templates[event.key].append(event.stamp.time)
        elif event.key.resource == "resourceclaims":
            if meta.deletion_timestamp(event.object):
                self.marked.setdefault(uid, event.stamp.time)
            for owner in meta.owners(event.object):
                if owner.controller:
                    self.owner_of[uid] = owner.uid
            self.users[uid] |= consumers(event.object).keys()

    def _add_event(self, event: Event, writer: str) -> None:
        if event.type is EventType.OBJECT_DELETED:
            return
        subject = facts.subject_of(event.object)
        scheduler = self.schedulers.get(subject, "")
        step = Step(
            revision=event.revision,
            time=event.stamp.time,
            writer=writer,
            key=event.key,
            uid=event.uid,
            facts=(facts.event_seen(event.object, self.keys.get(subject), scheduler),),
        )
        self.said[subject].append(step)
        ended, origin = self.ended.get(event.key.namespace), event.stamp.origin
        if origin is not None and Loss.SYNTHETIC_CREATE in origin.losses:
            self.unmade.add(event.revision)
        if ended is not None and origin is not None and 0 < origin.asked <= ended:
            self.crossing.add(event.revision)

    def pods_of(self, event: Event, before: JsonObject | None) -> Iterator[str]:
        """The uids of the pods that a write concerns: the pod itself, or the users of a claim."""
        if event.key.resource == "pods":
            yield event.uid
        elif event.key.resource == "resourceclaims":
            owner = self.owner_of.get(event.uid)
            if owner is not None:
                yield owner
                return
            old, new = consumers(before), consumers(event.object)
            yield from sorted(old.keys() ^ new.keys())

    def _add_conditions(self, event: Event, before: JsonObject | None, step: Step) -> None:
        for condition in condition_changes(before, event.object):
            is_whole = self.pods_observed or event.key.resource != "pods"
            fact = condition if is_whole else _without_generation(condition)
            self.conditions[event.uid, condition.type].append(replace(step, facts=(fact,)))

    def _add_pod(self, event: Event, step: Step) -> None:
        for fact in step.facts:
            match fact:
                case Bound(node=node) if node:
                    self.node_of[event.uid] = replace(step, facts=(fact,))
                case ConditionSet(type=condition_types.DISRUPTION_TARGET):
                    self.evicted.setdefault(event.uid, step)
                case _:
                    pass

    def _add_claim(self, event: Event, before: JsonObject | None) -> None:
        held = None if before is None else dra.allocation(before)
        allocation = dra.allocation(event.object)
        if held is not None or not isinstance(allocation, dict):
            return
        if event.type is EventType.OBJECT_DELETED:
            return
        pods = consumers(event.object)
        self.allocations[event.uid].append(
            AllocationStep(
                revision=event.revision,
                time=event.stamp.time,
                key=event.key,
                uid=event.uid,
                pod=next(iter(pods), self.owner_of.get(event.uid, "")),
                devices=dra.device_names(allocation),
                allocation=masked(allocation),
                is_dated=bool(dra.allocation_time(allocation)),
            )
        )


def is_event_object(key: ObjectKey) -> bool:
    """Whether the object is a Kubernetes Event."""
    return key.resource == "events"


def _without_generation(fact: facts.Fact) -> Fact:
    """The fact; for a condition, without its observed generation."""
    return replace(fact, observed=None) if isinstance(fact, ConditionSet) else fact


def profiles_bound(trace: Trace, ranks: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """The names of profiles whose pods the scheduler bound; `ranks` has the name of each pod.

    They count as configured like the default one. Parity: controllers.md 4.1.
    """
    return frozenset(ranks[uid][0] for uid in trace.node_of if uid in ranks)


def _span(event: Event, known: Instant) -> tuple[Instant, Instant]:
    """The first and the last instant of an event, seen from one whose instant is as exact."""
    if not is_derived(event):
        return known, known
    return Instant(seen_from(event, known) - tolerances.TABLE.coarse), known
