"""Allocations whose devices changed between the choice of the scheduler and its write.

A claim of a pod on `node` gets one of the devices a and b; redra takes a where it may. What each
change allows follows from the order of events, not from an allocator.
"""

import pytest

from app.analysis.verify.compare import ComparisonResult
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import DRIVER, claim, device, key_of, result, user
from tests.unit.analysis.verify.test_last_lost import ANY, result_of
from tests.unit.analysis.verify.test_selector_judge import put_class

TAINT = {"key": "flaky", "value": "v", "effect": "NoExecute"}
SAME, UNREAD, WRONG = (
    ComparisonResult.SAME,
    ComparisonResult.CONCURRENT,
    ComparisonResult.DIFFERENT,
)
SHORT, LONG = 14, 16
"""Seconds before the write: perhaps after the choice, and certainly before it."""


def tainted(story: Story) -> None:
    story.publish("p", device("a", taints=[TAINT]), device("b", taints=[TAINT]))


def ruled(story: Story) -> None:
    taints = {"deviceSelector": {"driver": DRIVER, "pool": "p"}, "taint": TAINT}
    story.put(key_of("devicetaintrules", "rule"), {"spec": taints}, after=1)


def renamed(story: Story) -> None:
    story.publish("p", device("c"))


def withdrawn(story: Story) -> None:
    story.remove(key_of("resourceslices", "p"), after=1)


def untainted(story: Story) -> None:
    """Afterwards a is better than b, which it was not when b was chosen."""
    tainted_first(story)
    story.publish("p", device("a"), device("b"))


def tainted_first(story: Story) -> None:
    story.publish("p", device("a", taints=[TAINT]), device("b"))


def nothing(story: Story) -> None:
    """No change."""


def of_another_pool(story: Story) -> None:
    story.publish("q", device("z", taints=[TAINT]))


def make_claim(story: Story) -> None:
    story.put(key_of("resourceclaims", "x"), claim(ANY), by="user")


def judged(*changes, given: str = "a", before: float = 1, is_early: bool = False):
    """The comparison of an allocation so many seconds after the last change.

    If the claim is not `is_early`, it is made after the changes.
    """
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", device("a"), device("b"))
    if is_early:
        make_claim(story)
    for change in changes:
        change(story)
    if not is_early:
        make_claim(story)
    story.pod("of-x", "x", node="node", after=0)
    tree, write = story.change(key_of("resourceclaims", "x"), after=before)
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", given)]}},
        "reservedFor": [user("of-x", story.uid("of-x"))],
    }
    write()
    return result_of(story, None)


@pytest.mark.parametrize("change", [tainted, ruled, renamed, withdrawn])
def test_choice_may_be_older_than_a_change_that_forbids_it(change) -> None:
    assert judged(change, is_early=True) is UNREAD
    assert judged(change, is_early=True, before=SHORT) is UNREAD
    assert judged(change, of_another_pool, is_early=True) is UNREAD
    # The change came long before the write, or before the claim.
    assert judged(change, is_early=True, before=LONG) is WRONG
    assert judged(change) is WRONG
    # What was chosen was not the first choice before, either.
    assert judged(change, is_early=True, given="b") is WRONG
    assert judged(change, is_early=True, given="z") is WRONG


def test_choice_may_be_older_than_a_change_that_allows_a_better_one() -> None:
    assert judged(untainted, is_early=True, given="b") is UNREAD
    assert judged(untainted, is_early=True, given="b", before=LONG) is WRONG
    assert judged(untainted, given="b") is WRONG
    assert judged(untainted, is_early=True, given="a") is SAME


def test_slices_and_rules_are_known_by_watches_of_their_own() -> None:
    """The taint of a was known when b was chosen, the rule of all devices was not; and reversed."""
    assert judged(tainted_first, ruled, is_early=True, given="b") is UNREAD
    assert judged(ruled, tainted_first, is_early=True, given="b") is UNREAD


def test_without_a_change_no_other_choice_is_explained() -> None:
    assert judged(nothing, is_early=True) is SAME
    assert judged(nothing, is_early=True, given="b") is WRONG
    assert judged(of_another_pool, is_early=True, given="b") is WRONG
