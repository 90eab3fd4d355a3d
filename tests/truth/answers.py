"""Compares the answers about one moment with facts that were counted from the raw objects."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator

from tests.truth.facts import (
    FINISHED,
    Device,
    Facts,
    amount,
    claims_of,
    device_of,
    is_tolerated,
    needs,
    reserved_for,
    results,
)

Ask = Callable[..., Awaitable[dict]]
"""Asks a question with these parameters, about the moment of the facts."""


def differences(what: str, said: object, counted: object) -> Iterator[str]:
    """One line where an answer differs from what was counted."""
    if said != counted:
        yield f"{what}: said {said!r}, counted {counted!r}"


def by_key(rows: Iterable[dict], *key: str) -> dict:
    """Rows by their key."""
    return {tuple(row[name] for name in key): row for row in rows}


async def views(facts: Facts, ask: Ask) -> list[str]:
    """The rows of claims, devices, pools, counters, taints and rules."""
    wrong: list[str] = []
    said = {name: (await ask(f"views/{name}", limit=5000))["items"] for name in _TABLES}
    for name, (key, count) in _TABLES.items():
        rows, counted = by_key(said[name], *key), dict(count(facts))
        wrong += differences(f"keys of {name}", set(rows), set(counted))
        for place in rows.keys() & counted.keys():
            for column, value in counted[place].items():
                wrong += differences(f"{name} {place} {column}", rows[place][column], value)
    return wrong


def _claims(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for place, tree in facts.claims.items():
        owners = tree["metadata"].get("ownerReferences") or ()
        allocation = (tree.get("status") or {}).get("allocation")
        state = "pending" if not allocation else "reserved" if reserved_for(tree) else "allocated"
        yield (
            tuple(place.split("/")),
            {
                "uid": tree["metadata"]["uid"],
                "state": state,
                "deleting": "deletionTimestamp" in tree["metadata"],
                "owner": next((one["name"] for one in owners if one["kind"] == "Pod"), ""),
                "devices": ["/".join(device_of(one)) for one in results(tree)],
                "reserved_for": [
                    {name: one[name] for name in ("resource", "name", "uid")}
                    for one in (tree.get("status") or {}).get("reservedFor") or ()
                ],
                "pods": [
                    {
                        "name": facts.pods[pod]["metadata"]["name"],
                        "uid": facts.pods[pod]["metadata"]["uid"],
                        "node": facts.pods[pod]["spec"].get("nodeName", ""),
                        "phase": facts.pods[pod]["status"].get("phase", ""),
                        "deleting": "deletionTimestamp" in facts.pods[pod]["metadata"],
                    }
                    for pod in sorted(facts.pods_of(place))
                ],
            },
        )


def _shares(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for place, tree in facts.claims.items():
        for position, result in enumerate(results(tree)):
            yield (
                (*place.split("/"), position),
                {
                    "request": result["request"],
                    "driver": result["driver"],
                    "pool": result["pool"],
                    "device": result["device"],
                    "share_id": result.get("shareID", ""),
                    "admin_access": bool(result.get("adminAccess")),
                },
            )


def _pools(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for place, pool in facts.pools.items():
        row: dict = {
            "generation": pool.generation,
            "slices_present": len(pool.slices),
            "slices_obsolete": pool.obsolete,
            "slices": sorted(tree["metadata"]["name"] for tree in pool.slices),
            "counter_sets": sum(len(t["spec"].get("sharedCounters") or ()) for t in pool.slices),
        }
        if pool.is_known and pool.is_valid:
            row["devices"] = len(pool.devices)
            row["complete"] = pool.is_complete
        yield place, row


def _devices(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for id, device in facts.devices.items():
        pool = facts.pools[id[:2]]
        row: dict = {"generation": pool.generation, "slice": device.slice} if pool.is_known else {}
        row["shared"] = facts.is_shared(id)
        if pool.is_known:
            row["blocked"] = facts.is_tainted(id)
        yield id, row


def _counters(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for place, published in facts.counters.items():
        left = facts.left(place)
        for counter, capacity in published.items():
            yield (
                (*place, *counter),
                {
                    "capacity": _decimal(capacity),
                    "used": _decimal(capacity - left[counter]),
                    "free": _decimal(left[counter]),
                },
            )


def _decimal(number) -> str:
    text = f"{float(number):.9f}" if number.denominator != 1 else str(number.numerator)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _taints(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for id in facts.devices:
        own = facts.devices[id].tree.get("taints") or ()
        merged = [*(("", taint) for taint in own), *facts.rules_of(id)]
        for position, (rule, taint) in enumerate(merged):
            yield (
                (*id, position),
                {
                    "rule": rule,
                    "taint_key": taint["key"],
                    "taint_value": taint.get("value", ""),
                    "effect": taint["effect"],
                },
            )


def _rules(facts: Facts) -> Iterator[tuple[tuple, dict]]:
    for name, rule in facts.all("devicetaintrules"):
        selected = [id for id in facts.devices if name in dict(facts.rules_of(id))]
        taint = rule["spec"]["taint"]
        concerned = [
            (place, one)
            for place, claim in facts.claims.items()
            for one in results(claim)
            if name in dict(facts.rules_of(device_of(one)))
        ]
        tolerated = [one for _, one in concerned if is_tolerated(taint, one.get("tolerations", []))]
        pods = {
            (place.split("/")[0], pod)
            for place, _ in concerned
            for pod in reserved_for(facts.claims[place])
        }
        yield (
            (name,),
            {
                "devices": len(selected),
                "allocated": len(concerned),
                "tolerated": len(tolerated),
                "pods": len(pods),
            },
        )


_TABLES = {
    "claims": (("namespace", "name"), _claims),
    "claim_devices": (("namespace", "claim", "position"), _shares),
    "pools": (("driver", "pool"), _pools),
    "devices": (("driver", "pool", "device"), _devices),
    "counters": (("driver", "pool", "counter_set", "counter"), _counters),
    "taints": (("driver", "pool", "device", "position"), _taints),
    "taint_rules": (("rule",), _rules),
}


async def device_map(facts: Facts, ask: Ask) -> list[str]:
    """State, holders and lacking counters of each device; what is used of each counter."""
    said = await ask("map")
    wrong: list[str] = []
    pools = by_key((one for one in said["pools"] if not _is_old(facts, one)), "driver", "pool")
    if not said["omitted"]:
        wrong += differences("pools of the map", set(pools), {*facts.pools, *facts.gone})
        wrong += differences(
            "unpublished devices", _shown_unpublished(said), _unpublished(facts, said)
        )
    for place, pool in pools.items():
        for device in pool["devices"]:
            id = (*place, device["name"])
            if device["state"] == "unpublished":
                wrong += differences(f"holders of {id}", set(device["holders"]), facts.holders[id])
                continue
            name = "/".join(id)
            counted = facts.holders.get(id, set())
            wrong += differences(f"holders of {name}", set(device["holders"]), counted)
            if facts.pools[place].is_known:
                wrong += differences(f"state of {name}", device["state"], facts.state_of(id))
                taints = len(facts.taints(id))
                wrong += differences(f"taints of {name}", len(device["taints"]), taints)
                if id not in facts.holders:
                    is_usable = facts.pools[place].is_usable
                    lacks = facts.lacks(facts.devices[id]) if is_usable else set()
                    wrong += differences(f"lacks of {name}", set(device["lacks"]), lacks)
        for gauge in pool["counters"]:
            counter = (gauge["set"], gauge["counter"])
            total = facts.counters[place][counter]
            used = total - facts.left(place)[counter]
            what = f"counter {counter} of {place}"
            counted = (total, used, round(float(used / total), 4) if total else float(used > 0))
            shown = (amount(gauge["total"]), amount(gauge["used"]), gauge["share"])
            wrong += differences(what, shown, counted)
    return wrong


def _shown_unpublished(said: dict) -> set[Device]:
    return {
        (pool["driver"], pool["pool"], device["name"])
        for pool in said["pools"]
        for device in pool["devices"]
        if device["state"] == "unpublished"
    }


def _unpublished(facts: Facts, said: dict) -> set[Device]:
    """The devices that claims hold and that no slice of the newest generation publishes.

    Older generations that nodes still use are taken from the answer.
    """
    old = {
        (pool["driver"], pool["pool"], device["name"])
        for pool in said["pools"]
        if _is_old(facts, pool)
        for device in pool["devices"]
    }
    return facts.holders.keys() - facts.devices.keys() - old


def _is_old(facts: Facts, pool: dict) -> bool:
    place = pool["driver"], pool["pool"]
    return place not in facts.gone and pool["generation"] != facts.pools[place].generation


async def capacity(facts: Facts, ask: Ask) -> list[str]:
    """Devices of each class, and each counter over the pools of a driver."""
    said = (await ask("capacity"))["moments"][-1]
    wrong: list[str] = []
    classes = {one["name"]: one for one in said["classes"]}
    names = {name for name, _ in facts.all("deviceclasses")}
    wrong += differences("classes of capacity", set(classes), names)
    for name in classes.keys() & names:
        selected = facts.selected(name)
        if selected is None or not facts.is_known:
            continue
        untainted = {id for id in selected if not facts.is_tainted(id)}
        nodes = [node for node, _ in facts.all("nodes")]
        free = {
            id
            for id in untainted
            if (facts.has_share(id) if facts.is_shared(id) else id not in facts.holders)
            and not (id not in facts.holders and facts.lacks(facts.devices[id]))
            and (not nodes or any(facts.for_node(facts.devices[id], node) for node in nodes))
        }
        one = classes[name]
        counted = (len(selected), len(untainted), len(free))
        shown = (one["devices"], one["allocatable"], one["free"])
        wrong += differences(f"capacity of class {name}", shown, counted)
        if not any(needs(facts.devices[id]) or facts.is_shared(id) for id in free):
            most = _largest(facts, free)
            if most is not None and not one["is_least"]:
                wrong += differences(f"largest claim of {name}", one["largest"], most)
    totals: dict = {}
    for place, published in facts.counters.items():
        if not facts.pools[place].is_usable:
            continue
        for (group, counter), total in published.items():
            left = max(facts.left(place)[group, counter], 0)
            sums = totals.setdefault((place[0], counter), [0, 0, 0])
            sums[0] += total
            sums[1] += left
            sums[2] += left if _is_stranded(facts, place, (group, counter)) else 0
    shown = {
        (one["driver"], one["counter"]): [amount(one[x]) for x in ("total", "left", "stranded")]
        for one in said["counters"]
    }
    return wrong + list(differences("counters of capacity", shown, totals))


def _is_stranded(facts: Facts, place, counter) -> bool:
    return not any(
        counter in needs(device) and id not in facts.holders and not facts.lacks(device)
        for id, device in facts.pools[place].devices.items()
    )


def _largest(facts: Facts, free: set) -> int | None:
    """The most free devices that one node may use, 32 at most; devices without counters."""
    most = 0
    for name, node in facts.all("nodes"):
        ready = [c for c in node["status"].get("conditions") or () if c["type"] == "Ready"]
        taints = node["spec"].get("taints") or ()
        if ready or taints or node["spec"].get("unschedulable"):
            return None
        verdicts = [facts.for_node(facts.devices[id], name) for id in free]
        if None in verdicts:
            return None
        most = max(most, sum(verdicts))
    return min(most, 32)


async def findings(facts: Facts, ask: Ask) -> list[str]:
    """How many pods wait, claims are unused and pools are incomplete."""
    items = (await ask("findings"))["items"]
    present = {
        kind: sum(one["present"] for one in items if one["kind"] == kind)
        for kind in ("WaitingPods", "RequestedPods", "UnusedClaims", "UnusablePools")
    }
    waiting = [
        name
        for name, pod in facts.pods.items()
        if not pod["spec"].get("nodeName")
        and pod["status"].get("phase") not in FINISHED
        and "deletionTimestamp" not in pod["metadata"]
    ]
    said = present["WaitingPods"] + present["RequestedPods"]
    wrong = list(differences("waiting pods", said, len(waiting)))
    named = {
        (name.split("/")[0], claim)
        for name, pod in facts.pods.items()
        if pod["status"].get("phase") not in FINISHED
        for claim in claims_of(pod)
    }
    unused = [
        name
        for name, claim in facts.claims.items()
        if not (claim.get("status") or {}).get("allocation")
        and "deletionTimestamp" not in claim["metadata"]
        and not claim["metadata"].get("ownerReferences")
        and tuple(name.split("/")) not in named
    ]
    if facts.pods:
        wrong += differences("unused claims", present["UnusedClaims"], len(unused))
    if facts.is_known:
        broken = [place for place, pool in facts.pools.items() if not pool.is_usable]
        wrong += differences("unusable pools", present["UnusablePools"], len(broken))
    for one in items:
        first = re.match(r"(\d+) (?:pod|claim|pool|device)s?\b", one["text"])
        if first:
            wrong += differences(one["text"], int(first[1]), one["count"])
    return wrong


def sentences(reason: dict) -> Iterator[str]:
    """The sentences of a tree of reasons."""
    yield reason["text"]
    for child in reason.get("children", ()):
        yield from sentences(child)


ONE_OF_MANY = re.compile(
    r"(?<![/\d-])\b1 (?:more )?(?:obsolete )?"
    r"(devices|pods|claims|nodes|slices|templates|pools|requests|rules|taints|copies|events)\b"
)


async def why(facts: Facts, ask: Ask, key: tuple[str, str, str]) -> list[str]:
    """The answer about one object of any kind."""
    kind, namespace, name = key
    answer = await ask("why", kind=kind, namespace=namespace, name=name)
    lines = list(sentences(answer["reasons"]))
    wrong = [
        f"why {kind} {name}: plural in {line!r}"
        for line in lines
        if ONE_OF_MANY.search(line) and not line.startswith("the recorded scheduler said")
    ]
    judge = _JUDGES.get(kind)
    if judge is not None:
        subject = f"{namespace}/{name}" if namespace else name
        wrong += [f"why {kind} {subject}: {one}" for one in judge(facts, subject, answer, lines)]
    return wrong


CONSUMERS_SHOWN = 3
"""Consumers of a claim that have a line each, whatever else is told of it."""


def _why_claim(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    tree = facts.claims[name]
    given, status = results(tree), tree.get("status") or {}
    outcome = "Allocated" if status.get("allocation") else "Pending"
    if "deletionTimestamp" in tree["metadata"]:
        outcome = "Terminating"
    yield from differences("outcome", answer["outcome"], outcome)
    if given and "device" in answer["text"]:
        count = len({device_of(one) for one in given})
        text = f"{count} device{'' if count == 1 else 's'}"
        text = f"{len(given)} shares of {text}" if count < len(given) else text
        yield from differences("text", answer["text"], text)
    for one in {one["request"]: one for one in given}.values():
        start = f"request {one['request']} has "
        said = [line for line in lines if line.startswith(start)]
        yield from differences(start, len(said), 1)
    consumers = reserved_for(tree)
    for pod in consumers if len(consumers) <= CONSUMERS_SHOWN else ():
        if not any(line.startswith(f"pod {pod}") for line in lines):
            yield f"no word of the reservation for {pod}"


def _why_class(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    if not facts.is_known:
        return
    selected = facts.selected(name)
    is_usable = all(pool.is_usable for pool in facts.pools.values())
    numbers = re.match(r"selects (\d+) of (\d+) device", answer["text"])
    if selected is not None and numbers and is_usable:
        counted = (len(selected), len(facts.devices))
        yield from differences("selects", tuple(map(int, numbers.groups())), counted)
    users = [
        claim
        for claim, tree in facts.claims.items()
        if any(ask["deviceClassName"] == name for ask in _asks(tree))
    ]
    held = [claim for claim in users if (facts.claims[claim].get("status") or {}).get("allocation")]
    said = next((line for line in lines if re.match(r"used by \d+ claim", line)), "")
    numbers = re.match(r"used by (\d+) claims?(?:, (\d+) allocated)?", said)
    shown = (int(numbers[1]), int(numbers[2] or 0)) if numbers else (0, 0)
    yield from differences("claims", shown, (len(users), len(held)))


def _asks(claim: dict) -> Iterator[dict]:
    for request in claim["spec"]["devices"].get("requests") or ():
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _why_slice(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    tree = facts.state["resourceslices", "", name]
    place = (tree["spec"]["driver"], tree["spec"]["pool"]["name"])
    pool = facts.pools[place]
    devices = [(*place, one["name"]) for one in tree["spec"].get("devices") or ()]
    if pool.is_known and tree["spec"]["pool"]["generation"] == pool.generation:
        yield from _allocated(facts, devices, lines)


def _allocated(facts: Facts, devices: list, lines: list[str]) -> Iterator[str]:
    held = [id for id in devices if id in facts.holders]
    pattern = r"(\d+) of (\d+) devices? (?:is|are) allocated(?:, to (.*))?$"
    said = [match for line in lines if (match := re.match(pattern, line))]
    if len(devices) == 1:
        state = "allocated" if held else "free"
        if not any(line.startswith(f"its only device is {state}") for line in lines):
            yield f"its only device is {state}, and no line says so"
    elif not devices:
        # A slice, or a whole pool, may have nothing but counters.
        if said or not any(line.startswith("no device is published here") for line in lines):
            yield "no device is there, and no line says so"
    else:
        shown = [(int(match[1]), int(match[2])) for match in said]
        yield from differences("allocated", shown, [(len(held), len(devices))])
    if said and said[0][3]:
        holders = {holder for id in held for holder in facts.holders[id]}
        named, more = _listed(said[0][3])
        yield from differences("number of holders", len(named) + more, len(holders))
        yield from differences("strangers among holders", set(named) - holders, set())
    tainted = sum(bool(facts.taints(id)) for id in devices)
    line = next((line for line in lines if re.match(r"\d+ devices? (is|are) tainted", line)), "0 ")
    yield from differences("tainted", int(line.split()[0]), tainted)


def _listed(text: str) -> tuple[list[str], int]:
    shown, _, rest = text.partition(" and ")
    return shown.split(", "), int(rest.split()[0]) if rest else 0


def _why_pool(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    place = tuple(name.split("/", 1))
    pool = facts.pools[place]
    if pool.is_known:
        outcome = "Usable" if pool.is_usable else "Invalid" if pool.is_complete else "Incomplete"
        yield from differences("outcome", answer["outcome"], outcome)
        yield from _allocated(facts, list(pool.devices), lines)


def _why_node(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    pods = facts.on_node(name)
    ended = [pod for pod in pods if facts.pods[pod]["status"].get("phase") in FINISHED]
    pattern = r"(\d+) pods? (?:is|are) on it(?:, (\d+) of them finished)?: (.*)"
    said = next((match for line in lines if (match := re.match(pattern, line))), None)
    shown = (int(said[1]), int(said[2] or 0)) if said else (0, 0)
    yield from differences("pods", shown, (len(pods), len(ended)))
    if said:
        named, more = _listed(said[3])
        yield from differences("number of pods named", len(named) + more, len(pods))
        yield from differences("strangers among pods", set(named) - set(pods), set())
    for line in lines:
        part = re.match(r"(\d+) of (\d+) devices? of pool (\S+) (?:is|are) for it", line)
        if part:
            pool = facts.pools[tuple(part[3].split("/", 1))]
            verdicts = [facts.for_node(one, name) for one in pool.devices.values()]
            if pool.is_known and None not in verdicts:
                counted = (sum(verdicts), len(verdicts))
                yield from differences(line, (int(part[1]), int(part[2])), counted)


def _why_device(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    id = tuple(name.split("/"))
    if not facts.pools[id[:2]].is_known:
        return
    words = {"held": "Allocated", "unusable": "Unusable", "tainted": "Tainted",
             "blocked": "Blocked", "free": "Free"}  # fmt: skip
    yield from differences("outcome", answer["outcome"], words[facts.state_of(id)])
    for line in lines:
        used = re.match(r"(\S+) of (\S+) of counter (\S+)/(\S+) is used", line)
        if used:
            counter = (used[3], used[4])
            total = facts.counters[id[:2]][counter]
            counted = (total - facts.left(id[:2])[counter], total)
            yield from differences(line, (amount(used[1]), amount(used[2])), counted)


def _why_rule(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    selected = [id for id in facts.devices if name in dict(facts.rules_of(id))]
    for line in lines:
        said = re.match(r"selects (\d+) (?:of \d+ )?device", line)
        if said:
            yield from differences(line, int(said[1]), len(selected))


def _why_pod(facts: Facts, name: str, answer: dict, lines: list[str]) -> Iterator[str]:
    tree = facts.pods[name]
    node, phase = tree["spec"].get("nodeName", ""), tree["status"].get("phase", "")
    outcome = answer["outcome"]
    if phase in FINISHED:
        yield from differences("outcome", outcome, phase)
    elif "deletionTimestamp" in tree["metadata"]:
        if outcome not in ("Terminating", "Evicted"):
            yield f"is being deleted, said {outcome}"
    elif not node and outcome == "Scheduled":
        decided = (answer.get("decision") or {}).get("outcome")
        yield from differences("decision", decided, "Scheduled")
    elif bool(node) != (outcome in ("Scheduled", "Running", "Bound", "Unstarted")):
        yield f"node {node!r}, said {outcome}: {answer['text']}"
    named = re.search(r"\bnode (\S+?)(?:[;,]|$| )", answer["text"])
    if named and node:
        yield from differences("node", named[1], node)
    for claim in claims_of(tree):
        full = f"{name.split('/')[0]}/{claim}"
        given = results(facts.claims.get(full, {}))
        if given and node and f"claim {claim}" not in lines:
            starts = (f"claim {claim} ", f"claim {claim}:", f"claim {claim},")
            if not any(line.startswith(starts) for line in lines):
                yield f"no word of its claim {claim}"


_JUDGES = {
    "pods": _why_pod,
    "resourceclaims": _why_claim,
    "deviceclasses": _why_class,
    "resourceslices": _why_slice,
    "devicetaintrules": _why_rule,
    "nodes": _why_node,
    "pool": _why_pool,
    "device": _why_device,
}

KINDS = frozenset(_JUDGES)
"""The kinds of which what `why` says is compared."""
