"""A first-fit search for devices on one node: allocator.md 2 to 10, for what the worlds use.

Selectors are texts of the forms `device.driver == "x"` and
`device.attributes["d"].name == VALUE` (or >=), joined by `&&`.
"""

import json
import re

DRIVER = re.compile(r'device\.driver == "([^"]*)"')
ATTRIBUTE = re.compile(r'device\.attributes\["([^"]*)"\]\.(\w+) (==|>=) (.+)')


class Abort(Exception):
    pass


def matches(node, where):
    if where.get("nodeName"):
        return where["nodeName"] == node["metadata"]["name"]
    if where.get("allNodes"):
        return True
    if where.get("nodeSelector"):
        return selects(node, where["nodeSelector"])
    return False


def selects(node, selector):
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    for term in selector["nodeSelectorTerms"]:
        parts = [(labels.get(e["key"]), e) for e in term.get("matchExpressions", [])]
        parts += [(name, e) for e in term.get("matchFields", [])]
        if parts and all(v in e["values"] for v, e in parts):
            return True
    return False


def evaluate(expression, device, driver, where):
    for part in expression.split(" && "):
        if m := DRIVER.fullmatch(part):
            if driver != m[1]:
                return False
            continue
        domain, name, operator, text = ATTRIBUTE.fullmatch(part).groups()
        value = attribute(device, driver, f"{domain}/{name}")
        if value is None:
            raise Abort(
                f"{where}: CEL runtime error: no such key: {name}. consider using CEL optional "
                "chaining (.? followed by orValue()) or guarding the check with has() for "
                "optional fields"
            )
        held, wanted = next(iter(value.values())), json.loads(text)
        if (operator == "==" and held != wanted) or (operator == ">=" and not held >= wanted):
            return False
    return True


def attribute(device, driver, name):
    attributes = device.get("attributes", {})
    domain, _, short = name.partition("/")
    return attributes.get(name) or (attributes.get(short) if domain == driver else None)


def tolerates(tolerations, taint):
    return any(
        t.get("effect", "") in ("", taint["effect"])
        and t.get("key", "") in ("", taint["key"])
        and (
            t.get("operator") == "Exists"
            or (
                t.get("operator", "Equal") == "Equal"
                and t.get("value", "") == taint.get("value", "")
            )
        )
        for t in tolerations
    )


def amount(text):
    scale = {"Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
    return int(text[:-2]) * scale[text[-2:]] if text[-2:] in scale else int(text)


class Attempt:
    """The search of one scheduling attempt; `allocate` is asked once for a node."""

    def __init__(self, slices, rules, classes, allocations, claims):
        self.slices = sorted(slices, key=lambda s: s["metadata"]["name"])
        self.rules = sorted(rules, key=lambda r: r["metadata"]["name"])
        self.classes, self.claims = classes, claims
        self.used = {
            (r["driver"], r["pool"], r["device"])
            for a in allocations
            for r in a["devices"].get("results", [])
            if not r.get("adminAccess")
        }

    def _taints(self, place, device):
        names = ("driver", "pool", "device")
        return device.get("taints", []) + [
            r["spec"]["taint"]
            for r in self.rules
            if all(
                (r["spec"].get("deviceSelector") or {}).get(f) in (None, v)
                for f, v in zip(names, place, strict=True)
            )
        ]

    def _pools(self, node):
        relevant = {}
        first, rest = [], []
        for s in self.slices:
            (first if s["spec"].get("nodeName") else rest).append(s)
        for s in [*first, *rest]:
            spec = s["spec"]
            if spec.get("perDeviceNodeSelection"):
                if not any(matches(node, d) for d in spec.get("devices", [])):
                    continue
            elif not matches(node, spec):
                continue
            relevant.setdefault((spec["driver"], spec["pool"]["name"]), []).append(s)
        pools = {}
        for place, kept in relevant.items():
            newest = max(s["spec"]["pool"]["generation"] for s in kept)
            kept = [s for s in kept if s["spec"]["pool"]["generation"] == newest]
            count = kept[0]["spec"]["pool"]["resourceSliceCount"]
            if len(kept) != count:
                same = [
                    s
                    for s in self.slices
                    if (s["spec"]["driver"], s["spec"]["pool"]["name"]) == place
                ]
                if any(s["spec"]["pool"]["generation"] > newest for s in same):
                    continue
                everything = [s for s in same if s["spec"]["pool"]["generation"] == newest]
                if len(everything) != count:
                    pools[place] = None
                    continue
                others = [s for s in everything if s not in kept]
            else:
                others = []
            kept.sort(key=lambda s: s["metadata"]["name"])
            pools[place] = (kept, others)

        def late(place):
            return any(
                "bindingConditions" in d
                for s in (pools[place] or ((), ()))[0]
                for d in s["spec"].get("devices", [])
            )

        return [(place, pools[place]) for place in sorted(pools, key=lambda p: (late(p), p))]

    def allocate(self, node):
        """Allocations for the claims in order, or None."""
        self.node = node
        self.pools = self._pools(node)
        self.flat = [
            (place, s, d)
            for place, pool in self.pools
            if pool
            for s in pool[0]
            if not s["spec"].get("sharedCounters")
            for d in s["spec"].get("devices", [])
        ]
        self.taken, self.booked, self.available = {}, {}, {}
        self.picks = [[] for _ in self.claims]
        self.selected = {}
        wishes = [[self._wish(c, r) for r in c["spec"]["devices"]["requests"]] for c in self.claims]
        self.wishes = wishes
        if not self._step(0, 0, None, 0, 0):
            return None
        return [self._result(i) for i in range(len(self.claims))]

    def _wish(self, claim, request):
        if "exactly" in request:
            return [self._one(claim, request["name"], request["name"], request["exactly"])]
        return [
            self._one(claim, request["name"], f"{request['name']}/{s['name']}", s)
            for s in request["firstAvailable"]
        ]

    def _one(self, claim, main, name, spec):
        wish = {"main": main, "name": name, "spec": spec, "sub": "/" in name, "all": None}
        cls = self.classes[spec["deviceClassName"]]
        wish["class"] = cls
        if spec.get("allocationMode", "ExactCount") == "All":
            bare = name.rpartition("/")[2]
            listed = []
            for place, pool in self.pools:
                if pool is None:
                    k = "/".join((claim["metadata"]["namespace"], claim["metadata"]["name"]))
                    raise Abort(
                        f"claim {k}, request {bare}: asks for all devices, but resource pool "
                        f"{'/'.join(place)} is currently being updated"
                    )
                for s in pool[0]:
                    for d in s["spec"].get("devices", []):
                        if not s["spec"].get("sharedCounters") and self._selectable(
                            claim, wish, place, s, d
                        ):
                            listed.append((place, s, d))
            wish["all"] = listed
        return wish

    def _selectable(self, claim, wish, place, s, d):
        cls, k = (
            wish["class"],
            "/".join((claim["metadata"]["namespace"], claim["metadata"]["name"])),
        )
        text = "/".join((*place, d["name"]))
        for i, sel in enumerate(cls["spec"].get("selectors", [])):
            if not evaluate(
                sel["cel"]["expression"],
                d,
                place[0],
                f"class {cls['metadata']['name']}: selector #{i} on device {text}",
            ):
                return False
        for i, sel in enumerate(wish["spec"].get("selectors", [])):
            if not evaluate(
                sel["cel"]["expression"], d, place[0], f"claim {k}: selector #{i} on device {text}"
            ):
                return False
        return not s["spec"].get("perDeviceNodeSelection") or matches(self.node, d)

    def _step(self, c, r, k, d, start):
        if c == len(self.claims):
            return True
        if r == len(self.wishes[c]):
            return self._step(c + 1, 0, None, 0, 0)
        options = self.wishes[c][r]
        if k is None:
            for i in range(len(options)):
                if self._step(c, r, i, 0, 0):
                    self.selected[c, r] = i
                    return True
            return False
        wish = options[k]
        count = len(wish["all"]) if wish["all"] is not None else wish["spec"].get("count", 1)
        if wish["all"] is not None and not count:
            return False
        if d >= count:
            return self._step(c, r + 1, None, 0, 0)
        if wish["all"] is not None:
            place, s, device = wish["all"][d]
            if not self._take(c, wish, place, s, device, must=True):
                return False
            if self._step(c, r, k, d + 1, start):
                return True
            self._undo(c, place, s, device)
            return False
        for position in range(start, len(self.flat)):
            place, s, device = self.flat[position]
            key = (*place, device["name"])
            if wish["spec"].get("adminAccess"):
                if c in self.taken.get(key, []):
                    continue
            elif key in self.used or self.taken.get(key):
                continue
            if not self._selectable(self.claims[c], wish, place, s, device):
                continue
            if not self._take(c, wish, place, s, device):
                continue
            if self._step(c, r, k, d + 1, position + 1):
                return True
            self._undo(c, place, s, device)
        return False

    def _counters(self, place):
        """The counters of a pool that earlier allocations leave."""
        if place[1] not in self.available:
            left = {}
            kept, others = dict(self.pools)[place]
            for s in [*kept, *others]:
                for counter_set in s["spec"].get("sharedCounters", []):
                    for name, value in counter_set["counters"].items():
                        left[counter_set["name"], name] = amount(value["value"])
            for s in [*kept, *others]:
                for d in s["spec"].get("devices", []):
                    if (*place, d["name"]) in self.used:
                        for key, value in consumed(d):
                            left[key] -= value
            self.available[place[1]] = left
        return self.available[place[1]]

    def _take(self, c, wish, place, s, device, must=False):
        key = (*place, device["name"])
        admin = wish["spec"].get("adminAccess")
        if admin and c in self.taken.get(key, []):
            return False
        if not admin and (key in self.used or self.taken.get(key)):
            return False
        if device.get("consumesCounters"):
            booked = self.booked.setdefault(place[1], {})
            for name, value in consumed(device):
                booked[name] = booked.get(name, 0) + value
            if any(booked.get(name, 0) > left for name, left in self._counters(place).items()):
                for name, value in consumed(device):
                    booked[name] -= value
                return False
        tolerations = wish["spec"].get("tolerations", [])
        if any(
            t["effect"] in ("NoSchedule", "NoExecute") and not tolerates(tolerations, t)
            for t in self._taints(key, device)
        ):
            return False  # counters stay booked: Q1
        for constraint in self.claims[c]["spec"]["devices"].get("constraints", []):
            names = constraint.get("requests", [])
            if names and wish["main"] not in names and wish["name"] not in names:
                continue
            value = attribute(device, place[0], constraint["matchAttribute"])
            ok = value is not None
            for other_wish, other_place, _, other in self.picks[c]:
                if not names or other_wish["main"] in names or other_wish["name"] in names:
                    ok = (
                        ok
                        and attribute(other, other_place[0], constraint["matchAttribute"]) == value
                    )
            if not ok:
                if must:
                    k = "/".join(
                        (
                            self.claims[c]["metadata"]["namespace"],
                            self.claims[c]["metadata"]["name"],
                        )
                    )
                    raise Abort(
                        f"claim {k}, request {wish['name'].rpartition('/')[2]}: cannot add device "
                        f"{'/'.join(key)} because a claim constraint would not be satisfied"
                    )
                return False
        self.taken.setdefault(key, []).append(c)
        self.picks[c].append((wish, place, s, device))
        return True

    def _undo(self, c, place, s, device):
        self.picks[c].pop()
        self.taken[(*place, device["name"])].remove(c)
        for name, value in consumed(device):
            self.booked[place[1]][name] -= value

    def _result(self, c):
        results, fields, expressions, local = [], [], [], False
        for wish, place, s, device in self.picks[c]:
            made = {
                "request": wish["name"],
                "driver": place[0],
                "pool": place[1],
                "device": device["name"],
            }
            if wish["spec"].get("adminAccess"):
                made["adminAccess"] = True
            if wish["spec"].get("tolerations"):
                made["tolerations"] = wish["spec"]["tolerations"]
            for part in ("bindingConditions", "bindingFailureConditions"):
                if device.get(part):
                    made[part] = device[part]
            results.append(made)
            where = device if s["spec"].get("perDeviceNodeSelection") else s["spec"]
            if where.get("nodeName") or device.get("bindsToNode"):
                local = True
            elif where.get("nodeSelector"):
                term = where["nodeSelector"]["nodeSelectorTerms"][0]
                for into, part in ((fields, "matchFields"), (expressions, "matchExpressions")):
                    into += [e for e in term.get(part, []) if e not in into]
        made = {"devices": {"results": results}}
        if local:
            made["nodeSelector"] = {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {
                                "key": "metadata.name",
                                "operator": "In",
                                "values": [self.node["metadata"]["name"]],
                            }
                        ]
                    }
                ]
            }
        elif fields or expressions:
            term = {
                k: v for k, v in (("matchExpressions", expressions), ("matchFields", fields)) if v
            }
            made["nodeSelector"] = {"nodeSelectorTerms": [term]}
        return made


def consumed(device):
    return [
        ((each["counterSet"], name), amount(value["value"]))
        for each in device.get("consumesCounters", [])
        for name, value in each["counters"].items()
    ]
