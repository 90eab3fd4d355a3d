"""All controllers of a cluster by name, in the order in which they run, and their options.

The reconcilers with these names are in `reconcilers`; most answers need none.
Parity: controllers.md 7.1.

The order matters in the deterministic loop: the status of a rule is computed before the pods of the
same rule are evicted, because upstream queues it first, and claims are released before garbage
collection deletes them, because upstream's collector runs 10 to 30 ms later. Budgets are counted
before pods are placed, so that pre-emption sees current numbers.
"""

from dataclasses import dataclass, fields, replace

from app.domain.allocation import Quirks
from app.domain.allocation.quirks import NOT_SWITCHES
from app.domain.allocation.reasons.summary import SummaryBounds
from app.domain.controllers import releases
from app.domain.controllers.pacing import Pace
from app.domain.controllers.quirks import NO_SWITCH, ControllerQuirks
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import FixedBindDelay
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.controllers.scheduling.scheduling_cycle.attempt import BindDelay, TieBreak
from app.domain.errors import InputError
from app.domain.log import Actor
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND

EVENT_EXPIRY = "event-expiry"
RULE_STATUS = "rule-status"

TERMINATED_MAX = 12_500
"""The number of finished pods that are kept (`--terminated-pod-gc-threshold`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The options of the controllers of one history. `off` names controllers that do not run.

    Quirks that are None default to those of the release (`quirks_of`, `allocator_quirks_of`).
    `tie_break` is for replays: it chooses among equally good nodes. `summary` bounds the causes
    in the scheduler's decisions (None: no causes); the process chooses it and decisions record it.
    `pace` is for replays too: it decides when a key may be processed. With a `bind_delay` bindings
    take time, and so do the acts about a claim, unless the option `joins_acts` is set. Devices may
    take `binding_timeout` microseconds to become ready. Event objects end `event_ttl` microseconds
    after their last change; None: they stay. `terminated_pods_max`
    finished pods are kept; 0: all. With `cluster_objects` controllers maintain the objects that
    every cluster has (`CLUSTER_OBJECTS`); older histories and recordings do without. So do they
    without `checks_volumes`, with which the scheduler refuses pods for the claims of their volumes.
    `profiles` is for replays: the names of further profiles of the scheduler.
    """

    quirks: ControllerQuirks | None = None
    allocator_quirks: Quirks | None = None
    off: frozenset[str] = frozenset()
    tie_break: TieBreak | None = None
    pace: Pace | None = None
    bind_delay: BindDelay | None = None
    joins_acts: bool = False
    binding_timeout: int = binding_conditions.TIMEOUT
    event_ttl: int | None = None
    terminated_pods_max: int = TERMINATED_MAX
    cluster_objects: bool = False
    checks_volumes: bool = False
    summary: SummaryBounds | None = SummaryBounds()
    profiles: frozenset[str] = frozenset()


BINDING_TIMEOUT_MAX_SECONDS = 7 * 24 * 3_600
"""The longest time that devices can be given to become ready: a week."""

_BINDING_TIMEOUT = "controllers.bindingTimeoutSeconds"

TERMINATED_PODS_MAX = 10_000_000
"""The largest number of finished pods that a history can be set to keep."""

EVENT_TTL_MAX_SECONDS = 10 * 365 * 24 * 3600
"""The longest configurable life of Event objects: ten years."""

BIND_DELAY_MAX_MILLIS = 60_000
"""The longest delay of bindings; real delays are 30 to 100 ms on an idle machine."""

NAMES = (
    "namespaces",
    "definitions",
    "node-lifecycle",
    "node-ttl",
    "pod-gc",
    "disruption",
    "claims",
    "volume-protection",
    "garbage",
    "rule-status",
    "eviction",
    "scheduling",
    "deployments",
    "replica-sets",
    "stateful-sets",
    "daemon-sets",
    "jobs",
    "quotas",
    "pool-status",
    "slice-patches",
    "kubelet",
    "event-expiry",
    "service-accounts",
    "root-ca",
    "cluster-roles",
    "api-services",
)
"""The names of all controllers, in order; for leases, options and the command line."""

UNHURRIED = frozenset({"garbage", "namespaces", "definitions", "quotas"})
"""The controllers that read every event and that no other work waits for: upstream's collector runs
10 to 30 ms later (controllers.md 2.3)."""

AWAITED = frozenset({"claims", "scheduling", "kubelet"})
"""The controllers that a pod waits for until it runs, which start first in a long history."""

PACED = frozenset(
    {
        "namespaces",
        "node-lifecycle",
        "claims",
        "garbage",
        "pod-gc",
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

DECIDING = frozenset(
    {"node-lifecycle", "pod-gc", "rule-status", "eviction", "scheduling", "slice-patches"}
)
"""The controllers that record a decision with each of their writes. The controller of claims does
so when it changes or deletes claims; the others record none."""

CLUSTER_OBJECTS = frozenset({"service-accounts", "root-ca", "cluster-roles", "api-services"})
"""The controllers that run only in histories with the setting `controllers.clusterObjects`."""

_GATES_OF = {
    "eviction": ("DRADeviceTaints",),
    "rule-status": ("DRADeviceTaints", "DRADeviceTaintRules"),
    "pool-status": ("DRAResourcePoolStatus",),
    "slice-patches": ("DRAAdminControlledDeviceAttributes",),
}

_SINCE = {"rule-status": 35}
"""The minor releases that first have a controller: up to 1.34 rules have no status."""

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
    """The names of the controllers that run, in order.

    A controller whose gate is off does not, nor one that the release does not have.
    """
    return tuple(
        name
        for name in NAMES
        if name not in options.off
        and profile.all_enabled(*_GATES_OF.get(name, ()))
        and profile.minor >= _SINCE.get(name, 0)
        and (name != EVENT_EXPIRY or options.event_ttl is not None)
        and (name not in CLUSTER_OBJECTS or options.cluster_objects)
    )


def gates_off(name: str, profile: Profile) -> list[str]:
    """The disabled gates for which a controller does not run."""
    return [gate for gate in _GATES_OF.get(name, ()) if not profile.enabled(gate)]


def restarts_count(name: str, profile: Profile, options: ControllerOptions) -> bool:
    """True for a controller whose terms begin with ControllerRestarted in the log (quirk C7)."""
    return name == RULE_STATUS and quirks_of(profile, options).c7


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
    objects that every cluster has, `controllers.volumeClaims` the check of the claims of volumes.
    Raises InputError for unknown or invalid values.
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
        checks_volumes=json_tree.get(settings, "controllers", "volumeClaims") is True,
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
    if name in ("api-services", "definitions", EVENT_EXPIRY):
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
