"""Recorded allocations that no order of events allows: a device given twice, a counter overdrawn.

Each is looked at when its write is folded. Such a write is never a race: whatever came first, one
of the two should not have been made; so all claims that hold the device are named.
"""

from collections.abc import Iterator, Sequence

from app.analysis.views import LiveViews
from app.domain.allocation.counters import available_of
from app.domain.controllers.resources import claim_key
from app.domain.log import Event, EventType
from app.domain.values.fields import dra, meta
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.json_tree import JsonView


class OveruseAudit:
    """Looks at each allocation of a recording; `found` names them by the claim's uid."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self.found: dict[str, str] = {}

    def after(self, event: Event, before: JsonView | None) -> None:
        """Check an event that the views show by now; `before` is the object before it."""
        if event.key.resource != "resourceclaims" or event.type is EventType.OBJECT_DELETED:
            return
        given = dra.result_trees(event.object)
        if not given or (before is not None and given == dra.result_trees(before)):
            return
        results = dra.results(event.object)
        for problem, others in self._problems(results):
            self.found.setdefault(event.uid, problem)
            for claim in others:
                self.found.setdefault(self._uid_of(claim), problem)

    def _problems(self, results: Sequence[DeviceResult]) -> Iterator[tuple[str, Sequence[str]]]:
        allocated = self._views.allocated
        pools: set[tuple[str, str]] = set()
        for result in results:
            if result.admin_access:
                continue
            holders = allocated.holders(result.id)
            if len(holders) > 1 and allocated.is_dedicated(result.id):
                others = " and to ".join(sorted(holders))
                yield f"device {result.pool}/{result.device} is allocated to {others}", holders
            pools.add((result.driver, result.pool))
        for place in sorted(pools):
            pool = self._views.inventory.pool(place)
            if pool is None or not pool.counters:
                continue
            for (counters, counter), left in available_of(pool, allocated).items():
                if left < 0:
                    yield f"counter {counter} of set {counters} in pool {place[1]} is overdrawn", ()

    def _uid_of(self, claim: str) -> str:
        namespace, _, name = claim.partition("/")
        tree = self._views.objects.get(claim_key(namespace, name)) or {}
        return meta.uid(tree)
