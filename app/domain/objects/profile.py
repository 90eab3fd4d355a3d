"""The profile: the emulated Kubernetes release, its feature gates and its own rules.

Parity: allocator.md 15, controllers.md 0 and 10, objects.md 1. A gate that a release does not know
counts as off. A kind that no release ships (`ResourceSlicePatch`, KEP-5027) has its gate on here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
"""The releases that can be emulated, oldest first."""

DEFAULT_VERSION = VERSIONS[-1]

PATCHES: Mapping[str, str] = {"1.36.0": "1.36", "1.36.1": "1.36", "1.36.2": "1.36"}
"""Patch releases that differ from the profile of their minor release: their schedulers do not see
DeviceTaintRules (controllers.md C24), and the first two fail to score some pods (r2)."""

Minor: TypeAlias = int

_ALWAYS = (True, True, True, True)
_NEVER = (False, False, False, False)
_FROM_35 = (False, True, True, True)
_FROM_36 = (False, False, True, True)
_FROM_37 = (False, False, False, True)

GATES: Mapping[str, tuple[bool, bool, bool, bool]] = {
    # name: on by default in 1.34, 1.35, 1.36, 1.37
    "ClearingNominatedNodeNameAfterBinding": _ALWAYS,
    "DRAAdminAccess": _ALWAYS,
    "DRAAdminControlledDeviceAttributes": _ALWAYS,
    "DRAConsumableCapacity": _FROM_36,
    "DRADeviceBindingConditions": _FROM_36,
    "DRADeviceTaintRules": _FROM_37,
    "DRADeviceTaints": _FROM_36,
    "DRAExtendedResource": _FROM_36,
    "DRAFractionalCapacityRange": _NEVER,
    "DRAListTypeAttributes": _NEVER,
    "DRANodeAllocatableResources": _NEVER,
    "DRAOptionalNodeOperations": _NEVER,
    "DRAPartitionableDevices": _FROM_36,
    "DRAPartitionableDevicesType": _NEVER,
    "DRAPrioritizedList": _ALWAYS,
    "DRAResourceClaimDeviceStatus": _ALWAYS,
    "DRAResourceClaimGranularStatusAuthorization": _FROM_36,
    "DRAResourcePoolStatus": _NEVER,
    "DRASchedulerFilterTimeout": _ALWAYS,
    "DRAWorkloadResourceClaims": _NEVER,
    "DynamicResourceAllocation": _ALWAYS,
    "GangScheduling": _NEVER,
    "GenericWorkload": _NEVER,
    "NominatedNodeNameForExpectation": _FROM_35,
    "PodTopologyLabelsAdmission": _FROM_35,
    "SchedulerAsyncAPICalls": _NEVER,
    "SchedulerPopFromBackoffQ": _ALWAYS,
    "SchedulerQueueingHints": _ALWAYS,
}
"""The feature gates for devices and scheduling, with their defaults per release of `VERSIONS`.
The gates in `FIXED` cannot be switched."""

RULES_GATE = "DRADeviceTaintRules"
"""The gate of DeviceTaintRules. A recording does not name it; a cluster with rules had it on."""

FIXED: Mapping[str, str] = {
    "DRAFractionalCapacityRange": "steps of capacity ranges are whole units in every release here",
    "DRASchedulerFilterTimeout": "a search is bounded by its steps, never by time",
    "DRAWorkloadResourceClaims": "PodGroups are not emulated",
    "DynamicResourceAllocation": "it is locked on since 1.34",
    "GangScheduling": "PodGroups are not emulated",
    "SchedulerAsyncAPICalls": "the writes of an attempt are one append",
    "SchedulerQueueingHints": "waiting pods are always woken by hints, as in every release here",
}
"""Gates that keep their default, and the reason. Switching one has no effect, so it is refused."""


CONFIGURATIONS = "configurations"
POOLS = "pools"
SELECTOR_ERRORS = "selector-errors"
POOL_STATUS = "pool-status"
RULE_VERSION = "rule-version"
RANGE_BOUNDS = "range-bounds"
SERVICE_NAMES = "service-names"
SLICE_LIMITS = "slice-limits"

RELEASE_RULES: Mapping[str, tuple[Minor, str]] = {
    CONFIGURATIONS: (37, "configurations for a whole claim list no requests"),
    POOLS: (37, "a pool that mode All cannot use rejects its node only"),
    SELECTOR_ERRORS: (37, "errors of selectors name the device"),
    POOL_STATUS: (37, "a status of pools names incomplete ones and sums up"),
    RULE_VERSION: (37, "the status of DeviceTaintRules is written in v1"),
    RANGE_BOUNDS: (37, "ranges of capacity end at 2^63 - 1"),
    SERVICE_NAMES: (37, "names of services may begin with a digit"),
    SLICE_LIMITS: (35, "counters and devices are in slices of their own, each with limits"),
}
"""Changes of a release that have neither a gate nor a quirk: the first minor release, the change.

Parity: allocator.md 10.2 and 11, controllers.md 10, objects.md 7.4 and 15.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A release with the gates that differ from its defaults.

    `version` is one of `VERSIONS`; `gates` holds the deviations from its defaults. With
    `empty_rules_taint` a DeviceTaintRule without selector taints every device (Q14). `version` may
    also be a release of `PATCHES`: then `version` becomes its minor release and `patch` names it.
    Any other patch release of one of `VERSIONS` is that minor release.
    `rules` holds the deviations from `RELEASE_RULES`. With `rules_unseen` the scheduler sees no
    DeviceTaintRules in any release (C24). Both are for trials of a single setting. Raises
    InputError for an unknown release, gate or rule, and for a switched gate of `FIXED`.
    """

    version: str = DEFAULT_VERSION
    gates: Mapping[str, bool] = field(default_factory=dict)
    empty_rules_taint: bool = True
    rules: Mapping[str, bool] = field(default_factory=dict)
    rules_unseen: bool = False
    patch: str = field(init=False, default="")
    _on: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", profile_of(self.version) or self.version)
        if self.version in PATCHES:
            object.__setattr__(self, "patch", self.version)
            object.__setattr__(self, "version", PATCHES[self.version])
        if self.version not in VERSIONS:
            known = ", ".join((*VERSIONS, *PATCHES))
            raise InputError(
                f"there is no profile {self.version!r}",
                cure=f"choose one of {known}; any other patch release is its minor release",
            )
        unknown = sorted(set(self.gates) - set(GATES))
        if unknown:
            raise InputError(
                f"there is no feature gate {unknown[0]!r}",
                cure=f"the known ones are {', '.join(GATES)}",
            )
        if unknown := sorted(set(self.rules) - set(RELEASE_RULES)):
            known = ", ".join(RELEASE_RULES)
            raise InputError(
                f"there is no rule of a release {unknown[0]!r}", cure=f"the known ones are {known}"
            )
        place = VERSIONS.index(self.version)
        for name, reason in FIXED.items():
            if self.gates.get(name, GATES[name][place]) != GATES[name][place]:
                value = "off" if self.gates[name] is False else "on"
                raise InputError(f"feature gate {name} cannot be switched {value}: {reason}")
        on = {name for name, defaults in GATES.items() if defaults[place]}
        on = {name for name in on if self.gates.get(name, True)}
        on |= {name for name, wanted in self.gates.items() if wanted}
        object.__setattr__(self, "_on", frozenset(on))

    @property
    def minor(self) -> Minor:
        """The second number of the release: 37 for 1.37."""
        return int(self.version.partition(".")[2])

    @property
    def ignores_rules(self) -> bool:
        """True when the scheduler of this release does not see DeviceTaintRules (C24)."""
        return bool(self.patch) or self.rules_unseen

    def follows(self, rule: str) -> bool:
        """True when the profile follows this rule of `RELEASE_RULES`."""
        return self.rules.get(rule, self.minor >= RELEASE_RULES[rule][0])

    @property
    def open_gates(self) -> frozenset[str]:
        """The gates that are on; profiles with the same open gates treat fields alike."""
        return self._on

    def enabled(self, gate: str) -> bool:
        """True when the gate is on. An unknown gate is a mistake of the caller."""
        assert gate in GATES, gate
        return gate in self._on

    def all_enabled(self, *gates: str) -> bool:
        """True when each of the gates is on."""
        return self._on.issuperset(gates)

    def settings(self) -> JsonObject:
        """The profile as JSON, for the settings of a history."""
        release = self.patch or self.version
        return {"profile": release, "gates": dict(sorted(self.gates.items()))}


def profile_of(release: str) -> str:
    """The profile of a release such as 1.36.2 or 1.36.7; empty when it is not emulated."""
    if release in PATCHES:
        return release
    minor, _, patch = release.rpartition(".")
    return minor if minor in VERSIONS and patch.isascii() and patch.isdecimal() else ""


def from_settings(settings: Mapping[str, object]) -> Profile:
    """The profile that `Profile.settings` wrote; absent settings have their defaults.

    Gates of `FIXED` are ignored: older histories may name them, where they had no effect either.

    The quirks C24 and Q14 are part of the profile. C24 switched on turns 1.36 into 1.36.2; switched
    off, it turns a release of `PATCHES` into its minor release. In other releases C24 sets
    `rules_unseen`. Q14 sets `empty_rules_taint`. Raises InputError for an unreadable profile.
    """
    version = settings.get("profile", DEFAULT_VERSION)
    gates = settings.get("gates", {})
    if not isinstance(version, str) or not isinstance(gates, Mapping):
        raise InputError("the row of the history holds no readable profile, beginning or parent")
    version = profile_of(version) or version
    quirks = settings.get("quirks", {})
    switched_quirks = quirks if isinstance(quirks, Mapping) else {}
    c24 = switched_quirks.get("c24")
    if c24 is True and version == "1.36":
        version = "1.36.2"
    elif c24 is False:
        version = PATCHES.get(version, version)
    rules = settings.get("rules", {})
    known_rules = rules if isinstance(rules, Mapping) else {}
    switched = {str(name): on is True for name, on in gates.items() if name not in FIXED}
    empty_rules_taint = switched_quirks.get("q14") is not False
    return Profile(
        version=version,
        gates=switched,
        empty_rules_taint=empty_rules_taint,
        rules={str(name): on is True for name, on in known_rules.items()},
        rules_unseen=c24 is True and version not in PATCHES,
    )


def nearest_to(release: str) -> str:
    """The profile of a release; for a release that is not emulated, the nearest minor release."""
    minor = int(release.split(".")[1])
    return profile_of(release) or min(
        VERSIONS, key=lambda version: abs(int(version.partition(".")[2]) - minor)
    )
