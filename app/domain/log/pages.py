"""A page of a log: events in order and by kind; each event is split and read only once.

All views and judges receive the same page. Results of splitting and reading are kept in the page,
so each consumer reuses the work of the others, and they are dropped with the page.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from app.domain.log import raw_parts
from app.domain.log.event import Event, EventType
from app.domain.values.identifiers import GroupResource

_T = TypeVar("_T")


Split: TypeAlias = tuple[Event, Any]
"""An event, and the raw parts of its object: None for deletions and kinds that are not split."""

_DECIDED = EventType.DECISION_RECORDED
_CREATED, _UPDATED, _DELETED = (
    EventType.OBJECT_CREATED,
    EventType.OBJECT_UPDATED,
    EventType.OBJECT_DELETED,
)


class Page:
    """Consecutive events of one history.

    Example: a pod is created, a decision made, the pod updated: `of(PODS)` are the first and the
    last event with their parts, `facts` is the decision, `splits` are all three.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self._splits: list[Split] | None = None
        self._kinds: dict[GroupResource, list[Split]] = {}
        self._facts: list[Event] = []
        self._readings: dict[Any, list[tuple[Event, Any]]] = {}

    @property
    def splits(self) -> Sequence[Split]:
        """All events in order, those about pods and claims with their raw parts."""
        return self._splits if self._splits is not None else self._split()

    @property
    def kinds(self) -> Mapping[GroupResource, Sequence[Split]]:
        """The events about objects, by group and resource; each list is in order."""
        if self._splits is None:
            self._split()
        return self._kinds

    @property
    def facts(self) -> Sequence[Event]:
        """The events that are not about an object, in order."""
        if self._splits is None:
            self._split()
        return self._facts

    def of(self, place: GroupResource) -> Sequence[Split]:
        """The events about objects of one kind, in order."""
        return self.kinds.get(place, ())

    def read(
        self, place: GroupResource, read: Callable[[Any], _T]
    ) -> Sequence[tuple[Event, _T | None]]:
        """The events about objects of a kind, each with the result of a reader.

        The reader gets the raw parts of kinds that are split, the body of others. The result is
        None for deletions. The reader is called once per event and its results are shared.
        """
        readings = self._readings.get((place, read))
        if readings is None:
            if place in raw_parts.SPLITTERS:
                readings = [
                    (event, None if parts is None else read(parts))
                    for event, parts in self.of(place)
                ]
            else:
                readings = [
                    (event, None if event.type is _DELETED else read(event.body))
                    for event, _ in self.of(place)
                ]
            self._readings[place, read] = readings
        return readings

    def decisions(self, read: Callable[[bytes], _T]) -> Sequence[tuple[Event, _T]]:
        """The decisions in order, each with the result of a reader that is called once per body."""
        readings = self._readings.get(read)
        if readings is None:
            readings = [(event, read(event.body)) for event in self.facts if event.type is _DECIDED]
            self._readings[read] = readings
        return readings

    def _split(self) -> list[Split]:
        splits: list[Split] = []
        facts, kinds = self._facts, self._kinds
        splitter_of = raw_parts.SPLITTERS.get
        for event in self.events:
            kind = event.type
            if kind is _UPDATED or kind is _CREATED or kind is _DELETED:
                place = event.key[:2]
                splitter = None if kind is _DELETED else splitter_of(place)
                split = (event, None if splitter is None else splitter(event.body))
                known = kinds.get(place)
                if known is None:
                    kinds[place] = [split]
                else:
                    known.append(split)
            else:
                split = event, None
                facts.append(event)
            splits.append(split)
        self._splits = splits
        return splits
