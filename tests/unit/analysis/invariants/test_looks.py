"""Snapshots of a cluster: only what one of them shows as a whole breaks a rule.

The verdicts follow from what an honest cluster can do between two snapshots: anything, in any
order. The objects of one snapshot are there together.
"""

import msgspec
import pytest

from app.analysis.verify.invariants import InvariantWatch
from app.domain.log import Actor, Origin
from app.domain.log.records import BASELINE_VERB
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import (
    FINALIZER,
    UNNAMED,
    device,
    key_of,
    pod,
    result,
    selector,
    slice_,
    user,
)

GONE = ("collapsed", "synthetic_delete", "no_rv")


class Album(Story):
    """A world of which only snapshots are kept: `next` begins another one."""

    def __init__(self):
        super().__init__()
        self.number = 1

    def next(self, hours=1):
        self.number += 1
        self.time += hours * 3_600_000_000

    def _append(self, kind, key, verb, after, losses, by):
        revision = super()._append(kind, key, verb, after, losses, by)
        event, is_new = self.events[-1], kind == "ObjectCreated"
        position = f"absent/{key}" if verb == "delete" else f"1[{revision}]"
        origin = Origin(
            source=f"{self.number}.json",
            position=position,
            time_quality="derived",
            losses=() if is_new else losses or ("collapsed",),
        )
        stamp = msgspec.structs.replace(
            event.stamp,
            origin=origin,
            verb=BASELINE_VERB if is_new else "observe",
            actor=Actor(user=UNNAMED),
        )
        self.events[-1] = msgspec.structs.replace(event, stamp=stamp)
        return revision

    def gone(self, resource, name):
        return self.remove(key_of(resource, name), losses=GONE)

    def given(self, name, *devices, pool="p", node=None, users=()):
        """A claim that has devices when it is first seen."""
        status = {"allocation": {"devices": {"results": [result(pool, each) for each in devices]}}}
        if node is not None:
            status["allocation"]["nodeSelector"] = node
        if users:
            status["reservedFor"] = list(users)
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"count": len(devices)}}]}}
        tree = {"metadata": {"finalizers": [FINALIZER]}, "spec": spec, "status": status}
        return self.put(key_of("resourceclaims", name), tree)

    def relabel(self, resource, name):
        """A change of an object that shows that a list has all of its kind."""
        key = key_of(resource, name)
        tree, write = self.change(key)
        tree["metadata"].setdefault("labels", {})["at"] = str(self.revision)
        return write()


def verdicts(album):
    watch = InvariantWatch()
    for event in album.events:
        watch.note(event)
    return {(each.rule, each.kind.value) for each in watch.violations()}


def begin():
    album = Album()
    album.publish("p", device("a"), device("b"))
    album.given("kept", "b")
    album.given("x", "a")
    return album


DOUBLE = "device-in-one-claim"


def test_device_that_one_claim_lost_and_another_got_between_two_snapshots_breaks_nothing():
    album = begin()
    album.next()
    album.given("y", "a")
    album.relabel("resourceclaims", "kept")
    album.gone("resourceclaims", "x")
    assert verdicts(album) == set()


def test_device_of_a_claim_that_only_a_partial_list_may_lack_is_no_sure_violation():
    album = begin()
    album.next()
    album.given("y", "a")
    assert verdicts(album) == {(DOUBLE, "unsure")}


def test_claim_that_a_list_of_others_passed_over_is_not_known_from_later_lists():
    album = begin()
    album.next()
    album.given("y", "b")
    album.next()
    album.relabel("resourceclaims", "y")
    assert verdicts(album) == {(DOUBLE, "unsure")}


def test_list_that_shows_a_claim_of_the_same_snapshot_changed_has_both():
    album = begin()
    album.next()
    album.given("y", "a")
    album.next()
    album.relabel("resourceclaims", "kept")
    assert verdicts(album) == {(DOUBLE, "broken")}


def test_device_that_two_claims_of_the_first_snapshot_have_is_a_violation():
    album = begin()
    album.given("y", "a")
    album.next()
    album.publish("q", device("a"))
    album.given("z", "a", pool="q")
    assert verdicts(album) == {(DOUBLE, "broken")}
    album.next()
    for name in ("x", "y"):
        album.gone("resourceclaims", name)
    assert verdicts(album) == {(DOUBLE, "broken")}


def test_device_that_a_claim_of_a_later_list_has_was_not_given_twice_before():
    """Both lists are judged together; x is gone in the one that shows y."""
    album = begin()
    album.next()
    album.given("y", "a")
    album.gone("resourceclaims", "x")
    assert verdicts(album) == set()


def test_device_that_two_claims_of_one_snapshot_have_is_a_violation():
    album = begin()
    album.next()
    album.relabel("resourceclaims", "kept")
    album.given("y", "a")
    assert verdicts(album) == {(DOUBLE, "broken")}


def test_device_that_two_new_claims_of_a_snapshot_have_is_a_violation():
    album = begin()
    album.publish("q", device("a"))
    album.next()
    album.given("y", "a", pool="q")
    album.given("z", "a", pool="q")
    assert verdicts(album) == {(DOUBLE, "broken")}


@pytest.mark.parametrize("is_there", [True, False])
def test_pod_that_a_later_snapshot_shows_is_not_late(is_there):
    album = begin()
    album.next()
    album.relabel("resourceclaims", "kept")
    album.given("y", users=[user("pod", "u-pod")])
    album.time += 3_600_000_000
    if is_there:
        album.put(key_of("pods", "pod"), pod("y"), uid="u-pod")
    album.relabel("resourceclaims", "x")
    rules = {(rule, kind) for rule, kind in verdicts(album) if rule == "reservation-names-pod"}
    assert rules == (set() if is_there else {("reservation-names-pod", "unsure")})


@pytest.mark.parametrize(("node", "expected"), [("n1", set()), ("n2", {"broken"})])
def test_pod_of_a_snapshot_is_on_the_node_of_its_devices(node, expected):
    album = begin()
    album.next()
    album.relabel("resourceclaims", "kept")
    album.given("y", "a", node=selector(node="n1"), users=[user("pod", "u-pod")])
    album.gone("resourceclaims", "x")
    album.put(key_of("pods", "pod"), pod("y", node=node), uid="u-pod")
    kinds = {kind for rule, kind in verdicts(album) if rule == "pod-on-allocated-node"}
    assert kinds == expected


def test_state_of_a_first_look_is_judged_as_before():
    album = begin()
    album.given("y", "a")
    assert verdicts(album) == {(DOUBLE, "broken")}


def listed_slice(album, name="p", *, made="00:00:00", changes=0, **spec):
    """A slice that was made at a time of the day, and written so many times since."""
    tree = slice_("p", device("a"), **spec)
    tree["metadata"] = {"creationTimestamp": f"2026-01-01T{made}Z"}
    album.put(key_of("resourceslices", name), tree, verb="baseline", generation=1 + changes)


@pytest.mark.parametrize(
    ("slices", "at", "expected"),
    [
        ([{}], "00:01:00", {"broken"}),
        ([{"count": 2}, {"count": 2}], "00:01:00", {"broken"}),
        # Another slice may have had the device: a third of the pool was deleted, or not recorded.
        ([{"count": 2}], "00:01:00", set()),
        ([{}, {}], "00:01:00", set()),
        # One of them may have had it: it was changed, or another one was there before.
        ([{"changes": 1}], "00:01:00", set()),
        ([{"count": 2}, {"count": 2, "changes": 1}], "00:01:00", set()),
        ([{"made": "00:00:45"}], "00:01:00", set()),
        ([{}], "00:00:15", set()),
        ([{}], "00:00:16", {"broken"}),
        ([{}], "", set()),
        # An older generation counts only until the newer one is there.
        ([{"generation": 2}, {"generation": 1}], "00:01:00", {"broken"}),
        ([{"generation": 2, "made": "00:00:50"}, {"generation": 1}], "00:01:00", set()),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_device_that_a_whole_pool_never_had_was_not_there_to_be_given(
    slices, at, expected, is_first
):
    album = Album()
    status = {"allocation": {"devices": {"results": [result("p", "nowhere")]}}}
    status["allocation"] |= {"allocationTimestamp": f"2026-01-01T{at}Z"} if at else {}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"count": 1}}]}}
    tree = {"metadata": {"finalizers": [FINALIZER]}, "spec": spec, "status": status}
    if is_first:
        album.put(key_of("resourceclaims", "x"), tree)
    for number, each in enumerate(slices):
        listed_slice(album, f"p-{number}", **each)
    if not is_first:
        album.put(key_of("resourceclaims", "x"), tree)
    kinds = {kind for rule, kind in verdicts(album) if rule == "allocated-device-existed"}
    assert kinds == expected
