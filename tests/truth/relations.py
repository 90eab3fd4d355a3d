"""Relations between answers about one moment, which hold whatever the moment is."""

from collections.abc import Iterator

from tests.truth.answers import Ask, differences

CLAIM_DEVICES_MAX = 32


async def largest_fits(ask: Ask) -> list[str]:
    """The largest claim of a class that fits does, and none with one device more."""
    moment = (await ask("capacity"))["moments"][-1]
    wrong: list[str] = []
    for one in moment["classes"]:
        name, largest = one["name"], one["largest"]
        if one["is_least"]:
            continue
        if largest:
            fits = await _fit(ask, name, largest)
            wrong += _counts(fits)
            if not fits["count"] and _is_about_devices(fits):
                wrong.append(f"the largest claim of {name}, {largest} devices, doesn't fit")
        if largest < CLAIM_DEVICES_MAX:
            more = await _fit(ask, name, largest + 1)
            wrong += differences(f"claims for {largest + 1} of {name}", more["count"], 0)
    return wrong


async def _fit(ask: Ask, name: str, count: int) -> dict:
    parameters = {"class": name, "count": count}
    return (await ask("fit", **parameters))["items"][0]


_CAPACITY = {"cannot allocate all claims", "node(s) were unschedulable"}
"""Reasons of nodes for which the largest claim is no larger, either. A node whose taint a pod may
tolerate, or that has no room for one more pod, still has its devices."""


def _is_about_devices(fit: dict) -> bool:
    limit = fit["limit"]
    is_unfit = limit["kind"] == "unschedulable" and bool(limit.get("causes"))
    return is_unfit and limit["nodes"].keys() <= _CAPACITY


def _counts(fit: dict) -> Iterator[str]:
    on_nodes = sum(one["count"] for one in fit["nodes"])
    yield from differences(f"copies on the nodes, {fit['subject']}", on_nodes, fit["count"])
    if fit.get("at_most") is not None and fit["at_most"] < fit["count"]:
        yield f"{fit['subject']}: {fit['count']} fit, at most {fit['at_most']}"


async def named_are_as_found(ask: Ask) -> list[str]:
    """Objects that findings name are in the state that `why` says."""
    wrong: list[str] = []
    for one in (await ask("findings"))["items"]:
        states = _STATES.get(one["kind"])
        for place in one["objects"] if states and one["present"] == one["count"] else ():
            answer = await ask(
                "why", kind=place["resource"], namespace=place["namespace"], name=place["name"]
            )
            # A moment between the decision and its writes has both.
            is_underway = (answer["decision"] or {}).get("outcome") in _UNDER_WAY
            if answer["outcome"] not in states and not is_underway:
                name = f"{place['resource']} {place['namespace']}/{place['name']}"
                wrong.append(f"{one['text']!r}, but {name} is {answer['outcome']}")
    return wrong


async def devices_are_as_mapped(ask: Ask) -> list[str]:
    """The taints of `view_devices`, and whether they keep claims off, are those of `map`."""
    rows = (await ask("views/devices", limit=5000))["items"]
    mapped = {
        (pool["driver"], pool["pool"], device["name"]): device
        for pool in (await ask("map"))["pools"]
        if not pool["problem"]
        for device in pool["devices"]
    }
    wrong: list[str] = []
    for row in rows:
        device = mapped.get((row["driver"], row["pool"], row["device"]))
        if device is not None:
            texts = [_text(taint) for taint in row["taints"]]
            name = "/".join((row["driver"], row["pool"], row["device"]))
            wrong += differences(f"taints of {name}", device["taints"], texts)
            if device["state"] in ("free", "blocked", "tainted"):
                is_tainted = device["state"] == "tainted"
                wrong += differences(f"{name} is blocked", row["blocked"], is_tainted)
    return wrong


def _text(taint: dict) -> str:
    value = f"={taint['value']}" if taint["value"] else ""
    return f"{taint['key']}{value}:{taint['effect']}"


_UNDER_WAY = ("Assumed", "Reserved", "Scheduled", "WaitingForBinding", "Error")

_STATES = {
    "WaitingPods": {"Unschedulable", "Pending", "Gated", "Waiting", "Preempting", "Unstarted"},
    "UnusedClaims": {"Pending"},
    "TaintedDevices": {"Allocated", "Tainted"},
    "UnusablePools": {"Incomplete", "Invalid"},
    "UnreadyNodes": {"NotReady", "Unknown", "Unreachable"},
}
