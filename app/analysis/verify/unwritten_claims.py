"""Claims that may have been decided without an allocation of theirs ever being written.

The devices that a scheduler chose for them are in use in its memory alone: near the end of a
recording, and where a pod is deleted while the requests about it wait for the client's rate limit,
or the claim of a pod that is nominated for a node already. Such a request is refused when it is
sent at last. Until then other pods get other devices.

Example: a pod gets device a, and is deleted a second later. The next pod has been given b by then.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.in_flight import WINDOW, AllocationsInFlight
from app.analysis.verify.invariants.queues import WAIT_MAX
from app.analysis.views import LiveViews
from app.domain.controllers import daemon_nodes, pods
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values import api_resources, json_tree, selectors, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.selectors import SelectorError
from app.domain.values.timestamps import SECOND, Instant, TimestampError
from projections import outlines

_OF_ENDS = re.compile(rb'"(?:deletionTimestamp|Failed|Succeeded)"')
"""What the body of a pod holds that is marked for deletion, or has finished."""

_NOMINATED = b'"nominatedNodeName"'


class WaitingPod(NamedTuple):
    """A pod without a node, and those of its claims that have no allocation."""

    pod: JsonObject
    claims: Mapping[ObjectKey, JsonObject]

    @property
    def uid(self) -> str:
        return meta.uid(self.pod)

    @property
    def claim_uids(self) -> set[str]:
        return {meta.uid(claim) for claim in self.claims.values()}


class PodInVain(NamedTuple):
    """The end of a pod that waited, at a revision and a time."""

    revision: Revision
    time: Instant
    waiting: WaitingPod


class UnwrittenClaims:
    """The claims about an event that may be decided and are not written; views stand before it."""

    def __init__(
        self, index: AllocationIndex, views: LiveViews, in_flight: AllocationsInFlight
    ) -> None:
        self._index = index
        self._views = views
        self._in_flight = in_flight
        # The claims of pods that ended without a node, as they were then.
        self._ended: deque[PodInVain] = deque()
        # The pods that are nominated for a node, by their claims.
        self._nominated: dict[ObjectKey, ObjectKey] = {}

    def follow(self, event: Event) -> None:
        """Remember the claims of a pod that ends without a node: no scheduler takes it up again.

        A finalizer keeps a pod that was marked for deletion; its end is that mark. A pod that is
        nominated for a node gets none when its claim is removed before its devices are written.
        """
        if event.key[:2] == api_resources.RESOURCE_CLAIMS:
            self._follow_claim(event)
        elif event.key[:2] == api_resources.PODS:
            if _may_be_end(event):
                self._note_end(event, event.key)
            elif _NOMINATED in event.body:
                for named in pods.named_claims(pods.facts(event.object)):
                    place = ObjectKey(
                        *api_resources.RESOURCE_CLAIMS, event.key.namespace, named.name or ""
                    )
                    self._nominated[place] = event.key

    def _follow_claim(self, event: Event) -> None:
        if event.type is not EventType.OBJECT_DELETED:
            return
        place, claim = self._nominated.pop(event.key, None), self._views.objects.get(event.key)
        if place is not None and claim is not None and not dra.allocation(claim):
            self._note_end(event, place)

    def _note_end(self, event: Event, place: ObjectKey) -> None:
        pod = self._views.objects.get(place)
        if pod is None or core.has_node(pod) or pods.is_done(pod):
            return
        now, waiting = event.stamp.time, self._waiting(event, place, pod)
        self._ended.append(PodInVain(event.revision, now, waiting))
        while self._ended[0].time < now - WINDOW - WAIT_MAX:
            self._ended.popleft()

    def in_vain(
        self, event: Event, node: JsonObject, wanted: Sequence[JsonObject]
    ) -> Iterator[PodInVain]:
        """Each pod with claims that ends within the window and may have been given the node.

        A pod that is nominated for another node was not, nor one that no scheduler could place.
        """
        own = {meta.uid(claim) for claim in wanted}
        for each in (*self._ended_before(event), *self._ended_after(event)):
            uids = each.waiting.claim_uids
            is_other = bool(uids) and uids.isdisjoint(own)
            is_here = core.nominated_node_name(each.waiting.pod) in ("", meta.name(node))
            if is_other and is_here and self._may_be_placed(event, each.waiting, node):
                yield each

    def _may_be_placed(self, event: Event, waiting: WaitingPod, node: JsonView) -> bool:
        """Whether a pod is ready, selects the node, and has no claim that is in use elsewhere.

        It was there with its claims when the allocation of the event was chosen. What makes it
        ready may be among lost lines.
        """
        is_complete, pod = not self._index.lost.has_any, waiting.pod
        if self._in_flight.is_entered_later(event, waiting.uid, waiting.claim_uids):
            return False
        if (is_complete and core.scheduling_gates(pod)) or daemon_nodes.refusal(pod, node, ()):
            return False
        facts = pods.facts(pod)
        for named in (pods.entry_claim(facts, entry) for entry in facts.entries):
            place = ObjectKey(*api_resources.RESOURCE_CLAIMS, facts.namespace, named.name or "")
            claim = waiting.claims.get(place) or self._views.objects.get(place)
            if named.problem and is_complete:
                return False
            if claim is None:
                continue
            if named.needs_owner and pods.owner_problem(claim, facts, accepts_groups=True):
                return False
            is_old = not self._in_flight.is_new(event, place)
            if is_old and not _is_available_on(claim, node):
                return False
        return True

    def _ended_before(self, event: Event) -> Iterator[PodInVain]:
        """The pods that ended, with those of their claims that were not allocated since."""
        since = self._in_flight.decided_from(event)
        for each in self._ended:
            if each.time < since:
                continue
            if not any(self._is_allocated(*claim) for claim in each.waiting.claims.items()):
                yield each

    def _ended_after(self, event: Event) -> Iterator[PodInVain]:
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
            if pod is not None and meta.uid(pod) == end.uid and not pods.is_done(pod):
                yield PodInVain(end.revision, end.time, self._waiting(event, end.key, pod))

    def _waiting(self, event: Event, key: ObjectKey, pod: JsonObject) -> WaitingPod:
        """A pod with its claims that are not allocated, in its order: decided together.

        None where one of them was marked for deletion long before the event.
        """
        claims: dict[ObjectKey, JsonObject] = {}
        for named in pods.named_claims(pods.facts(pod)):
            place = ObjectKey(*api_resources.RESOURCE_CLAIMS, key.namespace, named.name or "")
            claim = self._views.objects.get(place)
            if claim is None or dra.allocation(claim):
                continue
            since = min(event.stamp.time - WINDOW, self._in_flight.decided_from(event))
            if _is_marked_before(claim, Instant(since)):
                return WaitingPod(pod, {})
            claims[place] = claim
        return WaitingPod(pod, claims)

    def _is_allocated(self, key: ObjectKey, claim: JsonView) -> bool:
        """Whether a claim has been allocated by now: what it holds is known."""
        present = self._views.objects.get(key)
        if present is None or meta.uid(present) != meta.uid(claim):
            return False
        return bool(dra.allocation(present))

    def under_way(
        self, event: Event, node: JsonView, wanted: Sequence[JsonObject]
    ) -> list[JsonObject]:
        """The other claims of pods that may be given the node, which nothing allocates later.

        Only an allocation near the end can have been chosen after one of them.
        """
        if event.stamp.time < self._index.open_since(self._index.ends_at) - WINDOW:
            return []
        later = self._in_flight.written_later
        return [
            claim
            for claim in self._waiting_claims(event, node)
            if all(claim is not one for one in wanted) and meta.uid(claim) not in later
        ]

    def _waiting_claims(self, event: Event, node: JsonView) -> Iterator[JsonObject]:
        """The claims that are not allocated of pods that may be given the node, each once."""
        objects = self._views.objects
        seen: set[ObjectKey] = set()
        for place in objects.keys(*api_resources.PODS):
            pod = objects.get(place)
            if pod is None or core.node_name(pod):
                continue
            waiting = self._waiting(event, place, pod)
            if not self._may_be_placed(event, waiting, node):
                continue
            for key, claim in waiting.claims.items():
                if key not in seen:
                    seen.add(key)
                    yield claim


def _may_be_end(event: Event) -> bool:
    """Whether a write ends a pod without a node: it is deleted, marked for that, or finished."""
    is_deleted = event.type is EventType.OBJECT_DELETED
    if not is_deleted and _OF_ENDS.search(event.body) is None:
        return False
    if not event.is_about_object or outlines.pod(event.body).spec.node_name:
        return False
    return is_deleted or pods.is_done(event.object)


def _is_marked_before(claim: JsonView, instant: Instant) -> bool:
    """Whether a claim was marked for deletion before an instant; the mark tells whole seconds."""
    text = meta.known_deletion_timestamp(claim)
    try:
        return bool(text) and timestamps.parse(text) + SECOND <= instant
    except TimestampError:
        return False


def _is_available_on(claim: JsonView, node: JsonView) -> bool:
    """Whether the devices of a claim can be used on a node; so can those that it has not yet."""
    selector = json_tree.get(claim, "status", "allocation", "nodeSelector")
    if not isinstance(selector, dict):
        return True
    try:
        return selectors.node_selector_of(selector).matches(meta.name(node), meta.labels(node))
    except SelectorError:
        return True
