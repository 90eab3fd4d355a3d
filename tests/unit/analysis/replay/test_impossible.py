"""Facts that no run excuses: broken invariants, and allocations that their own state contradicts.

A pod on `node` has claim `y`. Of pool `p` it may have `a`, `b` and the larger `c`, which come in
this order.
"""

from collections.abc import Mapping

import pytest

from app.analysis.replay.unsure.impossible import Impossible
from app.analysis.verify.invariants import Switches
from app.bootstrap.deciders import deciders_of
from app.domain.log import HistoryId, HistoryInfo, ObjectKey
from app.domain.values.timestamps import SECOND, Instant
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, user
from tests.unit.analysis.verify.test_last_lost import request_for
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class

X, Y = key_of("resourceclaims", "x"), key_of("resourceclaims", "y")
OTHERWISE = "the recorded state gives another allocation"
TWICE = "device-in-one-claim: device gpu.example.com/p/a is allocated 2 times"


def world() -> Story:
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("small", "a"), of_size("small", "b"), of_size("big", "c"))
    story.claim("y", request_for())
    story.pod("of-y", "y", node="node")
    return story


def given(story: Story, name: str, device: str) -> None:
    tree, write = story.change(key_of("resourceclaims", name))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", device)]}},
        "reservedFor": [user(f"of-{name}", story.uid(f"of-{name}"))],
    }
    write()


def judged(story: Story, *, changed: Mapping[ObjectKey, Instant] | None = None) -> Impossible:
    judge = Impossible(
        deciders_of(HistoryInfo(id=HistoryId(1), name="h")),
        Switches(),
        lacking=frozenset(),
        never_seen=(),
        changed=changed or {},
    )
    for look in (judge.read_ahead, judge.take):
        for event in story.events:
            look(event)
    return judge


@pytest.mark.parametrize(("device", "is_other"), [("a", False), ("b", True), ("c", True)])
def test_allocation_that_its_own_state_does_not_give_is_impossible(
    device: str, is_other: bool
) -> None:
    story = world()
    given(story, "y", device)
    at = story.events[-1].revision
    story.put(key_of("nodes", "other"), {})
    story.claim("z", request_for())
    judge = judged(story)
    assert judge.broken() == {}
    expected = {Y: f"at revision {at} {OTHERWISE}"} if is_other else {}
    assert judge.problems() == expected


def test_each_such_allocation_is_named_at_its_own_revision() -> None:
    story = world()
    story.claim("x", request_for())
    story.pod("of-x", "x", node="node")
    given(story, "y", "c")
    first = story.events[-1].revision
    given(story, "x", "b")
    second = story.events[-1].revision
    assert judged(story).problems() == {
        X: f"at revision {second} {OTHERWISE}",
        Y: f"at revision {first} {OTHERWISE}",
    }


def test_device_that_two_claims_have_is_impossible_for_both() -> None:
    story = world()
    story.claim("x", request_for())
    story.pod("of-x", "x", node="node")
    given(story, "y", "a")
    given(story, "x", "a")
    broken = judged(story).broken()
    assert broken == {X: TWICE, Y: TWICE}


@pytest.mark.parametrize(
    ("is_shown", "is_sure"), [(False, False), (True, True)], ids=["last line lost", "shown later"]
)
def test_claim_that_was_written_once_more_unseen_breaks_nothing_until_it_is_shown(
    is_shown: bool, is_sure: bool
) -> None:
    """What it holds after its last line is not known, so that another may have its device."""
    story = world()
    story.claim("x", request_for())
    story.pod("of-x", "x", node="node")
    given(story, "y", "a")
    since = story.events[-1].stamp.time
    given(story, "x", "a")
    if is_shown:
        tree, write = story.change(Y)
        tree["metadata"]["labels"] = {"seen": "again"}
        write()
    judge = judged(story, changed={Y: Instant(since)})
    assert set(judge.broken()) == ({X, Y} if is_sure else set())


@pytest.mark.parametrize("before", [0, 60])
def test_device_that_an_unseen_write_may_have_given_leaves_a_choice_open(before: int) -> None:
    """Claim `x` was written unseen: it may have had the first device when `y` got the second."""
    story = world()
    story.claim("x", request_for())
    story.pod("of-x", "x", node="node")
    since = story.events[-1].stamp.time
    given(story, "y", "b")
    at = story.events[-1].revision
    assert judged(story).problems() == {Y: f"at revision {at} {OTHERWISE}"}
    judge = judged(story, changed={X: Instant(since - before * SECOND)})
    assert judge.problems() == {}
