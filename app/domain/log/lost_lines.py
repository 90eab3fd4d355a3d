"""Evidence that single lines of a log are lost, here and there.

Later lines show some of the writes whose lines are lost. If they show several, others may be
lost that no later line shows. Parity: history-formats.md 4.5.
"""

from bisect import bisect_left
from contextlib import suppress
from heapq import nsmallest

from app.domain.log import doubts
from app.domain.log.event import Event, EventType, ObjectKey, Revision
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.values import api_groups, api_resources, timestamps, well_known
from app.domain.values.fields import dra, meta
from app.domain.values.timestamps import SECOND, TimestampError

_JUDGED = (api_resources.PODS, api_resources.NODES)
"""Kinds, beside those of devices, whose creators no policy leaves out."""

_OLDER = 2
"""What is so many seconds older than a log, as far as clocks agree, was made before it."""

_NEVER = Revision(2**62)


class LostLines:
    """The unrecorded writes of single objects that later lines of a log show.

    Each lies between two revisions. Where there are several, lines are lost here and there, and a
    write that no later line shows may be missing as well. Where one missing stretch of the log
    explains them all, that is the single accident.
    """

    def __init__(self, *, lacks_ends: bool = False) -> None:
        """With `lacks_ends`, all deletions are left out: a lost one says nothing of other lines."""
        self.lacks_ends = lacks_ends
        self._since: dict[str, dict[ObjectKey, Revision]] = {}
        self._first: dict[str, list[Revision]] = {}
        # The answers of `_several_after`, until another line of the kind is lost.
        self._seconds: list[tuple[int, Revision]] = []
        self._stretches: list[Revision] = []
        self._has_other = self._makes_claims = False
        self._begins_amid = self._lists_slices = False
        self._unmade: set[ObjectKey] = set()
        # Whether a lost line does not belong to the first stretch; whether a claim of a template is
        # made in a line; whether objects are older than the log; whether slices are listed; claims
        # of templates of which no line shows that they are made.
        self._releases = _Releases()

    def follow(self, event: Event) -> None:
        """Notes the creation of an object that the event shows, made since the log began.

        Events that were not imported show none, and need not be followed.
        """
        origin, second = event.stamp.origin, event.stamp.time // SECOND
        if not self._seconds or second > self._seconds[-1][0]:
            self._seconds.append((second, event.revision))
        if origin is None:
            return
        is_of_template = event.type is EventType.OBJECT_CREATED and _is_of_template(event)
        self._makes_claims |= is_of_template and Loss.SYNTHETIC_CREATE not in origin.losses
        if (is_of_template or self._unmade) and not self._makes_claims:
            self._releases.follow(event)
        is_unmade = Loss.SYNTHETIC_CREATE in origin.losses
        if event.stamp.verb == BASELINE_VERB and not is_unmade:
            self._lists_slices |= event.key[:2] == api_resources.RESOURCE_SLICES
        if not origin.losses:
            return
        if event.type is EventType.GAP_OBSERVED and not event.key.resource:
            if not doubts.is_late(event):
                self._stretches.append(event.revision)
            return
        if self.lacks_ends and Loss.SYNTHETIC_DELETE in origin.losses:
            self._since.get(event.key.resource, {}).pop(event.key, None)
            self._first.pop(event.key.resource, None)
        if not is_unmade:
            return
        with suppress(TimestampError):
            made = timestamps.parse(meta.creation_timestamp(event.object)) // SECOND - 1
            self._begins_amid |= made + _OLDER < self._seconds[0][0]
            if event.key.group != api_groups.RESOURCE and event.key[:2] not in _JUDGED:
                return
            if made > self._seconds[0][0]:
                place = bisect_left(self._seconds, (made, Revision(0)))
                self.note(event.key, self._seconds[place - 1][1])
                if is_of_template:
                    self._unmade.add(event.key)

    def note(self, key: ObjectKey, after: Revision) -> None:
        """Notes an unrecorded write of an object; it came after the revision `after`."""
        if self.lacks_ends and key[:2] == api_resources.PODS:
            return
        self._has_other |= not self._stretches or after >= self._stretches[0]
        objects = self._since.setdefault(key.resource, {})
        objects[key] = min(after, objects.get(key, after))
        self._first.pop(key.resource, None)

    def has_lost(self, key: ObjectKey) -> bool:
        """Whether a line about an object is lost."""
        return key in self._since.get(key.resource, {})

    def has_lost_of(self, resource: str) -> bool:
        """Whether a line about an object of a kind is lost."""
        return bool(self._since.get(resource))

    @property
    def follows_any(self) -> bool:
        """Whether any event was imported, so that lines may be missing at all."""
        return bool(self._seconds)

    @property
    def may_lack_pools(self) -> bool:
        """Whether pools may be without a line: objects are older than the log, which lists none."""
        return self._begins_amid and not self._lists_slices

    @property
    def lacks_releases(self) -> bool:
        """Whether the lines of the claim controller are left out: it makes claims of templates.

        Several were made since the log began, and no line makes one. So none tells when a claim
        was given back either, unless a line shows that.
        """
        is_left_out = len(self._unmade) >= doubts.LOST_OF_MIN and not self._makes_claims
        return is_left_out and not self._releases.are_recorded

    @property
    def is_lossy(self) -> bool:
        """Whether several objects have lost lines, of whatever kinds."""
        count = sum(map(len, self._since.values()))
        return count >= doubts.LOST_OF_MIN and not self._is_one_stretch

    @property
    def has_any(self) -> bool:
        """Whether a line is lost that no missing stretch explains."""
        return any(self._since.values()) and not self._is_one_stretch

    @property
    def since(self) -> Revision:
        """The revision up to which no line is known to be lost."""
        return min(
            (after for objects in self._since.values() for after in objects.values()),
            default=_NEVER,
        )

    @property
    def _is_one_stretch(self) -> bool:
        """Whether all lost lines may have been in one stretch, which a gap reports."""
        return len(self._stretches) == 1 and not self._has_other

    @property
    def may_lack_claims(self) -> bool:
        """Whether a write of a claim may be lost: one is, and it is not the only lost line."""
        return self.may_lack("resourceclaims") or (
            self.is_lossy and bool(self._since.get("resourceclaims"))
        )

    def may_lack(self, resource: str, before: Revision | None = None) -> bool:
        """Whether a line of a kind may be lost that no later line shows.

        Several lost lines of one kind show it of that kind; where several kinds have several, of
        any. With `before`, a line before a revision: a lost line says nothing of what came before
        the last known write of its object.
        """
        if self._is_one_stretch:
            return False
        limit = _NEVER if before is None else before
        kinds = sum(len(objects) >= doubts.LOST_OF_MIN for objects in self._since.values())
        is_any = kinds >= doubts.LOST_OF_MIN and any(
            self._several_after(kind)[0] < limit for kind, objects in self._since.items() if objects
        )
        several = self._several_after(resource)
        return is_any or (len(several) == doubts.LOST_OF_MIN and several[-1] < limit)

    def _several_after(self, kind: str) -> list[Revision]:
        """The first revisions after which lines of a kind are lost: as many as show a loss."""
        if kind not in self._first:
            afters = self._since.get(kind, {}).values()
            self._first[kind] = nsmallest(doubts.LOST_OF_MIN, afters)
        return self._first[kind]


class _Releases:
    """Learns whether lines show that others than schedulers take consumers of claims away.

    A scheduler takes back what it reserved itself, the claim controller what has ended. Parity:
    controllers.md 2.3, 3.7.
    """

    def __init__(self) -> None:
        self._reserved: dict[ObjectKey, frozenset[str]] = {}
        self._reservers: set[str] = set()
        self._releasers: set[str] = set()

    def follow(self, event: Event) -> None:
        """Notes who changed the consumers of a claim."""
        if event.key[:2] != api_resources.RESOURCE_CLAIMS:
            return
        if event.type is EventType.OBJECT_DELETED:
            self._reserved.pop(event.key, None)
            return
        if not event.is_about_object:
            return
        after = frozenset(each.uid for each in dra.consumers(event.object))
        is_new = event.type is EventType.OBJECT_CREATED
        before = frozenset[str]() if is_new else self._reserved.get(event.key, after)
        self._reserved[event.key] = after
        user = event.stamp.actor.user
        if after - before:
            self._reservers.add(user)
        elif before - after:
            self._releasers.add(user)

    @property
    def are_recorded(self) -> bool:
        """Whether somebody only took consumers away."""
        return bool(self._releasers - self._reservers)


def _is_of_template(event: Event) -> bool:
    """Whether the event is about a claim that the claim controller makes of a template."""
    is_claim = event.key[:2] == api_resources.RESOURCE_CLAIMS
    return is_claim and bool(meta.annotation(event.object, well_known.POD_CLAIM_NAME))
