"""The parts of a cluster that a recording does not show: fields of objects, and writes.

A gap names an object, a kind (in one namespace, or in all), or nothing, which means every kind. For
an object it lasts until the object is written again as a whole. For a kind it lasts until a
recorder reports that it knows all objects of the kind in their current state.

Example, with claims a and b:

    revision  event                          may differ from what is known
    10        a and b are listed
    20        gap of ResourceClaims          a, b, claims that nobody saw
    21        a is written                   b, claims that nobody saw
    30        ResourceClaims are whole
"""

from collections.abc import Collection, Iterable, Mapping

from app.domain.log import CLOCKS, Event, EventType, ObjectKey, Origin, Revision, doubts

GROUP = "resource.k8s.io"

KINDS: Mapping[str, str] = {
    "resourceclaims": GROUP,
    "resourceclaimtemplates": GROUP,
    "resourceslices": GROUP,
    "devicetaintrules": GROUP,
    "resourceslicepatches": GROUP,
    "pods": "",
    "nodes": "",
    "namespaces": "",
}
"""The resources that a rule reads, with their group; what is missing of one leaves rules open."""

READ: Mapping[str, str] = {
    **KINDS,
    "deviceclasses": GROUP,
    "resourcepoolstatusrequests": GROUP,
}
"""Those, and two kinds that are judged alone: two states of a class, and the answer to a request
for the status of pools, show all that is needed."""

LOSSES = frozenset(
    (
        "metadata_only",
        "truncated_body",
        "no_status",
        "spec_only",
        "unknown_patch",
        "undecodable",
        "encrypted",
        "redacted",
        "contradicted",
    )
)
"""The losses of an event after which no rule can be judged by its object."""

_UNPROVEN = LOSSES | {"no_uid", "no_rv", "version_guess", "printed"}
"""The losses of an event whose object, its place in the order, or its fields are a guess."""

_PARTIAL = frozenset(("partial", "identity"))

_DERIVED = "reconstructed"
"""The quality of a state derived from the last known one, which is as uncertain as that one."""

_Scope = tuple[str, str]
"""Resource and namespace; all namespaces when that is empty."""


class Unseen:
    """Tracks gaps and writes.

    `lossy` are the objects that were written unseen or in part. `gaps` maps the kinds that may have
    been to the revision of the gap. `pools` are those with a slice that was made unseen. While all
    are empty, the state of every object is known.
    """

    def __init__(self) -> None:
        self.lossy: set[ObjectKey] = set()
        self.gaps: dict[_Scope, Revision] = {}
        self.pools: set[tuple[str, str]] = set()
        self._written: dict[ObjectKey, Revision] = {}

    def note_gap(self, gap: Event) -> Collection[str]:
        """Notes that earlier writes were not recorded. Returns their kinds that rules read."""
        key, revision, pool = gap.key, gap.revision, doubts.pool_of(gap)
        if not key.resource or key.group == CLOCKS.group:
            self.gaps.update(((resource, ""), revision) for resource in KINDS)
            return KINDS.keys()
        if key.resource not in KINDS or key.group not in (KINDS[key.resource], ""):
            return ()
        if key.name:
            self.lossy.add(key._replace(group=KINDS[key.resource]))
        elif pool is not None:
            self.pools.add(pool)
        else:
            self.gaps[key.resource, key.namespace] = revision
        return (key.resource,)

    def note_whole(self, event: Event) -> None:
        """Handles a recorder's report of the kinds whose objects it knows completely."""
        whole = {resource for group, resource in doubts.whole_kinds(event)}
        for scope in [each for each in self.gaps if each[0] in whole]:
            del self.gaps[scope]
        if "resourceslices" in whole:
            self.pools.clear()
        if not self.gaps:
            self._written.clear()

    def note_write(self, event: Event) -> bool:
        """Records whether the object is recorded as a whole.

        False when a change may have another cause than this write: the object was or is recorded in
        part, or a stretch is missing before it.
        """
        key, lossy = event.key, self.lossy
        is_whole = not self.covers(key)
        origin = event.stamp.origin
        is_deleted = event.type is EventType.OBJECT_DELETED
        if not is_whole and self.is_as_before(event):
            return False
        if self.gaps:
            self._written[key] = event.revision
        if is_deleted:
            lossy.discard(key)
            return is_whole
        if origin is not None and is_partial(origin):
            lossy.add(key)
            return False
        lossy.discard(key)
        return is_whole

    def is_as_before(self, event: Event) -> bool:
        """Whether an event shows a state derived from one that may have changed unseen.

        Such a state leaves open what is open of the last one.
        """
        origin = event.stamp.origin
        is_derived = origin is not None and origin.quality == _DERIVED
        is_deleted = event.type is EventType.OBJECT_DELETED
        return is_derived and not is_deleted and self.covers(event.key)

    def covers(self, key: ObjectKey) -> bool:
        """Whether an object may differ from its known state."""
        if key in self.lossy:
            return True
        if not self.gaps:
            return False
        since = self._gap(key.resource, key.namespace)
        return since is not None and self._written.get(key, 0) < since

    def covers_any(self, keys: Iterable[ObjectKey]) -> bool:
        """Whether one of the objects may differ from its known state."""
        return bool(self.lossy or self.gaps) and any(self.covers(key) for key in keys)

    def has_gap(self, resource: str) -> bool:
        """Whether unseen objects of a kind may exist, in any namespace."""
        return any(scope[0] == resource for scope in self.gaps)

    def lossy_of(self, resource: str) -> list[ObjectKey]:
        """The objects of a kind that were written unseen or in part."""
        return [key for key in self.lossy if key.resource == resource]

    def _gap(self, resource: str, namespace: str) -> Revision | None:
        """The last gap of a kind that applies to a namespace."""
        gaps = self.gaps.get((resource, "")), self.gaps.get((resource, namespace))
        return max((each for each in gaps if each is not None), default=None)


def is_partial(origin: Origin) -> bool:
    """Whether an object was recorded without all of its fields."""
    losses = origin.losses
    return (bool(losses) and not LOSSES.isdisjoint(losses)) or origin.quality in _PARTIAL


def is_shown(origin: Origin | None) -> bool:
    """Whether the state of an object was recorded itself: whole, with its uid and its version.

    What differs in two such states of one object was changed between them, gap or not.
    """
    if origin is None:
        return True
    if origin.quality in _PARTIAL or origin.quality == _DERIVED:
        return False
    return not origin.losses or _UNPROVEN.isdisjoint(origin.losses)
