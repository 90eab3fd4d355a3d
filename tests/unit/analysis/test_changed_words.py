"""Changed texts of many objects, grouped by the words that changed."""

import random

import pytest

from app.analysis.diff import words
from app.analysis.diff.endings import after_end, border_of
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.objects.profile import Profile
from app.domain.values import timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant


def key_of(name: str) -> ObjectKey:
    return ObjectKey("", "pods", "ns", name)


def test_words_that_differ_are_the_texts_without_the_words_that_both_begin_and_end_with() -> None:
    draw = random.Random(3)
    for _ in range(300):
        left, right = (draw.choices("abc", k=draw.randrange(1, 7)) for _ in range(2))
        old, new = words.parts(" ".join(left), " ".join(right))
        olds, news = old.split(), new.split()
        assert not (olds and news and (olds[0] == news[0] or olds[-1] == news[-1]))
        assert len(left) - len(olds) == len(right) - len(news)
        assert any(
            left == [*left[:begin], *olds, *left[begin + len(olds) :]]
            and right == [*left[:begin], *news, *left[begin + len(olds) :]]
            for begin in range(len(left) + 1)
        )


def test_whole_text_is_the_difference_where_the_other_one_is_missing() -> None:
    assert words.parts("", "a b") == ("", "a b")
    assert words.parts("a b", "") == ("a b", "")


def changed(*changes: tuple[str, str, str], whole: str = "") -> list[str]:
    """The lines about changes, each of the words before and after, and of a pod."""
    entries: dict[tuple[str, ...], words.Rewritten] = {}
    for before, after, pod in changes:
        words.add(entries, "its condition", before, after, key_of(pod), whole)
    return [words.reason_of(each).text for each in entries.values()]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a", "b", 'once: "a" becomes "b"'),
        ("a", "", 'once: no longer "a"'),
        ("", "b", 'once: now also "b"'),
        ("", "", "once: in other words"),
        ("x" * 300, "b", f'once: "{"x" * 200} …" becomes "b"'),
    ],
)
def test_change_is_said_by_its_words(before: str, after: str, shown: str) -> None:
    assert changed((before, after, "p")) == [f"its condition, {shown} (pods/ns/p)"]


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        (1, "pods/ns/p0"),
        (3, "pods/ns/p0, pods/ns/p1, pods/ns/p2"),
        (5, "pods/ns/p0, pods/ns/p1, pods/ns/p2 and 2 more"),
        (40, "pods/ns/p0, pods/ns/p1, pods/ns/p2 and 37 more"),
    ],
)
def test_changes_of_the_same_words_are_one_that_counts_its_objects(
    objects: int, named: str
) -> None:
    """An object whose text changed twice is one object, and two changes."""
    pods = [f"p{number}" for number in (0, *range(objects), objects - 1)]
    (one, other) = changed(*(("a", "b", pod) for pod in pods), ("a", "c", "q"))
    assert one == f'its condition, {objects + 2} times: "a" becomes "b" ({named})'
    assert other == 'its condition, once: "a" becomes "c" (pods/ns/q)'


def test_whole_text_is_an_example_unless_it_is_what_changed() -> None:
    assert changed(("a", "b", "p"), whole="it is b now") == [
        'its condition, once: "a" becomes "b" (pods/ns/p); such as: it is b now'
    ]
    assert changed(("", "b", "p"), whole="b") == ['its condition, once: now also "b" (pods/ns/p)']


def written(
    resource: str, name: str, at: int, type_: EventType = EventType.OBJECT_UPDATED
) -> Event:
    stamp = Stamp(time=Instant(at * SECOND), actor=Actor(user="u"), verb="update")
    key = ObjectKey("", resource, "ns", name)
    return Event(revision=Revision(at), type=type_, key=key, uid=Uid(name), body=b"{}", stamp=stamp)


LATER = [
    written("pods", "p", 11),
    written("pods", "p", 12),
    written("events", "e", 12),
    written("nodes", "n", 13),
    written("", "", 14, EventType.DECISION_RECORDED),
]


def side(beyond: list[Event], left_out: int = 0, *, is_finishing: bool = False) -> Side:
    return Side(
        name="h",
        profile=Profile(),
        options=ControllerOptions(),
        events=[written("pods", "p", 9)],
        revision=Revision(9),
        until=Instant(10 * SECOND),
        beyond=beyond,
        left_out=left_out,
        is_finishing=is_finishing,
    )


@pytest.mark.parametrize(
    ("is_about_pods", "also", "subjects"),
    [
        (True, (), ["pods/ns/p"]),
        (True, ("pods/ns/q",), ["pods/ns/q", "pods/ns/p"]),
        (False, (), ["pods/ns/p", "nodes/ns/n"]),
    ],
)
@pytest.mark.parametrize("longer", ["a", "b"])
def test_part_after_the_end_of_the_shorter_one_is_of_the_longer_one(
    longer: str, is_about_pods: bool, also: tuple[str, ...], subjects: list[str]
) -> None:
    """It counts events, and names each object once; what an Event says is about another one."""
    sides = {"a": side([]), "b": side([])} | {longer: side(LATER, left_out=5)}
    border = border_of(sides["a"], sides["b"], within=0)
    assert border is not None
    assert (border.longer, border.end) == (longer, 10 * SECOND)
    after = after_end(sides["a"], sides["b"], border, also, is_about_pods=is_about_pods)
    assert after is not None
    assert after.to_json(1) == {
        "of": "b" if longer == "a" else "a",
        "time": timestamps.micro_text(Instant(10 * SECOND)),
        "events": 5,
        "subjects": subjects[:1],
        "leftOut": len(subjects) - 1,
    }
    assert list(after.subjects) == subjects


@pytest.mark.parametrize(
    ("left_out", "also", "events"), [(0, (), None), (2, (), 7), (0, ("x",), 5)]
)
def test_run_that_finishes_what_was_under_way_has_nothing_to_name(
    left_out: int, also: tuple[str, ...], events: int | None
) -> None:
    a, b = side([]), side(LATER, left_out, is_finishing=True)
    after = after_end(a, b, border_of(a, b, within=0), also, is_about_pods=False)
    assert (after and (after.events, after.subjects)) == (events and (events, also))


def test_neither_of_two_recordings_that_end_together_is_longer() -> None:
    assert border_of(side([]), side([]), within=0) is None
    assert after_end(side([]), side([]), None, is_about_pods=True) is None
