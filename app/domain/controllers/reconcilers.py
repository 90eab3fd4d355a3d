"""The reconcilers of all controllers by name, each made from the options of a history.

They are apart from the options, which most answers need without any reconciler.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.domain.allocation import Features
from app.domain.controllers import registry
from app.domain.controllers.api_services import ApiServiceReconciler
from app.domain.controllers.claims import ClaimsReconciler
from app.domain.controllers.claims.reconciler import ACTS_APART
from app.domain.controllers.cluster_roles import ClusterRoleReconciler
from app.domain.controllers.definitions import DefinitionReconciler
from app.domain.controllers.disruption import DisruptionReconciler
from app.domain.controllers.event_expiry import EventExpiryReconciler
from app.domain.controllers.eviction import EvictionReconciler
from app.domain.controllers.garbage import (
    GarbageReconciler,
    NamespaceReconciler,
    PodGcReconciler,
)
from app.domain.controllers.kubelet import KubeletReconciler
from app.domain.controllers.namespace_objects import (
    ROOT_CA,
    SERVICE_ACCOUNTS,
    NamespaceObjectReconciler,
)
from app.domain.controllers.nodes import NodeReconciler, NodeTtlReconciler
from app.domain.controllers.plan import Reconciler
from app.domain.controllers.pool_status import PoolStatusReconciler
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.quotas import QuotaReconciler
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.rule_status import RuleStatusReconciler
from app.domain.controllers.scheduling import SchedulingReconciler
from app.domain.controllers.scheduling.framework import scoring
from app.domain.controllers.scheduling.scheduling_cycle.attempt import (
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
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile


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
            allocator_quirks=registry.allocator_quirks_of(setting.profile, setting.options),
            tie_break=_tie_break(setting),
            bind_delay=setting.options.bind_delay,
            binding_timeout=setting.options.binding_timeout,
            pace=setting.options.pace,
            summary=setting.options.summary,
            profiles=setting.options.profiles,
            checks_volumes=setting.options.checks_volumes,
        )
    )


MAKERS: Mapping[str, Callable[[_Setting], Reconciler]] = {
    "namespaces": lambda s: NamespaceReconciler(s.options.pace),
    "definitions": lambda _: DefinitionReconciler(),
    "node-lifecycle": lambda s: NodeReconciler(s.options.pace),
    "node-ttl": lambda _: NodeTtlReconciler(),
    "pod-gc": lambda s: PodGcReconciler(s.options.terminated_pods_max, s.options.pace),
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


def controllers(
    profile: Profile,
    features: Features,
    compiler: SelectorCompiler,
    options: ControllerOptions = ControllerOptions(),
) -> tuple[Reconciler, ...]:
    """All controllers that run, in order."""
    return tuple(
        controller(name, profile, features, compiler, options)
        for name in registry.running(profile, options)
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
        quirks=registry.quirks_of(profile, options),
    )
    return MAKERS[name](setting)


def _tie_break(setting: _Setting) -> TieBreak | None:
    if setting.options.tie_break is None and not setting.quirks.c17:
        return scoring.drawn_winner
    return setting.options.tie_break


def _acts_apart(options: ControllerOptions) -> int | None:
    """The microseconds between writes about one claim; 0 with a recorded pace."""
    if options.bind_delay is None or options.joins_acts:
        return None
    return ACTS_APART if options.pace is None else 0


def _rule_version(setting: _Setting) -> str:
    if setting.profile.follows(profiles.RULE_VERSION):
        return "v1"
    return "v1beta2" if setting.profile.minor >= 36 else "v1alpha3"
