"""Recordings altered by machine, a fourth time: what crosses two objects, two times or two places.

Each alteration is a function of the lines, which it changes in place, and of a seed, written from
the format of the lines alone; it returns what it is about and what it did in words. One that finds
nothing to alter in a recording raises `NothingToAlter`.
"""

import json
import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tests.conformance.further_tampering import SCHEDULER, bound, name_of, one_of
from tests.conformance.subtle_tampering import NothingToAlter
from tests.conformance.tampering import (
    Allocated,
    Lines,
    allocations,
    bodies,
    ends,
    of,
    results_of,
)

HOURS = timedelta(hours=5, minutes=30)
_NEVER = 2**62


class Told(NamedTuple):
    """An alteration: the objects of which a verdict must name at least one, and a description."""

    about: tuple[str, ...]
    text: str


Alter = Callable[[Lines, random.Random], Told]


# What no control plane does.


def swap_the_devices_of_two_claims(lines: Lines, draw: random.Random) -> Told:
    """Two claims of different nodes have each other's devices, in every line about them."""
    chosen = [each for each in allocations(lines) if len(each.results) == 1]
    pairs = [
        (one, other)
        for one in chosen
        for other in chosen
        if one.results[0]["pool"] < other.results[0]["pool"]
        if "shareID" not in one.results[0] and "shareID" not in other.results[0]
    ]
    one, other = one_of(pairs, draw)
    for claim, devices in ((one, other.results[0]), (other, one.results[0])):
        for tree in claim.trees:
            for field in ("driver", "pool", "device"):
                results_of(tree)[0][field] = devices[field]
    names = (one.claim[1], other.claim[1])
    return Told(names, f"{names[0]} and {names[1]} have changed devices")


def give_a_device_to_a_claim_of_later(lines: Lines, draw: random.Random) -> Told:
    """Two claims that ask for the same have each other's devices: one was made after the other had.

    The pair is the one whose allocation and creation are nearest, so only versions tell the order.
    """
    chosen = [
        each
        for each in allocations(lines)
        if len(each.results) == 1 and "shareID" not in each.results[0]
    ]
    made = {
        name_of(line): _version(line)
        for line in of(lines, "resourceclaims")
        if line["verb"] == "create"
    }
    pairs = [
        (made[other.claim] - _version(one.lines[0]), one, other)
        for one in chosen
        for other in chosen
        if one.trees[0]["spec"] == other.trees[0]["spec"]
        and one.results[0]["pool"] == other.results[0]["pool"]
        and one.results[0]["device"] < other.results[0]["device"]
        and made.get(other.claim, 0) > _version(one.lines[0])
    ]
    if not pairs:
        raise NothingToAlter
    _, one, other = min(pairs, key=lambda pair: pair[0])
    for claim, device in ((one, other.results[0]["device"]), (other, one.results[0]["device"])):
        for tree in claim.trees:
            results_of(tree)[0]["device"] = device
    return Told((one.claim[1], other.claim[1]), f"{one.claim[1]} has a device of later")


def give_a_device_to_a_claim_of_after_the_nomination(lines: Lines, draw: random.Random) -> Told:
    """Two claims that ask for the same have each other's devices.

    One of them was made when the pod of the other had been nominated, which is the last moment at
    which devices are chosen, and before that allocation was written.
    """
    chosen = [
        each
        for each in allocations(lines)
        if len(each.results) == 1 and "shareID" not in each.results[0]
    ]
    made = {
        name_of(line): _version(line)
        for line in of(lines, "resourceclaims")
        if line["verb"] == "create"
    }
    nominated = {name_of(line): _version(line) for line in _nominations(lines)}
    pairs = [
        (one, other)
        for one in chosen
        for other in chosen
        if one.trees[0]["spec"] == other.trees[0]["spec"]
        and one.results[0]["pool"] == other.results[0]["pool"]
        and one.results[0]["device"] < other.results[0]["device"]
        for user in _users(one)
        if nominated.get(user, _NEVER) < made.get(other.claim, 0) < _version(one.lines[0])
    ]
    one, other = one_of(pairs, draw)
    for claim, device in ((one, other.results[0]["device"]), (other, one.results[0]["device"])):
        for tree in claim.trees:
            results_of(tree)[0]["device"] = device
    return Told((one.claim[1], other.claim[1]), f"{one.claim[1]} has a device of later")


def nominate_before_the_device_is_given_back(lines: Lines, draw: random.Random) -> Told:
    """A pod is nominated just before another claim gives back the device that it gets then.

    The two writes change places, with their versions and times; the first one of the pod counts.
    """
    options = [
        (nomination, release, picked)
        for nomination in _nominations(lines)
        for picked in allocations(lines)
        if name_of(nomination) in _users(picked)
        for other in allocations(lines)
        if other.results[0]["device"] == picked.results[0]["device"]
        and other.results[0]["pool"] == picked.results[0]["pool"]
        for release in list(ends(lines, other))[:1]
        if _version(release) < _version(nomination) < _version(picked.lines[0])
        and _version(nomination) - _version(release) < 10
    ]
    nomination, release, picked = one_of(options, draw)
    _put_before(lines, nomination, release)
    return Told((picked.claim[1],), f"{picked.claim[1]} has a device that was not free")


def nominate_before_the_taint_is_gone(lines: Lines, draw: random.Random) -> Told:
    """A pod that tolerates nothing is nominated just before its device loses its taint."""
    tainted: dict[tuple[str, str, str], set[str]] = {}
    ends_of_taints = []
    for line in of(lines, "resourceslices"):
        spec = (line.get("responseObject") or {}).get("spec") or {}
        for device in spec.get("devices") or ():
            place = spec["driver"], spec["pool"]["name"], device["name"]
            keys = {
                taint["key"]
                for taint in device.get("taints") or ()
                if taint["effect"] in ("NoSchedule", "NoExecute")
            }
            if tainted.get(place, set()) - keys and not keys:
                ends_of_taints.append((line, place))
            tainted[place] = keys
    options = [
        (nomination, line, picked)
        for nomination in _nominations(lines)
        for picked in allocations(lines)
        if name_of(nomination) in _users(picked) and "tolerations" not in picked.results[0]
        for line, place in ends_of_taints
        if place == tuple(picked.results[0][field] for field in ("driver", "pool", "device"))
        and _version(line) < _version(nomination) < _version(picked.lines[0])
        and _version(nomination) - _version(line) < 10
    ]
    nomination, line, picked = one_of(options, draw)
    _put_before(lines, nomination, line)
    return Told((picked.claim[1],), f"{picked.claim[1]} has a device that was tainted")


def replace_the_scheduler_after_the_nomination(lines: Lines, draw: random.Random) -> Told:
    """The same, and nobody does anything for three seconds after the nomination."""
    told = nominate_before_the_device_is_given_back(lines, draw)
    users = [
        user for each in allocations(lines) if each.claim[1] in told.about for user in _users(each)
    ]
    first = min(line["stageTimestamp"] for line in _nominations(lines) if name_of(line) in users)

    def later(match: re.Match[str]) -> str:
        if match[0][1:] <= first if "." in match[0] else match[0][1:20] <= first[:19]:
            return match[0]
        at = datetime.fromisoformat(match[0][1:]) + timedelta(seconds=3)
        kind = "microseconds" if "." in match[0] else "seconds"
        return '"' + at.isoformat(timespec=kind).replace("+00:00", "Z")

    for number, line in enumerate(lines):
        lines[number] = json.loads(re.sub(r'"\d{4}-\d\d-\d\dT[\d:.]+Z', later, json.dumps(line)))
    return told


def keep_the_lease_of_the_scheduler(lines: Lines, draw: random.Random) -> Told:
    """The same, and the Lease of the scheduler has one holder before the pause and after it."""
    told = replace_the_scheduler_after_the_nomination(lines, draw)
    lines[:] = [lease_line(lines[0], 0), *lines, lease_line(lines[-1], 0)]
    return told


def lease_line(near: dict[str, Any], changes: int) -> dict[str, Any]:
    """The line in which the scheduler renews its Lease, whose holder changed so many times."""
    name = {"namespace": "kube-system", "name": "kube-scheduler"}
    tree = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {**name, "uid": "the-lease", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "holderIdentity": f"cp-1_{changes:08x}-93d1-4c57-8f0e-2a61c4f1d9b3",
            "leaseTransitions": changes,
            "renewTime": near["stageTimestamp"],
        },
    }
    place = {"resource": "leases", "apiGroup": "coordination.k8s.io", "apiVersion": "v1"}
    return {
        **{key: near[key] for key in ("kind", "apiVersion", "stageTimestamp")},
        "requestReceivedTimestamp": near["stageTimestamp"],
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "auditID": f"lease-{near['auditID']}",
        "verb": "update",
        "user": {"username": SCHEDULER},
        "objectRef": {**place, **name},
        "requestObject": tree,
        "responseObject": tree,
        "responseStatus": {"code": 200},
    }


def let_an_autoscaler_nominate(lines: Lines, draw: random.Random) -> Told:
    """A pod that gets a device later is nominated before that by another than the scheduler."""
    before = {line["auditID"]: _version(line) for line in _nominations(lines)}
    told = nominate_before_the_device_is_given_back(lines, draw)
    for line in _nominations(lines):
        if _version(line) < before[line["auditID"]]:
            line["user"] = {"username": "system:serviceaccount:kube-system:autoscaler"}
            line["userAgent"] = "autoscaler/v1"
    return told


def rename_the_scheduler(lines: Lines, draw: random.Random) -> Told:
    """The scheduler is a build of one's own: its account, program and manager have other names."""
    for number, line in enumerate(lines):
        text = json.dumps(line).replace("system:kube-scheduler", "acme:scheduling")
        lines[number] = json.loads(text.replace("kube-scheduler", "acme-scheduling"))
    return Told((), "the scheduler has another name in all places")


def annotate_and_label(key: str) -> Alter:
    """All pods and claims have one more annotation and label in every state, as webhooks add them.

    The requests for new objects do not have it.
    """

    def alter(lines: Lines, draw: random.Random) -> Told:
        for resource in ("pods", "resourceclaims"):
            for line in of(lines, resource):
                for tree in bodies(line):
                    if (tree.get("metadata") or {}).get("uid"):
                        for field in ("annotations", "labels"):
                            tree["metadata"].setdefault(field, {})[key] = "42"
        return Told((), f"pods and claims are annotated and labelled with {key}")

    return alter


def _nominations(lines: Lines) -> Lines:
    return [
        line
        for line in of(lines, "pods")
        if "nominatedNodeName" in ((line.get("requestObject") or {}).get("status") or {})
    ]


def _put_before(lines: Lines, moved: dict[str, Any], other: dict[str, Any]) -> None:
    """Puts a write before an earlier one, with versions and times."""
    first, last = _version(other), _version(moved)

    def renumbered(match: re.Match[str]) -> str:
        version = int(match[2])
        version = first if version == last else version + (first <= version < last)
        return f"{match[1]}{version}{match[3]}"

    begun = datetime.fromisoformat(other["requestReceivedTimestamp"])
    for field, before in (("requestReceivedTimestamp", 3), ("stageTimestamp", 1)):
        at = begun - timedelta(milliseconds=before)
        moved[field] = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
    for number, line in enumerate(lines):
        text = re.sub(r'("resourceVersion": ")(\d+)(")', renumbered, json.dumps(line))
        lines[number] = json.loads(text)
    lines.sort(key=lambda line: line["stageTimestamp"])


def write_an_allocation_again_with_other_devices(lines: Lines, draw: random.Random) -> Told:
    """Right after its allocation a claim is given a device that is not published."""
    taken = {_version(line) for line in lines}
    options = [each for each in allocations(lines) if _version(each.lines[0]) + 1 not in taken]
    picked = one_of(options, draw)
    line = picked.lines[0]
    again = json.loads(json.dumps(line))
    again["auditID"] = "00000000-0000-0000-0000-000000000011"
    for tree in bodies(again):
        results_of(tree)[0]["device"] = "no-such-device"
    again["responseObject"]["metadata"]["resourceVersion"] = str(_version(line) + 1)
    again["requestObject"]["metadata"]["resourceVersion"] = str(_version(line))
    lines.insert(lines.index(line) + 1, again)
    return Told((picked.claim[1],), f"{picked.claim} is allocated once more")


def restore_an_allocation_that_was_taken_away(lines: Lines, draw: random.Random) -> Told:
    """The write that takes an allocation away answers with it, as of the version before."""
    options = [
        (each, line)
        for each in allocations(lines)
        for line in list(ends(lines, each))[:1]
        if line["objectRef"].get("subresource") == "status"
    ]
    picked, line = one_of(options, draw)
    status = json.loads(json.dumps(picked.trees[0]["status"]))
    for each in of(lines, "resourceclaims"):
        for tree in bodies(each):
            if name_of(each) == picked.claim and each["stageTimestamp"] >= line["stageTimestamp"]:
                tree["status"] = status
    return Told((picked.claim[1],), f"{picked.claim} keeps its devices after its pod")


def allocate_to_another_namespace(lines: Lines, draw: random.Random) -> Told:
    """One allocation is reserved for a pod of the same name, whose uid is that of another one."""
    users = [
        (each, user)
        for each in allocations(lines)
        for user in each.trees[0]["status"].get("reservedFor") or ()
    ]
    pairs = [
        (one, theirs)
        for one, mine in users
        for other, theirs in users
        if mine["uid"] != theirs["uid"]
        and other.claim[0] != one.claim[0]
        and other.lines[0]["stageTimestamp"] < one.lines[0]["stageTimestamp"]
    ]
    picked, stranger = one_of(pairs, draw)
    for tree in picked.trees:
        if tree["status"].get("reservedFor"):
            tree["status"]["reservedFor"] = [stranger]
    return Told((picked.claim[1],), f"{picked.claim} is reserved for a pod of another namespace")


def evict_before_the_taint(lines: Lines, draw: random.Random) -> Told:
    """Nothing taints the devices until a pod with them has been evicted: the taints come after."""
    evictions = [line for line in of(lines, "pods") if "taint-eviction" in _user(line)]
    if not evictions:
        raise NothingToAlter
    last = max(line["stageTimestamp"] for line in evictions)
    for resource in ("resourceslices", "devicetaintrules"):
        for line in of(lines, resource):
            if line["stageTimestamp"] <= last:
                for tree in bodies(line):
                    _untaint(tree)
    names = tuple(sorted({name_of(line)[1] for line in evictions}))
    return Told(names, "no device has a taint before the last eviction")


def draw_more_from_a_counter(lines: Lines, draw: random.Random) -> Told:
    """Each device of one slice draws a thousand times as much as its counters have."""
    slices = [
        line
        for line in of(lines, "resourceslices")
        if any(_draws(device) for tree in bodies(line) for device in _devices(tree))
    ]
    pools = {result["pool"] for each in allocations(lines) for result in each.results} & {
        _pool(tree) for line in slices for tree in bodies(line)
    }
    pool = one_of(sorted(pools), draw)
    for line in slices:
        for tree in bodies(line):
            for device in _devices(tree) if _pool(tree) == pool else ():
                for draws_ in _draws(device):
                    for counter in draws_["counters"].values():
                        counter["value"] = "1000000000Ti"
    return Told((pool,), f"devices of {pool} draw more than there is")


def bind_to_a_node_that_was_not_there(lines: Lines, draw: random.Random) -> Told:
    """A binding without a claim's node: its line names a node that was never created."""
    line = one_of(list(bound(lines)), draw)
    line["requestObject"]["target"]["name"] = "no-such-node"
    return Told((name_of(line)[1],), f"the binding of {name_of(line)[1]} names no-such-node")


# What is missing, late, or dated otherwise: nobody is accused.


def date_a_user_in_another_time_zone(lines: Lines, draw: random.Random) -> Told:
    """All requests of the scheduler are dated five and a half hours ahead."""
    for line in lines:
        if _user(line) == SCHEDULER:
            for field in ("requestReceivedTimestamp", "stageTimestamp"):
                line[field] = _text(datetime.fromisoformat(line[field]) + HOURS)
    return Told((), "the scheduler's clock is in another time zone")


def drop_every_second_line_of_claims(lines: Lines, draw: random.Random) -> Told:
    """Every second write to a claim is lost."""
    claims = list(of(lines, "resourceclaims"))
    lost = {id(line) for line in claims[1::2]}
    lines[:] = [line for line in lines if id(line) not in lost]
    return Told((), f"{len(lost)} writes to claims are lost")


def lose_what_one_server_kept(lines: Lines, draw: random.Random) -> Told:
    """Of two servers' logs one is lost in the second half: every third line is missing there."""
    half = len(lines) // 2
    lines[:] = [line for n, line in enumerate(lines) if n < half or n % 3]
    return Told((), "every third line of the second half is lost")


def let_an_old_status_arrive_late(lines: Lines, draw: random.Random) -> Told:
    """The answer of an allocation comes with the version before it, as a server answers that wrote
    nothing: the allocation shows in the next write alone."""
    options = [
        each
        for each in allocations(lines)
        if any(line is not each.lines[0] and "update" in line["verb"] for line in each.lines)
    ]
    picked = one_of(options, draw)
    line = picked.lines[0]
    before = line["requestObject"]["metadata"]["resourceVersion"]
    known = [each for each in of(lines, "resourceclaims") if _version(each) == int(before)]
    if not known:
        raise NothingToAlter
    line["responseObject"] = json.loads(json.dumps(known[0]["responseObject"]))
    return Told((), f"the allocation of {picked.claim} is answered with the version before it")


# What changes nothing.


def drop_every_second_heartbeat(lines: Lines, draw: random.Random) -> Told:
    """Every second look that changes nothing is missing: reads, watches and refused requests."""
    idle = [line for line in lines if line["verb"] in ("get", "list", "watch")]
    lost = {id(line) for line in idle[::2]}
    lines[:] = [line for line in lines if id(line) not in lost]
    return Told((), f"{len(lost)} reads are missing")


def repeat_a_binding_that_is_refused(lines: Lines, draw: random.Random) -> Told:
    """A second binding of a bound pod to another node, which is refused."""
    first = one_of(list(bound(lines)), draw)
    again = json.loads(json.dumps(first))
    again["auditID"] = "00000000-0000-0000-0000-000000000012"
    again["requestObject"]["target"]["name"] = "another-node"
    status = {"metadata": {}, "status": "Failure", "reason": "Conflict", "code": 409}
    again["responseStatus"] = status
    again["responseObject"] = {"kind": "Status", "apiVersion": "v1", **status}
    lines.insert(lines.index(first) + 1, again)
    return Told((), f"a second binding of {name_of(first)[1]} is refused")


def write_stamps_with_an_offset(lines: Lines, draw: random.Random) -> Told:
    """All stamps are written as those of another time zone: the same instants."""
    zone = timedelta(hours=9)
    for line in lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            moved = datetime.fromisoformat(line[field]) + zone
            line[field] = f"{moved:%Y-%m-%dT%H:%M:%S.%f}+09:00"
    return Told((), "all stamps are of +09:00")


# What the lines say.


def _user(line: dict[str, Any]) -> str:
    return str(line["user"].get("username", ""))


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"


def _version(line: dict[str, Any]) -> int:
    answer = line.get("responseObject") or {}
    return int((answer.get("metadata") or {}).get("resourceVersion") or 0)


def _users(allocated: Allocated) -> list[tuple[str, str]]:
    """The namespaces and names of the pods for which a claim was allocated."""
    reserved = allocated.trees[0]["status"].get("reservedFor") or ()
    return [(allocated.claim[0], user["name"]) for user in reserved]


def _devices(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [device.get("basic", device) for device in tree.get("spec", {}).get("devices") or ()]


def _pool(tree: dict[str, Any]) -> str:
    return str(tree.get("spec", {}).get("pool", {}).get("name", ""))


def _draws(device: dict[str, Any]) -> list[dict[str, Any]]:
    return list(device.get("consumesCounters") or ())


def _untaint(tree: dict[str, Any]) -> None:
    for device in _devices(tree):
        device.pop("taints", None)
    taint = tree.get("spec", {}).get("taint", {})
    if taint.get("effect") == "NoExecute":
        taint["effect"] = "None"
