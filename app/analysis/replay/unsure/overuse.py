"""Recorded allocations that no order of events allows: a device given twice, a counter overdrawn.

Each is checked when its write is folded. Such a write is never a race: in any order, one of the
allocations should not have been made. So all claims that hold the device are named. If one of them
may have released it in an unrecorded write, none is named.

A scheduler decides before it nominates the node of a pod. So a device that was allocated before the
nomination, and given back after it, was not free when it was chosen; one that lost a taint after it
was tainted. Versions prove both. A pod that is refused after its nomination, or nominated anew, is
decided again; one that another user than the scheduler nominates is decided later, and so is one
that was nominated when it was refused: pre-emption may nominate it again in equal words. These
prove nothing. If the scheduler paused after the nomination, another process may have taken over
that chose anew: whether it did is not known, unless a Lease shows it.

Counters that were published differently after the choice prove nothing either: the invariants
judge whether they were overdrawn before.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.analysis.replay.acts import refusal_of, version_of
from app.analysis.replay.facts import consumers
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.lifted_taints import LiftedTaints
from app.analysis.replay.unsure.unready_bindings import UnreadyBindings
from app.analysis.verify.handovers import Handovers
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.analysis.views import LiveViews
from app.domain.allocation.counters import available_of
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import Pool
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

CHOSEN_ANEW = "an allocation that another scheduler may have chosen after the nomination"
"""The reason why it is not known whether a device was free when it was chosen."""

_NODE = ("status", "nominatedNodeName")


class _Nomination(NamedTuple):
    """The nomination of a pod: its version, its user, and its place among the events."""

    version: int = 0
    user: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overuse:
    """The overused resource, since when, and by which claims; the `accused` are named by uid.

    `chosen` is the nomination on which it rests that a device was not free, and `written` the place
    of the allocation among the events.
    """

    problem: str
    at: Instant
    holders: tuple[ObjectKey, ...]
    accused: tuple[str, ...]
    chosen: _Nomination | None = None
    written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The last allocation of a device that one claim can have: its claim, and the versions.

    `seen` is that of the last line of the claim with the device. With `is_lost`, the line that
    gives it back is lost, and only a later one shows that it was given back.
    """

    claim: ObjectKey
    given: int
    seen: int
    given_back: int = 0
    is_lost: bool = False


class OveruseAudit:
    """Checks each allocation of a recording that follows events; `lacks` gets each event first."""

    def __init__(self, views: LiveViews, lacks: Lacks) -> None:
        self._views = views
        self._lacks = lacks
        self._seen: list[_Overuse] = []
        self._nominated: dict[str, _Nomination] = {}
        self._renominated: set[str] = set()
        self._lifted = LiftedTaints()
        self._unready = UnreadyBindings(lacks)
        self._held: dict[DeviceId, _Held] = {}
        self._published: dict[PoolId, tuple[int, Instant]] = {}
        self.handovers, self._number = Handovers(), 0

    @property
    def unsure(self) -> Counter[str]:
        """The number of choices that are not judged, by the reason; ask for it at the end."""
        return Counter(CHOSEN_ANEW for each in self._seen if self._may_be_chosen_anew(each))

    def overused(self) -> Mapping[str, str]:
        """The overused resources, and devices of pods bound too early, by the uids of their claims.

        An unrecorded write may only show in a later event, so call this at the end.
        """
        problems = {**self._unready.problems()}
        for each in self._seen:
            if self._may_be_chosen_anew(each):
                continue
            if not any(self._may_have_given_back(key, each.at) for key in each.holders):
                for uid in each.accused:
                    problems.setdefault(uid, each.problem)
        return problems

    def _may_be_chosen_anew(self, each: _Overuse) -> bool:
        """Whether another scheduler may have taken over between the nomination and the write."""
        if each.chosen is None:
            return False
        return self.handovers.may_lie_between(each.chosen.user, each.chosen.number, each.written)

    def _may_have_given_back(self, holder: ObjectKey, at: Instant) -> bool:
        return self._lacks.was_unseen(holder, at) or self._lacks.may_have_changed_unseen(holder, at)

    def after(
        self, event: Event, before: JsonView | None, known: Instant, *, is_of_scheduler: bool
    ) -> None:
        """Checks an event that the views already contain; `before` is the object before it.

        Others could see the event from instant `known` on.
        """
        self._number += 1
        self.handovers.note_lease(event, known)
        if is_of_scheduler:
            self.handovers.note_write(event.stamp.actor.user, self._number, known)
        self._unready.after(event, before, known)
        if event.key[:2] == api_resources.PODS:
            self._note_nomination(event, before or {})
        elif event.key[:2] == api_resources.RESOURCE_SLICES:
            self._lifted.after(event, before or {})
            if event.type is EventType.OBJECT_DELETED or _counted(event.object) != _counted(before):
                self._published[dra.pool_id(event.object)] = version_of(event), known
        if event.key[:2] != api_resources.RESOURCE_CLAIMS:
            return
        if dra.allocation(before or {}):
            self._note_given_back(event, before or {}, known)
        if event.type is EventType.OBJECT_DELETED:
            return
        given = dra.result_trees(event.object)
        if not given or (before is not None and given == dra.result_trees(before)):
            return
        for problem, holders, is_named in self._problems(event, known):
            keys = tuple(_key_of(claim) for claim in holders)
            if any(self._lacks.was_unseen(key, known) for key in keys if key != event.key):
                continue
            named = tuple(self._uid_of(key) for key in keys) if is_named else ()
            self._seen.append(
                _Overuse(problem=problem, at=known, holders=keys, accused=(event.uid, *named))
            )

        if not dra.allocation(before or {}):
            self._check_choice(event, known)

    def _note_nomination(self, event: Event, before: JsonView) -> None:
        """Notes the version of the nomination of a pod, until it may be decided again.

        A pod that was deleted is not: its claims are written all the same.
        """
        if event.type is EventType.OBJECT_DELETED:
            return
        node, was = (json_tree.text(tree, *_NODE) for tree in (event.object, before))
        is_refused = refusal_of(event.object) not in (None, refusal_of(before))
        if (is_refused and (node or was)) or (was and node != was):
            self._nominated.pop(event.uid, None)
            self._renominated.add(event.uid)
        elif node and not was and before and event.uid not in self._renominated:
            user = event.stamp.actor.user
            self._nominated[event.uid] = _Nomination(version_of(event), user, self._number)

    def _note_given_back(self, event: Event, before: JsonView, known: Instant) -> None:
        """Notes which devices an event gives back, and that a lost line did so before."""
        is_gone = event.type is EventType.OBJECT_DELETED
        is_kept = not is_gone and dra.allocation(event.object) is not None
        is_lost = not is_kept and self._lacks.was_unseen(event.key, known)
        version = version_of(event)
        for result in dra.results(before):
            held = self._held.get(result.id)
            if held is not None and held.claim == event.key:
                self._held[result.id] = (
                    replace(held, seen=version)
                    if is_kept
                    else replace(held, given_back=version, is_lost=is_lost)
                )

    def _was_held(self, held: _Held, chosen: int) -> bool:
        """Whether a device is proved to have been held at a version, and given back later.

        If the line that gives it back is lost, it has one of the versions that no line has.
        """
        if not 0 < held.given < chosen < held.given_back:
            return False
        is_lost = held.is_lost and held.seen < chosen
        return not is_lost or self._lacks.versions.are_all_recorded(held.seen, chosen)

    def _chosen(self, event: Event) -> _Nomination:
        """The nomination before which the devices of a new allocation were chosen, if known."""
        nominations = (self._nominated.get(uid, _Nomination()) for uid in consumers(event.object))
        user = event.stamp.actor.user
        return max((each for each in nominations if each.user == user), default=_Nomination())

    def _may_change_after(self, chosen: int, pool: PoolId, known: Instant) -> bool:
        """Whether counters of a pool may have been others at a choice before a version."""
        version, at = self._published.get(pool, (0, Instant(0)))
        return known - at <= IN_FLIGHT or 0 < chosen < version

    def _check_choice(self, event: Event, known: Instant) -> None:
        """Checks that the devices of a new allocation were free when it was chosen."""
        nomination = self._chosen(event)
        chosen = nomination.version
        for result in dra.results(event.object):
            if result.admin_access:
                continue
            device = f"device {result.pool}/{result.device}"
            of_claim = f"{event.key.namespace}/{event.key.name}"
            if lifted := self._lifted.at(chosen, result):
                taint, key = lifted
                problem = (
                    f"{device} was chosen for {of_claim} before it lost its taint {taint.text}"
                )
                self._accuse(event, known, problem, key, nomination)
            if not self._views.allocated.is_dedicated(result.id):
                continue
            held = self._held.get(result.id)
            if held is not None and self._was_held(held, chosen):
                holder = f"{held.claim.namespace}/{held.claim.name}"
                problem = f"{device} was chosen for {of_claim} before {holder} gave it back"
                self._accuse(event, known, problem, held.claim, nomination)
            given = version_of(event)
            self._held[result.id] = _Held(claim=event.key, given=given, seen=given)

    def _accuse(
        self, event: Event, known: Instant, problem: str, rests_on: ObjectKey, chosen: _Nomination
    ) -> None:
        """Accuses a claim, unless a write of the object on which that rests is not recorded."""
        if not self._lacks.was_unseen(rests_on, known):
            self._seen.append(
                _Overuse(
                    problem=problem,
                    at=known,
                    holders=(rests_on,),
                    accused=(event.uid,),
                    chosen=chosen,
                    written=self._number,
                )
            )

    def _problems(self, event: Event, known: Instant) -> Iterator[tuple[str, Sequence[str], bool]]:
        """The overused resources, the claims that use them, and whether to name these."""
        allocated = self._views.allocated
        pools: set[PoolId] = set()
        for result in dra.results(event.object):
            if result.admin_access:
                continue
            holders = allocated.holders(result.id)
            if len(holders) > 1 and allocated.is_dedicated(result.id):
                others = " and to ".join(sorted(holders))
                yield (
                    f"device {result.pool}/{result.device} is allocated to {others}",
                    holders,
                    True,
                )
            pools.add((result.driver, result.pool))
        chosen = self._chosen(event).version
        for place in sorted(pools):
            if self._may_change_after(chosen, place, known):
                continue
            pool = self._views.inventory.pool(place)
            if pool is None or not pool.counters:
                continue
            for (counters, counter), left in available_of(pool, allocated).items():
                if left < 0:
                    problem = f"counter {counter} of set {counters} in pool {place[1]} is overdrawn"
                    yield problem, self._holders_in(pool), False

    def _holders_in(self, pool: Pool) -> list[str]:
        """The claims that hold a device of a pool."""
        held = self._views.allocated.holders
        slices = (*pool.slices, *pool.others)
        devices = (device.id for slice_ in slices for device in slice_.devices)
        return sorted({claim for device in devices for claim in held(device)})

    def _uid_of(self, key: ObjectKey) -> str:
        return meta.uid(self._views.objects.get(key) or {})


def _counted(tree: JsonView | None) -> tuple[object, ...]:
    """The parts of a slice that say how much there is of counters, and what its devices draw."""
    part = tree or {}
    draws = {dra.published_name(each): dra.consumptions(each) for each in dra.devices(part)}
    return dra.pool(part), dra.shared_counters(part), draws


def _key_of(claim: str) -> ObjectKey:
    namespace, _, name = claim.partition("/")
    return claim_key(namespace, name)
