"""Last lines of objects that are lost, as far as what controllers did afterwards tells of them.

A controller acts upon a state that it saw. The claim controller takes back the reservation of a pod
that is gone, the collector deletes what belonged to an object that is gone, the scheduler binds a
pod whose claims are allocated, and chooses no device with a taint that its request does not
tolerate. If the last line about the object in question shows another state, either a later line is
lost or the controller was wrong. The store's versions tell: a lost line leaves a version that no
line is about. Parity: controllers.md 2.4, 4.6, 7.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from app.analysis.replay.authors import COLLECTOR
from app.analysis.replay.facts import consumers
from app.analysis.replay.unsure.versions import Versions
from app.analysis.replay.writers import MANAGED
from app.domain.controllers import pods
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.timestamps import Instant


class LostLine(NamedTuple):
    """An object that was written after the last line about it, at some time since that line."""

    key: ObjectKey
    uid: str
    since: Instant


@dataclass(slots=True)
class _Living:
    """The last known state of an object without an end in the log so far.

    `changed` is when a controller first acted upon another state.
    """

    key: ObjectKey
    uid: str
    written: Instant
    is_finished: bool
    is_allocated: bool
    changed: Instant | None = None


@dataclass(slots=True)
class LastLines:
    """Follows a recording event by event."""

    versions: Versions
    _living: dict[ObjectKey, _Living] = field(default_factory=dict)
    _key_of: dict[str, ObjectKey] = field(default_factory=dict)
    _reserved: dict[str, frozenset[str]] = field(default_factory=dict)
    _owned: dict[str, set[tuple[ObjectKey, str]]] = field(default_factory=lambda: defaultdict(set))
    _pools: dict[ObjectKey, tuple[str, str]] = field(default_factory=dict)
    _forbidden: dict[ObjectKey, list[ObjectKey]] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)

    def note(self, event: Event, known: Instant) -> None:
        """Processes an event that others could see from instant `known` on."""
        if not event.is_about_object:
            return
        self._note_acts(event, known)
        key, is_end = event.key, event.type is EventType.OBJECT_DELETED
        if key.resource == "resourceclaims":
            users = frozenset() if is_end else frozenset(consumers(event.object))
            self._reserved[event.uid] = users
        if is_end:
            self._living.pop(key, None)
            self._pools.pop(key, None)
            return
        if key[:2] == api_resources.RESOURCE_SLICES:
            self._pools[key] = dra.driver(event.object), dra.pool_name(event.object)
        for owner in meta.owners(event.object):
            self._owned[owner.uid].add((key, event.uid))
        self._key_of[event.uid] = key
        self._living[key] = _Living(
            key,
            event.uid,
            known,
            is_finished=key.resource == "pods" and core.is_finished(event.object),
            is_allocated=dra.allocation(event.object) is not None,
        )

    def note_forbidden(
        self, allocation: Event, objects: Iterable[ObjectKey], known: Instant
    ) -> None:
        """Notes the rule among the objects that forbids an allocation; without one, the slices."""
        rules = [key for key in objects if key[:2] == api_resources.DEVICE_TAINT_RULES]
        pools = {(each.driver, each.pool) for each in dra.results(allocation.object)}
        slices = [key for key, pool in self._pools.items() if pool in pools]
        self._note_changed(rules or slices, known)
        self._forbidden[allocation.key] = rules or slices

    def _note_changed(self, keys: Iterable[ObjectKey], known: Instant) -> None:
        """Notes objects whose last known state contradicts an act at an instant."""
        for key in keys:
            each = self._living.get(key)
            if each is not None and each.changed is None:
                each.changed = known

    def _note_acts(self, event: Event, known: Instant) -> None:
        """Notes the objects whose last known state is no reason for a write of a controller."""
        user, is_end = event.stamp.actor.user, event.type is EventType.OBJECT_DELETED
        if user in MANAGED and event.key.resource == "resourceclaims" and not is_end:
            gone = self._reserved.get(event.uid, frozenset()) - consumers(event.object).keys()
            self._note_changed(self._of(gone, even_finished=False), known)
        if user in MANAGED and event.stamp.verb == "delete":
            owners = (owner.uid for owner in meta.owners(event.object))
            # The claim controller acts for pods that are finished, too, the collector does not.
            self._note_changed(self._of(owners, even_finished=user == COLLECTOR), known)
        if event.key.resource == "pods" and not is_end and core.node_name(event.object):
            if event.uid not in self._bound and event.stamp.verb == "create":
                self._note_changed(self._unallocated(event), known)
            self._bound.add(event.uid)

    def _of(self, uids: Iterable[str], *, even_finished: bool) -> Iterator[ObjectKey]:
        """The keys of living objects, except pods that are finished."""
        for uid in uids:
            each = self._living.get(self._key_of.get(uid, _NO_KEY))
            if each is not None and each.uid == uid and (even_finished or not each.is_finished):
                yield each.key

    def _unallocated(self, binding: Event) -> Iterator[ObjectKey]:
        """The claims of a pod that is bound which have no allocation."""
        pod = pods.facts(binding.object)
        for named in pods.named_claims(pod):
            key = ObjectKey(*api_resources.RESOURCE_CLAIMS, pod.namespace, named.name or "")
            each = self._living.get(key)
            if each is not None and not each.is_allocated:
                yield key

    def allowed(self, changed: Container[ObjectKey]) -> Iterator[ObjectKey]:
        """The claims with a forbidden allocation that one of the changed objects may allow."""
        for claim, keys in self._forbidden.items():
            if any(key in changed for key in keys):
                yield claim

    def found(self) -> Iterator[LostLine]:
        """The objects with a lost last line, and all that they own; call it after the last event.

        What they own ends with them.
        """
        for each in list(self._living.values()):
            if each.changed is None or not self.versions.may_hide(each.written, each.changed):
                continue
            waiting, seen = [(each.key, each.uid)], {each.uid}
            while waiting:
                key, uid = waiting.pop()
                yield LostLine(key, uid, each.written)
                more = [(key, uid) for key, uid in self._owned[uid] if uid not in seen]
                seen.update(uid for _, uid in more)
                waiting += more


_NO_KEY = ObjectKey("", "", "", "")
