"""The state of a cluster that the rules read, and the cells that an event touched."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from msgspec import Raw

from app.analysis.verify.invariants import reading
from app.analysis.verify.invariants.known import KnownClaim, KnownNamespace, KnownPod
from app.analysis.verify.invariants.placements import Switches
from app.analysis.verify.invariants.pools import Pool
from app.analysis.verify.invariants.queues import WAIT_MAX, Queues
from app.analysis.verify.invariants.reading import Result
from app.analysis.verify.invariants.rule_statuses import RuleStatuses
from app.analysis.verify.invariants.stock import Evictor, Stock
from app.analysis.verify.invariants.unseen import GROUP, Unseen, is_shown
from app.analysis.verify.invariants.violations import (
    CLOCK_TOLERANCE,
    IN_FLIGHT,
    Finding,
    Moment,
    Place,
)
from app.domain.log import Event, EventType, ObjectKey, Revision, doubts
from app.domain.log.records import Loss
from app.domain.log.store_versions import WriteSpan
from app.domain.values.timestamps import Instant

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"

LISTED = "baseline"
"""The verb of events for objects that existed before the recording began."""

OBJECT = "object"
"""The first part of the cell for faults of an object's writes themselves."""

Cell = KnownClaim | KnownPod | Pool | tuple[Pool | str, Any]
"""The unit that is judged as a whole: a claim, a pod, a pool with its counters, a device (pool and
name), or the writes of an object (`OBJECT` and its key)."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A deleted pod: when it went, its claims, and whether its version places it (`is_placed`)."""

    time: Instant
    claims: tuple[ObjectKey, ...]
    is_placed: bool


_NEVER = Revision(2**62)
"""A revision that no event has."""

_DATED = frozenset(("resourceslices", "resourceslicepatches", "devicetaintrules"))
"""The kinds whose taints have times, by which the pods of others are evicted."""


class Cluster:
    """The state, and the cells that have to be judged again (`dirty`).

    Most events break nothing. So a cell is dirty only when something in it may be broken, or when
    it is in `open`, the cells in which something was broken when they were last judged. `lacking`
    are the resources of which the recording may lack whole objects, and `doubts.TIMES`. `namers`
    are the users who wrote the names of generated claims into pods: claim controllers.
    `chosen_from` gives the earliest instant at which the last allocation may have been chosen.
    `published` has the last write of each slice, rule, patch and namespace, `latest` that of each
    kind which may decide about others, `lives` the first and last line about each of them, by key
    and uid.
    `shown` has what is immutable of a slice or template, as of its last state that was recorded
    itself, where a later one was not (None when there is no such state). `specs` has the uid, the
    generation and the spec of the last such state of a slice, rule, patch or class, `ending` the
    uid and the metadata of the last one of each object that is being deleted, `answers` the uid
    and the status of the last one of an answered request for the status of pools. `evictors` are
    the taints that evicted the pod that was marked for deletion at a revision, if they are known.
    `unready` are the claims whose devices were not ready since they got them, `early` the times
    in which a lost report of them may have come before a pod was bound to them.
    `counts` when a new object of devices had a generation, `ranks` while each new pod had a
    priority.
    `odd_times` are the objects of lines whose times contradict others.
    """

    def __init__(self, switches: Switches, lacking: frozenset[str] = frozenset()) -> None:
        self.switches = switches
        self._later = deque(switches.later)
        self._past: list[tuple[Revision, Switches]] = []
        self.turns_at = self._later[0][0] if self._later else _NEVER
        self.lacking = lacking
        self.stock = Stock(has_patched_devices=switches.patches)
        self.queues = Queues()
        self.claims: dict[ObjectKey, KnownClaim] = {}
        self.pods: dict[ObjectKey, KnownPod] = {}
        self.templates: dict[ObjectKey, tuple[str, Raw]] = {}
        self.labels: dict[str, Mapping[str, Any]] = {}
        self.namespaces: dict[str, KnownNamespace] = {}
        self.published: dict[ObjectKey, Revision] = {}
        self.latest: dict[str, Revision] = {}
        self.lives: dict[ObjectKey, dict[str, tuple[Revision, Revision]]] = {}
        self.rule_statuses = RuleStatuses()
        self.shown: dict[ObjectKey, Any] = {}
        self.specs: dict[ObjectKey, tuple[str, bytes]] = {}
        self.answers: dict[ObjectKey, tuple[str, Raw]] = {}
        self.ending: dict[ObjectKey, tuple[str, reading.EndingMetadata]] = {}
        self.namers: set[str] = set()
        self.counts, self.ranks = False, True
        self.caused: list[KnownClaim] = []
        self.chosen_from: Callable[[], Instant] = partial(Instant, 0)
        self.leaving: list[KnownClaim | KnownPod] = []
        self.unseen = Unseen()
        self.lossy, self.gaps = self.unseen.lossy, self.unseen.gaps
        self.faults: dict[ObjectKey, dict[Place, Finding]] = {}
        self.evictors: dict[Revision, tuple[Evictor, ...]] = {}
        self.unready: dict[ObjectKey, Any] = {}
        self.early: dict[tuple[ObjectKey, ObjectKey], WriteSpan] = {}
        self.odd_times: set[ObjectKey] = set()
        self.dirty: set[Cell] = set()
        self.open: dict[Cell, Any] = {}
        self._alike: dict[tuple[Evictor, ...], tuple[Evictor, ...]] = {}
        self._gone: dict[tuple[ObjectKey, str], Gone] = {}
        self._gone_order: deque[tuple[Instant, tuple[ObjectKey, str]]] = deque()

    def turn(self, revision: Revision) -> None:
        """Takes the switches of a revision, which is not before `turns_at`."""
        while self._later and self._later[0][0] <= revision:
            since, switches = self._later.popleft()
            self._past.append((since, self.switches))
            self.switches = switches
        self.turns_at = self._later[0][0] if self._later else _NEVER
        stock, has_patched_devices = self.stock, self.switches.patches
        if stock.patches and stock.has_patched_devices is not has_patched_devices:
            self.note_devices()
        stock.has_patched_devices = has_patched_devices

    def expect(self, later: Iterable[tuple[Revision, Switches]]) -> None:
        """Sets the switches of revisions that follow."""
        self._later = deque(later)
        self.turns_at = self._later[0][0] if self._later else _NEVER

    def claim(self, namespace: str, name: str) -> KnownClaim:
        """A claim that another object names, whether it exists or not."""
        place = (GROUP, "resourceclaims", namespace, name)
        # A plain tuple is an equal key, and cheaper.
        claim = self.claims.get(cast(ObjectKey, place))
        if claim is None:
            key = ObjectKey(*place)
            claim = self.claims[key] = KnownClaim(key)
        return claim

    def pod(self, namespace: str, name: str) -> KnownPod:
        """A pod that another object names, whether it exists or not."""
        place = ("", "pods", namespace, name)
        pod = self.pods.get(cast(ObjectKey, place))
        if pod is None:
            key = ObjectKey(*place)
            pod = self.pods[key] = KnownPod(key)
        return pod

    def drop(self, known: KnownClaim | KnownPod) -> None:
        """Forgets a claim or pod that does not exist and is not named.

        A dirty one is judged first. Where rules are broken, the event may end that: the judgement
        reads when the claim was last written.
        """
        if known in self.dirty or self.open:
            self.leaving.append(known)
        else:
            self._forget(known)

    def drop_leaving(self) -> None:
        """Forgets the claims and pods that had to be judged first."""
        leaving, self.leaving = self.leaving, []
        for known in leaving:
            if known in self.open:
                self.leaving.append(known)
            else:
                self._forget(known)

    def _forget(self, known: KnownClaim | KnownPod) -> None:
        if known.is_there:
            return
        if isinstance(known, KnownClaim):
            if not known.users:
                self.claims.pop(known.key, None)
        elif not known.reservers:
            self.pods.pop(known.key, None)

    def hold(self, claim: KnownClaim, results: Iterable[Result]) -> None:
        """Adds devices to a claim; marks those that are shared or do not exist to be judged."""
        for result in results:
            if result.admin_access:
                continue
            pool = self.stock.pool_of(result.driver, result.pool)
            name = result.device
            held = pool.hold(claim, result)
            if len(held) > 1 or result.consumed_capacity or name not in pool.devices:
                self.dirty.add((pool, name))
            if self.open or pool.limits:
                self._note_counters(pool, name)

    def release(self, claim: KnownClaim, results: Iterable[Result]) -> None:
        """Removes devices from a claim, and marks those to be judged that still have holders."""
        for result in results:
            if result.admin_access:
                continue
            pool = self.stock.pool_of(result.driver, result.pool)
            name = result.device
            if pool.release(claim, result):
                self.dirty.add((pool, name))
            if self.open or pool.limits:
                self._note_counters(pool, name)

    def note_pools(self, pools: Iterable[Pool]) -> None:
        """Marks cells of changed pools to be judged: counters, and devices in use.

        Of those devices only the shared, missing and open ones can be at fault.
        """
        for pool in pools:
            for name, held in pool.holders.items():
                is_shared = len(held) > 1 or name in pool.consumed
                if is_shared or name not in pool.devices or (pool, name) in self.open:
                    self.dirty.add((pool, name))
            if pool.holders and (pool.limits or pool in self.open):
                self.dirty.add(pool)

    def note_devices(self) -> None:
        """Marks all devices in use to be judged, when patches change them or no longer do."""
        for pool in self.stock.pools.values():
            self.dirty.update((pool, device) for device in pool.holders)

    def _note_counters(self, pool: Pool, device: str) -> None:
        """Marks open cells and overdrawn counters to be judged, after a hold or release."""
        if pool.limits and pool.is_overdrawn(device):
            self.dirty.add(pool)
        if self.open:
            if pool in self.open:
                self.dirty.add(pool)
            if (pool, device) in self.open:
                self.dirty.add((pool, device))

    def is_doubted(self, finding: Finding) -> bool:
        """Whether an object that decided the finding may differ from its known state.

        Where times contradict the order of changes, a finding that depends on a duration is in
        doubt, too: any, or if the times of a single line do, one about its object.
        """
        if finding.reads_times and (doubts.TIMES in self.lacking or self._has_odd_time(finding)):
            return True
        if not (self.lossy or self.gaps or self.unseen.pools):
            return False
        if self.unseen.covers_any(key for key in finding.objects if key not in finding.unread):
            return True
        if finding.reads_patches and self.switches.patches:
            kind = "resourceslicepatches"
            if self.unseen.has_gap(kind) or self.unseen.lossy_of(kind):
                return True
        return any(self.is_pool_doubted(pool) for pool in finding.pools)

    def _has_odd_time(self, finding: Finding) -> bool:
        """Whether a line about an object that decided the finding has a time that contradicts."""
        return any(key in finding.objects or key.resource in _DATED for key in self.odd_times)

    def is_pool_doubted(self, pool: tuple[str, str]) -> bool:
        """Whether the pool may have other devices than the known ones.

        A slice that could not be read may belong to any pool.
        """
        unseen, stock = self.unseen, self.stock
        for key in unseen.lossy_of("resourceslices"):
            place = stock.slices.get(key)
            if place is None or place.pool == pool or not all(place.pool):
                return True
        known = stock.pools.get(pool)
        is_complete = known is not None and known.is_complete
        if pool in unseen.pools and not is_complete:
            return True
        if not unseen.has_gap("resourceslices"):
            return False
        if known is None or not is_complete:
            return True
        newest = {each.name for each in known.newest()}
        return unseen.covers_any(key for key in known.slices if key.name in newest)

    def last_write(self, key: ObjectKey) -> Revision:
        """The last recorded write of a claim or of what is published; 0 where that is not known."""
        claim = self.claims.get(key)
        if claim is not None:
            return claim.written if claim.is_there else Revision(0)
        return self.published.get(key, Revision(0))

    def has_published_since(self, revision: Revision) -> bool:
        """Whether a slice or patch was written or deleted after a revision."""
        latest, never = self.latest, Revision(0)
        kinds = ("resourceslices", "resourceslicepatches")
        return max(latest.get(kind, never) for kind in kinds) > revision

    def note_published(self, event: Event) -> bool:
        """Notes a write or deletion of what is in `published`; True for one seen as a whole."""
        key, revision = event.key, event.revision
        self.latest[key.resource] = revision
        lives = self.lives.setdefault(key, {})
        begin, _ = lives.get(event.uid, (revision, revision))
        if "synthetic_delete" not in losses_of(event):
            lives[event.uid] = begin, revision
        if event.type is EventType.OBJECT_DELETED:
            self.published.pop(key, None)
        elif not self.unseen.is_as_before(event):
            self.published[key] = revision
        return self.unseen.note_write(event)

    def is_told_after(self, key: ObjectKey, revision: Revision) -> bool:
        """Whether an object of `published` that existed at a revision is recorded after it.

        Then it did not end unseen before, and if it changed unseen, that shows.
        """
        lives = self.lives.get(key, {})
        return any(begin <= revision < last for begin, last in lives.values())

    def switches_at(self, revision: Revision) -> Switches:
        """The switches of a past revision."""
        return next((past for until, past in self._past if revision < until), self.switches)

    @property
    def lacks_rules(self) -> bool:
        """Whether an eviction shows that there were rules, if any may have existed unrecorded."""
        return not self.stock.has_seen_rules and any(
            self.switches_at(revision).may_have_rules
            for revision in self.rule_statuses.odd_evictions
        )

    def excludes_rules(self, begin: Moment, now: Instant, *, is_lossy: bool) -> bool | None:
        """Whether no rule without a line can have evicted at a moment.

        None if later lines may decide that. `is_lossy` when lines about rules may be lost.
        """
        statuses, switches = self.rule_statuses, self.switches_at(begin.revision)
        if not switches.may_have_rules or statuses.knew_rules(begin):
            return True
        if not self.lacking.isdisjoint((doubts.ENDS, doubts.TIMES)):
            return False
        return None if is_lossy else statuses.exclude(begin, now)

    def has_left_rule(self, revision: Revision) -> bool:
        """Whether a rule that existed at a revision is in no line after it."""
        return any(
            key.resource == "devicetaintrules"
            and any(begin <= revision and last <= revision for begin, last in lives.values())
            and key in self.stock.rules
            for key, lives in self.lives.items()
        )

    def keeps_devices(self, pool: tuple[str, str], revision: Revision) -> bool:
        """Whether later lines show that a pool has had its known devices since a revision."""
        known = self.stock.pools.get(pool)
        if known is None or not known.is_complete:
            return False
        newest = {each.name for each in known.newest()}
        keys = [key for key in known.slices if key.name in newest]
        return all(self.is_told_after(key, revision) for key in keys)

    def last_shown(self, event: Event, known: Any) -> Any:
        """The immutable part of a slice or template, to be compared with its state in the event.

        That is as of its last state that was recorded itself; `known` is as of the last state. None
        when there is nothing to compare: no such state is known, or the event shows none itself.
        """
        shown, key = self.shown, event.key
        origin = event.stamp.origin
        if not is_shown(origin) or not event.uid:
            shown.setdefault(key, known)
            return None
        return shown.pop(key, known) if shown else known

    def note_fault(self, key: ObjectKey, place: Place, finding: Finding) -> None:
        """Notes a fault of a write itself; the fault remains as long as the object exists."""
        self.faults.setdefault(key, {})[place] = finding
        self.dirty.add((OBJECT, key))

    def note_evictors(self, revision: Revision, evictors: tuple[Evictor, ...]) -> None:
        """Notes which taints evicted the pod that is marked at a revision; most evict many."""
        self.evictors[revision] = self._alike.setdefault(evictors, evictors)

    def forget_faults(self, key: ObjectKey) -> None:
        """Forgets the faults of an object that is gone or was replaced by a new one."""
        if self.faults and self.faults.pop(key, None) is not None:
            self.dirty.add((OBJECT, key))

    def forget_states(self) -> None:
        """Forgets the states that later ones are compared with."""
        self.specs.clear()
        self.answers.clear()
        self.ending.clear()

    def note_gone(self, pod: KnownPod, event: Event) -> None:
        """Remembers a deleted pod for a while: other writers may not have seen the deletion.

        Where durations are unknown, each deleted pod is remembered for good.
        """
        order, gone, now = self._gone_order, self._gone, event.stamp.time
        until = now - WAIT_MAX - IN_FLIGHT
        while order and order[0][0] < until and doubts.TIMES not in self.lacking:
            time, place = order.popleft()
            if place in gone and gone[place].time == time:
                del gone[place]
        place = pod.key, pod.uid
        order.append((now, place))
        claims = tuple([claim.key for claim in pod.claims])
        gone[place] = Gone(now, claims, "no_rv" not in losses_of(event))

    def has_lost_unnamed(self, key: ObjectKey, since: Instant) -> bool:
        """Whether a pod of that name was deleted since then whose uid was not recorded."""
        gone = self._gone.get((key, ""))
        return gone is not None and gone.time >= since

    def claims_of_gone(
        self, key: ObjectKey, uid: str, since: Instant
    ) -> tuple[ObjectKey, ...] | None:
        """The claims of a pod that was deleted since then; None for any other pod."""
        gone = self._gone.get((key, uid))
        return None if gone is None or gone.time < since else gone.claims

    def went_before(self, key: ObjectKey, uid: str, instant: Instant) -> bool:
        """Whether a pod certainly no longer existed at an instant, or never existed until now.

        The order of versions does not depend on clocks.
        """
        gone = self._gone.get((key, uid))
        if gone is not None:
            return gone.is_placed and gone.time < instant
        pod = self.pods.get(key)
        return pod is None or not pod.is_there or pod.uid != uid


def is_same(uid: str, other: str) -> bool:
    """Whether two writes may be about the same object: equal uids, or one is unknown."""
    return uid == other or not uid or not other


def losses_of(event: Event) -> tuple[str, ...]:
    """The losses of an event: what the recording lacks of it."""
    origin = event.stamp.origin
    return () if origin is None else origin.losses


def may_be_swapped(pod: KnownPod, one: Event, other: Event) -> bool:
    """Whether only its time placed one of two writes before or after the other one.

    A binding is answered without a version, and so are some deletions. Their place among the writes
    of other objects is a guess from their times. Writes of the same object that have a version
    bound it. Parity: history-formats.md 4.5.

    `one` came before `other`, as recorded. API servers date what they answer, so times that are
    less apart than clocks may differ tell no order. Where times contradict the order, no two clocks
    do; but two writes of the same user have the same clock, right or corrected, unless only one of
    them was corrected.
    """
    corrected = [Loss.TIMES_CONTRADICT in losses_of(each) for each in (one, other)]
    is_one_clock = one.stamp.actor.user == other.stamp.actor.user and len(set(corrected)) == 1
    guessed = [each.key for each in (one, other) if Loss.NO_RV in losses_of(each)]
    if guessed and any(corrected) and not is_one_clock:
        return True
    return (
        one.key != other.key
        and pod.key in guessed
        and pod.placed <= one.revision
        and other.stamp.time - one.stamp.time < CLOCK_TOLERANCE
    )
