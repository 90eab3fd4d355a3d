"""The pods that name a claim, those of them that an event on it may affect, and its consumers.

A claim that many pods share changes with each of them. Most of these pods need nothing: they are
not placed yet, or have their reservation. The few others are found without checking every pod.
"""

from collections.abc import Collection, Mapping, Sequence

from app.domain.controllers import pods
from app.domain.controllers.pods import PodFacts
from app.domain.values.fields import dra
from app.domain.values.fields.dra import Consumer
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.json_tree import JsonView
from app.domain.values.multimap import Multimap

CONSUMERS_MAX = 4
"""The most consumers of a claim that are kept until it is looked at."""


class ClaimUsers:
    """The index of pods by the claims that they name, in three groups.

    `_odd` pods are synced with each event: they name several claims or a template, or are done.
    `_placed` pods (by uid) need a reservation; all others need nothing.
    """

    def __init__(self) -> None:
        self._all: Multimap[NamespacedName, str] = Multimap()
        self._odd: Multimap[NamespacedName, str] = Multimap()
        self._placed: dict[NamespacedName, dict[str, str]] = {}

    def add(self, pod: PodFacts) -> None:
        """Adds a pod in its current state."""
        is_odd = _is_odd(pod)
        for place in _places(pod):
            self._all.add(place, pod.name)
            if is_odd:
                self._odd.add(place, pod.name)
            elif pod.node:
                self._placed.setdefault(place, {})[pod.uid] = pod.name

    def remove(self, pod: PodFacts) -> None:
        """Removes a pod, which is given as it was added."""
        for place in _places(pod):
            self._all.discard(place, pod.name)
            self._odd.discard(place, pod.name)
            placed = self._placed.get(place)
            if placed is not None:
                placed.pop(pod.uid, None)
                if not placed:
                    del self._placed[place]

    def of(self, claim: NamespacedName) -> Collection[str]:
        """The names of all pods that name the claim."""
        return self._all.of(claim)

    def to_look_at(self, claim: NamespacedName, reserved: frozenset[Uid]) -> list[str]:
        """The pods that may need work, given the reserved uids; sorted by name."""
        uids = set(self._odd.of(claim))
        placed = self._placed.get(claim)
        if placed is not None:
            uids.update([placed[uid] for uid in placed.keys() - reserved])
        return sorted(uids)


class WrittenClaims:
    """The consumers of claims that were written since the controller last looked at them.

    A controller that starts looks at every claim. Nearly all of them have consumers, all of which
    run: such a claim keeps its reservations, allocation and finalizer, and is not read for that.
    """

    def __init__(self) -> None:
        self._consumers: dict[NamespacedName, Sequence[Consumer]] = {}

    def note(self, place: NamespacedName, claim: JsonView) -> None:
        """Keeps the consumers of a claim as it is now."""
        if 0 < len(dra.reserved_for(claim)) <= CONSUMERS_MAX:
            self._consumers[place] = dra.consumers(claim)
        else:
            self._consumers.pop(place, None)

    def forget(self, place: NamespacedName) -> None:
        """Forgets a claim that does not exist any more."""
        self._consumers.pop(place, None)

    def is_reserved(self, place: NamespacedName, uid: Uid) -> bool:
        """Whether a claim that is known here is reserved for the pod with that uid."""
        return any(each.uid == uid for each in self._consumers.get(place, ()))

    def take_all_run(self, place: NamespacedName, running: Mapping[NamespacedName, Uid]) -> bool:
        """Whether the claim is known to have consumers that all run; it is forgotten."""
        consumers = self._consumers.pop(place, ())
        namespace = place[0]
        return bool(consumers) and all(
            running.get((namespace, each.name)) == each.uid for each in consumers
        )


def _places(pod: PodFacts) -> list[NamespacedName]:
    return [(pod.namespace, named.name or "") for named in pods.named_claims(pod)]


def _is_odd(pod: PodFacts) -> bool:
    return len(pod.entries) != 1 or not pod.entries[0].claim or pod.is_done
