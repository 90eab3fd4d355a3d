"""Claims of one pod are decided together, and gaps of claims are no comparisons.

`x` may have device a or b, `y` only a. Alone, `x` would get a.
"""

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.domain.log import ObjectKey
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, user
from tests.unit.analysis.verify.test_last_lost import ANY, LARGE, counts_of, result_of
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class


def begun(*claims: str) -> Story:
    """A pod with claims waits for a node; a is large, and both claims are there."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("big", "a"), of_size("small", "b"))
    story.claim("x", ANY)
    story.claim("y", LARGE)
    story.pod("pod", *claims, node="node")
    return story


def give(story: Story, name: str, device: str) -> None:
    tree, write = story.change(key_of("resourceclaims", name))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", device)]}},
        "reservedFor": [user("pod", story.uid("pod"))],
    }
    write()


@pytest.mark.parametrize(
    ("claims", "device", "expected"),
    [
        (("x", "y"), "b", ComparisonResult.SAME),
        (("y", "x"), "b", ComparisonResult.SAME),
        (("x", "y"), "a", ComparisonResult.DIFFERENT),  # nothing would be left for y
        (("x",), "b", ComparisonResult.DIFFERENT),
        (("x",), "a", ComparisonResult.SAME),
        (("x", "x"), "a", ComparisonResult.SAME),
    ],
)
def test_claims_of_a_pod_are_decided_together(claims, device, expected) -> None:
    story = begun(*claims)
    give(story, "x", device)
    assert result_of(story, None) is expected


def test_claim_that_has_its_devices_is_not_decided_with_the_next_one() -> None:
    story = begun("x", "y")
    give(story, "x", "b")
    give(story, "y", "a")
    assert result_of(story, None) is ComparisonResult.SAME


@pytest.mark.parametrize(
    ("key", "is_counted"),
    [
        (key_of("resourceclaims", "x"), True),
        (ObjectKey("", "pods", "default", "pod"), False),
        (key_of("resourceslices", "p"), False),
    ],
)
def test_write_of_a_claim_that_was_not_recorded_is_counted_as_not_comparable(
    key, is_counted
) -> None:
    story = begun("x")
    story.gap(key)
    _, after = counts_of(story)
    assert after.counts.get(ComparisonResult.NOT_COMPARABLE, 0) == is_counted
