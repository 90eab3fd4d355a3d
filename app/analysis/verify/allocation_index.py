"""An index of later events, which the check of recorded allocations needs in advance."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.analysis.verify.handovers import Handovers
from app.analysis.verify.invariants.queues import SENT, Queues
from app.analysis.verify.nominations import PodNominations
from app.domain.log import Event, EventType, ObjectKey, Revision, doubts
from app.domain.log.lost_lines import LostLines
from app.domain.log.raw_parts import RawClaim, RawPod
from app.domain.log.records import Loss
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from projections import outlines

_NEVER = Revision(2**62)
_LISTED = "baseline"
"""The verb of an object that a recording found there."""

NEEDED = (
    api_resources.NODES,
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_SLICES,
)
"""Kinds that every recorder follows and on which an allocation rests."""

RESTED_ON = frozenset((*NEEDED, api_resources.RESOURCE_SLICE_PATCHES))
"""Kinds of which an unseen write may change an allocation."""

_PUBLISHED = frozenset((api_resources.RESOURCE_SLICES, api_resources.DEVICE_TAINT_RULES))
"""Kinds of which an allocation is asked whether they are shown later."""


_SELECTED = frozenset(
    (
        api_resources.RESOURCE_SLICES,
        api_resources.RESOURCE_SLICE_PATCHES,
        api_resources.DEVICE_CLASSES,
    )
)
"""Kinds that decide whether a device matches the selectors of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An allocation found while reading ahead: when, by whom and what."""

    revision: Revision
    time: Instant
    key: ObjectKey
    uid: str
    allocation: JsonObject
    decided_from: Instant = Instant(0)
    """The earliest instant at which the allocation may have been chosen."""
    made: Revision = Revision(0)
    """When the claim was made, if its allocation can only have been chosen after that; else 0."""
    is_placed: bool = True
    """Whether the revision is known, and not a guess from a time."""
    chosen_by: Revision = Revision(0)
    """The nomination of the pod, before which the allocation was chosen; 0 if it is not known."""
    user: str = ""
    """The user that allocates, if the nomination is known."""
    entered: Revision = Revision(0)
    """When the last of the claim and its pod was made, before which nothing is chosen; or 0."""

    @property
    def claim(self) -> JsonObject:
        """The claim as far as the allocated state looks at it."""
        metadata = {"namespace": self.key.namespace, "name": self.key.name, "uid": self.uid}
        return {"metadata": metadata}

    @property
    def as_object(self) -> JsonObject:
        """The claim as far as a judge of devices looks at it."""
        return {**self.claim, "status": {"allocation": self.allocation}}


class UnplacedEnd(NamedTuple):
    """The end of a pod that had no node by then.

    Requests for it that were made since `open_since` may not have been sent by then.
    """

    revision: Revision
    time: Instant
    key: ObjectKey
    uid: str
    open_since: Instant


class Unrecorded(NamedTuple):
    """Writes of an object or a kind that only a later event reveals: between two revisions."""

    key: ObjectKey
    after: Revision
    before: Revision


class AllocationIndex:
    """The knowledge of later events: where pods ended up, which allocations come later, and which
    writes were not recorded.

    `shown` are the last writes of slices and rules, by key and uid; `slices` the first ones of
    slices, and `pools` the pools of those that are first seen when they change. Of the objects in
    `last_lost` only the last write is not recorded. `lacks_rules` tells that there were
    DeviceTaintRules, and that none was recorded; `lacks_ends` that deletions were left out,
    `lacks_times` that times contradict the order.
    """

    def __init__(self, *, lacks_ends: bool = False, lacks_times: bool = False) -> None:
        self.node_of_pod: dict[str, str] = {}
        self.written: list[Written] = []
        self._allocators: set[str] = set()
        self.queues = Queues()
        self._nominations, self._handovers = PodNominations(), Handovers()
        self._pods_made: dict[str, Revision] = {}
        self.unplaced: list[UnplacedEnd] = []
        self.unrecorded: list[Unrecorded] = []
        self.last_lost: set[ObjectKey] = set()
        self.lost = LostLines(lacks_ends=lacks_ends)
        self.shown: dict[tuple[ObjectKey, str], Revision] = {}
        self.lacks_rules, self.lacks_ends, self.lacks_times = False, lacks_ends, lacks_times
        self.slices: dict[ObjectKey, Revision] = {}
        self.pools: dict[ObjectKey, PoolId] = {}
        self.ends_at = Instant(0)
        self._changes: dict[ObjectKey, array[int]] = {}
        self._allocated: set[ObjectKey] = set()
        self._seen: dict[ObjectKey, Revision] = {}
        self._latest: dict[tuple[str, str], Revision] = {}
        self._makers: dict[str, tuple[Revision, str]] = {}

    def after(self, revision: Revision) -> "AllocationIndex":
        """The part that is needed to check the events after a revision; nothing is added to it."""
        index = AllocationIndex(lacks_ends=self.lacks_ends, lacks_times=self.lacks_times)
        index.node_of_pod = self.node_of_pod
        index.written = [later for later in self.written if later.revision > revision]
        index.unplaced = self.unplaced
        index.unrecorded, index.last_lost = self.unrecorded, self.last_lost
        index.lost, index.shown, index.slices = self.lost, self.shown, self.slices
        index.pools, index.lacks_rules = self.pools, self.lacks_rules
        index.ends_at, index._changes = self.ends_at, self._changes
        index.queues, index._allocators = self.queues, self._allocators
        index._handovers = self._handovers
        index._makers, index._pods_made = self._makers, self._pods_made
        return index

    def become(self, index: "AllocationIndex") -> None:
        """Hold what another index holds, for all that read this one."""
        vars(self).update(vars(index))

    def add(self, event: Event, parts: Any) -> None:
        """Read one event of the first pass, which a page has split into parts."""
        self.note_sent(event, parts)
        key = event.key
        if event.stamp.origin is not None:
            self.lost.follow(event)
        if event.stamp.time > self.ends_at:
            self.ends_at = event.stamp.time
        if isinstance(parts, RawPod):
            self._note_node(event.uid, parts.spec.node_name)
            self._nominations.note(event, parts, is_placed=is_placed(event))
            if event.type is EventType.OBJECT_CREATED and _is_creation(event):
                self._pods_made[event.uid] = event.revision
            self._seen[key] = event.revision
            return
        if event.type is EventType.GAP_OBSERVED:
            self._note_gap(event)
        elif key[:2] in RESTED_ON:
            self._note_first(event)
            self._latest[key[:2]] = event.revision
            if key[:2] == api_resources.RESOURCE_SLICES:
                self.slices.setdefault(key, event.revision)
                if _is_first_seen(event):
                    self.pools[key] = _pool_of(event.object)
            if key[:2] in _SELECTED and event.type is not EventType.OBJECT_CREATED:
                self._note_change(event)
            if key[:2] in _PUBLISHED and _is_recorded(event):
                self.shown[key, event.uid] = event.revision
        if key[:2] in RESTED_ON:
            self._seen[key] = event.revision
        if isinstance(parts, RawClaim):
            if event.type is EventType.OBJECT_CREATED:
                self._note_maker(event)
            if not outlines.is_allocated(parts):
                self._allocated.discard(key)
            elif key not in self._allocated:
                self._allocated.add(key)
                self._allocators.add(event.stamp.actor.user)
                self.written.append(self._written(event, parts))
        elif event.type is EventType.OBJECT_DELETED:
            place = key[:2]
            is_unseen_end = self.lacks_ends and not _is_recorded(event)
            if is_unseen_end and self.unrecorded and self.unrecorded[-1].key == key:
                # Its end alone is missing.
                self.unrecorded.pop()
            if place == api_resources.RESOURCE_CLAIMS:
                self._allocated.discard(key)
            elif place == api_resources.PODS:
                # Of a recording this may be the only sight of the pod.
                node = outlines.pod(event.body).spec.node_name
                self._note_node(event.uid, node)
                if not node:
                    now = event.stamp.time
                    end = UnplacedEnd(event.revision, now, key, event.uid, self.open_since(now))
                    self.unplaced.append(end)

    def note_sent(self, event: Event, parts: Any = None) -> None:
        """Note that a request was sent, whether it was refused or not."""
        self.queues.note(event, parts)
        if event.key.resource in SENT:
            self._handovers.note_write(event.stamp.actor.user, event.revision, event.stamp.time)
        elif event.is_about_object:
            self._handovers.note_lease(event, event.stamp.time)

    def note_last_lost(self, key: ObjectKey, after: Revision) -> None:
        """Note that an object has one more write after a revision, which no line shows."""
        self.last_lost.add(key)
        self.unrecorded.append(Unrecorded(key, after, _NEVER))

    def written_before(self, instant: Instant) -> Revision:
        """The last allocation that was written before an instant; 0 without one."""
        earlier = (each.revision for each in self.written if each.time < instant)
        return max(earlier, default=Revision(0))

    def chosen_from(self, revision: Revision) -> Instant | None:
        """The earliest instant at which the allocation written at a revision may be chosen.

        None if there is no such allocation.
        """
        written = self._written_at(revision)
        return None if written is None else written.decided_from

    def chosen_by(self, revision: Revision) -> Revision:
        """The nomination before which the allocation written at a revision was chosen, or 0.

        Where lines are lost, the refusal of a pod may be among them, after which it is tried anew.
        """
        written = self._written_at(revision)
        return Revision(0) if written is None or self.lost.has_any else written.chosen_by

    def may_be_chosen_anew(self, revision: Revision) -> bool:
        """Whether another scheduler may have taken over after that nomination, and chosen anew."""
        written = self._written_at(revision)
        if written is None or not written.chosen_by:
            return False
        return self._handovers.may_lie_between(written.user, written.chosen_by, revision)

    def entered(self, pod: str, claims: Iterable[str]) -> Revision:
        """The revision of the last creation among a pod and its claims that no scheduler makes."""
        made = [self._pods_made.get(pod, Revision(0))]
        for uid in claims:
            revision, maker = self._makers.get(uid, (Revision(0), ""))
            made.append(Revision(0) if maker in self._allocators else revision)
        return max(made)

    def open_since(self, now: Instant) -> Instant:
        """The earliest instant from which requests of a scheduler may still wait to be sent."""
        return min((self.queues.begun(user, now) for user in self._allocators), default=now)

    def made_at(self, number: int) -> Revision:
        """The creation of the claim of the last of so many allocations; 0 if perhaps afterwards."""
        return self.written[number - 1].made if number else Revision(0)

    def unseen_at(self, revision: Revision) -> set[ObjectKey]:
        """The objects that may have been written unseen before a revision, as later lines show."""
        return {gap.key for gap in self.unrecorded if gap.after < revision < gap.before}

    def is_shown_after(self, key: ObjectKey, uid: str, revision: Revision) -> bool:
        """Whether a later line shows the object: it has not ended, nor changed unnoticed."""
        return self.shown.get((key, uid), Revision(0)) > revision

    def is_changed_between(self, key: ObjectKey, begin: Instant, end: Instant) -> bool:
        """Whether a slice, patch or class changed or ended after an instant, and not after another.

        Without a name: whether any object of the kind was deleted.
        """
        times = self._changes.get(key, ())
        return any(begin < time <= end for time in times)

    def _written(self, event: Event, parts: RawClaim) -> Written:
        """The allocation that an event writes."""
        uids, user = outlines.pods_of(parts), event.stamp.actor.user
        decided_from, made = self.queues.decided_from(event, uids), self._made(event)
        pod = uids[0] if len(uids) == 1 else ""
        chosen_by = self._nominations.of(pod, user, decided_from)
        return Written(
            revision=event.revision,
            time=event.stamp.time,
            key=event.key,
            uid=event.uid,
            allocation=outlines.allocation_of(parts),
            decided_from=decided_from,
            made=made,
            chosen_by=chosen_by,
            user=user if chosen_by else "",
            entered=max(made, self._pods_made.get(pod, Revision(0))),
        )

    def _written_at(self, revision: Revision) -> Written | None:
        """The allocation that was written at a revision."""
        number = bisect_left(self.written, revision, key=lambda each: each.revision)
        written = self.written[number : number + 1]
        return written[0] if written and written[0].revision == revision else None

    def _note_change(self, event: Event) -> None:
        key = event.key
        kind = ObjectKey(key.group, key.resource, "", "")
        is_end = event.type is EventType.OBJECT_DELETED
        for place in (key, kind) if is_end else (key,):
            self._changes.setdefault(place, array("q")).append(event.stamp.time)

    def _note_gap(self, event: Event) -> None:
        """Remember since when writes may be missing, if the gap stands where they were noticed.

        A write without its body, or a stretch that begins at the gap, says nothing of before.
        """
        key = event.key
        if not key.resource or key[:2] == api_resources.PODS:
            self._nominations.forget()
        if doubts.is_undated(event):
            after = self._seen.get(key, Revision(0))
            self.lost.note(key, after)
            if key[:2] not in RESTED_ON:
                return
        elif key[:2] in RESTED_ON and doubts.is_late(event):
            after = self._latest.get(key[:2], Revision(0))
        else:
            return
        self.unrecorded.append(Unrecorded(key, after, event.revision))

    def _note_first(self, event: Event) -> None:
        """Remember that an object, or its kind, may have been recorded only since its first line.

        That is so if the line shows an object whose creation, since the log began, is not recorded,
        and of a slice that its first line changes, whenever it was made. One of a name that was
        seen before was made since then.
        """
        key = event.key
        if key in self._seen:
            if _is_first_seen(event):
                self.unrecorded.append(Unrecorded(key, self._seen[key], event.revision))
            return
        if self.lost.has_lost(key):
            kind = ObjectKey(key.group, key.resource, "", "")
            place = key if key[:2] in self._latest else kind
            self.unrecorded.append(Unrecorded(place, Revision(0), event.revision))
        elif key[:2] == api_resources.RESOURCE_SLICES and _is_first_seen(event):
            self.unrecorded.append(Unrecorded(key, Revision(0), event.revision))

    def _note_node(self, uid: str, node: str) -> None:
        if uid and node:
            self.node_of_pod[uid] = node

    def _note_maker(self, event: Event) -> None:
        """Remember who made a claim and when, where that is known."""
        if _is_creation(event):
            self._makers[event.uid] = event.revision, event.stamp.actor.user

    def _made(self, event: Event) -> Revision:
        """The creation of the claim that an event allocates; 0 if the choice may be older.

        A scheduler makes the claims for extended resources itself, after its choice.
        """
        made, maker = self._makers.get(event.uid, (Revision(0), ""))
        return made if maker != event.stamp.actor.user else Revision(0)


def _is_recorded(event: Event) -> bool:
    """Whether the recording shows the object itself: no end that was only concluded."""
    origin = event.stamp.origin
    return origin is None or Loss.SYNTHETIC_DELETE not in origin.losses


def _is_creation(event: Event) -> bool:
    """Whether an event that shows an object first tells when it was made."""
    return event.stamp.verb != _LISTED and is_placed(event) and not _is_first_seen(event)


def _is_first_seen(event: Event) -> bool:
    """Whether an object was there before its first line."""
    origin = event.stamp.origin
    return origin is not None and Loss.SYNTHETIC_CREATE in origin.losses


def _pool_of(slice_tree: JsonObject) -> PoolId:
    return dra.driver(slice_tree), dra.pool_name(slice_tree)


def is_placed(event: Event) -> bool:
    """Whether the place of an event in the order of writes is no guess."""
    origin = event.stamp.origin
    return origin is None or Loss.NO_RV not in origin.losses
