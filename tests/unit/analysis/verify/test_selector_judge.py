"""Allocated devices and the selectors of their requests, judged without a node."""

from collections.abc import Callable

import pytest

from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.in_flight import WINDOW
from app.analysis.verify.selector_judge import SelectorJudge
from app.analysis.verify.unseen_writes import UnseenWrites
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.log.pages import Page
from app.domain.objects.profile import Profile
from app.domain.values.fields import dra
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import device, key_of, result

BIG = 'device.attributes["gpu.example.com"].size == "big"'
SMALL = 'device.attributes["gpu.example.com"].size == "small"'
LONG, SHORT = 16.0, 14.0
"""Seconds before an allocation: before its choice, and perhaps after it."""


def of_size(size: str, name: str = "a") -> dict:
    return device(name, attributes={"size": {"string": size}} if size else None)


def put_class(story: Story, *expressions: str, after: float = 1) -> None:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    story.put(key_of("deviceclasses", "gpu"), {"spec": {"selectors": selectors}}, after=after)


def request(*expressions: str, name: str = "r") -> dict:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {"name": name, "deviceClassName": "gpu", "selectors": selectors}


def story_of(size: str, selector: str = BIG, *, of_class: str = "") -> Story:
    """A device of a size, and a claim that selects by it; `of_class` selects for the class."""
    story = Story()
    put_class(story, *([of_class] if of_class else []))
    story.publish("p", of_size(size))
    story.claim("x", {"name": "r", "exactly": request(selector)})
    return story


def refusal(
    story: Story, *, lacks_times: bool = False, later: ObjectKey | None = None, **options
) -> str:
    """Why the allocation is wrong that the claim gets now; `later` is a gap noticed afterwards."""
    unknown = result("nowhere", "a")
    story.allocate("x", unknown, result("p", "a", options.pop("request", "r")), **options)
    number = len(story.events) - 1
    if later is not None:
        story.gap(later, time_quality="exact")
    views = LiveViews(Profile(version="1.36"))
    index = AllocationIndex(lacks_times=lacks_times)
    unseen = UnseenWrites(index, views)
    judge = SelectorJudge(index, views, unseen, WINDOW)
    for event, parts in Page(story.events).splits:
        index.add(event, parts)
    for event in story.events[:number]:
        unseen.follow(event)
        views.fold(event)
    last = story.events[number]
    claim = views.objects.get(last.key)
    assert claim is not None
    return judge.refusal(last, claim, dra.allocation(last.object))


def test_devices_are_judged_by_class_and_request() -> None:
    assert refusal(story_of("big")) == ""
    assert BIG in refusal(story_of("small"))
    assert refusal(story_of("big", of_class=BIG)) == ""
    assert SMALL in refusal(story_of("big", of_class=SMALL))
    assert SMALL in refusal(story_of("big", SMALL, of_class=BIG))


def test_alternative_is_judged_by_its_own_selectors() -> None:
    for selector, is_wrong in ((BIG, False), (SMALL, True)):
        story = story_of("big")
        other = SMALL if selector == BIG else BIG
        listed = [request(other, name="one"), request(selector, name="two")]
        story.claim("x", {"name": "r", "firstAvailable": listed})
        assert bool(refusal(story, request="r/two")) is is_wrong


def patched(story: Story) -> None:
    story.put(key_of("resourceslicepatches", "patch"), {"spec": {}})


def patch_lately_gone(story: Story) -> None:
    """The scheduler may have chosen while the patch still changed the attribute."""
    patched(story)
    story.remove(key_of("resourceslicepatches", "patch"), after=LONG)


def class_lately_changed(story: Story) -> None:
    put_class(story, after=LONG)
    put_class(story)
    story.other(after=SHORT - 1)


def slice_lately_changed(story: Story) -> None:
    story.publish("p", of_size("small"))
    story.other(after=SHORT - 1)


def slice_lately_gone(story: Story) -> None:
    """It may have been of the same pool, with another device of that name."""
    story.publish("q", of_size("small", "b"))
    story.remove(key_of("resourceslices", "q"))


def slice_of_another_generation(story: Story) -> None:
    new = {**story.objects[key_of("resourceslices", "p")]}
    new["spec"] = {**new["spec"], "pool": {**new["spec"]["pool"], "generation": 2}, "devices": []}
    story.put(key_of("resourceslices", "q"), new)


def class_unseen(story: Story) -> None:
    story.gap(key_of("deviceclasses", "gpu"))


def slices_unseen(story: Story) -> None:
    story.gap(key_of("resourceslices", ""))


def slices_unseen_again(story: Story) -> None:
    slice_shown_since_all_were_unseen(story)
    slices_unseen(story)


def everything_unseen_again(story: Story) -> None:
    slice_shown_since_all_were_unseen(story)
    story.gap(ObjectKey("", "", "", ""))


def slice_shown_in_part_since_all_were_unseen(story: Story) -> None:
    slices_unseen(story)
    key = key_of("resourceslices", "p")
    story.put(key, story.objects[key], losses=("truncated_body",))
    story.other(after=LONG)


def slice_shown_since_all_were_unseen(story: Story) -> None:
    """Which other slices there are says nothing of a device that this one shows."""
    slices_unseen(story)
    story.publish("p", of_size("small"))
    story.other(after=LONG)


def slice_unseen(story: Story) -> None:
    story.gap(key_of("resourceslices", "p"))


SILENT = (
    patched,
    patch_lately_gone,
    class_lately_changed,
    slice_lately_changed,
    slice_lately_gone,
    slice_of_another_generation,
    class_unseen,
    slice_unseen,
    slices_unseen,
    slices_unseen_again,
    everything_unseen_again,
    slice_shown_in_part_since_all_were_unseen,
)


@pytest.mark.parametrize("happens", SILENT, ids=lambda each: each.__name__)
def test_nothing_is_said_of_a_device_that_may_have_been_another(
    happens: Callable[[Story], None],
) -> None:
    story = story_of("small")
    happens(story)
    assert refusal(story) == ""


def test_nothing_is_said_where_times_or_places_in_the_order_are_guesses() -> None:
    assert refusal(story_of("small"), lacks_times=True) == ""
    assert refusal(story_of("small"), losses=("no_rv",)) == ""


def test_nothing_is_said_where_slices_were_unseen_since_as_a_later_gap_shows() -> None:
    for later, is_wrong in (("resourceslices", False), ("resourceclaims", True)):
        story = story_of("small")
        slice_shown_since_all_were_unseen(story)
        assert bool(refusal(story, later=key_of(later, "")._replace(namespace=""))) is is_wrong


def test_selector_that_fails_proves_nothing() -> None:
    assert refusal(story_of("")) == ""


def changed_long_ago(story: Story) -> None:
    story.publish("p", of_size("small"))
    put_class(story)
    story.other(after=LONG)


def class_known_again(story: Story) -> None:
    class_unseen(story)
    put_class(story)
    story.other(after=LONG)


def slice_of_another_pool_unseen(story: Story) -> None:
    story.publish("q", of_size("small", "b"))
    story.gap(key_of("resourceslices", "q"))


def node_and_claim_unseen(story: Story) -> None:
    story.gap(key_of("nodes", ""))
    story.gap(key_of("resourceclaims", "other"))


@pytest.mark.parametrize(
    "happens",
    [
        changed_long_ago,
        class_known_again,
        slice_of_another_pool_unseen,
        node_and_claim_unseen,
        slice_shown_since_all_were_unseen,
    ],
    ids=lambda each: each.__name__,
)
def test_what_cannot_have_changed_the_device_excuses_nothing(
    happens: Callable[[Story], None],
) -> None:
    story = story_of("small")
    happens(story)
    assert refusal(story)
