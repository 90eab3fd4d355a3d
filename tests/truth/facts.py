"""Facts counted from the objects of one moment: holders, pools, counters, taints, free devices.

It reads trees as they are and shares no code with the product. Where it doesn't know (an invalid
pool, a selector that it can't evaluate), it says None, and nothing is compared.
Parity: allocator.md 1.1, 2.3, 2.4, 7, 9, 11 and 13.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import celpy
from celpy import celtypes

from tests.truth.raw import State

Device = tuple[str, str, str]
Pool = tuple[str, str]
Counters = dict[tuple[str, str], Fraction]

FINISHED = ("Succeeded", "Failed")
BLOCKING = ("NoSchedule", "NoExecute")
_UNITS = {
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)},
    **{"k" if letter == "K" else letter: 1000**power for power, letter in enumerate("KMGTPE", 1)},
    "": 1, "m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9),
}  # fmt: skip


def amount(text: object) -> Fraction:
    """A quantity as a number."""
    parts = re.fullmatch(r"([+-]?[\d.]+)(?:[eE]([+-]?\d+))?(\D*)", str(text))
    assert parts, text
    number, power, unit = parts.groups()
    return Fraction(number) * Fraction(10) ** int(power or 0) * _UNITS[unit]


@dataclass(frozen=True, slots=True)
class Published:
    """A device of the newest generation of its pool."""

    id: Device
    slice: str
    tree: dict
    spec: dict


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A pool; `is_known` is false where its slices differ in what decides about its devices."""

    slices: list[dict]
    obsolete: int
    generation: int
    is_complete: bool
    is_valid: bool
    is_known: bool
    devices: dict[Device, Published]

    @property
    def is_usable(self) -> bool:
        """Whether its devices can be allocated."""
        return self.is_complete and self.is_valid


class Facts:
    """The facts of one moment."""

    def __init__(self, state: State, *, with_rules: bool = True) -> None:
        self.state = state
        self.with_rules = with_rules

    def all(self, resource: str) -> Iterator[tuple[str, dict]]:
        """The names and trees of a kind; a namespace stands before a slash."""
        for (kind, namespace, name), tree in self.state.items():
            if kind == resource:
                yield (f"{namespace}/{name}" if namespace else name), tree

    @cached_property
    def claims(self) -> dict[str, dict]:
        """All claims by namespace and name."""
        return dict(self.all("resourceclaims"))

    @cached_property
    def pods(self) -> dict[str, dict]:
        """All pods by namespace and name."""
        return dict(self.all("pods"))

    @cached_property
    def holders(self) -> dict[Device, set[str]]:
        """The claims that hold each device; administrators only look."""
        holders: dict[Device, set[str]] = defaultdict(set)
        for name, claim in self.claims.items():
            for result in results(claim):
                if not result.get("adminAccess"):
                    holders[device_of(result)].add(name)
        return dict(holders)

    @cached_property
    def pools(self) -> dict[Pool, PoolFacts]:
        """All pools."""
        slices: dict[Pool, list[tuple[str, dict]]] = defaultdict(list)
        for name, tree in self.all("resourceslices"):
            slices[tree["spec"]["driver"], tree["spec"]["pool"]["name"]].append((name, tree))
        return {place: _pool(place, each) for place, each in slices.items()}

    @cached_property
    def gone(self) -> set[Pool]:
        """The pools without a slice of which claims hold devices."""
        return {id[:2] for id in self.holders} - self.pools.keys()

    @cached_property
    def devices(self) -> dict[Device, Published]:
        """The devices of the newest generations."""
        return {id: one for pool in self.pools.values() for id, one in pool.devices.items()}

    @cached_property
    def counters(self) -> dict[Pool, Counters]:
        """What is published of each counter of each pool."""
        published: dict[Pool, Counters] = {}
        for place, pool in self.pools.items():
            for tree in pool.slices:
                for shared in tree["spec"].get("sharedCounters") or ():
                    for name, counter in (shared.get("counters") or {}).items():
                        own = published.setdefault(place, {})
                        own[shared["name"], name] = amount(counter["value"])
        return published

    @property
    def is_known(self) -> bool:
        """Whether counting tells which devices can be allocated, and what they are."""
        is_plain = all(pool.is_known for pool in self.pools.values())
        return is_plain and not any(self.all("resourceslicepatches"))

    @cached_property
    def used(self) -> dict[Pool, Counters]:
        """What the devices that claims hold consume, each device once."""
        used: dict[Pool, Counters] = defaultdict(lambda: defaultdict(Fraction))
        for id, device in self.devices.items():
            if id in self.holders:
                for counter, needed in needs(device).items():
                    used[id[:2]][counter] += needed
        return used

    def left(self, place: Pool) -> Counters:
        """What is left of each counter of a pool."""
        used = self.used.get(place, {})
        return {name: all - used.get(name, 0) for name, all in self.counters.get(place, {}).items()}

    def lacks(self, device: Published) -> set[str]:
        """The counters of which less is left than the device needs."""
        left = self.left(device.id[:2])
        return {
            "/".join(counter)
            for counter, needed in needs(device).items()
            if needed > left.get(counter, 0)
        }

    def rules_of(self, id: Device) -> Iterator[tuple[str, dict]]:
        """The names and taints of the rules that select a device."""
        for name, rule in sorted(self.all("devicetaintrules")):
            wanted = rule["spec"].get("deviceSelector") or {}
            parts = (wanted.get("driver"), wanted.get("pool"), wanted.get("device"))
            if all(each in (None, own) for each, own in zip(parts, id, strict=True)):
                yield name, rule["spec"]["taint"]

    def taints(self, id: Device) -> list[tuple[str, dict]]:
        """The taints of a device, each with the rule that sets it or nothing."""
        own = self.devices[id].tree.get("taints") or ()
        rules = self.rules_of(id) if self.with_rules else ()
        return [*(("", taint) for taint in own), *rules]

    def is_tainted(self, id: Device) -> bool:
        """Whether a taint keeps claims off that don't tolerate it."""
        return any(taint["effect"] in BLOCKING for _, taint in self.taints(id))

    def is_shared(self, id: Device) -> bool:
        """Whether several claims may hold shares of the device."""
        return bool(self.devices[id].tree.get("allowMultipleAllocations"))

    def has_share(self, id: Device) -> bool:
        """Whether some of each capacity of a shared device is left."""
        capacities = self.devices[id].tree.get("capacity") or {}
        totals = {name: amount(one["value"]) for name, one in capacities.items()}
        return not any(self.shares[id][name] >= total > 0 for name, total in totals.items())

    @cached_property
    def shares(self) -> dict[Device, Counter]:
        """What claims hold of each capacity of each device."""
        shares: dict[Device, Counter] = defaultdict(Counter)
        for claim in self.claims.values():
            for result in results(claim):
                if result.get("adminAccess"):
                    continue
                for name, value in (result.get("consumedCapacity") or {}).items():
                    shares[device_of(result)][name] += amount(value)
        return shares

    def state_of(self, id: Device) -> str:
        """held, tainted, blocked, free, or unusable for a device of an incomplete pool."""
        if id in self.holders:
            return "held"
        if not self.pools[id[:2]].is_usable:
            return "unusable"
        if self.is_tainted(id):
            return "tainted"
        return "blocked" if self.lacks(self.devices[id]) else "free"

    def selected(self, class_name: str) -> set[Device] | None:
        """The devices of usable pools that a class selects; None where a selector isn't simple."""
        tree = self.state.get(("deviceclasses", "", class_name))
        if tree is None:
            return set()
        selectors = [one["cel"]["expression"] for one in tree["spec"].get("selectors") or ()]
        selected = set()
        for id, device in self.devices.items():
            if self.pools[id[:2]].is_usable:
                verdicts = [evaluate(one, device) for one in selectors]
                if None in verdicts:
                    return None
                if all(verdicts):
                    selected.add(id)
        return selected

    def pods_of(self, claim: str) -> list[str]:
        """The pods of its namespace that name a claim, or for which it was made."""
        namespace, _, name = claim.partition("/")
        return [
            pod
            for pod, tree in self.pods.items()
            if pod.startswith(f"{namespace}/") and name in claims_of(tree)
        ]

    def on_node(self, node: str) -> list[str]:
        """The pods that are bound to a node."""
        return [name for name, pod in self.pods.items() if pod["spec"].get("nodeName") == node]

    def for_node(self, device: Published, node: str) -> bool | None:
        """Whether a node may use a device; None where a selector isn't simple."""
        source = device.tree if device.spec.get("perDeviceNodeSelection") else device.spec
        if source.get("nodeName"):
            return source["nodeName"] == node
        if source.get("allNodes"):
            return True
        labels = self.state["nodes", "", node]["metadata"].get("labels") or {}
        terms = (source.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        verdicts = [_term(term, node, labels) for term in terms]
        return None if None in verdicts else any(verdicts)


def _term(term: dict, node: str, labels: dict) -> bool | None:
    checks = [(one, labels.get(one["key"])) for one in term.get("matchExpressions") or ()]
    checks += [(one, node) for one in term.get("matchFields") or ()]
    if not checks or any(one["operator"] != "In" for one, _ in checks):
        return None
    return all(value in one["values"] for one, value in checks)


def _pool(place: Pool, slices: list[tuple[str, dict]]) -> PoolFacts:
    generation = max(tree["spec"]["pool"]["generation"] for _, tree in slices)
    newest = [(name, t) for name, t in slices if t["spec"]["pool"]["generation"] == generation]
    wanted = {tree["spec"]["pool"]["resourceSliceCount"] for _, tree in newest}
    published = [
        Published((*place, device["name"]), name, device, tree["spec"])
        for name, tree in sorted(newest)
        for device in tree["spec"].get("devices") or ()
    ]
    names = Counter(one.id for one in published)
    nodes = {tree["spec"].get("nodeName", "") for _, tree in slices}
    sets = [one for _, t in newest for one in t["spec"].get("sharedCounters") or ()]
    declared = {(one["name"], name) for one in sets for name in one.get("counters") or {}}
    is_doubled = max(Counter(one["name"] for one in sets).values(), default=1) > 1
    devices = {one.id: one for one in reversed(published)}
    return PoolFacts(
        slices=[tree for _, tree in sorted(newest)],
        obsolete=len(slices) - len(newest),
        generation=generation,
        is_complete=wanted == {len(newest)},
        is_valid=max(names.values(), default=1) == 1
        and not is_doubled
        and all(needs(one).keys() <= declared for one in published),
        is_known=len(wanted) == 1 and len(nodes) == 1,
        devices=devices,
    )


def results(claim: dict) -> list[dict]:
    """The devices that a claim was given."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def reserved_for(claim: dict) -> list[str]:
    """The names of the consumers of a claim."""
    return [one["name"] for one in (claim.get("status") or {}).get("reservedFor") or ()]


def device_of(result: dict) -> Device:
    """The device of a result."""
    return result["driver"], result["pool"], result["device"]


def needs(device: Published) -> Counters:
    """What a device consumes of each counter."""
    return {
        (one["counterSet"], name): amount(counter["value"])
        for one in device.tree.get("consumesCounters") or ()
        for name, counter in (one.get("counters") or {}).items()
    }


def claims_of(pod: dict) -> set[str]:
    """The names of the claims that a pod names, and of those that were made for it."""
    status = pod.get("status") or {}
    named = {one.get("resourceClaimName") for one in pod["spec"].get("resourceClaims") or ()}
    made = {one.get("resourceClaimName") for one in status.get("resourceClaimStatuses") or ()}
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return {name for name in (*named, *made, extended) if name}


def is_tolerated(taint: dict, tolerations: list[dict]) -> bool:
    """Whether one of the tolerations accepts a taint."""
    return any(
        one.get("effect") in (None, "", taint["effect"])
        and (
            (one.get("key") in (None, "", taint["key"]) and one.get("operator") == "Exists")
            or (
                one.get("key") == taint["key"]
                and one.get("operator") in (None, "", "Equal")
                and one.get("value", "") == taint.get("value", "")
            )
        )
        for one in tolerations
    )


def evaluate(expression: str, device: Published) -> bool | None:
    """The verdict of cel-python on a selector without functions of Kubernetes; else None."""
    if re.search(r"\.\?|quantity|semver|isGreaterThan|compareTo|isLessThan", expression):
        return None
    attributes: dict[str, dict] = defaultdict(dict)
    for name, value in (device.tree.get("attributes") or {}).items():
        domain, _, rest = name.rpartition("/")
        attributes[domain or device.id[0]][rest] = next(iter(value.values()))
    for domain in re.findall(r"""attributes\[["']([^"']*)["']\]""", expression):
        attributes.setdefault(domain, {})
    tree = {"driver": device.id[0], "attributes": attributes}
    try:
        return bool(_program(expression).evaluate({"device": celpy.json_to_cel(tree)}))
    except celpy.CELEvalError:
        return False


@cache
def _program(expression: str) -> celpy.Runner:
    environment = celpy.Environment(annotations={"device": celtypes.MapType})
    return environment.program(environment.compile(expression))
