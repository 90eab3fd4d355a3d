"""What keeps a pod waiting, counted from raw objects by trying everything.

For each node: the first plug-in that refuses the pod; behind the node's own plug-ins, for each
request the first cause against each device, and whether any choice of devices satisfies all
requests together. It has no order of search and none of upstream's defects.
Parity: allocator.md 2.1, 2.4, 3.1, 5.1, 5.2, 6, 7, 8.1, 8.2 and 9; controllers.md 4.2.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from tests.truth.facts import FINISHED, Device, Facts, Published, amount, needs, results
from tests.truth.waiting import extended

BLOCKING = ("NoSchedule", "NoExecute")
Unknown = LookupError
"""Raised by a selector that reads an attribute which a device leaves out."""

CANNOT = "cannot allocate all claims"
INVALID = "invalid resource pools were encountered"
ELSEWHERE = "resourceclaim not available on the node"

Taken = tuple[str, frozenset[Device]]
"""The name of a request, with its alternative, and the devices that it has."""

Selector = Callable[[Published], bool]


def own_attribute(device: Published, name: str) -> object:
    """An attribute of the driver's own domain; None without it."""
    value = (device.tree.get("attributes") or {}).get(name)
    return None if value is None else next(iter(value.values()))


def memory_of(device: Published) -> Fraction:
    """The published memory."""
    capacity = (device.tree.get("capacity") or {}).get("memory")
    return Fraction(0) if capacity is None else amount(capacity["value"])


def _strictly_large(device: Published) -> bool:
    model = own_attribute(device, "model")
    if model is None:
        raise Unknown
    return model == "large"


_D = 'device.attributes["gpu.example.com"]'
SELECTORS: dict[str, Selector] = {
    'device.driver == "gpu.example.com"': lambda device: device.id[0] == "gpu.example.com",
    f'{_D}.?model.orValue("") == "large"': lambda one: own_attribute(one, "model") == "large",
    f'{_D}.?model.orValue("") == "small"': lambda one: own_attribute(one, "model") == "small",
    f'{_D}.model == "large"': _strictly_large,
    f"{_D}.?numa.orValue(7) == 0": lambda one: own_attribute(one, "numa") == 0,
    'device.capacity["gpu.example.com"].?memory.orValue(quantity("0"))'
    '.compareTo(quantity("60Gi")) >= 0': lambda one: memory_of(one) >= 60 * 1024**3,
}
"""What each selector of the small worlds says, without a compiler."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A request, or one alternative of a prioritized list."""

    name: str
    main: str
    tree: dict

    @property
    def takes_all(self) -> bool:
        """Whether it wants all devices that it selects."""
        return self.tree.get("allocationMode") == "All"

    @property
    def only_looks(self) -> bool:
        """Whether it asks for administrative access, for which it does not matter who holds."""
        return bool(self.tree.get("adminAccess"))

    @property
    def count(self) -> int:
        """The number of requested devices; without a meaning for mode All."""
        return int(self.tree.get("count") or 1)

    @property
    def capacity(self) -> dict[str, Fraction]:
        """What it asks of each capacity of a device."""
        requests = (self.tree.get("capacity") or {}).get("requests") or {}
        return {name: amount(value) for name, value in requests.items()}


def wishes(claim: dict) -> list[list[Wish]]:
    """The requests of a claim, each with its alternatives."""
    made = []
    for request in claim["spec"]["devices"].get("requests") or ():
        main = request["name"]
        if request.get("exactly"):
            made.append([Wish(main, main, request["exactly"])])
        else:
            either = request.get("firstAvailable") or ()
            made.append([Wish(f"{main}/{one['name']}", main, one) for one in either])
    return made


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a node says. `error` ends the attempt on all nodes; `text` is empty where it fits."""

    text: str
    plugin: str = ""
    error: bool = False
    claims: tuple[dict, ...] = ()


@dataclass(slots=True)
class _Usage:
    """What a choice of devices has used so far: each device with its claim and whether it looks."""

    taken: set[tuple[Device, int, bool]] = field(default_factory=set)
    capacity: Counter = field(default_factory=Counter)
    counters: Counter = field(default_factory=Counter)


class Model:
    """The pod of one moment, and each node's answer to it."""

    def __init__(self, facts: Facts, pod: str = "default/p") -> None:
        self.facts = facts
        self.pod = facts.pods[pod]
        self.namespace = pod.partition("/")[0]

    # The state of the pod.

    @cached_property
    def state(self) -> str:
        """terminating, running, gated, left, unasked or waiting."""
        if "deletionTimestamp" in self.pod["metadata"]:
            return "terminating"
        if self.pod["spec"].get("nodeName"):
            return "running"
        if self.pod["spec"].get("schedulerName", "default-scheduler") != "default-scheduler":
            return "left"
        if self.pod["spec"].get("schedulingGates"):
            return "gated"
        return "unasked" if self.unasked else "waiting"

    @cached_property
    def unasked(self) -> str:
        """The name of the first thing without which no node is asked; empty where all is there."""
        for entry in self.pod["spec"].get("resourceClaims") or ():
            name = entry["resourceClaimName"]
            claim = self.facts.claims.get(f"{self.namespace}/{name}")
            if claim is None or "deletionTimestamp" in claim["metadata"]:
                return str(name)
        for claim in self.unallocated:
            for wish in itertools.chain.from_iterable(wishes(claim)):
                name = wish.tree["deviceClassName"]
                if ("deviceclasses", "", name) not in self.facts.state:
                    return str(name)
        return ""

    @cached_property
    def claims(self) -> list[dict]:
        """The claims that the pod names, in its order."""
        named = self.pod["spec"].get("resourceClaims") or ()
        places = [f"{self.namespace}/{one['resourceClaimName']}" for one in named]
        return [self.facts.claims[place] for place in places if place in self.facts.claims]

    @cached_property
    def unallocated(self) -> list[dict]:
        """The claims that have no devices yet."""
        return [one for one in self.claims if not (one.get("status") or {}).get("allocation")]

    def wanted(self, node: str) -> list[dict]:
        """The claims that need devices of a node, with that for its extended resources at the end.

        Parity: controllers.md 3.10.
        """
        made = extended.claim_of(self.facts, self.pod, self.facts.state["nodes", "", node])
        return [*self.unallocated, *([made] if made else ())]

    @cached_property
    def nodes(self) -> list[str]:
        """All nodes."""
        return [name for name, _ in self.facts.all("nodes")]

    # A node before devices.

    def verdict(self, node: str) -> Verdict:
        """The first plug-in that refuses the pod on a node, in upstream's order."""
        tree = self.facts.state["nodes", "", node]
        for plugin, refuse in _PLUGINS:
            if text := refuse(self, tree):
                return Verdict(text, plugin)
        if self.wanted(node):
            wrong = self._errors(node)
            if wrong:
                return Verdict(wrong, "DynamicResources", error=True)
            if not self.fits(node):
                # Of an incomplete pool nothing but that is known.
                invalid = any(one.is_complete and not one.is_valid for one in self.pools(node))
                return Verdict(INVALID if invalid else CANNOT, "DynamicResources")
        if any(not self.reaches(claim, node) for claim in self.claims):
            return Verdict(ELSEWHERE, "DynamicResources")
        return Verdict("")

    def _errors(self, node: str) -> str:
        """Why all devices cannot be asked for: a pool of the node that is not whole."""
        for claim in self.wanted(node):
            for wish in itertools.chain.from_iterable(wishes(claim)):
                if wish.takes_all:
                    for pool in self.pools(node):
                        if not pool.is_usable:
                            state = "currently invalid"
                            if not pool.is_complete:
                                state = "currently being updated"
                            return state
                    for device in self.devices(node):
                        if self.selected(wish, device, node) == "selector-error":
                            return "CEL runtime error"
        return ""

    def reaches(self, claim: dict, node: str) -> bool:
        """Whether the devices that a claim has can be used on a node."""
        allocation = (claim.get("status") or {}).get("allocation")
        if not allocation or not allocation.get("nodeSelector"):
            return True
        labels = self.facts.state["nodes", "", node]["metadata"].get("labels") or {}
        return any(
            all(
                (node if place == "matchFields" else labels.get(one["key"])) in one["values"]
                for place in ("matchFields", "matchExpressions")
                for one in term.get(place) or ()
            )
            for term in allocation["nodeSelector"]["nodeSelectorTerms"]
        )

    # The devices of a node.

    def pools(self, node: str) -> list:
        """The pools with a slice that is for the node."""
        return [
            pool
            for place, pool in sorted(self.facts.pools.items())
            if any(self._is_for(tree["spec"], node) for tree in pool.slices)
        ]

    def _is_for(self, spec: dict, node: str) -> bool:
        if not spec.get("perDeviceNodeSelection"):
            return self._selects(spec, node)
        return any(self._selects(device, node) for device in spec.get("devices") or ())

    def _selects(self, source: dict, node: str) -> bool:
        if source.get("nodeName"):
            return bool(source["nodeName"] == node)
        if source.get("allNodes"):
            return True
        labels = self.facts.state["nodes", "", node]["metadata"].get("labels") or {}
        terms = (source.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
        return any(
            all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"])
            for term in terms
        )

    def devices(self, node: str) -> list[Published]:
        """The devices of the usable pools of a node, those for others in such a pool, too."""
        return [
            device
            for pool in self.pools(node)
            if pool.is_usable
            for device in pool.devices.values()
        ]

    # One device for one request, alone.

    def selected(self, wish: Wish, device: Published, node: str) -> str:
        """selector, selector-error or other-node; empty for a device that may be taken."""
        tree = self.facts.state["deviceclasses", "", wish.tree["deviceClassName"]]
        for one in (*(tree["spec"].get("selectors") or ()), *(wish.tree.get("selectors") or ())):
            try:
                if not SELECTORS[one["cel"]["expression"]](device):
                    return "selector"
            except Unknown:
                return "selector-error"
        per_device = device.spec.get("perDeviceNodeSelection")
        return "other-node" if per_device and not self._selects(device.tree, node) else ""

    def causes(self, claim: dict, wish: Wish, device: Published, node: str) -> list[str]:
        """Everything that is against a device for a request alone, in upstream's order.

        What a selector excludes is excluded whoever holds it; an error counts only for a device
        that the search looks at, so not for one in use, but in mode All.
        """
        refused = self.selected(wish, device, node)
        short = self.short_of_capacity(wish, device)
        used = "allocated" if self.in_use(device) and not wish.only_looks else ""
        error, refused = ("", refused) if refused != "selector-error" else (refused, "")
        order = (refused, error, short, used) if wish.takes_all else (refused, used, error, short)
        counters = "counters" if self.short_of_counters(device) else ""
        taint = "taint" if self.blocking(wish, device) else ""
        lacks = any(self.value(device, one) is None for one in constraints(claim, wish))
        rest = (counters, taint, "constraint" if lacks else "")
        return [one for one in (*order, *rest) if one]

    def in_use(self, device: Published) -> bool:
        """Whether a claim has the whole device."""
        return bool(self._whole.get(device.id))

    @cached_property
    def _whole(self) -> dict[Device, list[str]]:
        whole: dict[Device, list[str]] = defaultdict(list)
        for name, claim in self.facts.claims.items():
            for one in results(claim):
                if not one.get("shareID") and not one.get("adminAccess"):
                    whole[one["driver"], one["pool"], one["device"]].append(name)
        return dict(whole)

    @cached_property
    def _consumed(self) -> Counter:
        consumed: Counter = Counter()
        for claim in self.facts.claims.values():
            for one in results(claim):
                if one.get("adminAccess"):
                    continue
                for name, value in (one.get("consumedCapacity") or {}).items():
                    consumed[one["driver"], one["pool"], one["device"], name] += amount(value)
        return consumed

    def consumed_of(self, device: Published, name: str) -> Fraction:
        """What claims hold of a capacity of a device."""
        return Fraction(self._consumed[(*device.id, name)])

    def short_of_capacity(self, wish: Wish, device: Published) -> str:
        """The kind of cause for which a device has not the capacity; empty where it has."""
        published = device.tree.get("capacity") or {}
        if wish.capacity.keys() - published.keys():
            return "capacity-missing"
        for name, capacity in sorted(published.items()):
            drawn = self.drawn(wish, name, capacity)
            if drawn is None:
                return "capacity-policy"
            if self._consumed[(*device.id, name)] + drawn > amount(capacity["value"]):
                return "capacity"
        return ""

    def drawn(self, wish: Wish, name: str, capacity: dict) -> Fraction | None:
        """What a request draws of a capacity; None where the policy does not allow it."""
        policy = capacity.get("requestPolicy") or {}
        asked = wish.capacity.get(name)
        if asked is None:
            return amount(policy.get("default", capacity["value"]))
        if valid := policy.get("validValues"):
            return next((amount(one) for one in valid if asked <= amount(one)), None)
        if limits := policy.get("validRange"):
            least, step = amount(limits["min"]), amount(limits["step"])
            steps = -(-max(asked - least, 0) // step)
            drawn = least + steps * step
            return drawn if drawn <= amount(limits["max"]) else None
        return asked

    def short_of_counters(self, device: Published) -> bool:
        """Whether a counter has too little left; one that is overdrawn stops all consumers."""
        wanted = needs(device)
        left = self.facts.left(device.id[:2])
        if not wanted:
            return False
        return any(wanted.get(name, 0) > rest for name, rest in left.items())

    def blocking(self, wish: Wish, device: Published) -> list[tuple[str, dict]]:
        """The taints of a device that a request does not tolerate, with their rules."""
        tolerations = wish.tree.get("tolerations") or ()
        return [
            (rule, taint)
            for rule, taint in self.facts.taints(device.id)
            if taint["effect"] in BLOCKING and not any(tolerates(one, taint) for one in tolerations)
        ]

    def value(self, device: Published, constraint: dict) -> object:
        """The typed value of the attribute that a constraint compares; None without it."""
        name = constraint.get("matchAttribute") or constraint["distinctAttribute"]
        domain, _, own = name.rpartition("/")
        attributes = device.tree.get("attributes") or {}
        value = attributes.get(name)
        if value is None and domain == device.id[0]:
            value = attributes.get(own)
        return None if value is None else next(iter(value.items()))

    # All requests together.

    def fits(self, node: str) -> bool:
        """Whether any choice of devices satisfies all claims without devices on a node."""
        return self.chosen(node) is not None

    def chosen(self, node: str, taken: Sequence[Taken] = ()) -> tuple[str, ...] | None:
        """The names of what each request gets: the first alternatives that are had together.

        The first requests have what is `taken`: a name and devices. None where no choice satisfies
        all requests.
        """
        rows: list[tuple[dict, list[tuple[Wish, list[Published]]]]] = []
        for claim in self.wanted(node):
            for either in wishes(claim):
                fixed = taken[len(rows)] if len(rows) < len(taken) else None
                rows.append((claim, [*self._open(claim, either, node, fixed)]))
        return self._choose(rows, 0, _Usage(), {})

    def _open(
        self, claim: dict, either: Sequence[Wish], node: str, fixed: Taken | None
    ) -> Iterator[tuple[Wish, list[Published]]]:
        """The alternatives of a request with the devices that each may take."""
        for wish in either:
            devices = self.alone(claim, wish, node)
            if fixed is None:
                yield wish, devices
            elif wish.name == fixed[0]:
                yield wish, [one for one in devices if one.id in fixed[1]]

    def alone(self, claim: dict, wish: Wish, node: str) -> list[Published]:
        """The devices that a request may take; for mode All none if one of them may not."""
        if not wish.takes_all:
            return [one for one in self.devices(node) if not self.causes(claim, wish, one, node)]
        listed = self.listed(wish, node)
        return [] if any(self.causes(claim, wish, one, node) for one in listed) else listed

    def listed(self, wish: Wish, node: str) -> list[Published]:
        """The devices that mode All wants."""
        return [
            one
            for one in self.devices(node)
            if not self.selected(wish, one, node) and not self.short_of_capacity(wish, one)
        ]

    def _choose(
        self, rows: Sequence, number: int, usage: _Usage, picked: dict
    ) -> tuple[str, ...] | None:
        if number == len(rows):
            return ()
        claim, either = rows[number]
        for wish, devices in either:
            count = len(devices) if wish.takes_all else wish.count
            if not count:
                continue
            for choice in itertools.combinations(devices, count):
                after = self._taken(usage, claim, wish, choice)
                mine = [*picked.get(id(claim), ()), *((wish, one) for one in choice)]
                if after is None or not self._agree(claim, mine):
                    continue
                rest = self._choose(rows, number + 1, after, {**picked, id(claim): mine})
                if rest is not None:
                    return (wish.name, *rest)
        return None

    def _taken(
        self, usage: _Usage, claim: dict, wish: Wish, choice: Sequence[Published]
    ) -> _Usage | None:
        after = _Usage(set(usage.taken), Counter(usage.capacity), Counter(usage.counters))
        for device in choice:
            shared = bool(device.tree.get("allowMultipleAllocations"))
            others = [one for one in after.taken if one[0] == device.id]
            # One that only looks takes a device from nobody but the requests of its own claim.
            if not shared and any(
                number == id(claim) or not (looks or wish.only_looks) for _, number, looks in others
            ):
                return None
            if not shared or not others:
                for name, drawn in needs(device).items():
                    after.counters[(*device.id[:2], *name)] += drawn
                    left = self.facts.left(device.id[:2])[name]
                    if after.counters[(*device.id[:2], *name)] > left:
                        return None
            after.taken.add((device.id, id(claim), wish.only_looks))
            for name, capacity in (device.tree.get("capacity") or {}).items() if shared else ():
                place = (*device.id, name)
                after.capacity[place] += self.drawn(wish, name, capacity) or 0
                if after.capacity[place] + self._consumed[place] > amount(capacity["value"]):
                    return None
        return after

    def _agree(self, claim: dict, picked: list[tuple[Wish, Published]]) -> bool:
        for constraint in claim["spec"]["devices"].get("constraints") or ():
            values = [
                self.value(device, constraint)
                for wish, device in picked
                if constraint in constraints(claim, wish)
            ]
            if None in values:
                return False
            kinds = len(set(values))
            if "matchAttribute" in constraint and kinds > 1:
                return False
            if "matchAttribute" not in constraint and kinds < len(values):
                return False
        return True


def constraints(claim: dict, wish: Wish) -> list[dict]:
    """The constraints of a claim that are about a request."""
    return [
        one
        for one in claim["spec"]["devices"].get("constraints") or ()
        if not one.get("requests") or {wish.main, wish.name} & set(one["requests"])
    ]


def tolerates(toleration: dict, taint: dict) -> bool:
    """Whether a toleration accepts a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("value", "") == taint.get("value", ""))


def _unschedulable(model: Model, node: dict) -> str:
    closed = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    if not node["spec"].get("unschedulable") or _passes(model, closed):
        return ""
    return "node(s) were unschedulable"


def _tainted(model: Model, node: dict) -> str:
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in BLOCKING and not _passes(model, taint):
            return "node(s) had untolerated taint(s)"
    return ""


def _passes(model: Model, taint: dict) -> bool:
    return any(tolerates(one, taint) for one in model.pod["spec"].get("tolerations") or ())


def _affinity(model: Model, node: dict) -> str:
    labels = node["metadata"].get("labels") or {}
    spec = model.pod["spec"]
    wanted = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    matches = terms is None or any(
        all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"])
        for term in terms
    )
    if matches and all(labels.get(key) == value for key, value in wanted.items()):
        return ""
    return "node(s) didn't match Pod's node affinity/selector"


def _room(model: Model, node: dict) -> str:
    allocatable = node["status"]["allocatable"]
    others = [
        model.facts.pods[name]
        for name in model.facts.on_node(node["metadata"]["name"])
        if model.facts.pods[name]["status"].get("phase") not in FINISHED
    ]
    lacks = []
    if len(others) + 1 > int(allocatable["pods"]):
        lacks.append("Too many pods")
    used = sum(map(_cpu, others), Fraction(0))
    if _cpu(model.pod) and used + _cpu(model.pod) > amount(allocatable["cpu"]):
        lacks.append("Insufficient cpu")
    lacks += (f"Insufficient {name}" for name in extended.lacking(model.facts, model.pod, node))
    return ", ".join(lacks)


def _cpu(pod: dict) -> Fraction:
    each = ((one.get("resources") or {}).get("requests") or {} for one in pod["spec"]["containers"])
    return sum((amount(one.get("cpu", "0")) for one in each), Fraction(0))


def _neighbours(model: Model, node: dict) -> str:
    """Pods of the same host that must or must not be there; a host is a node in these worlds."""
    affinity = model.pod["spec"].get("affinity") or {}
    for kind, text in (
        ("podAffinity", "node(s) didn't match pod affinity rules"),
        ("podAntiAffinity", "node(s) didn't match pod anti-affinity rules"),
    ):
        for term in _required(affinity.get(kind)):
            wanted = term["labelSelector"]["matchLabels"].items()
            there = any(
                wanted <= (model.facts.pods[name]["metadata"].get("labels") or {}).items()
                for name in model.facts.on_node(node["metadata"]["name"])
                if model.facts.pods[name]["status"].get("phase") not in FINISHED
            )
            if there != (kind == "podAffinity"):
                return text
    labels = model.pod["metadata"].get("labels") or {}
    for name in model.facts.on_node(node["metadata"]["name"]):
        other = model.facts.pods[name]
        if other["status"].get("phase") not in FINISHED:
            affinity = other["spec"].get("affinity") or {}
            for term in _required(affinity.get("podAntiAffinity")):
                if term["labelSelector"]["matchLabels"].items() <= labels.items():
                    return "node(s) didn't satisfy existing pods anti-affinity rules"
    return ""


def _required(affinity: dict | None) -> Iterator[dict]:
    yield from (affinity or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()


_PLUGINS = (
    ("NodeUnschedulable", _unschedulable),
    ("TaintToleration", _tainted),
    ("NodeAffinity", _affinity),
    ("NodeResourcesFit", _room),
    ("InterPodAffinity", _neighbours),
)
"""Upstream's plug-ins for what the small worlds have, before DynamicResources, in their order."""
