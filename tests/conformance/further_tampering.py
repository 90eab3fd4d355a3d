"""Further alterations of recordings, which `tampering` and `subtle_tampering` do not have.

Each alteration is a function of the lines, which it changes in place, and of a seed. It is written
from the format of the lines alone and shares no code with what judges it.
"""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from tests.conformance.subtle_tampering import NothingToAlter
from tests.conformance.tampering import Lines, allocations, bodies, of, results_of

SCHEDULER = "system:kube-scheduler"
EVICTOR = "system:serviceaccount:kube-system:device-taint-eviction-controller"
HALF_AN_HOUR = timedelta(minutes=30)
STRANGER = "mallory"


def name_of(line: dict[str, Any]) -> tuple[str, str]:
    """The namespace and name of the object of a line."""
    reference = line.get("objectRef", {})
    made = (line.get("responseObject") or {}).get("metadata") or {}
    return reference.get("namespace", ""), reference.get("name") or made.get("name", "")


def one_of(options: list[Any], draw: random.Random) -> Any:
    if not options:
        raise NothingToAlter
    return draw.choice(options)


# What no control plane does.


def swap_two_bindings(lines: Lines, draw: random.Random) -> str:
    """Two pods whose claims are on different nodes are bound to each other's node."""
    nodes = {
        (each.claim[0], user["name"]): each.results[0]["pool"]
        for each in allocations(lines)
        for user in each.trees[0]["status"].get("reservedFor") or ()
        if "nodeSelector" in each.trees[0]["status"]["allocation"]
    }
    bindings = [line for line in bound(lines) if name_of(line) in nodes]
    pairs = [
        (one, other) for one in bindings for other in bindings if node_of(one) < node_of(other)
    ]
    one, other = one_of(pairs, draw)
    first, second = node_of(one), node_of(other)
    move_pod(lines, name_of(one), second)
    move_pod(lines, name_of(other), first)
    return f"{name_of(one)[1]} and {name_of(other)[1]} have changed nodes"


def bind_to_another_node(lines: Lines, draw: random.Random) -> str:
    """A pod with a claim of one node is bound to another one, in every line about it."""
    users = {
        (each.claim[0], user["name"])
        for each in allocations(lines)
        for user in each.trees[0]["status"].get("reservedFor") or ()
        if "nodeSelector" in each.trees[0]["status"]["allocation"]
    }
    nodes = sorted({node_of(line) for line in bound(lines)} | {"another-node"})
    line = one_of([line for line in bound(lines) if name_of(line) in users], draw)
    other = draw.choice([node for node in nodes if node != node_of(line)])
    move_pod(lines, name_of(line), other)
    return f"{name_of(line)[1]} is bound to {other}"


def give_another_driver(lines: Lines, draw: random.Random) -> str:
    """One allocation names a driver that publishes nothing."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        results_of(tree)[0]["driver"] = "no-such.example.com"
    return f"{picked.claim} has a device of a driver that is not there"


def give_another_request(lines: Lines, draw: random.Random) -> str:
    """One allocation answers a request that its claim does not make."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        results_of(tree)[0]["request"] = "nobody-asked"
    return f"{picked.claim} has a device for a request that it does not make"


def tolerate_in_the_result_alone(lines: Lines, draw: random.Random) -> str:
    """One allocation tolerates what its claim does not."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        results_of(tree)[0]["tolerations"] = [{"key": "planted", "operator": "Exists"}]
    return f"the result of {picked.claim} tolerates what nobody asked for"


def ask_for_more_than_was_given(lines: Lines, draw: random.Random) -> str:
    """From the beginning a claim asks for one device more than it gets."""
    options = [
        each
        for each in allocations(lines)
        if all(
            "firstAvailable" not in request
            for request in each.trees[0]["spec"]["devices"].get("requests", ())
        )
    ]
    picked = one_of(options, draw)
    for line in of(lines, "resourceclaims"):
        if name_of(line) == picked.claim:
            for tree in bodies(line):
                for request in tree.get("spec", {}).get("devices", {}).get("requests", ()):
                    place = request.get("exactly", request)
                    if place.get("allocationMode", "ExactCount") == "ExactCount":
                        place["count"] = place.get("count", 1) + 1
    return f"{picked.claim} asks for more than it gets"


def reserve_before_allocation(lines: Lines, draw: random.Random) -> str:
    """A claim is reserved, from its finalizer on, before it has devices."""
    options = []
    for each in allocations(lines):
        users = each.trees[0]["status"].get("reservedFor")
        before = [
            line
            for line in of(lines, "resourceclaims")
            if name_of(line) == each.claim and line not in each.lines
            if line["verb"] == "update" and line["stageTimestamp"] < each.lines[0]["stageTimestamp"]
        ]
        if users and before:
            options.append((each, users, before[-1]))
    picked, users, line = one_of(options, draw)
    for tree in bodies(line):
        tree.setdefault("status", {})["reservedFor"] = users
    return f"{picked.claim} is reserved before it is allocated"


# What does not fit together.


def forget_an_end(lines: Lines, draw: random.Random) -> str:
    """The log lacks the end of a pod with devices; its claim is freed and deleted."""
    users = {
        (each.claim[0], user["name"])
        for each in allocations(lines)
        for user in each.trees[0]["status"].get("reservedFor") or ()
    }
    gone = {name_of(line) for line in of(lines, "pods") if line["verb"] == "delete"} & users
    picked = one_of(sorted(gone), draw)
    lines[:] = [
        line
        for line in lines
        if not (
            line["objectRef"].get("resource") == "pods"
            and line["verb"] == "delete"
            and name_of(line) == picked
        )
    ]
    return f"no line tells of the end of {picked[1]}"


def change_one_version_of_a_slice(lines: Lines, draw: random.Random) -> str:
    """In one of several versions of a slice a device has another attribute."""
    versions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in of(lines, "resourceslices"):
        if line["verb"] != "delete" and (line.get("responseObject") or {}).get("spec"):
            versions.setdefault(name_of(line), []).append(line)
    line = one_of([each[-1] for each in versions.values()], draw)
    for tree in bodies(line):
        for device in tree.get("spec", {}).get("devices") or ():
            device.get("basic", device).setdefault("attributes", {})["planted"] = {"bool": True}
    return f"a version of {name_of(line)[1]} has a planted attribute"


def remove_slices_of_a_node(lines: Lines, draw: random.Random) -> str:
    """The log has no lines about the slices of a node whose devices were allocated."""
    pool = one_of([result["pool"] for each in allocations(lines) for result in each.results], draw)
    lines[:] = [
        line
        for line in lines
        if not (
            line["objectRef"].get("resource") == "resourceslices"
            and any(
                tree.get("spec", {}).get("pool", {}).get("name") == pool for tree in bodies(line)
            )
        )
    ]
    return f"no slice of pool {pool} is there"


def cut_the_beginning(lines: Lines, draw: random.Random) -> str:
    count = len(lines) // 10
    del lines[:count]
    return f"the first {count} lines are missing"


def cut_the_middle(lines: Lines, draw: random.Random) -> str:
    count = len(lines) // 10
    begin = draw.randrange(count, len(lines) - 2 * count)
    del lines[begin : begin + count]
    return f"{count} lines from line {begin + 1} on are missing"


def shift_stamps_of_a_kind(lines: Lines, draw: random.Random) -> str:
    """All that concerns claims is dated half an hour late."""
    moved = 0
    for line in lines:
        if line["objectRef"].get("resource") == "resourceclaims":
            for field in ("requestReceivedTimestamp", "stageTimestamp"):
                line[field] = (
                    f"{datetime.fromisoformat(line[field]) + HALF_AN_HOUR:%Y-%m-%dT%H:%M:%S.%f}Z"
                )
            moved += 1
    if not moved:
        raise NothingToAlter
    return "requests about claims are dated half an hour late"


# What changes nothing.


def repeat_an_allocation(lines: Lines, draw: random.Random) -> str:
    """The line of an allocation is repeated at the end."""
    lines.append(json.loads(json.dumps(one_of(allocations(lines), draw).lines[0])))
    return "an allocation is told twice"


def cut_the_end(lines: Lines, draw: random.Random) -> str:
    count = len(lines) // 10
    del lines[-count:]
    return f"the last {count} lines are missing"


# Who wrote it.


def allocate_as_a_stranger(lines: Lines, draw: random.Random) -> str:
    """One allocation was written by another user in the form of the scheduler's writes."""
    picked = one_of(allocations(lines), draw)
    picked.lines[0]["user"] = {"username": STRANGER, "groups": ["system:authenticated"]}
    return f"{picked.claim} was allocated by {STRANGER}"


def evict_as_a_stranger(lines: Lines, draw: random.Random) -> str:
    """The eviction controller's writes about one evicted pod have another author."""
    pods = {name_of(line) for line in of(lines, "pods") if line["user"].get("username") == EVICTOR}
    picked = one_of(sorted(pods), draw)
    for line in of(lines, "pods"):
        if line["user"].get("username") == EVICTOR and name_of(line) == picked:
            line["user"] = {"username": STRANGER, "groups": ["system:authenticated"]}
    return f"{picked[1]} was evicted by {STRANGER}"


# What the lines say.


def bound(lines: Lines) -> Iterator[dict[str, Any]]:
    """The bindings of pods."""
    for line in of(lines, "pods"):
        if line["objectRef"].get("subresource") == "binding":
            yield line


def node_of(binding: dict[str, Any]) -> str:
    return binding["requestObject"]["target"]["name"]


def move_pod(lines: Lines, pod: tuple[str, str], node: str) -> None:
    """The pod is on another node, in every line about it."""
    for line in of(lines, "pods"):
        if name_of(line) != pod:
            continue
        for tree in bodies(line):
            if "target" in tree:
                tree["target"]["name"] = node
            if tree.get("spec", {}).get("nodeName"):
                tree["spec"]["nodeName"] = node
