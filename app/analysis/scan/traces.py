"""Incidents that show in the changes of objects: rules, evictions, claims, slices."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from app.analysis.scan.sightings import Certainty, Sightings
from app.domain.devices import taints
from app.domain.devices.model import Taint, Toleration
from app.domain.devices.taints import BLOCKING_EFFECTS, TaintRule
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

NO_SELECTOR = "rule-without-selector"
EVERYTHING = "empty-selector-evicts-everything"
NO_EFFECT = "toleration-without-effect"
FINISHED = "finished-pod-is-deleted"
NAMED_TWICE = "claim-named-twice"
UNRESERVED = "allocation-without-reservation"
DRIVER_LOST = "driver-is-lost"
BYPASSED = "pod-with-a-node-name"
LOOKED_FOR = (
    NO_SELECTOR,
    EVERYTHING,
    NO_EFFECT,
    FINISHED,
    NAMED_TWICE,
    UNRESERVED,
    DRIVER_LOST,
    BYPASSED,
)

EVICTING = "NoExecute"
EVICTED_BY_TAINT = "DeletionByDeviceTaintManager"
KUBELET = "system:node:"

_TAINTING = (api_resources.DEVICE_TAINT_RULES[1], api_resources.RESOURCE_SLICES[1])
"""The resources whose objects taint devices."""

UNRESERVED_AFTER = 60 * SECOND
"""The time without a reservation after which an allocated claim counts as never freed."""


class Traces:
    """Follows pods, claims, rules and slices."""

    def __init__(self, sightings: Sightings) -> None:
        self._sightings = sightings
        self._claims: dict[ObjectKey, JsonObject] = {}
        self._pods: dict[ObjectKey, Event] = {}
        self._everything: dict[ObjectKey, Event] = {}
        self._rules: dict[ObjectKey, TaintRule] = {}
        self._published: dict[ObjectKey, dict[DeviceId, list[Taint]]] = {}
        self._evicted: set[str] = set()
        self._unreserved: dict[ObjectKey, Event] = {}
        self._bypassed: list[tuple[Event, ObjectKey]] = []
        self._lost: set[tuple[ObjectKey, str]] = set()
        self._bereft: set[str] = set()
        self._now = Instant(0)

    def see(self, event: Event) -> None:
        """Processes the next event."""
        if not event.is_about_object:
            return
        self._now = max(self._now, event.stamp.time)
        place = event.key.group, event.key.resource
        is_deletion = event.type is EventType.OBJECT_DELETED
        if place == api_resources.DEVICE_TAINT_RULES:
            self._rule(event, is_deletion=is_deletion)
        elif place == api_resources.RESOURCE_CLAIMS:
            self._claim(event, is_deletion=is_deletion)
        elif place == api_resources.PODS:
            self._pod(event, is_deletion=is_deletion)
        elif place == api_resources.RESOURCE_SLICES:
            self._slice(event, is_deletion=is_deletion)

    def end(
        self,
        sightings: Sightings,
        now: Instant,
        unsure: Collection[frozenset[ObjectKey]] = (),
    ) -> None:
        """Adds the incidents that show only by lasting, until `now` or the last event.

        `unsure` are pods with claims of which the allocation may not be recorded.
        """
        for event in self._unreserved.values():
            self._kept(event, sightings, max(now, self._now))
        bypassed = [*self._bypassed]
        for event in self._pods.values():
            bypassed += self._waited(event, sightings)
        for event, claim in bypassed:
            if frozenset((event.key, claim)) not in unsure:
                message = f"it is on node {core.node_name(event.object)} and its claim is not "
                message += "allocated"
                sightings.add(BYPASSED, event.revision, message, event.key, claim)

    def _kept(self, event: Event, sightings: Sightings, now: Instant) -> None:
        """Finds a claim that was long allocated for nobody, when that ends or is asked about."""
        if now - event.stamp.time >= UNRESERVED_AFTER:
            message = "it is allocated and nobody has reserved it"
            needed = (event.key.resource,)
            sightings.add(UNRESERVED, event.revision, message, event.key, rests_on=needed)

    def _waited(self, event: Event, sightings: Sightings) -> Iterable[tuple[Event, ObjectKey]]:
        """Finds a pod that waits in vain, by its last state before it ends or is asked about.

        Returns the pod with each claim that its node lacks.
        """
        if _is_ending(event):
            return ()
        names = [
            name
            for entry in core.resource_claims(event.object)
            if (name := entry.get("resourceClaimName"))
        ]
        if not core.node_name(event.object):
            if len(names) > len(set(names)):
                message = f"claims {', '.join(map(str, names))}"
                sightings.add(NAMED_TWICE, event.revision, message, event.key)
            return ()
        # The controller makes another claim of a template in the place of one that is lost.
        if meta.uid(event.object) not in self._bereft:
            statuses = core.resource_claim_statuses(event.object)
            names += [name for each in statuses if (name := each.get("resourceClaimName"))]
        claims = [
            ObjectKey(*api_resources.RESOURCE_CLAIMS, event.key.namespace, str(name))
            for name in dict.fromkeys(names)
        ]
        trees = ((claim, self._claims.get(claim)) for claim in claims)
        return [
            (event, claim)
            for claim, tree in trees
            if tree is not None
            and dra.allocation(tree) is None
            and (claim, meta.uid(event.object)) not in self._lost
        ]

    def _rule(self, event: Event, *, is_deletion: bool) -> None:
        self._everything.pop(event.key, None)
        self._rules.pop(event.key, None)
        rule = taints.rule_of(event.object)
        if is_deletion or rule.taint.effect not in BLOCKING_EFFECTS:
            return
        self._rules[event.key] = rule
        if not rule.selects:
            message = f"it keeps every device from being allocated: {rule.taint.text}"
            self._sightings.add(NO_SELECTOR, event.revision, message, event.key)
        elif rule.taint.effect == EVICTING and _names_nothing(rule):
            self._everything[event.key] = event

    def _claim(self, event: Event, *, is_deletion: bool) -> None:
        tree = event.object
        before = self._claims.get(event.key)
        if before is not None:
            self._note_lost(event, before, is_deletion=is_deletion)
        if is_deletion:
            self._claims.pop(event.key, None)
            self._used(event.key)
            return
        self._claims[event.key] = tree
        is_held = dra.allocation(tree) is not None and not dra.reserved_for(tree)
        if not is_held or meta.is_deleting(tree):
            self._used(event.key)
        elif before is not None and dra.reserved_for(before):
            self._unreserved.setdefault(event.key, event)

    def _note_lost(self, event: Event, before: JsonObject, *, is_deletion: bool) -> None:
        """Notes the pods from which a claim is taken away: a scheduler had chosen their devices."""
        reserved = () if is_deletion else dra.reserved_for(event.object)
        if is_deletion or reserved != dra.reserved_for(before):
            left = {consumer.uid for consumer in dra.consumers(event.object) if not is_deletion}
            for consumer in dra.consumers(before):
                pod = ObjectKey(*api_resources.PODS, event.key.namespace, consumer.name)
                if consumer.uid not in left and pod in self._pods:
                    self._lost.add((event.key, consumer.uid))
                    self._bereft.add(consumer.uid)

    def _used(self, claim: ObjectKey) -> None:
        """A claim is reserved or given back: it may have been kept for nobody until now."""
        since = self._unreserved.pop(claim, None)
        if since is not None:
            self._kept(since, self._sightings, self._now)

    def _pod(self, event: Event, *, is_deletion: bool) -> None:
        before = self._pods.get(event.key)
        if before is not None and (is_deletion or _is_ending(event)):
            self._bypassed += self._waited(before, self._sightings)
        if is_deletion:
            self._pods.pop(event.key, None)
            return
        self._pods[event.key] = event
        condition = meta.condition(event.object, condition_types.DISRUPTION_TARGET)
        uid = meta.uid(event.object)
        if condition is None or condition.reason != EVICTED_BY_TAINT or uid in self._evicted:
            return
        self._evicted.add(uid)
        if before is not None and core.is_finished(before.object):
            phase = meta.phase(before.object)
            self._sightings.add(FINISHED, event.revision, f"its phase was {phase}", event.key)
        for claim in self._claims_of(event):
            self._evicted_for(event, claim)

    def _evicted_for(self, event: Event, claim: ObjectKey) -> None:
        """Adds the incidents of a pod's eviction, by its devices' taints and tolerations."""
        for result in dra.results(self._claims[claim]):
            tolerations = [taints.toleration_of(tree) for tree in result.tolerations]
            evicting = list(self._evicting(result.id))
            for key, rule in self._everything.items():
                others = [taint for taint in evicting if taint.rule != key.name]
                self._sightings.add(
                    EVERYTHING,
                    rule.revision,
                    f"it evicts {event.key}",
                    key,
                    event.key,
                    certainty=Certainty.LIKELY if others else Certainty.CERTAIN,
                    rests_on=_TAINTING,
                )
            # Another taint, or one whose toleration has expired, would explain the eviction.
            if taints.untolerated(evicting, tolerations) is None and any(
                _only_without_effect(taint, tolerations) for taint in evicting
            ):
                message = "it was evicted for a taint that it tolerates without naming the effect"
                self._sightings.add(
                    NO_EFFECT, event.revision, message, event.key, claim, rests_on=_TAINTING
                )
                return

    def _evicting(self, device: DeviceId) -> Iterator[Taint]:
        for published in self._published.values():
            yield from (taint for taint in published.get(device, ()) if taint.effect == EVICTING)
        for rule in self._rules.values():
            if rule.taint.effect == EVICTING and rule.matches(device, without_selector=False):
                yield rule.taint

    def _claims_of(self, event: Event) -> list[ObjectKey]:
        uid = meta.uid(event.object)
        return [
            key
            for key, tree in self._claims.items()
            if key.namespace == event.key.namespace and dra.has_consumer(tree, uid)
        ]

    def _slice(self, event: Event, *, is_deletion: bool) -> None:
        pool = dra.driver(event.object), dra.pool_name(event.object)
        if not is_deletion:
            self._published[event.key] = {
                (*pool, DeviceName(str(device.get("name")))): [
                    taints.taint_of(tree) for tree in dra.device_taints(device)
                ]
                for device in dra.devices(event.object)
                if device.get("taints")
            }
            return
        self._published.pop(event.key, None)
        if not event.stamp.actor.user.startswith(KUBELET):
            return
        held = [
            key
            for key, tree in self._claims.items()
            if any((result.driver, result.pool) == pool for result in dra.results(tree))
        ]
        if held:
            message = f"the kubelet deleted a slice of pool {'/'.join(pool)}, which is in use"
            self._sightings.add(
                DRIVER_LOST, event.revision, message, event.key, *held, certainty=Certainty.LIKELY
            )


def _is_ending(event: Event) -> bool:
    return meta.is_deleting(event.object) or core.is_finished(event.object)


def _names_nothing(rule: TaintRule) -> bool:
    return (rule.driver, rule.pool, rule.device) == (None, None, None)


def _only_without_effect(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Whether only tolerations without an effect and without a time tolerate a taint."""
    fitting = [each for each in tolerations if taints.tolerates(each, taint)]
    return bool(fitting) and all(
        not each.effect and each.tree.get("tolerationSeconds") is None for each in fitting
    )
