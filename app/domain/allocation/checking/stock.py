"""The slices, pools and devices of a node, read from API objects. Parity: allocator.md 2.

A device is usable when its pool is complete, valid and of the newest generation that the node sees.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from app.domain.allocation.checking import amounts
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

DeviceKey = tuple[str, str, str]
PoolKey = tuple[str, str]
CounterKey = tuple[str, str]

HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One device of a usable pool: `place` is its node selection, `taints` are all its taints."""

    key: DeviceKey
    tree: JsonView
    place: JsonView
    taints: Sequence[JsonView]

    @property
    def text(self) -> str:
        """The name of the device in messages: `driver/pool/device`."""
        return "/".join(self.key)

    @property
    def consumes(self) -> dict[CounterKey, Fraction]:
        """The amounts that the device draws from the counters of its pool."""
        return _drawn(self.tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The holdings of other claims: whole devices, shared devices, and consumed capacity."""

    whole: frozenset[DeviceKey]
    shared: frozenset[DeviceKey]
    consumed: Mapping[DeviceKey, Mapping[str, Fraction]]

    def holds(self, device: DeviceKey) -> bool:
        """Whether the device is allocated, as a whole or in part."""
        return device in self.whole or device in self.shared


@dataclass(frozen=True, slots=True, kw_only=True)
class UsablePool:
    """A complete and valid pool: its devices in order, counters, and devices of other nodes.

    `is_uniform` is true if every node that can use the pool reads the same slices for its counters.
    `newer` is a newer generation that is published elsewhere and was not noticed (quirk q12).
    """

    key: PoolKey
    pieces: Sequence[Piece]
    counters: Mapping[CounterKey, Fraction]
    elsewhere: Sequence[tuple[DeviceKey, JsonView]]
    is_uniform: bool
    newer: int | None = None
    generation: int = 0

    def left(self, holding: Holding) -> dict[CounterKey, Fraction]:
        """The remaining amounts of the counters after the holdings of others."""
        left = dict(self.counters)
        devices = [
            *((piece.key, piece.tree) for piece in self.pieces),
            *self.elsewhere,
        ]
        for key, tree in devices:
            for counter, amount in _drawn(tree).items() if holding.holds(key) else ():
                if counter in left:
                    left[counter] -= amount
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading slices: the features that matter, and the reproduced `quirks`."""

    partitionable: bool
    taints: bool
    is_stable: bool
    quirks: frozenset[str] = field(default_factory=frozenset)


def holding_of(claims: Sequence[JsonView], *, consumable: bool) -> Holding:
    """The holdings of allocated claims; admin access holds nothing."""
    whole: set[DeviceKey] = set()
    shared: set[DeviceKey] = set()
    consumed: dict[DeviceKey, dict[str, Fraction]] = {}
    for claim in claims:
        for result in json_tree.objects(claim, "status", "allocation", "devices", "results"):
            if result.get("adminAccess") is True:
                continue
            key = key_of(result)
            if not (consumable and result.get("shareID")):
                whole.add(key)
                continue
            shared.add(key)
            sums = consumed.setdefault(key, {})
            for name, amount in json_tree.mapping(result, "consumedCapacity").items():
                sums[name] = sums.get(name, Fraction(0)) + amounts.read(amount)
    return Holding(whole=frozenset(whole), shared=frozenset(shared), consumed=consumed)


def key_of(result: JsonView) -> DeviceKey:
    """The device that a result names."""
    return (
        json_tree.text(result, "driver"),
        json_tree.text(result, "pool"),
        json_tree.text(result, "device"),
    )


def usable_pools(
    node: JsonView, slices: Sequence[JsonView], rules: Sequence[JsonView], reading: Reading
) -> list[UsablePool]:
    """The pools that the node can use, in the order in which devices are listed."""
    near: dict[PoolKey, list[JsonView]] = {}
    everywhere: dict[PoolKey, list[JsonView]] = {}
    for tree in slices:
        key = (json_tree.text(tree, "spec", "driver"), json_tree.text(tree, "spec", "pool", "name"))
        everywhere.setdefault(key, []).append(tree)
        if _is_relevant(tree, node, reading):
            near.setdefault(key, []).append(tree)
    pools = [
        pool
        for key, mine in near.items()
        if (pool := _pool(key, mine, everywhere[key], rules, reading)) is not None
    ]
    last = "q15" in reading.quirks
    return sorted(pools, key=lambda pool: (last and _has_conditions(pool), pool.key))


def is_selected(place: JsonView, node: JsonView) -> bool:
    """Whether a node selection (name, all nodes, selector) includes the node."""
    if place.get("nodeName"):
        return bool(place["nodeName"] == json_tree.text(node, "metadata", "name"))
    if place.get("allNodes"):
        return True
    terms = json_tree.objects(place, "nodeSelector", "nodeSelectorTerms")
    return any(_holds(term, node) for term in terms)


def is_tolerated(taint: JsonView, tolerations: Sequence[JsonView]) -> bool:
    """Whether some toleration matches the taint. Parity: allocator.md 9."""
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
            continue
        if toleration.get("key") and toleration["key"] != taint.get("key"):
            continue
        operator = toleration.get("operator") or "Equal"
        same = (toleration.get("value") or "") == (taint.get("value") or "")
        if operator == "Exists" or (operator == "Equal" and same):
            return True
    return False


def _is_relevant(tree: JsonView, node: JsonView, reading: Reading) -> bool:
    spec = json_tree.mapping(tree, "spec")
    has_counters = bool(spec.get("sharedCounters"))
    if not reading.partitionable and (has_counters or "perDeviceNodeSelection" in spec):
        return False
    if reading.is_stable and has_counters and not spec.get("devices"):
        return True
    if spec.get("nodeName") or spec.get("allNodes") or "nodeSelector" in spec:
        return is_selected(spec, node)
    if spec.get("perDeviceNodeSelection") is not True:
        return False
    return any(is_selected(device, node) for device in json_tree.objects(spec, "devices"))


def _pool(
    key: PoolKey,
    near: Sequence[JsonView],
    everywhere: Sequence[JsonView],
    rules: Sequence[JsonView],
    reading: Reading,
) -> UsablePool | None:
    """The pool as the node sees it; None when it is incomplete, obsolete or invalid."""
    generation = max(map(_generation, near))
    mine = [tree for tree in near if _generation(tree) == generation]
    same = [tree for tree in everywhere if _generation(tree) == generation]
    newer = max((g for g in map(_generation, everywhere) if g > generation), default=None)
    # The first slice announces the count; the node's own slices come before shared ones.
    announced = _announced(_first(mine))
    looks_elsewhere = len(mine) != announced or "q12" not in reading.quirks
    is_complete = newer is None and announced in (len(same), len(mine))
    if looks_elsewhere and not is_complete:
        return None
    mine.sort(key=lambda tree: json_tree.text(tree, "metadata", "name"))
    names = {json_tree.text(tree, "metadata", "name") for tree in mine}
    others: list[JsonView] = []
    if looks_elsewhere:
        others = [t for t in same if json_tree.text(t, "metadata", "name") not in names]
    listed = [tree for tree in mine if _lists(tree, reading)]
    sets = [
        counter_set
        for tree in (*mine, *others)
        if _counts(tree, reading)
        for counter_set in json_tree.objects(tree, "spec", "sharedCounters")
    ]
    elsewhere = [
        ((*key, json_tree.text(device, "name")), device)
        for tree in others
        if _lists(tree, reading)
        for device in json_tree.objects(tree, "spec", "devices")
    ]
    pieces = [piece for tree in listed for piece in _pieces(key, tree, rules, reading)]
    counters = {
        (json_tree.text(counter_set, "name"), name): amounts.read(amount.get("value"))
        for counter_set in sets
        for name, amount in json_tree.mapping(counter_set, "counters").items()
    }
    if len({piece.key for piece in pieces}) != len(pieces):
        return None
    if reading.partitionable and not _counters_are_sound(sets, counters, pieces, elsewhere):
        return None
    return UsablePool(
        key=key,
        pieces=pieces,
        counters=counters,
        elsewhere=elsewhere,
        is_uniform=all(
            _generation(tree) == generation and _announced(tree) == len(everywhere)
            for tree in everywhere
        ),
        newer=newer,
        generation=generation,
    )


def _counters_are_sound(
    sets: Sequence[JsonView],
    counters: Mapping[CounterKey, Fraction],
    pieces: Sequence[Piece],
    elsewhere: Sequence[tuple[DeviceKey, JsonView]],
) -> bool:
    """Whether the names of sets are unique and every counter that a device draws from exists."""
    names = [json_tree.text(counter_set, "name") for counter_set in sets]
    if len(set(names)) != len(names):
        return False
    for tree in (
        *(piece.tree for piece in pieces),
        *(tree for _, tree in elsewhere),
    ):
        for use in json_tree.objects(tree, "consumesCounters"):
            if json_tree.text(use, "counterSet") not in names:
                return False
        if any(counter not in counters for counter in _drawn(tree)):
            return False
    return True


def _pieces(
    pool: PoolKey, tree: JsonView, rules: Sequence[JsonView], reading: Reading
) -> Iterator[Piece]:
    spec = json_tree.mapping(tree, "spec")
    for device in json_tree.objects(spec, "devices"):
        key = (*pool, json_tree.text(device, "name"))
        added = [
            json_tree.mapping(rule, "spec", "taint")
            for rule in sorted(rules, key=lambda rule: json_tree.text(rule, "metadata", "name"))
            if _hits(json_tree.get(rule, "spec", "deviceSelector"), key, reading)
        ]
        yield Piece(
            key=key,
            tree=device,
            place=device if spec.get("perDeviceNodeSelection") is True else spec,
            taints=[*json_tree.objects(device, "taints"), *added] if reading.taints else (),
        )


def _hits(selector: object, device: DeviceKey, reading: Reading) -> bool:
    if not isinstance(selector, Mapping):
        return "q14" in reading.quirks
    names = [selector.get(part) for part in ("driver", "pool", "device")]
    return all(name is None or name == its for name, its in zip(names, device, strict=True))


def _drawn(device: JsonView) -> dict[CounterKey, Fraction]:
    drawn: dict[CounterKey, Fraction] = {}
    for use in json_tree.objects(device, "consumesCounters"):
        for name, amount in json_tree.mapping(use, "counters").items():
            counter = (json_tree.text(use, "counterSet"), name)
            drawn[counter] = drawn.get(counter, Fraction(0)) + amounts.read(amount.get("value"))
    return drawn


def _holds(term: JsonView, node: JsonView) -> bool:
    """Whether the node satisfies every requirement of one term; an empty term never holds."""
    expressions = json_tree.objects(term, "matchExpressions")
    fields = json_tree.objects(term, "matchFields")
    labels = json_tree.mapping(node, "metadata", "labels")
    name = json_tree.text(node, "metadata", "name")
    return bool(expressions or fields) and (
        all(_requires(expression, labels.get(expression["key"])) for expression in expressions)
        and all(not name or _requires(by_name, name) for by_name in fields)
    )


def _requires(requirement: JsonView, value: str | None) -> bool:
    values = json_tree.texts(requirement, "values")
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                mine, bound = int(value or ""), int(values[0])
            except (ValueError, IndexError):
                return False
            return mine > bound if operator == "Gt" else mine < bound
    return False


def _first(mine: Sequence[JsonView]) -> JsonView:
    local = [tree for tree in mine if json_tree.text(tree, "spec", "nodeName")]
    return (local or list(mine))[0]


def _generation(tree: JsonView) -> int:
    return json_tree.integer(tree, "spec", "pool", "generation") or 0


def _announced(tree: JsonView) -> int:
    return json_tree.integer(tree, "spec", "pool", "resourceSliceCount") or 0


def _counts(tree: JsonView, reading: Reading) -> bool:
    return reading.partitionable and bool(json_tree.get(tree, "spec", "sharedCounters"))


def _lists(tree: JsonView, reading: Reading) -> bool:
    """Whether the devices of a slice are read; up to 1.34 a slice with counters may have them."""
    return not _counts(tree, reading) or bool((tree.get("spec") or {}).get("devices"))


def _has_conditions(pool: UsablePool) -> bool:
    return any(piece.tree.get("bindingConditions") for piece in pool.pieces)
