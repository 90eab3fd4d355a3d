"""The views that the product reads from memory, all at one revision.

`objects` is a projection; the inventory of devices and the allocated state are kept by the domain's
own incremental structures, fed from the same events.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.domain.allocation import AllocatedState, Features
from app.domain.allocation.allocator import reading_of
from app.domain.allocation.quirks import Quirks
from app.domain.controllers import registry
from app.domain.devices import nodes, pools
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.devices.pools import OldPool
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.log.projection import Projection
from app.domain.objects import profile as profiles
from app.domain.objects.profile import GATES, Profile
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from projections import all_projections
from projections.last_events import LastEvent, plain
from projections.objects import ObjectsProjection

_MERGED = frozenset(("devicetaintrules", "resourceslicepatches"))

REMERGED_MAX = 1_024
"""The number of remembered revisions of rules and patches that changed slices, the latest."""


def features_of(profile: Profile) -> Features:
    """The allocator's features that a profile's gates enable."""
    features = _of_gates(profile)
    return replace(
        features,
        taint_rules=features.taint_rules and not profile.ignores_rules,
        cleaned_configs=profile.follows(profiles.CONFIGURATIONS),
        node_scoped_pools=profile.follows(profiles.POOLS),
    )


def _of_gates(profile: Profile) -> Features:
    return Features.of_gates({gate: profile.enabled(gate) for gate in GATES})


def compiler_of(profile: Profile) -> CelCompiler:
    """A selector compiler with the error texts of the release."""
    return CelCompiler(detailed_errors=profile.follows(profiles.SELECTOR_ERRORS))


def projections_of(
    settings: JsonView, *, decoded_max: int | None = None, plain_max: int | None = None
) -> Callable[[], Sequence[Projection]]:
    """A function that makes new instances of every view that is stored as tables.

    They show what `LiveViews` show, with the gates and quirks in the settings of a history.
    `decoded_max` limits the decoded trees, `plain_max` the objects that are not compressed. Raises
    InputError for settings that can't be read.
    """
    profile = profiles.from_settings(settings)
    quirks = registry.quirks_of(profile, registry.options_from(settings))
    features = _of_gates(profile)
    return lambda: all_projections(
        compiler=compiler_of(profile),
        with_rules=features.taint_rules,
        with_patches=features.patches,
        rules_unseen=profile.ignores_rules,
        rules_without_selector_match=profile.empty_rules_taint,
        rules_without_selector_evict=not quirks.c1,
        empty_effect_tolerates=not quirks.c2,
        decoded_max=decoded_max,
        plain_max=plain_max,
    )


class ReleaseCompilers:
    """Selector compilers that many histories share, one for each form of error texts."""

    def __init__(self) -> None:
        self._compilers: dict[bool, CelCompiler] = {}

    def of(self, profile: Profile) -> CelCompiler:
        """The compiler with the error texts of the profile's release."""
        is_detailed = profile.follows(profiles.SELECTOR_ERRORS)
        if is_detailed not in self._compilers:
            self._compilers[is_detailed] = compiler_of(profile)
        return self._compilers[is_detailed]


class LiveViews:
    """The views that reconcilers, queries and the API read.

    After `fold(event)` every part is at the revision of that event. Folding never raises: an object
    that cannot be interpreted is kept in `objects`, left out of the other views, and named in
    `unreadable`. Of more than `plain_max` objects, the older ones are compressed.
    """

    def __init__(self, profile: Profile, *, plain_max: int | None = None) -> None:
        features = features_of(profile)
        self.profile = profile
        self.features = features
        self.objects = ObjectsProjection(tells_changes=False, plain_max=plain_max)
        self.inventory = Inventory(
            compiler=compiler_of(profile),
            with_rules=features.taint_rules,
            with_patches=features.patches,
            rules_without_selector_match=profile.empty_rules_taint,
        )
        self.allocated = AllocatedState(consumable_capacity=features.consumable_capacity)
        self.unreadable: dict[ObjectKey, str] = {}
        self._remerged: deque[Revision] = deque()
        self._forgotten = Revision(0)
        inventory = self.inventory
        self._put: Mapping[str, Callable[[JsonObject], object]] = {
            "resourceslices": inventory.put_slice,
            "devicetaintrules": inventory.put_rule,
            "deviceclasses": inventory.put_class,
            "resourceclaims": self.allocated.add_claim,
        }
        self._remove: Mapping[str, Callable[[str], object]] = {
            "resourceslices": inventory.remove_slice,
            "devicetaintrules": inventory.remove_rule,
            "resourceslicepatches": inventory.remove_patch,
            "deviceclasses": inventory.remove_class,
        }

    @property
    def revision(self) -> Revision:
        """The revision last folded."""
        return self.objects.revision

    def fold(self, event: Event, created: Revision = Revision(0)) -> None:
        """Applies one event to every view.

        `created` is the revision of the object's creation where earlier events are not folded.
        """
        key = event.key
        if event.is_about_object and key.group == api_groups.RESOURCE:
            self._fold_devices(event, created)
        elif (
            event.type is EventType.OBJECT_DELETED
            and (key.group, key.resource) == api_resources.NODES
        ):
            self.inventory.forget_node(key.name)
        self.objects.fold(event, created)

    def show_as_of(self, revision: Revision) -> None:
        """Marks the folded state as that of `revision` (nothing changed since the last event)."""
        self.objects.show_as_of(revision)

    def may_have_remerged(self, revision: Revision) -> bool:
        """True when the rule or patch of this revision changed the content of some slice.

        Also True for revisions for which this is no longer known.
        """
        return revision in self._remerged or revision <= self._forgotten

    def old_pools(self, place: PoolId, quirks: Quirks) -> tuple[OldPool, ...]:
        """The older generations of a pool whose devices some nodes can still be given (Q12)."""
        objects = self.objects
        trees = (objects.get(key) or {} for key in objects.keys(*api_resources.NODES))
        reading = reading_of(self.features, quirks)
        return pools.old_pools(self.inventory.slices_of(place), map(nodes.node_of, trees), reading)

    def load_objects(self, state: bytes) -> None:
        """Start from a snapshot of the objects; the other views follow from it."""
        for _ in self.load_in_steps(state):
            pass

    def load_in_steps(self, state: bytes) -> Iterator[None]:
        """Start from a snapshot as `load_objects` does, with some objects in each step."""
        yield from self.objects.load_in_steps(state, self._look)
        self._forgotten = self.objects.revision

    def _look(self, kept: LastEvent, created: Revision) -> None:
        if kept.key.group == api_groups.RESOURCE:
            self._fold_devices(plain(kept), created)

    def _fold_devices(self, event: Event, created: Revision = Revision(0)) -> None:
        """Applies an event about devices; for an old object, `created` is its first revision."""
        key = event.key
        self.unreadable.pop(key, None)
        try:
            if event.type is EventType.OBJECT_DELETED:
                changes = self._leave_out(event)
            else:
                changes = self._put_in(event, created)
        except InputError as problem:
            self.unreadable[key] = str(problem)
            # Its earlier content, too, which a process that starts now does not know.
            changes = self._leave_out(event)
        if changes and key.resource in _MERGED:
            self._remerged.append(event.revision)
            if len(self._remerged) > REMERGED_MAX:
                self._forgotten = self._remerged.popleft()

    def _put_in(self, event: Event, created: Revision) -> object:
        """The changes of devices by the present content of an object. Raises InputError."""
        tree = _named(event)
        if event.key.resource == "resourceclaims":
            self._release_replaced(event)
        put = self._put.get(event.key.resource)
        if put is not None:
            return put(tree)
        if event.key.resource == "resourceslicepatches":
            return self.inventory.put_patch(tree, revision=created or event.revision)
        return ()

    def _leave_out(self, event: Event) -> object:
        """The changes of devices when an object is gone, or cannot be interpreted."""
        key = event.key
        if key.resource == "resourceclaims":
            self._release_replaced(event)
            self.allocated.remove_claim(_named(event))
        elif key.resource in self._remove:
            return self._remove[key.resource](key.name)
        return ()

    def _release_replaced(self, event: Event) -> None:
        """Releases the devices of a claim whose deletion is not in the log."""
        key, before = event.key, self.objects.uid(event.key)
        if before is not None and before != event.uid:
            metadata = {"namespace": key.namespace, "name": key.name, "uid": before}
            self.allocated.remove_claim({"metadata": metadata})


def _named(event: Event) -> JsonObject:
    """The object under its key and uid, which decide even when its metadata has other ones."""
    tree, key = event.object, event.key
    metadata = meta.metadata(tree)
    named = {"name": key.name, "uid": event.uid}
    if key.namespace:
        named["namespace"] = key.namespace
    if all(json_tree.text(metadata, field) == value for field, value in named.items()):
        return tree
    return {**tree, "metadata": {**metadata, **named}}
