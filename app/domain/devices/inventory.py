"""All devices of a cluster, kept up to date slice by slice.

The inventory holds the published slices, the rules and patches that change them, and the derived
effective slices and pools of each node. A change updates only the affected pools. The views of
other nodes stay the same objects, so a value computed from a `NodeView` is valid as long as the
view is the same object.

**Invariant**: everything derived depends only on the present slices, rules, patches (with the
revisions of their creation) and classes, not on the order in which they were added. Slices are
ordered by key (their name).
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.devices import compiling, patches, pools, taints
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.model import Device, PatchProblem, Slice
from app.domain.devices.node_views import NodeView, view_of
from app.domain.devices.nodes import Node
from app.domain.devices.patches import ClassFilter, SlicePatch
from app.domain.devices.pools import Pool, Reading
from app.domain.devices.taints import TaintRule, TaintRules
from app.domain.values.bounded import Bounded
from app.domain.values.fields import meta
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject

QUESTIONS_MAX = 1_024
"""The most questions that have a token; beyond it, the oldest token is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceChange:
    """A merged slice before and after an event; None where it is not there.

    Parity: allocator.md 13, events.
    """

    old: Slice | None
    new: Slice | None


@dataclass(slots=True, kw_only=True)
class _CachedView:
    labels: Mapping[str, str]
    stamps: tuple[int, int]
    view: NodeView


class Inventory:
    """The devices of one cluster at one moment.

    `compiler` compiles the CEL of patches; without one, patches are not accepted. `with_rules` and
    `with_patches` are the gates of the two merges: when one is off, its merge is skipped.
    """

    def __init__(
        self,
        *,
        compiler: SelectorCompiler | None = None,
        with_rules: bool = True,
        with_patches: bool = True,
        rules_without_selector_match: bool = True,
    ) -> None:
        self._compiler = compiler
        self._with_rules = with_rules
        self._with_patches = with_patches
        self._q14 = rules_without_selector_match
        self._published: dict[str, Slice] = {}
        self._effective: dict[str, Slice] = {}
        self._by_pool: dict[PoolId, dict[str, None]] = {}
        self._local: dict[str, dict[str, None]] = {}
        self._shared: dict[str, None] = {}
        self._rules = TaintRules(without_selector=rules_without_selector_match)
        self._patches: dict[str, SlicePatch] = {}
        self._classes: dict[str, ClassFilter] = {}
        self._node_stamps: dict[str, int] = {}
        self._shared_stamp = 0
        self._views: dict[Reading, dict[str, _CachedView]] = {}
        self._counting: dict[str, dict[PoolId, int]] = {}
        self._uniform: dict[PoolId, bool] = {}
        self._questions: Bounded[Hashable, object] = Bounded(QUESTIONS_MAX)

    @classmethod
    def of_slices(cls, trees: Iterable[JsonObject]) -> "Inventory":
        """The inventory of a list of slices in their order; names may repeat (in vectors)."""
        made = cls()
        for index, tree in enumerate(trees):
            made.put_slice(tree, key=f"{index:08d}")
        return made

    def copy(self) -> "Inventory":
        """An independent inventory of the same content; values are shared, not copied."""
        made = Inventory(
            compiler=self._compiler,
            with_rules=self._with_rules,
            with_patches=self._with_patches,
            rules_without_selector_match=self._q14,
        )
        made._published = dict(self._published)
        made._effective = dict(self._effective)
        made._by_pool = {pool: dict(keys) for pool, keys in self._by_pool.items()}
        made._local = {node: dict(keys) for node, keys in self._local.items()}
        made._shared = dict(self._shared)
        made._rules = TaintRules(self._rules.by_name.values(), without_selector=self._q14)
        made._patches = dict(self._patches)
        made._classes = dict(self._classes)
        made._node_stamps = dict(self._node_stamps)
        made._shared_stamp = self._shared_stamp
        made._views = {reading: dict(views) for reading, views in self._views.items()}
        made._counting = {name: dict(counts) for name, counts in self._counting.items()}
        made._uniform = dict(self._uniform)
        made._questions = self._questions.copy()
        return made

    def put_slice(self, tree: JsonObject, *, key: str | None = None) -> tuple[SliceChange, ...]:
        """Add or replace a ResourceSlice. Raises InputError for an unreadable quantity."""
        key = meta.name(tree) if key is None else key
        published = self._published.get(key)
        new = compiling.slice_of(tree, key, published)
        old = None if published is None else self.slice(key)
        if published is not None:
            self._forget(published)
        self._published[new.key] = new
        self._by_pool.setdefault(new.pool, {})[new.key] = None
        self._count_consuming(new, 1)
        if new.node.name:
            self._local.setdefault(new.node.name, {})[new.key] = None
        else:
            self._shared[new.key] = None
        self._touch_pool(new.pool)
        if published is None or old is None:
            return (SliceChange(old=None, new=self.slice(key)),)
        effective = self._effective[key] = self._merged(new, (published, old))
        return (SliceChange(old=old, new=effective),)

    def remove_slice(self, name: str) -> tuple[SliceChange, ...]:
        """Removes a ResourceSlice; does nothing when there is none with that name."""
        old = self._effective_or_none(name)
        if old is None:
            return ()
        self._forget(self._published[name])
        del self._published[name]
        return (SliceChange(old=old, new=None),)

    def put_rule(self, tree: JsonObject) -> tuple[SliceChange, ...]:
        """Adds or replaces a DeviceTaintRule and returns the slices whose merged taints change."""
        rule = taints.rule_of(tree)
        before = self._rules.put(rule)
        affected = self._slices_under(rule)
        if before is not None:
            affected |= self._slices_under(before)
        return self._remerge(affected) if self._with_rules else ()

    def remove_rule(self, name: str) -> tuple[SliceChange, ...]:
        """Removes a DeviceTaintRule and returns the slices whose merged taints change."""
        rule = self._rules.remove(name)
        if rule is None or not self._with_rules:
            return ()
        return self._remerge(self._slices_under(rule))

    def put_patch(self, tree: JsonObject, *, revision: int = 0) -> tuple[SliceChange, ...]:
        """Adds or replaces a ResourceSlicePatch and returns the slices that change.

        `revision` is the revision of the event; for a new patch, that of its creation.
        Raises InputError for an unreadable quantity.
        """
        assert self._compiler is not None, "patches need a compiler of selectors"
        patch = patches.patch_of(tree, self._compiler, revision)
        before = self._patches.get(patch.name)
        self._patches[patch.name] = patch = patches.as_old_as(patch, before)
        concerned = [patch] if before is None else [patch, before]
        return self._remerge(self._slices_patched_by(concerned)) if self._with_patches else ()

    def remove_patch(self, name: str) -> tuple[SliceChange, ...]:
        """Removes a ResourceSlicePatch and returns the slices that change."""
        patch = self._patches.pop(name, None)
        if patch is None or not self._with_patches:
            return ()
        return self._remerge(self._slices_patched_by([patch]))

    def put_class(self, tree: JsonObject) -> tuple[SliceChange, ...]:
        """Adds or replaces a DeviceClass, which the filters of patches may name."""
        if self._compiler is None:
            return ()
        name = meta.name(tree)
        self._classes[name] = patches.class_filter_of(tree, self._compiler)
        return self._class_changed(name)

    def remove_class(self, name: str) -> tuple[SliceChange, ...]:
        """Removes a DeviceClass; patches that name it then match nothing."""
        if self._classes.pop(name, None) is None:
            return ()
        return self._class_changed(name)

    def slice(self, key: str) -> Slice:
        """The effective slice: published devices with rules and patches merged in."""
        effective = self._effective.get(key)
        if effective is None:
            effective = self._merged(self._published[key])
            self._effective[key] = effective
        return effective

    def slices(self) -> Iterator[Slice]:
        """All effective slices in order of key."""
        for key in sorted(self._published):
            yield self.slice(key)

    def slices_of(self, pool: PoolId) -> Sequence[Slice]:
        """The effective slices of a pool, of all nodes and generations, in order of key."""
        return [self.slice(key) for key in sorted(self._by_pool.get(pool, ()))]

    def pool_ids(self) -> Sequence[PoolId]:
        """All pools that have a slice, by driver and name."""
        return sorted(self._by_pool)

    def pool(self, pool: PoolId) -> Pool | None:
        """The pool as the whole cluster sees it, or None when it has no slice."""
        everywhere = self.slices_of(pool)
        return pools.survey(pool, everywhere) if everywhere else None

    def has_plain_counters(self, pool: PoolId) -> bool:
        """Whether all nodes see the same counters of the pool, and no other pool shares its books.

        If so, quirks q3 and q12 cannot make the available counters depend on the order of queries.
        """
        if any(other != pool for other in self._counting.get(pool[1], ())):
            return False
        known = self._uniform.get(pool)
        if known is None:
            everywhere = self.slices_of(pool)
            # A slice that announces fewer would make a part of the pool complete for its node.
            known = len({resource_slice.generation for resource_slice in everywhere}) == 1 and all(
                resource_slice.slice_count == len(everywhere) for resource_slice in everywhere
            )
            self._uniform[pool] = known
        return known

    def rules(self) -> Mapping[str, TaintRule]:
        """The DeviceTaintRules by name."""
        return self._rules.by_name

    def patches(self) -> Mapping[str, SlicePatch]:
        """The ResourceSlicePatches by name."""
        return self._patches

    def patch_problems(self) -> Iterator[PatchProblem]:
        """All patches that were skipped for a device because a selector failed on it."""
        for resource_slice in self.slices():
            yield from resource_slice.patch_problems

    def node_view(self, node: Node, reading: Reading) -> NodeView:
        """The view of a node. It stays the same object until a slice of one of its pools changes.

        Raises NodeSelectionError with the text of the API.
        """
        views = self._views.get(reading)
        if views is None:
            views = self._views[reading] = {}
        stamps = (self._node_stamps.get(node.name, 0), self._shared_stamp)
        cached = views.get(node.name)
        if (
            cached is not None
            and cached.stamps == stamps
            and (cached.labels is node.labels or cached.labels == node.labels)
        ):
            return cached.view
        gathered = pools.gather(node, self._candidates(node, reading), self.slices_of, reading)
        view = view_of(node, gathered)
        views[node.name] = _CachedView(labels=node.labels, stamps=stamps, view=view)
        return view

    def token_of(self, question: Hashable) -> object:
        """A short key for a long question that is used with many views; equal ones share it."""
        known = self._questions.get(question)
        if known is None:
            known = self._questions[question] = object()
        return known

    def forget_node(self, name: str) -> None:
        """Drops the cached views of a deleted node, so that the cache does not grow without end."""
        for views in self._views.values():
            views.pop(name, None)
        self._node_stamps.pop(name, None)

    def _candidates(self, node: Node, reading: Reading) -> list[Slice]:
        """The node's own slices, then the shared ones; for the stable variant all, in order."""
        if reading.counter_slices_everywhere:
            return list(self.slices())
        own = self._local.get(node.name, ()) if node.name else ()
        keys = [*(sorted(own) if len(own) > 1 else own), *sorted(self._shared)]
        return [self.slice(key) for key in keys]

    def _effective_or_none(self, key: str) -> Slice | None:
        return self.slice(key) if key in self._published else None

    def _forget(self, old: Slice) -> None:
        """Removes a published slice from every index."""
        self._touch_pool(old.pool)
        self._effective.pop(old.key, None)
        keys = self._by_pool[old.pool]
        del keys[old.key]
        if not keys:
            del self._by_pool[old.pool]
        self._count_consuming(old, -1)
        if old.node.name:
            del self._local[old.node.name][old.key]
        else:
            del self._shared[old.key]

    def _count_consuming(self, resource_slice: Slice, sign: int) -> None:
        """Updates the index of pools that have devices with counters, by pool name."""
        if not resource_slice.traits.consuming:
            return
        pools_of_name = self._counting.setdefault(resource_slice.pool[1], {})
        count = pools_of_name.get(resource_slice.pool, 0) + sign
        if count:
            pools_of_name[resource_slice.pool] = count
            return
        del pools_of_name[resource_slice.pool]
        if not pools_of_name:
            del self._counting[resource_slice.pool[1]]

    def _touch_pool(self, pool: PoolId) -> None:
        """Invalidates the views of all nodes that see the pool."""
        self._uniform.pop(pool, None)
        for key in self._by_pool.get(pool, ()):
            name = self._published[key].node.name
            if not name or self._published[key].counter_sets:
                self._shared_stamp += 1
                return
            self._node_stamps[name] = self._node_stamps.get(name, 0) + 1

    def _merged(self, published: Slice, before: tuple[Slice, Slice] | None = None) -> Slice:
        """The slice with rules and patches merged in.

        `before` is the previously published slice and the result of its merge with the same rules.
        """
        rules = self._rules if self._with_rules and self._rules.by_name else None
        applied = self._patches.values() if self._with_patches else ()
        if rules is None and not applied:
            return published
        known: Mapping[Device, Device] = {}
        if before is not None and not applied:
            known = dict(zip(before[0].devices, before[1].devices, strict=True))
        problems: list[PatchProblem] = []
        devices: list[Device] = []
        for device in published.devices:
            if device in known:
                devices.append(known[device])
                continue
            effective = device
            if applied:
                effective, found_problems = patches.merge(device, applied, self._classes)
                problems.extend(found_problems)
            added = () if rules is None else rules.added_to(device.id)
            if added:
                # Devices without taints of their own share those of the rules.
                added = (*effective.taints, *added) if effective.taints else added
                effective = replace(effective, taints=added)
            devices.append(effective)
        unchanged = all(a is b for a, b in zip(devices, published.devices, strict=True))
        if unchanged and not problems:
            return published
        return replace(published, devices=tuple(devices), patch_problems=tuple(problems))

    def _slices_under(self, rule: TaintRule) -> set[str]:
        """The keys of the slices that have a device which the rule taints."""
        if not rule.selects:
            return set(self._published)
        if rule.driver is not None and rule.pool is not None:
            keys: Iterable[str] = self._by_pool.get((rule.driver, rule.pool), ())
        else:
            keys = self._published
        return {
            key
            for key in keys
            if any(rule.matches(device.id) for device in self._published[key].devices)
        }

    def _slices_patched_by(self, concerned: Iterable[SlicePatch]) -> set[str]:
        return {
            key
            for key, resource_slice in self._published.items()
            if any(
                patch.names(device.id) for patch in concerned for device in resource_slice.devices
            )
        }

    def _class_changed(self, name: str) -> tuple[SliceChange, ...]:
        concerned = [patch for patch in self._patches.values() if patch.class_name == name]
        return self._remerge(self._slices_patched_by(concerned)) if concerned else ()

    def _remerge(self, keys: Iterable[str]) -> tuple[SliceChange, ...]:
        """Merges the slices again and returns the changes."""
        changes = []
        for key in sorted(keys):
            old = self._effective.pop(key, None)
            new = self.slice(key)
            if old is None:
                old = self._published[key]
            if _same_devices(old, new):
                self._effective[key] = old
                continue
            self._touch_pool(new.pool)
            changes.append(SliceChange(old=old, new=new))
        return tuple(changes)


def _same_devices(old: Slice, new: Slice) -> bool:
    """Whether two merges of a slice have the same result."""
    return old.patch_problems == new.patch_problems and all(
        before.taints == after.taints
        and before.patches == after.patches
        and before.attributes == after.attributes
        and before.capacity_tree == after.capacity_tree
        for before, after in zip(old.devices, new.devices, strict=True)
    )
