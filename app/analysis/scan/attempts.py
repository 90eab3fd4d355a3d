"""Incidents found by making attempts of the scheduler again, with a defect and without it.

A history contains the scheduler's message about a pod, not the bookings of its search. So each
attempt is first made again as it was. Only if that gives the recorded message, it is made once more
with one defect repaired, or in a world with one difference. A different outcome is then caused by
that.

A defect is tried only if the history fulfils its preconditions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.analysis import profiles
from app.analysis.explain.choices import SUCCESSES
from app.analysis.scan import alternative_worlds
from app.analysis.scan.alternative_worlds import ConcernedClaims, OtherWorld
from app.analysis.scan.sightings import LASTED, Certainty, Sightings
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.plan import DeviceViews
from app.domain.controllers.resources import claim_key
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.reconciler import SchedulingReconciler
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt, SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.devices.model import Slice
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

PLACED = "Scheduled"
UPDATING = "currently being updated"

_COUNTERS, _ADMIN, _ALTERNATIVES, _ALL, _MATCHING, _PARTS, _SHARED, _FAILING = (
    "counters",
    "admin",
    "alternatives",
    "all",
    "matching",
    "parts",
    "shared",
    "failing",
)

_FITS_WITHOUT: Mapping[str, tuple[str, frozenset[str]]] = {
    "q1": ("counters-stay-booked", frozenset((_COUNTERS,))),
    "q3": ("counters-by-pool-name", frozenset((_COUNTERS,))),
    "q4": ("counter-below-zero", frozenset((_COUNTERS,))),
    "q5": ("common-values-stay-narrow", frozenset((_MATCHING,))),
    "q9": ("admin-access-takes-the-device", frozenset((_ADMIN,))),
    "q10": ("all-mode-constraint-ends-all", frozenset((_ALL,))),
    "q11": ("alternative-that-is-never-reached", frozenset((_ALL, _ALTERNATIVES))),
    "q16": ("selector-fails-on-a-broken-device", frozenset((_FAILING,))),
    "q17": ("share-without-capacity", frozenset((_COUNTERS, _SHARED))),
    "q18": ("alternatives-leave-traces", frozenset((_ALTERNATIVES,))),
}
"""Defects without which a refused pod may be placed: the incident, and its preconditions."""

DISAPPEARS, UNNOTICED, UNSCORED = (
    "pool-disappears-while-it-changes",
    "newer-generation-unnoticed",
    "alternatives-are-not-scored",
)

LOOKED_FOR = (
    *(
        incident
        for incident, _ in _FITS_WITHOUT.values()
        if incident not in ("counters-by-pool-name", "all-mode-constraint-ends-all")
    ),
    DISAPPEARS,
    UNNOTICED,
    UNSCORED,
    *alternative_worlds.LOOKED_FOR,
)
"""The incidents that only this module searches for, by name."""

RACE = 1 * SECOND
"""The time before a message in which changes may not have been seen by the scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScheduler:
    """The scheduler of a history: its rules, its profile, and how many attempts may be repeated."""

    rules: SchedulerRules
    profile: Profile
    attempts_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordedAttempt:
    """The record of an attempt for a pod in a history; `start` is where the search began."""

    key: ObjectKey
    pod: JsonObject
    message: str
    start: int
    event: Event


class RemadeAttempts:
    """Follows a history, and makes attempts in it again; `left_out` counts those beyond the bound.

    If the scheduler's decisions are recorded, they contain where its search began. In recordings of
    other schedulers, conditions and allocations show the attempts.
    """

    def __init__(self, sightings: Sightings, scheduler: RecordedScheduler) -> None:
        self.left_out = 0
        self._sightings = sightings
        self._rules = scheduler.rules
        self._left = scheduler.attempts_max
        self._views = LiveViews(scheduler.profile)
        self._scheduler = SchedulingReconciler(scheduler.rules)
        self._claims = ConcernedClaims()
        self._is_decided = False
        self._there: set[str] = set()
        self._shown: set[tuple[str, str]] = set()
        self._changed: dict[ObjectKey, Instant] = {}
        self._waiting: dict[str, tuple[_RecordedAttempt, OtherWorld, Certainty]] = {}
        self._now = Instant(0)

    def turn(self, scheduler: RecordedScheduler, views: LiveViews) -> None:
        """Makes further attempts again by another scheduler of the same cluster.

        `views` are its views of this moment. Attempts that are left stay as many.
        """
        self._rules = scheduler.rules
        self._views = views

    def follow(self, event: Event) -> Iterator[None]:
        """Processes the next event; yields after each attempt that was made again."""
        yield from self._look(event)
        self._views.fold(event)
        self._claims.fold(event)
        self._scheduler.fold(event, self._views)
        if event.is_about_object:
            self._now = max(self._now, event.stamp.time)
            self._note(event)

    def end(self, sightings: Sightings, now: Instant) -> None:
        """Adds the incidents that show only by lasting, until `now` or the last event."""
        now = max(now, self._now)
        for tried, world, certainty in self._waiting.values():
            if now - tried.event.stamp.time >= LASTED:
                _show(sightings, tried, world.incident, world.text, world.objects, certainty)

    def _note(self, event: Event) -> None:
        """Records whether the preconditions of defects exist, and when objects last changed."""
        place = event.key[:2]
        if place == api_resources.PODS:
            self._passed(event)
        if place in _DECIDING:
            self._changed[event.key] = event.stamp.time
            if len(self._changed) > _CHANGED_MAX:
                since = event.stamp.time - RACE
                self._changed = {key: at for key, at in self._changed.items() if at >= since}
        if event.type is EventType.OBJECT_DELETED:
            return
        if place == api_resources.RESOURCE_SLICES:
            self._there.update(_needs_of_slice(event.object))
            if _PARTS not in self._there:
                pool = dra.driver(event.object), dra.pool_name(event.object)
                self._there.update(_needs_of_pool(self._views.inventory.slices_of(pool)))
        elif place == api_resources.RESOURCE_CLAIMS:
            self._there.update(_needs_of_claim(event.object))

    def _passed(self, event: Event) -> None:
        """Handles a pod that was placed or ended: shows the cause of its wait if it waited long."""
        is_over = event.type is EventType.OBJECT_DELETED or meta.is_deleting(event.object)
        if not is_over and not core.node_name(event.object):
            return
        tried, world, certainty = self._waiting.pop(event.uid, (None, None, None))
        if tried and world and certainty and event.stamp.time - tried.event.stamp.time >= LASTED:
            _show(self._sightings, tried, world.incident, world.text, world.objects, certainty)

    def _look(self, event: Event) -> Iterator[None]:
        if event.type is EventType.DECISION_RECORDED:
            yield from self._decision(event)
        elif self._is_decided or event.type is not EventType.OBJECT_UPDATED:
            return
        elif event.key[:2] == api_resources.PODS:
            yield from self._condition(event)
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS:
            yield from self._allocation(event)

    def _decision(self, event: Event) -> Iterator[None]:
        body = decision_body.read(event.object)
        if body.controller != "scheduling" or body.resource != "pods":
            return
        self._is_decided = True
        key = ObjectKey(*api_resources.PODS, *body.place)
        pod = self._views.objects.get(key)
        if pod is None:
            return
        summary = decision_body.summary_of(event.object)
        tried = _RecordedAttempt(
            key=key, pod=pod, message=summary.message, start=body.inputs.start, event=event
        )
        if body.outcome in SUCCESSES:
            yield from self._placed(tried, summary.node, None)
        else:
            yield from self._refused(tried)

    def _condition(self, event: Event) -> Iterator[None]:
        condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
        pod = self._views.objects.get(event.key)
        if condition is None or condition.status != "False" or pod is None:
            return
        before = meta.condition(pod, condition_types.POD_SCHEDULED)
        if before is None or before.message != condition.message:
            yield from self._refused(
                _RecordedAttempt(
                    key=event.key, pod=pod, message=condition.message, start=0, event=event
                )
            )

    def _allocation(self, event: Event) -> Iterator[None]:
        before = self._views.objects.get(event.key)
        results = dra.results(event.object)
        if before is None or not results or dra.results(before):
            return
        for consumer in dra.consumers(event.object):
            key = ObjectKey(*api_resources.PODS, event.key.namespace, consumer.name)
            pod = self._views.objects.get(key)
            if pod is not None and not core.node_name(pod):
                tried = _RecordedAttempt(key=key, pod=pod, message="", start=0, event=event)
                yield from self._placed(tried, "", event.object)

    def _refused(self, tried: _RecordedAttempt) -> Iterator[None]:
        wanted = [each for each in self._wanted(tried) if self._is_new(tried, each[1])]
        worlds = alternative_worlds.worlds(self._views, self._claims, tried.pod)
        if (not wanted and not worlds) or not self._may_try():
            return
        made = self._made(self._rules, tried)
        yield
        if made.outcome == PLACED or made.message != tried.message:
            return
        for mark, incident in wanted:
            repaired = self._made(self._without(mark), tried)
            yield
            without = f"without {profiles.described(mark)}"
            if repaired.outcome == PLACED:
                self._add(tried, incident, f"{tried.message}; {without} it fits on {repaired.node}")
            elif (
                incident == DISAPPEARS
                and UPDATING not in made.message
                and UPDATING in repaired.message
            ):
                self._add(tried, incident, f"{tried.message}; {without}: {repaired.message}")
        for world in worlds:
            if self._is_new(tried, world.incident):
                other = self._made(self._rules, tried, world.views)
                yield
                if other.outcome == PLACED:
                    self._take(tried, world.concerning(other.allocations))

    def _placed(
        self, tried: _RecordedAttempt, node: str, claim: JsonObject | None
    ) -> Iterator[None]:
        """Examines a pod that was placed: on `node`, or as in an allocated claim."""
        marks = [(mark, each) for mark, each in self._on_placements() if self._is_new(tried, each)]
        if not marks or not self._may_try():
            return
        made = self._made(self._rules, tried)
        yield
        if made.outcome != PLACED or (node and made.node != node):
            return
        if claim is not None and dra.results(claim) not in _results(made):
            return
        for mark, incident in marks:
            repaired = self._made(self._without(mark), tried)
            yield
            without = f"without {profiles.described(mark)}"
            if incident == UNNOTICED and repaired.outcome != PLACED:
                devices = ", ".join(each.text for results in _results(made) for each in results)
                self._add(tried, incident, f"it got {devices}; {without}: {repaired.message}")
            elif incident == UNSCORED and _rank(repaired) < _rank(made):
                text = f"it got a worse alternative on {made.node}; {without} a better one"
                self._add(tried, incident, f"{text} on {repaired.node}")

    def _wanted(self, tried: _RecordedAttempt) -> list[tuple[str, str]]:
        there = self._there | ({_FAILING} if "CEL runtime error" in tried.message else set())
        wanted = [
            (mark, incident)
            for mark, (incident, needed) in _FITS_WITHOUT.items()
            if needed <= there and getattr(self._rules.allocator_quirks, mark)
        ]
        if _PARTS in there and self._rules.allocator_quirks.q13:
            wanted.append(("q13", DISAPPEARS))
        return wanted

    def _on_placements(self) -> Iterator[tuple[str, str]]:
        if _PARTS in self._there and self._rules.allocator_quirks.q12:
            yield "q12", UNNOTICED
        if _ALTERNATIVES in self._there and self._rules.quirks.r1:
            yield "r1", UNSCORED

    def _without(self, mark: str) -> SchedulerRules:
        if mark == "r1":
            return replace(self._rules, quirks=replace(self._rules.quirks, r1=False))
        return replace(self._rules, allocator_quirks=self._rules.allocator_quirks.without(mark))

    def _made(
        self, rules: SchedulerRules, tried: _RecordedAttempt, views: DeviceViews | None = None
    ) -> Attempt:
        return attempt.attempt(
            rules,
            views or self._views,
            self._scheduler.nodes,
            Verdicts(),
            pod_spec.read(tried.pod),
            start=tried.start,
            now=tried.event.stamp.time,
        )

    def _may_try(self) -> bool:
        self.left_out += not self._left
        self._left -= self._left > 0
        return not self.left_out

    def _is_new(self, tried: _RecordedAttempt, incident: str) -> bool:
        return (meta.uid(tried.pod), incident) not in self._shown

    def _take(self, tried: _RecordedAttempt, world: OtherWorld) -> None:
        """Notes a pod that would be placed in another world; some incidents have to last first."""
        uid = meta.uid(tried.pod)
        if not world.must_last:
            self._add(tried, world.incident, world.text, world.objects)
        elif uid not in self._waiting:
            self._shown.add((uid, world.incident))
            self._waiting[uid] = tried, world, self._certainty(tried)

    def _add(
        self, tried: _RecordedAttempt, incident: str, text: str, objects: Sequence[ObjectKey] = ()
    ) -> None:
        self._shown.add((meta.uid(tried.pod), incident))
        _show(self._sightings, tried, incident, text, objects, self._certainty(tried))

    def _certainty(self, tried: _RecordedAttempt) -> Certainty:
        """Certain if the scheduler had seen the state: by its own decision, or without a race."""
        if self._is_decided:
            return Certainty.CERTAIN
        since = tried.event.stamp.time - RACE
        own = {tried.key, tried.event.key}
        own |= {
            claim_key(tried.key.namespace, named.name or "")
            for named in pods.named_claims(pods.facts(tried.pod))
        }
        is_race = any(at >= since for key, at in self._changed.items() if key not in own)
        return Certainty.LIKELY if is_race else Certainty.CERTAIN


_DECIDING = frozenset(
    (
        api_resources.NODES,
        api_resources.PODS,
        api_resources.RESOURCE_CLAIMS,
        api_resources.RESOURCE_SLICES,
        api_resources.DEVICE_CLASSES,
        api_resources.DEVICE_TAINT_RULES,
        api_resources.RESOURCE_SLICE_PATCHES,
    )
)
_CHANGED_MAX = 1_000
"""The number of remembered changes above which old ones are dropped."""


def _show(
    sightings: Sightings,
    tried: _RecordedAttempt,
    incident: str,
    text: str,
    objects: Sequence[ObjectKey],
    certainty: Certainty,
) -> None:
    revision = tried.event.revision
    sightings.add(incident, revision, text, tried.key, *objects, certainty=certainty)


def _results(made: Attempt) -> list[list[dra.DeviceResult]]:
    return [dra.results_of(allocation) for allocation in made.allocations]


def _rank(made: Attempt) -> tuple[int, ...]:
    """The positions of the alternatives that an attempt takes; a high rank if it places nothing."""
    if made.outcome != PLACED:
        return (_LAST,)
    ranks: list[int] = []
    for claim, results in zip(made.claims, _results(made), strict=False):
        requests = {result.request for result in results}
        for request in dra.requests(claim.tree):
            for place, ask in enumerate(request.first_available):
                if f"{request.name}/{ask.name}" in requests:
                    ranks.append(place)
    return tuple(ranks)


_LAST = 1_000


def _needs_of_slice(tree: JsonView) -> Iterator[str]:
    """The preconditions that a slice fulfils."""
    if dra.pool(tree).resource_slice_count > 1:
        yield _PARTS
    for device in dra.devices(tree):
        if device.get("consumesCounters"):
            yield _COUNTERS
        if device.get("allowMultipleAllocations"):
            yield _SHARED


def _needs_of_pool(slices: Sequence[Slice]) -> Iterator[str]:
    """The preconditions that a pool fulfils: it has parts, whatever number its slices announce."""
    if len(slices) > 1:
        yield _PARTS


def _needs_of_claim(tree: JsonView) -> Iterator[str]:
    """The preconditions that a claim fulfils."""
    if any(each.match_attribute for each in dra.constraints(tree)):
        yield _MATCHING
    for request in dra.requests(tree):
        if request.first_available:
            yield _ALTERNATIVES
        for ask in (request.exactly, *request.first_available):
            if ask is not None and ask.allocation_mode == "All":
                yield _ALL
            if ask is not None and ask.admin_access:
                yield _ADMIN
