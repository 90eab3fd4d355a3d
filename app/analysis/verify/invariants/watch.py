"""The evaluation of invariants along a log: the broken rules, from when to when.

A *cell* is judged as a whole: a device with its holders, a pool with its counters, a claim, or a
pod. An event marks the cells dirty that it may have touched. After the event is applied, each dirty
cell is judged, and the findings are compared with the open violations of the cell. The objects
listed at the beginning of a recording existed together, so they are judged at the end of the list.

Example, with device d and claims a and b:

    revision  event              dirty cells            open
    10        a gets d           device d, claim a
    11        b gets d           device d, claim b      device-in-one-claim d: a, b since 11
    12        a node reports                            the same
    13        a gives d back     device d, claim a      ended at 13
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from app.analysis.verify.invariants import admin, cells, claims, pods, publishing
from app.analysis.verify.invariants.absent import NEEDS_PODS, ORDERED, Absence, Missing, absence
from app.analysis.verify.invariants.cluster import LISTED, Cell, Cluster, losses_of, may_be_swapped
from app.analysis.verify.invariants.known import KnownPod
from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.pools import PoolId
from app.analysis.verify.invariants.unseen import KINDS, READ
from app.analysis.verify.invariants.violations import (
    BY_DEVICES,
    LATE_AFTER,
    PROVEN,
    Cause,
    Finding,
    HeldFrom,
    Moment,
    Place,
    Silences,
    Violation,
    ViolationKind,
    blame,
    grow,
)
from app.domain.log import CLOCKS, Event, EventType, ObjectKey, Revision, doubts
from app.domain.log.pages import Page
from app.domain.log.raw_parts import RawClaim, RawPod
from app.domain.values.timestamps import Instant

INCOMPLETE = (
    "an object that it concerns was recorded without all of its fields, before a gap, or with "
    "times that contradict the order or alone tell it"
)
NO_PODS = "no pod was recorded"
SILENT = "nobody wrote for more than a minute meanwhile: controllers may not have run"
LOST = "lines about objects of this kind are lost here and there, or left out"
_Take = Callable[[Cluster, Event, Any], None]
_TAKES: Mapping[str, _Take] = {
    "resourceclaims": claims.take,
    "resourceclaimtemplates": publishing.take_template,
    "resourceslices": publishing.take_slice,
    "devicetaintrules": publishing.take_rule,
    "resourceslicepatches": publishing.take_patch,
    "deviceclasses": publishing.take_class,
    "resourcepoolstatusrequests": publishing.take_pool_status,
    "pods": pods.take,
    "nodes": publishing.take_node,
    admin.NAMESPACES: admin.take_namespace,
}
_TAKERS = {(group, resource): admin.followed(_TAKES[resource]) for resource, group in READ.items()}
"""The functions that apply the events of each kind. Rules read no other kinds."""

_SPLIT_TAKES: Mapping[type, _Take] = {RawPod: pods.take, RawClaim: claims.take}
_GAP, _REPORTED = EventType.GAP_OBSERVED, EventType.HISTORY_IMPORTED

_FIRST_SEEN = "synthetic_create"
"""The loss of an object that was made unseen, and may have been written unseen until it shows."""

_RULING = (_PATCHES := frozenset(("resourceslicepatches",))) | {"devicetaintrules"}
"""The kinds whose objects change other objects' devices."""

_Concerned = Callable[[Collection[ObjectKey], tuple[PoolId, ...], frozenset[str]], bool]
"""Whether unseen writes may concern a violation: by its objects, its pools and its `unless`."""

UNDECIDED = "what would decide it is not recorded, or changed a moment before"


@dataclass(slots=True, kw_only=True)
class _OpenViolation:
    """A violation that has not ended; `is_known` once `news` has returned it.

    `message` is that of the moment with the most objects, `at_once`. `pools` and `unless` are as in
    `Finding`. `by` is the event that caused it, kept where the order of two events decides.
    `together` is the first revision of what was seen together with it.
    """

    kind: ViolationKind
    objects: set[ObjectKey]
    at_once: int
    message: str
    begin: Moment
    together: Revision
    is_doubted: bool
    causes: frozenset[Cause]
    pools: tuple[PoolId, ...]
    unless: frozenset[str]
    uses: list[HeldFrom] = field(default_factory=list)
    by: Event | None = None
    is_known: bool = False


class _Ended(NamedTuple):
    """A violation that has ended. Had `absence` not been recorded, no rule would be broken."""

    violation: Violation
    pools: tuple[PoolId, ...]
    unless: frozenset[str]
    absence: Absence = Absence()


class InvariantWatch:
    """Follows a log from its first event; `violations` and `evictors` are what it has seen."""

    def __init__(
        self, switches: Switches = Switches(), lacking: frozenset[str] = frozenset()
    ) -> None:
        """`lacking` is as in `uncertainty.lacking`: resources, and whether times can be right."""
        self.cluster = Cluster(switches, lacking)
        self._open: dict[Cell, dict[Place, _OpenViolation]] = {}
        self.cluster.open = self._open
        self.evictors = self.cluster.evictors
        self._ended: list[_Ended] = []
        self._news: list[_Ended] = []
        self._missing = Missing(lacking)
        self._lost = self._missing.lost
        self._at = Revision(0), Instant(0)
        self._time = Instant(0)
        self._silences = Silences(are_added=switches.stops)
        self.is_listing = False
        self._listed = Revision(0)
        self._event: Event | None = None

    def note(self, event: Event) -> None:
        """Applies the next event and judges the cells that it touched."""
        self.follow_page(Page((event,)))

    def follow(self, events: Sequence[Event]) -> None:
        """Applies the next events, and judges after each event the cells that it touched."""
        self.follow_page(Page(events))

    def follow_page(self, page: Page) -> None:
        """Like `follow`, for a page that others read too: only the page's raw parts are used."""
        cluster, taker_of, takes = self.cluster, _TAKERS.get, _SPLIT_TAKES
        follow_missing, stops = self._missing.follow, cluster.switches.stops
        for event, parts in page.splits:
            cluster.queues.note(event, parts)
            if event.revision >= cluster.turns_at:
                cluster.turn(event.revision)
            stamp, since = event.stamp, self._time
            self._time = stamp.time
            if stamp.origin is not None:
                follow_missing(cluster, event)
                if admin.is_of_no_place(event):
                    self._doubt_writes(event.key, cluster.last_write(event.key))
            if stamp.time - since > LATE_AFTER and (stamp.origin is not None or stops):
                self._silences.note(since, stamp.time)
            is_apart = self.is_listing or stamp.verb == LISTED or event.type is _GAP
            if is_apart and self._note_apart(event, parts):
                continue
            if parts is not None:
                takes[parts.__class__](cluster, event, parts)
            elif event.is_about_object:
                taker = taker_of(event.key[:2])
                if taker is None:
                    continue
                taker(cluster, event, None)
            elif event.type is _REPORTED:
                cluster.unseen.note_whole(event)
            if cluster.dirty:
                self._at = event.revision, event.stamp.time
                self._event = event
                self._judge(is_listed=False)

    def _note_apart(self, event: Event, parts: Any) -> bool:
        """Handles events of a list and gaps; False for the first event after a list."""
        if event.type is _GAP:
            self._note_gap(event)
        elif event.is_about_object and event.stamp.verb == LISTED:
            taker = _TAKERS.get(event.key[:2])
            if taker is not None:
                taker(self.cluster, event, parts)
                if _FIRST_SEEN in losses_of(event):
                    self._doubt_writes(event.key, Revision(0))
            self._listed = self._listed if self.is_listing else event.revision
            self.is_listing = True
            self._at = event.revision, event.stamp.time
        elif event.is_about_object:
            self._end_listing()
            return False
        elif event.type is _REPORTED:
            self.cluster.unseen.note_whole(event)
        return True

    def _note_gap(self, event: Event) -> None:
        """Handles a gap: writes of one object, of a kind or of any kind were not fully recorded."""
        key, unseen = event.key, self.cluster.unseen
        if key == CLOCKS:
            return
        self._end_listing()
        kinds = unseen.note_gap(event)
        self.cluster.rule_statuses.note_gap(kinds, event.stamp.time)
        if not key.name:
            self.cluster.forget_states()  # The store may have been restored from a backup.
            if doubts.is_late(event):
                for kind in kinds:
                    self._note_late(kind)
        elif kinds and doubts.is_undated(event):
            self._note_undated(key._replace(group=KINDS[key.resource]))

    def _note_late(self, kind: str) -> None:
        """Marks violations that an object may have decided whose kind is found to have a gap.

        The unseen writes came after the last recorded one of the kind.
        """
        since = self.cluster.latest.get(kind, Revision(0))
        self._doubt_since(lambda _, __, unless: kind in unless, since)

    def _note_undated(self, key: ObjectKey) -> None:
        """Marks violations that a write may have decided which only a later write reveals.

        It came after the last recorded write of the object.
        """
        since = self.cluster.last_write(key)
        pod = self.cluster.pods.get(key)
        self._lost.note(key, pod.written if pod is not None and pod.is_there else since)
        self._doubt_writes(key, since)

    def _doubt_writes(self, key: ObjectKey, since: Revision) -> None:
        """Marks violations that writes of an object after a revision may have decided."""
        resource, place = key.resource, self.cluster.stock.slices.get(key)

        def is_concerned(
            objects: Collection[ObjectKey], pools: tuple[PoolId, ...], unless: frozenset[str]
        ) -> bool:
            if resource == "resourceslices" and (place is None or place.pool in pools):
                return bool(pools)
            return key in objects or (resource in _RULING and resource in unless)

        self._doubt_since(is_concerned, since)

    def _doubt_since(self, is_concerned: _Concerned, revision: Revision) -> None:
        """Marks violations that began after a revision and that unseen writes may concern."""
        for places in self._open.values():
            for place, each in places.items():
                if place[0] in PROVEN:
                    continue
                is_later = each.begin.revision > revision
                if is_later and is_concerned(each.objects, each.pools, each.unless):
                    each.is_doubted = True
        for number, (violation, pools, unless, absent) in enumerate(self._ended):
            is_later = violation.begin.revision > revision and violation.rule not in PROVEN
            if is_later and is_concerned(violation.objects, pools, unless):
                unsure = replace(violation, kind=ViolationKind.UNSURE, doubt=INCOMPLETE)
                self._ended[number] = _Ended(unsure, pools, unless, absent)

    def violations(self, now: Instant = Instant(0)) -> list[Violation]:
        """All violations so far, ended or not, in the order of their beginning.

        A violation that controllers restored in time is left out. A state that lasts does so until
        `now`, or until the last event if that is later.
        """
        self._end_listing()
        still = [
            ended
            for places in self._open.values()
            for place, each in places.items()
            if (ended := self._violation(place, each, None, now)) is not None
        ]
        return self._in_order((*self._ended, *still))

    def news(self, *, is_end: bool = False) -> list[Violation]:
        """The violations that were not returned before, in the order of their beginning.

        A caller that asks after every event gets, in the end, the same violations as from
        `violations`, with the same beginnings, each as it was known at that time: a gap that is
        noticed late may make it unsure. Nothing is returned in the middle of a list, and nothing
        else that more events may still change; `is_end` says that no more events follow.
        """
        if is_end:
            self._end_listing()
        elif self.is_listing:
            return []
        new, self._news = self._news, []
        for places in self._open.values():
            for place, each in places.items():
                if not each.is_known:
                    ended = self._violation(place, each, None)
                    if ended is not None and (is_end or not self._is_unsettled(ended)):
                        each.is_known = True
                        new.append(ended)
        if not is_end:
            self._news = [each for each in new if self._is_unsettled(each)]
            new = [each for each in new if not self._is_unsettled(each)]
        return self._in_order(new)

    def broken(self) -> list[Violation]:
        """The rules broken at present, including violations that have not lasted yet."""
        self._end_listing()
        return [
            self._made(place, each, None)
            for places in self._open.values()
            for place, each in places.items()
        ]

    def _end_listing(self) -> None:
        if self.is_listing:
            self.is_listing, self._event = False, None
            self._judge(is_listed=True)

    def _judge(self, *, is_listed: bool) -> None:
        """Judges the dirty cells, and begins and ends violations."""
        cluster = self.cluster
        is_listed |= self._missing.looks.is_again
        while cluster.dirty:
            cell = cluster.dirty.pop()
            broken = cells.judge(cluster, cell, is_listed=is_listed)
            if broken or (self._open and cell in self._open):
                self._compare(cell, self._open.get(cell, {}), broken)
        if cluster.leaving:
            cluster.drop_leaving()
        for claim in cluster.caused:
            claim.cause = None
        cluster.caused.clear()

    def _compare(
        self, cell: Cell, still: Mapping[Place, _OpenViolation], broken: Mapping[Place, Finding]
    ) -> None:
        now: dict[Place, _OpenViolation] = {}
        for place, finding in broken.items():
            each = still.get(place)
            causes = finding.causes if each is None else finding.causes | each.causes
            unless = finding.unless | (_PATCHES if finding.reads_patches else frozenset())
            kind = finding.kind or blame(place, causes)
            if each is not None and each.kind is kind:
                each.objects.update(finding.objects)
                each.causes, now[place] = causes, each
                if len(finding.objects) > each.at_once:
                    each.message, each.at_once = finding.message, len(finding.objects)
                grow(each.uses, self._now().revision, finding.uses)
                continue
            now[place] = made = _OpenViolation(
                kind=kind,
                objects=set(finding.objects),
                at_once=len(finding.objects),
                message=finding.message,
                begin=self._now(),
                together=self._listed if self._event is None else self._at[0],
                is_doubted=self.cluster.is_doubted(finding),
                causes=causes,
                pools=finding.pools,
                unless=unless,
                by=self._event if place[0] == ORDERED else None,
            )
            grow(made.uses, self._now().revision, finding.uses)
        for place, each in still.items():
            if now.get(place) is not each:
                if place[0] == ORDERED:
                    each.is_doubted |= self._may_be_swapped(cell, each.by)
                ended = self._violation(place, each, self._now())
                if ended is not None:
                    self._ended.append(ended)
                    if not each.is_known:
                        self._news.append(ended)
        if now:
            self._open[cell] = now
        else:
            self._open.pop(cell, None)

    def _may_be_swapped(self, cell: Cell, begun: Event | None) -> bool:
        """Whether the events that began and ended a violation of a pod may be in another order."""
        if begun is None or self._event is None or not isinstance(cell, KnownPod):
            return False
        return may_be_swapped(cell, begun, self._event)

    def _now(self) -> Moment:
        return Moment(revision=self._at[0], time=self._at[1])

    def _in_order(self, ended: Iterable[_Ended]) -> list[Violation]:
        """The violations as judged, without those that only the order of looks makes."""
        has_shown = self._missing.looks.has_shown
        return sorted(
            (self._judged(each) for each in ended if has_shown(each.violation)),
            key=lambda each: (each.begin.revision, each.rule, each.objects, each.message),
        )

    def _judged(self, ended: _Ended) -> Violation:
        """The violation, made UNSURE if the pod or write that would end it may be unrecorded."""
        violation = self._missing.looks.judged(ended.violation)
        if self._is_vain(violation):
            return replace(violation, kind=ViolationKind.UNSURE, doubt=NO_PODS)
        if violation.kind.is_failure and self._may_rest_on_lost(ended):
            return replace(violation, kind=ViolationKind.UNSURE, doubt=LOST)
        return violation

    def _may_rest_on_lost(self, ended: _Ended) -> bool:
        """Whether a lost line, which no later one shows, may be why a rule seems to be broken."""
        rule, begin = ended.violation.rule, ended.violation.begin.revision
        cluster, may_lack = self.cluster, self._lost.may_lack
        if self._may_be_absent(ended):
            return True
        is_by_devices = rule in BY_DEVICES and may_lack("resourceslices", begin)
        if is_by_devices and not all(cluster.keeps_devices(pool, begin) for pool in ended.pools):
            return True
        if rule == admin.RULE and may_lack(admin.NAMESPACES, begin):
            spaces = [each for each in ended.violation.objects if each.resource == admin.NAMESPACES]
            return not all(cluster.is_told_after(each, begin) for each in spaces)
        loses_rules = may_lack("devicetaintrules", begin)
        if rule == "eviction-has-taint":
            is_left = loses_rules and cluster.has_left_rule(begin)
            return is_left or self._excludes_rules(ended.violation.begin) is not True
        may_end = loses_rules or doubts.ENDS in cluster.lacking
        return (
            rule == "placement-respects-taints"
            and may_end
            and any(
                key.resource in _RULING and not cluster.is_told_after(key, begin)
                for key in ended.violation.objects
            )
        )

    @property
    def lacks_rules(self) -> bool:
        """Whether an eviction shows that there were rules, of which none was recorded.

        What redra wrote itself is all there.
        """
        return self.cluster.lacks_rules and self._lost.follows_any

    def last_lost(self) -> Mapping[ObjectKey, Instant]:
        """The claims that may have got devices in a lost last line, since when; ask at the end."""
        claims = self.cluster.claims
        return {
            key: since
            for each in self.violations()
            for key, since in self._missing.last_lost(self.cluster, each).items()
            if claims[key].allocation is None
        }

    def _excludes_rules(self, begin: Moment) -> bool | None:
        """Whether no rule without a line can have evicted; None if later lines may decide that."""
        is_lossy = self._lost.may_lack("devicetaintrules")
        return self.cluster.excludes_rules(begin, self._time, is_lossy=is_lossy)

    def _is_vain(self, violation: Violation) -> bool:
        """Whether the violation misses a pod although the recording may contain no pods at all."""
        is_about_pods = violation.rule == NEEDS_PODS and violation.kind.is_failure
        return is_about_pods and "pods" not in self.cluster.latest

    def _is_unsettled(self, ended: _Ended) -> bool:
        """Whether lines that follow may show that a rule is broken which is in doubt now."""
        violation = ended.violation
        is_eviction, is_failure = violation.rule == "eviction-has-taint", violation.kind.is_failure
        is_open = is_eviction and self._excludes_rules(violation.begin) is None
        is_open |= self._missing.looks.is_open(violation)
        return (is_failure and (is_open or self._may_be_absent(ended))) or self._is_vain(violation)

    def _violation(
        self, place: Place, each: _OpenViolation, end: Moment | None, now: Instant = Instant(0)
    ) -> _Ended | None:
        """The violation; None if a controller restored the state in time."""
        until = max(self._time, now) if end is None else end.time
        made = self._made(place, each, end)
        if each.kind is ViolationKind.LATE and until - each.begin.time < LATE_AFTER:
            return None
        lively = until - each.begin.time - self._silences.since(each.begin.time)
        if made.kind is ViolationKind.LATE and lively < LATE_AFTER:
            made = replace(made, kind=ViolationKind.UNSURE, doubt=SILENT)
        absent = Absence()
        if place[0] in (ORDERED, NEEDS_PODS):
            last = None if end is None else end.revision
            begin = each.begin.revision
            absent = absence(self.cluster, each.objects, begin, last, together=each.together)
        return _Ended(made, each.pools, each.unless, absent)

    def _may_be_absent(self, ended: _Ended) -> bool:
        """Whether a rule seems to be broken because a write is not recorded that has to follow."""
        return self._missing.may_explain(self.cluster, ended.violation, ended.absence)

    def _made(self, place: Place, each: _OpenViolation, end: Moment | None) -> Violation:
        kind, doubt = each.kind, UNDECIDED if each.kind is ViolationKind.UNSURE else ""
        if each.is_doubted:
            kind, doubt = ViolationKind.UNSURE, INCOMPLETE
        return Violation(
            rule=str(place[0]),
            kind=kind,
            objects=tuple(sorted(each.objects)),
            message=each.message,
            begin=each.begin,
            end=end,
            doubt=doubt,
            uses=tuple(each.uses),
        )
