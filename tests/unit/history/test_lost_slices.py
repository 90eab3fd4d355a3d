"""Slices of which no line is left, as far as the devices of the other slices show them."""

import pytest

from app.domain.log.records import Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, audit, audit_records, tree

SLICES = ("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
DRIVER = "gpu.example.com"
COUNTERS = {"memory": {"value": "1"}}


def published(name, rv, count, *, draws="", sets=(), pool="p"):
    device = {"name": name}
    if draws:
        device["consumesCounters"] = [{"counterSet": draws, "counters": COUNTERS}]
    spec = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
        "allNodes": True,
        "devices": [device],
        "sharedCounters": [{"name": each, "counters": COUNTERS} for each in sets],
    }
    state = tree(SLICES, name, "", rv=rv, spec=spec)
    return audit("create", state, type_=SLICES, name=name, namespace="", second=rv)


def given(name, device, rv, pool="p"):
    asked = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
    result = {"request": "r", "driver": DRIVER, "pool": pool, "device": device}
    for number, status in enumerate(({}, {"allocation": {"devices": {"results": [result]}}})):
        state = tree(CLAIMS, name, rv=rv + number, spec={"devices": asked}, status=status)
        verb, part = ("update", "status") if number else ("create", "")
        yield audit(verb, state, type_=CLAIMS, name=name, subresource=part, second=rv + number)


def gaps(folder, *slices, claims=("x", "y"), first=5, devices=("a", "a")):
    space = tree(NAMESPACES, "default", rv=1)
    lines = [audit("create", space, type_=NAMESPACES, name="default", second=1), *slices]
    for number, (name, device) in enumerate(zip(claims, devices, strict=False)):
        lines += given(name, device, first + 2 * number)
    records = audit_records(folder, *lines)
    return [(each.resource, each.name) for each in records if each.op is Op.GAP]


def test_slice_with_the_counters_that_devices_draw_upon_is_missed(tmp_path):
    assert gaps(tmp_path, published("a", 3, 2, draws="s")) == [("resourceslices", "")]


@pytest.mark.parametrize(
    "slices",
    [
        # an incomplete pool, of which no device can be given
        (published("a", 3, 2),),
        (published("a", 3, 2, draws="s", sets=("s",)),),
        # a pool that is complete and wrong
        (published("a", 3, 1, draws="s"),),
        (published("a", 3, 2, draws="s"), published("b", 4, 2, draws="s")),
        # all of it is there
        (published("a", 3, 2, draws="s"), published("b", 4, 2, sets=("s",))),
    ],
    ids=["incomplete", "with its counters", "wrong", "wrong with two slices", "whole"],
)
def test_no_slice_is_missed_where_the_number_of_slices_alone_tells_of_it(slices, tmp_path):
    assert gaps(tmp_path, *slices) == []


def test_slice_that_one_claim_shows_is_not_missed(tmp_path):
    assert gaps(tmp_path, published("a", 3, 2, draws="s"), claims=("x",)) == []


def test_slice_that_no_version_is_left_for_is_not_missed(tmp_path):
    """Version 1 is of the namespace, so nothing was written between it and the slice."""
    assert gaps(tmp_path, published("a", 2, 2, draws="s"), first=3) == []


@pytest.mark.parametrize(
    "devices",
    [
        ("b", "c"),
        # Otherwise the scheduler gave devices of an incomplete pool, and one that is in no slice.
        ("a", "b"),
        ("b", "a"),
    ],
)
def test_slice_with_devices_that_claims_got_is_missed(devices, tmp_path):
    assert gaps(tmp_path, published("a", 3, 2), devices=devices) == [("resourceslices", "")]


def test_slice_with_a_device_that_the_only_claim_of_the_pool_got_is_not_missed(tmp_path):
    assert gaps(tmp_path, published("a", 3, 2), claims=("x",), devices=("b",)) == []


@pytest.mark.parametrize(
    ("slices", "devices"),
    [
        # the pool is complete
        ((published("a", 3, 1),), ("b", "c")),
        ((published("a", 3, 1),), ("a", "b")),
        # a slice of the pool has them
        ((published("b", 3, 3), published("c", 4, 3)), ("b", "c")),
    ],
    ids=["complete", "complete, one device", "published"],
)
def test_no_slice_is_missed_for_devices_of_a_mistake(slices, devices, tmp_path):
    assert gaps(tmp_path, *slices, devices=devices) == []


def removed(name, rv, count, **options):
    line = published(name, rv, count, **options)
    return {**line, "verb": "delete", "auditID": f"audit-delete-{rv}"}


def test_slice_that_is_missed_since_its_pool_was_made_anew(tmp_path):
    """What lines show of the slices before says nothing of those after it."""
    before = [
        published("a", 3, 2, draws="s"),
        published("b", 4, 2, sets=("s",)),
        removed("a", 5, 2, draws="s"),
        removed("b", 6, 2, sets=("s",)),
    ]
    again = published("a", 8, 2, draws="s"), published("b", 9, 2, sets=("s",))
    told = [gaps(tmp_path, *before, *lines, first=10) for lines in (again[:1], again[1:], again)]
    assert told == [[("resourceslices", "")], [("resourceslices", "")], []]


@pytest.mark.parametrize(("since", "is_missed"), [(30, True), (6, False)])
def test_slice_of_an_emptied_pool_is_missed_once_no_choice_is_in_flight(since, is_missed, tmp_path):
    before = [published("a", 3, 1), removed("a", 4, 1)]
    expected = [("resourceslices", "")] if is_missed else []
    assert gaps(tmp_path, *before, first=since) == expected


def test_gap_of_a_pool_that_was_made_anew_begins_with_its_end(tmp_path):
    lines = [published("a", 3, 1), removed("a", 4, 1)]
    for number, name in enumerate("xy"):
        lines += given(name, "a", 30 + 2 * number)
    records = audit_records(tmp_path, *lines)
    places = [each.op for each in records if each.resource == "resourceslices"]
    assert places == [Op.ADDED, Op.DELETED, Op.GAP]


@pytest.mark.parametrize(
    ("pools", "named"), [("p", [f"{DRIVER}/p"]), ("pq", ["", ""])], ids=["one", "two"]
)
def test_gap_names_the_only_pool_that_lacks_a_slice(pools, named, tmp_path):
    """Where two lack one, lines are lost here and there, and any pool may lack more."""
    space = tree(NAMESPACES, "default", rv=1)
    lines = [audit("create", space, type_=NAMESPACES, name="default", second=1)]
    for begin, pool in zip((10, 30), pools, strict=False):
        lines.append(published(f"{pool}-a", begin, 2, draws="s", pool=pool))
        lines += given(f"{pool}-x", "a", begin + 3, pool=pool)
        lines += given(f"{pool}-y", "a", begin + 5, pool=pool)
    records = audit_records(tmp_path, *lines)
    assert [each.pool for each in records if each.op is Op.GAP] == named


def test_pool_of_which_a_slice_stays_is_not_made_anew(tmp_path):
    """A device of the deleted slice was there, so the scheduler gave it too late."""
    lines = published("a", 3, 2), published("b", 4, 2), removed("b", 5, 2)
    assert gaps(tmp_path, *lines, first=30, devices=("b", "b")) == []


def renewed(name, second, generation, count=2):
    """A slice that is written anew with the next generation of its pool."""
    line = published(name, second, count)
    state = line["responseObject"]
    state["spec"]["pool"]["generation"] = generation
    state["metadata"]["generation"] = generation
    return {**line, "verb": "update", "auditID": f"renewed-{name}-{second}"}


PAIR = (published("a", 2, 2), published("b", 3, 2))


@pytest.mark.parametrize(
    ("slices", "claims", "first", "expected"),
    [
        ((*PAIR, renewed("a", 5, 2)), ("x", "y"), 25, [("resourceslices", "b")]),
        # One claim alone is a mistake, or was chosen before.
        ((*PAIR, renewed("a", 5, 2)), ("x",), 25, []),
        ((*PAIR, renewed("a", 5, 2)), ("x", "y"), 18, []),
        # The line is there, or the pool never was whole, or both are behind.
        ((*PAIR, renewed("a", 5, 2), renewed("b", 7, 2)), ("x", "y"), 25, []),
        ((PAIR[0], renewed("a", 5, 2)), ("x", "y"), 25, []),
        ((*PAIR, renewed("a", 5, 2, count=3)), ("x", "y"), 25, []),
    ],
    ids=["lost", "one claim", "in flight", "not lost", "alone", "of a third"],
)
def test_generation_that_one_slice_lacks_is_missed(slices, claims, first, expected, tmp_path):
    assert gaps(tmp_path, *slices, claims=claims, first=first) == expected
