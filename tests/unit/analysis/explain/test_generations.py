"""Since when a pool is incomplete: told only as far as the events of its slices reach."""

import pytest

from app.analysis.device_selectors import required_drivers
from app.analysis.explain.hardware import generations
from app.domain.cel import STORED, compile_expression
from app.domain.log import EventType
from tests.cluster import Cluster

POOL = ("gpu.example.com", "rack")


def publish(cluster, name, generation, of):
    """Write a slice of the pool with one device, for all nodes."""
    pool = {"name": "rack", "generation": generation, "resourceSliceCount": of}
    spec = {"driver": POOL[0], "pool": pool, "allNodes": True, "devices": [{"name": name}]}
    known = cluster.get("resourceslices", name, "")
    if known is None:
        cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    else:
        cluster.update("resourceslices", {**known, "spec": spec})
    cluster.wait(1)


def told(cluster, *, cut=0):
    """What is told about the pool, without the oldest `cut` events of slice `a`; its sub-lines."""
    slices = {}
    for event in cluster.line.events:
        if event.key.resource == "resourceslices":
            slices.setdefault(event.key.name, []).insert(0, event)
    if cut:
        slices["a"] = slices["a"][:-cut]
    reason = generations.unfinished(POOL, generations.course(POOL, slices.values()))
    return None if reason is None else (reason.text, [each.text for each in reason.children])


def test_pool_that_is_complete_has_nothing_to_tell():
    cluster = Cluster()
    publish(cluster, "a", 1, 2)
    publish(cluster, "b", 1, 2)
    assert told(cluster) is None


def test_announcement_of_more_slices_is_the_beginning():
    cluster = Cluster()
    publish(cluster, "a", 1, 1)
    publish(cluster, "a", 1, 2)
    text, below = told(cluster)
    assert text.startswith("pool gpu.example.com/rack is incomplete since slice a was written and "
                           "announces 2 slices, by alice at ")  # fmt: skip
    assert text.endswith(": 1 of 2 slices is there (a), 1 is missing")
    assert below == ["before, generation 1 was complete with 1 slice a"]


def test_beginning_is_that_of_the_last_incompleteness():
    cluster = Cluster()
    publish(cluster, "a", 1, 2)
    publish(cluster, "b", 1, 2)
    publish(cluster, "a", 2, 2)
    publish(cluster, "b", 2, 2)
    publish(cluster, "b", 3, 2)
    text, below = told(cluster)
    assert "is incomplete since slice b was published with generation 3, by alice" in text
    assert below == ["before, generation 2 was complete with 2 slices a, b",
                     "slice a is still of generation 2"]  # fmt: skip


def test_slice_that_was_deleted_before_the_new_generation_is_named():
    cluster = Cluster()
    publish(cluster, "a", 1, 2)
    publish(cluster, "b", 1, 2)
    cluster.delete("resourceslices", "b", "")
    publish(cluster, "a", 2, 2)
    text, below = told(cluster)
    assert "is incomplete since slice b of generation 1 was deleted, by alice" in text
    assert below[0] == "before, generation 1 was complete with 2 slices a, b"
    assert below[1].startswith("slice b was deleted, by alice at ")


def test_what_was_before_the_known_events_is_not_told():
    cluster = Cluster()
    publish(cluster, "a", 1, 2)
    publish(cluster, "b", 1, 2)
    publish(cluster, "a", 2, 2)
    publish(cluster, "a", 3, 2)
    assert [event.type for event in cluster.line.events if event.key.name == "a"] == [
        EventType.OBJECT_CREATED, EventType.OBJECT_UPDATED, EventType.OBJECT_UPDATED,
    ]  # fmt: skip
    text, below = told(cluster, cut=1)
    assert "since slice a was published with generation 2" in text
    assert below == [], "whether it was complete before is not known"


@pytest.mark.parametrize(
    ("expression", "drivers"),
    [
        ('device.driver == "a.test"', ("a.test",)),
        ('"a.test" == device.driver', ("a.test",)),
        ('device.driver == "a.test" && device.attributes["a.test"].gen > 1', ("a.test",)),
        ('device.attributes["x"].n == 1 && (true && device.driver == "a.test")', ("a.test",)),
        ('device.driver == "a.test" || device.driver == "b.test"', ()),
        ('!(device.driver == "a.test")', ()),
        ('device.driver != "a.test"', ()),
        ('device.driver in ["a.test"]', ()),
        ('true ? device.driver == "a.test" : false', ()),
        ('device.attributes["x"].driver == "a.test"', ()),
    ],
)
def test_driver_counts_only_where_every_device_must_have_it(expression, drivers):
    assert required_drivers(compile_expression(expression, environment=STORED)) == drivers
