"""Allocations of which something changed between the choice of the scheduler and its write.

A claim of a pod on `node` gets one of the devices a and b; redra takes a where it may. What each
change allows follows from the order of events, not from an allocator.
"""

import pytest

from app.analysis.verify.compare import ComparisonResult, DifferenceKind
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import (
    DRIVER,
    claim,
    device,
    key_of,
    result,
    slice_,
    user,
)
from tests.unit.analysis.verify.test_last_lost import ANY, counts_of, result_of
from tests.unit.analysis.verify.test_selector_judge import SMALL, of_size, put_class

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


def narrowed(story: Story) -> None:
    put_class(story, 'device.driver == "other.example.com"')


def replaced(story: Story) -> None:
    story.remove(key_of("deviceclasses", "gpu"), after=1)


def small_first(story: Story) -> None:
    """The class takes small devices, which b alone is."""
    put_class(story, SMALL)
    story.publish("p", of_size("big", "a"), of_size("small", "b"))


def widened(story: Story) -> None:
    put_class(story)


def by_zone(story: Story) -> None:
    """The devices are those of a zone, in which the node is."""
    tree = slice_("p", device("a"), device("b"))
    del tree["spec"]["allNodes"]
    chosen = {"key": "zone", "operator": "In", "values": ["x"]}
    tree["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [chosen]}]}
    story.put(key_of("resourceslices", "p"), tree)
    put_node(story, "x")


def moved(story: Story) -> None:
    put_node(story, "y", after=1)


def put_node(story: Story, zone: str, after: float = 0, **status: str) -> None:
    tree = {"metadata": {"labels": {"zone": zone}}, "status": status}
    story.put(key_of("nodes", "node"), tree, after=after)


def patched(story: Story) -> None:
    """An administrator says that a is small."""
    devices = {
        "filter": {"driver": DRIVER, "pool": {"name": "p"}, "device": "a"},
        "attributes": {f"{DRIVER}/size": {"string": "small"}},
    }
    story.put(key_of("resourceslicepatches", "patch"), {"spec": {"devices": devices}}, after=1)


def patched_first(story: Story) -> None:
    small_first(story)
    patched(story)


def unpatched(story: Story) -> None:
    story.remove(key_of("resourceslicepatches", "patch"), after=1)


def nothing(story: Story) -> None:
    """No change."""


def of_another_pool(story: Story) -> None:
    story.publish("q", device("z", taints=[TAINT]))


def make_claim(story: Story) -> None:
    story.put(key_of("resourceclaims", "x"), claim(ANY), by="user")


def judged(*changes, **options):
    """The comparison of an allocation; see `story_of`."""
    return result_of(story_of(*changes, **options), None)


def story_of(
    *changes, given: str = "a", before: float = 1, is_early: bool = False, begun=nothing
) -> Story:
    """An allocation so many seconds after the last change.

    If the claim is not `is_early`, it is made after the changes. `begun` comes before all of them.
    """
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", device("a"), device("b"))
    begun(story)
    if is_early:
        make_claim(story)
    for change in changes:
        change(story)
    if not is_early:
        make_claim(story)
    story.pod("of-x", "x", node="node", after=0)
    tree, write = story.change(key_of("resourceclaims", "x"), after=before)
    chosen = story.objects[key_of("resourceslices", "p")]["spec"] if begun is by_zone else {}
    nodes = {name: part for name, part in chosen.items() if name == "nodeSelector"}
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", given)]}, **nodes},
        "reservedFor": [user("of-x", story.uid("of-x"))],
    }
    write()
    return story


@pytest.mark.parametrize("change", [tainted, ruled, renamed, withdrawn, narrowed, replaced])
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


@pytest.mark.parametrize(
    ("begun", "change", "given", "other"),
    [
        (by_zone, moved, "a", "b"),
        (small_first, widened, "b", "a"),
        (small_first, patched, "b", "a"),
        (patched_first, unpatched, "a", "b"),
    ],
)
def test_classes_patches_and_the_node_may_have_been_others(begun, change, given, other) -> None:
    def outcome(chosen: str, **options):
        return judged(change, given=chosen, begun=begun, **options)

    assert outcome(given, is_early=True, before=SHORT) is UNREAD
    assert outcome(given, is_early=True, before=LONG) is WRONG
    assert outcome(given) is WRONG
    assert outcome(other, is_early=True) is (WRONG if change is moved else SAME)


def test_a_report_of_a_node_takes_no_label_back() -> None:
    """Its labels were others long before, and only its status is another now."""

    def reported(story: Story) -> None:
        put_node(story, "y", after=LONG, ready="True")

    assert judged(moved, reported, is_early=True, begun=by_zone) is WRONG


def test_other_choice_before_an_unread_change_breaks_no_rule() -> None:
    """Of a and b, which are both tainted just before the write, redra would have taken a."""

    def all_tainted(story: Story) -> None:
        story.publish("p", device("a", taints=[TAINT]), device("b", taints=[TAINT]))

    for before, kind in ((SHORT, DifferenceKind.OTHER_CHOICE), (LONG, DifferenceKind.VIOLATION)):
        story = story_of(all_tainted, given="b", before=before, is_early=True)
        (difference,) = counts_of(story)[1].differences
        assert difference.kind is kind
