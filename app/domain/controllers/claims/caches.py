"""The effects of the claim controller's caches: work for pods that finished or are gone."""

from collections.abc import Iterable

from app.domain.controllers.pacing import ClaimsCache
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, well_known
from app.domain.values.fields import meta
from app.domain.values.identifiers import NamespacedName, Uid
from app.domain.values.timestamps import SECOND, Instant

CACHE_LAG = SECOND
"""The time for which a removed pod stays in the emulated cache of a replay, and a new template may
be lacking there. Its claims are synced at the recorded instants; a sync that was not recorded comes
later than this."""

RESERVED_AGAIN_MAX = 2
"""The most times that a finished pod is reserved again (C8). Upstream's race ends by chance: up to
18 times were recorded for one pod. Without a bound it would never end here. A replay in which the
recording alone says when finished pods are looked at needs none."""


class LaggingCache:
    """The pods that the cache still has, and the templates that it does not have yet.

    `recorded` says of which objects; here none of them is hidden for longer than `CACHE_LAG`.
    """

    def __init__(self, recorded: ClaimsCache) -> None:
        self._recorded = recorded
        self._ended: dict[NamespacedName, tuple[Uid, Instant]] = {}
        self._made: dict[ObjectKey, Instant] = {}

    @property
    def tells_looks(self) -> bool:
        """Whether a finished pod is looked at when that was recorded, and only then."""
        return self._recorded.tells_looks

    def note_template(self, event: Event) -> None:
        """Notes when a template was made."""
        self._made[event.key] = event.stamp.time

    def lacks_until(self, pod: NamespacedName, template: str, now: Instant) -> Instant | None:
        """The instant until which the cache lacks a template of a pod; None if it has it."""
        key = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, pod[0], template)
        seen = self._recorded.template_seen(key, pod)
        if seen is None or key not in self._made:
            return None
        until = min(seen, Instant(self._made[key] + CACHE_LAG))
        return until if now < until else None

    def hides_end(self, event: Event, old: PodFacts | None, pod: PodFacts) -> bool:
        """Whether an event about a pod is its end, and the cache goes on to show it as it was."""
        is_end = event.type is EventType.OBJECT_DELETED or (pod.is_deleting and pod.is_done)
        if not is_end or old is None or old.is_deleting or not self._recorded.sees_end_late(event):
            return False
        until = Instant(event.stamp.time + CACHE_LAG)
        self._ended[pod.namespace, pod.name] = (pod.uid, until)
        return True

    def shown_ends(
        self, now: Instant, new: tuple[NamespacedName, Uid] | None
    ) -> list[NamespacedName]:
        """The pods that the cache has no longer, by now or since a new one has the name."""
        shown = [
            place
            for place, (uid, until) in self._ended.items()
            if until <= now or (new is not None and new[0] == place and new[1] != uid)
        ]
        for place in shown:
            del self._ended[place]
        return shown


class WorkAgain:
    """The counts of reservations and claims that finished pods got again.

    `recorded` is the cache of a replay. Where it tells the looks, finished pods are looked at only
    when a recording says so.
    """

    def __init__(self, quirks: ControllerQuirks, recorded: ClaimsCache | None) -> None:
        self._quirks, self._recorded = quirks, recorded
        self._is_told = recorded is not None and recorded.tells_looks
        self._made: dict[tuple[str, str], int] = {}
        self._made_last: dict[tuple[str, str], str] = {}
        self._reserved: dict[str, int] = {}
        self._holders: dict[NamespacedName, frozenset[Uid]] = {}

    def forget(self, pod: Uid) -> None:
        """Forgets the reservations of a pod that is gone."""
        self._reserved.pop(pod, None)

    def forget_claim(self, place: NamespacedName) -> None:
        """Forgets who held a claim that is gone."""
        self._holders.pop(place, None)

    def count_made(self, event: Event) -> None:
        """Counts a claim that was made for an entry of a pod."""
        entry = meta.annotation(event.object, well_known.POD_CLAIM_NAME)
        owner = meta.controller_uid(event.object)
        if self._quirks.c22 and entry and owner:
            self._made[(owner, entry)] = self._made.get((owner, entry), 0) + 1
            self._made_last[(owner, entry)] = event.key.name

    def count_reserved(
        self, place: NamespacedName, holders: frozenset[Uid], users: Iterable[PodFacts]
    ) -> None:
        """Counts the finished pods among the users of a claim that are new among its holders."""
        if not self._quirks.c8:
            return
        added = holders - self._holders.get(place, frozenset())
        self._holders[place] = holders
        for pod in users:
            if pod.is_done and pod.uid in added:
                self._reserved[pod.uid] = self._reserved.get(pod.uid, 0) + 1

    def spent(self, pod: PodFacts) -> frozenset[str]:
        """The entries of a finished pod that have had all their claims.

        Parity: controllers.md C22, a finished pod gets a second claim at most once per entry, as
        long as the process lives that made it.
        """
        if not (self._quirks.c22 and pod.is_done):
            return frozenset()
        most = 2 if self._recorded is None else self._recorded.claims_max(pod.uid)
        names = (entry.name for entry in pod.entries)
        return frozenset(name for name in names if self._made.get((pod.uid, name), 0) >= most)

    def may_write(self, pod: PodFacts) -> bool:
        """Whether a look at a pod may write more than the names of its claims."""
        if not self._is_told and self._reserved.get(pod.uid, 0) >= RESERVED_AGAIN_MAX:
            return False
        spent = self.spent(pod)
        return not spent or any(entry.name not in spent for entry in pod.entries)

    def second_names(self, pod: PodFacts) -> list[tuple[str, str]]:
        """The entries and names of second claims that the pod's status does not name yet.

        Parity: controllers.md C22, one sync makes the claim and enters its name, whether or not it
        is deleted in between.
        """
        known = dict(pod.generated)
        spent = self.spent(pod)
        made = (
            (entry.name, self._made_last[pod.uid, entry.name])
            for entry in pod.entries
            if entry.name in spent
        )
        return [(name, claim) for name, claim in made if known.get(name) != claim]
