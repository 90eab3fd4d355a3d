"""Classes, slices and rules whose last line is lost, as far as two allocations contradict it.

The sibling of `test_lost_slices`, which is about slices that no line shows.
"""

import pytest

from app.domain.log.records import Op, TimeQuality
from tests.unit.history.test_lost_slices import DRIVER, SLICES, given, published, removed
from tests.unit.history.worlds import (
    NAMESPACES,
    audit,
    audit_records,
    read_records,
    tree,
    watch,
    write_lines,
)

PODS = ("", "v1", "pods", "Pod")
CLASSES = ("resource.k8s.io", "v1", "deviceclasses", "DeviceClass")
RULES = ("resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule")
TAINT = {"key": "worn", "value": "v", "effect": "NoSchedule"}


BOUND = (("5", {}), ("8", {"nodeName": "n"}))
"""The versions of a pod, and what it is to do in each."""


def gaps_of(folder, *lines, claims=("x", "y"), first=10, **allocated):
    """The gaps after such lines, and two claims that get device a of pool p."""
    space = tree(NAMESPACES, "default", rv=1)
    made = [audit("create", space, type_=NAMESPACES, name="default", second=1), *lines]
    for number, name in enumerate(claims):
        for line in given(name, "a", first + 2 * number):
            status = line["responseObject"].get("status", {})
            for result in status.get("allocation", {}).get("devices", {}).get("results", ()):
                result.update(allocated)
            made.append(line)
    return [each for each in audit_records(folder, *made) if each.op is Op.GAP]


def places(gaps):
    return [(each.resource, each.name) for each in gaps]


def made_class(name, rv):
    state = tree(CLASSES, name, "", rv=rv, spec={})
    return audit("create", state, type_=CLASSES, name=name, namespace="", second=rv)


def tainted(rv):
    line = published("a", rv, 1)
    line["responseObject"]["spec"]["devices"][0]["taints"] = [TAINT]
    return line


def ruled(rv, verb="create", **selected):
    spec = {"deviceSelector": {"driver": DRIVER, **selected}, "taint": TAINT}
    state = tree(RULES, "rule", "", rv=rv, spec=spec)
    return audit(verb, state, type_=RULES, name="rule", namespace="", second=rv)


def ended(rv):
    """Some deletion: a log without any leaves them out, which says nothing about rules."""
    state = tree(NAMESPACES, "old", rv=rv)
    return audit("delete", state, type_=NAMESPACES, name="old", namespace="old", second=rv)


def test_class_that_no_line_shows_is_missed_where_others_are_shown(tmp_path):
    slice_ = published("a", 4, 1)
    (gap,) = gaps_of(tmp_path, made_class("other", 3), slice_, claims=("x",))
    assert (gap.resource, gap.name) == ("deviceclasses", "c")
    assert gap.message == "c is not in the log, and devices were given for it"
    assert gaps_of(tmp_path, made_class("c", 3), slice_) == []
    assert gaps_of(tmp_path, slice_) == []


def test_class_that_no_version_is_left_for_is_not_missed(tmp_path):
    lines = made_class("other", 2), published("a", 3, 1)
    assert gaps_of(tmp_path, *lines, claims=("x",), first=4) == []


TOLERATED = [{"key": "worn", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("allocated", "is_missed"),
    [
        ({}, True),
        ({"tolerations": TOLERATED}, False),
        ({"tolerations": [{"key": "torn", "operator": "Exists"}]}, True),
        ({"adminAccess": True}, False),
    ],
    ids=["untolerated", "tolerated", "another tolerated", "administrative"],
)
def test_last_line_that_forbids_what_two_claims_got_is_not_the_last_write(
    allocated, is_missed, tmp_path
):
    for lines, place in (
        ((tainted(3),), ("resourceslices", "a")),
        ((published("a", 3, 1), ruled(5), ended(6)), ("devicetaintrules", "rule")),
    ):
        gaps = gaps_of(tmp_path, *lines, **allocated)
        assert places(gaps) == [place] * is_missed
        for gap in gaps:
            assert gap.message.endswith("devices are tainted which several claims got later")


@pytest.mark.parametrize(
    "lines",
    [
        (published("a", 3, 1), ruled(5)),
        (published("a", 3, 1), ruled(5, pool="q"), ended(6)),
        (published("a", 3, 1), ruled(5), ruled(6, "delete")),
    ],
    ids=["a log without deletions", "a rule for another pool", "a rule that ended"],
)
def test_rule_that_may_be_gone_or_concerns_other_devices_is_not_missed(lines, tmp_path):
    assert places(gaps_of(tmp_path, *lines)) == []


def test_one_claim_against_the_last_line_is_a_mistake_of_the_scheduler(tmp_path):
    assert places(gaps_of(tmp_path, tainted(3), claims=("x",))) == []


def test_slice_that_is_published_again_is_one_of_its_pool(tmp_path):
    """Its pool is not empty when the other slice goes, so no slice without a line is missed."""
    lines = [published("a", 3, 2), published("b", 4, 2), removed("a", 5, 2)]
    lines += [published("a", 6, 2), removed("b", 7, 2)]
    assert places(gaps_of(tmp_path, *lines, first=30)) == []


def test_deletion_of_a_slice_without_its_body_is_read(tmp_path):
    bare = audit("delete", type_=SLICES, name="a", namespace="", second=5)
    assert places(gaps_of(tmp_path, published("a", 3, 1), bare, first=30)) == []


def test_gap_of_a_slice_without_a_line_has_no_time(tmp_path):
    (gap,) = gaps_of(tmp_path, published("a", 3, 2, draws="s"))
    assert (gap.observed_at, gap.time_quality) == (None, TimeQuality.NONE)
    assert "no line is about the slice with counters of pool p of gpu.example.com" in gap.message


def test_lost_class_in_a_log_whose_binding_has_the_version_of_a_watch_stream(tmp_path):
    """In a recording of two kinds versions prove no lost line, so none is noted."""
    made, bound = (tree(PODS, "p", rv=rv, spec=spec) for rv, spec in BOUND)
    target = {"kind": "Binding", "apiVersion": "v1", "target": {"kind": "Node", "name": "n"}}
    lines = [
        made_class("other", 3),
        published("a", 4, 1),
        audit("create", made, type_=PODS, name="p", second=5),
        *given("x", "a", 6),
        audit(
            "create",
            type_=PODS,
            name="p",
            subresource="binding",
            request=target,
            second=8,
            uid="uid-p",
        ),
    ]
    log = write_lines(tmp_path / "audit.log", lines)
    stream = write_lines(tmp_path / "pods.json", [watch("ADDED", made), watch("MODIFIED", bound)])
    records = read_records(log, stream)
    assert [each.resource_version for each in records if each.name == "p"] == ["5", "8"]
    assert not [each for each in records if each.op is Op.GAP]
