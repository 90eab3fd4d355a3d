"""What a recording counts of placements by others, and of those that a taint forbade."""

from collections.abc import Callable

import pytest

from app.adapters import schemas
from app.analysis.replay.beginning import Beginning
from app.analysis.replay.recording import Recording
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.writers import DECIDED, Writers
from app.analysis.views import LiveViews
from app.domain.log import Head, Revision
from app.domain.objects.profile import Profile
from projections.objects import ObjectsProjection
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import DRIVER, device, key_of, result

SCHEDULER = "system:kube-scheduler"
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def recorded(story: Story, beginning: Beginning | None = None) -> Recording:
    views = LiveViews(Profile(version="1.36", gates={"DRADeviceTaintRules": True}))
    recording = Recording(Writers(DECIDED), views, {}, Lacks(()), schemas.load("1.36"))
    if beginning is not None:
        recording.begin(beginning)
    for event in story.events[len(beginning.objects) if beginning is not None else 0 :]:
        recording.take(event, event.stamp.time)
    return recording


def bound(story: Story, name: str, node: str, **options) -> None:
    tree, write = story.change(key_of("pods", name), after=1, **options)
    tree.setdefault("spec", {})["nodeName"] = node
    write()


def labelled(story: Story, name: str, **options) -> None:
    tree, write = story.change(key_of("pods", name), after=1, **options)
    tree["metadata"]["labels"] = {"a": "b"}
    write()


def a_pod_is_labelled(story: Story) -> dict[str, int]:
    story.pod("p")
    labelled(story, "p", by="alice")
    return {}


def a_pod_is_bound(story: Story) -> dict[str, int]:
    story.pod("p")
    bound(story, "p", "n1", by="alice")
    labelled(story, "p", by="alice")
    return {"a binding by alice, taken as recorded": 1}


def the_scheduler_binds_a_pod(story: Story) -> dict[str, int]:
    story.pod("p")
    bound(story, "p", "n1", by=SCHEDULER)
    labelled(story, "p", by="alice")
    return {}


def a_claim_is_allocated(story: Story) -> dict[str, int]:
    story.publish("p", device("a"))
    story.claim("c")
    story.allocate("c", result("p", "a"), by="alice")
    story.reserve("c")
    return {"an allocation by alice, taken as recorded": 1}


def a_claim_was_allocated_when_the_recording_began(story: Story) -> dict[str, int]:
    status = {"allocation": {"devices": {"results": [result("p", "a")]}}}
    story.put(key_of("resourceclaims", "c"), {"status": status}, verb="baseline", by="lister")
    return {"an allocation by lister before the object was first seen": 1}


@pytest.mark.parametrize(
    "tell",
    [
        a_pod_is_labelled,
        a_pod_is_bound,
        the_scheduler_binds_a_pod,
        a_claim_is_allocated,
        a_claim_was_allocated_when_the_recording_began,
    ],
)
def test_placements_of_others_are_counted(tell: Callable[[Story], dict[str, int]]) -> None:
    story = Story()
    story.put(key_of("nodes", "n1"), {})
    expected = tell(story)
    assert recorded(story).not_comparable == expected


def test_rule_that_was_there_before_the_beginning_set_the_taint() -> None:
    """A run that begins in the middle reads no write of it."""
    story = Story()
    story.publish("p", device("a"))
    story.claim("c")
    ruled(story)
    count = len(story.events)
    story.allocate("c", result("p", "a"))
    objects = ObjectsProjection()
    for event in story.events[:count]:
        objects.fold(event)
    head = Head(revision=Revision(count), time=story.events[count - 1].stamp.time)
    begun = Beginning(
        head=head, after=head.revision, state=objects.dump(), objects=story.events[:count]
    )
    uid = story.objects[key_of("resourceclaims", "c")]["metadata"]["uid"]
    assert recorded(story, begun).violations(None) == {uid: True}


def ruled(story: Story, name: str = "rule", pool: str = "p") -> None:
    spec = {"deviceSelector": {"driver": DRIVER, "pool": pool}, "taint": TAINT}
    story.put(key_of("devicetaintrules", name), {"spec": spec}, after=1)


def before_the_rule(story: Story) -> dict[str, bool]:
    story.allocate("c", result("p", "a"))
    ruled(story)
    return {}


def after_the_rule(story: Story) -> dict[str, bool]:
    ruled(story)
    story.allocate("c", result("p", "a"))
    return {"c": True}


def of_another_pool(story: Story) -> dict[str, bool]:
    ruled(story, pool="q")
    story.allocate("c", result("p", "a"))
    return {}


def tainted_by_its_slice(story: Story) -> dict[str, bool]:
    """No rule set the taint, so no quirk of rules has to do with it."""
    ruled(story, pool="q")
    story.publish("p", device("a", taints=[TAINT]))
    story.allocate("c", result("p", "a"))
    return {"c": False}


def at_the_instant_of_the_rule(story: Story) -> dict[str, bool]:
    """The rule must have been there before the attempt."""
    ruled(story)
    story.allocate("c", result("p", "a"), after=0)
    return {"c": False}


@pytest.mark.parametrize(
    "tell",
    [
        before_the_rule,
        after_the_rule,
        of_another_pool,
        tainted_by_its_slice,
        at_the_instant_of_the_rule,
    ],
)
def test_allocation_despite_a_taint_says_whether_a_rule_set_it(
    tell: Callable[[Story], dict[str, bool]],
) -> None:
    story = Story()
    story.publish("p", device("a"))
    story.claim("c")
    expected = tell(story)
    uid = story.objects[key_of("resourceclaims", "c")]["metadata"]["uid"]
    assert recorded(story).violations(None) == ({uid: expected["c"]} if expected else {})
