"""The part of the longer recording after the end of the shorter one, which is not a difference."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.analysis.diff.classes import Class, Parted, PodAspect, messages_of
from app.analysis.diff.inputs import InputDifference
from app.analysis.diff.matching import Pair
from app.analysis.diff.sides import Side
from app.domain.log import Event
from app.domain.values import api_resources, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterEnd:
    """The part that was not compared: `side` continues after the other one ended, at `time`.

    `subjects` are the objects of its events after that, `events` counts these.
    """

    side: str
    time: Instant
    events: int
    subjects: tuple[str, ...]

    @property
    def other(self) -> str:
        """The side that ended."""
        return _other(self.side)

    def to_json(self, listed_max: int) -> JsonObject:
        """This part of the answer as JSON; times are those of the side that continues."""
        return {
            "of": self.other,
            "time": timestamps.micro_text(self.time),
            "events": self.events,
            "subjects": list(self.subjects[:listed_max]),
            "leftOut": max(0, len(self.subjects) - listed_max),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """The end of the shorter recording, after which `longer` continues.

    Events that count as one instant may be on both sides of the end. So acts of `longer` within
    `within` of it may have come too late for the other recording.
    """

    longer: str
    end: Instant
    within: int

    def extended(self, side: Side) -> Side:
        """The longer side, extended by the events at the instant of the other's end.

        One that only finishes what was under way is extended by all of that.
        """
        is_near = partial(self._is_near, side)
        more = side.beyond if side.is_finishing else list(filter(is_near, side.beyond))
        return replace(side, events=[*side.events, *more])

    def near(self, side: Side) -> tuple[Sequence[Event], Sequence[Event]]:
        """The events of the longer side before the instant of the end, and those at it."""
        events = self.extended(side).events
        first = next(
            (
                place
                for place, event in enumerate(events)
                if side.instant(event.stamp.time) >= self.end - self.within
            ),
            len(events),
        )
        return events[:first], events[first:]

    def is_change_after(self, change: InputDifference) -> bool:
        """Whether a change is a write that the shorter recording ended too early to contain."""
        write = change.a if self.longer == "b" else change.b
        return write is None and change.since >= self.end - self.within

    def is_after(self, pair: Pair, classes: Iterable[Class], parted: Parted) -> bool:
        """Whether a difference is an act of the longer side for which the other ended too early."""
        if parted.aspect is PodAspect.MESSAGES:
            return self._is_said_after(pair)
        since = self.end - self.within
        is_first = parted.side == self.longer and parted.time >= since
        return is_first and Class.MOVED not in classes

    def _is_said_after(self, pair: Pair) -> bool:
        longer, shorter = pair.side(self.longer), pair.side(_other(self.longer))
        assert longer is not None, "only pods of both sides say something otherwise"
        assert shorter is not None, "only pods of both sides say something otherwise"
        early = [each for each in longer.refusals if each.at.time < self.end - self.within]
        every, fewer = messages_of(longer.refusals), messages_of(shorter.refusals)
        return every[: len(fewer)] == fewer and len(fewer) >= len(messages_of(early))

    def _is_near(self, side: Side, event: Event) -> bool:
        return side.instant(event.stamp.time) <= self.end + self.within


def border_of(a: Side, b: Side, within: int) -> Border | None:
    """The border where the shorter of two recordings ends; None if neither is longer."""
    for name, side in (("a", a), ("b", b)):
        if side.beyond:
            return Border(longer=name, end=side.instant(side.until), within=within)
    return None


def after_end(
    a: Side, b: Side, border: Border | None, also: Iterable[str] = (), *, is_about_pods: bool
) -> AfterEnd | None:
    """The part after the border: the pods concerned, or all objects, and those of `also`."""
    if border is None:
        return None
    side = a if border.longer == "a" else b
    subjects = dict.fromkeys(also)
    if side.is_finishing and not (side.left_out or subjects):
        return None
    for event in () if side.is_finishing else side.beyond:
        key = event.key
        is_pod = (key.group, key.resource) == api_resources.PODS
        if event.is_about_object and (is_pod if is_about_pods else key.resource != "events"):
            subjects[str(key)] = None
    events = side.left_out + (len(side.beyond) if side.is_finishing else 0)
    return AfterEnd(side=border.longer, time=side.until, events=events, subjects=tuple(subjects))


def _other(side: str) -> str:
    return "b" if side == "a" else "a"
