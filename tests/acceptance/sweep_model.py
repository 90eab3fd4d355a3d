"""The columns of a run of a sweep, counted from the raw objects of its events.

It shares nothing with the program. It knows the hardware profile `a100-mig` and its two classes:
each device draws on the counters of one card, and each class selects one type.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from app.domain.log import Event

Tree = dict[str, Any]
Draw = tuple[str, str, str]
"""A counter: its pool, its counter set, its name."""

DEVICES_OF_A_CLAIM_MAX = 32
UNITS = {"Gi": 2**30, "Mi": 2**20, "Ki": 2**10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of a slice, with what it draws from counters."""

    node: str
    place: str
    type: str
    draws: Mapping[Draw, Fraction]


def row(events: Sequence[Event]) -> dict[str, object]:
    """The columns of a run that it has for itself, and the fates of its pods."""
    pods, claims, slices, classes = (
        _objects(events, each)
        for each in ("pods", "resourceclaims", "resourceslices", "deviceclasses")
    )
    there = {name: states[-1][1] for name, states in claims.items() if states[-1][1] is not None}
    holders = defaultdict(list)
    for claim in there.values():
        for user in claim.get("status", {}).get("reservedFor") or ():
            holders[user["name"]] += _places(claim)
    fates = {
        name: f"{node} {sorted(holders[name])}" if (node := _node(states)[0]) else "none"
        for name, states in pods.items()
    }
    waits = sorted(_node(states)[1] for states in pods.values() if _node(states)[0])
    published = list(_devices(tree for [*_, (_, tree)] in slices.values() if tree))
    total = _counters(tree for [*_, (_, tree)] in slices.values() if tree)
    left = {**total}
    used = {place for claim in there.values() for place in _places(claim)}
    for device in published:
        for draw, amount in device.draws.items() if device.place in used else ():
            left[draw] -= amount
    free = [
        each
        for each in published
        if each.place not in used
        and all(left[draw] >= amount for draw, amount in each.draws.items())
    ]
    return {
        "pods": len(pods),
        "placed": len(waits),
        "waiting": sum(fate == "none" for fate in fates.values()),
        "evicted": sum(_is_evicted(states) for states in pods.values()),
        "boundMean": round(sum(waits) / len(waits), 6) if waits else None,
        "boundP50": _at(waits, 0.5),
        "boundP99": _at(waits, 0.99),
        "boundMax": waits[-1] if waits else None,
        "largest": {
            name: _largest(_type_of(states[-1][1]), free, left) for name, states in classes.items()
        },
        "stranded": _stranded(free, left, total),
        "fates": fates,
    }


def _objects(events: Sequence[Event], resource: str) -> dict[str, list[tuple[int, Tree | None]]]:
    """The states of each object by name, with their instants; None for its removal."""
    states: dict[str, list[tuple[int, Tree | None]]] = {}
    for event in events:
        if event.key.resource == resource and event.type.value.startswith("Object"):
            is_gone = event.type.value == "ObjectDeleted"
            tree = None if is_gone else event.object
            states.setdefault(event.key.name, []).append((event.stamp.time, tree))
    return states


def _node(states: Sequence[tuple[int, Tree | None]]) -> tuple[str, float]:
    """The node of a pod and the seconds until it had it."""
    for time, tree in states:
        if tree and tree["spec"].get("nodeName"):
            return tree["spec"]["nodeName"], round((time - states[0][0]) / 1e6, 6)
    return "", 0.0


def _is_evicted(states: Sequence[tuple[int, Tree | None]]) -> bool:
    return any(
        each["type"] == "DisruptionTarget"
        for _, tree in states
        for each in (tree or {}).get("status", {}).get("conditions") or ()
    )


def _at(waits: Sequence[float], share: float) -> float | None:
    return waits[min(len(waits) - 1, int(len(waits) * share))] if waits else None


def _places(claim: Tree) -> list[str]:
    allocation = claim.get("status", {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or ()
    return ["/".join((each["driver"], each["pool"], each["device"])) for each in results]


def _amount(text: str) -> Fraction:
    unit = text[-2:]
    return Fraction(text[:-2]) * UNITS[unit] if unit in UNITS else Fraction(text)


def _pool(tree: Tree) -> str:
    return f"{tree['spec']['driver']}/{tree['spec']['pool']['name']}"


def _devices(slices: Iterator[Tree]) -> Iterator[Device]:
    for tree in slices:
        for device in tree["spec"].get("devices") or ():
            yield Device(
                node=tree["spec"]["nodeName"],
                place=f"{_pool(tree)}/{device['name']}",
                type=device["attributes"]["type"]["string"],
                draws={
                    (_pool(tree), each["counterSet"], name): _amount(counter["value"])
                    for each in device.get("consumesCounters") or ()
                    for name, counter in each["counters"].items()
                },
            )


def _counters(slices: Iterator[Tree]) -> dict[Draw, Fraction]:
    return {
        (_pool(tree), each["name"], name): _amount(counter["value"])
        for tree in slices
        for each in tree["spec"].get("sharedCounters") or ()
        for name, counter in each["counters"].items()
    }


def _stranded(
    free: Sequence[Device], left: Mapping[Draw, Fraction], total: Mapping[Draw, Fraction]
) -> dict[str, tuple[float, float]]:
    """The amount and the share of each counter in sets from which no free device draws."""
    alive = {draw[:2] for device in free for draw in device.draws}
    lost: dict[str, Fraction] = defaultdict(Fraction)
    whole: dict[str, Fraction] = defaultdict(Fraction)
    for (pool, card, name), amount in left.items():
        key = f"{pool.partition('/')[0]}/{name}"
        lost[key] += 0 if (pool, card) in alive else amount
        whole[key] += total[pool, card, name]
    return {key: (float(lost[key]), round(float(lost[key] / whole[key]), 6)) for key in whole}


def _type_of(tree: Tree | None) -> str:
    """The type that a class selects; empty for a class that selects nothing."""
    assert tree is not None
    expression = tree["spec"]["selectors"][0]["cel"]["expression"]
    return "" if expression == "false" else expression.rpartition('"')[0].rpartition('"')[2]


def _largest(type_: str, free: Sequence[Device], left: Mapping[Draw, Fraction]) -> int:
    """The most devices of a type that one more claim could have, on its best node."""
    best = 0
    for node in {each.node for each in free}:
        cards: dict[frozenset[tuple[str, str]], list[Device]] = defaultdict(list)
        for device in free:
            if (device.node, device.type) == (node, type_):
                cards[frozenset(draw[:2] for draw in device.draws)].append(device)
        best = max(best, sum(_together(card, left) for card in cards.values()))
    return min(best, DEVICES_OF_A_CLAIM_MAX)


def _together(devices: Sequence[Device], left: Mapping[Draw, Fraction]) -> int:
    """The most devices of a card that its counters bear at once, tried one way after another."""
    names = sorted({draw for device in devices for draw in device.draws})
    kinds = Counter(
        tuple(device.draws.get(name, Fraction()) for name in names) for device in devices
    )
    ordered = sorted(kinds.items())

    @cache
    def most(index: int, rest: tuple[Fraction, ...]) -> int:
        if index == len(ordered):
            return 0
        draws, count = ordered[index]
        fitting = min([count, *(int(a // d) for a, d in zip(rest, draws, strict=True) if d)])
        return max(
            number
            + most(index + 1, tuple(a - number * d for a, d in zip(rest, draws, strict=True)))
            for number in range(fitting + 1)
        )

    return most(0, tuple(left[name] for name in names))
