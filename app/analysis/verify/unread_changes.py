"""The earlier states of devices, classes and the node that a scheduler may have chosen from.

A scheduler writes seconds after its choice while its client's rate limit holds the request back.
What was written meanwhile played no part in the choice. So the slices, patches, DeviceTaintRules
and DeviceClasses that changed since the choice may have been made, and the labels of the node, are
taken back, the latest first.

Example: a device is free when it is chosen, is tainted a second later, and its allocation is
written another second later. Without the taint the allocator comes to it again.

Each kind comes by a watch of its own, and one may be ahead of the others. No choice is older than
its claim, unless the scheduler makes the claim itself. What was stored after the nomination of the
pod was certainly not known (`nominations`).
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from msgspec import Raw, Struct

from app.analysis.verify.allocation_index import is_placed
from app.analysis.verify.invariants.queues import WAIT_MAX
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.analysis.views import LiveViews
from app.domain.devices.inventory import Inventory
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.raw_parts import ABSENT, splitter
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

STATES_MAX = 64
"""How many earlier states are tried for one allocation."""

_SLICES, _RULES = api_resources.RESOURCE_SLICES, api_resources.DEVICE_TAINT_RULES
_PATCHES, _CLASSES = api_resources.RESOURCE_SLICE_PATCHES, api_resources.DEVICE_CLASSES
_KINDS = frozenset((_SLICES, _RULES, _PATCHES, _CLASSES, api_resources.NODES))


class _NodeMetadata(Struct, frozen=True, gc=False):
    labels: Raw = ABSENT


class _LabelledNode(Struct, frozen=True, gc=False):
    """The one part of a node that the choice of devices looks at."""

    metadata: _NodeMetadata = _NodeMetadata()


_labelled = splitter(_LabelledNode)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierState:
    """The devices before some changes, and the changed objects: None where there was none."""

    inventory: Inventory
    objects: Mapping[ObjectKey, JsonObject | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A change of an object, which was `before` (None: it is new, or could not be read).

    `created` is the revision of its creation, where its age matters.
    """

    revision: Revision
    time: Instant
    key: ObjectKey
    before: JsonObject | None
    created: int
    is_placed: bool
    pool_names: frozenset[str]

    def take_back(self, inventory: Inventory) -> None:
        """Gives an inventory the object as it was."""
        kind, name, tree = self.key[:2], self.key.name, self.before
        if kind == _SLICES:
            _ = inventory.remove_slice(name) if tree is None else inventory.put_slice(tree)
        elif kind == _RULES:
            _ = inventory.remove_rule(name) if tree is None else inventory.put_rule(tree)
        elif kind == _CLASSES:
            _ = inventory.remove_class(name) if tree is None else inventory.put_class(tree)
        elif kind == _PATCHES:
            inventory.remove_patch(name)
            if tree is not None:
                inventory.put_patch(tree, revision=self.created)


class UnreadChanges:
    """The latest changes of what choices rest on, while a log is folded event by event."""

    def __init__(self, views: LiveViews) -> None:
        self._views = views
        self._changes: deque[_Change] = deque()
        self._labels: dict[ObjectKey, bytes] = {}

    def follow(self, event: Event) -> None:
        """Remember what a change replaces; the views stand before it."""
        key = event.key
        if key[:2] not in _KINDS or not event.is_about_object:
            return
        if key[:2] == api_resources.NODES and not self._is_relabelled(event):
            return
        old = None if key in self._views.unreadable else self._views.objects.get(key)
        new = None if event.type is EventType.OBJECT_DELETED else event.object
        if old is not None and new is not None and _matters(key, old) == _matters(key, new):
            return
        trees = (old, new) if key[:2] == _SLICES else ()
        patch = self._views.inventory.patches().get(key.name) if key[:2] == _PATCHES else None
        change = _Change(
            revision=event.revision,
            time=event.stamp.time,
            key=key,
            before=old,
            created=0 if patch is None else patch.created,
            is_placed=is_placed(event),
            pool_names=frozenset(dra.pool_name(tree) for tree in trees if tree is not None),
        )
        self._changes.append(change)
        while self._changes[0].time < event.stamp.time - WAIT_MAX - IN_FLIGHT:
            self._changes.popleft()

    def at_choice(self, chosen_by: Revision, node: JsonView) -> EarlierState:
        """The latest state that may have been known for a choice made before a revision.

        That is the present one where the revision is 0.
        """
        inventory, objects = self._views.inventory, dict[ObjectKey, JsonObject | None]()
        for change in self._of(node):
            if 0 < chosen_by < change.revision and change.is_placed:
                if not objects:
                    inventory = inventory.copy()
                change.take_back(inventory)
                objects[change.key] = change.before
        return EarlierState(inventory=inventory, objects=objects)

    def earlier(
        self,
        since: Instant,
        made: Revision,
        allocations: Iterable[JsonView],
        node: JsonView,
        chosen_by: Revision = Revision(0),
    ) -> Iterator[EarlierState]:
        """The states that may have been known when a claim was decided, the latest first.

        It was decided after `since` and before the revision `chosen_by`, and made at the revision
        `made`; 0 where these are not known.
        `allocations` are the recorded one and those that it is compared with: changes of slices of
        other pools are taken back with the next change. Each state is valid until the next one.
        """
        pool_names = {result.id[1] for each in allocations for result in dra.results_of(each)}
        changes = [
            change
            for change in self._of(node)
            if change.time >= since
            and (change.revision > made or not change.is_placed)
            and not (0 < chosen_by < change.revision and change.is_placed)
        ]
        latest = self.at_choice(chosen_by, node)
        return islice(self._without(changes, pool_names, latest), STATES_MAX)

    def _of(self, node: JsonView) -> list[_Change]:
        """The changes that concern a choice of devices on a node, the latest first."""
        node_key = ObjectKey(*api_resources.NODES, "", meta.name(node))
        return [
            change
            for change in reversed(self._changes)
            if change.key[:2] != api_resources.NODES or change.key == node_key
        ]

    def _is_relabelled(self, event: Event) -> bool:
        """Whether a node has other labels than before; most writes of nodes report their health."""
        before = self._labels.get(event.key)
        if event.type is EventType.OBJECT_DELETED:
            self._labels.pop(event.key, None)
            return True
        labels = self._labels[event.key] = bytes(_labelled(event.body).metadata.labels)
        return labels != before

    def _without(
        self, changes: Sequence[_Change], pool_names: Collection[str], latest: EarlierState
    ) -> Iterator[EarlierState]:
        kinds = sorted({change.key[:2] for change in changes})
        for count in range(len(kinds), 0, -1):
            for unread in combinations(kinds, count):
                yield from self._before(
                    [each for each in changes if each.key[:2] in unread], pool_names, latest
                )

    def _before(
        self, changes: Sequence[_Change], pool_names: Collection[str], latest: EarlierState
    ) -> Iterator[EarlierState]:
        inventory, is_new = latest.inventory.copy(), False
        objects = dict(latest.objects)
        for change in changes:
            change.take_back(inventory)
            objects[change.key] = change.before
            is_new = change.key[:2] == _SLICES and change.pool_names.isdisjoint(pool_names)
            if not is_new:
                yield EarlierState(inventory=inventory, objects=objects)
        if is_new:
            yield EarlierState(inventory=inventory, objects=objects)


def _matters(key: ObjectKey, tree: JsonView) -> object:
    """The part of an object that choices rest on."""
    return meta.labels(tree) if key[:2] == api_resources.NODES else tree.get("spec")
