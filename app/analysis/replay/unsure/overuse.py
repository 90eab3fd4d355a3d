"""Recorded allocations that no order of events allows: a device given twice, a counter overdrawn.

Each is checked when its write is folded. Such a write is never a race: in any order, one of the
allocations should not have been made. So all claims that hold the device are named. If one of them
may have released it in an unrecorded write, none is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.views import LiveViews
from app.domain.allocation.counters import available_of
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import Pool
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Overuse:
    """The overused resource, since when, and by which claims; the `accused` are named by uid."""

    problem: str
    at: Instant
    holders: tuple[ObjectKey, ...]
    accused: tuple[str, ...]


class OveruseAudit:
    """Checks each allocation of a recording that follows events; `lacks` gets each event first."""

    def __init__(self, views: LiveViews, lacks: Lacks) -> None:
        self._views = views
        self._lacks = lacks
        self._seen: list[_Overuse] = []

    def overused(self) -> Mapping[str, str]:
        """The overused resources, by the uids of the claims concerned.

        An unrecorded write may only show in a later event, so call this at the end.
        """
        problems: dict[str, str] = {}
        for each in self._seen:
            if not any(self._may_have_given_back(key, each.at) for key in each.holders):
                for uid in each.accused:
                    problems.setdefault(uid, each.problem)
        return problems

    def _may_have_given_back(self, holder: ObjectKey, at: Instant) -> bool:
        return self._lacks.was_unseen(holder, at) or self._lacks.may_have_changed_unseen(holder, at)

    def after(self, event: Event, before: JsonView | None, known: Instant) -> None:
        """Checks an event that the views already contain; `before` is the object before it.

        Others could see the event from instant `known` on.
        """
        if event.key.resource != "resourceclaims" or event.type is EventType.OBJECT_DELETED:
            return
        given = dra.result_trees(event.object)
        if not given or (before is not None and given == dra.result_trees(before)):
            return
        for problem, holders, is_named in self._problems(dra.results(event.object)):
            keys = tuple(_key_of(claim) for claim in holders)
            if any(self._lacks.was_unseen(key, known) for key in keys if key != event.key):
                continue
            named = tuple(self._uid_of(key) for key in keys) if is_named else ()
            self._seen.append(
                _Overuse(problem=problem, at=known, holders=keys, accused=(event.uid, *named))
            )

    def _problems(
        self, results: Sequence[DeviceResult]
    ) -> Iterator[tuple[str, Sequence[str], bool]]:
        """The overused resources, the claims that use them, and whether to name these."""
        allocated = self._views.allocated
        pools: set[PoolId] = set()
        for result in results:
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
        for place in sorted(pools):
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


def _key_of(claim: str) -> ObjectKey:
    namespace, _, name = claim.partition("/")
    return claim_key(namespace, name)
