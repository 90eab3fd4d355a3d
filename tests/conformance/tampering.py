"""Alterations of recordings, such as a person or a mistake may cause in an audit log.

An alteration is a function of the lines, which it changes in place, and of a seed; it returns a
description of the change. Each has one verdict that verification must give for any recording.
"""

import gzip
import itertools
import json
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import draws

Lines = list[dict[str, Any]]
Alter = Callable[[Lines, random.Random], str]


def read(path: Path) -> Lines:
    """The lines of an audit log."""
    return [msgspec.json.decode(line) for line in _texts(path)]


@lru_cache(maxsize=4)
def _texts(path: Path) -> list[bytes]:
    with gzip.open(path) as stream:
        return stream.readlines()


def write(lines: Lines, path: Path) -> Path:
    """The altered log as a file."""
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path


def long_by_day(rows: Iterable[Any], long: Sequence[str]) -> list[Any]:
    """The rows, those of the long recordings in turn; the short ones have each alteration."""
    values = [row if isinstance(row, tuple) else (row,) for row in rows]
    marks = {True: (draws.in_turn("rows of long recordings"),), False: ()}
    return [pytest.param(*row, marks=marks[row[0] in long]) for row in values]


def chosen(alter: Alter, names: Sequence[str], long: Sequence[str]) -> list[str]:
    """The recordings to try an alteration on: a short one by turns, or all (draws).

    A third of the alterations is tried on a long one, too, and those that fit no short one.
    """
    if draws.WHOLE:
        return list(names)
    turn = zlib.crc32(alter.__name__.encode())
    short, longer = (
        [name for name in names if (name in long) is is_long] for is_long in (False, True)
    )
    few = [short[turn % len(short)]] if short else []
    if longer and (not short or turn % 3 == 0):
        few.append(longer[turn // 3 % len(longer)])
    return few


def bodies(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that a line holds."""
    for name in ("requestObject", "responseObject"):
        if isinstance(line.get(name), dict):
            yield line[name]


def of(lines: Lines, resource: str) -> Iterator[dict[str, Any]]:
    """The lines about a resource that changed something."""
    for line in lines:
        about = line.get("objectRef", {})
        code = line.get("responseStatus", {}).get("code", 200)
        if about.get("resource") == resource and code < 300 and line["verb"] not in READS:
            yield line


READS = ("get", "list", "watch")


@dataclass
class Allocated:
    """An allocation of the log: its claim, its results, and the lines that show it."""

    claim: tuple[str, str]
    results: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    trees: list[dict[str, Any]]


def allocations(lines: Lines) -> list[Allocated]:
    """All allocations in order; a claim that is allocated twice has two."""
    found: list[Allocated] = []
    held: dict[tuple[str, str], Allocated] = {}
    for line in of(lines, "resourceclaims"):
        for tree in bodies(line):
            metadata = tree.get("metadata", {})
            claim = metadata.get("namespace", ""), metadata.get("name", "")
            allocation = tree.get("status", {}).get("allocation")
            if allocation is None:
                if line["verb"] == "update" and "status" in tree:
                    held.pop(claim, None)
                continue
            if claim not in held:
                results = json.loads(json.dumps(allocation["devices"]["results"]))
                held[claim] = Allocated(claim, results, [], [])
                found.append(held[claim])
            held[claim].lines.append(line)
            held[claim].trees.append(tree)
    return found


def results_of(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the allocation in a claim."""
    return tree["status"]["allocation"]["devices"]["results"]


def results_in(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of the allocation in a claim; none of one that is not allocated."""
    allocation = tree.get("status", {}).get("allocation") or {}
    return allocation.get("devices", {}).get("results") or []


def nothing(lines: Lines, draw: random.Random) -> str:
    return "nothing"


def rename_scheduler(lines: Lines, draw: random.Random) -> str:
    """Another user name and another program, as of a custom scheduler."""
    name = draw.choice(("system:serviceaccount:batch:volcano", "system:my-scheduler", "alice"))
    for line in lines:
        if line["user"]["username"] == "system:kube-scheduler":
            line["user"]["username"] = name
            line["userAgent"] = "scheduler/v1"
    return f"the scheduler is {name}"


def remove_authors(lines: Lines, draw: random.Random) -> str:
    for line in lines:
        line["user"] = {}
        line.pop("userAgent", None)
    return "no line names its user"


def give_unknown_device(lines: Lines, draw: random.Random) -> str:
    chosen = draw.choice(allocations(lines))
    for tree in chosen.trees:
        results_of(tree)[0]["device"] = "no-such-device"
    return f"{chosen.claim} has a device that is in no slice"


def give_device_twice(lines: Lines, draw: random.Random) -> str:
    """A claim has, as long as it has any, the device that another claim got just before."""
    chosen = allocations(lines)
    pairs = [
        (one, other)
        for one, other in itertools.pairwise(chosen)
        if one.claim != other.claim and len(one.results) == len(other.results) == 1
        if "shareID" not in one.results[0]
        if not any(
            line["stageTimestamp"] < other.lines[0]["stageTimestamp"] for line in ends(lines, one)
        )
    ]
    one, other = draw.choice(pairs)
    for tree in other.trees:
        for name in ("driver", "pool", "device"):
            results_of(tree)[0][name] = one.results[0][name]
    return f"{other.claim} has the device of {one.claim}"


def ends(lines: Lines, allocated: Allocated) -> Iterator[dict[str, Any]]:
    """The lines that remove an allocation."""
    begun = allocated.lines[0]["stageTimestamp"]
    for line in of(lines, "resourceclaims"):
        for tree in bodies(line):
            metadata = tree.get("metadata", {})
            is_same = (metadata.get("namespace", ""), metadata.get("name", "")) == allocated.claim
            is_free = "allocation" not in tree.get("status", {})
            if is_same and is_free and line["stageTimestamp"] > begun:
                yield line


def move_to_another_node(lines: Lines, draw: random.Random) -> str:
    chosen = [each for each in allocations(lines) if "nodeSelector" in selector_place(each)]
    picked = draw.choice(chosen)
    field = {"key": "metadata.name", "operator": "In", "values": ["another-node"]}
    for tree in picked.trees:
        term = {"matchFields": [field]}
        tree["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    return f"{picked.claim} selects another node than its pod's"


def selector_place(allocated: Allocated) -> dict[str, Any]:
    return allocated.trees[0]["status"]["allocation"]


def remove_finalizer(lines: Lines, draw: random.Random) -> str:
    chosen = draw.choice(allocations(lines))
    for line in of(lines, "resourceclaims"):
        for tree in bodies(line):
            metadata = tree.get("metadata", {})
            if (metadata.get("namespace"), metadata.get("name")) == chosen.claim:
                metadata.pop("finalizers", None)
    return f"{chosen.claim} has no finalizer"


def reserve_for_another(lines: Lines, draw: random.Random) -> str:
    chosen = [each for each in allocations(lines) if each.trees[0]["status"].get("reservedFor")]
    picked = draw.choice(chosen)
    for tree in picked.trees:
        for consumer in tree["status"].get("reservedFor", ()):
            consumer["uid"] = "00000000-0000-0000-0000-000000000000"
    return f"{picked.claim} is reserved for a pod that never was"


def _reserved(lines: Lines, draw: random.Random) -> Allocated:
    chosen = [each for each in allocations(lines) if each.trees[0]["status"].get("reservedFor")]
    return draw.choice(chosen)


def reserve_for_a_ghost(lines: Lines, draw: random.Random) -> str:
    """A claim is reserved for its pod and for a pod that never existed."""
    picked = _reserved(lines, draw)
    ghost = {"resource": "pods", "name": "ghost", "uid": "00000000-0000-0000-0000-000000000001"}
    for tree in picked.trees:
        tree["status"].setdefault("reservedFor", []).append(ghost)
    return f"{picked.claim} is reserved for a pod that never was, too"


def reserve_for_a_stranger(lines: Lines, draw: random.Random) -> str:
    """A claim is reserved for its pod and for an existing pod that does not name it."""
    picked = _reserved(lines, draw)
    begun = picked.lines[0]["stageTimestamp"]
    others = [
        line["responseObject"]["metadata"]
        for line in of(lines, "pods")
        if line["verb"] == "create" and not line["objectRef"].get("subresource")
        if line["stageTimestamp"] < begun and line["responseStatus"]["code"] == 201
        if line["objectRef"]["namespace"] == picked.claim[0]
    ]
    gone = {
        (line["objectRef"].get("namespace"), line["objectRef"].get("name"))
        for line in of(lines, "pods")
        if line["verb"] == "delete" and line["stageTimestamp"] < begun
    }
    users = {each["uid"] for each in picked.trees[0]["status"]["reservedFor"]}
    other = [
        each
        for each in others
        if each["uid"] not in users and (each["namespace"], each["name"]) not in gone
    ][-1]
    entry = {"resource": "pods", "name": other["name"], "uid": other["uid"]}
    for tree in picked.trees:
        if tree["status"].get("reservedFor"):
            tree["status"]["reservedFor"].append(entry)
    return f"{picked.claim} is reserved for {other['name']}, too"


def change_a_spec(lines: Lines, draw: random.Random) -> str:
    """From its allocation on, a claim has another spec, which is immutable."""
    picked = draw.choice(allocations(lines))
    begun = picked.lines[0]["stageTimestamp"]
    for line in of(lines, "resourceclaims"):
        for tree in bodies(line) if line["stageTimestamp"] >= begun else ():
            metadata = tree.get("metadata", {})
            if (metadata.get("namespace"), metadata.get("name")) == picked.claim and "spec" in tree:
                tree["spec"]["devices"]["config"] = [{"opaque": {"driver": "x", "parameters": {}}}]
    return f"the spec of {picked.claim} changes"


def allocate_what_is_being_deleted(lines: Lines, draw: random.Random) -> str:
    """The request that asks for the deletion is there, so nothing is missing."""
    picked = _reserved(lines, draw)
    first = picked.lines[0]
    marks = {
        "deletionTimestamp": first["stageTimestamp"][:19] + "Z",
        "deletionGracePeriodSeconds": 0,
    }
    asked = json.loads(json.dumps(first))
    asked["auditID"] = "00000000-0000-0000-0000-000000000003"
    asked |= {"verb": "delete", "user": {"username": "alice"}}
    del asked["requestObject"], asked["objectRef"]["subresource"]
    tree = asked["responseObject"]
    tree["status"] = {}
    allocated = int(tree["metadata"]["resourceVersion"])
    tree["metadata"]["resourceVersion"] = _version_before(lines, tree)
    since = int(tree["metadata"]["resourceVersion"])
    later = [
        each
        for line in of(lines, "resourceclaims")
        for each in bodies(line)
        if each.get("metadata", {}).get("uid") == tree["metadata"]["uid"]
        and since < int(each["metadata"]["resourceVersion"]) <= allocated
    ]
    for each in (tree, *later, *picked.trees):
        each["metadata"] |= marks
    # A server refuses a request upon a version before the deletion.
    for line in of(lines, "resourceclaims"):
        sent, written = (line.get(part, {}) for part in ("requestObject", "responseObject"))
        if written.get("metadata", {}).get("uid") == tree["metadata"]["uid"]:
            version = int(sent.get("metadata", {}).get("resourceVersion", since))
            if version < since < int(written["metadata"]["resourceVersion"]):
                sent["metadata"]["resourceVersion"] = str(since)
    lines.insert(lines.index(first), asked)
    return f"{picked.claim} is allocated while it is being deleted"


def _version_before(lines: Lines, tree: dict[str, Any]) -> str:
    """The last resource version before that of an object which no line has."""
    used = {
        each.get("metadata", {}).get("resourceVersion") for line in lines for each in bodies(line)
    }
    version = int(tree["metadata"]["resourceVersion"]) - 1
    while str(version) in used:
        version -= 1
    return str(version)


def bind_again(lines: Lines, draw: random.Random) -> str:
    """A pod is bound to another node a moment after it was bound."""
    bindings = [
        line
        for line in of(lines, "pods")
        if line["objectRef"].get("subresource") == "binding"
        and line["responseStatus"]["code"] < 300
    ]
    first = draw.choice(bindings)
    again = json.loads(json.dumps(first))
    again["auditID"] = "00000000-0000-0000-0000-000000000002"
    again["requestObject"]["target"]["name"] = "another-node"
    lines.insert(lines.index(first) + 1, again)
    return f"{first['objectRef']['name']} is bound twice"


def shrink_counters(lines: Lines, draw: random.Random) -> str:
    """From the beginning on, the counters are too small for the allocations."""
    for line in of(lines, "resourceslices"):
        for tree in bodies(line):
            for counter_set in tree.get("spec", {}).get("sharedCounters", ()):
                for counter in counter_set["counters"].values():
                    counter["value"] = "1"
    return "every counter is 1"


def write_amounts_otherwise(lines: Lines, draw: random.Random) -> str:
    """Quantities in other notations: `40Gi` as bytes."""
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9}

    def plain(text: str) -> str:
        for unit, factor in units.items():
            if text.endswith(unit) and text.removesuffix(unit).isdigit():
                return str(int(text.removesuffix(unit)) * factor)
        return f"{text}000m" if text.isdigit() else text

    for line in of(lines, "resourceslices"):
        for tree in bodies(line):
            spec = tree.get("spec", {})
            places = [each["counters"] for each in spec.get("sharedCounters", ())]
            for device in spec.get("devices") or ():
                places += [each["counters"] for each in device.get("consumesCounters", ())]
            for counters in places:
                for counter in counters.values():
                    counter["value"] = plain(counter["value"])
    return "counters are written in other units"


def swap_lines(lines: Lines, draw: random.Random) -> str:
    """Lines in another order, as log rotation and several servers leave them."""
    for place in range(0, len(lines) - 1, 2):
        lines[place], lines[place + 1] = lines[place + 1], lines[place]
    return "every two lines have changed places"


def repeat_lines(lines: Lines, draw: random.Random) -> str:
    """Every line twice, as when a log and a copy of it are read together."""
    lines[:] = [line for line in lines for _ in range(2)]
    return "every line is there twice"


def drop_bodies(lines: Lines, draw: random.Random) -> str:
    """One allocation was recorded at level Metadata."""
    chosen = draw.choice(allocations(lines))
    for line in chosen.lines:
        line["level"] = "Metadata"
        line.pop("requestObject", None)
        line.pop("responseObject", None)
    return f"the allocation of {chosen.claim} has no body"


RESTED_ON = (
    *("pods", "nodes", "deviceclasses", "devicetaintrules", "resourceslices", "events"),
    *("resourceclaims", "resourceclaimtemplates", "namespaces"),
)


def drop_bodies_beside(lines: Lines, draw: random.Random) -> str:
    """Kinds that no allocation depends on were recorded at level Metadata, as in many policies."""
    kinds: set[str] = set()
    for line in lines:
        kind = line.get("objectRef", {}).get("resource", "")
        if kind and kind not in RESTED_ON and line["verb"] not in READS:
            line["level"] = "Metadata"
            line.pop("requestObject", None)
            line.pop("responseObject", None)
            kinds.add(kind)
    return f"{', '.join(sorted(kinds))} have no bodies"


def drop_answers(lines: Lines, draw: random.Random) -> str:
    """All of the log is at level Request."""
    for line in lines:
        if line["level"] == "RequestResponse":
            line["level"] = "Request"
        line.pop("responseObject", None)
    return "no line has its answer"
