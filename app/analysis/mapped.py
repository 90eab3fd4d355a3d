"""The shapes of a device map, apart from how it is made: who reads an answer needs no more."""

import msgspec

from app.domain.log import Revision


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
    """One counter: how much there is and how much devices in use consume; `share` is 0 to 1."""

    set: str
    counter: str
    total: str
    used: str
    share: float


class MappedPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool with its devices; `node` is empty for one that several nodes reach."""

    driver: str
    pool: str
    node: str
    generation: int
    state: str
    problem: str
    devices: tuple[MappedDevice, ...]
    counters: tuple[Gauge, ...]


class DeviceMap(msgspec.Struct, frozen=True, kw_only=True):
    """The pools sorted by node, driver and name; `omitted` counts the pools that did not fit."""

    history: str
    revision: Revision
    pools: tuple[MappedPool, ...]
    omitted: int = 0
