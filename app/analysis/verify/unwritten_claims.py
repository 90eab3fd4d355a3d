"""Claims that may have been decided without an allocation of theirs ever being written.

The devices that a scheduler chose for them are in use in its memory alone.
"""

from collections.abc import Iterator, Sequence

from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.in_flight import WINDOW, InFlight
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject


class UnwrittenClaims:
    """The claims about an event that may be decided and are not written; views stand before it."""

    def __init__(self, index: AllocationIndex, views: LiveViews, in_flight: InFlight) -> None:
        self._index = index
        self._views = views
        self._in_flight = in_flight

    def under_way(self, event: Event, wanted: Sequence[JsonObject]) -> list[JsonObject]:
        """The other claims of pods without a node that nothing shows as allocated later.

        Only an allocation near the end can have been chosen after one of them.
        """
        if event.stamp.time < self._index.ends_at - WINDOW:
            return []
        later = self._in_flight.written_later
        return [
            claim
            for claim in self._waiting_claims()
            if all(claim is not one for one in wanted) and meta.uid(claim) not in later
        ]

    def _waiting_claims(self) -> Iterator[JsonObject]:
        """The claims of pods without a node that are not allocated, each once."""
        objects = self._views.objects
        seen: set[ObjectKey] = set()
        for place in objects.keys(*api_resources.PODS):
            pod = objects.get(place)
            if pod is None or core.node_name(pod):
                continue
            for named in pods.named_claims(pods.facts(pod)):
                key = ObjectKey(*api_resources.RESOURCE_CLAIMS, place.namespace, named.name or "")
                claim = objects.get(key)
                if claim is not None and not dra.allocation(claim) and key not in seen:
                    seen.add(key)
                    yield claim
