"""A model of the lint rules: raw dictionaries and the sentences of `docs/reference/lint.md`.

It imports nothing of the product. A finding is its rule and what it is about: an object and a
field, or what a rule is about that could blame several objects, such as a pool. `anchor` reads the
same from a finding of redra.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.unit.analysis.lint.drawn_worlds import WORDS

Tree = dict[str, Any]
Said = tuple[str, tuple[Any, ...]]
"""A rule, and what the finding is about."""

Placed = tuple[str, str, Tree]
"""A device with its slice and its path."""

BLOCKING = ("NoSchedule", "NoExecute")
OF_POOLS = frozenset({"pool-counts-differ", "pool-incomplete", "pool-node-mix", "pool-overfull"})
OF_NAMES = frozenset({"counter-set-duplicate", "device-name-duplicate"})
OF_SETS = frozenset(
    {"counter-set-unused", "counter-unused", "counters-never-bind", "partitions-overlap"}
)
MODELLED = (
    OF_POOLS
    | OF_NAMES
    | OF_SETS
    | {
        *("alternative-never-taken", "attribute-not-standard", "attribute-shadowed"),
        *("attribute-type-differs", "capacity-negative", "capacity-never-enough"),
        *("claim-asks-for-too-many", "class-matches-nothing", "class-missing"),
        *("config-for-no-driver", "constraint-never-holds", "count-near-limit", "counter-missing"),
        *("counter-set-missing", "device-never-fits", "device-nodes-alike"),
        *("device-published-twice", "node-missing", "node-selector-matches-nothing"),
        *("object-duplicate", "refused-by-older-release", "request-exceeds-devices"),
        *("rule-selects-everything", "rule-selects-nothing", "rule-without-selector"),
        *("selector-fails", "selector-matches-nothing", "shared-device-without-capacity"),
        *("slice-obsolete", "taint-untolerated", "text-near-limit", "toleration-without-effect"),
    }
)


def text_of(tree: Tree) -> str:
    """`Kind/name`, with the namespace."""
    space = tree["metadata"].get("namespace")
    name = tree["metadata"]["name"]
    return f"{tree['kind']}/{space}/{name}" if space else f"{tree['kind']}/{name}"


def pool_of(tree: Tree) -> tuple[str, str]:
    """Driver and pool of a slice."""
    return tree["spec"]["driver"], tree["spec"]["pool"]["name"]


def anchor(rule: str, tree: Tree, field: str, message: str) -> tuple[Any, ...]:
    """What a finding of redra about an object is about."""
    if rule in OF_POOLS:
        return pool_of(tree)
    if rule in OF_NAMES or rule in OF_SETS:
        return (*pool_of(tree), *_named(rule, tree, field))
    name = re.findall(r"\[([^]]*)\]", field)[-1:] or [""]
    if rule == "attribute-type-differs":
        return tree["spec"]["driver"], _qualified(tree["spec"]["driver"], name[0])
    if rule == "attribute-not-standard":
        return tree["spec"]["driver"], name[0]
    if rule == "taint-untolerated":
        taint = _at(tree, field)
        return taint["key"], taint.get("value", ""), taint["effect"]
    if rule.endswith("near-limit"):
        return text_of(tree), message.partition(":")[0]
    if rule in ("object-duplicate", "refused-by-older-release", "slice-obsolete"):
        return (text_of(tree),)
    return text_of(tree), field


def _named(rule: str, tree: Tree, field: str) -> tuple[str, ...]:
    """The names that a path with indexes is about."""
    index = int(re.findall(r"\[(\d+)\]", field)[0])
    part = "devices" if "devices" in field else "sharedCounters"
    name = tree["spec"][part][index]["name"]
    return (name, *re.findall(r"counters\[([^]]*)\]", field)) if rule in OF_SETS else (name,)


def _at(tree: Any, path: str) -> Any:
    for part in re.findall(r"[^.\[\]]+", path):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


def _qualified(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


class Model:
    """The findings of objects, rule by rule."""

    def __init__(self, trees: list[Tree]) -> None:
        self.twice = Counter(map(text_of, trees))
        self.trees = [*{text_of(tree): tree for tree in trees}.values()]
        slices = self._of("ResourceSlice")
        self.pools: dict[tuple[str, str], list[Tree]] = {}
        for tree in slices:
            self.pools.setdefault(pool_of(tree), []).append(tree)
        self.older: list[Tree] = []
        for pool, listed in self.pools.items():
            newest = max(tree["spec"]["pool"]["generation"] for tree in listed)
            is_new = [tree["spec"]["pool"]["generation"] == newest for tree in listed]
            self.older += [tree for tree, new in zip(listed, is_new, strict=True) if not new]
            self.pools[pool] = [tree for tree, new in zip(listed, is_new, strict=True) if new]
        self.devices = [each for pool in self.pools for each in self.devices_of(pool)]
        self.classes = {tree["metadata"]["name"]: tree for tree in self._of("DeviceClass")}
        self.claims = [
            *((tree, "spec.devices") for tree in self._of("ResourceClaim")),
            *((tree, "spec.spec.devices") for tree in self._of("ResourceClaimTemplate")),
        ]

    def _of(self, kind: str) -> list[Tree]:
        return [tree for tree in self.trees if tree["kind"] == kind]

    def devices_of(self, pool: tuple[str, str]) -> list[tuple[Tree, str, Tree]]:
        """The devices of the newest generation of a pool, each with its slice and path."""
        return [
            (tree, f"spec.devices[{index}]", device)
            for tree in self.pools[pool]
            for index, device in enumerate(tree["spec"].get("devices", ()))
        ]

    def findings(self) -> set[Said]:
        """All of them."""
        said = {("object-duplicate", (text,)) for text, times in self.twice.items() if times > 1}
        said |= {("slice-obsolete", (text_of(tree),)) for tree in self.older}
        for pool in self.pools:
            said |= {*self._pool(pool), *self._counters(pool), *self._identities(pool)}
        for parts in (
            *(self._attributes, self._amounts, self._nodes, self._classes, self._claims),
            *(self._configs, self._taint_rules, self._tolerations, self._sizes),
        ):
            said |= {*parts()}
        return said

    def _pool(self, pool: tuple[str, str]) -> Iterator[Said]:
        slices = self.pools[pool]
        announced = {tree["spec"]["pool"]["resourceSliceCount"] for tree in slices}
        if len(announced) > 1:
            yield "pool-counts-differ", pool
        elif min(announced) != len(slices):
            yield ("pool-incomplete" if len(slices) < min(announced) else "pool-overfull"), pool
        for part, rule in (
            ("devices", "device-name-duplicate"),
            ("sharedCounters", "counter-set-duplicate"),
        ):
            names = Counter(each["name"] for tree in slices for each in tree["spec"].get(part, ()))
            for name, times in names.items():
                if times > 1:
                    yield rule, (*pool, name)
        seen = [tree["spec"] for tree in slices if tree["spec"].get("devices")]
        where = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
        choices = [
            {name: spec[name] for name in where if name in spec}
            for spec in (seen or [tree["spec"] for tree in slices])
        ]
        if any(first != second for first, second in pairwise(choices)):
            yield "pool-node-mix", pool

    def _is_whole(self, pool: tuple[str, str]) -> bool:
        slices = self.pools[pool]
        return all(tree["spec"]["pool"]["resourceSliceCount"] == len(slices) for tree in slices)

    def _counters(self, pool: tuple[str, str]) -> Iterator[Said]:
        sets: dict[str, dict[str, int]] = {}
        for tree in self.pools[pool]:
            for each in tree["spec"].get("sharedCounters", ()):
                held = {name: int(body["value"]) for name, body in each["counters"].items()}
                sets.setdefault(each["name"], held)
        is_whole, draws = self._is_whole(pool), Counter[tuple[str, str]]()
        drawing = Counter[str]()
        for tree, path, device in self.devices_of(pool):
            for index, consumption in enumerate(device.get("consumesCounters", ())):
                name, field = consumption["counterSet"], f"{path}.consumesCounters[{index}]"
                drawing[name] += 1
                if name not in sets:
                    if is_whole:
                        yield "counter-set-missing", (text_of(tree), field)
                    continue
                for counter, body in consumption["counters"].items():
                    place = (text_of(tree), f"{field}.counters[{counter}]")
                    draws[name, counter] += int(body["value"])
                    if counter not in sets[name]:
                        yield "counter-missing", place
                    elif int(body["value"]) > sets[name][counter]:
                        yield "device-never-fits", place
        for name, held in sets.items():
            if is_whole and not drawing[name]:
                yield "counter-set-unused", (*pool, name)
            elif is_whole:
                for counter in held:
                    if not draws[name, counter]:
                        yield "counter-unused", (*pool, name, counter)
            if drawing[name] > 1:
                is_short = any(draws[name, each] > held[each] for each in held)
                if is_short:
                    yield "partitions-overlap", (*pool, name)
                elif is_whole:
                    yield "counters-never-bind", (*pool, name)

    def _identities(self, pool: tuple[str, str]) -> Iterator[Said]:
        """Pairs of devices of one pool that are one hardware, and draw on no set together."""
        texts = [
            (number, name.rpartition("/")[2].lower(), body.get("string"), name)
            for number, (_, _, device) in enumerate(self.devices_of(pool))
            for name, body in device["attributes"].items()
        ]
        whole = [(number, text) for number, name, text, _ in texts if name == "uuid" and text]
        for number, kind, text, name in texts:
            others = {other for other, same in whole if same == text and other != number}
            if kind == "uuid":
                others = {other for other in others if other < number}
            elif kind != "parentuuid":
                continue
            tree, path, device = self.devices_of(pool)[number]
            if any(
                not self._sets_of(device) & self._sets_of(self.devices_of(pool)[other][2])
                for other in others
            ):
                yield "device-published-twice", (text_of(tree), f"{path}.attributes[{name}]")

    def _sets_of(self, device: Tree) -> set[str]:
        return {each["counterSet"] for each in device.get("consumesCounters", ())}

    def _attributes(self) -> Iterator[Said]:
        types: dict[tuple[str, str], set[str]] = {}
        for tree, path, device in self.devices:
            driver = tree["spec"]["driver"]
            for part in ("attributes", "capacity"):
                for name in device.get(part, ()):
                    if f"{driver}/{name}" in device[part]:
                        yield "attribute-shadowed", (text_of(tree), f"{path}.{part}[{name}]")
            for name, body in device["attributes"].items():
                types.setdefault((driver, _qualified(driver, name)), set()).update(body)
                domain, _, word = name.rpartition("/")
                means = word.lower() in ("numa", "numanode") and domain != "resource.kubernetes.io"
                if means and "resource.kubernetes.io/numaNode" not in device["attributes"]:
                    yield "attribute-not-standard", (driver, name)
        for about, kinds in types.items():
            if len(kinds) > 1:
                yield "attribute-type-differs", about

    def _amounts(self) -> Iterator[Said]:
        for tree, path, device in self.devices:
            for name, body in device.get("capacity", {}).items():
                if int(body["value"]) < 0:
                    yield "capacity-negative", (text_of(tree), f"{path}.capacity[{name}].value")
            is_shared = device.get("allowMultipleAllocations") and device.get("consumesCounters")
            if is_shared and not device.get("capacity"):
                yield "shared-device-without-capacity", (text_of(tree), path)

    def _nodes(self) -> Iterator[Said]:
        nodes = {tree["metadata"]["name"]: tree for tree in self._of("Node")}
        zones = {tree["metadata"]["labels"]["zone"] for tree in nodes.values()}
        for tree in (tree for slices in self.pools.values() for tree in slices):
            spec, text = tree["spec"], text_of(tree)
            places = [("spec", spec)]
            if spec.get("perDeviceNodeSelection"):
                devices = spec.get("devices", ())
                places = [(f"spec.devices[{n}]", device) for n, device in enumerate(devices)]
                where = [
                    {name: each.get(name) for name in ("nodeName", "nodeSelector", "allNodes")}
                    for each in devices
                ]
                if len(where) > 1 and all(each == where[0] for each in where):
                    yield "device-nodes-alike", (text, "spec.perDeviceNodeSelection")
            for path, part in places if nodes else ():
                if part.get("nodeName", next(iter(nodes))) not in nodes:
                    yield "node-missing", (text, f"{path}.nodeName")
                if selector := part.get("nodeSelector"):
                    (term,) = selector["nodeSelectorTerms"]
                    if not zones & {*term["matchExpressions"][0]["values"]}:
                        yield "node-selector-matches-nothing", (text, f"{path}.nodeSelector")

    def _chosen(
        self, selectors: list[Tree], devices: list[tuple[Tree, str, Tree]]
    ) -> tuple[list[tuple[Tree, str, Tree]], int | None, int | None]:
        """The devices left, the selector that fails on one, and the one that leaves none."""
        failing = None
        for index, selector in enumerate(selectors):
            words = WORDS[selector["cel"]["expression"]]
            verdicts = [_matches(words, tree["spec"]["driver"], each) for tree, _, each in devices]
            if None in verdicts and failing is None:
                failing = index
            left = [each for each, verdict in zip(devices, verdicts, strict=True) if verdict]
            if devices and not left:
                return [], failing, index
            devices = left
        return devices, failing, None

    def _classes(self) -> Iterator[Said]:
        for tree in self.classes.values():
            _, failing, emptied = self._chosen(tree["spec"]["selectors"], self.devices)
            if failing is not None:
                where = f"spec.selectors[{failing}].cel.expression"
                yield "selector-fails", (text_of(tree), where)
            elif emptied is not None:
                where = f"spec.selectors[{emptied}].cel.expression"
                yield "class-matches-nothing", (text_of(tree), where)

    def _requests(self, tree: Tree, path: str) -> Iterator[tuple[str, str, Tree, bool]]:
        """Main name, path, contents, and whether it is an alternative."""
        for index, request in enumerate(_at(tree, path)["requests"]):
            place = f"{path}.requests[{index}]"
            if "exactly" in request:
                yield request["name"], f"{place}.exactly", request["exactly"], False
            for number, each in enumerate(request.get("firstAvailable", ())):
                yield request["name"], f"{place}.firstAvailable[{number}]", each, True

    def _of_request(self, request: Tree) -> list[tuple[Tree, str, Tree]]:
        of_class = self.classes.get(request["deviceClassName"])
        if of_class is None:
            return []
        left, _, _ = self._chosen(of_class["spec"]["selectors"], self.devices)
        return self._chosen(request.get("selectors", []), left)[0]

    def _claims(self) -> Iterator[Said]:
        for tree, path in self.claims:
            least: dict[str, int] = {}
            for main, place, request, is_alternative in self._requests(tree, path):
                wanted = 0 if request["allocationMode"] == "All" else request["count"]
                least[main] = min(wanted, least.get(main, wanted))
                for rule, field in self._request(request, place, wanted):
                    said = rule
                    if is_alternative and rule not in ("class-missing", "selector-fails"):
                        said = "alternative-never-taken"
                    yield said, (text_of(tree), field)
                if is_alternative and wanted > 32:
                    yield "alternative-never-taken", (text_of(tree), f"{place}.count")
            if sum(least.values()) > 32:
                yield "claim-asks-for-too-many", (text_of(tree), f"{path}.requests")
            yield from self._constraints(tree, path)

    def _request(self, request: Tree, path: str, wanted: int) -> Iterator[tuple[str, str]]:
        of_class = self.classes.get(request["deviceClassName"])
        if of_class is None:
            if self.classes:
                yield "class-missing", f"{path}.deviceClassName"
            return
        left, _, _ = self._chosen(of_class["spec"]["selectors"], self.devices)
        devices, failing, emptied = self._chosen(request.get("selectors", []), left)
        if failing is not None:
            yield "selector-fails", f"{path}.selectors[{failing}].cel.expression"
        elif emptied is not None:
            yield "selector-matches-nothing", f"{path}.selectors[{emptied}].cel.expression"
        if devices and wanted > len(devices):
            yield "request-exceeds-devices", f"{path}.count"
        for name, amount in request.get("capacity", {}).get("requests", {}).items():
            held = [int(each.get("capacity", {}).get(name, {"value": "-9"})["value"])
                    for _, _, each in devices]  # fmt: skip
            if devices and max(held) < int(amount):
                yield "capacity-never-enough", f"{path}.capacity.requests[{name}]"

    def _constraints(self, tree: Tree, path: str) -> Iterator[Said]:
        """A constraint that no device of a request can satisfy; of alternatives, of all of them."""
        for index, constraint in enumerate(_at(tree, path).get("constraints", ())):
            (word,) = {"matchAttribute", "distinctAttribute"} & constraint.keys()
            fails: dict[str, list[tuple[bool, str, bool]]] = {}
            for main, place, request, is_alternative in self._requests(tree, path):
                if main not in constraint.get("requests", [main]):
                    continue
                devices = self._of_request(request)
                has = any(
                    _qualified(each["spec"]["driver"], name) == constraint[word]
                    for each, _, device in devices
                    for name in device["attributes"]
                )
                never = bool(devices) and not has
                fails.setdefault(main, []).append((never, place, is_alternative))
            if any(all(never for never, _, _ in each) for each in fails.values()):
                yield (
                    "constraint-never-holds",
                    (text_of(tree), f"{path}.constraints[{index}].{word}"),
                )
            for listed in fails.values():
                for never, place, _ in listed:
                    if never and not all(each for each, _, _ in listed):
                        yield "alternative-never-taken", (text_of(tree), place)

    def _configs(self) -> Iterator[Said]:
        drivers = {tree["spec"]["driver"] for tree in self._of("ResourceSlice")}
        owners = [(tree, "spec") for tree in self.classes.values()] + self.claims
        for tree, path in owners if drivers else ():
            for index, config in enumerate(_at(tree, path).get("config", ())):
                if config["opaque"]["driver"] not in drivers:
                    yield (
                        "config-for-no-driver",
                        (text_of(tree), f"{path}.config[{index}].opaque.driver"),
                    )

    def _taint_rules(self) -> Iterator[Said]:
        for tree in self._of("DeviceTaintRule"):
            selector, text = tree["spec"].get("deviceSelector"), text_of(tree)
            is_blocking = tree["spec"]["taint"]["effect"] in BLOCKING
            if selector:
                if self.devices and not any(_selects(selector, *each) for each in self.devices):
                    yield "rule-selects-nothing", (text, "spec.deviceSelector")
            elif is_blocking and selector is None:
                yield "rule-without-selector", (text, "spec")
            elif is_blocking:
                yield "rule-selects-everything", (text, "spec.deviceSelector")

    def _tolerations(self) -> Iterator[Said]:
        known: list[Tree] = []
        for tree, path in self.claims:
            for _, place, request, _ in self._requests(tree, path):
                for index, toleration in enumerate(request.get("tolerations", ())):
                    known.append(toleration)
                    if "effect" not in toleration:
                        field = f"{place}.tolerations[{index}]"
                        yield "toleration-without-effect", (text_of(tree), field)
        for each in self.devices if self.claims else ():
            rules = [
                tree["spec"]["taint"]
                for tree in self._of("DeviceTaintRule")
                if _selects(tree["spec"].get("deviceSelector") or {}, *each)
            ]
            for taint in (*each[2].get("taints", ()), *rules):
                is_tolerated = any(
                    toleration.get("key", taint["key"]) == taint["key"]
                    and toleration.get("effect", taint["effect"]) == taint["effect"]
                    for toleration in known
                )
                if taint["effect"] in BLOCKING and not is_tolerated:
                    yield "taint-untolerated", (taint["key"], "", taint["effect"])

    def _sizes(self) -> Iterator[Said]:
        for tree in (tree for slices in self.pools.values() for tree in slices):
            text, devices = text_of(tree), tree["spec"].get("devices", ())
            for what, size, limit in _texts(tree):
                if limit * 9 <= size * 10 <= limit * 10:
                    yield "text-near-limit", (text, what)
            taints = [len(device.get("taints", ())) for device in devices]
            if any(15 <= count <= 16 for count in taints):
                yield "count-near-limit", (text, "taints of a device")
            if any(count > 4 for count in taints):
                yield "refused-by-older-release", (text,)
        for tree, path in self.claims:
            if len(_at(tree, path)["requests"]) >= 29:
                yield "count-near-limit", (text_of(tree), "requests")


def _texts(tree: Tree) -> Iterator[tuple[str, int, int]]:
    """What a text is, its length and its limit."""
    yield "slice name", len(tree["metadata"]["name"]), 253
    for device in tree["spec"].get("devices", ()):
        yield "device name", len(device["name"]), 63
        for body in device["attributes"].values():
            for value in body.values():
                if isinstance(value, str):
                    yield "value of an attribute", len(value), 64


def _selects(selector: Mapping[str, str], tree: Tree, path: str, device: Tree) -> bool:
    own = {
        "driver": tree["spec"]["driver"],
        "pool": tree["spec"]["pool"]["name"],
        "device": device["name"],
    }
    return all(own[name] == value for name, value in selector.items())


def _matches(words: tuple[str, ...], driver: str, device: Tree) -> bool | None:
    """Whether a device matches; None where the expression fails."""
    kind, about, *names = words
    of_driver = {
        _qualified(driver, name).removeprefix(f"{about}/"): body
        for name, body in device["attributes"].items()
        if _qualified(driver, name).startswith(f"{about}/")
    }
    match kind:
        case "driver":
            return driver == about
        case "has":
            return names[0] in of_driver
        case "equal":
            return _equal(of_driver, names)
        case "guarded":
            return driver == about and names[0] in of_driver and _equal(of_driver, names)
        case "more":
            value = of_driver.get(names[0], {}).get("int")
            return None if value is None else value > int(names[1])
        case "holds":
            held = [
                body["value"]
                for name, body in device.get("capacity", {}).items()
                if _qualified(driver, name) == f"{about}/{names[0]}"
            ]
            return any(int(value) >= int(names[1]) for value in held)
    raise AssertionError(words)


def _equal(attributes: Mapping[str, Tree], names: list[str]) -> bool | None:
    body = attributes.get(names[0])
    return None if body is None else body.get("string") == names[1]
