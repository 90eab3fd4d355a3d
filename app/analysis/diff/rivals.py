"""Rivals in a fork: pods that waited at its moment, and of which the order decides who is placed.

A history does not hold the queue of its scheduler. Pods of one priority that waited at the moment
of a fork are tried there in an order that a change may turn, and no event shows it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.analysis.diff.courses import Course, Courses, Placement
from app.analysis.diff.sides import DiffBounds, Side
from app.analysis.diff.testimony import Query, Testimony, collect
from app.analysis.explain.pods import Steps
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A placement in a fork whose pod another one of its priority could have come before.

    `rivals` are the pods that fit the node as of `decided`, and no longer once the pod was bound.
    """

    history: str
    pod: ObjectKey
    placed: Placement
    rivals: tuple[ObjectKey, ...]

    def to_json(self) -> JsonObject:
        """The entry of the answer."""
        return {
            "history": self.history,
            "pod": str(self.pod),
            "node": self.placed.node,
            "time": timestamps.micro_text(self.placed.at.time),
            "revision": self.placed.at.revision,
            "rivals": [str(key) for key in self.rivals],
        }

    @property
    def text(self) -> str:
        """The doubt as a sentence."""
        time = timestamps.micro_text(self.placed.at.time)
        names = ", ".join(f"{key.namespace}/{key.name}" for key in self.rivals)
        return (
            f"{self.history} places {self.pod.namespace}/{self.pod.name} on {self.placed.node} at "
            f"{time}; tried before it, {names} would have had that place"
        )


def contests(side: Side, bounds: DiffBounds) -> Steps[tuple[Contest, ...]]:
    """The contests among the pods that waited at the moment of a fork."""
    waited: dict[str, int] = {
        event.uid: core.priority(event.object) or 0
        for event in side.start
        if event.key[:2] == api_resources.PODS and core.is_refused(event.object)
    }
    if len(waited) < 2:
        return ()
    courses = [each for each in Courses(side).all() if each.uid in waited]
    yield
    pairs = [
        (course, placed, rival)
        for course in courses
        if (placed := course.placed) is not None and placed.decided >= side.common
        for rival in courses
        if waited[rival.uid] == waited[course.uid] and _waits(rival, placed, bounds.within)
    ][: bounds.explained_max]
    if not pairs:
        return ()
    queries: list[Query] = []
    for number, (_, placed, rival) in enumerate(pairs):
        queries += _queries(2 * number, placed, rival)
    answers = yield from collect(side, queries, bounds)
    rivals: dict[str, list[ObjectKey]] = {}
    for number, (course, placed, rival) in enumerate(pairs):
        early, late = answers[2 * number], answers[2 * number + 1]
        if _fits(early, placed.node) and not _fits(late, placed.node):
            rivals.setdefault(course.uid, []).append(rival.key)
    return tuple(_contests(side, courses, rivals))


def _contests(
    side: Side, courses: Sequence[Course], rivals: dict[str, list[ObjectKey]]
) -> Iterator[Contest]:
    for course in courses:
        if course.uid in rivals and course.placed is not None:
            yield Contest(
                history=side.name,
                pod=course.key,
                placed=course.placed,
                rivals=tuple(rivals[course.uid]),
            )


def _waits(rival: Course, placed: Placement, within: int) -> bool:
    """Whether a pod waits when another one is placed, and longer than that takes."""
    if rival.ended is not None and rival.ended.revision <= placed.at.revision:
        return False
    return rival.placed is None or rival.placed.at.time > placed.at.time + within


def _queries(number: int, placed: Placement, rival: Course) -> Iterator[Query]:
    """The questions whether a pod fits the node before the placement, and after it."""
    for place, revision in enumerate((placed.decided, placed.at.revision)):
        yield Query(
            number=number + place,
            revision=Revision(revision),
            pod=rival.key,
            nodes=(placed.node,),
        )


def _fits(answer: Testimony, node: str) -> bool:
    reason = answer.nodes.get(node)
    return reason is not None and not reason.text
