"""Looks: what lists show of a cluster that is known already, not changes that were recorded."""

from app.domain.log.event import Event, Origin
from app.domain.log.records import ABSENT, BASELINE_VERB, IMPORTER_USER, Loss, TimeQuality

UNDATED = frozenset((TimeQuality.DERIVED.value, TimeQuality.NONE.value))
"""The qualities of times that the source has not for an event."""

_AGAIN = frozenset((Loss.COLLAPSED, Loss.SYNTHETIC_DELETE, Loss.NO_DELETES))
"""The losses of a look of which one shows that the cluster was looked at before."""


class LookWatch:
    """Follows the events about objects of a recording; tells looks from recorded changes.

    `is_again` when the last event is a look at a cluster that was known before it. `name` is that
    of its list.
    """

    def __init__(self) -> None:
        self.is_again = False
        self.name = ""
        self._has_changes = False
        self._names: dict[str, str] = {}
        self._kinds: dict[tuple[str, str], str] = {}

    def follow(self, event: Event) -> bool:
        """Whether the event is a look."""
        origin = event.stamp.origin
        if origin is None or not _is_look(event, origin):
            self._has_changes, self.is_again = True, False
            self._kinds.clear()
            return False
        self.name = self._name(origin)
        is_again = not _AGAIN.isdisjoint(origin.losses)
        if _is_listed(origin):
            # Another list of the same kind is of another time, unless it is of a part of them.
            before = self._kinds.setdefault(event.key[1:3], self.name)
            is_again |= self._has_changes or before != self.name
        self.is_again |= is_again
        return True

    def _name(self, origin: Origin) -> str:
        if not origin.position.startswith(ABSENT):
            of_list = origin.position.rpartition("[")[0]
            self._names[origin.source] = f"{origin.source} {of_list}"
        return self._names.get(origin.source, origin.source)


def _is_look(event: Event, origin: Origin) -> bool:
    if origin.time_quality not in UNDATED:
        return False
    if event.stamp.verb == BASELINE_VERB:
        return True
    if event.stamp.actor.user != IMPORTER_USER:
        return False  # A request in a log whose times are not exact, not a list, has an author.
    if Loss.COLLAPSED in origin.losses:
        return True
    return Loss.NO_DELETES in origin.losses and _is_listed(origin)


def _is_listed(origin: Origin) -> bool:
    """Whether an object was an item of a list in a document."""
    return "[" in origin.position
