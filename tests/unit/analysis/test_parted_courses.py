"""What two courses of a pod differ in, as docs/how-to/compare.md says, and when they part."""

import random
from itertools import pairwise

import pytest

from app.analysis.diff.classes import Class, Parted, PodAspect, classes_of, parted
from app.analysis.diff.courses import Course, Disruption, Moment, Placement, PodDevice, Refusal
from app.analysis.diff.endings import Border
from app.analysis.diff.matching import Pair
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

POD = ObjectKey("", "pods", "ns", "p")


def moment(seconds: int) -> Moment:
    return Moment(Revision(seconds + 1), Instant(seconds * SECOND))


def course(
    placed: tuple[int, str] | None = None,
    evicted: int | None = None,
    ended: int | None = None,
    said: tuple[tuple[int, str], ...] = (),
) -> Course:
    """A pod that got a device at a second, or none; failed attempts are seconds and messages."""
    return Course(
        key=POD,
        uid="p",
        ordinal=0,
        owner=None,
        base="p",
        created=moment(0),
        refusals=[
            Refusal(at=moment(at), decided=Revision(at), message=message) for at, message in said
        ],
        placed=None
        if placed is None
        else Placement(
            at=moment(placed[0]),
            decided=Revision(placed[0]),
            node=placed[1][0],
            devices=(PodDevice("c", "r", placed[1]),),
        ),
        evicted=None if evicted is None else Disruption(at=moment(evicted), reason="r", message=""),
        ended=None if ended is None else moment(ended),
    )


def drawn(draw: random.Random) -> dict:
    """The parts of a course that can be: nothing is evicted or ends before it is placed."""
    placed = evicted = ended = None
    said: list[tuple[int, str]] = []
    if draw.random() < 0.7:
        placed = (draw.choice((2, 3, 6)), draw.choice(("n1", "n2", "m1")))
        if draw.random() < 0.4:
            evicted = draw.choice((10, 11, 20))
    else:
        said = [(at, draw.choice("xy")) for at in (1, 4, 7)[: draw.randrange(4)]]
    if draw.random() < 0.4:
        ended = (evicted or 0) + draw.choice((12, 13, 30))
    return {"placed": placed, "evicted": evicted, "ended": ended, "said": tuple(said)}


def texts(parts: dict) -> list[str]:
    messages = [message for _, message in parts["said"]]
    return [b for a, b in pairwise(["", *messages]) if a != b]


def expected(a: dict, b: dict) -> tuple[set[str], list[tuple[str, int, str]]]:
    """The classes, and each aspect in which the courses part: what, at which second, on which side.

    Instants within a second of each other are one.
    """
    classes: set[str] = set()
    partings: list[tuple[str, int, str]] = []

    def differ(one: int | None, other: int | None, within: int = 1) -> bool:
        if one is None or other is None:
            return one is not other
        return abs(one - other) > within

    def part(aspect: str, one: int | None, other: int | None) -> None:
        both = [(at, side) for at, side in ((one, "a"), (other, "b")) if at is not None]
        partings.append((aspect, *min(both)))

    at = [None if each["placed"] is None else each["placed"][0] for each in (a, b)]
    is_moved = None not in at and a["placed"][1] != b["placed"][1]
    if b["evicted"] and not a["evicted"]:
        classes.add("evicted")
    if a["evicted"] and not b["evicted"] and b["placed"]:
        classes.add("spared")
    if a["placed"] and not b["placed"]:
        classes.add("newly unschedulable")
    if b["placed"] and not a["placed"]:
        classes.add("newly placed")
    if is_moved:
        classes.add("moved")
    times = [("placement", *at)] if None not in at else []
    if None not in at and a["evicted"] and b["evicted"]:
        times.append(("eviction", a["evicted"], b["evicted"]))
    if at.count(None) != 1 and not a["evicted"] and not b["evicted"]:
        times.append(("end", a["ended"], b["ended"]))
    for _, one, other in times:
        if differ(one, other):
            is_later = other is None or (one is not None and other > one)
            classes.add("later" if is_later else "earlier")
    if is_moved or differ(*at):
        part("placement", *at)
    if differ(a["evicted"], b["evicted"]):
        part("eviction", a["evicted"], b["evicted"])
    if not a["evicted"] and not b["evicted"]:
        if differ(a["ended"], b["ended"]):
            part("end", a["ended"], b["ended"])
    else:
        for side, one, other in (("a", a, b), ("b", b, a)):
            if not one["evicted"] and one["ended"] and one["ended"] < other["evicted"] - 1:
                partings.append(("end", one["ended"], side))
    if not classes and texts(a) != texts(b):
        classes.add("said otherwise")
    return classes, partings


@pytest.mark.parametrize("seed", draws.seeds(2))
def test_courses_of_a_pod_differ_and_part_as_the_page_says(seed: int) -> None:
    draw, seen = random.Random(f"parted {seed}"), set()
    for _ in range(400):
        a, b = drawn(draw), drawn(draw)
        if draw.random() < 0.5:
            b = {**a, draw.choice(["placed", "evicted", "ended", "said"]): None}
            b["said"] = b["said"] or ()
            if b["placed"] is None:
                b["evicted"] = None
        pair = Pair(number=1, a=course(**a), b=course(**b))
        classes, partings = expected(a, b)
        said = classes_of(pair, SECOND)
        assert {each.value for each in said} == classes, (a, b)
        seen |= classes
        if partings:
            first = parted(pair, SECOND)
            order = [each.value for each in PodAspect]
            wanted = min(partings, key=lambda each: (each[1], order.index(each[0])))
            assert (first.aspect.value, first.time, first.side) == (
                wanted[0],
                wanted[1] * SECOND,
                wanted[2],
            ), (a, b)
        elif classes == {"said otherwise"}:
            first = parted(pair, SECOND)
            assert first.aspect is PodAspect.MESSAGES
    assert len(seen) == 8


@pytest.mark.parametrize("side", ["a", "b"])
def test_pod_of_one_side_parts_when_it_was_made(side: str) -> None:
    pair = Pair(number=1, **{"a": None, "b": None, side: course()})
    assert [each.value for each in classes_of(pair, SECOND)] == [f"only in {side.upper()}"]
    first = parted(pair, SECOND)
    assert (first.aspect, first.time, first.side) == (PodAspect.EXISTENCE, 0, side)


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [
        (0, "ns/p"),
        (1, "ns/p (the 2nd of that name)"),
        (2, "ns/p (the 3rd of that name)"),
        (3, "ns/p (the 4th of that name)"),
        (10, "ns/p (the 11th of that name)"),
        (20, "ns/p (the 21st of that name)"),
        (111, "ns/p (the 112th of that name)"),
    ],
)
def test_pod_of_a_name_that_was_used_before_has_its_number(ordinal: int, name: str) -> None:
    pod = course()
    pod.ordinal = ordinal
    assert pod.name == name


@pytest.mark.parametrize(
    ("longer", "shorter", "is_after"),
    [
        pytest.param(((3, "x"), (12, "y")), ((3, "x"),), True, id="said after the end"),
        pytest.param(((3, "x"), (9, "y")), ((3, "x"),), True, id="at the end, as far as known"),
        pytest.param(((3, "x"), (8, "y")), ((3, "x"),), False, id="said before the end"),
        pytest.param(((3, "x"), (12, "y")), ((3, "z"),), False, id="another message before"),
        pytest.param(((3, "x"), (12, "y")), ((3, "x"), (5, "z")), False, id="only the shorter one"),
        pytest.param(((3, "x"), (5, "x"), (12, "y")), ((3, "x"),), True, id="repeated"),
        pytest.param(((12, "y"),), (), True, id="nothing before"),
    ],
)
@pytest.mark.parametrize("side", ["a", "b"])
def test_message_after_the_end_of_the_shorter_recording_is_no_difference(
    side: str,
    longer: tuple[tuple[int, str], ...],
    shorter: tuple[tuple[int, str], ...],
    is_after: bool,
) -> None:
    """It ends at 10, and events within a second of each other are at one instant."""
    border = Border(longer=side, end=Instant(10 * SECOND), within=SECOND)
    other = "b" if side == "a" else "a"
    pair = Pair(number=1, **{side: course(said=longer), other: course(said=shorter)})
    said = Parted(aspect=PodAspect.MESSAGES, time=3 * SECOND, side="a")
    assert border.is_after(pair, [Class.SAID], said) is is_after


@pytest.mark.parametrize(
    ("at", "on", "classes", "is_after"),
    [
        (12, "b", [Class.PLACED], True),
        (9, "b", [Class.PLACED], True),
        (8, "b", [Class.PLACED], False),
        (12, "a", [Class.PLACED], False),
        (12, "b", [Class.MOVED], False),
    ],
)
def test_act_of_the_longer_recording_after_the_end_is_no_difference(
    at: int, on: str, classes: list[Class], is_after: bool
) -> None:
    """Another place needs a placement on both sides, so the shorter one did not end before it."""
    border = Border(longer="b", end=Instant(10 * SECOND), within=SECOND)
    pair = Pair(number=1, a=course(), b=course((at, "n1")))
    act = Parted(aspect=PodAspect.PLACEMENT, time=at * SECOND, side=on)
    assert border.is_after(pair, classes, act) is is_after
