"""What the lost last line of one claim may explain of the allocations of others.

Claim `x` of a pod on `node` is not allocated, as far as lines tell. Claim `y` then gets a device.
"""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.compare import ComparisonCounts, ComparisonResult, DifferenceKind
from app.analysis.verify.reallocate import CHOSEN_ANEW, AllocationChecker
from app.analysis.views import LiveViews
from app.bootstrap.deciders import deciders_of
from app.domain.log import HistoryId, HistoryInfo, ObjectKey, Revision
from app.domain.log.pages import Page
from app.domain.log.records import TimeQuality
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of, pod, result, slice_, user
from tests.unit.analysis.verify.test_selector_judge import BIG, of_size, put_class, request


def request_for(count: int = 1, *selectors: str) -> dict:
    """A request for devices."""
    counted = {"allocationMode": "ExactCount", "count": count}
    return {"name": "r", "exactly": {**request(*selectors), **counted}}


ANY, TWO, LARGE = request_for(), request_for(2), request_for(1, BIG)
SAME, OPEN, WRONG = (
    ComparisonResult.SAME,
    ComparisonResult.NOT_COMPARABLE,
    ComparisonResult.DIFFERENT,
)


def judged(asked: dict, *given: str, held: str = "", is_lost: bool = True) -> ComparisonResult:
    """The comparison of the allocation of y, which gets a device that comes later than others.

    `asked` is the request of x, `held` its device before its last line is lost.
    """
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("small", "a"), of_size("small", "b"), of_size("big", "c"))
    story.claim("x", asked)
    story.pod("of-x", "x", node="node")
    if held:
        story.allocate("x", result("p", held))
    lost_after = story.revision
    story.claim("y", request_for(len(given)))
    story.pod("of-y", "y", node="node")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", each) for each in given]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    write()
    return result_of(story, lost_after if is_lost else None)


def result_of(
    story: Story, lost_after: Revision | None, number: int = 0, **lacks: bool
) -> ComparisonResult:
    """The comparison of an event of a story, so many before the last one."""
    before, after = counts_of(story, lost_after, number, **lacks)
    (change,) = (each for each in after.counts if after.counts[each] != before.counts.get(each, 0))
    return change


def counts_of(
    story: Story, lost_after: Revision | None = None, number: int = 0, **lacks: bool
) -> tuple[ComparisonCounts, ComparisonCounts]:
    """The counts before and after an event of a story, so many before the last one.

    `lacks` are options of the index: what the whole log leaves out.
    """
    deciders = deciders_of(HistoryInfo(id=HistoryId(1), name="h"))
    index, views = AllocationIndex(**lacks), LiveViews(deciders.rules.profile)
    checker = AllocationChecker(
        index,
        views,
        compiler=deciders.compiler,
        quirks=deciders.quirks,
        schemas=deciders.rules.schemas,
    )
    for event, parts in Page(story.events).splits:
        index.add(event, parts)
    if lost_after is not None:
        index.note_last_lost(key_of("resourceclaims", "x"), lost_after)
    before, compared = checker.result(), story.events[: len(story.events) - number]
    for event in compared:
        before = checker.result()
        checker.before(event, is_ours=False)
        views.fold(event)
    return before, checker.result()


@pytest.mark.parametrize(
    ("asked", "given", "expected"),
    [
        (ANY, ["a"], SAME),
        (ANY, ["b"], OPEN),  # x has a
        (ANY, ["c"], WRONG),  # x has one of a and b
        (TWO, ["c"], OPEN),
        (LARGE, ["b"], WRONG),  # x has c, or nothing
        (LARGE, ["c"], WRONG),
        (ANY, ["a", "c"], OPEN),
        (ANY, ["a", "z"], WRONG),
    ],
)
def test_claim_may_hold_what_it_asks_for(asked, given, expected) -> None:
    assert judged(asked, *given) is expected
    assert judged(asked, *given, is_lost=False) is (SAME if expected is SAME else WRONG)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", OPEN),  # x has given it back
        ("b", SAME),
        ("c", WRONG),
    ],
)
def test_claim_may_have_given_back_what_it_held(given, expected) -> None:
    assert judged(ANY, given, held="a") is expected
    assert judged(ANY, given, held="a", is_lost=False) is (SAME if expected is SAME else WRONG)


def value_at(tree: Any, path: str) -> Any:
    """The value at a path such as `devices.results[0].device`; None where there is none."""
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(tree, list):
            tree = tree[int(part)] if int(part) < len(tree) else None
        else:
            tree = (tree or {}).get(part)
    return tree


@pytest.mark.parametrize("has_node", [True, False])
@pytest.mark.parametrize("given", ["a", "b", "c", "z"])
def test_each_compared_allocation_has_an_author_and_each_wrong_one_a_kind(
    given: str, has_node: bool
) -> None:
    """Devices a and b are large and wanted. Without its node only what is refused is wrong."""
    story = Story()
    put_class(story)
    if has_node:
        story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("big", "a"), of_size("big", "b"), of_size("small", "c"))
    story.claim("y", LARGE)
    story.pod("of-y", "y", node="node")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", given)]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    write()
    _, counts = counts_of(story)
    expected = {
        "a": SAME if has_node else OPEN,
        "b": WRONG if has_node else OPEN,
        "c": WRONG,
        "z": WRONG if has_node else OPEN,
    }[given]
    assert {each: count for each, count in counts.counts.items() if count} == {expected: 1}
    assert sum(counts.authors.values()) == (expected is not OPEN)
    assert sum(sum(each.values()) for each in counts.reasons.values()) == (expected is OPEN)
    kinds = {DifferenceKind.VIOLATION} if given in ("c", "z") else {DifferenceKind.OTHER_CHOICE}
    assert set(counts.kinds) == (kinds if expected is WRONG else set())
    for wrong in counts.differences:
        body = wrong.to_json()
        assert given in str(body["recordedTree"])
        for side in ("recorded", "again"):
            assert body[side] == value_at(body[f"{side}Tree"], body["path"])
    if expected is WRONG and not has_node:
        (wrong,) = counts.differences
        assert any(BIG in each for each in wrong.broken)


def local(story: Story, name: str, node: str, *devices: dict[str, Any], **more: Any) -> None:
    """A slice whose devices are on one node."""
    tree = slice_(name, *devices, **more)
    del tree["spec"]["allNodes"]
    tree["spec"]["nodeName"] = node
    story.put(key_of("resourceslices", name), tree, after=1)


def apart(*pods_of_x: tuple[str, str, str], spoil: str = "", known: tuple[str, ...] = ()) -> Any:
    """The comparison of an allocation of b, where a is the first device of `node`.

    `pods_of_x` are names, the claim that each names, and the node on which it ends up.
    """
    story = Story()
    put_class(story)
    for name in ("node", "elsewhere", *known):
        story.put(key_of("nodes", name), {})
    counters = {"counters": {"units": "4"}} if spoil == "counters" else {}
    local(story, "p", "node", of_size("small", "a"), of_size("small", "b"), **counters)
    local(story, "q", "elsewhere", of_size("small", "k"))
    if spoil == "patch":
        story.put(key_of("resourceslicepatches", "patch"), {"spec": {}})
    story.claim("x", ANY)
    story.claim("other", ANY)
    for name, claim, _ in pods_of_x:
        story.pod(name, claim)
    lost_after = story.revision
    story.claim("y", ANY)
    story.pod("of-y", "y", node="node")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "b")]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    write()
    for name, claim, node in pods_of_x:
        if node:
            story.pod(name, claim, node=node)
    return result_of(story, lost_after, number=sum(bool(node) for *_, node in pods_of_x))


@pytest.mark.parametrize(
    ("pods_of_x", "expected"),
    [
        ([], OPEN),
        ([("one", "x", "")], OPEN),
        ([("one", "x", "node")], OPEN),
        ([("one", "x", "elsewhere")], WRONG),
        ([("one", "x", "unknown")], OPEN),
        ([("one", "other", "elsewhere")], OPEN),
        ([("one", "x", "node"), ("two", "x", "elsewhere")], WRONG),
        ([("one", "x", ""), ("two", "x", "elsewhere")], WRONG),
        ([("one", "other", "elsewhere"), ("two", "x", "node")], OPEN),
    ],
)
def test_claim_may_hold_what_all_nodes_of_its_pods_reach(pods_of_x, expected) -> None:
    assert apart(*pods_of_x) is expected


@pytest.mark.parametrize("spoil", ["counters", "patch"])
def test_anybody_may_hold_a_device_that_counters_or_patches_tie_to_others(spoil: str) -> None:
    assert apart(("one", "x", "elsewhere"), spoil=spoil) is OPEN


def test_pods_of_other_namespaces_use_other_claims() -> None:
    story = Story()
    put_class(story)
    for name in ("node", "elsewhere"):
        story.put(key_of("nodes", name), {})
    local(story, "p", "node", of_size("small", "a"), of_size("small", "b"))
    story.claim("x", ANY)
    story.put(ObjectKey("", "pods", "other", "of-x"), pod("x", node="elsewhere"))
    lost_after = story.revision
    story.claim("y", ANY)
    story.pod("of-y", "y", node="node")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "b")]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    write()
    assert result_of(story, lost_after) is OPEN


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (ANY, WRONG),  # x has one of a and b
        (TWO, OPEN),
        ({"name": "r", "exactly": {**request(), "allocationMode": "All"}}, OPEN),
        ({"name": "r", "firstAvailable": [{"name": "s", **request()}]}, WRONG),
        ({"name": "r", "firstAvailable": [{"name": "s", **request(), "count": 2}]}, OPEN),
        ({"name": "r", "exactly": request()}, WRONG),
    ],
)
def test_claim_for_one_device_cannot_hold_two(asked: dict, expected: ComparisonResult) -> None:
    """`y` gets c, although a and b come before it."""
    assert judged(asked, "c") is expected


FIRST_SEEN = "the claim was allocated when it was first seen"


def write_y(story: Story, given: str, *, verb: str = "update", losses: Any = ()) -> None:
    """Claim `y` has a device, and is reserved for its pod."""
    tree, write = story.change(key_of("resourceclaims", "y"), after=1, verb=verb, losses=losses)
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", given)]}},
        "reservedFor": [user("of-y", story.uid("of-y"))],
    }
    write()


def waiting_world(*, has_node: bool = True, node: str = "node") -> Story:
    """Claim `y` of a pod that ends up on a node, whose devices are a and b."""
    story = Story()
    put_class(story)
    if has_node:
        story.put(key_of("nodes", "node"), {})
    story.publish("p", of_size("small", "a"), of_size("small", "b"))
    story.claim("y", ANY)
    story.pod("of-y", "y", node=node)
    return story


def is_changed(story: Story) -> None:
    write_y(story, "a")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["metadata"]["labels"] = {"a": "b"}
    write()


def is_exchanged(story: Story) -> None:
    write_y(story, "a")
    write_y(story, "b")


def is_written_otherwise(story: Story) -> None:
    write_y(story, "a")
    tree, write = story.change(key_of("resourceclaims", "y"))
    tree["status"]["allocation"]["devices"]["config"] = []
    write()


def is_given_back(story: Story) -> None:
    write_y(story, "a")
    story.free("y")
    write_y(story, "a")


def is_made_with_devices(story: Story) -> None:
    write_y(story, "a")
    tree = story.objects[key_of("resourceclaims", "y")]
    story.remove(key_of("resourceclaims", "y"))
    story.put(key_of("resourceclaims", "y"), tree)


def is_deleted_with_devices(story: Story) -> None:
    tree = story.objects[key_of("resourceclaims", "y")]
    tree["status"] = {"allocation": {"devices": {"results": [result("p", "a")]}}}
    story.put(key_of("resourceclaims", "y"), tree, verb="delete")


def is_seen(story: Story, quality: TimeQuality) -> None:
    write_y(story, "a", losses=("collapsed",))
    event = story.events[-1]
    origin = replace(event.stamp.origin, time_quality=quality)
    story.events[-1] = replace(event, stamp=replace(event.stamp, origin=origin))


def is_missed(story: Story) -> None:
    story.gap(key_of("resourceclaims", "y"), "metadata_only")


COMPARED: dict[str, tuple[Any, dict[str, Any], int, list[str]]] = {
    "allocated": (lambda story: write_y(story, "a"), {}, 1, []),
    "changed afterwards": (is_changed, {}, 1, []),
    "given back and allocated again": (is_given_back, {}, 2, []),
    "exchanged": (is_exchanged, {}, 1, ["it took the place of another allocation"]),
    "written in another form": (is_written_otherwise, {}, 1, []),
    "made with devices": (is_made_with_devices, {}, 1, [FIRST_SEEN]),
    "deleted with devices that nobody gave": (is_deleted_with_devices, {}, 0, [FIRST_SEEN]),
    "seen when several changes were over": (
        lambda story: is_seen(story, TimeQuality.DERIVED),
        {},
        0,
        ["several changes were seen as one"],
    ),
    "seen as several changes at a known time": (
        lambda story: is_seen(story, TimeQuality.EXACT),
        {},
        1,
        [],
    ),
    "on an unknown node": (
        lambda story: write_y(story, "a"),
        {"node": ""},
        0,
        ["the node of the allocation is not recorded"],
    ),
    "on a node that is not recorded": (
        lambda story: write_y(story, "a"),
        {"has_node": False},
        0,
        ["the node's object is not recorded"],
    ),
    "not recorded": (
        is_missed,
        {},
        0,
        ["a write of the claim was not recorded, or without its body"],
    ),
    "not allocated": (lambda story: story.reserve("y"), {}, 0, []),
}


@pytest.mark.parametrize(("tell", "world", "same", "reasons"), COMPARED.values(), ids=COMPARED)
def test_each_allocation_is_compared_once_or_says_why_not(
    tell: Any, world: dict[str, Any], same: int, reasons: list[str]
) -> None:
    story = waiting_world(**world)
    tell(story)
    story.other()
    _, counts = counts_of(story)
    found = {each: number for each, number in counts.counts.items() if number}
    expected = {SAME: same, OPEN: len(reasons)}
    assert found == {each: number for each, number in expected.items() if number}
    assert sorted(counts.reasons) == sorted(reasons)


@pytest.mark.parametrize(
    ("pause", "given", "expected"),
    [
        (1, "a", WRONG),  # it was in use when the devices were chosen
        (3, "a", OPEN),  # another process may have chosen anew
        (1, "b", SAME),
        (3, "b", SAME),
    ],
)
def test_device_that_is_given_back_after_the_nomination_needs_another_choice(
    pause: float, given: str, expected: ComparisonResult
) -> None:
    story = waiting_world(node="")
    story.allocate("held", result("p", "a"))
    tree, write = story.change(key_of("pods", "of-y"), after=1)
    tree["status"]["nominatedNodeName"] = "node"
    write()
    story.free("held", after=0)
    story.other(after=pause - 1)
    write_y(story, given)
    story.pod("of-y", "y", node="node")
    before, counts = counts_of(story, number=1)
    (found,) = (each for each in counts.counts if counts.counts[each] != before.counts.get(each, 0))
    assert found is expected
    assert set(counts.reasons) - set(before.reasons) == (
        {CHOSEN_ANEW} if expected is OPEN else set()
    )
