"""Which pods name a claim, and which of them an event on it may concern.

A claim that many pods share changes with each of them. All others are served: they are not placed
yet or have their reservation, so that a look would pass them over. Of the rest there are few, and
they are found without asking every pod.
"""

from collections.abc import Collection

from app.domain.controllers import pods
from app.domain.controllers.pods import PodFacts

_Place = tuple[str, str]


class ClaimUsers:
    """Pods by the claims that they name, in three kinds.

    `_odd` are looked at with each event: they name several claims or a template, or are done.
    `_placed` (by uid) need a reservation, all others nothing.
    """

    def __init__(self) -> None:
        self._all: dict[_Place, set[str]] = {}
        self._odd: dict[_Place, set[str]] = {}
        self._placed: dict[_Place, dict[str, str]] = {}

    def add(self, pod: PodFacts) -> None:
        """The pod is there, as it is now."""
        is_odd = _is_odd(pod)
        for place in _places(pod):
            self._all.setdefault(place, set()).add(pod.name)
            if is_odd:
                self._odd.setdefault(place, set()).add(pod.name)
            elif pod.node:
                self._placed.setdefault(place, {})[pod.uid] = pod.name

    def remove(self, pod: PodFacts) -> None:
        """The pod is gone, or is no longer as it was added."""
        for place in _places(pod):
            for names in (self._all, self._odd):
                held = names.get(place)
                if held is not None:
                    held.discard(pod.name)
                    if not held:
                        del names[place]
            placed = self._placed.get(place)
            if placed is not None:
                placed.pop(pod.uid, None)
                if not placed:
                    del self._placed[place]

    def of(self, claim: _Place) -> Collection[str]:
        """The names of all pods that name the claim."""
        return self._all.get(claim, ())

    def to_look_at(self, claim: _Place, reserved: frozenset[str]) -> list[str]:
        """Those that need not be served by these reservations, sorted by name."""
        uids = set(self._odd.get(claim, ()))
        placed = self._placed.get(claim)
        if placed is not None:
            uids.update([placed[uid] for uid in placed.keys() - reserved])
        return sorted(uids)


def _places(pod: PodFacts) -> list[_Place]:
    return [(pod.namespace, named.name or "") for named in pods.named_claims(pod)]


def _is_odd(pod: PodFacts) -> bool:
    return len(pod.entries) != 1 or not pod.entries[0].claim or pod.is_done
