"""Recordings altered by machine, a sixth time: what policies, exports and newer servers change.

Each alteration is as in `crossed_tampering`.
"""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tests.conformance.crossed_tampering import Told
from tests.conformance.subtle_tampering import NothingToAlter
from tests.conformance.tampering import Lines, allocations, bodies, of, results_of

# What no control plane does.


def choose_a_later_device(lines: Lines, draw: random.Random) -> Told:
    """The last claim that could has a later device of its pool, which nobody ever holds.

    The first one that fits was given back before the claim was made.
    """
    every = allocations(lines)
    for each in reversed(every):
        results = each.results
        if len(results) != 1 or "shareID" in results[0] or "index" in str(each.trees[0]["spec"]):
            continue
        for name in _devices_after(lines, results[0]):
            if not any(
                name == other["device"] and other["pool"] == results[0]["pool"]
                for one in every
                if one.lines[-1]["stageTimestamp"] >= each.lines[0]["stageTimestamp"]
                for other in one.results
            ):
                for tree in each.trees:
                    results_of(tree)[0]["device"] = name
                return Told((each.claim[1],), f"{each.claim} has {name}")
    raise NothingToAlter


# What contradicts itself.


def give_two_claims_one_uid(lines: Lines, draw: random.Random) -> Told:
    """Two claims that are there at the same time have one uid in all lines."""
    every = allocations(lines)
    for one, other in pairwise(every):
        first, second = (each.trees[0]["metadata"]["uid"] for each in (one, other))
        if first == second:
            continue
        for line in of(lines, "resourceclaims"):
            for tree in (*bodies(line), {"metadata": line["objectRef"]}):
                if tree.get("metadata", {}).get("uid") == second:
                    tree["metadata"]["uid"] = first
        return Told((one.claim[1], other.claim[1]), f"{other.claim} has the uid of {one.claim}")
    raise NothingToAlter


# What is missing: nobody is accused.


def lose_bindings(lines: Lines, draw: random.Random) -> Told:
    """A policy that names `pods` and `pods/status` records no bindings."""
    return _without(lines, lambda ref: ref.get("subresource") == "binding")


def lose_statuses_of_pods(lines: Lines, draw: random.Random) -> Told:
    """A policy that names `pods` and `pods/binding` records no statuses of pods."""
    return _without(
        lines, lambda ref: (ref.get("resource"), ref.get("subresource")) == ("pods", "status")
    )


def lose_subresources(lines: Lines, draw: random.Random) -> Told:
    """A policy that names resources alone records no subresource."""
    return _without(lines, lambda ref: bool(ref.get("subresource")))


def lose_every_third_write_of_claims(lines: Lines, draw: random.Random) -> Told:
    """Every third write to a claim is lost."""
    written = [
        line
        for line in of(lines, "resourceclaims")
        if line["verb"] not in ("get", "list", "watch") and line["responseStatus"]["code"] < 300
    ]
    lost = {id(line) for line in written[2::3]}
    lines[:] = [line for line in lines if id(line) not in lost]
    return Told((), f"{len(lost)} writes to claims are lost")


# What changes nothing.


def show_fields_of_a_newer_release(lines: Lines, draw: random.Random) -> Told:
    """Stored objects have fields that this release does not know, at their root and in statuses."""
    for line in lines:
        for tree in bodies(line):
            if "metadata" in tree:
                tree["newerField"] = {"a": 1}
                if isinstance(tree.get("status"), dict):
                    tree["status"]["newerField"] = "b"
    return Told((), "objects have fields that are not known")


def write_null_for_every_absent_field(lines: Lines, draw: random.Random) -> Told:
    """Pods and claims have null or empty metadata and statuses, as some exporters write them."""
    for resource in ("pods", "resourceclaims"):
        for line in of(lines, resource):
            for tree in bodies(line):
                if "metadata" in tree:
                    for field, value in (
                        ("finalizers", None),
                        ("labels", {}),
                        ("annotations", None),
                    ):
                        tree["metadata"].setdefault(field, value)
                if resource == "resourceclaims" and isinstance(tree.get("status"), dict):
                    tree["status"].setdefault("reservedFor", None)
                    tree["status"].setdefault("allocation", None)
    return Told((), "absent fields are null or empty")


# What the lines say.


def _without(lines: Lines, is_lost: Callable[[dict[str, Any]], bool]) -> Told:
    kept = [line for line in lines if not is_lost(line.get("objectRef", {}))]
    if len(kept) == len(lines):
        raise NothingToAlter
    count = len(lines) - len(kept)
    lines[:] = kept
    return Told((), f"{count} lines are missing")


def _devices_after(lines: Lines, result: dict[str, Any]) -> list[str]:
    """The devices after that of a result in its pool, of the same model, that are not shared."""
    for line in of(lines, "resourceslices"):
        for tree in bodies(line):
            spec = tree.get("spec", {})
            if spec.get("pool", {}).get("name") != result["pool"] or "devices" not in spec:
                continue
            devices = {each["name"]: each.get("basic", each) for each in spec["devices"]}
            own = devices.get(result["device"], {})
            if "consumesCounters" in own or not own:
                continue
            return [
                name
                for name, each in devices.items()
                if name > result["device"]
                and "allowMultipleAllocations" not in each
                and _model(each) == _model(own)
            ]
    return []


def _model(device: dict[str, Any]) -> Any:
    return device.get("attributes", {}).get("model")
