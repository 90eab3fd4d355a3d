"""The states of lanes, against a model that looks at the objects of each revision by themselves."""

import random
from itertools import pairwise

import pytest

from app.analysis import spans
from app.analysis.chronicle import Chronicle
from app.analysis.spans import DEVICES, Spans
from app.domain.log import EventType, ObjectKey, Revision
from tests.unit.projections.log_of import DRA, LogOf


class Folding:
    """A view for a log written by hand."""

    def __init__(self):
        self.spans = Spans()

    def fold(self, event):
        self.spans.fold(event)


def claim(devices=(), pods=(), deleting=False):
    tree = {"status": {}}
    if devices:
        results = [{"driver": "d", "pool": "p", "device": name} for name in devices]
        tree["status"]["allocation"] = {"devices": {"results": results}}
    if pods:
        tree["status"]["reservedFor"] = [{"resource": "pods", "name": name} for name in pods]
    if deleting:
        tree["metadata"] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return tree


def pod(node="", phase="Pending", deleting=False):
    tree = {"spec": {"nodeName": node} if node else {}, "status": {"phase": phase}}
    if deleting:
        tree["metadata"] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return tree


def random_log(seed):
    """Pods and claims that come, change and go; revision → what is there then."""
    chance = random.Random(seed)
    log, now, moments = LogOf(Folding()), {}, []
    for _ in range(60):
        kind = chance.choice(("pod", "claim"))
        name = f"default/{kind}-{chance.randint(0, 2)}"
        if (kind, name) in now and chance.random() < 0.2:
            log.delete(kind, name)
            del now[kind, name]
        elif kind == "pod":
            state = chance.choice(
                (pod(), pod("n"), pod("n", "Running"), pod("n", "Failed"), pod("n", deleting=True))
            )
            now[kind, name] = state
            log.put(kind, name, **state)
        else:
            free = [f"gpu-{number}" for number in range(3)]
            # Two results of one device are two shares of it.
            taken = chance.choices(free, k=chance.randint(0, 2))
            users = chance.sample(("pod-0", "pod-1"), chance.randint(0, 2)) if taken else ()
            now[kind, name] = claim(taken, users, chance.random() < 0.1)
            log.put(kind, name, **now[kind, name])
        moments.append(dict(now))
    return log, moments


def state_of(kind, tree):
    """What an object is like, read from it alone."""
    deleting = "metadata" in tree
    if kind == "claim":
        if deleting:
            return "ending"
        if "allocation" not in tree["status"]:
            return "waiting"
        return "reserved" if "reservedFor" in tree["status"] else "allocated"
    if tree["status"]["phase"] == "Failed":
        return "finished"
    if deleting:
        return "ending"
    if "nodeName" not in tree["spec"]:
        return "waiting"
    return "running" if tree["status"]["phase"] == "Running" else "bound"


@pytest.mark.parametrize("seed", range(30))
def test_lanes_show_what_the_objects_of_each_revision_are(seed):
    log, moments = random_log(seed)
    folded = log.view.spans
    for revision, now in enumerate(moments, start=1):
        shown, held = {}, set()
        for key, lane in folded.lanes.items():
            for span in spans.up_to(lane, Revision(revision)):
                if span.end is not None:
                    continue
                if key[:2] == DEVICES:
                    assert (key.name, span.label) not in held
                    held.add((key.name, span.label))
                else:
                    assert key not in shown, "one state at a time"
                    shown[key] = span.state
        kinds = {"pod": ("", "pods"), "claim": (DRA, "resourceclaims")}
        assert shown == {
            ObjectKey(*kinds[kind], *name.split("/")): state_of(kind, tree)
            for (kind, name), tree in now.items()
        }
        assert held == {
            (f"d/p/{result['device']}", name)
            for (kind, name), tree in now.items()
            if kind == "claim" and "allocation" in tree["status"]
            for result in tree["status"]["allocation"]["devices"]["results"]
        }


@pytest.mark.parametrize("seed", range(5))
def test_states_follow_each_other_without_overlap(seed):
    log, _ = random_log(seed)
    for key, lane in log.view.spans.lanes.items():
        if key[:2] != DEVICES:
            for before, after in pairwise(lane):
                assert before.end is not None
                assert before.end[0] <= after.begin[0]


def test_gap_is_blind_from_the_event_before_it():
    log = LogOf(Folding())
    first = log.put("pod", "default/a", **pod())
    gap = log.append(EventType.GAP_OBSERVED, ObjectKey("redra", "gaps", "", "x"), {"message": "m"})
    (blind,) = log.view.spans.gaps
    assert (blind.begin[0], blind.end[0]) == (first, gap)


@pytest.mark.parametrize("seed", range(3))
def test_what_happened_up_to_a_revision_is_the_beginning_of_all(seed):
    log, _ = random_log(seed)
    whole = Chronicle()
    whole.fold(log.events)
    for revision in range(1, len(log.events) + 1):
        part = Chronicle()
        part.fold(log.events[:revision])
        assert list(part.entries) == list(whole.entries[: whole.until(Revision(revision))])
        for kind in whole.kinds():
            until = Revision(revision)
            assert part.of_kind(kind, until=until) == whole.of_kind(kind, until=until)
