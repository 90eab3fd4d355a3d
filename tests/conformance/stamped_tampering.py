"""Recordings altered by machine, a seventh time: what servers and controllers stamp on objects.

Each alteration is as in `crossed_tampering`.
"""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from tests.conformance.crossed_tampering import Told
from tests.conformance.further_tampering import one_of
from tests.conformance.subtle_tampering import NothingToAlter
from tests.conformance.tampering import Lines, allocations, bodies, of

CLAIM_CONTROLLER = "system:serviceaccount:kube-system:resource-claim-controller"

# What no server stores.


def report_about_another_device(lines: Lines, draw: random.Random) -> Told:
    """The driver reports in a claim about a device that the claim does not have."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        had = tree["status"]["allocation"]["devices"]["results"][0]
        device = {"driver": had["driver"], "pool": had["pool"], "device": "gpu-77"}
        tree["status"]["devices"] = [device]
    return Told((picked.claim[1],), f"{picked.claim} has a report about gpu-77")


def remove_the_protection_of_an_allocated_claim(lines: Lines, draw: random.Random) -> Told:
    """The claim controller removes the finalizer of the claim that was written last."""
    by_version = {_version(line.get("responseObject") or {}): line for line in lines}
    options = [
        (each, version)
        for each in allocations(lines)
        for version in _free_after(by_version, each.lines[-1]["responseObject"])
    ]
    if not options:
        raise NothingToAlter
    picked, version = max(options, key=lambda option: option[1])
    line, before = picked.lines[-1], by_version[version - 1]
    uid = line["responseObject"]["metadata"]["uid"]
    again = json.loads(json.dumps(line))
    again |= {name: before[name] for name in ("requestReceivedTimestamp", "stageTimestamp")}
    again["auditID"] = "00000000-0000-0000-0000-000000000012"
    again["user"] = {"username": CLAIM_CONTROLLER, "groups": ["system:authenticated"]}
    again["verb"] = "update"
    again["objectRef"].pop("subresource", None)
    again["requestObject"] = json.loads(json.dumps(line["responseObject"]))
    again["responseObject"]["metadata"]["resourceVersion"] = str(version)
    lines.insert(lines.index(before) + 1, again)
    for each in of(lines, "resourceclaims"):
        for tree in bodies(each):
            is_of_it = tree.get("metadata", {}).get("uid") == uid
            if is_of_it and (each is again or _version(each["responseObject"]) > version):
                tree["metadata"].pop("finalizers", None)
    return Told((picked.claim[1],), f"{picked.claim} loses its finalizer while it is allocated")


def _free_after(by_version: dict[int, dict[str, Any]], claim: dict[str, Any]) -> list[int]:
    """The first version that nothing has after that of a claim, if the claim is not written."""
    version = _version(claim) + 1
    while version in by_version:
        tree = by_version[version]["responseObject"]
        if tree["metadata"].get("uid") == claim["metadata"]["uid"]:
            return []
        version += 1
    return [version]


# What contradicts itself.


def allocate_before_the_creation(lines: Lines, draw: random.Random) -> Told:
    """A claim was allocated an hour before it was created, says its allocation."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        created = datetime.fromisoformat(tree["metadata"]["creationTimestamp"])
        stamp = (created - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        tree["status"]["allocation"]["allocationTimestamp"] = stamp
    return Told((picked.claim[1],), f"{picked.claim} was allocated before it was created")


def let_a_generation_jump(lines: Lines, draw: random.Random) -> Told:
    """The generation of an object of devices rises by six with one change."""
    return _shift_generation(lines, draw, 5)


def let_a_generation_stand_still(lines: Lines, draw: random.Random) -> Told:
    """The generation of an object of devices stays although its spec changes."""
    return _shift_generation(lines, draw, -1)


def let_a_generation_fall(lines: Lines, draw: random.Random) -> Told:
    """The generation of an object of devices falls when its spec changes."""
    return _shift_generation(lines, draw, -2)


def let_a_generation_rise_with_a_status(lines: Lines, draw: random.Random) -> Told:
    """The generation of a DeviceTaintRule rises when its status is written."""
    written = [
        line
        for line in of(lines, "devicetaintrules")
        if line["objectRef"].get("subresource") == "status" and "responseObject" in line
    ]
    return _shift(lines, one_of(written, draw), 1)


def _shift_generation(lines: Lines, draw: random.Random, by: int) -> Told:
    """Adds to the generation of one object from one change of its spec on."""
    last: dict[str, dict[str, Any]] = {}
    changed = []
    for line in sorted(_shown(lines), key=lambda each: _version(each["responseObject"])):
        tree = line["responseObject"]
        before = last.get(tree["metadata"]["uid"])
        if before is not None and before["spec"] != tree["spec"]:
            changed.append(line)
        last[tree["metadata"]["uid"]] = tree
    return _shift(lines, one_of(changed, draw), by)


def _shift(lines: Lines, since: dict[str, Any], by: int) -> Told:
    metadata = since["responseObject"]["metadata"]
    for line in _shown(lines):
        tree = line["responseObject"]
        is_of_it = tree["metadata"]["uid"] == metadata["uid"]
        if is_of_it and _version(tree) >= _version(since["responseObject"]):
            tree["metadata"]["generation"] += by
    return Told((metadata["name"],), f"the generation of {metadata['name']} is {by:+} too high")


def _shown(lines: Lines) -> Iterator[dict[str, Any]]:
    """The lines that show a state of a slice or a rule."""
    for resource in ("resourceslices", "devicetaintrules"):
        for line in of(lines, resource):
            tree = line.get("responseObject") or {}
            if line["verb"] not in ("get", "list", "watch") and "spec" in tree:
                yield line


def _version(tree: dict[str, Any]) -> int:
    return int(tree.get("metadata", {}).get("resourceVersion") or 0)
