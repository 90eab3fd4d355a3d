"""The fields of the kinds of `resource.k8s.io`: claims, slices, classes, rules."""

from typing import TypeAlias

import msgspec

from app.domain.values.fields import paths, records
from app.domain.values.fields.records import Record
from app.domain.values.json_tree import JsonObject

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and device name."""

PoolId: TypeAlias = tuple[str, str]
"""Driver and pool name."""

allocation = paths.get("status", "allocation")
"""The allocation of a claim as it is written, or None."""

reserved_for = paths.objects("status", "reservedFor")
"""The consumers of a claim as they are written."""

requests = paths.objects("spec", "devices", "requests")
device_statuses = paths.objects("status", "devices")
"""What drivers report of the devices of a claim."""

driver = paths.text("spec", "driver")
node_name = paths.text("spec", "nodeName")
"""The node whose devices a slice publishes; empty where others can reach them."""

pool_name = paths.text("spec", "pool", "name")
devices = paths.objects("spec", "devices")
"""The devices of a slice."""

device_selector = paths.get("spec", "deviceSelector")
"""The selector of a DeviceTaintRule, or None where it has none and selects nothing."""

taint = paths.mapping("spec", "taint")
"""The taint of a DeviceTaintRule."""

extended_resource_name = paths.text("spec", "extendedResourceName")
"""The extended resource that a DeviceClass serves; empty where it serves none."""


class DeviceResult(Record, frozen=True):
    """One device, or one share of a device, of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = msgspec.field(default="", name="shareID")
    admin_access: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    tolerations: tuple[JsonObject, ...] = ()

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.device)


class Consumer(Record, frozen=True):
    """An entry of `status.reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class Pool(Record, frozen=True):
    """The `spec.pool` of a slice."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


pool = records.of_value(Pool, paths.get("spec", "pool"))
consumers = records.of_list(Consumer, paths.get("status", "reservedFor"))
"""The consumers of a claim as records."""

results_of = records.of_list(DeviceResult, paths.get("devices", "results"))
"""The devices of an allocation."""

results = records.of_list(DeviceResult, paths.get("status", "allocation", "devices", "results"))
"""The devices of a claim's allocation; none while it is not allocated."""

result_trees = paths.objects("status", "allocation", "devices", "results")
"""The devices of a claim's allocation as they are written."""
