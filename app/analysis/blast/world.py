"""A hypothetical cluster: the state of a moment, to which changes are applied but never stored.

`freeze` takes references and shallow copies from live views, so it is quick and may run on the
event loop. Everything after it uses only the frozen state and may run in a thread. Commands are
decided by the same rules as every write; evictions come from the eviction controller's own state,
devices from the inventory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import msgspec

from app.analysis import scope
from app.analysis.blast import reach
from app.analysis.views import LiveViews, compiler_of
from app.domain.allocation import AllocatedState
from app.domain.controllers import pods
from app.domain.controllers import registry as controllers
from app.domain.controllers.eviction import EvictionReconciler, TaintState
from app.domain.controllers.eviction.taints import NO_EXECUTE, Eviction, EvictionReason
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.controllers.scheduling import SchedulingReconciler
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
    SchedulerRules as SchedulingRules,
)
from app.domain.devices import patches
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory, SliceChange
from app.domain.devices.patches import ClassFilter
from app.domain.devices.pools import OldPool
from app.domain.errors import InputError, NotFound, Rejected
from app.domain.log import Actor, Draft, Event, EventType, HistoryInfo, ObjectKey, Revision, Stamp
from app.domain.log.chain import seal
from app.domain.objects.profile import Profile
from app.domain.objects.review import policies
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import Command
from app.domain.objects.write.decided import Decided
from app.domain.objects.write.sealing import decide_and_seal
from app.domain.objects.write.staging import StagedObjects
from app.domain.values import api_groups, api_resources, json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, NamespacedName, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant
from projections import last_events
from projections.last_events import LastEvent
from projections.objects import ObjectsProjection

_ASKER = Actor(user="redra:blast", groups=("system:masters",), agent="redra")
POLICY_REFUSES = "an admission policy refuses it"
POLICY_WARNS = "an admission policy warns of it"
"""Replacements for messages that may quote any object."""

_LEFT_OUT = frozenset(
    (
        api_resources.EVENTS,
        (api_groups.EVENTS, api_resources.EVENTS[1]),
        api_resources.LEASES,
        api_resources.SECRETS,
    )
)
"""The kinds that nothing depends on; admission, quotas, volumes and owners need the others."""

_ORDER = (
    api_resources.RESOURCE_SLICES,
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_CLAIMS,
    api_resources.PODS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The state of one moment. `events` are the last ones of the objects that take part.

    Without `rules` nothing can be proposed, but existing objects can be examined. `scheduling` has
    the rules of the scheduler, None when it does not run. `quotes_policies` tells that the caller
    may read messages of admission policies, which can quote any object. `uids` counts the uids
    given to hypothetical objects. `elsewhen` says of objects that are not there when they are.
    `goes_on` is called now and then and returns whether the caller still waits.
    """

    profile: Profile
    rules: Rules | None
    quirks: ControllerQuirks
    evicts: bool
    scheduling: SchedulingRules | None
    now: Instant
    revision: Revision
    inventory: Inventory
    allocated: AllocatedState
    events: tuple[tuple[ObjectKey, LastEvent], ...]
    quotes_policies: bool = False
    uids: int = 0
    elsewhen: Mapping[ObjectKey, str] = field(default_factory=dict)
    goes_on: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequences:
    """The consequences of one state: evictions of pods and claims, the taints on claims' devices.

    `reach` are the devices that new pods can reach; None when the history has no nodes. `short` are
    those that no claim holds and whose counters do not suffice.
    """

    inventory: Inventory
    reach: frozenset[DeviceId] | None
    short: frozenset[DeviceId]
    classes: Mapping[str, ClassFilter]
    pods: Mapping[NamespacedName, Eviction]
    claims: Mapping[NamespacedName, Eviction]
    taints: Mapping[NamespacedName, tuple[EvictionReason, ...]]


@dataclass(slots=True, kw_only=True)
class Touched:
    """The objects that a change touches.

    Pools are touched by slices, classes by selectors. `pods` are those that it ends, with their
    fates, `gone` those that end at once, in their state before; `kept` those that a drain cannot
    evict, with the refusal; `claims` those that it deletes, in their state before.
    """

    pools: set[PoolId] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    pods: dict[NamespacedName, str] = field(default_factory=dict)
    gone: dict[NamespacedName, JsonObject] = field(default_factory=dict)
    kept: dict[NamespacedName, str] = field(default_factory=dict)
    claims: dict[ObjectKey, JsonView] = field(default_factory=dict)


def freeze(
    views: LiveViews,
    info: HistoryInfo,
    rules: Rules | None,
    now: Instant,
    *,
    quotes_policies: bool = False,
) -> Frozen:
    """The current state of the views, with or without permission to read policy messages."""
    options = controllers.options_from(info.settings)
    running = controllers.running(views.profile, options)
    schedules = SchedulingReconciler.name in running
    objects = views.objects
    places = [place for place in objects.resources() if place not in _LEFT_OUT]
    return Frozen(
        profile=views.profile,
        rules=rules,
        quirks=controllers.quirks_of(views.profile, options),
        evicts=EvictionReconciler.name in running,
        scheduling=_scheduling(views, options, info) if schedules else None,
        now=now,
        revision=views.revision,
        inventory=views.inventory.copy(),
        allocated=views.allocated.copy(),
        events=_events(objects, places),
        quotes_policies=quotes_policies,
    )


def _scheduling(
    views: LiveViews, options: controllers.ControllerOptions, info: HistoryInfo
) -> SchedulingRules:
    return SchedulingRules(
        gates=views.profile,
        features=views.features,
        compiler=compiler_of(views.profile),
        quirks=controllers.quirks_of(views.profile, options),
        allocator_quirks=controllers.allocator_quirks_of(views.profile, options),
        binding_timeout=options.binding_timeout,
        summary=None,
        profiles=info.scheduler_profiles,
    )


class World:
    """The frozen state with changes on top. Nothing of it reaches the log."""

    def __init__(self, frozen: Frozen) -> None:
        self._frozen = frozen
        self._compiler: SelectorCompiler = compiler_of(frozen.profile)
        self._count = frozen.uids
        self.objects = ObjectsProjection(tells_changes=False)
        self.inventory = frozen.inventory.copy()
        self.allocated = frozen.allocated
        with_rules = frozen.profile.enabled("DRADeviceTaintRules")
        self.taints = TaintState(frozen.quirks, with_rules=with_rules)
        self.touched = Touched()
        # Copies, because the views drop decoded trees while we read them. Each event is read
        # and then passed to the objects, which drop its tree in turn.
        for _, kept in sorted(frozen.events, key=_reading_order):
            own = msgspec.structs.replace(last_events.plain(kept))
            self.taints.fold(own)
            self.objects.fold(own)
        self.objects.show_as_of(frozen.revision)
        self._knows_nodes = bool(self.objects.count(*api_resources.NODES))

    @property
    def scheduling(self) -> SchedulingRules | None:
        """The rules of the scheduler, None when it does not run."""
        return self._frozen.scheduling

    @property
    def profile(self) -> Profile:
        """The release and gates of the history."""
        return self._frozen.profile

    @property
    def now(self) -> Instant:
        """The instant of the state, at which the change hypothetically happens."""
        return self._frozen.now

    def apply(self, command: Command, verb: str) -> Decided:
        """Decides the command and applies its events. Raises Rejected, InputError."""
        self.check_goes_on()
        rules = self._frozen.rules
        assert rules is not None, "proposals need the rules of the history"
        staged = StagedObjects(self.objects, rules.secrets)
        stamp = Stamp(time=self.now, actor=_ASKER, verb=verb)
        try:
            decided, events = decide_and_seal(command, staged, stamp, rules, new_uid=self._new_uid)
        except Rejected as refusal:
            if refusal.by_policy and not self._frozen.quotes_policies:
                raise _without_words(refusal) from None
            raise
        for event in events:
            self.fold(event)
        if decided.warnings and not self._frozen.quotes_policies:
            return msgspec.structs.replace(decided, warnings=_without_policies(decided.warnings))
        return decided

    def apply_to(self, key: ObjectKey, command: Command, verb: str) -> Decided:
        """Like `apply`, about an existing object; NotFound names the nearest ones."""
        try:
            return self.apply(command, verb)
        except NotFound as problem:
            text = f"{problem.message}{self._meant(key)}"
            raise NotFound(text, resource=key.resource) from problem

    def _meant(self, key: ObjectKey) -> str:
        """A hint: when or in which namespaces an object of that name exists, else similar names."""
        if elsewhen := self._frozen.elsewhen.get(key):
            return elsewhen
        known = [*self.objects.keys(key.group, key.resource)]
        places = sorted(other.namespace for other in known if other.name == key.name)
        if places:
            return f"; there is one in namespace {', '.join(places[: scope.NEAREST_MAX])}"
        near = scope.nearest(key.name, {other.name for other in known})
        return f"; {near}" if near else ""

    def check_goes_on(self) -> None:
        """Raises InputError when the caller no longer waits for the answer."""
        if not self._frozen.goes_on():
            raise InputError("nobody waits for the answer any more")

    def _new_uid(self) -> str:
        self._count += 1
        return f"00000000-0000-0000-0000-{self._count:012}"

    def frozen(self) -> Frozen:
        """The current state, as a start for other worlds."""
        return replace(
            self._frozen,
            revision=self.objects.revision,
            inventory=self.inventory.copy(),
            allocated=self.allocated.copy(),
            events=_events(self.objects, self.objects.resources()),
            uids=self._count,
        )

    def remove(self, key: ObjectKey) -> None:
        """Removes an object from the state."""
        event = self.objects.event(key)
        assert event is not None, f"{key} exists"
        self.fold(
            msgspec.structs.replace(
                event,
                type=EventType.OBJECT_DELETED,
                revision=Revision(self.objects.revision + 1),
            )
        )

    def free(self, claim: JsonView) -> None:
        """Releases the devices of a claim."""
        self.allocated = self.allocated.copy()
        self.allocated.remove_claim(claim)

    def end(self, places: Iterable[NamespacedName]) -> None:
        """Removes these pods from the state, and the devices that only they had reserved."""
        self.allocated = self.allocated.copy()
        uids: set[str] = set()
        claims: set[ObjectKey] = set()
        for place in places:
            key = pod_key(*place)
            tree = self.objects.get(key)
            is_gone = tree is None
            tree = self.touched.gone.get(place) if tree is None else tree
            if tree is None:
                continue
            facts = pods.facts(tree)
            uids.add(facts.uid)
            names = [named.name for named in pods.named_claims(facts)]
            for name in filter(None, [*names, facts.extended_claim]):
                claims.add(claim_key(facts.namespace, name))
            if not is_gone:
                self.remove(key)
        for key in sorted(claims):
            self._unreserve(key, uids)

    def _unreserve(self, key: ObjectKey, uids: Set[str]) -> None:
        """Removes reservations from a claim; without any, it holds no devices."""
        tree = self.objects.get(key)
        if tree is None:
            return
        status = dict(meta.status(tree))
        reserved = json_tree.objects(status, "reservedFor")
        kept = [reference for reference in reserved if reference.get("uid") not in uids]
        if len(kept) == len(reserved):
            return
        status["reservedFor"] = kept
        if not kept:
            self.allocated.remove_claim(tree)
            status = {}
        draft = Draft(
            type=EventType.OBJECT_UPDATED,
            key=key,
            uid=meta.uid(tree),
            tree={**tree, "status": status},
            stamp=Stamp(time=self.now, actor=_ASKER, verb="update"),
        )
        self.fold(seal(draft, Revision(self.objects.revision + 1), b""))

    def pretend(self, key: ObjectKey) -> None:
        """Makes eviction treat a rule as if its effect were NoExecute, like upstream's preview."""
        self.taints.fold(self._as_no_execute(key))

    def pretend_taint(self, key: ObjectKey) -> None:
        """Makes the devices have the taint of a rule as if its effect were NoExecute."""
        self._fold_devices(self._as_no_execute(key), is_gone=False)

    def _as_no_execute(self, key: ObjectKey) -> Event:
        event = self.objects.event(key)
        assert event is not None, f"{key} exists"
        tree = event.object
        taint = {**tree["spec"]["taint"], "effect": NO_EXECUTE}
        seen = {**tree, "spec": {**tree["spec"], "taint": taint}}
        return msgspec.structs.replace(event, tree=seen)

    def fold(self, event: Event) -> None:
        """Applies the event to all parts."""
        self.objects.fold(event)
        self.taints.fold(event)
        key = event.key
        if key.group != api_groups.RESOURCE:
            return
        changes = self._fold_devices(event, is_gone=event.type is EventType.OBJECT_DELETED)
        for change in changes:
            self.touched.pools.update(side.pool for side in (change.old, change.new) if side)
        if (key.group, key.resource) == api_resources.DEVICE_CLASSES:
            self.touched.classes.add(key.name)

    def consequences(self) -> Consequences:
        """The consequences of the current state. Raises InputError."""
        self.check_goes_on()
        taints = self.taints
        evicts = self._frozen.evicts
        return Consequences(
            inventory=self.inventory.copy(),
            reach=self._reach(),
            short=reach.short_of_counters(self.inventory, self.allocated),
            classes=self.classes(),
            pods={
                place: eviction
                for place in (taints.pods if evicts else ())
                if (eviction := taints.pod_eviction(place)) is not None
            },
            claims={
                place: claim.eviction
                for place, claim in taints.claims.items()
                if claim.eviction is not None and evicts
            },
            taints={
                place: reasons
                for place, claim in taints.claims.items()
                if (reasons := taints.reasons_on(claim.results))
            },
        )

    def eviction_from(
        self, allocations: Iterable[JsonView], extended: JsonView | None
    ) -> Eviction | None:
        """The eviction of a pod that gets these allocations; None if it is not evicted."""
        if not self._frozen.evicts:
            return None
        counting = [*allocations]
        # Parity: controllers.md C3.
        if extended is not None and not self._frozen.quirks.c3:
            counting.append(extended)
        results = [
            result
            for allocation in counting
            for result in dra.results({"status": {"allocation": allocation}})
        ]
        return self.taints.claim_eviction(tuple(results))

    def old_pools(self) -> tuple[OldPool, ...]:
        """The older generations whose devices some nodes can still be given."""
        rules = self.scheduling
        if rules is None:
            return ()
        trees = [event.object for event in self.objects.events(*api_resources.NODES)]
        return reach.old_pools(self.inventory, trees, rules.features, rules.allocator_quirks)

    def _reach(self) -> frozenset[DeviceId] | None:
        if not self._knows_nodes:
            return None
        trees = [event.object for event in self.objects.events(*api_resources.NODES)]
        return reach.reachable(self.inventory, filter(reach.takes_pods, trees))

    def classes(self) -> dict[str, ClassFilter]:
        """The current selectors of each class."""
        return {
            event.key.name: patches.class_filter_of(event.object, self._compiler)
            for event in self.objects.events(*api_resources.DEVICE_CLASSES)
        }

    def class_filter(self, name: str) -> ClassFilter | None:
        """The current selectors of one class; None if it does not exist."""
        tree = self.objects.get(ObjectKey(*api_resources.DEVICE_CLASSES, "", name))
        return None if tree is None else patches.class_filter_of(tree, self._compiler)

    def selectors_of(self, request: JsonObject) -> ClassFilter:
        """The selectors of a request, which have the same form as those of a class."""
        return patches.class_filter_of({"spec": request}, self._compiler)

    def _fold_devices(self, event: Event, *, is_gone: bool) -> Sequence[SliceChange]:
        inventory, name = self.inventory, event.key.name
        match event.key.resource:
            case "resourceslices":
                if is_gone:
                    return inventory.remove_slice(name)
                return inventory.put_slice(event.object)
            case "devicetaintrules":
                return inventory.remove_rule(name) if is_gone else inventory.put_rule(event.object)
            case "resourceslicepatches":
                if is_gone:
                    return inventory.remove_patch(name)
                return inventory.put_patch(event.object, revision=event.revision)
            case "deviceclasses":
                if is_gone:
                    return inventory.remove_class(name)
                return inventory.put_class(event.object)
        return ()


def _events(
    objects: ObjectsProjection, places: Iterable[tuple[str, str]]
) -> tuple[tuple[ObjectKey, LastEvent], ...]:
    return tuple(held for place in places for held in objects.kept(*place))


def _without_words(refusal: Rejected) -> Rejected:
    """The refusal of a policy in redra's words: the policy's own can quote unreadable objects."""
    about = f'{refusal.resource} "{refusal.name}": {POLICY_REFUSES}'
    return type(refusal)(about, group=refusal.group, resource=refusal.resource, name=refusal.name)


def _without_policies(warnings: Iterable[str]) -> tuple[str, ...]:
    shown = (POLICY_WARNS if one.startswith(policies.WARNING) else one for one in warnings)
    return tuple(dict.fromkeys(shown))


def _reading_order(held: tuple[ObjectKey, LastEvent]) -> int:
    """The sort key: taints first, then claims, then pods, so that evictions are found at once."""
    place = held[0][:2]
    return _ORDER.index(place) if place in _ORDER else len(_ORDER)
