"""Taints, tolerations and the rules that taint devices. Parity: allocator.md 9 and 13."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from app.domain.devices.model import Taint, Toleration
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, DeviceName, DriverName, PoolName
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.tolerations import fits

_Name = TypeVar("_Name")

_Place: TypeAlias = tuple[str | None, str | None, str | None]
"""The driver, pool and device that a rule selects; None where it takes any."""

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


class TaintRules:
    """The rules of a cluster by what they select, and the taints that they add to a device.

    Devices that the same rules taint share one tuple of taints, in the order of the rules' names.
    It is made again after a change of a rule, for all of these devices at once.
    """

    def __init__(self, rules: Iterable[TaintRule] = (), *, without_selector: bool = True) -> None:
        """`without_selector` says whether a rule without selector taints every device (Q14)."""
        self._without_selector = without_selector
        self._by_name: dict[str, TaintRule] = {}
        self._by_place: dict[_Place, dict[str, TaintRule]] = {}
        self._added: dict[tuple[_Place, ...], tuple[Taint, ...]] = {}
        for rule in rules:
            self.put(rule)

    @property
    def by_name(self) -> Mapping[str, TaintRule]:
        """All rules."""
        return self._by_name

    def put(self, rule: TaintRule) -> TaintRule | None:
        """Adds or replaces a rule, and returns the former one of that name."""
        before = self._by_name.get(rule.name)
        if before is not None:
            self._leave(before)
        self._by_name[rule.name] = rule
        if rule.selects or self._without_selector:
            self._by_place.setdefault(_place_of(rule), {})[rule.name] = rule
        self._added.clear()
        return before

    def remove(self, name: str) -> TaintRule | None:
        """Removes a rule and returns it; None when there is none of that name."""
        rule = self._by_name.pop(name, None)
        if rule is not None:
            self._leave(rule)
            self._added.clear()
        return rule

    def _leave(self, rule: TaintRule) -> None:
        place = _place_of(rule)
        at_place = self._by_place.get(place, {})
        at_place.pop(rule.name, None)
        if not at_place:
            self._by_place.pop(place, None)

    def added_to(self, device: DeviceId) -> tuple[Taint, ...]:
        """The taints that the rules add to a device, in the order of the rules' names."""
        by_place = self._by_place
        if not by_place:
            return ()
        driver, pool, name = device
        # A rule selects a part of an id or takes any: what taints a device is at eight places.
        places = tuple(
            place
            for place in (
                _ANYWHERE,
                (driver, None, None),
                (None, pool, None),
                (None, None, name),
                (driver, pool, None),
                (driver, None, name),
                (None, pool, name),
                (driver, pool, name),
            )
            if place in by_place
        )
        added = self._added.get(places)
        if added is None:
            rules = [rule for place in places for rule in by_place[place].values()]
            rules.sort(key=lambda rule: rule.name)
            added = self._added[places] = tuple(rule.taint for rule in rules)
        return added


_ANYWHERE: _Place = (None, None, None)


def _place_of(rule: TaintRule) -> _Place:
    return (rule.driver, rule.pool, rule.device)


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
