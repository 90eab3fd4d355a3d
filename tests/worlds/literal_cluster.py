"""Sections 1, 2, 9 and 13 of allocator.md, transcribed: from API objects to pools and state.

Slow and simple, on plain objects. It uses nothing of the product except quantities.
"""

from __future__ import annotations

from app.domain.cel import DeviceInput
from app.domain.values import quantity


class Abort(Exception):
    """The attempt ends on all nodes; the message is the text."""


class Device:
    def __init__(self, tree, found, taints):
        self.tree = tree
        self.slice = found
        self.id = (found.driver, found.pool, tree["name"])
        self.text = "/".join(self.id)
        self.attributes = tree.get("attributes") or {}
        self.capacity = tree.get("capacity") or {}
        self.shared = tree.get("allowMultipleAllocations") is True
        self.taints = [*(tree.get("taints") or []), *taints]
        self.binding = tree.get("bindingConditions") or []
        self.consumes_any = bool(tree.get("consumesCounters"))
        self.consumes = [
            ((used["counterSet"], name), quantity.from_json(amount["value"]).nanos)
            for used in tree.get("consumesCounters") or []
            for name, amount in (used.get("counters") or {}).items()
        ]
        self.cel_input = DeviceInput(
            driver=found.driver,
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple_allocations=self.shared,
        )

    def choice(self):
        return self.tree if self.slice.per_device else self.slice.spec


class Slice:
    def __init__(self, tree, rules, every):
        self.spec = tree["spec"]
        self.name = tree["metadata"]["name"]
        self.driver = self.spec["driver"]
        self.pool = self.spec["pool"]["name"]
        self.generation = self.spec["pool"].get("generation", 0)
        self.count = self.spec["pool"].get("resourceSliceCount", 0)
        self.per_device = self.spec.get("perDeviceNodeSelection") is True
        self.sets = self.spec.get("sharedCounters") or []
        self.devices = []
        for device in self.spec.get("devices") or []:
            place = (self.driver, self.pool, device["name"])
            taints = [rule["spec"]["taint"] for rule in rules if taints_it(rule, place, every)]
            self.devices.append(Device(device, self, taints))


class Pool:
    def __init__(self, found, state, slices=(), others=(), sets=()):
        self.id = (found.driver, found.pool)
        self.text = "/".join(self.id)
        self.state = state
        self.slices = slices
        self.others = others
        self.counters = {
            (each["name"], name): quantity.from_json(amount["value"]).nanos
            for each in sets
            for name, amount in (each.get("counters") or {}).items()
        }
        self.binding = any(device.binding for each in slices for device in each.devices)


def taints_it(rule, place, every):
    selector = rule["spec"].get("deviceSelector")
    if selector is None:
        return every
    wanted = (selector.get("driver"), selector.get("pool"), selector.get("device"))
    return all(mine is None or mine == its for mine, its in zip(wanted, place, strict=True))


def is_meant(choice, node):
    """2.1; selectors of the worlds can all be parsed."""
    if choice.get("nodeName"):
        return choice["nodeName"] == node["metadata"]["name"]
    if choice.get("allNodes"):
        return True
    selector = choice.get("nodeSelector")
    return selector is not None and any(
        term_holds(term, node) for term in selector.get("nodeSelectorTerms") or []
    )


def term_holds(term, node):
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    labels = node["metadata"].get("labels") or {}
    if not expressions and not fields:
        return False
    for found in expressions:
        value, values = labels.get(found["key"]), found.get("values") or []
        holds = {
            "In": value is not None and value in values,
            "NotIn": value is None or value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
            "Gt": number(value) is not None and number(value) > int(values[0] if values else 0),
            "Lt": number(value) is not None and number(value) < int(values[0] if values else 0),
        }
        if not holds[found["operator"]]:
            return False
    for found in fields:
        if (node["metadata"]["name"] == found["values"][0]) != (found["operator"] == "In"):
            return False
    return True


def number(text):
    return int(text) if text is not None and text.lstrip("-").isdigit() else None


class Cluster:
    """All slices; `pools(node)` is section 2."""

    def __init__(self, given, features, quirks, *, stable=False, scalars=False):
        self.scalars = scalars
        rules = given.get("deviceTaintRules") or [] if features.device_taints else []
        rules = sorted(rules, key=lambda rule: rule["metadata"]["name"])
        self.slices = [Slice(tree, rules, quirks.q14) for tree in given["slices"]]
        self.features, self.stable, self.quirks = features, stable, quirks

    def pools(self, node):
        if self.stable:
            candidates = self.slices
        else:
            name = node["metadata"]["name"]
            own = [s for s in self.slices if s.spec.get("nodeName") and s.spec["nodeName"] == name]
            candidates = own + [s for s in self.slices if not s.spec.get("nodeName")]
        kept = {}
        for found in candidates:
            if not self.is_relevant(found, node):
                continue
            here = kept.setdefault((found.driver, found.pool), [])
            if here and here[0].generation > found.generation:
                continue
            if here and here[0].generation < found.generation:
                here.clear()
            here.append(found)
        pools = [pool for found in kept.values() for pool in self.build(found)]
        last = self.quirks.q15
        return sorted(pools, key=lambda pool: (pool.binding and last, *pool.id))

    def is_relevant(self, found, node):
        parts = self.features.partitionable_devices
        if not parts and (found.spec.get("perDeviceNodeSelection") is not None or found.sets):
            return False
        if self.stable and found.sets:
            return True
        if (
            found.spec.get("nodeName")
            or found.spec.get("allNodes")
            or found.spec.get("nodeSelector") is not None
        ):
            return is_meant(found.spec, node)
        return found.per_device and any(is_meant(device.tree, node) for device in found.devices)

    def build(self, kept):
        """2.4 and 2.5: no pool, or one."""
        first, collected = kept[0], []
        if len(kept) != first.count or not self.quirks.q12:
            everywhere = [
                s for s in self.slices if (s.driver, s.pool) == (first.driver, first.pool)
            ]
            if any(found.generation > first.generation for found in everywhere):
                return [] if self.quirks.q13 else [Pool(first, "incomplete")]
            collected = [found for found in everywhere if found.generation == first.generation]
            if len(collected) != first.count and len(kept) != first.count:
                return [Pool(first, "incomplete")]
        kept = sorted(kept, key=lambda found: found.name)
        parts = self.features.partitionable_devices
        counting = [found for found in kept if parts and found.sets]
        slices = [found for found in kept if not (parts and found.sets)]
        others = []
        if len(collected) > len(kept):
            names = [found.name for found in kept]
            for found in collected:
                if found.name not in names:
                    (counting if parts and found.sets else others).append(found)
        sets = [each for found in counting for each in found.sets]
        if self.is_invalid(slices, others, sets):
            return [Pool(first, "invalid")]
        return [Pool(first, "usable", slices, others, sets)]

    def is_invalid(self, slices, others, sets):
        names = [device.id for found in slices for device in found.devices]
        if len(names) != len(set(names)):
            return True
        if not self.features.partitionable_devices:
            return False
        known = {each["name"]: each.get("counters") or {} for each in sets}
        if len(known) != len(sets):
            return True
        for found in (*slices, *others):
            for device in found.devices:
                for used in device.tree.get("consumesCounters") or []:
                    if used["counterSet"] not in known:
                        return True
                    if any(n not in known[used["counterSet"]] for n in used.get("counters") or {}):
                        return True
        return False


class State:
    """1.1."""

    def __init__(self, consumable):
        self.consumable = consumable
        self.whole, self.shares, self.aggregated = set(), set(), {}

    def add(self, claim):
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or []:
            if result.get("adminAccess"):
                continue
            device = (result["driver"], result["pool"], result["device"])
            if not (self.consumable and result.get("shareID")):
                self.whole.add(device)
                continue
            self.shares.add(device)
            if result.get("consumedCapacity") is not None:
                sums = self.aggregated.setdefault(device, {})
                for name, amount in result["consumedCapacity"].items():
                    sums[name] = sums.get(name, 0) + quantity.from_json(amount).nanos

    def is_allocated(self, device):
        return device in self.whole or device in self.shares or device in self.aggregated
