"""Recordings altered by machine in ways that leave each single line plausible.

An error shows only when lines are compared: one name for two objects, an impossible order, a write
without a writer. Alterations have the same form as those of `tampering`; an alteration that finds
nothing to alter in a recording raises `NothingToAlter`.
"""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.conformance.tampering import (
    READS,
    Allocated,
    Lines,
    allocations,
    bodies,
    ends,
    of,
    results_of,
)

GONE_FOR = timedelta(seconds=15)
"""A reservation that is written so long after its pod went was decided by nobody (IN_FLIGHT)."""

APART = timedelta(seconds=16)
"""So far from an allocation no other claim was in flight that could have had its device."""


class NothingToAlter(Exception):
    """The recording has nothing that the alteration could change."""


# What changes nothing.


def rename_scheduler_midway(lines: Lines, draw: random.Random) -> str:
    """Another account from some line in the middle on, as after an upgrade."""
    since = draw.randrange(len(lines) // 3, 2 * len(lines) // 3)
    for line in lines[since:]:
        if line["user"]["username"] == "system:kube-scheduler":
            line["user"]["username"] = "system:serviceaccount:kube-system:scheduler-two"
            line["userAgent"] = "scheduler/v2"
    return f"the scheduler has another name from line {since + 1} on"


def swap_lines_of_one_time(lines: Lines, draw: random.Random) -> str:
    """Neighbours about different objects were answered in one microsecond; their RVs order them."""
    swapped = 0
    for place in range(draw.randrange(2), len(lines) - 1, 2):
        pair = lines[place : place + 2]
        if all(_version(line) for line in pair) and _about(pair[0]) != _about(pair[1]):
            pair[0]["stageTimestamp"] = pair[1]["stageTimestamp"] = max(
                line["stageTimestamp"] for line in pair
            )
            lines[place : place + 2] = reversed(pair)
            swapped += 1
    return f"{swapped} pairs have one time and have changed places"


def share_audit_ids(lines: Lines, draw: random.Random) -> str:
    """Two requests of one Audit-ID: clients may send the header."""
    for place in range(draw.randrange(2), len(lines) - 1, 2):
        lines[place + 1]["auditID"] = lines[place]["auditID"]
    return "every two lines have one auditID"


def drop_reads(lines: Lines, draw: random.Random) -> str:
    """What was only looked at was not recorded."""
    lines[:] = [line for line in lines if line["verb"] not in READS]
    return "no line is about a read"


def retype_unread_attribute(lines: Lines, draw: random.Random) -> str:
    """An attribute that no selector and no constraint names has another type from the beginning."""
    name = draw.choice(_attributes(lines, are_read=False))
    _retype(lines, name)
    return f"{name}, which nobody reads, has another type"


def shift_clock_of_a_server(lines: Lines, draw: random.Random) -> str:
    """Some users are served by another API server, whose clock goes wrong by seconds."""
    users = sorted({line["user"].get("username", "") for line in lines})
    served = set(draw.sample(users, len(users) // 2))
    shift = timedelta(seconds=draw.choice((-5, -2, 2, 5)))
    for line in lines:
        if line["user"].get("username", "") in served:
            for field in ("requestReceivedTimestamp", "stageTimestamp"):
                line[field] = _text(_time(line, field) + shift)
    return f"the clock for {sorted(served)} is {shift.total_seconds():g} s off"


def shift_all_stamps(lines: Lines, draw: random.Random) -> str:
    """All stamps of the log come from a wrong clock; the times in objects are right."""
    shift = timedelta(minutes=draw.choice((-61, -7, 7, 61)))
    for line in lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = _text(_time(line, field) + shift)
    return f"all stamps are {shift} off"


# What no control plane does.


def retype_read_attribute(lines: Lines, draw: random.Random) -> str:
    """An attribute by which a selector chose has another type: nothing could be chosen by it."""
    name = draw.choice(_attributes(lines, are_read=True))
    _retype(lines, name)
    return f"{name}, by which devices were chosen, has another type"


def move_to_a_later_equal(lines: Lines, draw: random.Random) -> str:
    """A claim has a free device that is as good as its own and comes after it.

    Whoever looks in the order of the slice comes to the first. No other claim gets that within
    seconds, so none can have been in flight for it.
    """
    published = _published(lines)
    chosen = allocations(lines)
    held = [(each, _span(lines, each)) for each in chosen]
    options = []
    for one, (begun, until) in held:
        if len(one.results) != 1 or "shareID" in one.results[0]:
            continue
        mine = one.results[0]
        others = [
            (_place(result), *span)
            for other, span in held
            for result in other.results
            if other is not one
        ]
        near = {place for place, *span in others if _meet(span, (begun - APART, begun + APART))}
        meanwhile = {place for place, *span in others if _meet(span, (begun, until))}
        line = published.get((mine["driver"], mine["pool"]), [])
        names = [device["name"] for device in line]
        if mine["device"] not in names or _place(mine) in near:
            continue
        at = names.index(mine["device"])
        options += [
            (one, device["name"])
            for device in line[at + 1 :]
            if _likeness(device) == _likeness(line[at])
            and (mine["driver"], mine["pool"], device["name"]) not in meanwhile
        ]
    if not options:
        raise NothingToAlter
    picked, device = draw.choice(options)
    before = picked.results[0]["device"]
    for tree in picked.trees:
        results_of(tree)[0]["device"] = device
    return f"{picked.claim} has {device} instead of {before}"


def bind_before_allocation(lines: Lines, draw: random.Random) -> str:
    """The pod was bound and answered before anybody wrote to its claims.

    It is earlier by more than the clocks of two servers may differ: a binding has no version. The
    pod was there: of a binding before the creation of its pod, only the time can be wrong.
    """
    bindings = {
        (line["objectRef"]["namespace"], line["objectRef"]["name"]): line
        for line in of(lines, "pods")
        if line["objectRef"].get("subresource") == "binding"
    }
    options = []
    for each in allocations(lines):
        consumers = [user["name"] for user in each.trees[0]["status"].get("reservedFor", ())]
        first = [line for line in of(lines, "resourceclaims") if _about(line)[1:] == each.claim]
        for name in consumers[:1]:
            binding = bindings.get((each.claim[0], name))
            writes = [line for line in first if line["user"] == each.lines[0]["user"]]
            if binding is None or not writes:
                continue
            at = _time(writes[0], "requestReceivedTimestamp") - timedelta(seconds=1.5)
            pod = next(
                line for line in of(lines, "pods") if _about(line)[1:] == (each.claim[0], name)
            )
            if _time(pod, "stageTimestamp") < at:
                options.append((binding, writes[0], at))
    if not options:
        raise NothingToAlter
    binding, write, at = draw.choice(options)
    lines.remove(binding)
    lines.insert(lines.index(write), binding)
    binding["requestReceivedTimestamp"] = _text(at)
    binding["stageTimestamp"] = _text(at + timedelta(milliseconds=10))
    return f"{binding['objectRef']['name']} is bound before its claim is allocated"


def reserve_for_who_went(lines: Lines, draw: random.Random) -> str:
    """Beside its pod a claim is reserved for one of its namespace that went long before."""
    gone = [
        (_time(line, "stageTimestamp"), line["responseObject"]["metadata"])
        for line in of(lines, "pods")
        if line["verb"] == "delete" and _is_last(line)
    ]
    options = [
        (each, metadata)
        for each in allocations(lines)
        for at, metadata in gone
        if each.trees[0]["status"].get("reservedFor")
        and metadata["namespace"] == each.claim[0]
        and _time(each.lines[0], "requestReceivedTimestamp") - at > GONE_FOR + GONE_FOR / 5
    ]
    if not options:
        raise NothingToAlter
    picked, metadata = draw.choice(options)
    entry = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
    for tree in picked.trees:
        if tree["status"].get("reservedFor"):
            tree["status"]["reservedFor"].append(entry)
    return f"{picked.claim} is reserved for {metadata['name']}, which has gone, too"


def defuse_rules(lines: Lines, draw: random.Random) -> str:
    """No rule ends pods, in any line about rules; the evictions stay."""
    changed = False
    for line in of(lines, "devicetaintrules"):
        for tree in bodies(line):
            changed |= _defuse(tree)
    if not changed:
        raise NothingToAlter
    return "no rule evicts"


def take_a_result_away(lines: Lines, draw: random.Random) -> str:
    """A claim that asks for several devices has one less than it asks for."""
    chosen = [each for each in allocations(lines) if len(each.results) > 1]
    if not chosen:
        raise NothingToAlter
    picked = draw.choice(chosen)
    for tree in picked.trees:
        results_of(tree).pop()
    return f"{picked.claim} has one device less than it asks for"


def forget_node_selector(lines: Lines, draw: random.Random) -> str:
    """An allocation of devices of one node may be used everywhere."""
    chosen = [
        each
        for each in allocations(lines)
        if "nodeSelector" in each.trees[0]["status"]["allocation"]
    ]
    if not chosen:
        raise NothingToAlter
    picked = draw.choice(chosen)
    for tree in picked.trees:
        tree["status"]["allocation"].pop("nodeSelector", None)
    return f"{picked.claim} selects no node"


# What does not fit together: something is not recorded, or is recorded wrongly.


def defuse_one_line(lines: Lines, draw: random.Random) -> str:
    """A rule is created without effect, and evicts by the next line, which was never written."""
    ruling = [
        line
        for line in of(lines, "devicetaintrules")
        if line["verb"] in ("create", "patch") and not line["objectRef"].get("subresource")
        if any(
            tree.get("spec", {}).get("taint", {}).get("effect") == "NoExecute"
            for tree in bodies(line)
        )
    ]
    if not ruling:
        raise NothingToAlter
    line = draw.choice(ruling)
    for tree in bodies(line):
        _defuse(tree)
    return f"the rule of {line['stageTimestamp']} has no effect in its own line"


def drop_an_allocation(lines: Lines, draw: random.Random) -> str:
    """The line that allocates a claim is lost."""
    picked = draw.choice(allocations(lines))
    lines.remove(picked.lines[0])
    return f"the allocation of {picked.claim} is lost"


def drop_a_release(lines: Lines, draw: random.Random) -> str:
    """The line that takes an allocation away is lost; what follows shows the claim without it."""
    options = [
        line
        for each in allocations(lines)
        for line in itertools.islice(ends(lines, each), 1)
        if line["objectRef"].get("subresource") == "status"
    ]
    if not options:
        raise NothingToAlter
    line = draw.choice(options)
    lines.remove(line)
    return f"the release of {line['objectRef']['name']} is lost"


def drop_a_slice(lines: Lines, draw: random.Random) -> str:
    """The log does not have a slice whose device was allocated."""
    picked = draw.choice(allocations(lines)).results[0]
    for line in list(of(lines, "resourceslices")):
        for tree in bodies(line):
            devices = tree.get("spec", {}).get("devices") or ()
            is_its = tree.get("spec", {}).get("pool", {}).get("name") == picked["pool"] and any(
                device["name"] == picked["device"] for device in devices
            )
            if is_its:
                lines.remove(line)
                break
    return f"the slice with {picked['pool']}/{picked['device']} was never published"


def change_uid(lines: Lines, draw: random.Random) -> str:
    """From its allocation on, a claim has another uid, which was never created."""
    picked = draw.choice(allocations(lines))
    begun = picked.lines[0]["stageTimestamp"]
    uid = "00000000-0000-0000-0000-000000000003"
    for line in of(lines, "resourceclaims"):
        for tree in bodies(line) if line["stageTimestamp"] >= begun else ():
            metadata = tree.get("metadata", {})
            if (metadata.get("namespace"), metadata.get("name")) == picked.claim:
                metadata["uid"] = uid
    return f"{picked.claim} has another uid since it is allocated"


def refuse_an_allocation(lines: Lines, draw: random.Random) -> str:
    """The write that allocated a claim was refused; what follows shows it allocated."""
    picked = draw.choice(allocations(lines))
    line = picked.lines[0]
    line["responseStatus"] = {
        "metadata": {},
        "status": "Failure",
        "reason": "Conflict",
        "code": 409,
    }
    line["responseObject"] = {"kind": "Status", "apiVersion": "v1", **line["responseStatus"]}
    return f"the allocation of {picked.claim} was refused"


# What the lines say.


def _about(line: dict[str, Any]) -> tuple[str, str, str]:
    reference = line.get("objectRef", {})
    made = (line.get("responseObject") or {}).get("metadata") or {}
    name = reference.get("name") or made.get("name", "")
    return reference.get("resource", ""), reference.get("namespace", ""), name


def _version(line: dict[str, Any]) -> str:
    """The resource version that a write gave its object; empty for all other lines."""
    if line["verb"] in READS or line["verb"] == "delete" or line["responseStatus"]["code"] >= 300:
        return ""
    return ((line.get("responseObject") or {}).get("metadata") or {}).get("resourceVersion", "")


def _time(line: dict[str, Any], field: str) -> datetime:
    return datetime.fromisoformat(line[field])


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def _place(result: dict[str, Any]) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def _span(lines: Lines, allocated: Allocated) -> tuple[datetime, datetime]:
    """The time of an allocation, and its latest possible end."""
    begun = _time(allocated.lines[0], "stageTimestamp")
    ended = [_time(line, "stageTimestamp") for line in ends(lines, allocated)]
    return begun, min(ended, default=_time(lines[-1], "stageTimestamp"))


def _meet(one: Sequence[datetime], other: Sequence[datetime]) -> bool:
    """True when two periods overlap."""
    return one[0] <= other[1] and other[0] <= one[1]


def _slices(lines: Lines) -> Iterator[dict[str, Any]]:
    for line in of(lines, "resourceslices"):
        for tree in bodies(line):
            if "spec" in tree:
                yield tree["spec"]


def _published(lines: Lines) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The devices of each pool that has one slice, in order, as they were first published."""
    pools: dict[tuple[str, str], list[dict[str, Any]]] = {}
    several: set[tuple[str, str]] = set()
    for spec in _slices(lines):
        pool = spec.get("driver", ""), spec.get("pool", {}).get("name", "")
        if spec.get("pool", {}).get("resourceSliceCount", 1) > 1:
            several.add(pool)
        pools.setdefault(pool, spec.get("devices") or [])
    return {pool: devices for pool, devices in pools.items() if pool not in several}


def _likeness(device: dict[str, Any]) -> str:
    """What of a device may matter to a request: all but its name and what numbers it."""
    held = device.get("basic", device)
    attributes = {
        name: value
        for name, value in held.get("attributes", {}).items()
        if name not in ("index", "uuid", "numa")
    }
    rest = {name: value for name, value in held.items() if name not in ("name", "attributes")}
    return json.dumps([attributes, rest], sort_keys=True)


def _attributes(lines: Lines, *, are_read: bool) -> list[str]:
    """Names of attributes that selectors and constraints name, or that none does.

    Those that are read are read for an allocated claim: by its own selector or that of its class.
    """
    names = {
        name
        for spec in _slices(lines)
        for device in spec.get("devices") or ()
        for name in device.get("basic", device).get("attributes", {})
    }
    written = json.dumps(lines)
    if not are_read:
        chosen = sorted(name for name in names if not _reads(written, name))
    else:
        classes = {
            tree["metadata"]["name"]: json.dumps(tree.get("spec"))
            for line in of(lines, "deviceclasses")
            for tree in bodies(line)
            if "metadata" in tree
        }
        asked = [json.dumps(_requests(each, classes)) for each in allocations(lines)]
        chosen = sorted(name for name in names if any(_reads(text, name) for text in asked))
    if not chosen:
        raise NothingToAlter
    return chosen


def _requests(allocated: Allocated, classes: dict[str, str]) -> list[Any]:
    """The requests of a claim that must hold for its devices, with the selectors of their class."""
    asked: list[Any] = []
    for tree in allocated.trees[:1]:
        for request in tree.get("spec", {}).get("devices", {}).get("requests", ()):
            exactly = request.get("exactly", request)
            if not request.get("firstAvailable"):
                asked.append([exactly, classes.get(exactly.get("deviceClassName", ""), "")])
    return asked


def _reads(text: str, name: str) -> bool:
    return any(f"{before}{name}" in text for before in ("].", "].?", "example.com/")) or (
        f"'{name}' in device" in text
    )


def _retype(lines: Lines, name: str) -> None:
    """Text becomes a number, everything else text."""
    for spec in _slices(lines):
        for device in spec.get("devices") or ():
            attributes = device.get("basic", device).get("attributes", {})
            if name in attributes:
                is_text = "string" in attributes[name]
                attributes[name] = {"int": 7} if is_text else {"string": "seven"}


def _defuse(tree: dict[str, Any]) -> bool:
    taint = tree.get("spec", {}).get("taint", {})
    if taint.get("effect") != "NoExecute":
        return False
    taint["effect"] = "None"
    return True


def _is_last(line: dict[str, Any]) -> bool:
    """Whether the deletion ended the pod immediately."""
    answer = line.get("responseObject") or {}
    options = line.get("requestObject") or {}
    return "metadata" in answer and options.get("gracePeriodSeconds") == 0
