"""Comparison of two histories by their final states: pods and their places, or all objects."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.analysis import masks, meanings
from app.analysis.diff import contrasts, endings, matching
from app.analysis.diff.courses import Course, Courses
from app.analysis.diff.endings import AfterEnd, Border
from app.analysis.diff.matching import Pair
from app.analysis.diff.report import head_json, place_text
from app.analysis.diff.sides import DiffBounds, Side
from app.analysis.explain.pods import Steps
from app.domain.log import EventType, ObjectKey
from app.domain.objects.schema.structural import Schemas
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

TEXT_MAX = 200
"""The number of characters of a value that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEntry:
    """One subject that differs at the end, with both sides as text."""

    subject: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """The differences at the end; `same` counts the subjects without one.

    For two recordings, the end is that of the shorter one; `after_end` is what the longer one has
    after it.
    """

    a: Side
    b: Side
    what: str
    same: int
    entries: tuple[EndEntry, ...]
    listed_max: int
    after_end: AfterEnd | None = None

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.entries

    def to_json(self) -> JsonObject:
        """The complete answer as JSON."""
        return {
            **head_json(self.a, self.b, self.after_end, self.listed_max),
            "outcome": "same" if self.is_same else "different",
            "by": self.what,
            "same": self.same,
            "different": len(self.entries),
            "differences": [
                {"subject": each.subject, "a": each.a, "b": each.b}
                for each in self.entries[: self.listed_max]
            ],
            "leftOut": max(0, len(self.entries) - self.listed_max),
        }


def pods(a: Side, b: Side, bounds: DiffBounds = DiffBounds()) -> Steps[EndReport]:
    """Finds the pods whose outcome, node or devices differ."""
    border = endings.border_of(a, b, bounds.within)
    sides = {"a": a, "b": b}
    if border is not None:
        sides[border.longer] = border.extended(sides[border.longer])
    left = Courses(sides["a"])
    yield
    right = Courses(sides["b"])
    yield
    pairs = matching.pairs(left.all(), right.all())
    differing = [pair for pair in pairs if _end(pair.a) != _end(pair.b)]
    late: set[Pair] = set()
    if border is not None and differing:
        late = yield from _late_pods(sides[border.longer], border, differing)
    entries = [
        EndEntry(subject=f"pods/{pair.name}", a=place_text(pair.a), b=place_text(pair.b))
        for pair in differing
        if pair not in late
    ]
    return EndReport(
        a=a,
        b=b,
        what="outcomes",
        same=len(pairs) - len(differing),
        entries=tuple(entries),
        listed_max=bounds.listed_max,
        after_end=endings.after_end(
            a,
            b,
            border,
            (f"pods/{pair.name}" for pair in differing if pair in late),
            is_about_pods=True,
        ),
    )


def objects(
    a: Side, b: Side, schemas: Schemas, bounds: DiffBounds = DiffBounds()
) -> Steps[EndReport]:
    """Finds the objects that have another meaning at the end, or exist on one side only.

    Uids, times, versions and field ownership make no difference; Events are left out.
    """
    border = endings.border_of(a, b, bounds.within)
    left = _kept(a)
    yield
    right = _kept(b)
    yield
    near = {} if border is None else _near(a if border.longer == "a" else b, border)
    late: list[str] = []
    entries: list[EndEntry] = []
    same: Counter[bool] = Counter()
    for number, key in enumerate({**left, **right}):
        if number % 512 == 0:
            yield
        node = meanings.node_of(schemas, key)
        mine, other = (_meaning(side.get(key), node) for side in (left, right))
        if mine == other:
            same[True] += 1
            continue
        shorter = other if border is not None and border.longer == "a" else mine
        if any(_meaning(tree, node) == shorter for tree in near.get(key, ())):
            late.append(str(key))
        else:
            entries += _entries(key, mine, other)
    return EndReport(
        a=a,
        b=b,
        what="objects",
        same=same[True],
        entries=tuple(entries),
        listed_max=bounds.listed_max,
        after_end=endings.after_end(a, b, border, late, is_about_pods=False),
    )


def _late_pods(side: Side, border: Border, differing: Sequence[Pair]) -> Steps[set[Pair]]:
    """The pods whose state on the longer side, at some point near the other's end, was the same."""
    before, near = border.near(side)
    courses = Courses(replace(side, events=before))
    waiting = list(differing)
    late: set[Pair] = set()
    for event in (None, *near):
        if event is not None:
            courses.fold(event)
        still: list[Pair] = []
        for pair in waiting:
            longer, shorter = (pair.a, pair.b) if border.longer == "a" else (pair.b, pair.a)
            now = None if longer is None else courses.by_uid.get(longer.uid)
            if _end(now) == _end(shorter):
                late.add(pair)
            else:
                still.append(pair)
        waiting = still
        yield
    return late


def _near(side: Side, border: Border) -> Mapping[ObjectKey, Sequence[JsonObject | None]]:
    """The states near the other side's end of objects that changed then on the longer side."""
    before, near = border.near(side)
    trees = _kept(replace(side, events=before))
    states: dict[ObjectKey, list[JsonObject | None]] = {}
    for event in near:
        if event.is_about_object and event.key.resource != "events":
            is_gone = event.type is EventType.OBJECT_DELETED
            states.setdefault(event.key, [trees.get(event.key)]).append(
                None if is_gone else event.object
            )
    return states


def _end(course: Course | None) -> object:
    if course is None:
        return None
    placed = course.placed
    return course.outcome, None if placed is None else (placed.node, placed.devices)


def _kept(side: Side) -> Mapping[ObjectKey, JsonObject]:
    """The objects that exist at the end."""
    trees = {event.key: event.object for event in side.start}
    for event in side.events:
        if not event.is_about_object:
            continue
        if event.type is EventType.OBJECT_DELETED:
            trees.pop(event.key, None)
        else:
            trees[event.key] = event.object
    return {key: tree for key, tree in trees.items() if key.resource != "events"}


_IDENTITY = frozenset(("uid", "ownerReferences", "selfLink"))


def _meaning(tree: JsonObject | None, node: Any) -> Any:
    if tree is None:
        return None
    masked = masks.masked(meanings.of(tree, node))
    metadata = {
        name: value for name, value in meta.metadata(masked).items() if name not in _IDENTITY
    }
    return _without_uids({**masked, "metadata": metadata})


def _without_uids(tree: Any) -> Any:
    """The tree without the uids of references to other objects."""
    if isinstance(tree, dict):
        return {name: _without_uids(value) for name, value in tree.items() if name != "uid"}
    if isinstance(tree, list):
        return [_without_uids(item) for item in tree]
    return tree


def _entries(key: ObjectKey, mine: Any, other: Any) -> Iterator[EndEntry]:
    if mine is None or other is None:
        there, gone = "exists", "does not exist"
        is_in_a = mine is not None
        yield EndEntry(subject=str(key), a=there if is_in_a else gone, b=gone if is_in_a else there)
        return
    parts = list(masks.changes(mine, other))
    shown = [(path, contrasts.of(was, now)) for path, was, now in parts]
    a = "; ".join(f"{path}={_cut(left)}" for path, (left, _) in shown)
    b = "; ".join(f"{path}={_cut(right)}" for path, (_, right) in shown)
    yield EndEntry(subject=str(key), a=a, b=b)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"
