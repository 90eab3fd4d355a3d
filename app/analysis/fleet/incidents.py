"""Incidents in a fleet, by a plan and a seed: taints, lost drivers, lost nodes.

A plan gives, for each kind, the number that begin per hour and the minutes that each lasts:

    hours: 24
    deviceTaints: {perHour: 2, minutes: 30, effect: NoExecute, key: example.com/unhealthy}
    driverLosses: {perHour: 0.5, minutes: 10}
    nodeLosses: {perHour: 0.1, minutes: 60}

The same fleet, plan and seed give the same incidents at the same seconds.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.fleet import generation
from app.analysis.fleet.generation import Fleet, FleetPool
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
)
from app.domain.values import api_groups, api_resources, json_tree, well_known
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

INCIDENTS_MAX = 100_000
_NUMBERS = 2**64


class IncidentKind(StrEnum):
    """The kinds of incidents."""

    TAINT = "device tainted"
    UNTAINT = "device healthy again"
    LOSE_DRIVER = "driver lost"
    RETURN_DRIVER = "driver back"
    LOSE_NODE = "node lost"
    RETURN_NODE = "node back"


_END_OF = {
    IncidentKind.TAINT: IncidentKind.UNTAINT,
    IncidentKind.LOSE_DRIVER: IncidentKind.RETURN_DRIVER,
    IncidentKind.LOSE_NODE: IncidentKind.RETURN_NODE,
}

_ROWS = {
    "deviceTaints": IncidentKind.TAINT,
    "driverLosses": IncidentKind.LOSE_DRIVER,
    "nodeLosses": IncidentKind.LOSE_NODE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetIncident:
    """One incident at one time, in seconds after the start. `name` links its begin to its end."""

    at_seconds: float
    kind: IncidentKind
    name: str
    node: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    key: str = ""
    effect: str = ""

    @property
    def text(self) -> str:
        """The incident as text for people."""
        if self.device:
            return f"{self.kind}: {self.driver}/{self.pool}/{self.device}"
        return (
            f"{self.kind}: {self.driver} of {self.node}"
            if self.driver
            else (f"{self.kind}: {self.node}")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The nodes by name and the slices that exist when an incident happens."""

    nodes: Mapping[str, JsonObject]
    slices: tuple[JsonObject, ...]

    def uid_of(self, node: str) -> str:
        """The uid of a node, empty when it does not exist."""
        return meta.uid(self.nodes.get(node, {}))

    def slices_of(self, pool: FleetPool) -> list[JsonObject]:
        """The published slices of a pool."""
        return [
            tree
            for tree in self.slices
            if dra.driver(tree) == pool.driver and dra.pool_name(tree) == pool.name
        ]


def plan(whole: Fleet, tree: JsonView, seed: int) -> tuple[FleetIncident, ...]:
    """All incidents of a plan in the order of time. Raises InputError for a bad plan."""
    seconds = _number(tree, "hours", 1.0) * 3600
    unknown = sorted(set(tree) - set(_ROWS) - {"hours"})
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is not known", place="--plan", cure=f"use {', '.join(_ROWS)}"
        )
    planned: list[FleetIncident] = []
    for row, kind in _ROWS.items():
        rate = _number(json_tree.mapping(tree, row), "perHour", 0.0)
        if rate * seconds / 3600 > INCIDENTS_MAX:
            raise InputError(f"{row} are more than {INCIDENTS_MAX}", place="--plan")
        if rate > 0:
            settings = json_tree.mapping(tree, row)
            planned += _of_kind(whole, kind, settings, rate, seconds, f"{seed}/{row}")
    return tuple(sorted(planned, key=lambda incident: (incident.at_seconds, incident.name)))


def commands(incident: FleetIncident, whole: Fleet, present: Present) -> list[Command]:
    """The writes of an incident, given the existing objects."""
    node = ObjectKey(*api_resources.NODES, "", incident.node)
    match incident.kind:
        case IncidentKind.TAINT:
            return [_taint(incident)]
        case IncidentKind.UNTAINT:
            key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", incident.name)
            return [DeleteObject(key=key, version="v1beta2")]
        case IncidentKind.LOSE_DRIVER:
            return [_lost(node, incident.driver)] if incident.node in present.nodes else []
        case IncidentKind.RETURN_DRIVER:
            if incident.node not in present.nodes:
                return []
            return [_lost(node, None), *_published(incident.node, whole, present)]
        case IncidentKind.LOSE_NODE:
            return [DeleteObject(key=node)] if incident.node in present.nodes else []
        case IncidentKind.RETURN_NODE:
            if incident.node in present.nodes:
                return []
            return [
                generation.node_command(tree)
                for tree in whole.nodes
                if tree["metadata"]["name"] == incident.node
            ]


def follow_up(incident: FleetIncident, whole: Fleet, present: Present) -> list[Command]:
    """The writes after the first writes have been seen: slices of a returned node."""
    if incident.kind is IncidentKind.RETURN_NODE and incident.node in present.nodes:
        return _published(incident.node, whole, present)
    return []


def _of_kind(
    whole: Fleet, kind: IncidentKind, settings: JsonView, rate: float, seconds: float, seed: str
) -> Iterator[FleetIncident]:
    draws = _draws(seed)
    lasts = _number(settings, "minutes", 30.0) * 60
    at = 0.0
    number = 0
    while True:
        at += -math.log(1.0 - next(draws)) * 3600 / rate
        if at >= seconds:
            return
        number += 1
        pool = whole.pools[int(next(draws) * len(whole.pools))]
        devices = pool.devices
        device = devices[int(next(draws) * len(devices))]
        node = pool.nodes[int(next(draws) * len(pool.nodes))]
        is_node = kind is IncidentKind.LOSE_NODE
        begin = FleetIncident(
            at_seconds=round(at, 3),
            kind=kind,
            name=f"{whole.profile}-{seed.split('/')[0]}-{number}",
            node=node,
            driver="" if is_node else pool.driver,
            pool=pool.name if kind is IncidentKind.TAINT else "",
            device=device if kind is IncidentKind.TAINT else "",
            key=json_tree.text(settings, "key") or "redra.dev/unhealthy",
            effect=json_tree.text(settings, "effect") or "NoExecute",
        )
        yield begin
        yield FleetIncident(
            at_seconds=round(at + lasts, 3),
            kind=_END_OF[kind],
            name=begin.name,
            node=node,
            driver=begin.driver,
            pool=begin.pool,
            device=begin.device,
        )


def _draws(seed: str) -> Iterator[float]:
    """Random numbers from 0 to below 1, determined by the seed."""
    counter = 0
    while True:
        digest = hashlib.sha256(f"{seed}/{counter}".encode()).digest()
        for start in range(0, 32, 8):
            yield int.from_bytes(digest[start : start + 8], "big") / _NUMBERS
        counter += 1


def _taint(incident: FleetIncident) -> CreateObject:
    selector = {"driver": incident.driver, "pool": incident.pool, "device": incident.device}
    tree: JsonObject = {
        "apiVersion": f"{api_groups.RESOURCE}/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": incident.name},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": incident.key, "effect": incident.effect},
        },
    }
    key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", incident.name)
    return CreateObject(key=key, version="v1beta2", tree=tree)


def _lost(node: ObjectKey, driver: str | None) -> PatchObject:
    body: JsonObject = {"metadata": {"annotations": {well_known.LOST_DRIVERS: driver}}}
    return PatchObject(key=node, version="v1", type=PatchType.MERGE, body=body)


def _published(node: str, whole: Fleet, present: Present) -> list[Command]:
    return [
        command
        for pool in whole.pools_of(node)
        for command in generation.publish(pool, present.slices_of(pool), present.uid_of)
    ]


def _number(tree: JsonView, name: str, otherwise: float) -> float:
    number = tree.get(name, otherwise)
    if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
        raise InputError(f"{name} must be a number of at least 0", place="--plan")
    return float(number)
