"""Where the courses of a pod diverge, of which one side may show fewer attempts."""

from dataclasses import replace

from app.analysis.diff.classes import Class, Parted, PodAspect, classes_of, parted
from app.analysis.diff.courses import Course, Moment, Refusal
from app.analysis.diff.matching import Pair
from app.domain.log import ObjectKey, Revision
from app.domain.values.timestamps import SECOND, Instant


def course(*said: tuple[int, str]) -> Course:
    """A pod that waits, with the second and the message of each attempt."""
    return Course(
        key=ObjectKey("", "pods", "ns", "p"),
        uid="uid",
        ordinal=0,
        owner=None,
        base="p",
        created=Moment(Revision(1), Instant(0)),
        refusals=[
            Refusal(
                at=Moment(Revision(second + 1), Instant(second * SECOND)),
                decided=Revision(second),
                message=message,
            )
            for second, message in said
        ],
    )


def test_messages_are_compared_without_attempts_that_said_the_same_again() -> None:
    """A condition shows the first of them only, decisions show all."""
    recorded = course((1, "full"), (50, "timeout"), (70, "taken"))
    decided = course((1, "full"), (10, "full"), (20, "full"), (50, "timeout"), (71, "full"))
    pair = Pair(number=0, a=recorded, b=decided)
    assert classes_of(pair, SECOND) == (Class.SAID,)
    assert parted(pair, SECOND) == Parted(aspect=PodAspect.MESSAGES, time=70 * SECOND, side="a")


def test_message_that_only_one_side_has_is_where_courses_diverge() -> None:
    recorded = course((1, "full"))
    decided = course((1, "full"), (10, "full"), (50, "timeout"))
    pair = Pair(number=0, a=recorded, b=decided)
    assert parted(pair, SECOND) == Parted(aspect=PodAspect.MESSAGES, time=50 * SECOND, side="b")


def test_messages_that_differ_part_courses_when_the_first_of_them_was_said() -> None:
    """As all that one side does before the other; pods of workloads are made at other times."""
    early, late = course((25, "one node")), course((35, "two nodes"))
    said = Parted(aspect=PodAspect.MESSAGES, time=25 * SECOND, side="a")
    assert parted(Pair(number=0, a=early, b=late), SECOND) == said
    assert parted(Pair(number=0, a=late, b=early), SECOND) == replace(said, side="b")
