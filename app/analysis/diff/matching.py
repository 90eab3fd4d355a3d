"""Pairs of pods: a pod of one side with the same pod of the other side.

Pods with the same name are paired in their order. The remaining ones have generated names, and are
paired in order among those with the same namespace, controller and base of the name: the third pod
of a ReplicaSet corresponds to the third one on the other side.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from app.analysis.diff.courses import Course


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """One pod on both sides; None where it does not exist."""

    number: int
    a: Course | None
    b: Course | None

    @property
    def name(self) -> str:
        """`namespace/name` in the first side that has it."""
        course = self.a or self.b
        assert course is not None, "a pair has at least one side"
        return course.name

    @property
    def place(self) -> tuple[str, int]:
        """The pod's key, and the number of earlier pods with that key."""
        course = self.a or self.b
        assert course is not None, "a pair has at least one side"
        return str(course.key), course.ordinal

    @property
    def common_name(self) -> str:
        """A name for the pod of both sides, which is no uid and no key."""
        return f"pod {self.number}"

    def side(self, which: str) -> Course | None:
        """The course on side `a` or `b`."""
        return self.a if which == "a" else self.b

    def is_made_apart(self, within: int) -> bool:
        """Whether a controller made the pod at another time on the other side."""
        if self.a is None or self.b is None or self.a.owner is None:
            return False
        return abs(self.a.created.time - self.b.created.time) > within


def pairs(left: Iterable[Course], right: Iterable[Course]) -> list[Pair]:
    """All pods of both sides once: those of the first in order, then those only in the second."""
    others = {(course.key, course.ordinal): course for course in right}
    matched: list[tuple[Course, Course | None]] = []
    for course in left:
        matched.append((course, others.pop((course.key, course.ordinal), None)))
    rest: dict[Hashable, list[Course]] = defaultdict(list)
    for course in others.values():
        rest[_kin(course)].append(course)
    paired: list[Pair] = []
    for mine, other in matched:
        if other is None and (kin := rest.get(_kin(mine))) and mine.base != mine.key.name:
            other = kin.pop(0)
        paired.append(Pair(number=len(paired), a=mine, b=other))
    for kin in rest.values():
        paired += (Pair(number=len(paired) + n, a=None, b=other) for n, other in enumerate(kin))
    return paired


def _kin(course: Course) -> Hashable:
    owner = course.owner
    return (
        course.key.namespace,
        course.base,
        (owner.kind, owner.name) if owner is not None else None,
    )


def by_uid(pairs: Iterable[Pair], which: str) -> dict[str, Pair]:
    """The pairs by the uid of their pod on one side."""
    return {course.uid: pair for pair in pairs if (course := pair.side(which)) is not None}


def names(pairs: Iterable[Pair], which: str) -> dict[str, str]:
    """The names that both sides have for their pods, by the uid of the pod on one side."""
    return {uid: pair.common_name for uid, pair in by_uid(pairs, which).items()}
