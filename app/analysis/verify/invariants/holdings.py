"""Who holds which device, and what of it: sums that are kept while claims come and go."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from app.analysis.verify.invariants import amounts
from app.analysis.verify.invariants.reading import Device, Result
from app.analysis.verify.invariants.stock import CounterId, DeviceId, PoolId, Stock
from app.domain.log import ObjectKey

Held = tuple[ObjectKey, Result]


class Holdings:
    """The devices in use. Administrative access uses nothing. Parity: allocator.md 7, 8."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._holders: dict[DeviceId, list[Held]] = {}
        self._of_pool: dict[PoolId, set[str]] = defaultdict(set)
        self._consumed: dict[DeviceId, Counter[str]] = {}
        self._drawn: dict[PoolId, dict[CounterId, int]] = {}

    def hold(self, claim: ObjectKey, results: Iterable[Result]) -> Iterator[DeviceId]:
        """The claim was allocated; the devices that it holds."""
        for result in results:
            if result.admin_access:
                continue
            device = result.id
            held = self._holders.setdefault(device, [])
            held.append((claim, result))
            if len(held) == 1:
                self._of_pool[device[:2]].add(device[2])
                self._draw(device, 1)
            if result.consumed_capacity:
                consumed = self._consumed.setdefault(device, Counter())
                for name, value in result.consumed_capacity.items():
                    consumed[name] += amounts.billionths(value)
            yield device

    def release(self, claim: ObjectKey, results: Iterable[Result]) -> Iterator[DeviceId]:
        """The claim gave back what it held; the devices."""
        for result in results:
            if result.admin_access:
                continue
            device = result.id
            held = self._holders[device]
            held.remove((claim, result))
            for name, value in result.consumed_capacity.items():
                self._consumed[device][name] -= amounts.billionths(value)
            if not held:
                del self._holders[device]
                self._consumed.pop(device, None)
                self._of_pool[device[:2]].discard(device[2])
                self._draw(device, -1)
            yield device

    def is_shared(self, device: DeviceId) -> bool:
        """Whether several results hold the device, or capacity of it is consumed."""
        return len(self._holders.get(device, ())) > 1 or device in self._consumed

    def of(self, device: DeviceId) -> list[Held]:
        """Who holds the device."""
        return self._holders.get(device, [])

    def consumed(self, device: DeviceId) -> Mapping[str, int]:
        """How much of each capacity of the device is consumed."""
        return self._consumed.get(device, {})

    def in_pool(self, pool: PoolId) -> list[DeviceId]:
        """The devices of a pool that somebody holds, by name."""
        return [(*pool, name) for name in sorted(self._of_pool.get(pool, ()))]

    def drawn(self, pool: PoolId) -> Mapping[CounterId, int]:
        """What the devices in use draw from the counters of their pool."""
        drawn = self._drawn.get(pool)
        if drawn is None:
            drawn = self._drawn[pool] = {}
            for device in self.in_pool(pool):
                _add(drawn, self._stock.device(device), 1)
        return drawn

    def forget(self, pool: PoolId) -> None:
        """The pool was published anew: its devices may draw something else."""
        self._drawn.pop(pool, None)

    def _draw(self, device: DeviceId, times: int) -> None:
        drawn = self._drawn.get(device[:2])
        if drawn is not None:
            _add(drawn, self._stock.device(device), times)


def draws(device: Device | None, counter: CounterId) -> bool:
    """Whether a device draws from the counter."""
    return device is not None and any(
        each.counter_set == counter[0] and counter[1] in each.counters
        for each in device.consumes_counters
    )


def _add(drawn: dict[CounterId, int], device: Device | None, times: int) -> None:
    for each in () if device is None else device.consumes_counters:
        for name, amount in each.counters.items():
            place = each.counter_set, name
            drawn[place] = drawn.get(place, 0) + times * amounts.billionths(amount.value)
