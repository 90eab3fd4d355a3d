"""The times at which claims of a run have something to do for their controller.

A claim has work when a pod that uses or owns it has ended, or when its deletion was requested.
Parity: controllers.md 2.3.
"""

from collections.abc import Iterable, Iterator

from app.analysis.replay.readiness import Readiness
from app.domain.controllers import pods, registry
from app.domain.controllers.claims.reconciler import NAME
from app.domain.log import Event, EventType
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant


class ClaimWork:
    """Follows pods and claims, and notes the work in the readiness of the run."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._live: set[str] = set()
        self._controller = registry.actor_of(NAME).user

    def begin(self, objects: Iterable[Event], now: Instant) -> None:
        """Notes the work that exists at the beginning of a run."""
        claims = []
        for event in objects:
            if event.key[:2] == api_resources.PODS:
                self._follow_pod(event, now)
            elif event.key[:2] == api_resources.RESOURCE_CLAIMS:
                claims.append(event)
        for event in claims:
            self._follow_claim(event, now)

    def follow(self, event: Event) -> None:
        """Notes the work that an event of the run adds or completes."""
        if event.key[:2] == api_resources.PODS:
            self._follow_pod(event, event.stamp.time)
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS:
            self._follow_claim(event, event.stamp.time)

    def _follow_pod(self, event: Event, now: Instant) -> None:
        pod = event.object
        is_gone = event.type is EventType.OBJECT_DELETED
        if not is_gone and not core.is_finished(pod):
            self._live.add(event.uid)
            return
        self._live.discard(event.uid)
        for named in pods.named_claims(pods.facts(pod)):
            key = (event.key.namespace, named.name or "")
            self._readiness.note_work(NAME, key, now)

    def _follow_claim(self, event: Event, now: Instant) -> None:
        claim, key = event.object, (event.key.namespace, event.key.name)
        users = list(_users(claim))
        if event.type is EventType.OBJECT_DELETED:
            self._readiness.note_no_work(NAME, key, now)
        elif meta.is_deleting(claim) or any(uid not in self._live for uid in users):
            self._readiness.note_work(NAME, key, now)
        elif users or event.stamp.actor.user == self._controller:
            self._readiness.note_no_work(NAME, key, now)


def _users(claim: JsonView) -> Iterator[str]:
    """The uids of the pods that use or own a claim."""
    yield from (each.uid for each in dra.consumers(claim))
    yield from (owner.uid for owner in meta.owners(claim) if owner.kind == "Pod")
