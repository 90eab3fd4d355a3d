"""The data types of a device map, separate from its creation, for code that only reads answers."""

import msgspec

from app.domain.log import Revision
from app.domain.log.doubts import Doubt


class MappedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device; `sets` are the counter sets it draws on, `lacks` counters with too little left.

    Partitions of one physical device draw on the same set.
    """

    name: str
    state: str
    holders: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    is_shared: bool = False


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """One counter: its total, and the amount that devices in use consume; `share` is 0 to 1."""

    set: str
    counter: str
    total: str
    used: str
    share: float


class MappedPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with its devices; `node` is empty if it belongs to no single node."""

    driver: str
    pool: str
    node: str
    generation: int
    state: str
    problem: str
    devices: tuple[MappedDevice, ...]
    counters: tuple[Gauge, ...]


class DeviceMap(msgspec.Struct, frozen=True, kw_only=True):
    """The pools sorted by node, driver and name; `omitted` counts the pools that did not fit.

    `certainty` is `sure`, or `unsure` where the recording lacks content; `doubts` are its losses.
    """

    history: str
    revision: Revision
    pools: tuple[MappedPool, ...]
    omitted: int = 0
    certainty: str = "sure"
    doubts: tuple[Doubt, ...] = ()
