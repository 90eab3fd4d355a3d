"""All controllers of a cluster, in the order in which they run (controllers.md 7.1).

The order matters in the deterministic loop: the status of a rule is computed before the pods of the
same rule are evicted, because upstream queues it first, and claims are released before garbage
collection deletes them, because upstream's collector runs 10 to 30 ms later. Budgets are counted
before pods are placed, so that pre-emption sees current numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from app.domain.allocation import Features, Quirks
from app.domain.allocation.quirks import NOT_SWITCHES
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import releases
from app.domain.controllers.api_services import ApiServiceReconciler
from app.domain.controllers.claims import ClaimsReconciler
from app.domain.controllers.claims.reconciler import ACTS_APART
from app.domain.controllers.cluster_roles import ClusterRoleReconciler
from app.domain.controllers.definitions import DefinitionReconciler
from app.domain.controllers.disruption import DisruptionReconciler
from app.domain.controllers.event_expiry import EventExpiryReconciler
from app.domain.controllers.event_expiry import reconciler as event_expiry
from app.domain.controllers.eviction import EvictionReconciler
from app.domain.controllers.garbage import (
    GarbageReconciler,
    NamespaceReconciler,
    PodGcReconciler,
)
from app.domain.controllers.garbage.pod_gc import TERMINATED_MAX
from app.domain.controllers.kubelet import KubeletReconciler
from app.domain.controllers.namespace_objects import (
    ROOT_CA,
    SERVICE_ACCOUNTS,
    NamespaceObjectReconciler,
)
from app.domain.controllers.nodes import NodeReconciler, NodeTtlReconciler
from app.domain.controllers.pacing import Pace
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.pool_status import PoolStatusReconciler
from app.domain.controllers.quirks import NO_SWITCH, ControllerQuirks
from app.domain.controllers.quotas import QuotaReconciler
from app.domain.controllers.rule_status import RuleStatusReconciler
from app.domain.controllers.rule_status import reconciler as rule_status
from app.domain.controllers.scheduling import SchedulingReconciler
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.controllers.scheduling.framework import tie_breaks
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
    BindDelay,
    SchedulerRules,
    TieBreak,
)
from app.domain.controllers.slice_patches import PatchWarningReconciler
from app.domain.controllers.volume_protection import VolumeProtectionReconciler
from app.domain.controllers.workloads import (
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    WorkloadReconciler,
)
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.errors import InputError
from app.domain.log import Actor
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The options of the controllers of one history. `off` names controllers that do not run.

    Quirks that are None default to those of the release (`quirks_of`, `allocator_quirks_of`).
    `tie_break` is for replays: it chooses among equally good nodes. `summary` bounds the causes
    in the scheduler's decisions (None: no causes); the process chooses it and decisions record it.
    `pace` is for replays too: it decides when a key may be processed. With a `bind_delay` bindings
    take time; devices may take `binding_timeout` microseconds to become ready. Event objects end
    `event_ttl` microseconds after their last change; None: they stay. `terminated_pods_max`
    finished pods are kept; 0: all. With `cluster_objects` controllers maintain the objects that
    every cluster has (`CLUSTER_OBJECTS`); older histories and recordings do without.
    """

    quirks: ControllerQuirks | None = None
    allocator_quirks: Quirks | None = None
    off: frozenset[str] = frozenset()
    tie_break: TieBreak | None = None
    pace: Pace | None = None
    bind_delay: BindDelay | None = None
    binding_timeout: int = binding_conditions.TIMEOUT
    event_ttl: int | None = None
    terminated_pods_max: int = TERMINATED_MAX
    cluster_objects: bool = False
    summary: SummaryBounds | None = SummaryBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    profile: Profile
    features: Features
    compiler: SelectorCompiler
    options: ControllerOptions
    quirks: ControllerQuirks


def _scheduling(setting: _Setting) -> Reconciler:
    return SchedulingReconciler(
        SchedulerRules(
            gates=setting.profile,
            features=setting.features,
            compiler=setting.compiler,
            quirks=setting.quirks,
            allocator_quirks=allocator_quirks_of(setting.profile, setting.options),
            tie_break=_tie_break(setting),
            bind_delay=setting.options.bind_delay,
            binding_timeout=setting.options.binding_timeout,
            pace=setting.options.pace,
            summary=setting.options.summary,
        )
    )


_MAKERS: Mapping[str, Callable[[_Setting], Reconciler]] = {
    "namespaces": lambda s: NamespaceReconciler(s.options.pace),
    "definitions": lambda _: DefinitionReconciler(),
    "node-lifecycle": lambda _: NodeReconciler(),
    "node-ttl": lambda _: NodeTtlReconciler(),
    "pod-gc": lambda s: PodGcReconciler(s.options.terminated_pods_max),
    "disruption": lambda _: DisruptionReconciler(),
    "claims": lambda s: ClaimsReconciler(
        s.profile, s.quirks, s.options.pace, _acts_apart(s.options)
    ),
    "volume-protection": lambda _: VolumeProtectionReconciler(),
    "garbage": lambda s: GarbageReconciler(s.options.pace),
    "rule-status": lambda s: RuleStatusReconciler(
        s.quirks, version=_rule_version(s), pace=s.options.pace
    ),
    "eviction": lambda s: EvictionReconciler(
        s.quirks, s.options.pace, with_rules=s.profile.enabled("DRADeviceTaintRules")
    ),
    "scheduling": _scheduling,
    "deployments": lambda s: WorkloadReconciler(DEPLOYMENTS, s.options.pace),
    "replica-sets": lambda s: WorkloadReconciler(REPLICA_SETS, s.options.pace),
    "stateful-sets": lambda s: WorkloadReconciler(STATEFUL_SETS, s.options.pace),
    "daemon-sets": lambda s: WorkloadReconciler(DAEMON_SETS, s.options.pace),
    "jobs": lambda s: WorkloadReconciler(JOBS, s.options.pace),
    "quotas": lambda _: QuotaReconciler(),
    "pool-status": lambda s: PoolStatusReconciler(sums_up=s.profile.follows(profiles.POOL_STATUS)),
    "slice-patches": lambda _: PatchWarningReconciler(),
    "kubelet": lambda _: KubeletReconciler(),
    "event-expiry": lambda s: EventExpiryReconciler(s.options.event_ttl or 0),
    "service-accounts": lambda _: NamespaceObjectReconciler(SERVICE_ACCOUNTS),
    "root-ca": lambda _: NamespaceObjectReconciler(ROOT_CA),
    "cluster-roles": lambda _: ClusterRoleReconciler(),
    "api-services": lambda _: ApiServiceReconciler(),
}

BINDING_TIMEOUT_MAX_SECONDS = 7 * 24 * 3_600
"""The longest time that devices can be given to become ready: a week."""

_BINDING_TIMEOUT = "controllers.bindingTimeoutSeconds"

TERMINATED_PODS_MAX = 10_000_000
"""The largest number of finished pods that a history can be set to keep."""

EVENT_TTL_MAX_SECONDS = 10 * 365 * 24 * 3600
"""The longest configurable life of Event objects: ten years."""

BIND_DELAY_MAX_MILLIS = 60_000
"""The longest delay of bindings; real delays are 30 to 100 ms on an idle machine."""

NAMES = tuple(_MAKERS)
"""The names of all controllers, in order; for leases, options and the command line."""

UNHURRIED = frozenset({"garbage", "namespaces", "definitions", "quotas"})
"""The controllers that read every event and that no other work waits for: upstream's collector runs
10 to 30 ms later (controllers.md 2.3)."""

PACED = frozenset(
    {
        "namespaces",
        "claims",
        "garbage",
        "rule-status",
        "eviction",
        "scheduling",
        "deployments",
        "replica-sets",
        "stateful-sets",
        "daemon-sets",
        "jobs",
    }
)
"""The controllers that process their keys at the pace of a replay (`ControllerOptions.pace`); the
others process them as soon as they are ready."""

CLUSTER_OBJECTS = frozenset({"service-accounts", "root-ca", "cluster-roles", "api-services"})
"""The controllers that run only in histories with the setting `controllers.clusterObjects`."""

_GATES_OF = {
    "eviction": ("DRADeviceTaints",),
    "rule-status": ("DRADeviceTaints", "DRADeviceTaintRules"),
    "pool-status": ("DRAResourcePoolStatus",),
    "slice-patches": ("DRAAdminControlledDeviceAttributes",),
}

_CONTROLLER_QUIRKS = frozenset(field.name for field in fields(ControllerQuirks))
_ALLOCATOR_QUIRKS = frozenset(field.name for field in fields(Quirks))

_MANAGER = "kube-controller-manager/redra"
_ACCOUNTS = {
    "garbage": "generic-garbage-collector",
    "namespaces": "namespace-controller",
    "node-lifecycle": "node-controller",
    "node-ttl": "ttl-controller",
    "pod-gc": "pod-garbage-collector",
    "disruption": "disruption-controller",
    "claims": "resource-claim-controller",
    "volume-protection": "pvc-protection-controller",
    "rule-status": "device-taint-eviction-controller",
    "eviction": "device-taint-eviction-controller",
    "deployments": "deployment-controller",
    "replica-sets": "replicaset-controller",
    "stateful-sets": "statefulset-controller",
    "daemon-sets": "daemon-set-controller",
    "jobs": "job-controller",
    "quotas": "resourcequota-controller",
    "pool-status": "resource-pool-status-request-controller",
    "service-accounts": "service-account-controller",
    "root-ca": "root-ca-cert-publisher",
    "cluster-roles": "clusterrole-aggregation-controller",
}
_KUBELET = Actor(
    user="system:node:redra",
    groups=("system:nodes", "system:authenticated"),
    agent="kubelet/redra",
)
API_SERVER = Actor(
    user="system:apiserver", groups=("system:masters",), agent="kube-apiserver/redra"
)
"""The author of the writes that the API server makes by itself."""
_GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")


def running(profile: Profile, options: ControllerOptions = ControllerOptions()) -> tuple[str, ...]:
    """The names of the controllers that run, in order; a controller whose gate is off does not."""
    return tuple(
        name
        for name in NAMES
        if name not in options.off
        and profile.all_enabled(*_GATES_OF.get(name, ()))
        and (name != event_expiry.NAME or options.event_ttl is not None)
        and (name not in CLUSTER_OBJECTS or options.cluster_objects)
    )


def controller(
    name: str,
    profile: Profile,
    features: Features,
    compiler: SelectorCompiler,
    options: ControllerOptions = ControllerOptions(),
) -> Reconciler:
    """A new reconciler with that name, which has not folded any event."""
    setting = _Setting(
        profile=profile,
        features=features,
        compiler=compiler,
        options=options,
        quirks=quirks_of(profile, options),
    )
    return _MAKERS[name](setting)


def controllers(
    profile: Profile,
    features: Features,
    compiler: SelectorCompiler,
    options: ControllerOptions = ControllerOptions(),
) -> tuple[Reconciler, ...]:
    """All controllers that run, in order."""
    return tuple(
        controller(name, profile, features, compiler, options) for name in running(profile, options)
    )


def restarts_count(name: str, profile: Profile, options: ControllerOptions) -> bool:
    """True for a controller whose terms begin with ControllerRestarted in the log (quirk C7)."""
    return name == rule_status.NAME and quirks_of(profile, options).c7


def quirks_of(profile: Profile, options: ControllerOptions) -> ControllerQuirks:
    """The controllers' quirks from the options, otherwise those of the release."""
    return releases.quirks_of(profile) if options.quirks is None else options.quirks


def allocator_quirks_of(profile: Profile, options: ControllerOptions) -> Quirks:
    """The allocator's quirks from the options, otherwise those of the release."""
    chosen = options.allocator_quirks
    return releases.allocator_quirks_of(profile) if chosen is None else chosen


def options_from(settings: JsonView) -> ControllerOptions:
    """The options in the settings of a history.

    `controllers.off` lists names; `quirks` maps numbers (`c8`, `q3`) to true or false where they
    differ from the release. `controllers.bindDelayMillis` is the duration of bindings,
    `controllers.bindingTimeoutSeconds` the time in which devices must become ready,
    `controllers.eventTtlSeconds` the life of Event objects, `controllers.terminatedPodsMax` the
    number of finished pods to keep. `controllers.clusterObjects` turns on the controllers of the
    objects that every cluster has. Raises InputError for unknown or invalid values.
    """
    off = frozenset(json_tree.texts(settings, "controllers", "off"))
    if unknown := sorted(off - set(NAMES)):
        raise InputError(f"there is no controller {unknown[0]!r}", place="controllers.off")
    # Not `from_settings`, for which c24 chooses the patch release: other quirks stay as they are.
    profile = Profile(version=json_tree.text(settings, "profile") or profiles.DEFAULT_VERSION)
    quirks = releases.quirks_of(profile)
    allocator = releases.allocator_quirks_of(profile)
    for name, value in sorted(json_tree.mapping(settings, "quirks").items()):
        if name in _CONTROLLER_QUIRKS:
            quirks = replace(quirks, **{name: value is True})
        elif name in _ALLOCATOR_QUIRKS:
            allocator = replace(allocator, **{name: value is True})
        elif reason := NOT_SWITCHES.get(name) or NO_SWITCH.get(name):
            raise InputError(f"quirk {name} has no switch: {reason}", place="quirks")
        else:
            raise InputError(
                f"there is no quirk {name!r}",
                place="quirks",
                cure="docs/reference/behaviours.md has them",
            )
    event_ttl = _number(settings, "eventTtlSeconds", "seconds", EVENT_TTL_MAX_SECONDS)
    return ControllerOptions(
        quirks=quirks,
        allocator_quirks=allocator,
        off=off,
        bind_delay=_bind_delay(settings),
        binding_timeout=_binding_timeout(settings),
        event_ttl=event_ttl * SECOND if event_ttl else None,
        terminated_pods_max=_number(
            settings, "terminatedPodsMax", "pods", TERMINATED_PODS_MAX, TERMINATED_MAX
        ),
        cluster_objects=json_tree.get(settings, "controllers", "clusterObjects") is True,
    )


def _bind_delay(settings: JsonView) -> BindDelay | None:
    """The delay of bindings: claims are written after half of it, the pod is bound at its end."""
    millis = _number(settings, "bindDelayMillis", "milliseconds", BIND_DELAY_MAX_MILLIS)
    return FixedBindDelay(millis * 1_000) if millis else None


def _binding_timeout(settings: JsonView) -> int:
    """The `bindingTimeout` of the plug-in's arguments. Parity: controllers.md 3."""
    default = binding_conditions.TIMEOUT // SECOND
    seconds = _number(
        settings, "bindingTimeoutSeconds", "seconds", BINDING_TIMEOUT_MAX_SECONDS, default
    )
    if not seconds:
        raise InputError("0 is no time to make devices ready", place=_BINDING_TIMEOUT)
    return seconds * SECOND


def _number(settings: JsonView, name: str, unit: str, most: int, default: int = 0) -> int:
    """A number in the settings of the controllers. Raises InputError."""
    number = json_tree.get(settings, "controllers", name)
    if number is None:
        return default
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most:
        raise InputError(
            f"{number!r} is not a number of {unit} up to {most}", place=f"controllers.{name}"
        )
    return number


def actor_of(name: str) -> Actor:
    """The author of a controller's writes in the log."""
    if name == "kubelet":
        return _KUBELET
    if name in ("api-services", "definitions", event_expiry.NAME):
        return API_SERVER
    account = _ACCOUNTS.get(name)
    if account is None:
        return Actor(
            user="system:kube-scheduler",
            groups=("system:authenticated",),
            agent="kube-scheduler/redra",
        )
    return Actor(
        user=f"system:serviceaccount:kube-system:{account}", groups=_GROUPS, agent=_MANAGER
    )


def _tie_break(setting: _Setting) -> TieBreak | None:
    if setting.options.tie_break is None and not setting.quirks.c17:
        return tie_breaks.drawn
    return setting.options.tie_break


def _acts_apart(options: ControllerOptions) -> int | None:
    """The microseconds between writes about one claim; 0 with a recorded pace."""
    if options.bind_delay is None:
        return None
    return ACTS_APART if options.pace is None else 0


def _rule_version(setting: _Setting) -> str:
    return "v1" if setting.profile.follows(profiles.RULE_VERSION) else "v1beta2"
