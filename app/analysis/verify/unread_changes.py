"""The devices as a scheduler may still have known them when it chose an allocation.

A scheduler writes seconds after its choice while its client's rate limit holds the request back.
What was published meanwhile played no part in the choice. So the slices and DeviceTaintRules that
changed within `IN_FLIGHT` of the write are taken back, the latest first.

Example: a device is free when it is chosen, is tainted a second later, and its allocation is
written another second later. Without the taint the allocator comes to it again.

Slices and rules come by one watch each, and one may be ahead of the other. No choice is older than
its claim, unless the scheduler makes the claim itself.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from app.analysis.verify.allocation_index import is_placed
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.analysis.views import LiveViews
from app.domain.devices.inventory import Inventory
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

STATES_MAX = 64
"""How many earlier states of the devices are tried for one allocation."""

_SLICES, _RULES = api_resources.RESOURCE_SLICES, api_resources.DEVICE_TAINT_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A change of an object, which was `before` (None: it is new, or could not be read)."""

    revision: Revision
    time: Instant
    key: ObjectKey
    before: JsonObject | None
    is_placed: bool
    pool_names: frozenset[str]

    def take_back(self, inventory: Inventory) -> None:
        """Gives an inventory the object as it was."""
        is_slice = self.key[:2] == _SLICES
        if self.before is None:
            (inventory.remove_slice if is_slice else inventory.remove_rule)(self.key.name)
        else:
            (inventory.put_slice if is_slice else inventory.put_rule)(self.before)


class UnreadChanges:
    """The latest changes of devices, while a log is folded event by event."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self._changes: deque[_Change] = deque()

    def follow(self, event: Event) -> None:
        """Remember what a change replaces; the views stand before it."""
        key = event.key
        if key[:2] not in (_SLICES, _RULES) or not event.is_about_object:
            return
        old = None if key in self._views.unreadable else self._views.objects.get(key)
        new = None if event.type is EventType.OBJECT_DELETED else event.object
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        trees = (old, new) if key[:2] == _SLICES else ()
        change = _Change(
            revision=event.revision,
            time=event.stamp.time,
            key=key,
            before=old,
            is_placed=is_placed(event),
            pool_names=frozenset(dra.pool_name(tree) for tree in trees if tree is not None),
        )
        self._changes.append(change)
        while self._changes[0].time < event.stamp.time - IN_FLIGHT:
            self._changes.popleft()

    def earlier(
        self, event: Event, made: Revision, allocations: Iterable[JsonView]
    ) -> Iterator[Inventory]:
        """The devices as they may have been known when a claim was decided, latest first.

        The claim was made at the revision `made` (0: perhaps later). `allocations` are the recorded
        one and those that it is compared with: changes of slices of other pools are taken back
        with the next change. Each inventory is valid until the next one.
        """
        pool_names = {result.id[1] for each in allocations for result in dra.results_of(each)}
        changes = [
            change
            for change in reversed(self._changes)
            if change.time >= event.stamp.time - IN_FLIGHT
            and (change.revision > made or not change.is_placed)
        ]
        return islice(self._without(changes, pool_names), STATES_MAX)

    def _without(
        self, changes: Collection[_Change], pool_names: Collection[str]
    ) -> Iterator[Inventory]:
        kinds = {change.key[:2] for change in changes}
        alone = [{kind} for kind in sorted(kinds)] if len(kinds) > 1 else []
        for unread in (kinds, *alone):
            inventory, is_new = self._views.inventory.copy(), False
            for change in changes:
                if change.key[:2] not in unread:
                    continue
                change.take_back(inventory)
                is_new = change.key[:2] == _SLICES and change.pool_names.isdisjoint(pool_names)
                if not is_new:
                    yield inventory
            if is_new:
                yield inventory
