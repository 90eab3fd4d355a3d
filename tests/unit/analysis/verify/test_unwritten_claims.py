"""Allocations beside a claim that was chosen devices and never got them written.

Pod `gone` waits with claim `z`, and pod `of-y` with claim `y`, both on `node`, whose devices are a,
b and c in this order; c is large. `y` gets a device that is not the first one. `gone` is deleted
without a node: until its requests are refused, what was chosen for `z` is in use for the scheduler.
"""

import pytest

from app.analysis.verify.compare import ComparisonResult
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, user
from tests.unit.analysis.verify.test_last_lost import ANY, LARGE, TWO, result_of
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class

SAME, IN_VAIN, WRONG = (
    ComparisonResult.SAME,
    ComparisonResult.CONCURRENT,
    ComparisonResult.DIFFERENT,
)
SHORT, LONG = 14, 16
"""Seconds between the end of the pod and the write: both can be in flight at once, or cannot."""


def begun(asked: dict = ANY, **pod) -> Story:
    """Both pods wait for a node, or one of them does."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.put(key_of("nodes", "elsewhere"), {})
    story.publish("p", of_size("small", "a"), of_size("small", "b"), of_size("big", "c"))
    story.claim("z", asked)
    story.pod("gone", "z", **pod)
    story.claim("y", ANY)
    story.pod("of-y", "y", node="node", after=0)
    return story


def end(story: Story, after: float = 1, claims: tuple[str, ...] = ("z",)) -> None:
    """Delete the pod, and its claims with it."""
    story.remove(key_of("pods", "gone"), after=after)
    for name in claims:
        story.remove(key_of("resourceclaims", name))


def write(story: Story, given: str, after: float = 1) -> None:
    tree, written = story.change(key_of("resourceclaims", "y"), after=after)
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", given)]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    written()


def judged(given: str, asked: dict = ANY, before: float = 1, **pod) -> ComparisonResult:
    """The comparison of a write so many seconds after the end of the pod."""
    story = begun(asked, **pod)
    end(story)
    write(story, given, after=before)
    return result_of(story, None)


@pytest.mark.parametrize(
    ("given", "asked", "expected"),
    [
        ("a", ANY, SAME),
        ("b", ANY, IN_VAIN),  # z had a
        ("c", ANY, WRONG),  # z had one of a and b
        ("c", TWO, IN_VAIN),  # z had both
        ("b", TWO, WRONG),
        ("b", LARGE, WRONG),  # z had c, if any
        ("a", LARGE, SAME),
    ],
)
def test_claim_of_a_pod_that_ended_may_have_had_what_it_fits(given, asked, expected) -> None:
    assert judged(given, asked) is expected


def test_requests_of_a_pod_wait_no_longer_than_those_of_others() -> None:
    assert judged("b", before=SHORT) is IN_VAIN
    assert judged("b", before=LONG) is WRONG


@pytest.mark.parametrize(("after", "expected"), [(SHORT, IN_VAIN), (LONG, WRONG)])
def test_pod_may_end_after_the_write_as_well(after, expected) -> None:
    story = begun()
    write(story, "b")
    end(story, after=after, claims=())
    assert result_of(story, None, number=1) is expected


def test_pod_that_lives_or_has_a_node_had_nothing_in_vain() -> None:
    story = begun()
    write(story, "b")
    story.other(after=LONG)  # the recording goes on
    assert result_of(story, None, number=1) is WRONG
    assert judged("b", node="node") is WRONG


@pytest.mark.parametrize(("name", "expected"), [("node", IN_VAIN), ("elsewhere", WRONG)])
def test_pod_that_was_nominated_had_devices_of_that_node_alone(name, expected) -> None:
    story = begun()
    tree, nominated = story.change(key_of("pods", "gone"))
    tree["status"]["nominatedNodeName"] = name
    nominated()
    end(story)
    write(story, "b")
    assert result_of(story, None) is expected


def test_claim_of_several_pods_outlives_the_one_that_ended() -> None:
    story = begun()
    end(story, claims=())
    write(story, "b")
    assert result_of(story, None) is IN_VAIN


def test_claims_of_one_pod_are_chosen_together() -> None:
    """With its two claims the pod had a and c, not a and b."""
    for given, expected in (("b", IN_VAIN), ("c", WRONG)):
        story = begun()
        story.claim("large", LARGE)
        story.pod("gone", "z", "large")
        end(story, claims=("z", "large"))
        write(story, given)
        assert result_of(story, None) is expected


def test_each_of_two_pods_had_its_devices() -> None:
    for number, expected in ((1, WRONG), (2, IN_VAIN)):
        story = begun()
        if number == 2:
            story.claim("other", ANY)
            story.pod("too", "other")
            story.remove(key_of("pods", "too"))
        end(story)
        write(story, "c")
        assert result_of(story, None) is expected
