"""The order in which two pods were tried on each side, where it alone tells the sides apart."""

from collections.abc import Iterable

from app.analysis.diff.courses import Course
from app.analysis.diff.matching import Pair

NAME = "the order of attempts"


def turned(pair: Pair, others: Iterable[Pair], time: int, within: int) -> str:
    """A sentence about the first other pod that was tried before this one on one side only.

    Both were tried at about `time`, and meet on a node. Empty if there is no such pod.
    """
    for other in others:
        if other is pair or pair.a is None or pair.b is None or other.a is None or other.b is None:
            continue
        here = _precedes(pair.a, other.a, time, within)
        there = _precedes(pair.b, other.b, time, within)
        nodes = [_nodes(each) for each in (pair, other)]
        if None not in (here, there) and here != there and nodes[0] & nodes[1]:
            first, second = ("A", "B") if here else ("B", "A")
            order = f"was tried before pod {other.name} in {first}, and after it in {second}"
            return f"pod {pair.name} {order}"
    return ""


def _precedes(one: Course, two: Course, time: int, within: int) -> bool | None:
    """Whether a pod was tried before another one; None if one was not tried at about that time."""
    tries = [_tried(each, time, within) for each in (one, two)]
    if tries[0] is None or tries[1] is None or tries[0] == tries[1]:
        return None
    return tries[0] < tries[1]


def _tried(course: Course, time: int, within: int) -> int | None:
    """The revision as of which a pod was tried at about a time."""
    attempts = [(each.at.time, each.decided) for each in course.refusals]
    if course.placed is not None:
        attempts.append((course.placed.at.time, course.placed.decided))
    return next((decided for at, decided in attempts if abs(at - time) <= within), None)


def _nodes(pair: Pair) -> set[str]:
    """The nodes of a pod on both sides."""
    placed = [each.placed for each in (pair.a, pair.b) if each is not None]
    return {each.node for each in placed if each is not None}
