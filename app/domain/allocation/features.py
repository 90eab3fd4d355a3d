"""Feature gates of the allocator, their defaults per release, and the variant that they require.

Parity: allocator.md 1.2 and 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class AllocatorVariant(StrEnum):
    """The variant of upstream's allocator; each supports more features than the one before."""

    STABLE = "stable"
    INCUBATING = "incubating"
    EXPERIMENTAL = "experimental"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features that are on. `taint_rules` and `patches` affect merging, not the search.

    `cleaned_configs` removes `requests` from the config entries that name every request, as since
    1.37; up to 1.36 every entry keeps them, whether from a class or from the claim.
    `node_scoped_pools` lets a pool that mode All cannot use reject only its node, as since 1.37;
    before, it ended the attempt.
    """

    admin_access: bool = False
    consumable_capacity: bool = False
    binding_conditions: bool = False
    device_taints: bool = False
    list_attributes: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False
    taint_rules: bool = False
    patches: bool = False
    cleaned_configs: bool = True
    node_scoped_pools: bool = False

    @classmethod
    def of_gates(cls, gates: Mapping[str, bool]) -> "Features":
        """The features for gates by name; a gate that is not named is off.

        Two exceptions: DRAResourceClaimDeviceStatus is on unless it is named (binding conditions
        need both), and DRADeviceTaintRules follows DRADeviceTaints unless it is named.
        """
        taints = gates.get("DRADeviceTaints", False)
        return cls(
            admin_access=gates.get("DRAAdminAccess", False),
            consumable_capacity=gates.get("DRAConsumableCapacity", False),
            binding_conditions=gates.get("DRADeviceBindingConditions", False)
            and gates.get("DRAResourceClaimDeviceStatus", True),
            device_taints=taints,
            list_attributes=gates.get("DRAListTypeAttributes", False),
            partitionable_devices=gates.get("DRAPartitionableDevices", False),
            prioritized_list=gates.get("DRAPrioritizedList", False),
            taint_rules=taints and gates.get("DRADeviceTaintRules", taints),
            patches=gates.get("DRAAdminControlledDeviceAttributes", False),
        )

    @classmethod
    def of_profile(cls, profile: str) -> "Features":
        """The defaults of a Kubernetes release such as `1.36`; KeyError for an unknown one."""
        return cls.of_gates(PROFILES[profile])

    def variant(self) -> AllocatorVariant:
        """The first upstream variant that supports all features that are on."""
        if self.list_attributes:
            return AllocatorVariant.EXPERIMENTAL
        if self.binding_conditions or self.consumable_capacity:
            return AllocatorVariant.INCUBATING
        return AllocatorVariant.STABLE


_BETA_SINCE_1_34 = {
    "DRAAdminAccess": True,
    "DRAPrioritizedList": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRAAdminControlledDeviceAttributes": True,
    "DRADeviceTaintRules": False,
}
_BETA_SINCE_1_36 = {
    **_BETA_SINCE_1_34,
    "DRAPartitionableDevices": True,
    "DRADeviceTaints": True,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
}

PROFILES: Mapping[str, Mapping[str, bool]] = {
    "1.34": _BETA_SINCE_1_34,
    "1.35": _BETA_SINCE_1_34,
    "1.36": _BETA_SINCE_1_36,
    "1.37": {**_BETA_SINCE_1_36, "DRADeviceTaintRules": True},
}
"""The default gates per release. ResourceSlicePatches are an extension of redra."""
