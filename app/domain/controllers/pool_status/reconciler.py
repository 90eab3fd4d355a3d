"""The reconciler of ResourcePoolStatusRequests: answers each once, when it is created.

Release 1.36 never answers a request when a matching pool is incomplete (recorded). From 1.37 on the
answer contains such a pool with a validation error and without numbers, and summaries of pools with
partitions or shared devices (summaries). Parity: objects.md 15.
"""

from collections.abc import Iterable, Iterator

from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.keyed import KeyedController, Work
from app.domain.controllers.plan import DeviceViews, Reads
from app.domain.controllers.pool_status import summaries
from app.domain.controllers.resources import is_of
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Slice
from app.domain.devices.pools import PoolState, newest, survey
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values import api_resources, json_tree, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DriverName, PoolId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

NAME = "pool-status"


LIMIT_DEFAULT = 100


class PoolStatusReconciler(KeyedController[ObjectKey, DeviceViews]):
    """Answers requests for the status of pools. `sums_up` selects the behaviour since 1.37."""

    name = NAME
    reads: Reads = frozenset({api_resources.RESOURCE_POOL_STATUS_REQUESTS})

    def __init__(self, *, sums_up: bool) -> None:
        super().__init__()
        self._sums_up = sums_up

    def keys_of(self, event: Event, views: DeviceViews) -> Iterator[ObjectKey]:
        """New requests."""
        if (
            is_of(event.key, api_resources.RESOURCE_POOL_STATUS_REQUESTS)
            and event.type is EventType.OBJECT_CREATED
        ):
            yield event.key

    def reconcile(self, views: DeviceViews, key: ObjectKey, now: Instant) -> Work | None:
        """Answers one request."""
        tree = views.objects.get(key)
        if tree is None or tree.get("status"):
            return None
        status = _status(views, tree, now, sums_up=self._sums_up)
        if status is None:
            return None
        patch = PatchObject(
            key=key,
            version="v1alpha3",
            type=PatchType.MERGE,
            body={"status": status},
            subresource="status",
            options=MANAGER,
        )
        return Work((patch,))


def _status(
    views: DeviceViews, request: JsonView, now: Instant, *, sums_up: bool
) -> JsonObject | None:
    spec = meta.spec(request)
    driver, wanted = dra.driver(request), json_tree.text(spec, "poolName")
    matching = [
        pool for pool in views.inventory.pool_ids() if pool[0] == driver and wanted in ("", pool[1])
    ]
    allocated = _allocated(views.objects, driver)
    answers = [_pool(views.inventory, pool, allocated.get(pool, set())) for pool in matching]
    limit = json_tree.integer(spec, "limit") or LIMIT_DEFAULT
    if sums_up:
        attribute = json_tree.text(spec, "defaultPartitionTypeAttribute")
        for pool, answer in zip(matching[:limit], answers, strict=False):
            answer.update(summaries.of_pool(views.inventory, views.allocated, pool, attribute))
    elif any("validationError" in answer for answer in answers):
        return None
    status: JsonObject = {
        "poolCount": len(matching),
        "conditions": [
            {
                "type": "Complete",
                "status": "True",
                "lastTransitionTime": timestamps.seconds_text(now),
                "reason": "CalculationComplete",
                "message": f"Calculated status for {len(matching)} pools",
            }
        ],
    }
    if answers:
        status["pools"] = answers[:limit]
    return status


def _pool(inventory: Inventory, pool: PoolId, allocated: set[DeviceId]) -> JsonObject:
    """The numbers of the newest generation. Duplicate names count as often as they appear."""
    slices = newest(inventory.slices_of(pool))
    answer: JsonObject = {
        "driver": pool[0],
        "poolName": pool[1],
        "generation": slices[0].generation,
    }
    if node := _node(slices):
        answer["nodeName"] = node
    surveyed = survey(pool, slices)
    if surveyed.state is PoolState.INCOMPLETE:
        answer["validationError"] = f"pool is incomplete: {surveyed.problem}"
        return answer
    devices = [device for resource_slice in slices for device in resource_slice.devices]
    unavailable = sum(
        1
        for device in devices
        if device.id not in allocated
        and any(taint.effect in ("NoSchedule", "NoExecute") for taint in device.taints)
    )
    return answer | {
        "resourceSliceCount": len(slices),
        "totalDevices": len(devices),
        "allocatedDevices": len(allocated),
        "availableDevices": max(0, len(devices) - len(allocated) - unavailable),
        "unavailableDevices": unavailable,
    }


def _node(slices: Iterable[Slice]) -> str:
    """The node of all slices; empty when they are for several nodes."""
    names = {dra.node_name(resource_slice.tree) for resource_slice in slices}
    return names.pop() if len(names) == 1 else ""


def _allocated(objects: ObjectsReader, driver: DriverName) -> dict[PoolId, set[DeviceId]]:
    """The devices in allocations by pool, including devices that are no longer published."""
    allocated: dict[PoolId, set[DeviceId]] = {}
    for key in objects.keys(*api_resources.RESOURCE_CLAIMS):
        claim = objects.get(key)
        if claim is None:
            continue
        for result in dra.results(claim):
            if result.driver == driver:
                allocated.setdefault((driver, result.pool), set()).add(result.id)
    return allocated
