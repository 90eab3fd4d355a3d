"""The words about capacity over time."""

from app.analysis.capacity import text
from app.analysis.capacity.answers import (
    CapacityCourse,
    CapacityMoment,
    ClassCapacity,
    CounterCapacity,
)
from app.domain.log import Revision


def moment(revision: int, *classes: ClassCapacity, stranded: str = "0") -> CapacityMoment:
    counter = CounterCapacity(
        driver="gpu.example.com", counter="memory", total="8", left="4", stranded=stranded
    )
    return CapacityMoment(
        revision=Revision(revision),
        time="2026-01-02T03:00:00Z",
        classes=classes,
        counters=(counter,),
    )


def test_counter_says_what_stranded_means_where_some_of_it_is():
    """`0 of that stranded` and a pair such as `32 (70)` were read by nobody who knew no redra."""
    some, none = moment(1, stranded="2").counters[0], moment(1).counters[0]
    assert text.counter_text(some).endswith("2 of it stranded (no free device can draw on it)")
    assert text.counter_text(none).endswith("4 of 8 left, none of it stranded")


def test_moment_names_the_devices_of_the_largest_claim_beside_those_that_are_free():
    gpu = ClassCapacity(name="gpu", devices=8, allocatable=8, free=7, largest=4, node="n0")
    course = CapacityCourse(
        history="h",
        revision=Revision(2),
        time="2026-01-02T03:00:00Z",
        moments=(moment(1), moment(2, gpu, stranded="2")),
    )
    assert list(text.capacity_lines(course))[-3:] == [
        "over time, by revision: devices of the largest claim that fits, of those free",
        "  2026-01-02 03:00:00        1  no device class",
        "  2026-01-02 03:00:00        2  gpu 4 of 7; stranded memory 2",
    ]


def test_moments_with_the_numbers_of_the_one_before_are_counted_alone():
    """A cluster that has just been made has a dozen lines in which there is no class yet."""
    gpu = ClassCapacity(name="gpu", devices=8, allocatable=8, free=7, largest=4, node="n0")
    course = CapacityCourse(
        history="h",
        revision=Revision(5),
        time="2026-01-02T03:00:00Z",
        moments=(moment(1), moment(2), moment(3), moment(4, gpu), moment(5)),
    )
    assert list(text.capacity_lines(course))[-4:] == [
        "  2026-01-02 03:00:00        1  no device class",
        "  2026-01-02 03:00:00        4  gpu 4 of 7",
        "  2026-01-02 03:00:00        5  no device class",
        "  2 more moments have the numbers of the one before",
    ]
