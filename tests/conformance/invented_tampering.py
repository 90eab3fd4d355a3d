"""Recordings altered by machine, a fifth time: by what is published, asked for and tolerated.

Alterations have the form of those of `crossed_tampering`; one that finds nothing to alter in a
recording raises `NothingToAlter`.
"""

import random
from typing import Any

from tests.conformance.crossed_tampering import Told
from tests.conformance.further_tampering import SCHEDULER, bound, name_of, node_of, one_of
from tests.conformance.tampering import Allocated, Lines, allocations, bodies, of, results_of

TAINT = {"key": "planted", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}


# What no control plane does.


def allocate_from_an_incomplete_pool(lines: Lines, draw: random.Random) -> Told:
    """From the beginning a pool has one slice less than its slices say."""
    picked = one_of(allocations(lines), draw)
    pool = picked.results[0]["pool"]
    for tree in _slices(lines, pool):
        tree["spec"]["pool"]["resourceSliceCount"] += 1
    return Told((pool, picked.claim[1]), f"pool {pool} is not complete")


def tolerate_more_afterwards(lines: Lines, draw: random.Random) -> Told:
    """After its allocation a device is tolerated longer than it was."""
    picked = one_of([each for each in allocations(lines) if len(each.lines) > 2], draw)
    first = picked.lines[0]
    for line, tree in zip(picked.lines, picked.trees, strict=True):
        if line is not first:
            results_of(tree)[0]["tolerations"] = [{"key": "planted", "operator": "Exists"}]
    return Told((picked.claim[1],), f"the result of {picked.claim} is changed")


def give_admin_access(lines: Lines, draw: random.Random) -> Told:
    """A request for a device of its own gets one for administration."""
    picked = one_of(allocations(lines), draw)
    for tree in picked.trees:
        results_of(tree)[0]["adminAccess"] = True
    return Told((picked.claim[1],), f"{picked.claim} has admin access")


def give_a_share(lines: Lines, draw: random.Random) -> Told:
    """A device that is not shared is given in a share."""
    options = [each for each in allocations(lines) if "shareID" not in each.results[0]]
    picked = one_of(options, draw)
    for tree in picked.trees:
        results_of(tree)[0]["shareID"] = "00000000-0000-4000-8000-000000000021"
    return Told((picked.claim[1],), f"{picked.claim} has a share of a device")


def let_a_class_select_nothing(lines: Lines, draw: random.Random) -> Told:
    """From the beginning the class of an allocated claim selects no device."""
    used = {_class(each) for each in allocations(lines)}
    made = {name_of(line)[1] for line in of(lines, "deviceclasses") if line["verb"] == "create"}
    name = one_of(sorted(used & made), draw)
    for line in of(lines, "deviceclasses"):
        for tree in bodies(line) if name_of(line)[1] == name else ():
            if "spec" in tree:
                tree["spec"]["selectors"] = [{"cel": {"expression": "false"}}]
    claims = tuple(each.claim[1] for each in allocations(lines) if _class(each) == name)
    return Told(claims, f"class {name} selects nothing")


def forget_a_reservation(lines: Lines, draw: random.Random) -> Told:
    """A claim is never reserved for the pod that runs with it."""
    options = [each for each in allocations(lines) if each.trees[0]["status"].get("reservedFor")]
    picked = one_of(options, draw)
    for tree in picked.trees:
        tree["status"].pop("reservedFor", None)
    return Told((picked.claim[1],), f"{picked.claim} is reserved for nobody")


def taint_from_the_beginning(lines: Lines, draw: random.Random) -> Told:
    """An allocated device has a taint since long before, which nothing tolerates."""
    options = [each for each in allocations(lines) if not each.results[0].get("tolerations")]
    picked = one_of(options, draw)
    result = picked.results[0]
    for tree in _slices(lines, result["pool"]):
        for device in tree["spec"].get("devices") or ():
            if device["name"] == result["device"]:
                device.get("basic", device).setdefault("taints", []).append(TAINT)
    return Told((picked.claim[1],), f"{result['pool']}/{result['device']} is tainted")


def bind_to_a_cordoned_node(lines: Lines, draw: random.Random) -> Told:
    """The node of a bound pod takes no pods, in every line about the node."""
    made = {name_of(line)[1] for line in of(lines, "nodes") if line["verb"] == "create"}
    options = [line for line in bound(lines) if node_of(line) in made]
    line = one_of(options, draw)
    node = node_of(line)
    for each in of(lines, "nodes"):
        for tree in bodies(each) if name_of(each)[1] == node else ():
            if "spec" in tree or each["verb"] == "create":
                tree.setdefault("spec", {})["unschedulable"] = True
    pods = tuple(name_of(each)[1] for each in bound(lines) if node_of(each) == node)
    return Told(pods, f"{node} takes no pods")


# What is there after a gap.


def bind_elsewhere_unseen(lines: Lines, draw: random.Random) -> Told:
    """A pod is on another node when it is seen again: of its later states only two are left."""
    states: dict[tuple[str, str], Lines] = {}
    for line in of(lines, "pods"):
        is_bound = (line.get("responseObject") or {}).get("spec", {}).get("nodeName")
        if is_bound and line["verb"] in ("update", "patch"):
            states.setdefault(name_of(line), []).append(line)
    first, *lost, last = one_of([each for each in states.values() if len(each) > 2], draw)
    _lose(lines, lost)
    for line in [last, *of(lines[lines.index(last) + 1 :], "pods")]:
        for tree in bodies(line) if name_of(line) == name_of(first) else ():
            if tree.get("spec", {}).get("nodeName"):
                tree["spec"]["nodeName"] = "another-node"
    return Told((name_of(first)[1],), f"{name_of(first)[1]} is on another node after a gap")


def ask_otherwise_unseen(lines: Lines, draw: random.Random) -> Told:
    """The requests of a claim are of another class when it is seen again."""
    picked, last = _seen_again(lines, draw)
    for line in of(lines[lines.index(last) :], "resourceclaims"):
        for tree in bodies(line) if name_of(line) == picked.claim else ():
            for request in _exactly(tree):
                request["deviceClassName"] = "another.example.com"
    return Told((picked.claim[1],), f"the spec of {picked.claim} is another one after a gap")


def write_in_an_older_version_unseen(lines: Lines, draw: random.Random) -> Told:
    """A claim is made and answered in v1beta1, and seen again in another version."""
    picked, last = _seen_again(lines, draw)
    for line in of(lines[: lines.index(last)], "resourceclaims"):
        if name_of(line) != picked.claim:
            continue
        line["objectRef"]["apiVersion"] = "v1beta1"
        line["requestURI"] = line["requestURI"].replace("/v1/", "/v1beta1/")
        for tree in bodies(line):
            if tree.get("kind") == "ResourceClaim":
                tree["apiVersion"] = "resource.k8s.io/v1beta1"
            for request in tree.get("spec", {}).get("devices", {}).get("requests", ()):
                request.update(request.pop("exactly", {}))
    return Told((), f"{picked.claim} was made in v1beta1")


def _seen_again(lines: Lines, draw: random.Random) -> tuple[Allocated, dict[str, Any]]:
    """An allocated claim of which only the first line and the last ones are left; those."""
    options = []
    for each in allocations(lines):
        told = [line for line in of(lines, "resourceclaims") if name_of(line) == each.claim]
        writes = [line for line in told if line["verb"] in ("update", "patch")]
        if len(writes) > 1 and told[0]["verb"] == "create":
            options.append((each, writes))
    picked, writes = one_of(options, draw)
    last = writes[-1]
    _lose(lines, [line for line in writes if line is not last])
    return picked, last


def _lose(lines: Lines, lost: Lines) -> None:
    places = {id(line) for line in lost}
    lines[:] = [line for line in lines if id(line) not in places]


def _exactly(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests of a claim, in a version that has them flat or nested."""
    requests = tree.get("spec", {}).get("devices", {}).get("requests", ())
    return [each.get("exactly", each) for each in requests if "firstAvailable" not in each]


def _is_on_a_node(line: dict[str, Any]) -> bool:
    return bool((line.get("responseObject") or {}).get("spec", {}).get("nodeName"))


# What changes nothing.


def write_status_by_another_agent(lines: Lines, draw: random.Random) -> Told:
    """The scheduler's program has another name where it writes claims."""
    for line in of(lines, "resourceclaims"):
        if line["user"].get("username") == SCHEDULER:
            line["userAgent"] = "kubectl-edit/v1.37.1"
    return Told((), "the scheduler's requests name another program")


def write_null_for_what_is_absent(lines: Lines, draw: random.Random) -> Told:
    """Allocated claims have empty fields, as some clients write them."""
    for each in allocations(lines):
        for tree in each.trees:
            tree["status"]["devices"] = None
            tree["status"]["allocation"]["devices"]["config"] = (
                tree["status"]["allocation"]["devices"].get("config") or []
            )
    return Told((), "absent fields are null")


# What the lines say.


def _slices(lines: Lines, pool: str) -> list[dict[str, Any]]:
    return [
        tree
        for line in of(lines, "resourceslices")
        for tree in bodies(line)
        if tree.get("spec", {}).get("pool", {}).get("name") == pool
    ]


def _class(allocated: Allocated) -> str:
    """The device class of the first request of a claim."""
    request = allocated.trees[0]["spec"]["devices"]["requests"][0]
    return str(request.get("exactly", request).get("deviceClassName", ""))
