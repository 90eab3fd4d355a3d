"""What depends on records whose times contradict others, and what does not."""

import pytest

from app.analysis.replay.unsure.dependence import TAINTS, Read
from app.analysis.replay.unsure.odd_times import OddTimes
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.values import api_resources
from app.domain.values.timestamps import SECOND, Instant

POD = ObjectKey("", "pods", "default", "p")
OTHER = ObjectKey("", "pods", "default", "other")
RULE = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "r")
PLACE = ObjectKey(*api_resources.NAMESPACES, "", "default")
PODS = Read(frozenset((api_resources.PODS,)))


def at(seconds):
    return Instant(seconds * SECOND)


def followed(*lines):
    """The times of lines: a key, when it was asked and became known, and whether it is odd."""
    times = OddTimes(is_doubted=True)
    for number, (key, asked, known, is_odd) in enumerate(lines):
        losses = (Loss.TIMES_CONTRADICT.value,) if is_odd else ()
        origin = Origin(source="a", losses=losses, asked=at(asked), answered=at(asked))
        times.note(
            Event(
                revision=Revision(number + 1),
                type=EventType.OBJECT_UPDATED,
                key=key,
                uid=key.name,
                body=b"{}",
                stamp=Stamp(time=at(known), actor=Actor(user="a"), verb="update", origin=origin),
            ),
            at(known),
        )
    times.conclude()
    return times


def concerned(times, seconds, read, key=OTHER):
    return times.concern({key.name}, {key}, at(seconds), read)


ONE = (
    (OTHER, 100, 100, False),
    (POD, 150, 110, True),
    (OTHER, 120, 120, False),
    (OTHER, 121, 121, False),
)


def test_time_of_one_line_concerns_its_object_at_any_time():
    times = followed(*ONE)
    assert not times.are_everywhere
    assert [concerned(times, each, PODS, POD) for each in (1, 110, 999)] == [True] * 3


def test_time_of_one_line_concerns_others_only_while_they_may_have_decided_by_it():
    times = followed(*ONE)
    assert [concerned(times, each, PODS) for each in (99, 105, 120, 130)] == [
        False, True, True, False,
    ]  # fmt: skip
    assert concerned(times, 120, None)
    assert not concerned(times, 120, Read(frozenset()))


def test_time_of_a_taint_concerns_later_evictions():
    times = followed((OTHER, 100, 100, False), (RULE, 150, 110, True))
    assert [concerned(times, each, Read(TAINTS)) for each in (99, 105, 999)] == [False, True, True]
    assert not concerned(times, 999, None)


def test_time_of_a_namespace_concerns_what_ends_with_it():
    assert concerned(followed((PLACE, 150, 110, True)), 999, Read(frozenset()))


def test_of_two_lines_that_contradict_each_other_either_may_be_wrong():
    times = followed((POD, 150, 110, True), (OTHER, 120, 120, False))
    assert concerned(times, 999, PODS)


@pytest.mark.parametrize(
    "lines",
    [
        ((POD, 100, 100, True), (OTHER, 110, 110, True)),
        ((POD, 150, 110, True), (POD, 160, 110, True), (OTHER, 120, 120, False)),
        (),
    ],
    ids=["two objects", "two late lines", "no line that says it"],
)
def test_more_than_one_accident_is_a_clock_and_concerns_everything(lines):
    times = followed(*lines)
    assert times.are_everywhere
    assert concerned(times, 999, Read(frozenset()))
