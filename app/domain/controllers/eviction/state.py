"""The state of eviction: taints of pools, rules, allocated claims with their eviction, pods.

It is folded from the log. Eviction is a function of this state; the reconciler has the queue of
pods. Worked example: slice `s` of pool (d, p) gets a NoExecute taint on device `v`; the pool's
effective taints change for `v`, the claims that hold `v` are recomputed, and the pods of claims
whose eviction has changed are processed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.domain.controllers import claim_readings, pods
from app.domain.controllers.eviction import taints
from app.domain.controllers.eviction.taints import (
    NO_EXECUTE,
    Eviction,
    EvictionReason,
    EvictionRule,
    NoExecuteTaint,
)
from app.domain.controllers.pods import PodFacts
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import is_of
from app.domain.log import Event, EventType
from app.domain.values import api_resources
from app.domain.values.fields import dra
from app.domain.values.fields.dra import DeviceResult
from app.domain.values.identifiers import (
    NO_UID,
    DeviceId,
    DeviceName,
    NamespacedName,
    PoolId,
    Uid,
)
from app.domain.values.json_tree import JsonObject
from app.domain.values.multimap import Multimap

_Tainted = dict[DeviceName, tuple[tuple[int, NoExecuteTaint], ...]]
"""The NoExecute taints of devices that have some, each with its position in the device's list."""


READ = (
    api_resources.PODS,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_SLICES,
    api_resources.DEVICE_TAINT_RULES,
)
"""The resources from which the state is folded."""


@dataclass(slots=True, kw_only=True)
class PoolTaints:
    """The tainted devices of a pool's slices, and those of the newest generation."""

    slices: dict[str, tuple[int, _Tainted]] = field(default_factory=dict)
    effective: _Tainted = field(default_factory=dict)

    def refresh(self) -> set[DeviceName]:
        """Computes the effective taints; returns the devices for which they changed."""
        newest = max((generation for generation, _ in self.slices.values()), default=0)
        after: _Tainted = {}
        for name in sorted(self.slices):
            generation, devices = self.slices[name]
            if generation == newest:
                for device, held in devices.items():
                    after.setdefault(device, held)
        before, self.effective = self.effective, after
        if before == after:
            return set()
        return {d for d in before.keys() | after.keys() if before.get(d) != after.get(d)}


REFERENCES_READ_MAX = 4
"""Consumers of a claim up to which they are read with the claim."""


@dataclass(slots=True, kw_only=True)
class TrackedClaim:
    """An allocated claim and the eviction that the taints of its devices require.

    `references` is its `reservedFor` where that is long: it is read on demand, because most claims
    do not need it. A short one is read at once, since the pods take less memory than the list.
    `consumers` is the number of its entries.
    """

    namespace: str
    name: str
    uid: Uid
    owner_uid: Uid
    results: tuple[DeviceResult, ...]
    references: Sequence[JsonObject]
    consumers: int
    eviction: Eviction | None = None
    _reserved: tuple[tuple[str, Uid], ...] | None = None
    _pod_uids: frozenset[Uid] | None = None

    @property
    def reserved(self) -> tuple[tuple[str, Uid], ...]:
        """The name and uid of each pod that the claim is reserved for."""
        if self._reserved is None:
            self._reserved = claim_readings.reserved_pods(self.references)
        return self._reserved

    @property
    def pod_uids(self) -> frozenset[Uid]:
        """The uids of these pods."""
        if self._pod_uids is None:
            self._pod_uids = frozenset(uid for _, uid in self.reserved)
        return self._pod_uids


@dataclass(slots=True, kw_only=True)
class Changes:
    """The effects of an event: pods to process again, and a new or changed rule."""

    pods: dict[NamespacedName, None] = field(default_factory=dict)
    rule: EvictionRule | None = None
    gone_rule_uid: Uid = NO_UID


class TaintState:
    """The caches of controllers.md 1.1, folded from the log.

    Without `with_rules` the gate of DeviceTaintRules is off: only taints of slices count.
    """

    def __init__(
        self, quirks: ControllerQuirks = ControllerQuirks(), *, with_rules: bool = True
    ) -> None:
        self._quirks = quirks
        self._with_rules = with_rules
        self.rules: dict[str, EvictionRule] = {}
        self.claims: dict[NamespacedName, TrackedClaim] = {}
        self.pods: dict[NamespacedName, PodFacts] = {}
        self._pools: dict[PoolId, PoolTaints] = {}
        self._slice_pool: dict[str, PoolId] = {}
        self._users: Multimap[DeviceId, NamespacedName] = Multimap()
        self._evicting: set[NamespacedName] = set()

    def fold(self, event: Event, *, has_planned: bool = True) -> Changes:
        """Folds an event and returns the pods whose eviction may have changed.

        Without `has_planned` the caller has no planned evictions that could end; the pods of a
        claim are then returned only while some claim requires an eviction.
        """
        changes = Changes()
        key = event.key
        is_gone = event.type is EventType.OBJECT_DELETED
        if is_of(key, api_resources.PODS):
            self._fold_pod(event, changes, is_gone=is_gone)
        elif is_of(key, api_resources.RESOURCE_CLAIMS):
            self._fold_claim(event, changes, is_gone=is_gone, has_planned=has_planned)
        elif is_of(key, api_resources.RESOURCE_SLICES):
            self._fold_slice(event, changes, is_gone=is_gone)
        elif is_of(key, api_resources.DEVICE_TAINT_RULES) and self._with_rules:
            self._fold_rule(event, changes, is_gone=is_gone)
        return changes

    def pod_eviction(self, place: NamespacedName) -> Eviction | None:
        """The eviction of this pod, or None (controllers.md 1.3)."""
        pod = self.pods.get(place)
        if not self._evicting or pod is None:
            return None
        if not self.may_evict(pod):
            return None
        return taints.earliest(
            claim.eviction for claim in self.claims_of(pod) if claim.eviction is not None
        )

    def may_evict(self, pod: PodFacts) -> bool:
        """True for a pod that has a node; its phase is not checked (C4)."""
        return bool(pod.node) and (self._quirks.c4 or not pod.is_done)

    def selects(self, rule: EvictionRule, driver: str, pool: str, device: str) -> bool:
        """True when the rule selects this device; a rule without a selector selects none (C1)."""
        if rule.selector is None:
            return not self._quirks.c1
        return rule.selects(driver, pool, device)

    def claims_of(self, pod: PodFacts) -> Iterator[TrackedClaim]:
        """The allocated claims that the pod uses and that are reserved for it."""
        names = [(named.name or "", named.needs_owner) for named in pods.named_claims(pod)]
        if not self._quirks.c3 and pod.extended_claim:
            names.append((pod.extended_claim, True))
        for name, needs_owner in names:
            claim = self.claims.get((pod.namespace, name))
            if claim is None or (needs_owner and claim.owner_uid != pod.uid):
                continue
            if pod.uid in claim.pod_uids:
                yield claim

    def claim_eviction(
        self, results: tuple[DeviceResult, ...], rules: dict[str, EvictionRule] | None = None
    ) -> Eviction | None:
        """The eviction that the taints on these devices require, or None."""
        evictions: list[Eviction] = []
        for result in results:
            for reason, taint in self._taints_of(result, self.rules if rules is None else rules):
                time = taints.eviction_time(
                    taint, result.tolerations, empty_effect_counts=not self._quirks.c2
                )
                if time is not None:
                    evictions.append(Eviction(time=time, reasons=(reason,)))
        return taints.earliest(evictions)

    def ignores_toleration(self, results: tuple[DeviceResult, ...], eviction: Eviction) -> bool:
        """Whether the eviction is so early because a toleration has an empty effect (C2)."""
        if not self._quirks.c2:
            return False
        for result in results:
            for reason, taint in self._taints_of(result, self.rules):
                if reason in eviction.reasons:
                    times = [
                        taints.eviction_time(taint, result.tolerations, empty_effect_counts=counts)
                        for counts in (False, True)
                    ]
                    if times[0] != times[1]:
                        return True
        return False

    def reasons_on(self, results: tuple[DeviceResult, ...]) -> tuple[EvictionReason, ...]:
        """The NoExecute taints on these devices, tolerated or not."""
        reasons = {reason for r in results for reason, _ in self._taints_of(r, self.rules)}
        return tuple(sorted(reasons))

    def _taints_of(
        self, result: DeviceResult, rules: dict[str, EvictionRule]
    ) -> Iterator[tuple[EvictionReason, NoExecuteTaint]]:
        for name in sorted(rules):
            rule = rules[name]
            if rule.effect == NO_EXECUTE and self._selects(rule, result):
                yield EvictionReason(is_slice=False, rule=name, rule_uid=rule.uid), rule.taint
        pool = self._pools.get((result.driver, result.pool))
        if pool is None:
            return
        for index, taint in pool.effective.get(result.device, ()):
            reason = EvictionReason(
                is_slice=True,
                driver=result.driver,
                pool=result.pool,
                device=result.device,
                index=index,
            )
            yield reason, taint

    def _selects(self, rule: EvictionRule, result: DeviceResult) -> bool:
        return self.selects(rule, result.driver, result.pool, result.device)

    def _fold_pod(self, event: Event, changes: Changes, *, is_gone: bool) -> None:
        place = (event.key.namespace, event.key.name)
        old = self.pods.get(place)
        if is_gone:
            self.pods.pop(place, None)
            return
        pod = pods.facts_of(event)
        if not pod.uses_claims:
            self.pods.pop(place, None)
            return
        self.pods[place] = pod
        if old is None or old.uid != pod.uid or self._deciding(old) != self._deciding(pod):
            changes.pods[place] = None

    def _deciding(self, pod: PodFacts) -> tuple[object, ...]:
        """The parts of a pod that decide about its eviction; `pod_eviction` reads no others."""
        extended = "" if self._quirks.c3 else pod.extended_claim
        return self.may_evict(pod), pod.node, pod.generated, extended

    def _fold_claim(
        self, event: Event, changes: Changes, *, is_gone: bool, has_planned: bool
    ) -> None:
        place = (event.key.namespace, event.key.name)
        tree = event.object
        old = self.claims.get(place)
        new: TrackedClaim | None = None
        if not is_gone and pods.is_allocated(tree):
            new = self._track(event, tree, old)
        if old is None and new is None:
            return
        if old is not None and (new is None or new.uid != old.uid):
            del self.claims[place]
            self._note_users(place, old, add=False)
        if new is not None:
            if old is None or new.uid != old.uid:
                self._note_users(place, new, add=True)
            self.claims[place] = new
        self._note_eviction(place, new)
        if not (self._evicting or has_planned):
            return
        before = () if old is None else old.reserved
        after = () if new is None else new.reserved
        for name, _ in (*before, *after):
            changes.pods[(place[0], name)] = None

    def _track(self, event: Event, tree: JsonObject, old: TrackedClaim | None) -> TrackedClaim:
        same = old is not None and old.uid == event.uid
        reading = claim_readings.of_event(event)
        results = old.results if old is not None and same else reading.results
        references = dra.reserved_for(tree)
        is_short = len(references) <= REFERENCES_READ_MAX
        return TrackedClaim(
            namespace=event.key.namespace,
            name=event.key.name,
            uid=event.uid,
            owner_uid=reading.owner_uid,
            results=results,
            references=() if is_short else references,
            consumers=len(references),
            eviction=old.eviction if old is not None and same else self.claim_eviction(results),
            _reserved=reading.reserved if is_short else None,
        )

    def _note_users(self, place: NamespacedName, claim: TrackedClaim, *, add: bool) -> None:
        for result in claim.results:
            if add:
                self._users.add(result.id, place)
            else:
                self._users.discard(result.id, place)

    def _note_eviction(self, place: NamespacedName, claim: TrackedClaim | None) -> None:
        # Without this, each change of a shared claim would look up the claims of all its pods.
        if claim is not None and claim.eviction is not None:
            self._evicting.add(place)
        else:
            self._evicting.discard(place)

    def _fold_slice(self, event: Event, changes: Changes, *, is_gone: bool) -> None:
        name = event.key.name
        tree = event.object
        of_pool = dra.pool(tree)
        pool = (dra.driver(tree), of_pool.name)
        before = self._slice_pool.get(name)
        if before is not None and (is_gone or before != pool):
            self._pools[before].slices.pop(name, None)
            self._slice_pool.pop(name)
            self._refresh_pool(before, changes)
        if is_gone:
            return
        generation = of_pool.generation
        devices: _Tainted = {}
        for device in dra.devices(tree):
            if device.get("taints"):
                held = _no_execute(device)
                if held:
                    devices[dra.published_name(device)] = held
        self._slice_pool[name] = pool
        tainted = self._pools.setdefault(pool, PoolTaints())
        if tainted.slices.get(name) == (generation, devices):
            return
        tainted.slices[name] = (generation, devices)
        self._refresh_pool(pool, changes)

    def _refresh_pool(self, pool: PoolId, changes: Changes) -> None:
        tainted = self._pools[pool]
        for device in sorted(tainted.refresh()):
            for user in sorted(self._users.of((*pool, device))):
                self._recompute(user, changes)
        if not tainted.slices:
            del self._pools[pool]

    def _fold_rule(self, event: Event, changes: Changes, *, is_gone: bool) -> None:
        name = event.key.name
        old = self.rules.get(name)
        if is_gone:
            if old is not None:
                del self.rules[name]
                changes.gone_rule_uid = old.uid
                self._recompute_all(old, None, changes)
            return
        rule = taints.read_rule(event.object)
        self.rules[name] = rule
        if old is not None and old.uid == rule.uid and old.spec == rule.spec:
            return
        changes.rule = rule
        self._recompute_all(old, rule, changes)

    def _recompute_all(
        self, old: EvictionRule | None, new: EvictionRule | None, changes: Changes
    ) -> None:
        concerned = [rule for rule in (old, new) if rule and rule.effect == NO_EXECUTE]
        if not concerned:
            return
        for place in sorted(self.claims):
            claim = self.claims[place]
            if any(self._selects(rule, r) for rule in concerned for r in claim.results):
                self._recompute(place, changes)

    def _recompute(self, place: NamespacedName, changes: Changes) -> None:
        claim = self.claims[place]
        eviction = self.claim_eviction(claim.results)
        if eviction == claim.eviction:
            return
        claim.eviction = eviction
        self._note_eviction(place, claim)
        for name, _ in claim.reserved:
            changes.pods[(place[0], name)] = None


def _no_execute(device: JsonObject) -> tuple[tuple[int, NoExecuteTaint], ...]:
    return tuple(
        (index, taints.read_taint(taint))
        for index, taint in enumerate(dra.device_taints(device))
        if taint.get("effect") == NO_EXECUTE
    )
