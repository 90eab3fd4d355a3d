"""The classes of differences, and the instant at which the two courses of a pod diverge."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.diff.courses import Course, Refusal
from app.analysis.diff.matching import Pair


class Class(StrEnum):
    """The kinds of differences of a pod, gravest first."""

    ONLY_A = "only in A"
    ONLY_B = "only in B"
    EVICTED = "evicted"
    SPARED = "spared"
    UNSCHEDULABLE = "newly unschedulable"
    PLACED = "newly placed"
    MOVED = "moved"
    LATER = "later"
    EARLIER = "earlier"
    SAID = "said otherwise"


class PodAspect(StrEnum):
    """The aspect in which two courses diverge."""

    EXISTENCE = "existence"
    PLACEMENT = "placement"
    EVICTION = "eviction"
    END = "end"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """The first divergence of two courses: aspect, instant, and the side on which it happened."""

    aspect: PodAspect
    time: int
    side: str


def classes_of(pair: Pair, within: int) -> tuple[Class, ...]:
    """All classes of a pair's differences, gravest first; empty when everything is the same."""
    a, b = pair.a, pair.b
    if a is None or b is None:
        return (Class.ONLY_B if a is None else Class.ONLY_A,)
    classes = set(_fates(a, b))
    if a.placed is not None and b.placed is not None:
        is_same_place = (a.placed.node, a.placed.devices) == (b.placed.node, b.placed.devices)
        if not is_same_place:
            classes.add(Class.MOVED)
    for left, right in _instants(a, b):
        if left != right and (left is None or right is None or abs(left - right) > within):
            is_later = right is None or (left is not None and right > left)
            classes.add(Class.LATER if is_later else Class.EARLIER)
    if not classes and messages_of(a.refusals) != messages_of(b.refusals):
        classes.add(Class.SAID)
    return tuple(each for each in Class if each in classes)


def parted(pair: Pair, within: int) -> Parted:
    """The first divergence of the courses of a pair that differs."""
    partings = list(_partings(pair, within))
    order = list(PodAspect)
    # Messages differ wherever the state does; they count only if nothing else differs.
    acts = [each for each in partings if each.aspect is not PodAspect.MESSAGES] or partings
    return min(acts, key=lambda each: (each.time, order.index(each.aspect)))


def messages_of(refusals: Iterable[Refusal]) -> list[str]:
    """The messages of failed attempts, without those that repeat the one before."""
    return [refusal.message for refusal in _without_repeated(refusals)]


def _without_repeated(refusals: Iterable[Refusal]) -> list[Refusal]:
    """The failed attempts with another message than the one before.

    Conditions show only these; decisions show all attempts.
    """
    firsts: list[Refusal] = []
    for refusal in refusals:
        if not firsts or firsts[-1].message != refusal.message:
            firsts.append(refusal)
    return firsts


def _fates(a: Course, b: Course) -> Iterator[Class]:
    if b.evicted is not None and a.evicted is None:
        yield Class.EVICTED
    if a.evicted is not None and b.evicted is None and b.placed is not None:
        yield Class.SPARED
    if a.placed is not None and b.placed is None:
        yield Class.UNSCHEDULABLE
    if b.placed is not None and a.placed is None:
        yield Class.PLACED


def _instants(a: Course, b: Course) -> Iterator[tuple[int | None, int | None]]:
    """Pairs of instants of what happened on both sides, and of the ends of alike courses."""
    if a.placed is None or b.placed is None:
        if a.placed is None and b.placed is None and a.evicted is None and b.evicted is None:
            yield _end(a), _end(b)
        return
    yield a.placed.at.time, b.placed.at.time
    if a.evicted is not None and b.evicted is not None:
        yield a.evicted.at.time, b.evicted.at.time
    elif a.evicted is None and b.evicted is None:
        yield _end(a), _end(b)


def _end(course: Course) -> int | None:
    return None if course.ended is None else course.ended.time


def _partings(pair: Pair, within: int) -> Iterator[Parted]:
    a, b = pair.a, pair.b
    if a is None or b is None:
        course = a or b
        assert course is not None, "a pair has at least one side"
        side = "a" if b is None else "b"
        yield Parted(aspect=PodAspect.EXISTENCE, time=course.created.time, side=side)
        return
    placed = a.placed, b.placed
    places = [None if each is None else (each.node, each.devices) for each in placed]
    times = [None if each is None else each.at.time for each in placed]
    if None in places or places[0] != places[1]:
        yield from _first(PodAspect.PLACEMENT, *times)
    else:
        yield from _first(PodAspect.PLACEMENT, *times, within=within)
    evicted = (
        None if a.evicted is None else a.evicted.at.time,
        None if b.evicted is None else b.evicted.at.time,
    )
    yield from _first(PodAspect.EVICTION, *evicted, within=within)
    if a.evicted is None and b.evicted is None:
        yield from _first(PodAspect.END, _end(a), _end(b), within=within)
    elif a.evicted is None and _end(a) is not None:
        yield from _ended_before(_end(a), evicted[1], "a", within)
    elif b.evicted is None and _end(b) is not None:
        yield from _ended_before(_end(b), evicted[0], "b", within)
    left, right = _without_repeated(a.refusals), _without_repeated(b.refusals)
    for mine, other in zip(left, right, strict=False):
        if mine.message != other.message:
            yield from _first(PodAspect.MESSAGES, mine.at.time, other.at.time)
            return
    more = left[len(right) :] or right[len(left) :]
    if more:
        side = "a" if len(left) > len(right) else "b"
        yield Parted(aspect=PodAspect.MESSAGES, time=more[0].at.time, side=side)


def _ended_before(end: int | None, evicted: int | None, side: str, within: int) -> Iterator[Parted]:
    """The end of a pod that continued and was evicted on the other side."""
    if end is not None and evicted is not None and end < evicted - within:
        yield Parted(aspect=PodAspect.END, time=end, side=side)


def _first(
    aspect: PodAspect, left: int | None, right: int | None, *, within: int = -1
) -> Iterator[Parted]:
    """The earlier of two instants that do not count as the same time."""
    if left is None and right is None:
        return
    if left is not None and right is not None and abs(left - right) <= within:
        return
    if right is None or (left is not None and left <= right):
        assert left is not None
        yield Parted(aspect=aspect, time=left, side="a")
    else:
        yield Parted(aspect=aspect, time=right, side="b")
