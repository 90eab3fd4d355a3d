"""What the first pass over a log knows in advance, question by question.

Each row is a story and an answer about it. `after`, the part that is sent to another process, has
to give the same answers about all that comes later.
"""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from app.analysis.verify.allocation_index import AllocationIndex
from app.domain.log import ObjectKey, Revision
from app.domain.log.pages import Page
from app.domain.log.records import TimeQuality
from app.domain.values import timestamps
from app.domain.values.identifiers import PoolId
from app.domain.values.timestamps import SECOND, Instant
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import (
    DRIVER,
    START,
    claim,
    device,
    key_of,
    pod,
    result,
    slice_,
    user,
)

SCHEDULER, USER = "scheduler", "someone"
LISTED, FIRST_SEEN, UNDATED = "baseline", ("synthetic_create",), ("gap",)


def index_of(story: Story, **lacks: bool) -> AllocationIndex:
    index = AllocationIndex(**lacks)
    for event, parts in Page(story.events).splits:
        index.add(event, parts)
    return index


def allocate(story: Story, name: str, *pods: str, by: str = SCHEDULER, **options: Any) -> int:
    """Allocate a claim for pods."""
    tree, write = story.change(key_of("resourceclaims", name), by=by, **options)
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "a")]}},
        "reservedFor": [user(each, story.uid(each)) for each in pods],
    }
    return write()


def waiting(**options: Any) -> Story:
    """Node 1, pod 2 and claim 3 of it, which a user makes, and claim 4, which is allocated at 5."""
    story = Story()
    story.other()
    story.put(key_of("pods", "pod"), pod("x"), **options)
    story.put(key_of("resourceclaims", "x"), claim(), **options)
    story.claim("other")
    allocate(story, "other")
    return story


@pytest.mark.parametrize(
    ("options", "maker", "entered"),
    [
        pytest.param({}, USER, 6, id="the claim is made after the pod"),
        pytest.param({}, SCHEDULER, 2, id="who allocates makes its claims after the choice"),
        pytest.param({"verb": LISTED}, USER, 6, id="of a listed pod the claim alone counts"),
        pytest.param({"verb": LISTED}, SCHEDULER, 0, id="nothing is known"),
        pytest.param({"losses": FIRST_SEEN}, SCHEDULER, 0, id="it was there before its first line"),
        pytest.param({"losses": ("no_rv",)}, SCHEDULER, 0, id="its place is a guess"),
    ],
)
def test_pod_is_complete_when_the_last_of_it_and_its_claims_is_made(
    options: dict[str, Any], maker: str, entered: int
) -> None:
    story = waiting(**options)
    story.put(key_of("resourceclaims", "made"), claim(), by=maker, after=1)
    uids = [story.objects[key_of("resourceclaims", "made")]["metadata"]["uid"]]
    allocate(story, "made", "pod", after=1)
    index = index_of(story)
    assert index.entered(story.uid("pod"), uids) == entered
    assert index.written[-1].entered == entered
    assert index.written[-1].made == (0 if maker == SCHEDULER else 6)
    assert index.made_at(2) == index.written[-1].made
    assert index.made_at(0) == 0


@pytest.mark.parametrize(
    ("pods", "claims", "entered"),
    [
        (["pod"], [], 2),
        (["pod"], ["x"], 3),
        (["pod"], ["x", "other"], 4),
        (["pod"], ["unknown"], 2),
        (["unknown"], ["x"], 3),
        (["unknown"], [], 0),
        (["unknown"], ["unknown"], 0),
    ],
)
def test_latest_of_a_pod_and_its_claims_counts(
    pods: list[str], claims: list[str], entered: int
) -> None:
    story = waiting()
    uids = {
        key.name: tree["metadata"]["uid"]
        for key, tree in story.objects.items()
        if key.resource in ("pods", "resourceclaims")
    }
    index = index_of(story)
    (uid,) = (uids.get(each, "") for each in pods)
    assert index.entered(uid, [uids.get(each, "") for each in claims]) == entered


def test_claim_that_was_listed_may_be_older_than_any_choice() -> None:
    story = waiting()
    story.put(key_of("resourceclaims", "listed"), claim(), verb=LISTED)
    allocate(story, "listed", "pod")
    written = index_of(story).written[-1]
    assert (written.made, written.entered) == (0, 2)


def test_written_allocation_says_of_which_claim_it_is() -> None:
    story = waiting()
    allocate(story, "x", "pod")
    uid = story.objects[key_of("resourceclaims", "x")]["metadata"]["uid"]
    assert index_of(story).written[-1].as_object == {
        "metadata": {"namespace": "ns", "name": "x", "uid": uid},
        "status": {"allocation": {"devices": {"results": [result("p", "a")]}}},
    }


@pytest.mark.parametrize(
    ("volumes", "at_once"),
    [([], True), ([{"persistentVolumeClaim": {}}], False), ([{"emptyDir": {}}], True)],
)
def test_choice_for_a_pod_without_volumes_is_a_moment_old(
    volumes: list[dict[str, Any]], at_once: bool
) -> None:
    story = waiting()
    tree = pod("x")
    story.put(key_of("pods", "late"), {**tree, "spec": {**tree["spec"], "volumes": volumes}})
    story.other(after=60)
    story.other(after=2)
    allocate(story, "x", "late", after=2)
    written = index_of(story).written[-1]
    assert (written.time - written.decided_from < 10 * SECOND) is at_once


def test_claim_of_several_pods_is_complete_when_it_is_made() -> None:
    """Which of its pods was placed first is not known."""
    story = waiting()
    story.put(key_of("pods", "second"), pod("x"), after=1)
    allocate(story, "x", "pod", "second", after=1)
    assert index_of(story).written[-1].entered == 3


def test_claim_is_written_once_for_each_time_that_it_is_allocated() -> None:
    story = waiting()
    first = allocate(story, "x", "pod")
    allocate(story, "x", "pod")
    story.free("x")
    second = allocate(story, "x", "pod")
    story.remove(key_of("resourceclaims", "x"))
    story.claim("x")
    third = allocate(story, "x", "pod")
    revisions = [each.revision for each in index_of(story).written]
    assert revisions == [5, first, second, third]


@pytest.mark.parametrize(
    ("lacks", "losses"), [({}, ()), ({"lacks_ends": True}, ("synthetic_delete",))]
)
def test_node_of_a_pod_may_show_at_its_end_alone(
    lacks: dict[str, bool], losses: tuple[str, ...]
) -> None:
    story = Story()
    story.put(key_of("pods", "recorded"), pod(node="node"))
    story.put(key_of("pods", "bound"), pod())
    story.put(key_of("pods", "gone"), pod())
    story.put(key_of("pods", "waiting"), pod())
    uids = {name: story.uid(name) for name in ("recorded", "bound", "gone", "waiting")}
    story.put(key_of("pods", "bound"), pod(node="node"))
    story.objects[key_of("pods", "gone")]["spec"]["nodeName"] = "node"
    story.remove(key_of("pods", "gone"), losses=losses)
    end = story.remove(key_of("pods", "waiting"), after=2, losses=losses)
    index = index_of(story, **lacks)
    assert index.node_of_pod == {uids[name]: "node" for name in ("recorded", "bound", "gone")}
    assert [(each.revision, each.time, each.key.name, each.uid) for each in index.unplaced] == [
        (end, START + 2 * SECOND, "waiting", uids["waiting"])
    ]
    assert index.ends_at == START + 2 * SECOND


def changed_slice(story: Story) -> None:
    story.publish("p", device("a"))
    story.publish("p", device("b"))  # a second later


def deleted_slice(story: Story) -> None:
    story.publish("p", device("a"))
    story.remove(key_of("resourceslices", "p"), after=1)


def new_slice(story: Story) -> None:
    story.publish("q", device("a"))
    story.publish("p", device("b"))


def changed_node(story: Story) -> None:
    story.put(key_of("nodes", "p"), {}, after=1)
    story.put(key_of("nodes", "p"), {"at": 1}, after=1)


P, ALL_SLICES = key_of("resourceslices", "p"), ObjectKey(*key_of("resourceslices", "")[:2], "", "")
AT = Instant(START + 2 * SECOND)


@pytest.mark.parametrize(
    ("tell", "key", "begin", "end", "expected"),
    [
        (changed_slice, P, AT - 1, AT, True),
        (changed_slice, P, AT, AT + 1, False),
        (changed_slice, P, AT - 2, AT - 1, False),
        (changed_slice, ALL_SLICES, AT - 1, AT, False),
        (deleted_slice, P, AT - 1, AT, True),
        (deleted_slice, ALL_SLICES, AT - 1, AT, True),
        (deleted_slice, ALL_SLICES, AT, AT + 1, False),
        (deleted_slice, key_of("resourceslices", "q"), AT - 1, AT, False),
        (new_slice, P, AT - 1, AT, False),
        (changed_node, key_of("nodes", "p"), AT - 1, AT, False),
    ],
)
def test_change_lies_between_two_instants_that_include_the_later_one(
    tell: Callable[[Story], None], key: ObjectKey, begin: int, end: int, expected: bool
) -> None:
    story = Story()
    tell(story)
    assert index_of(story).is_changed_between(key, Instant(begin), Instant(end)) is expected


def test_object_that_was_made_unseen_since_the_log_began_may_have_been_written_before() -> None:
    """Where no line of its kind was seen before, the kind may have been recorded only since."""
    story = Story()
    story.put(key_of("nodes", "elsewhere"), {}, losses=("collapsed",))
    story.other(after=60)
    made = {"metadata": {"creationTimestamp": timestamps.seconds_text(story.time)}}
    early = {"metadata": {"creationTimestamp": timestamps.seconds_text(START)}}
    story.put(key_of("nodes", "old"), early, losses=FIRST_SEEN)
    story.put(key_of("nodes", "new"), made, losses=FIRST_SEEN)  # 4
    story.put(key_of("nodes", "known"), made)
    story.put(key_of("deviceclasses", "first"), made, losses=FIRST_SEEN)  # 6
    story.put(key_of("deviceclasses", "second"), made, losses=FIRST_SEEN)
    expected = [("new", 1, 3), ("any deviceclasses", 1, 5), ("second", 1, 6)]
    assert unseen(story) == expected


def unseen(story: Story, **lacks: bool) -> list[tuple[str, int, int]]:
    """The names of what may have been written unseen, with the first and last revision of it."""
    index = index_of(story, **lacks)
    seen: dict[str, list[int]] = {}
    for revision in range(story.revision + 3):
        for key in index.unseen_at(Revision(revision)):
            seen.setdefault(key.name or f"any {key.resource}", []).append(revision)
    for revisions in seen.values():
        assert revisions == list(range(revisions[0], revisions[-1] + 1))
    spans = [(name, revisions[0], revisions[-1]) for name, revisions in seen.items()]
    return sorted(spans, key=lambda span: span[::-1])


def test_write_that_a_later_line_shows_lies_between_the_lines_about_its_object() -> None:
    story = waiting()
    story.gap(key_of("resourceclaims", "x"), *UNDATED)  # 6
    story.gap(key_of("resourceclaims", "unknown"), *UNDATED)
    story.gap(key_of("pods", "pod"), *UNDATED)
    story.gap(key_of("configmaps", "c"), *UNDATED)
    story.gap(key_of("resourceclaims", "other"), "metadata_only")
    assert unseen(story) == [("x", 4, 5), ("unknown", 1, 6)]


def test_gap_of_a_kind_that_is_noticed_late_begins_at_the_last_line_of_the_kind() -> None:
    story = waiting()
    kind = ObjectKey(*key_of("resourceclaims", "")[:2], "", "")
    story.other()
    story.gap(kind, time_quality=TimeQuality.EXACT)  # 7
    story.gap(kind)
    story.gap(ObjectKey("", "pods", "", ""), time_quality=TimeQuality.EXACT)
    story.gap(ObjectKey(*key_of("resourceslices", "")[:2], "", ""), time_quality=TimeQuality.EXACT)
    assert unseen(story) == [("any resourceclaims", 6, 6), ("any resourceslices", 1, 9)]


def test_object_that_is_first_seen_when_it_changes_was_made_since_its_name_was_seen() -> None:
    story = Story()
    story.publish("p", device("a"))
    story.remove(P)
    story.other()
    story.put(P, slice_("p", device("a")), losses=FIRST_SEEN)  # 4
    story.put(key_of("resourceslices", "q"), slice_("of-q", device("a")), losses=FIRST_SEEN)  # 5
    story.put(key_of("nodes", "n"), {}, losses=FIRST_SEEN)
    story.put(key_of("resourceslices", "r"), slice_("r", device("a")))
    index = index_of(story)
    assert unseen(story) == [("p", 3, 3), ("q", 1, 4)]
    assert index.pools == {
        P: PoolId((DRIVER, "p")),
        key_of("resourceslices", "q"): PoolId((DRIVER, "of-q")),
    }
    assert index.slices == {
        key_of("resourceslices", each): at for each, at in (("p", 1), ("q", 5), ("r", 7))
    }


@pytest.mark.parametrize(("losses", "expected"), [((), [("x", 4, 6)]), (("synthetic_delete",), [])])
def test_end_that_is_concluded_is_all_that_is_missing_where_ends_are_left_out(
    losses: tuple[str, ...], expected: list[tuple[str, int, int]]
) -> None:
    story = waiting()
    story.other()
    story.gap(key_of("resourceclaims", "x"), *UNDATED)  # 7
    story.remove(key_of("resourceclaims", "x"), losses=losses)
    assert unseen(story, lacks_ends=True) == expected


def test_slices_and_rules_are_shown_by_their_last_recorded_line() -> None:
    story = Story()
    story.publish("p", device("a"))
    story.publish("p", device("b"))
    rule, node = key_of("devicetaintrules", "rule"), key_of("nodes", "n")
    story.put(rule, {"spec": {}})
    story.put(node, {})
    story.put(node, {"at": 1})
    uids = {key: story.objects[key]["metadata"]["uid"] for key in (P, rule, node)}
    story.remove(rule, losses=("synthetic_delete",))  # 6
    story.remove(P)  # 7
    index = index_of(story)
    shown = {
        key.name: max(
            (at for at in range(9) if index.is_shown_after(key, uid, Revision(at))), default=-1
        )
        for key, uid in uids.items()
    }
    assert shown == {"p": 6, "rule": 2, "n": -1}
    assert not index.is_shown_after(P, "another", Revision(0))


def test_last_write_before_an_instant_is_strictly_before_it() -> None:
    story = waiting()  # the allocation of other, at a second
    later = allocate(story, "x", "pod", after=3)
    index = index_of(story)
    first = index.written[0].time
    assert index.written_before(first) == 0
    assert index.written_before(Instant(first + 1)) == 5
    assert index.written_before(Instant(first + 3 * SECOND)) == 5
    assert index.written_before(Instant(first + 3 * SECOND + 1)) == later


def nominated(pause: float = 1) -> Story:
    """Pod 6 waits with claim 7, is nominated at 8, and its claim is allocated at 9."""
    story = waiting()
    key = key_of("pods", "second")
    story.put(key, pod("y"), after=1)
    story.put(key_of("resourceclaims", "y"), claim())
    tree, write = story.change(key, by=SCHEDULER, after=1)
    tree["status"]["nominatedNodeName"] = "elsewhere"
    write()
    allocate(story, "y", "second", after=pause)
    return story


@pytest.mark.parametrize(("pause", "anew"), [(1, False), (3, True)])
def test_allocation_was_chosen_before_the_nomination_of_its_pod(pause: float, anew: bool) -> None:
    index = index_of(nominated(pause))
    assert index.chosen_by(Revision(9)) == 8
    assert index.may_be_chosen_anew(Revision(9)) is anew
    assert index.chosen_from(Revision(9)) == index.written[-1].decided_from
    for revision in (5, 8, 10):
        assert index.chosen_by(Revision(revision)) == 0
        assert index.may_be_chosen_anew(Revision(revision)) is False
    assert index.chosen_from(Revision(8)) is None
    assert index.chosen_from(Revision(10)) is None


def test_nothing_is_known_of_choices_where_lines_are_lost() -> None:
    story = nominated()
    story.gap(key_of("resourceclaims", "x"), *UNDATED)
    assert index_of(story).chosen_by(Revision(9)) == 0


@pytest.mark.parametrize(
    ("gap", "is_forgotten"),
    [
        (ObjectKey("", "", "", ""), True),
        (ObjectKey("", "pods", "", ""), True),
        (key_of("pods", "pod"), True),
        (ObjectKey(*key_of("resourceclaims", "")[:2], "", ""), False),
        (key_of("nodes", "n"), False),
    ],
)
def test_pod_may_have_been_refused_in_a_gap_of_pods(gap: ObjectKey, is_forgotten: bool) -> None:
    story = nominated()
    last = story.events.pop()
    story.gap(gap)
    index = AllocationIndex()
    for event, parts in Page((*story.events, replace(last, revision=Revision(10)))).splits:
        index.add(event, parts)
    assert (index.chosen_by(Revision(10)) == 0) is is_forgotten


def test_lost_pods_say_nothing_where_ends_are_left_out() -> None:
    story = waiting()
    for resource, name in (("pods", "pod"), ("resourceclaims", "x")):
        story.gap(key_of(resource, name), *UNDATED)
    for lacks_ends in (False, True):
        lost = index_of(story, lacks_ends=lacks_ends).lost
        assert lost.has_lost(key_of("resourceclaims", "x"))
        assert lost.has_lost(key_of("pods", "pod")) is not lacks_ends
        assert lost.follows_any


def test_index_of_a_whole_log_lacks_nothing() -> None:
    story = waiting()
    story.remove(key_of("pods", "pod"), after=1)
    index = index_of(story)
    assert (index.lacks_rules, index.lacks_ends, index.lacks_times) == (False, False, False)
    assert not index.lost.follows_any
    (end,) = index.unplaced
    assert end.open_since == index.open_since(end.time) < end.time
    assert AllocationIndex().open_since(end.time) == end.time
    assert AllocationIndex().ends_at == 0


def test_lost_last_write_may_come_at_any_time_after_the_last_line() -> None:
    story = waiting()
    index = index_of(story)
    key = key_of("resourceclaims", "x")
    index.note_last_lost(key, Revision(3))
    assert [key in index.unseen_at(Revision(each)) for each in (2, 3, 4, 900)] == [
        False,
        False,
        True,
        True,
    ]
    assert index.last_lost == {key}


@pytest.mark.parametrize("cut", [0, 5, 8, 9])
def test_part_after_a_revision_knows_what_the_whole_knows_of_later(cut: int) -> None:
    story = nominated(3)
    story.put(key_of("resourceslices", "q"), slice_("of-q", device("a")), losses=FIRST_SEEN)
    story.publish("q", device("b"))
    story.gap(key_of("resourceclaims", "y"), *UNDATED)
    story.remove(key_of("pods", "pod"), after=1)
    whole = index_of(story, lacks_times=True)
    whole.lacks_rules = True
    whole.note_last_lost(key_of("resourceclaims", "other"), Revision(5))
    part, later = AllocationIndex(), [each for each in whole.written if each.revision > cut]
    part.become(whole.after(Revision(cut)))
    assert part.written == later
    for each in later:
        assert part.chosen_from(each.revision) == whole.chosen_from(each.revision) is not None
        assert part.chosen_by(each.revision) == whole.chosen_by(each.revision)
        assert part.may_be_chosen_anew(each.revision) is whole.may_be_chosen_anew(each.revision)
    uid = story.objects[key_of("resourceclaims", "y")]["metadata"]["uid"]
    for name in ("second", "none"):
        pod_uid = story.uid(name) if name == "second" else name
        assert part.entered(pod_uid, [uid]) == whole.entered(pod_uid, [uid]) == 7
    q = key_of("resourceslices", "q")
    between = q, Instant(0), whole.ends_at
    assert part.is_changed_between(*between) is whole.is_changed_between(*between) is True
    assert part.open_since(whole.ends_at) == whole.open_since(whole.ends_at) < whole.ends_at
    for revision in map(Revision, range(story.revision + 2)):
        assert part.unseen_at(revision) == whole.unseen_at(revision)
    for name in (
        "node_of_pod",
        "unplaced",
        "last_lost",
        "lost",
        "shown",
        "slices",
        "pools",
        "lacks_rules",
        "lacks_ends",
        "lacks_times",
        "ends_at",
    ):
        assert getattr(part, name) == getattr(whole, name), name
        assert name in ("node_of_pod", "lacks_ends") or getattr(part, name), name
