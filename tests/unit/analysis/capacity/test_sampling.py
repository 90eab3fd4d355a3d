"""The largest claims and stranded counters against a count by hand; which moments are taken."""

import itertools
import random

import pytest

from app.analysis.capacity import largest, sampling
from app.analysis.capacity.answers import CapacityMoment
from app.analysis.views import compiler_of
from app.domain.allocation.quirks import Quirks
from app.domain.log import Revision
from tests.cluster import DRIVER, Cluster
from tests.together import together
from tests.unit.analysis.capacity.test_fitting import cluster_of


def look(cluster: Cluster, steps_max: int = largest.STEPS_MAX) -> CapacityMoment:
    line = cluster.line
    devices = largest.devices_of(line.views)
    compiler = compiler_of(cluster.profile)
    return sampling.of(line.head.revision, line.now, devices, compiler, Quirks(), steps_max)


@pytest.mark.parametrize("seed", range(8))
def test_largest_claim_is_what_the_fullest_node_has_left(seed):
    chosen = random.Random(seed)
    counts = [chosen.randrange(7) for _ in range(3)]
    cluster = cluster_of(*counts)
    held = [chosen.randrange(count + 1) for count in counts]
    for number, count in enumerate(held):
        for one in range(count):
            cluster.claim(f"c-{number}-{one}")
            cluster.pod(
                f"p-{number}-{one}",
                claim=f"c-{number}-{one}",
                nodeSelector={"kubernetes.io/hostname": f"n{number}"},
            )
    cluster.settle()
    left = [count - used for count, used in zip(counts, held, strict=True)]
    (gpu,) = look(cluster).classes
    assert (gpu.devices, gpu.free, gpu.largest) == (sum(counts), sum(left), max(left))
    assert gpu.node == (f"n{left.index(max(left))}" if max(left) else "")

    devices = largest.devices_of(cluster.line.views)
    first = largest.emptiest_first(devices)
    assert [each["metadata"]["name"] for each in first.nodes] == [
        f"n{number}" for number in sorted(range(len(left)), key=lambda number: -left[number])
    ]
    compiler = compiler_of(cluster.profile)
    most = largest.by_class(first, compiler, Quirks())
    assert {name: one.count for name, one in most.items()} == {"gpu": max(left)}


def test_node_that_takes_no_pods_has_no_largest_claim():
    cluster = cluster_of(5, 2)
    cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    (gpu,) = look(cluster).classes
    assert (gpu.free, gpu.largest, gpu.node) == (7, 2, "n1")


def test_devices_of_a_node_that_is_not_there_are_not_free():
    cluster = cluster_of(5, 2)
    cluster.delete("nodes", "n0")
    (gpu,) = look(cluster).classes
    assert (gpu.devices, gpu.free, gpu.largest) == (7, 2, 2)
    cluster.slice("n9", devices=3, nodeName=None, allNodes=True)
    (gpu,) = look(cluster).classes
    assert (gpu.devices, gpu.free) == (10, 5)


def sliced(draws: list[int], total: int) -> Cluster:
    """A card whose partitions draw so much of its counter."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n1")
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool}
    counters = [{"name": "card", "counters": {"slices": {"value": str(total)}}}]
    devices = [
        {
            "name": f"part-{number}",
            "consumesCounters": [
                {"counterSet": "card", "counters": {"slices": {"value": str(amount)}}}
            ],
        }
        for number, amount in enumerate(draws)
    ]
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "sets", spec={**spec, "sharedCounters": counters}
    )
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "parts", spec={**spec, "devices": devices}
    )
    return cluster.settle()


@pytest.mark.parametrize("seed", range(15))
def test_largest_claim_of_partitions_is_the_largest_set_that_the_counter_holds(seed):
    chosen = random.Random(seed)
    total = chosen.randrange(2, 9)
    draws = [chosen.randrange(1, 5) for _ in range(chosen.randrange(2, 7))]
    (gpu,) = look(sliced(draws, total)).classes
    best = max(
        size
        for size in range(len(draws) + 1)
        if any(sum(subset) <= total for subset in itertools.combinations(draws, size))
    )
    assert gpu.largest == best
    assert gpu.free == sum(amount <= total for amount in draws)


@pytest.mark.parametrize("seed", range(10))
def test_counters_are_stranded_where_no_free_partition_can_draw_them(seed):
    chosen = random.Random(seed)
    total = chosen.randrange(4, 9)
    draws = [chosen.randrange(2, 5) for _ in range(4)]
    cluster = sliced(draws, total)
    cluster.claim("held")
    cluster.pod("holder", claim="held")
    cluster.settle()
    (device,) = cluster.devices_of("held")
    first = int(device.rpartition("-")[2])
    left = total - draws[first]
    free = [amount for number, amount in enumerate(draws) if number != first]
    (counter,) = look(cluster).counters
    assert (counter.driver, counter.counter) == (DRIVER, "slices")
    assert (counter.total, counter.left) == (str(total), str(left))
    assert counter.stranded == str(0 if any(amount <= left for amount in free) else left)


def test_search_that_is_given_up_says_so():
    draws = [7] * 14
    (short,) = look(sliced(draws, 20), steps_max=3).classes
    (whole,) = look(sliced(draws, 20)).classes
    assert (whole.largest, whole.is_least) == (2, False)
    assert short.is_least
    assert short.largest <= 2


@together(
    [*itertools.product([1, 2, 31, 32, 33, 100, 12_345, 1_000_000], [1, 2, 8, 32])],
    lambda row: f"{row[1]} of {row[0]}",
)
def test_moments_are_bounded_and_end_with_the_last(row):
    count, most = row
    revisions = sampling.sampled(Revision(count), most)
    assert 1 <= len(revisions) <= max(most, 1)
    assert revisions[-1] == count
    assert revisions == sorted(set(revisions))


def test_most_moments_stay_as_a_history_grows():
    before = set(sampling.sampled(Revision(900), 32))
    after = set(sampling.sampled(Revision(950), 32))
    assert len(before & after) >= len(before) - 1
