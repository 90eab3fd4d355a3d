"""Taints in force, and the devices, claims and pods that each DeviceTaintRule concerns.

There is one row per taint of a device: first the taints of its slice, then the taints of rules by
name. There is one row per rule: the devices it matches, the claims and pods it concerns, and the
tolerations. Where the gate of rules is off, a rule taints no device. A scheduler that doesn't see
rules (C24) changes nothing here: the eviction controller sees them. A rule without selector taints
every device for allocation (quirk Q14) and none for eviction (quirk C1). Only devices of the newest
generation of their pool count.
Parity: allocator.md 9 and 13, controllers.md 1.2 and 1.3.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import cast

import msgspec

from app.domain.devices import pools, taints
from app.domain.devices.model import Taint
from app.domain.devices.taints import TaintRule
from app.domain.log import EventType, ObjectKey, Revision
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, DriverName, PoolId, PoolName
from app.domain.values.json_tree import JsonObject
from app.domain.values.multimap import Multimap
from projections import outlines
from projections.loading import shared
from projections.row_changes import NOTED_MAX, LateRows, PagedView, RowChanges
from projections.tables import RULES, TAINTS

NAMED_MAX = 100
"""Devices or claims that the row of a rule names; the counts include all."""


class _HeldDevice(msgspec.Struct, frozen=True, array_like=True):
    """One result of a claim's allocation: the device and the tolerations copied to it."""

    device: DeviceId
    request: str
    tolerations: tuple[JsonObject, ...]


class _ReservedClaim(msgspec.Struct, frozen=True, array_like=True):
    """The devices that a claim holds, and the names of the pods for which it is reserved."""

    held: tuple[_HeldDevice, ...]
    pods: tuple[str, ...]


class _Slice(msgspec.Struct, frozen=True, array_like=True):
    """The pool and generation of a slice, its device names, and the taints of tainted devices."""

    driver: DriverName
    pool: PoolName
    generation: int
    devices: tuple[DeviceName, ...]
    tainted: tuple[tuple[DeviceName, tuple[JsonObject, ...]], ...]


_ClaimName = tuple[str, str]
_Merged = dict[DeviceName, tuple[JsonObject, ...]]
"""Device name to its own taints, for one pool."""


class TaintsProjection(LateRows, PagedView):
    """Folds ResourceSlices, DeviceTaintRules and the allocations of ResourceClaims.

    Example: rule `r` with effect NoExecute on pool `d/p` of two devices, claim `a` holds one of
    them: three rows, two of `view_taints` (one naming claim `a`) and one of `view_taint_rules`
    with devices 2 and allocated 1.
    """

    name = "taints"
    version = 3

    def __init__(
        self,
        *,
        with_rules: bool = True,
        rules_without_selector_match: bool = True,
        rules_without_selector_evict: bool = False,
        empty_effect_tolerates: bool = False,
    ) -> None:
        self.revision = Revision(0)
        self._with_rules = with_rules
        self._everywhere = rules_without_selector_match or rules_without_selector_evict
        self._evicts_everywhere = rules_without_selector_evict
        self._evicts_despite = ("NoExecute", "") if empty_effect_tolerates else ("NoExecute",)
        self._slices: dict[str, _Slice] = {}
        self._by_pool: dict[PoolId, set[str]] = {}
        self._merged: dict[PoolId, _Merged] = {}
        self._rules: dict[str, TaintRule] = {}
        self._noted: dict[ObjectKey, outlines.SeenClaim | None] = {}
        self._claims: dict[_ClaimName, _ReservedClaim] = {}
        self._holders: Multimap[DeviceId, _ClaimName] = Multimap()
        self._rows: dict[DeviceId, int] = {}
        # Of devices with several taints, as long as no slice and no rule changes: each is a row.
        self._listed: dict[DeviceId, list[Taint]] = {}
        self._dirty_pools: set[PoolId] = set()
        self._dirty_devices: set[DeviceId] = set()
        self._dirty_rules: set[str] = set()
        self._changes = RowChanges((TAINTS, RULES), self._compute)
        self._touched = self._changes.touched(TAINTS.name)
        self._touched_rules = self._changes.touched(RULES.name)

    def _take(self, page: Page) -> None:
        """Apply slices and rules, and note claims."""
        noted = self._noted
        for event, claim in page.read(api_resources.RESOURCE_CLAIMS, outlines.seen_claim):
            noted[event.key] = claim
        if len(noted) > NOTED_MAX:
            self._take_noted()
        for event, outline in page.read(api_resources.RESOURCE_SLICES, outlines.slice):
            published = None if outline is None else _slice_of(outline.spec)
            self._set_slice(event.key.name, published)
        for event, _ in page.of(api_resources.DEVICE_TAINT_RULES):
            name, is_deleted = event.key.name, event.type is EventType.OBJECT_DELETED
            self._set_rule(name, None if is_deleted else _read_rule(name, event.object))

    def tables(self) -> tuple[Table, ...]:
        """Taints and rules."""
        return (TAINTS, RULES)

    def dump(self) -> bytes:
        """Slices, rules and claims with allocations, sorted."""
        self._take_noted()
        rules = [(name, rule.tree) for name, rule in sorted(self._rules.items())]
        slices, claims = sorted(self._slices.items()), sorted(self._claims.items(), key=_first)
        return _encoder.encode((self.revision, slices, rules, claims))

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, slices, rules, claims = _snapshot.decode(state)
        for name, resource_slice in slices:
            self._set_slice(name, shared(resource_slice))
        for name, tree in rules:
            self._set_rule(name, taints.rule_of(tree))
        for each in claims:
            self._set_claim(*shared(_decode_claim(each)))

    def _take_noted(self) -> None:
        """Apply the noted claims."""
        for key, claim in self._noted.items():
            if claim is not None and claim.held is not None:
                self._set_claim(key[2:], _claim_of(claim.held, claim.consumers))
            else:
                self._set_claim(key[2:], None)
        self._noted.clear()

    def _set_claim(self, name: _ClaimName, claim: _ReservedClaim | None) -> None:
        old = self._claims.get(name)
        if claim == old:
            return
        if old is not None:
            del self._claims[name]
            for held in old.held:
                self._holders.discard(held.device, name)
                self._dirty_devices.add(held.device)
        if claim is not None:
            self._claims[name] = claim
            for held in claim.held:
                self._holders.add(held.device, name)
                self._dirty_devices.add(held.device)

    def _set_slice(self, name: str, new: _Slice | None) -> None:
        old = self._slices.get(name)
        if new == old:
            return
        if old is not None:
            del self._slices[name]
            members = self._by_pool[(old.driver, old.pool)]
            members.discard(name)
            if not members:
                del self._by_pool[(old.driver, old.pool)]
            self._dirty_pools.add((old.driver, old.pool))
        if new is not None:
            self._slices[name] = new
            self._by_pool.setdefault((new.driver, new.pool), set()).add(name)
            self._dirty_pools.add((new.driver, new.pool))

    def _set_rule(self, name: str, rule: TaintRule | None) -> None:
        """Replace a rule; its devices are touched unless only its status changed."""
        old = self._rules.pop(name, None)
        if rule is not None:
            self._rules[name] = rule
        self._listed.clear()
        self._dirty_rules.add(name)
        if old is None or rule is None or not _same_effect(old, rule):
            for one_rule in (old, rule):
                if one_rule is not None:
                    self._dirty_devices.update(self._matched(one_rule))

    def _catch_up(self) -> None:
        """Update the changed pools, then touch the rows of the devices and rules that change."""
        self._take_noted()
        dirty_pools, self._dirty_pools = self._dirty_pools, set()
        if dirty_pools:
            self._listed.clear()
        for pool in dirty_pools:
            before, after = self._merged.pop(pool, {}), self._merge(pool)
            if after:
                self._merged[pool] = after
            for name in before.keys() | after.keys():
                if before.get(name) != after.get(name):
                    self._dirty_devices.add((*pool, name))
        devices, self._dirty_devices = self._dirty_devices, set()
        for device in devices:
            self._touch_device(device)
        if devices:
            for rule_name, rule in self._rules.items():
                if rule_name not in self._dirty_rules and any(
                    self._taints(rule, device) for device in devices
                ):
                    self._dirty_rules.add(rule_name)
        rules, self._dirty_rules = self._dirty_rules, set()
        self._touched_rules.update((name,) for name in rules)

    def _touch_device(self, device: DeviceId) -> None:
        count = sum(1 for _ in self._taints_of(device))
        before = self._rows.pop(device, 0)
        if count:
            self._rows[device] = count
        for position in range(max(before, count)):
            self._touched.add((*device, position))

    def _merge(self, pool: PoolId) -> _Merged:
        members = sorted(self._by_pool.get(pool, ()))
        merged: _Merged = {}
        for resource_slice in pools.newest([self._slices[name] for name in members]):
            tainted = dict(resource_slice.tainted)
            for device in resource_slice.devices:
                merged.setdefault(device, tainted.get(device, ()))
        return merged

    def _taints_of(self, device: DeviceId) -> Iterator[Taint]:
        """The merged taints of a published device; no taints for other devices."""
        own = self._merged.get(device[:2], {}).get(device[2])
        if own is None:
            return
        for tree in own:
            yield taints.taint_of(tree)
        for name in sorted(self._rules):
            if self._taints(self._rules[name], device):
                yield self._rules[name].taint

    def _taints(self, rule: TaintRule, device: DeviceId) -> bool:
        """Whether the rule taints the device, published or not."""
        return self._with_rules and rule.matches(device, without_selector=self._everywhere)

    def _matched(self, rule: TaintRule) -> Iterator[DeviceId]:
        """The published devices that the rule taints, in order."""
        if rule.driver is not None and rule.pool is not None:
            pools: Iterable[PoolId] = [(rule.driver, rule.pool)]
        else:
            pools = sorted(self._merged)
        for pool in pools:
            if rule.driver is None or rule.driver == pool[0]:
                for name in self._merged.get(pool, ()):
                    if self._taints(rule, (*pool, name)):
                        yield (*pool, name)

    def _held_under(self, rule: TaintRule) -> Iterable[DeviceId]:
        """The held devices that a rule may taint, in order: of a rule for one device that alone."""
        if rule.selects and rule.driver and rule.pool and rule.device:
            device = rule.driver, rule.pool, rule.device
            return (device,) if self._holders.of(device) else ()
        return sorted(self._holders)

    def _compute(self, table: str, key: RowKey) -> Row | None:
        if table == RULES.name:
            rule = self._rules.get(str(key[0]))
            return None if rule is None else self._rule_row(str(key[0]), rule)
        device = cast(DeviceId, key[:3])
        merged = self._listed.get(device)
        if merged is None:
            merged = list(self._taints_of(device))
            if len(merged) > 1:
                self._listed[device] = merged
        position = int(key[3])
        if not 0 <= position < len(merged):
            return None
        taint = merged[position]
        return {
            "driver": device[0],
            "pool": device[1],
            "device": device[2],
            "position": position,
            **_taint_columns(taint),
            "rule": taint.rule,
            "claims": [row for _, row in self._concerned(taint, (device,))],
        }

    def _rule_row(self, name: str, rule: TaintRule) -> Row:
        matched = list(self._matched(rule))
        allocated = (device for device in self._held_under(rule) if self._taints(rule, device))
        concerned = list(self._concerned(rule.taint, allocated))
        pods = {(claim[0], pod) for claim, row in concerned for pod in row["pods"]}
        return {
            "rule": name,
            **_taint_columns(rule.taint),
            "selects": rule.selects,
            "driver": rule.driver or "",
            "pool": rule.pool or "",
            "device": rule.device or "",
            "devices": len(matched),
            "device_names": ["/".join(device) for device in sorted(matched)[:NAMED_MAX]],
            "allocated": len(concerned),
            "tolerated": sum(1 for _, row in concerned if row["tolerated"]),
            "claims": [row for _, row in concerned[:NAMED_MAX]],
            "pods": len(pods),
            "conditions": meta.condition_trees(rule.tree),
        }

    def _concerned(
        self, taint: Taint, devices: Iterable[DeviceId]
    ) -> Iterator[tuple[_ClaimName, JsonObject]]:
        """Each allocation result on one of the devices, with its response to the taint."""
        rule = self._rules.get(taint.rule)
        evicts = rule is None or rule.selects or self._evicts_everywhere
        despite = self._evicts_despite if evicts else None
        for device in devices:
            for name in sorted(self._holders.of(device)):
                claim = self._claims[name]
                for held in claim.held:
                    if held.device == device:
                        yield name, _concern_row(name, claim, held, taint, despite)


def _concern_row(
    name: _ClaimName,
    claim: _ReservedClaim,
    held: _HeldDevice,
    taint: Taint,
    despite: Collection[str] | None,
) -> JsonObject:
    """The row of an allocation result that a taint concerns.

    `tolerated` is the rule for allocation; `evicted_after` is the delay of eviction in seconds,
    or None. `despite` are the effects of tolerations that count for it, None when the taint evicts
    nobody, as that of a rule without selector. Parity: for eviction a toleration must name the
    effect NoExecute itself (quirk C2), and a toleration without seconds overrides all others
    (controllers.md 1.3).
    """
    known = [(tree, taints.toleration_of(tree)) for tree in held.tolerations]
    matching = [tree for tree, toleration in known if taints.tolerates(toleration, taint)]
    evicted_after: int | None = None
    if taint.effect == "NoExecute" and despite is not None:
        exact = [tree for tree in matching if (tree.get("effect") or "") in despite]
        seconds = [json_tree.integer(tree, "tolerationSeconds") for tree in exact]
        bounded = [max(0, delay) for delay in seconds if delay is not None]
        evicted_after = None if len(bounded) < len(seconds) else min(bounded, default=0)
    return {
        "claim": "/".join(name),
        "device": "/".join(held.device),
        "request": held.request,
        "tolerated": bool(matching),
        "evicted_after": evicted_after,
        "pods": list(claim.pods),
    }


def _taint_columns(taint: Taint) -> Row:
    return {
        "taint_key": taint.key,
        "taint_value": taint.value,
        "effect": taint.effect,
        "time_added": taint.time_added,
    }


def _same_effect(old: TaintRule, new: TaintRule) -> bool:
    return (old.selects, old.driver, old.pool, old.device, old.taint) == (
        new.selects,
        new.driver,
        new.pool,
        new.device,
        new.taint,
    )


def _claim_of(
    held: tuple[outlines.Held, ...], consumers: tuple[dra.Consumer, ...]
) -> _ReservedClaim:
    """The devices and pods of an allocated claim."""
    return _ReservedClaim(
        tuple(
            _HeldDevice((each.driver, each.pool, each.device), each.request, each.tolerations)
            for each in held
        ),
        tuple(user.name for user in consumers if user.resource == "pods"),
    )


def _read_rule(name: str, tree: JsonObject) -> TaintRule:
    """The rule under the name of its key, even when its metadata has another name."""
    metadata = {**meta.metadata(tree), "name": name}
    return taints.rule_of({**tree, "metadata": metadata})


def _slice_of(spec: outlines.SliceSpecOutline) -> _Slice:
    return _Slice(
        spec.driver,
        spec.pool.name,
        spec.pool.generation,
        tuple(device.name for device in spec.devices),
        tuple((device.name, device.taints) for device in spec.devices if device.taints),
    )


def _first(item: tuple[_ClaimName, _ReservedClaim]) -> _ClaimName:
    return item[0]


_encoder = msgspec.msgpack.Encoder()
_decode_claim = msgspec.msgpack.Decoder(tuple[_ClaimName, _ReservedClaim]).decode
_snapshot = msgspec.msgpack.Decoder(
    tuple[
        Revision,
        list[tuple[str, _Slice]],
        list[tuple[str, JsonObject]],
        list[msgspec.Raw],
    ]
)
