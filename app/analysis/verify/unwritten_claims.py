"""Claims that may have been decided without an allocation of theirs ever being written.

The devices that a scheduler chose for them are in use in its memory alone: near the end of a
recording, and where a pod is deleted while the requests about it wait for the client's rate limit.
Such a request is refused when it is sent at last. Until then other pods get other devices.

Example: a pod gets device a, and is deleted a second later. The next pod has been given b by then.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.analysis.verify.allocation_index import AllocationIndex, UnplacedEnd
from app.analysis.verify.in_flight import WINDOW, AllocationsInFlight
from app.analysis.verify.invariants.queues import WAIT_MAX
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from projections import outlines


class _PodInVain(NamedTuple):
    """A pod that ended without a node, and those of its claims that had no allocation."""

    end: UnplacedEnd
    pod: JsonObject
    claims: Mapping[ObjectKey, JsonObject]


class UnwrittenClaims:
    """The claims about an event that may be decided and are not written; views stand before it."""

    def __init__(
        self, index: AllocationIndex, views: LiveViews, in_flight: AllocationsInFlight
    ) -> None:
        self._index = index
        self._views = views
        self._in_flight = in_flight
        # The claims of pods that ended without a node, as they were then.
        self._ended: deque[_PodInVain] = deque()

    def follow(self, event: Event) -> None:
        """Remember the claims of a pod that ends without a node."""
        if event.type is not EventType.OBJECT_DELETED or event.key[:2] != api_resources.PODS:
            return
        if outlines.pod(event.body).spec.node_name:
            return
        pod = self._views.objects.get(event.key)
        if pod is None or core.has_node(pod):
            return
        now = event.stamp.time
        end = UnplacedEnd(event.revision, now, event.key, event.uid, now)
        self._ended.append(_PodInVain(end, pod, self._claims_of(event.key, pod)))
        while self._ended[0][0].time < event.stamp.time - WINDOW - WAIT_MAX:
            self._ended.popleft()

    def in_vain(
        self, event: Event, node: JsonObject, wanted: Sequence[JsonObject]
    ) -> Iterator[tuple[UnplacedEnd, Mapping[ObjectKey, JsonObject]]]:
        """The claims of each pod that ends within the window and may have been given the node.

        A pod that is nominated for another node was not.
        """
        own = {meta.uid(claim) for claim in wanted}
        for end, pod, claims in (*self._ended_before(event), *self._ended_after(event)):
            nominated = core.nominated_node_name(pod)
            uids = {meta.uid(claim) for claim in claims.values()}
            if claims and nominated in ("", meta.name(node)) and uids.isdisjoint(own):
                yield end, claims

    def _ended_before(self, event: Event) -> Iterator[_PodInVain]:
        """The pods that ended, with those of their claims that were not allocated since."""
        since = self._in_flight.decided_from(event)
        for each in self._ended:
            if each.end.time < since:
                continue
            if not any(self._is_allocated(*claim) for claim in each.claims.items()):
                yield each

    def _ended_after(self, event: Event) -> Iterator[_PodInVain]:
        """The pods that are there and end within the window, with their claims."""
        ends = self._index.unplaced
        first = bisect_left(ends, event.revision, key=lambda end: end.revision)
        for number in range(first, len(ends)):
            end = ends[number]
            if end.time > event.stamp.time + WINDOW + WAIT_MAX:
                return
            if end.open_since - WINDOW > event.stamp.time:
                continue
            pod = self._views.objects.get(end.key)
            if pod is not None and meta.uid(pod) == end.uid:
                yield _PodInVain(end, pod, self._claims_of(end.key, pod))

    def _claims_of(self, key: ObjectKey, pod: JsonView) -> dict[ObjectKey, JsonObject]:
        """The claims of a pod that are not allocated, in its order: decided together."""
        claims: dict[ObjectKey, JsonObject] = {}
        for named in pods.named_claims(pods.facts(pod)):
            place = ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, named.name or "")
            claim = self._views.objects.get(place)
            if claim is not None and not dra.allocation(claim):
                claims[place] = claim
        return claims

    def _is_allocated(self, key: ObjectKey, claim: JsonView) -> bool:
        """Whether a claim has been allocated by now: what it holds is known."""
        present = self._views.objects.get(key)
        if present is None or meta.uid(present) != meta.uid(claim):
            return False
        return bool(dra.allocation(present))

    def under_way(self, event: Event, wanted: Sequence[JsonObject]) -> list[JsonObject]:
        """The other claims of pods without a node that nothing shows as allocated later.

        Only an allocation near the end can have been chosen after one of them.
        """
        if event.stamp.time < self._index.open_since(self._index.ends_at) - WINDOW:
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
