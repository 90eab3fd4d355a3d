"""The largest claim of each class that still fits, and counters that no device can use any more."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.analysis.blast import reach
from app.analysis.views import LiveViews
from app.domain.allocation import AllocatedState, Allocation, Allocator, Features
from app.domain.allocation.allocator import Answer, Bounds, Failure
from app.domain.allocation.counters import available_of
from app.domain.allocation.quirks import Quirks
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.inventory import Inventory
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

COUNT_MAX = 4_096
"""The number of devices in the largest claim that is tried."""

STEPS_MAX = 5_000
"""The maximum number of steps of the search for one claim; for overlapping partitions, proving that
a number does not fit may take too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """The number of devices in the largest claim of a class, and the first node that serves it.

    With `is_least`, a search for a larger one was given up: a larger one may exist.
    """

    count: int = 0
    node: str = ""
    is_least: bool = False


@dataclass(slots=True, kw_only=True)
class CounterSum:
    """A counter over all pools of a driver, in nanos; `stranded` is part of `left`."""

    total: int = 0
    left: int = 0
    stranded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The devices at one moment. Classes are by name, nodes in their order."""

    classes: Mapping[str, JsonObject]
    nodes: Sequence[JsonObject]
    inventory: Inventory
    allocated: AllocatedState
    features: Features


def devices_of(views: LiveViews) -> Devices:
    """The devices of the views. The result shares them: it is valid until they fold on."""
    objects = views.objects
    classes = {
        key.name: tree
        for key in objects.keys(*api_resources.DEVICE_CLASSES)
        if (tree := objects.get(key)) is not None
    }
    return Devices(
        classes=classes,
        nodes=[objects.get(key) or {} for key in objects.keys(*api_resources.NODES)],
        inventory=views.inventory,
        allocated=views.allocated,
        features=views.features,
    )


def emptiest_first(devices: Devices) -> Devices:
    """The same devices, with the nodes in the order of their free devices, most first.

    The largest claim of a class is the same on any order, though not the node. An early good node
    spares the proofs that worse ones give not even one device more than they do.
    """
    free: Counter[str] = Counter()
    for pool_id in devices.inventory.pool_ids():
        for each in devices.inventory.slices_of(pool_id):
            free[each.node.name] += sum(
                not devices.allocated.is_allocated(device.id) for device in each.devices
            )
    return replace(devices, nodes=sorted(devices.nodes, key=lambda node: -free[meta.name(node)]))


def by_class(
    devices: Devices, compiler: SelectorCompiler, quirks: Quirks, steps_max: int = STEPS_MAX
) -> Mapping[str, Largest]:
    """The largest claim of each class that one more pod could have, on its best node.

    Nodes that currently take no pods do not count. The search for one claim has `steps_max` steps.
    """
    allocator = Allocator(
        devices.inventory,
        devices.classes,
        devices.allocated,
        devices.features,
        compiler=compiler,
        quirks=quirks,
        bounds=Bounds(steps_max=steps_max),
    )
    open_nodes = [node for node in devices.nodes if reach.takes_pods(node)]
    return {name: _largest(allocator, open_nodes, name) for name in devices.classes}


def counters(devices: Devices) -> Mapping[tuple[str, str], CounterSum]:
    """The counters of all pools, by driver and name of the counter."""
    sums: dict[tuple[str, str], CounterSum] = {}
    for pool_id in devices.inventory.pool_ids():
        pool = devices.inventory.pool(pool_id)
        if pool is None or not pool.counters:
            continue
        left = available_of(pool, devices.allocated)
        free = [
            device
            for each in (*pool.slices, *pool.others)
            for device in each.devices
            if device.consumes and not devices.allocated.is_allocated(device.id)
        ]
        drawn = {
            (name, counter)
            for device in free
            if all(
                left.get((name, counter), 0) >= amount
                for name, used in device.consumes
                for counter, amount in used
            )
            for name, used in device.consumes
            for counter, _ in used
        }
        for name, amounts in pool.counters.items():
            for counter, amount in amounts.items():
                rest = max(0, left[name, counter])
                one = sums.setdefault((pool_id[0], counter), CounterSum())
                one.total += amount
                one.left += rest
                one.stranded += 0 if (name, counter) in drawn else rest
    return sums


def _largest(allocator: Allocator, nodes: Sequence[JsonObject], device_class: str) -> Largest:
    best, is_least = Largest(), False
    for node in nodes:
        tries = _ClaimTries(allocator, node, device_class)
        # One try shows that a node gives no more than the best so far, as most do.
        if best.count < COUNT_MAX and tries.fits(best.count + 1):
            best = Largest(count=_count(tries, best.count + 1), node=meta.name(node))
        is_least = is_least or tries.gave_up
    return replace(best, is_least=is_least)


def _count(tries: "_ClaimTries", fits: int) -> int:
    """The largest count that fits on a node, found by doubling and then bisection."""
    fails = fits * 2
    while fails <= COUNT_MAX and tries.fits(fails):
        fits, fails = fails, fails * 2
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if tries.fits(middle):
            fits = middle
        else:
            fails = middle
    return fits


@dataclass(slots=True)
class _ClaimTries:
    """Claims for devices of one class, tried on one node."""

    allocator: Allocator
    node: JsonObject
    device_class: str
    gave_up: bool = False

    def fits(self, count: int) -> bool:
        """Whether a claim for this number is allocated; False if the search is given up."""
        exactly = {
            "deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": count
        }  # fmt: skip
        claim = {
            "metadata": {"name": "probe", "namespace": "probe", "uid": "probe"},
            "spec": {"devices": {"requests": [{"name": "probe", "exactly": exactly}]}},
        }
        answer: Answer = self.allocator.allocate(self.node, [claim])
        self.gave_up = self.gave_up or (isinstance(answer, Failure) and answer.timed_out)
        return isinstance(answer, Allocation)
