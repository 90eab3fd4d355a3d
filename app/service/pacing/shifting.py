"""Shifted times: the times that objects of a replay show.

Without shifting they are the recorded times, and the history's own time runs alongside. With
shifting, every time in an object is moved to the time at which it is shown: the recorded 10:42:03
becomes the instant at which the replay reaches it. Times before the beginning of the replay keep
their distance from it. Times ahead are shown at the present speed.

    recorded   10:40      10:42 (begin)   10:43
    shown      15:58      16:00           16:00:06   (at 10x)

A turn, which is a change of speed or a pause, does not move the times before it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant, TimestampError
from app.service.pacing.pace import MAX

TURNS_APART = SECOND
"""At speed `max`, the least distance between turns that are remembered."""


@dataclass(slots=True)
class TimeMap:
    """A map from recorded instants to the instants at which they are shown.

    `turns_max` turns are remembered; beyond them the last one stays in force.
    """

    turns_max: int = 100_000
    _recorded: list[Instant] = field(default_factory=list)
    _shown: list[Instant] = field(default_factory=list)
    _rates: list[float] = field(default_factory=list)

    def begin(self, recorded: Instant, shown: Instant, rate: float) -> None:
        """Forget all turns: the recorded instant is shown at `shown`, later ones at this rate."""
        self._recorded, self._shown, self._rates = [recorded], [shown], [rate]

    def turn(self, recorded: Instant, shown: Instant, rate: float) -> None:
        """Show times after this recorded instant at another rate (0: they stand still)."""
        if len(self._recorded) < self.turns_max:
            self._recorded.append(recorded)
            self._shown.append(shown)
            self._rates.append(rate)

    def reach(self, recorded: Instant, shown: Instant) -> None:
        """Note when an event of that recorded instant was shown at speed `max`."""
        if shown - self._shown[-1] >= TURNS_APART and recorded > self._recorded[-1]:
            self.turn(recorded, shown, self._rates[-1])

    def shown(self, recorded: Instant) -> Instant:
        """The instant at which a recorded instant is shown."""
        index = max(0, bisect_left(self._recorded, recorded) - 1)
        distance, rate = recorded - self._recorded[index], self._rates[index]
        if distance < 0:
            return Instant(self._shown[index] + distance)
        if rate == 0 or rate == MAX:
            return self._shown[index]
        return Instant(self._shown[index] + int(distance / rate))


def shifted(node: SchemaNode, tree: JsonObject, times: TimeMap) -> JsonObject:
    """The object with every time in its schema shifted to the time at which it is shown."""
    moved: JsonObject = _shifted(node, tree, times)
    return moved


def _shifted(node: SchemaNode | None, value: Any, times: TimeMap) -> Any:
    if node is None:
        return value
    if isinstance(value, dict):
        return {name: _shifted(_child(node, name), each, times) for name, each in value.items()}
    if isinstance(value, list):
        items = node.items if node.shape is SchemaShape.LIST else None
        return value if items is None else _shifted_list(items, value, times)
    is_time = node.shape in (SchemaShape.TIME, SchemaShape.MICRO_TIME) or node.format == "date-time"
    return _moved(value, times) if is_time and isinstance(value, str) else value


def _shifted_list(items: SchemaNode, values: Sequence[Any], times: TimeMap) -> list[Any]:
    return [_shifted(items, each, times) for each in values]


def _child(node: SchemaNode, name: str) -> SchemaNode | None:
    return node.items if node.shape is SchemaShape.MAP else node.fields.get(name)


def _moved(text: str, times: TimeMap) -> str:
    """The shifted time in the same format; a text that is not a time stays."""
    try:
        instant = times.shown(timestamps.parse(text))
    except TimestampError:
        return text
    return timestamps.micro_text(instant) if "." in text else timestamps.seconds_text(instant)
