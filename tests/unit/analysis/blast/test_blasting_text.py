"""The page that `redra blast` prints."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from app.analysis.blast import text
from tests.cluster import Cluster
from tests.unit.analysis.blast.worlds import PATIENT, ask, put, rule, running, slice_spec


def page(*changes, cluster: Cluster | None = None, examples: int = 5) -> list[str]:
    return list(text.lines(ask(cluster or running(), *changes), examples))


def test_rule_is_told_on_a_page():
    assert page(rule(), examples=2) == [
        "DeviceTaintRule rule: would be created",
        "  its status would say PodsPendingEviction: 2 pods need to be evicted in 1 namespace.",
        "as of revision 44, 2026-01-02T03:00:00.000000Z",
        "pods: 2 would be evicted in 1 namespace (1 at once, 1 later, 1 tolerating it for ever)",
        "  default/plain on n1, at once: rule rule",
        "  default/patient on n1, after 60 s: rule rule",
        "  … 1 more; -o json has them",
        "claims: 3 concerned: 3 hold a tainted device",
        "devices: 4 tainted, 4 can no longer be allocated",
        "  gpu.example.com/n1/gpu-0 tainted example.com/bad:NoExecute (rule rule), "
        "held by default/plain-gpu-lc9hx",
        "  gpu.example.com/n1/gpu-1 tainted example.com/bad:NoExecute (rule rule), "
        "held by default/patient-gpu-rt4dq",
        "  … 2 more; -o json has them",
        "pools that change: 2",
        "  gpu.example.com/n1: 2 → 0 allocatable, 0 free",
        "  gpu.example.com/n2: 2 → 0 allocatable, 1 → 0 free",
        "classes that change: 1",
        "  gpu: 4 devices, 4 → 0 allocatable, 1 → 0 free",
    ]


def test_page_is_short_however_much_there_is():
    cluster = Cluster()
    cluster.device_class()
    cluster.template("patient", tolerations=PATIENT)
    for number in range(12):
        cluster.node(f"n{number:02}")
        cluster.slice(f"n{number:02}", devices=4)
        for pod in range(3):
            cluster.pod(f"pod-{number}-{pod}", template="patient")
    cluster.settle()
    told = page(rule(), cluster=cluster, examples=2)
    assert len(told) < 25
    assert "  … 34 more; -o json has them" in told
    assert "  … 10 more; -o json has them" in told


def test_pool_that_breaks_is_told_with_its_problem():
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    told = page(put("ResourceSlice", "n1-slice", slice_spec(devices, slices=2)))
    assert (
        "  gpu.example.com/n1: usable → incomplete (1 of 2 slices are there), "
        "2 → 0 allocatable, 0 free"
    ) in told


def test_proposal_that_changes_nothing_says_so():
    cluster = running()
    cluster.rule()
    cluster.settle()
    told = page(rule(), cluster=cluster)
    assert told[0] == "DeviceTaintRule rule: would stay as it is"
    assert "pods: none would be evicted" in told
    assert "claims: no allocated claim is concerned" in told


def test_pool_of_many_counters_stays_a_line():
    counters = {f"slice-{number}": {"value": "1"} for number in range(30)}
    drawn = [{"counterSet": "set", "counters": counters}]
    device = {"name": "part", "consumesCounters": drawn}
    before = Cluster()
    before.device_class()
    pool = {"driver": "gpu.example.com", "nodeName": "n1"}
    sets = {"sharedCounters": [{"name": "set", "counters": counters}]}
    for name, content in (("counters", sets), ("devices", {"devices": [device]})):
        spec = pool | {"pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2}} | content
        before.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    told = page(rule(), cluster=before)
    assert (
        "  gpu.example.com/n1: 1 → 0 allocatable, 1 → 0 free, "
        "set/slice-0 1 → 0, set/slice-1 1 → 0, set/slice-10 1 → 0, "
        "set/slice-11 1 → 0, set/slice-12 1 → 0, set/slice-13 1 → 0, … 24 more sums"
    ) in told


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        ({}, "0 can no longer be allocated"),
        ({"tainted": 2, "gone": 1}, "2 tainted, 1 gone, 0 can no longer be allocated"),
        (
            {"unallocatable": 2, "unselected": 1},
            "3 can no longer be allocated",
        ),
        ({"kept_out": 3, "kept_out_free": 1}, "3 out of reach of new pods (1 of them free)"),
        ({"other_class": 2}, "2 through other classes only"),
        (
            {"unselected": 1, "other_class": 2},
            "1 can no longer be allocated, 2 through other classes only",
        ),
        (
            {"allocatable": 2, "selected": 3},
            "0 can no longer be allocated, 5 can be allocated from then on",
        ),
        (
            {"new": 1, "selected": 1},
            "1 new, 0 can no longer be allocated, 1 can be allocated from then on",
        ),
        (
            {"untainted": 4, "let_in": 4},
            "4 untainted, 0 can no longer be allocated, 4 within reach of new pods from then on",
        ),
    ],
)
def test_devices_are_counted_by_what_becomes_of_them(totals: dict[str, int], line: str) -> None:
    radius: Any = SimpleNamespace(
        totals=Counter({f"devices_{name}": count for name, count in totals.items()})
    )
    assert text._devices(radius) == line
