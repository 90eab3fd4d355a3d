"""Taints, tolerations and the rules that taint devices. Parity: allocator.md 9 and 13."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from app.domain.devices.model import Taint, Toleration
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, DriverName, PoolName
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.tolerations import fits

_Name = TypeVar("_Name")

BLOCKING_EFFECTS = frozenset(("NoSchedule", "NoExecute"))
"""The effects that prevent the allocation of a device; others are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintRule:
    """A DeviceTaintRule, compiled.

    A rule without selector (`selects` false) taints every device for allocation and none for
    eviction (quirk Q14); the caller of `matches` chooses between the two.
    """

    name: str
    selects: bool
    driver: DriverName | None
    pool: PoolName | None
    device: DeviceName | None
    taint: Taint
    tree: JsonObject

    def matches(self, device: DeviceId, *, without_selector: bool = True) -> bool:
        """Whether the rule taints the device; `without_selector` is the result for Q14."""
        if not self.selects:
            return without_selector
        return (
            (self.driver is None or self.driver == device[0])
            and (self.pool is None or self.pool == device[1])
            and (self.device is None or self.device == device[2])
        )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration matches the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    return fits(
        toleration.key,
        toleration.operator,
        toleration.value,
        taint_key=taint.key,
        taint_value=taint.value,
    )


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first blocking taint that no toleration matches."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect not in BLOCKING_EFFECTS:
            continue
        if not known or not any(tolerates(toleration, taint) for toleration in known):
            return taint
    return None


def taint_of(tree: JsonView, rule: str = "") -> Taint:
    """The taint of an API object."""
    return Taint(
        key=json_tree.text(tree, "key"),
        value=json_tree.text(tree, "value"),
        effect=json_tree.text(tree, "effect"),
        time_added=json_tree.text(tree, "timeAdded"),
        rule=rule,
    )


def toleration_of(tree: JsonView) -> Toleration:
    """The toleration of an API object."""
    return Toleration(
        key=json_tree.text(tree, "key"),
        operator=json_tree.text(tree, "operator"),
        value=json_tree.text(tree, "value"),
        effect=json_tree.text(tree, "effect"),
        tree=tree,
    )


def rule_of(tree: JsonObject) -> TaintRule:
    """The compiled rule of a DeviceTaintRule object."""
    name = meta.name(tree)
    selector = dra.device_selector(tree)

    def criterion(kind: Callable[[str], _Name], field: str) -> _Name | None:
        value = json_tree.get(tree, "spec", "deviceSelector", field)
        return kind(value) if isinstance(value, str) else None

    return TaintRule(
        name=name,
        selects=isinstance(selector, dict),
        driver=criterion(DriverName, "driver"),
        pool=criterion(PoolName, "pool"),
        device=criterion(DeviceName, "device"),
        taint=taint_of(dra.taint(tree), name),
        tree=tree,
    )
