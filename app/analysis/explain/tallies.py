"""Counts of the first causes that exclude devices from one request, over many nodes.

Counts stay exact when text is left out: the devices of all tallies of a request are the devices of
all nodes that were asked.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.domain.allocation.reasons.causes import CauseKind, is_of_another_class, refusing_class
from app.domain.allocation.reasons.explanation import Alike, DeviceReason, RequestReason
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject

_ALLOCATED_TO = "allocated to "

_BY_RULE = re.compile(r" by rule (\S+) ")
"""The rule that set a taint, in the text about a tainted device."""

_NEEDS = re.compile(r"\bneeds (\S+),")
"""The part of a cause with the amount that a device draws from a counter."""

_UNEXCLUDED = "nothing excludes it by itself"

_CHOSEN = "chosen"

_NEAR = frozenset(
    (
        _CHOSEN,
        "suitable",
        "note",
        CauseKind.CONSTRAINT,
        CauseKind.CAPACITY,
        CauseKind.CAPACITY_POLICY,
        CauseKind.CAPACITY_MISSING,
        CauseKind.COUNTERS,
    )
)
"""The kinds of devices that passed every check which does not depend on other devices."""

Key = tuple[str, str]
"""The kind of cause (or another kind of text about a device), and the subject of the cause."""


@dataclass(slots=True, kw_only=True, eq=False)
class CauseTally:
    """One cause over the devices of one or more nodes.

    `texts` counts the occurrences of each text; `names` are examples, all from the node `example`.
    A device that several nodes see counts once: `seen` has the name of each device, `groups` the
    same names in order, possibly repeated.
    """

    key: Key
    seen: set[str] = field(default_factory=set)
    groups: list[Sequence[str]] = field(default_factory=list)
    nodes: int = 0
    texts: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    example: str = ""

    @property
    def devices(self) -> int:
        """The number of devices."""
        return len(self.seen)

    @property
    def is_near(self) -> bool:
        """Whether the devices were chosen, are suitable, or failed only the last checks."""
        return self.key[0] in _NEAR

    @property
    def is_far(self) -> bool:
        """Whether the devices are of another class than is asked for."""
        return is_of_another_class(*self.key)

    def reason(self, prefix: str, *, many_nodes: bool) -> Reason:
        """The tally as a line: number of devices, cause, and examples without the prefix."""
        shared = common_prefix(self.names) if many_nodes else prefix
        names = [name.removeprefix(shared) for name in self.names]
        if self.devices <= len(names):
            subject = listed(names, len(names))
        else:
            subject = devices_text(self.devices)
            if many_nodes:
                subject += f" on {nodes_text(self.nodes)}"
            subject += f", such as {listed(names, len(names))}"
        if many_nodes:
            pool = shared.removeprefix(prefix).rstrip("/")
            place = f"pool {pool} on {self.example}" if pool else self.example
            subject += f" of {self.example if pool == self.example else place}"
        is_kept = self.key[0] == _CHOSEN
        is_selector = self.key[0] == CauseKind.SELECTOR
        text = f"{subject}: {self._said()}"
        if self.key[0] == CauseKind.ALLOCATED and 1 < self.devices == len(self.texts) == len(names):
            # Each has a holder of its own: only the pairs say which claim holds which device.
            text = "; ".join(": ".join(pair) for pair in zip(names, self.texts, strict=True))
        return Reason(
            text=text,
            count=self.devices,
            is_kept=is_kept,
            unselected=(self.key[1], self.groups) if is_selector else None,
        )

    def _said(self) -> str:
        texts = list(self.texts)
        if self.key[0] == CauseKind.ALLOCATED:
            return self._allocated_to()
        if self.key[0] == CauseKind.SELECTOR:
            return f"not selected by {self.key[1]}"
        if texts == [_UNEXCLUDED] and self.devices > 1:
            return "nothing excludes any of them by itself"
        if len(texts) == 1 or not self.key[1]:
            return texts[0]
        rules = dict.fromkeys(each[1] for text in texts if (each := _BY_RULE.search(text)))
        if len(rules) > 1 and len({_BY_RULE.sub("", text, count=1) for text in texts}) == 1:
            named = f" by rules {listed(list(rules), len(rules))} "
            return _BY_RULE.sub(lambda _: named, texts[0], count=1)
        needs = dict.fromkeys(each[1] for text in texts if (each := _NEEDS.search(text)))
        if len(needs) > 1 and len({_NEEDS.sub("", text, count=1) for text in texts}) == 1:
            shown = list(needs)[:NAMES_MAX]
            amounts = f"{', '.join(shown[:-1])} or {shown[-1]}"
            if len(needs) > len(shown):
                amounts += " or another amount"
            return _NEEDS.sub(f"needs {amounts},", texts[0], count=1)
        # The texts differ only in numbers and places: the first one represents the others.
        others = len(texts) - 1
        return f"{texts[0]} ({others} {counts.plural(others, 'other')} alike)"

    def _allocated_to(self) -> str:
        """Each holder once."""
        names = list(dict.fromkeys(text.removeprefix(_ALLOCATED_TO) for text in self.texts))
        return _ALLOCATED_TO + listed(names, len(names), "claims")


def devices_text(count: int) -> str:
    """`1 device`, `2 devices`."""
    return counts.of(count, "device")


def nodes_text(count: int) -> str:
    """`1 node`, `2 nodes`."""
    return counts.of(count, "node")


def key_of(device: DeviceReason, *, coarse: bool = False) -> Key:
    """The key under which a device is counted; coarse keys merge counter sets, and merge notes."""
    if device.cause is not None:
        about = device.cause.about
        return (device.cause.kind, about.partition(" of set ")[0] if coarse else about)
    if device.chosen:
        return (_CHOSEN, "")
    return ("note" if device.note else "suitable", "" if coarse else device.note)


def device_text(device: DeviceReason) -> str:
    """The text about one device."""
    if device.chosen:
        return "chosen"
    if device.cause is not None:
        return device.cause.text
    return device.note or _UNEXCLUDED


def tally(
    alike_by_node: Iterable[tuple[str, Sequence[Alike]]], *, coarse: bool = False
) -> list[CauseTally]:
    """The causes of all devices of all nodes, those with the most devices first.

    For one node, the causes keep the order in which they first occur. Devices of another class come
    last: however many they are, they are no candidates.
    """
    by_key: dict[Key, CauseTally] = {}
    count = 0
    for node, groups in alike_by_node:
        count += 1
        seen: set[Key] = set()
        for group in groups:
            key = key_of(group.reason, coarse=coarse)
            known = by_key.get(key)
            if known is None:
                known = by_key[key] = CauseTally(key=key, example=node)
            known.seen.update(group.devices)
            known.groups.append(group.devices)
            if key not in seen:
                seen.add(key)
                known.nodes += 1
            text = device_text(group.reason)
            known.texts[text] = known.texts.get(text, 0) + len(group.devices)
            if known.example == node:
                known.names += group.devices[: NAMES_MAX - len(known.names)]
    tallies = list(by_key.values())
    return sorted(tallies, key=lambda one: (one.is_far, 0 if count == 1 else -one.devices))


def common_prefix(names: Iterable[str]) -> str:
    """The driver, or driver and pool, that all devices share, with the slash after it.

    Example: `a/p/x` and `a/p/y` share `a/p/`; `a/p/x` and `a/q/x` share `a/`; else it is empty.
    """
    places = {name.rpartition("/")[0] for name in names}
    if len(places) == 1:
        return f"{places.pop()}/"
    drivers = {place.partition("/")[0] for place in places}
    return f"{drivers.pop()}/" if len(drivers) == 1 else ""


def missing_class(request: RequestReason) -> str:
    """The class of which no device is that a node sees; empty if one is, or it sees none."""
    names = [
        "" if cause is None else refusing_class(cause.kind, cause.about)
        for cause in (group.reason.cause for group in request.alike)
    ]
    return names[0] if names and all(names) else ""


def grouped(groups: Sequence[Alike]) -> list[JsonObject]:
    """All devices of one node grouped by equal reasons, with names by pool, each once."""
    pools_of: dict[tuple[Key, str], dict[str, list[str]]] = {}
    for group in groups:
        pools = pools_of.setdefault((key_of(group.reason), device_text(group.reason)), {})
        last, names = "", list[str]()
        for device in group.devices:
            pool, _, name = device.rpartition("/")
            if pool != last:
                last, names = pool, pools.setdefault(pool, [])
            names.append(name)
    trees: list[JsonObject] = []
    for ((kind, about), text), pools in pools_of.items():
        tree: JsonObject = {
            "cause": kind,
            "text": text,
            "count": sum(map(len, pools.values())),
            "devices": pools,
        }
        if about and kind != "note":
            tree["about"] = about
        trees.append(tree)
    return trees
