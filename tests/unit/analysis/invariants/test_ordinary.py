"""Writes that most claims go through, each with something that may be wrong with it.

A pod names a claim, gets a device by it, runs, and gives it back. One write of that is changed in
one or two ways; what is right is said by brute force.
"""

import itertools

import msgspec
import pytest

from app.analysis.verify.invariants import Switches
from tests import draws
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.test_against_model import watched
from tests.unit.analysis.invariants.worlds import (
    FINALIZER,
    GOING,
    World,
    claim,
    device,
    key_of,
    result,
    selector,
    slice_,
    user,
)

POD, CLAIM, OTHER = (key_of("pods", "p"), key_of("resourceclaims", "c"), key_of("pods", "q"))
OTHER_CLAIM, SLICE = key_of("resourceclaims", "d"), key_of("resourceslices", "s")


def reserve(tree, *entries):
    tree["status"]["reservedFor"] = list(entries)


def first(tree):
    return tree["status"]["allocation"]["devices"]["results"][0]


def entry(tree):
    return tree["status"]["reservedFor"][0]


GIVEN = {
    "nothing": lambda tree: None,
    "no finalizer": lambda tree: tree["metadata"].update(finalizers=[]),
    "another finalizer": lambda tree: tree["metadata"].update(finalizers=["x", FINALIZER]),
    "asked to go": lambda tree: tree["metadata"].update(GOING),
    "owned": lambda tree: tree["metadata"].update(ownerReferences=[{"uid": "u9"}]),
    "another spec": lambda tree: tree["spec"]["devices"]["requests"][0].update(name="other"),
    "of another request": lambda tree: first(tree).update(request="other"),
    "access of an administrator": lambda tree: first(tree).update(adminAccess=True),
    "a share": lambda tree: first(tree).update(shareID="s1"),
    "consumes": lambda tree: first(tree).update(consumedCapacity={"memory": "20Gi"}),
    "tolerates": lambda tree: first(tree).update(tolerations=[{"operator": "Exists"}]),
    "of no slice": lambda tree: first(tree).update(device="none"),
    "of no pool": lambda tree: first(tree).update(pool="none"),
    "held already": lambda tree: first(tree).update(device="held"),
    "draws": lambda tree: first(tree).update(device="part"),
    "shared": lambda tree: first(tree).update(device="shares"),
    "tainted": lambda tree: first(tree).update(device="tainted"),
    "two": lambda tree: tree["status"]["allocation"]["devices"]["results"].append(
        result("pool", "more")
    ),
    "for nobody": lambda tree: reserve(tree),
    "for another uid": lambda tree: entry(tree).update(uid="u9"),
    "for another name": lambda tree: entry(tree).update(name="q"),
    "for no pod": lambda tree: entry(tree).update(resource="jobs"),
    "for another group": lambda tree: entry(tree).update(apiGroup="batch"),
    "for two": lambda tree: tree["status"]["reservedFor"].append(user("q", "u9")),
    "odd list": lambda tree: tree["status"].update(reservedFor=7),
    "on another node": lambda tree: tree["status"]["allocation"].update(
        nodeSelector=selector(node="n2")
    ),
}
"""What may stand in the write by which the claim gets its device."""

RETURNED = {
    "nothing": lambda tree: tree.update(status={}),
    "null": lambda tree: tree.update(status={"allocation": None, "reservedFor": []}),
    "kept for the pod": lambda tree: tree["status"].pop("allocation"),
    "kept for nobody": lambda tree: tree["status"].pop("reservedFor"),
    "exchanged": lambda tree: first(tree).update(device="more"),
    "another spec": lambda tree: (
        tree.update(status={}),
        tree["spec"]["devices"]["requests"][0].update(name="other"),
    ),
    "to stay": lambda tree: (
        tree.update(status={}),
        tree["metadata"].pop("deletionTimestamp", None),
    ),
    "to go": lambda tree: (
        tree.update(status={}),
        tree["metadata"].update(GOING),
    ),
    "without finalizer": lambda tree: (tree.update(status={}), tree["metadata"].pop("finalizers")),
}
"""What may stand in the write by which it gives the device back."""

COURSES = ("plain", "bound before", "named by two", "finished late", "claimed anew", "listed")


def history(course, *changes, back=RETURNED["nothing"], early=None):
    """The events of a course; `changes` are of the write that gives, `early` of one before it."""
    world = World()
    options = {"verb": "baseline"} if course == "listed" else {}
    devices = [device(name) for name in ("whole", "more", "held")]
    devices.append(device("part", consumes={"units": "2"}))
    devices.append(device("shares", shared=True, capacity={"memory": "10Gi"}))
    taint = {"key": "k", "effect": "NoSchedule"}
    devices.append(device("tainted", taints=[taint]))
    world.put(SLICE, slice_("pool", *devices, counters={"units": "1"}), verb="baseline")
    held = claim()
    held["status"] = {"allocation": {"devices": {"results": [result("pool", "held")]}}}
    world.put(OTHER_CLAIM, held, verb="baseline")
    need = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    made = [{"name": "gpu", "resourceClaimName": "c"}]
    waiting = {"spec": {"resourceClaims": need}, "status": {"phase": "Pending"}}
    world.put(POD, waiting, after=20)
    world.put(CLAIM, claim(finalizers=()), **options)
    tree, write = world.change(POD)
    tree["status"]["resourceClaimStatuses"] = made
    write()
    uid = world.objects[POD]["metadata"]["uid"]
    if course == "named by two":
        world.put(OTHER, {**tree, "metadata": {}})
    if course == "bound before":
        tree, write = world.change(POD)
        tree["spec"]["nodeName"] = "n1"
        write()
    if early is not None:
        tree, write = world.change(CLAIM)
        early(tree)
        write()
    tree, write = world.change(CLAIM, after=1)
    tree["metadata"]["finalizers"] = [FINALIZER]
    if early is not None:
        tree["metadata"].pop("deletionTimestamp", None)
    results = {"devices": {"results": [result("pool", "whole")]}}
    tree["status"] = {"allocation": results | {"nodeSelector": selector(node="n1")}}
    reserve(tree, user("p", uid))
    for change in changes:
        change(tree)
    write()
    tree, write = world.change(POD, after=1)
    tree["spec"]["nodeName"] = "n1"
    write()
    if course != "finished late":
        tree, write = world.change(POD, after=90)
        tree["status"]["phase"] = "Succeeded"
        write()
    tree, write = world.change(CLAIM, after=1)
    back(tree)
    write()
    if course == "claimed anew":
        tree, write = world.change(CLAIM, after=1)
        tree["status"] = {"allocation": results}
        write()
    world.remove(POD, after=1)
    world.remove(CLAIM, after=90)
    world.put(OTHER, {"spec": {}}, after=90)
    return world.events


def in_order(changes):
    """The changes so that each finds what it changes: last is what empties the list of pods."""
    empties = (GIVEN["for nobody"], GIVEN["odd list"])
    return sorted(changes, key=lambda change: change in empties)


def assert_found(events):
    assert watched(events) == model.expected(events, Switches())


@draws.in_turn("ways")
def test_a_device_is_given_in_two_odd_ways():
    for one, other in itertools.combinations(GIVEN, 2):
        assert_found(history("plain", *in_order([GIVEN[one], GIVEN[other]])))


@draws.in_turn("ways")
@pytest.mark.parametrize("course", COURSES)
def test_a_device_is_given_back_in_an_odd_way(course):
    for given, back in itertools.product(GIVEN, RETURNED):
        if given not in ("for nobody", "odd list") or "kept" not in back:
            assert_found(history(course, GIVEN[given], back=RETURNED[back]))


@pytest.mark.parametrize("name", GIVEN)
def test_a_device_is_given_in_a_list(name):
    """What is listed came about in any order, so nobody is to blame for it."""
    events = history("plain", GIVEN[name])
    number = next(
        number
        for number, event in enumerate(events)
        if event.key == CLAIM and b'"allocation"' in event.body
    )
    stamp = msgspec.structs.replace(events[number].stamp, verb="baseline")
    events[number] = msgspec.structs.replace(events[number], stamp=stamp)
    assert_found(events)


@pytest.mark.parametrize("name", ["asked to go", "owned", "no finalizer"])
def test_a_claim_changes_back_when_it_gets_a_device(name):
    assert_found(history("plain", early=GIVEN[name]))
