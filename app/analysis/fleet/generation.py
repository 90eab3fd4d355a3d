"""The generation of Nodes, classes and ResourceSlices from a profile, a number of nodes and a seed.

A profile describes one server: its pools, the units in each (GPUs, cards), the devices of a unit
with the counters they consume, or a grid of hosts whose slices are devices. The same profile,
number and seed give the same objects. Publishing again keeps pools that have not changed and raises
the generation of those that have, as a driver must.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from app.analysis.fleet import devices as fleet_devices
from app.analysis.fleet.devices import Unit
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import Command, CreateObject, DeleteObject, UpdateObject
from app.domain.values import api_groups, api_resources, condition_types, json_tree, well_known
from app.domain.values.fields import dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

NODES_MAX = 100_000

DEVICES_MAX = 128
DEVICES_COUNTING_MAX = 64
"""The number of devices in a slice; lower when they consume counters."""

COUNTER_SETS_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPool:
    """One pool of a fleet: its slices' specs without generation and count, and its nodes."""

    driver: str
    name: str
    owner: str
    nodes: tuple[str, ...]
    specs: tuple[JsonObject, ...]

    @property
    def devices(self) -> list[str]:
        """The names of its devices."""
        return [
            entries.name(device)
            for spec in self.specs
            for device in json_tree.objects(spec, "devices")
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The objects of a profile for a number of nodes."""

    profile: str
    nodes: tuple[JsonObject, ...]
    classes: tuple[JsonObject, ...]
    pools: tuple[FleetPool, ...]

    def pools_of(self, node: str) -> list[FleetPool]:
        """The pools that one node publishes."""
        return [pool for pool in self.pools if pool.owner == node]


def build(profile: JsonView, count: int, seed: int) -> Fleet:
    """Builds the fleet of a profile. Raises InputError for an unreadable profile."""
    name = entries.name(profile)
    if not name:
        raise InputError("the profile has no name", place="profile")
    if not 1 <= count <= NODES_MAX:
        raise InputError(f"{count} nodes cannot be made", place="--nodes", cure="ask for 1 or more")
    rows = json_tree.objects(profile, "pools")
    if not rows:
        raise InputError("the profile has no pools", place=name)
    size = max(fleet_devices.group_size(row) for row in rows)
    total = -(-count // size) * size
    names = _node_names(profile, total)
    pools: list[FleetPool] = []
    for row in rows:
        step = fleet_devices.group_size(row)
        for start in range(0, total, step):
            pools.append(_pool(row, tuple(names[start : start + step]), seed))
    return Fleet(
        profile=name,
        nodes=tuple(_node(profile, node) for node in names),
        classes=tuple(_class(row) for row in json_tree.objects(profile, "classes")),
        pools=tuple(pools),
    )


def node_command(node: JsonObject) -> CreateObject:
    """The command that creates a node."""
    key = ObjectKey(*api_resources.NODES, "", node["metadata"]["name"])
    return CreateObject(key=key, version="v1", tree=node)


def class_command(tree: JsonObject) -> CreateObject:
    """The command that creates a device class."""
    key = ObjectKey(*api_resources.DEVICE_CLASSES, "", tree["metadata"]["name"])
    return CreateObject(key=key, version="v1", tree=tree)


def publish(
    pool: FleetPool, present: Iterable[JsonObject], uid_of: Callable[[str], str]
) -> list[Command]:
    """The writes that bring the published slices of a pool to the state of the fleet.

    `present` are the existing slices of this pool, `uid_of` returns the uids of nodes. A pool in
    the desired state is left unchanged; otherwise all its slices get the next generation.
    """
    by_name = {meta.name(tree): tree for tree in present}
    wanted = {_slice_name(pool, index): spec for index, spec in enumerate(pool.specs)}
    if by_name.keys() == wanted.keys() and all(
        _content(by_name[name]["spec"]) == _content(spec) for name, spec in wanted.items()
    ):
        return []
    generation = 1 + max((dra.pool(tree).generation for tree in by_name.values()), default=0)
    commands: list[Command] = []
    for name, spec in wanted.items():
        tree = _slice(pool, name, spec, generation, uid_of)
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", name)
        if name in by_name:
            tree["metadata"]["resourceVersion"] = by_name[name]["metadata"]["resourceVersion"]
            commands.append(UpdateObject(key=key, version="v1", tree=tree))
        else:
            commands.append(CreateObject(key=key, version="v1", tree=tree))
    for name in sorted(by_name.keys() - wanted.keys()):
        commands.append(DeleteObject(key=ObjectKey(*api_resources.RESOURCE_SLICES, "", name)))
    return commands


def manifests(fleet: Fleet) -> list[JsonObject]:
    """All objects for manual apply: without owner references, generation 1."""
    slices = [
        command.tree
        for pool in fleet.pools
        for command in publish(pool, (), lambda _: "")
        if isinstance(command, CreateObject)
    ]
    return [*fleet.classes, *fleet.nodes, *slices]


def _node_names(profile: JsonView, total: int) -> list[str]:
    prefix = json_tree.text(profile, "node", "prefix") or entries.name(profile)
    width = len(str(total))
    return [f"{prefix}-{number:0{width}d}" for number in range(1, total + 1)]


def _node(profile: JsonView, name: str) -> JsonObject:
    labels = json_tree.labels(profile, "node", "labels")
    resources = dict(json_tree.mapping(profile, "node", "resources"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                well_known.ARCH: "amd64",
                well_known.HOSTNAME: name,
                well_known.OS: "linux",
                **labels,
            },
        },
        "status": {
            "capacity": resources,
            "allocatable": dict(resources),
            "conditions": [
                {"type": condition_types.READY, "status": "True", "reason": "KubeletReady"}
            ],
        },
    }


def _class(row: JsonView) -> JsonObject:
    expression = json_tree.text(row, "selector")
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return {
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": entries.name(row)},
        "spec": {"selectors": selectors},
    }


def _pool(row: JsonView, nodes: tuple[str, ...], seed: int) -> FleetPool:
    driver = json_tree.text(row, "driver")
    if not driver:
        raise InputError("a pool of the profile has no driver", place="profile")
    is_grid = "grid" in row
    if is_grid:
        made = fleet_devices.grid(row, nodes)
        name = f"{nodes[0]}-mesh"
    else:
        seeds = f"{seed}/{driver}/{nodes[0]}"
        made = fleet_devices.units(row, seeds)
        name = nodes[0]
    place: JsonObject = fleet_devices.selection(nodes) if is_grid else {"nodeName": nodes[0]}
    specs = _counter_specs(made, place) + _device_specs(made, place, is_grid=is_grid)
    return FleetPool(
        driver=driver,
        name=name,
        owner="" if is_grid else nodes[0],
        nodes=nodes,
        specs=tuple({"driver": driver, "pool": {"name": name}, **spec} for spec in specs),
    )


def _counter_specs(made: list[Unit], place: JsonObject) -> list[JsonObject]:
    sets = [
        {"name": unit.name, "counters": {k: {"value": v} for k, v in unit.counters.items()}}
        for unit in made
        if unit.counters
    ]
    return [
        {**place, "sharedCounters": sets[start : start + COUNTER_SETS_MAX]}
        for start in range(0, len(sets), COUNTER_SETS_MAX)
    ]


def _device_specs(made: list[Unit], place: JsonObject, *, is_grid: bool) -> list[JsonObject]:
    devices = [device for unit in made for device in unit.devices]
    counts = any("consumesCounters" in device for device in devices)
    size = DEVICES_COUNTING_MAX if counts else DEVICES_MAX
    where: JsonObject = {"perDeviceNodeSelection": True} if is_grid else place
    return [
        {**where, "devices": devices[start : start + size]}
        for start in range(0, len(devices), size)
    ]


def _slice_name(pool: FleetPool, index: int) -> str:
    return f"{pool.name}-{pool.driver}-{index}"


def _slice(
    pool: FleetPool, name: str, spec: JsonObject, generation: int, uid_of: Callable[[str], str]
) -> JsonObject:
    metadata: JsonObject = {"name": name}
    uid = uid_of(pool.owner) if pool.owner else ""
    if uid:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Node", "name": pool.owner, "uid": uid, "controller": True}
        ]
    numbered = {
        "name": pool.name,
        "generation": generation,
        "resourceSliceCount": len(pool.specs),
    }
    return {
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {**spec, "pool": numbered},
    }


def _content(spec: JsonView) -> bytes:
    """The content of a slice without its generation and what the API server fills in."""
    kept = {name: value for name, value in spec.items() if name != "pool"}
    return msgspec.json.encode(kept, order="sorted")
