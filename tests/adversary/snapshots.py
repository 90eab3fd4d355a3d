"""Snapshots of recordings, as `kubectl get` prints them, and what is wrong in one by itself.

A snapshot has no changes, authors or order: only what its objects say of each other can be wrong.
What another moment explains must not fail: a pod that ended just before its reservation was taken
back, a label of a namespace that was there once, an object that its list does not show any more.
"""

import gzip
import json
from collections.abc import Callable
from typing import NamedTuple

from tests.adversary.catalogue import FAILS, NOT_BLAMED, NOT_PASSED
from tests.adversary.log import Json, NotFound
from tests.shared_data import shared_path

Snapshot = list[Json]
Change = Callable[[Snapshot], None]

NOBODY = "00000000-0000-4000-8000-000000000007"
LONG_AGO = "2026-11-20T08:00:00Z"


class Row(NamedTuple):
    """A change of a snapshot and the verdict that was fixed before any run."""

    verdict: str
    change: Change


ROWS: dict[str, Row] = {}


def row(verdict: str) -> Callable[[Change], Change]:
    """Registers a change with its verdict."""

    def registered(change: Change) -> Change:
        ROWS[change.__name__] = Row(verdict, change)
        return change

    return registered


def snapshot(name: str) -> Snapshot:
    """The objects of a recording at the moment at which most claims and nodes are in use."""
    states: dict[tuple[str, str, str], Json] = {}
    most, count, best = 0, 0, ""
    for change in sorted(_changes(name), key=_version):
        thing = change["object"]
        metadata = thing["metadata"]
        key = thing["kind"], metadata.get("namespace", ""), metadata["name"]
        count -= key in states and _is_in_use(states.pop(key))
        if change["type"] != "DELETED":
            states[key] = thing
            count += _is_in_use(thing)
        if count > most:
            most, best = count, json.dumps([*states.values()])
    objects: Snapshot = json.loads(best)
    return objects


def _changes(name: str) -> Snapshot:
    files = sorted(shared_path("histories", name, "watch").glob("*.jsonl.gz"))
    return [json.loads(line) for file in files for line in gzip.open(file, "rt")]


def _version(change: Json) -> int:
    return int(change["object"]["metadata"]["resourceVersion"])


def _is_in_use(thing: Json) -> bool:
    is_allocated = thing["kind"] == "ResourceClaim" and "allocation" in thing.get("status", {})
    return is_allocated or (thing["kind"] == "Pod" and bool(thing["spec"].get("nodeName")))


def of_kind(objects: Snapshot, kind: str) -> Snapshot:
    """The objects of a kind."""
    return [each for each in objects if each["kind"] == kind]


def used(objects: Snapshot) -> Json:
    """The first claim that is reserved for a pod which is bound."""
    bound = {
        pod["metadata"]["uid"]
        for pod in of_kind(objects, "Pod")
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed")
    }
    for claim in of_kind(objects, "ResourceClaim"):
        users = claim.get("status", {}).get("reservedFor", [])
        if users and all(each["uid"] in bound for each in users):
            return claim
    raise NotFound("a claim in use")


def _results(claim: Json) -> Snapshot:
    results: Snapshot = claim["status"]["allocation"]["devices"]["results"]
    return results


def _slice(objects: Snapshot, result: Json) -> tuple[Json, Json]:
    for each in of_kind(objects, "ResourceSlice"):
        if each["spec"]["pool"]["name"] == result["pool"]:
            for device in each["spec"].get("devices", []):
                if device["name"] == result["device"]:
                    return each, device
    raise NotFound("the slice of a device")


def published_long_ago(objects: Snapshot) -> None:
    """Slices, and all that is not in use, are a day older than what is in use."""
    for each in of_kind(objects, "ResourceSlice"):
        each["metadata"] |= {"creationTimestamp": LONG_AGO, "generation": 1}


@row(NOT_BLAMED)
def nothing(objects: Snapshot) -> None:
    """The snapshot as it is."""


@row(NOT_BLAMED)
def older_slices(objects: Snapshot) -> None:
    """The slices were published long before."""
    published_long_ago(objects)


@row(FAILS)
def reserved_twice_for_one(objects: Snapshot) -> None:
    """A list by uid has an entry for each uid."""
    users = used(objects)["status"]["reservedFor"]
    users.append({**users[0]})


@row(FAILS)
def reserved_twice_by_two_names(objects: Snapshot) -> None:
    """A list by uid has an entry for each uid, whatever else the entry says."""
    users = used(objects)["status"]["reservedFor"]
    users.append({**users[0], "name": "other"})


@row(FAILS)
def reserved_by_another_name(objects: Snapshot) -> None:
    """The uid is that of a pod that the snapshot shows by its name."""
    used(objects)["status"]["reservedFor"][0]["name"] = "other"


@row(FAILS)
def reserved_for_a_pod_of_another_namespace(objects: Snapshot) -> None:
    """A pod uses claims of its own namespace, and the snapshot shows where the pod is."""
    claim = used(objects)
    other = {"name": "stranger", "namespace": "kube-system", "uid": NOBODY}
    metadata = {**other, "resourceVersion": "7", "creationTimestamp": LONG_AGO}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    objects.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    entry = {"resource": "pods", "name": "stranger", "uid": NOBODY}
    claim["status"]["reservedFor"].append(entry)


@row(NOT_BLAMED)
def reserved_for_a_pod_that_has_just_ended(objects: Snapshot) -> None:
    """The claim controller takes such a reservation back when it sees the end."""
    entry = {"resource": "pods", "name": "gone", "uid": NOBODY}
    used(objects)["status"]["reservedFor"].append(entry)


@row(FAILS)
def result_that_tolerates_what_nobody_asked_for(objects: Snapshot) -> None:
    """Requests never change, and a result copies the tolerations of its request."""
    tolerations = [{"key": "forged", "operator": "Exists", "effect": "NoExecute"}]
    _results(used(objects))[0]["tolerations"] = tolerations


def _allocated(objects: Snapshot) -> Snapshot:
    claims = of_kind(objects, "ResourceClaim")
    return [each for each in claims if each.get("status", {}).get("allocation")]


def _several(objects: Snapshot) -> Json:
    """A claim in use with several devices."""
    for claim in _allocated(objects):
        if claim["status"].get("reservedFor") and len(_results(claim)) > 1:
            return claim
    raise NotFound("a claim with several devices")


def _change_of_slices(objects: Snapshot, change: Change, *, is_later: bool) -> None:
    """Changes slices as they were published long ago, or as they became later (`is_later`)."""
    published_long_ago(objects)
    change(objects)
    for each in of_kind(objects, "ResourceSlice"):
        each["metadata"]["generation"] += is_later


def _shrink(objects: Snapshot) -> None:
    """Sets of counters that have one less than is drawn from each."""
    drawn: dict[tuple[str, ...], int] = {}
    for claim in _allocated(objects):
        for result in _results(claim):
            for each in _slice(objects, result)[1].get("consumesCounters", []):
                for name, counter in each["counters"].items():
                    place = result["pool"], each["counterSet"], name
                    if counter["value"].isdigit():
                        drawn[place] = drawn.get(place, 0) + int(counter["value"])
    if not drawn:
        raise NotFound("counters in use")
    for each in of_kind(objects, "ResourceSlice"):
        for counters in each["spec"].get("sharedCounters", []):
            for name, counter in counters["counters"].items():
                place = each["spec"]["pool"]["name"], counters["name"], name
                if drawn.get(place):
                    counter["value"] = str(drawn[place] - 1)


def _take_away(objects: Snapshot) -> None:
    """The pool has another device in place of the first one in use."""
    _slice(objects, _results(used(objects))[0])[1]["name"] = "another"


def _taint(objects: Snapshot) -> None:
    """A device in use has a taint, as old as its slice, that its claim does not tolerate."""
    one = {"key": "forged.example.com/broken", "effect": "NoSchedule", "timeAdded": LONG_AGO}
    _slice(objects, _results(used(objects))[0])[1]["taints"] = [one]


def _differ(objects: Snapshot) -> None:
    """Devices that a claim wants to agree in an attribute have other values of it."""
    claim = _several(objects)
    constraint = {"matchAttribute": "forged.example.com/group", "requests": []}
    claim["spec"]["devices"]["constraints"] = [constraint]
    for number, result in enumerate(_results(claim)):
        attributes = _slice(objects, result)[1].setdefault("attributes", {})
        attributes["forged.example.com/group"] = {"int": number}


def _share(objects: Snapshot) -> None:
    """A result has a share of a device that is given as a whole."""
    result = _results(used(objects))[0]
    if _slice(objects, result)[1].get("allowMultipleAllocations"):
        raise NotFound("a device that is given as a whole")
    result["shareID"] = NOBODY


def _slices_since(change: Change) -> None:
    """Registers what unchanged slices prove, and what slices that were changed later do not.

    Attributes may have been those of a patch, which is gone.
    """

    def always(objects: Snapshot) -> None:
        _change_of_slices(objects, change, is_later=False)

    def later(objects: Snapshot) -> None:
        _change_of_slices(objects, change, is_later=True)

    name = change.__name__.lstrip("_")
    ROWS[f"{name}_always"] = Row(NOT_PASSED if change is _differ else FAILS, always)
    ROWS[f"{name}_later"] = Row(NOT_BLAMED, later)


for each_change in (_shrink, _take_away, _taint, _differ, _share):
    _slices_since(each_change)
