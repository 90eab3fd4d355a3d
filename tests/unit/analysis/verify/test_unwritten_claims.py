"""Allocations beside a claim that was chosen devices and never got them written.

Pod `gone` waits with claim `z`, and pod `of-y` with claim `y`, both on `node`, whose devices are a,
b and c in this order; c is large. `y` gets a device that is not the first one. `gone` is deleted
without a node: until its requests are refused, what was chosen for `z` is in use for the scheduler.
"""

from collections.abc import Callable

import pytest

from app.analysis.verify.compare import ComparisonResult
from app.domain.values import timestamps
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, result, selector, user
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


def change(story: Story, resource: str, name: str, part: str, **fields: object) -> None:
    tree, written = story.change(key_of(resource, name))
    tree.setdefault(part, {}).update(fields)
    written()


def mark(story: Story, resource: str, name: str) -> None:
    """Mark an object for deletion, which a finalizer keeps."""
    now = timestamps.seconds_text(story.time)
    change(
        story, resource, name, "metadata", deletionTimestamp=now, finalizers=["example.com/keep"]
    )


def is_gated(story: Story) -> None:
    change(story, "pods", "gone", "spec", schedulingGates=[{"name": "example.com/wait"}])


def selects_other_labels(story: Story) -> None:
    change(story, "pods", "gone", "spec", nodeSelector={"zone": "far"})


def names_another_node(story: Story) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector(node="elsewhere")}
    change(story, "pods", "gone", "spec", affinity={"nodeAffinity": required})


def waits_for_a_claim_of_a_template(story: Story) -> None:
    entries = [
        {"name": "z", "resourceClaimName": "z"},
        {"name": "made", "resourceClaimTemplateName": "template"},
    ]
    change(story, "pods", "gone", "spec", resourceClaims=entries)


def has_devices_elsewhere(story: Story) -> None:
    story.publish("q", of_size("small", "k"))
    story.claim("held", ANY)
    story.allocate("held", result("q", "k"), node=selector(node="elsewhere"))
    story.pod("gone", "z", "held")


def has_a_claim_that_ends(story: Story) -> None:
    mark(story, "resourceclaims", "z")


UNREADY = (
    is_gated,
    selects_other_labels,
    names_another_node,
    waits_for_a_claim_of_a_template,
    has_devices_elsewhere,
    has_a_claim_that_ends,
)


@pytest.mark.parametrize("spoil", UNREADY)
def test_pod_that_no_scheduler_could_place_had_nothing_in_vain(
    spoil: Callable[[Story], None],
) -> None:
    before, after, near_end = begun(), begun(), begun()
    for story in (before, after, near_end):
        spoil(story)
        story.other(after=LONG)
    end(before, after=0)
    write(before, "b")
    assert result_of(before, None) is WRONG
    write(after, "b")
    end(after, claims=())
    after.other(after=LONG)
    assert result_of(after, None, number=2) is WRONG
    write(near_end, "b")
    assert result_of(near_end, None) is WRONG


@pytest.mark.parametrize("spoil", [has_devices_elsewhere, has_a_claim_that_ends])
def test_claim_that_changed_a_moment_before_may_have_been_chosen(spoil) -> None:
    story = begun()
    spoil(story)
    end(story, after=0)
    write(story, "b")
    assert result_of(story, None) is IN_VAIN


@pytest.mark.parametrize(("wait", "expected"), [(SHORT, IN_VAIN), (LONG, WRONG)])
def test_pod_that_a_finalizer_keeps_ends_when_it_is_marked(wait, expected) -> None:
    story = begun()
    mark(story, "pods", "gone")
    end(story, after=wait)
    write(story, "b", after=0.5)
    assert result_of(story, None) is expected


@pytest.mark.parametrize(("wait", "expected"), [(SHORT, IN_VAIN), (LONG, WRONG)])
def test_pod_that_finishes_without_a_node_has_ended(wait, expected) -> None:
    story = begun()
    change(story, "pods", "gone", "status", phase="Failed")
    end(story, after=wait)
    write(story, "b", after=0.5)
    assert result_of(story, None) is expected
