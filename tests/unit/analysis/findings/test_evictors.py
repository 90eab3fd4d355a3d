"""The taints that evicted pods, in stories whose taints are known."""

import pytest

from app.analysis.chronicle import Chronicle
from app.analysis.findings import taints
from app.domain.log import ObjectKey
from tests.unit.analysis.invariants.test_rules import (
    MARKED,
    Story,
    evicted_at_its_time,
    evicted_for_a_rule_that_has_just_gone,
    evicted_for_a_taint,
    evicted_without_a_taint,
)
from tests.unit.analysis.invariants.worlds import key_of, pod

POD = ObjectKey("", "pods", "default", "q")
REASON = "DeletionByDeviceTaintManager: Device Taint manager: deleting due to NoExecute taint"


def lines(story):
    """The lines of a story in which one pod is evicted once."""
    chronicle = Chronicle()
    chronicle.fold(story.events)
    marked = [entry for entry in chronicle.entries if entry.kind == "PodEvicted"]
    return taints.evictor_lines(chronicle, REASON, [(POD, entry.revision) for entry in marked])


@pytest.mark.parametrize(
    ("tell", "expected"),
    [
        (evicted_for_a_taint, "1 pod by driver gpu.example.com in slice p, taint k=v:NoExecute"),
        (evicted_at_its_time, "1 pod by driver gpu.example.com in slice p, taint k=v:NoExecute"),
        (evicted_for_a_rule_that_has_just_gone,
         "1 pod by rule t, taint k=v:NoExecute, which had just ended"),
        (evicted_without_a_taint, "1 pod by a taint that is not known"),
    ],
)  # fmt: skip
def test_taint_of_a_story_is_named(tell, expected):
    story = Story()
    tell(story)
    assert lines(story) == (expected,)


def test_nothing_is_said_of_pods_that_were_evicted_for_another_reason():
    assert taints.evictor_lines(Chronicle(), "EvictionByEvictionAPI: x", [(POD, 1)]) == ()


def first_seen_evicted(story):
    """A recording that begins with the write that evicts a pod."""
    tree = pod()
    tree["status"] = {"conditions": [{**MARKED, "message": REASON.partition(": ")[2]}]}
    return story.put(key_of("pods", "q"), tree)


def delete(story):
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return write()


@pytest.mark.parametrize(
    ("tell", "lives"),
    [(evicted_without_a_taint, 1), (first_seen_evicted, 1), (evicted_without_a_taint, 2)],
)
def test_pod_is_evicted_once_in_a_life_and_also_where_it_is_first_seen_so(tell, lives):
    """A pod without an entry about its eviction was not counted."""
    story = Story()
    for _ in range(lives):
        tell(story)
        if key_of("pods", "q") in story.objects:
            delete(story)
            story.remove(key_of("pods", "q"), after=1)
    chronicle = Chronicle()
    chronicle.fold(story.events)
    pods = [pod for _, pod, _ in taints.evictions(chronicle, chronicle.revision)]
    assert pods == [key_of("pods", "q")] * lives


def test_deletion_of_a_pod_that_was_not_evicted_is_no_eviction():
    story = Story()
    story.pod("q")
    delete(story)
    chronicle = Chronicle()
    chronicle.fold(story.events)
    assert list(taints.evictions(chronicle, chronicle.revision)) == []


def test_entries_of_a_kind_are_counted_as_they_are_listed():
    story = Story()
    evicted_for_a_taint(story)
    chronicle = Chronicle()
    chronicle.fold(story.events)
    assert {entry.kind for entry in chronicle.entries} >= {"PodCreated", "PodEvicted"}
    for kind in (*chronicle.kinds(), "NoSuchKind"):
        for until in range(chronicle.revision + 2):
            counted = chronicle.count_of_kind(kind, until=until)
            assert counted == len(chronicle.of_kind(kind, until=until))
