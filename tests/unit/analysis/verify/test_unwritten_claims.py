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
from tests.unit.analysis.invariants.worlds import claim, key_of, result, selector, user
from tests.unit.analysis.verify.test_last_lost import ANY, LARGE, TWO, result_of
from tests.unit.analysis.verify.test_selector_judge import of_size, put_class

SAME, IN_VAIN, WRONG = (
    ComparisonResult.SAME,
    ComparisonResult.CONCURRENT,
    ComparisonResult.DIFFERENT,
)
OPEN, LATER = ComparisonResult.NOT_COMPARABLE, ComparisonResult.CONCURRENT
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


def chosen_before(story: Story) -> None:
    """Nominate pod `of-y`, whose devices are chosen by then."""
    tree, nominated = story.change(key_of("pods", "of-y"), after=1)
    tree["status"]["nominatedNodeName"] = "node"
    nominated()


def bound(story: Story, given: str) -> ComparisonResult:
    """The comparison of the write of claim `y`, whose pod is bound afterwards."""
    write(story, given)
    change(story, "pods", "of-y", "spec", nodeName="node")
    return result_of(story, None, number=1)


def unplaced() -> Story:
    """The world of `begun`, in which pod `gone` is not there yet, and `of-y` has no node yet."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("small", "a"), of_size("small", "b"), of_size("big", "c"))
    story.claim("y", ANY)
    story.pod("of-y", "y")
    return story


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["claim", "pod", "choice"], IN_VAIN),
        (["claim", "choice", "pod"], WRONG),
        (["choice", "claim", "pod"], WRONG),
        (["pod", "choice", "claim"], WRONG),
    ],
)
def test_pod_that_was_made_after_the_choice_had_nothing_then(
    order: list[str], expected: ComparisonResult
) -> None:
    for ends_after in (False, True):
        story = unplaced()
        for step in order:
            if step == "pod":
                story.pod("gone", "z")
            elif step == "claim":
                story.put(key_of("resourceclaims", "z"), claim(ANY), by="maker")
            else:
                chosen_before(story)
        if ends_after:
            write(story, "b")
            change(story, "pods", "of-y", "spec", nodeName="node")
            end(story, claims=())
            assert result_of(story, None, number=2) is expected
        else:
            end(story)
            assert bound(story, "b") is expected


@pytest.mark.parametrize(("first", "expected"), [("late", WRONG), ("gone", IN_VAIN)])
def test_pod_that_was_made_too_late_hides_no_other(first: str, expected) -> None:
    """Both ended in vain, `late` before `gone`; the later one was made after the choice."""
    story = unplaced()
    story.claim("z", ANY)
    story.claim("of-late", LARGE)
    made = {"gone": ("z",), "late": ("of-late",)}
    second = next(each for each in made if each != first)
    story.pod(first, *made[first])
    chosen_before(story)
    story.pod(second, *made[second])
    story.remove(key_of("pods", "late"))
    story.remove(key_of("pods", "gone"))
    assert bound(story, "b") is expected


def test_pod_that_shares_the_claim_keeps_nothing_from_it() -> None:
    """Its claims were chosen together: what `y` had then is what it gets."""
    story = begun()
    story.pod("gone", "z", "y")
    end(story, claims=("z",))
    write(story, "b")
    assert result_of(story, None) is WRONG


def test_pod_without_claims_had_nothing() -> None:
    story = begun()
    story.pod("gone")
    end(story, claims=("z",))
    write(story, "b")
    assert result_of(story, None) is WRONG


@pytest.mark.parametrize(("seconds", "expected"), [(110, IN_VAIN), (136, WRONG)])
def test_requests_wait_as_long_as_the_limit_of_the_client_is_used_up(
    seconds: int, expected: ComparisonResult
) -> None:
    """Each second the scheduler writes, and a pod ends; the claims of the first have others."""
    story = begun()
    end(story, claims=())
    for number in range(seconds):
        story.pod(f"other-{number}")
        story.remove(key_of("pods", f"other-{number}"))
    write(story, "b")
    assert result_of(story, None) is expected


@pytest.mark.parametrize(
    ("spoilt", "expected"),
    [
        (lambda story: change(story, "resourceclaims", "z", "status", reservedFor=[]), IN_VAIN),
        (lambda story: story.allocate("z", result("p", "c")), WRONG),  # it is known what z has
        (lambda story: story.remove(key_of("resourceclaims", "z")), IN_VAIN),
        (lambda story: (story.remove(key_of("resourceclaims", "z")), again(story)), IN_VAIN),
    ],
)
def test_claim_that_is_allocated_after_the_end_of_its_pod_is_known(
    spoilt: Callable[[Story], object], expected: ComparisonResult
) -> None:
    story = begun()
    end(story, claims=())
    spoilt(story)
    write(story, "b")
    assert result_of(story, None) is expected


def again(story: Story) -> None:
    """Another claim with the name of `z` gets a device."""
    story.claim("z", LARGE)
    story.allocate("z", result("p", "c"))


@pytest.mark.parametrize(("owner", "expected"), [("gone", IN_VAIN), ("of-y", WRONG), (None, WRONG)])
def test_claim_out_of_a_template_serves_its_owner_alone(owner: str | None, expected) -> None:
    story = begun()
    made = [{"name": "z", "resourceClaimTemplateName": "template"}]
    named = [{"name": "z", "resourceClaimName": "z"}]
    change(story, "pods", "gone", "spec", resourceClaims=made)
    change(story, "pods", "gone", "status", resourceClaimStatuses=named)
    owners = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner,
            "uid": story.uid(owner),
            "controller": True,
        }
        for owner in (owner,)
        if owner
    ]
    change(story, "resourceclaims", "z", "metadata", ownerReferences=owners)
    end(story)
    write(story, "b")
    assert result_of(story, None) is expected


@pytest.mark.parametrize(("age", "expected"), [(15.5, IN_VAIN), (17, WRONG)])
def test_mark_of_a_claim_tells_whole_seconds(age: float, expected: ComparisonResult) -> None:
    """A claim that was marked that long before the end was not chosen for it."""
    story = begun()
    mark(story, "resourceclaims", "z")
    end(story, after=age, claims=())
    write(story, "b", after=0)
    assert result_of(story, None) is expected


def test_odd_mark_of_a_claim_is_none() -> None:
    story = begun()
    odd = {"deletionTimestamp": "yesterday", "finalizers": ["example.com/keep"]}
    change(story, "resourceclaims", "z", "metadata", **odd)
    end(story, after=60, claims=())
    write(story, "b")
    assert result_of(story, None) is IN_VAIN


@pytest.mark.parametrize(
    ("selecting", "expected"),
    [
        (selector(node="node"), IN_VAIN),
        (selector(node="elsewhere"), WRONG),
        ({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "?"}]}]}, IN_VAIN),
        (None, IN_VAIN),
    ],
)
def test_devices_of_another_claim_choose_the_node(selecting, expected) -> None:
    story = begun()
    story.publish("q", of_size("small", "k"))
    story.claim("held", ANY)
    story.allocate("held", result("q", "k"), node=selecting)
    story.pod("gone", "z", "held")
    story.other(after=LONG)
    end(story)
    write(story, "b")
    assert result_of(story, None) is expected


def open_end(story: Story, *, after: float = 0) -> ComparisonResult:
    """The comparison of the last write of a log that ends so many seconds later."""
    number = 0
    if after:
        story.other(after=after)
        number = 1
    return result_of(story, None, number=number)


@pytest.mark.parametrize(
    ("given", "after", "expected"),
    [
        ("a", 0, SAME),
        ("b", 0, OPEN),  # z may have had a
        ("b", SHORT, OPEN),
        ("b", LONG, WRONG),
        ("c", 0, WRONG),
    ],
)
def test_claim_of_a_waiting_pod_may_be_written_after_the_end_of_the_log(
    given: str, after: float, expected: ComparisonResult
) -> None:
    story = begun()
    write(story, given)
    assert open_end(story, after=after) is expected


def test_each_claim_of_waiting_pods_has_its_devices_once() -> None:
    """Device c is left only when others have both a and b."""
    alone, shared, both = begun(), begun(), begun()
    shared.pod("second", "z")
    both.claim("other", ANY)
    both.pod("second", "other")
    for story, expected in ((alone, WRONG), (shared, WRONG), (both, OPEN)):
        write(story, "c")
        assert open_end(story) is expected


def test_claim_that_is_decided_with_the_own_one_keeps_nothing_from_it() -> None:
    """`of-y` waits as well, with `second`, which is chosen in the order of the pod: a, then b."""
    for claims, expected in ((("y", "second"), WRONG), (("second", "y"), SAME)):
        story = unplaced()
        story.claim("second", ANY)
        story.pod("of-y", *claims)
        write(story, "b")
        change(story, "pods", "of-y", "spec", nodeName="node")
        assert result_of(story, None, number=1) is expected


@pytest.mark.parametrize(("has", "expected"), [("a", LATER), ("c", WRONG)])
def test_claim_that_is_written_before_the_end_has_what_is_written(has, expected) -> None:
    story = begun()
    write(story, "b")
    story.allocate("z", result("p", has))
    assert result_of(story, None, number=1) is expected


def test_waiting_pod_that_cannot_be_placed_hides_no_other() -> None:
    """Pods are looked at by name: one is bound, one is gated, one waits."""
    for is_waiting, expected in ((False, WRONG), (True, OPEN)):
        story = begun()
        story.claim("large", LARGE)
        story.pod("a-bound", "large", node="node")
        story.pod("b-gated", "large")
        change(story, "pods", "b-gated", "spec", schedulingGates=[{"name": "example.com/wait"}])
        if not is_waiting:
            change(story, "pods", "gone", "spec", nodeName="elsewhere")
        write(story, "b")
        assert open_end(story) is expected


def test_pod_of_the_same_name_that_ends_later_is_another_one() -> None:
    """`gone` gets a node after the write, and its successor ends without one."""
    story = begun()
    write(story, "b")
    change(story, "pods", "gone", "spec", nodeName="elsewhere")
    story.remove(key_of("pods", "gone"))
    story.pod("gone", "z")
    story.remove(key_of("pods", "gone"))
    story.other(after=LONG)
    assert result_of(story, None, number=5) is WRONG


def test_pod_that_had_finished_before_the_write_ends_in_vain_no_more() -> None:
    story = begun()
    change(story, "pods", "gone", "status", phase="Failed")
    story.other(after=LONG)
    write(story, "b")
    end(story, claims=())
    story.other(after=LONG)
    assert result_of(story, None, number=2) is WRONG


@pytest.mark.parametrize(("label", "expected"), [("near", IN_VAIN), ("far", WRONG)])
def test_devices_of_another_claim_choose_the_node_by_its_labels(label: str, expected) -> None:
    story = begun()
    story.put(key_of("nodes", "node"), {"metadata": {"labels": {"zone": "near"}}})
    story.publish("q", of_size("small", "k"))
    story.claim("held", ANY)
    zone = {"key": "zone", "operator": "In", "values": [label]}
    story.allocate("held", result("q", "k"), node=selector(zone))
    story.pod("gone", "held", "z")
    story.other(after=LONG)
    end(story)
    write(story, "b")
    assert result_of(story, None) is expected


def test_order_of_the_claims_of_a_pod_hides_none() -> None:
    """The first one is allocated, or is not there: the second one waits all the same."""
    for first in ("held", "missing"):
        story = begun()
        story.publish("q", of_size("small", "k"))
        story.allocate("held", result("q", "k"))
        story.pod("gone", first, "z")
        end(story)
        write(story, "b")
        assert result_of(story, None) is IN_VAIN
