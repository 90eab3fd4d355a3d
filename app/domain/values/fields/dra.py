"""The fields of the kinds of `resource.k8s.io`: claims, slices, classes, rules."""

import msgspec

from app.domain.values.fields import core, meta, paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import (
    NO_DEVICE,
    NO_DRIVER,
    NO_POOL,
    NO_UID,
    DeviceId,
    DeviceName,
    DriverName,
    PoolId,
    PoolName,
    Uid,
)
from app.domain.values.json_tree import JsonObject, JsonView

allocation = paths.get("status", "allocation")
"""The allocation of a claim as stored, or None."""

allocation_time = paths.text("allocationTimestamp")
"""The time of an allocation; empty where the API drops it."""

configurations = paths.objects("status", "allocation", "devices", "config")
"""The configurations of a claim's allocation as stored."""

reserved_for = paths.objects("status", "reservedFor")
"""The consumers of a claim as stored."""

request_trees = paths.objects("spec", "devices", "requests")
"""The requests of a claim as stored."""

alternatives = paths.objects("firstAvailable")
"""The alternatives of a request as stored; empty for a request of one kind."""

device_class_name = paths.text("deviceClassName")
"""The class that a request, or one of its alternatives, names."""

class_selectors = paths.objects("spec", "selectors")
"""The selectors of a DeviceClass."""

selector_expression = paths.text("cel", "expression")
"""The CEL expression of one selector."""

driver = paths.typed(DriverName, paths.text("spec", "driver"))
node_name = paths.text("spec", "nodeName")
"""The node whose devices a slice publishes; empty when other nodes can access them."""

pool_name = paths.typed(PoolName, paths.text("spec", "pool", "name"))
devices = paths.objects("spec", "devices")
"""The devices of a slice."""

shared_counters = paths.objects("spec", "sharedCounters")
published_name = paths.typed(DeviceName, paths.text("name"))
attributes = paths.mapping("attributes")
capacity = paths.mapping("capacity")
"""The name, the attributes and the capacity in one entry of a slice's `spec.devices`."""

device_taints = paths.objects("taints")
"""The taints in one entry of a slice's `spec.devices`."""

counters = paths.mapping("counters")
"""The counters of one counter set, or those that a device consumes of it."""

consumptions = paths.objects("consumesCounters")
"""The counters of its pool that one entry of a slice's `spec.devices` consumes."""

counter_set = paths.text("counterSet")
"""The counter set that one such entry is about."""

device_selector = paths.get("spec", "deviceSelector")
"""The selector of a DeviceTaintRule, or None when it has none."""

taint = paths.mapping("spec", "taint")
"""The taint of a DeviceTaintRule."""

extended_resource_name = paths.text("spec", "extendedResourceName")
"""The extended resource that a DeviceClass serves; empty when it serves none."""


def _nothing() -> JsonObject:
    return _NOTHING


_NOTHING: JsonObject = {}
"""What most devices consume of their capacity. Shared, as all trees that readers get."""


class DeviceResult(FieldRecord, frozen=True):
    """One device, or one share of a device, of an allocation."""

    request: str = ""
    driver: DriverName = NO_DRIVER
    pool: PoolName = NO_POOL
    device: DeviceName = NO_DEVICE
    share_id: str = msgspec.field(default="", name="shareID")
    admin_access: bool = False
    consumed_capacity: JsonObject = msgspec.field(default_factory=_nothing)
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    tolerations: tuple[JsonObject, ...] = ()

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.device)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Driver, pool, device and share, which identify the device's status."""
        return (self.driver, self.pool, self.device, self.share_id)

    @property
    def text(self) -> str:
        """`driver/pool/device`."""
        return f"{self.driver}/{self.pool}/{self.device}"


class DeviceStatus(FieldRecord, frozen=True):
    """The status that a driver reports for one device of a claim."""

    driver: DriverName = NO_DRIVER
    pool: PoolName = NO_POOL
    device: DeviceName = NO_DEVICE
    share_id: str = msgspec.field(default="", name="shareID")
    conditions: tuple[meta.Condition, ...] = ()

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.device)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Driver, pool, device and share."""
        return (self.driver, self.pool, self.device, self.share_id)


class Consumer(FieldRecord, frozen=True):
    """An entry of `status.reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: Uid = NO_UID


class ResourcePool(FieldRecord, frozen=True):
    """The `spec.pool` of a slice."""

    name: PoolName = NO_POOL
    generation: int = 0
    resource_slice_count: int = 0


class RequestDetails(FieldRecord, frozen=True):
    """The content of one request: its `exactly`, or an entry of its `firstAvailable`."""

    name: str = ""
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool = False
    selectors: tuple[JsonObject, ...] = ()
    tolerations: tuple[JsonObject, ...] = ()


class DeviceRequest(FieldRecord, frozen=True):
    """One request of a claim: an exact one, or alternatives in order."""

    name: str = ""
    exactly: RequestDetails | None = None
    first_available: tuple[RequestDetails, ...] = ()


class DeviceConstraint(FieldRecord, frozen=True):
    """A constraint on the devices of some requests (all, when none is named)."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


constraints = records.of_list(DeviceConstraint, paths.get("spec", "devices", "constraints"))
"""The constraints of a claim."""

requests = records.of_list(DeviceRequest, paths.get("spec", "devices", "requests"))
pool = records.of_value(ResourcePool, paths.get("spec", "pool"))
consumers = records.of_list(Consumer, paths.get("status", "reservedFor"))
"""The consumers of a claim as records."""

device_status_trees = paths.objects("status", "devices")
device_statuses = records.of_list(DeviceStatus, paths.get("status", "devices"))

results_of = records.of_list(DeviceResult, paths.get("devices", "results"))
"""The devices of an allocation."""

results = records.of_list(DeviceResult, paths.get("status", "allocation", "devices", "results"))
"""The devices of a claim's allocation; empty while the claim is not allocated."""

result_trees_of = paths.objects("devices", "results")
result_trees = paths.objects("status", "allocation", "devices", "results")
"""The devices of a claim's allocation as stored."""

_terms = paths.objects("nodeSelector", "nodeSelectorTerms")


def pool_id(tree: JsonView) -> PoolId:
    """The driver and name of the pool of a slice."""
    return driver(tree), pool_name(tree)


def has_consumer(claim: JsonView, uid: str) -> bool:
    """Whether a claim is reserved for the consumer with this uid."""
    return any(consumer.uid == uid for consumer in consumers(claim))


def selected_node(allocation: JsonView) -> str:
    """The single node that an allocation's selector names; empty when there is no single node.

    Parity: allocator.md 10.3, a node-local device gives one term with one field.
    """
    terms = _terms(allocation)
    for field in core.field_requirements(terms[0]) if len(terms) == 1 else ():
        if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
            return field.values[0]
    return ""


def device_names(allocation: JsonView) -> tuple[str, ...]:
    """The text `request: pool/device` for each result."""
    return tuple(
        f"{result.request}: {result.pool}/{result.device}" for result in results_of(allocation)
    )
