"""A history as tracks of a trace viewer: Chrome's JSON trace-event format, which Perfetto opens.

Pods, claims, devices and nodes have one track each with their states as slices and, if there are
events, a second one with these. Controllers have one track each with their decisions. Arrows
(flows) lead from the event that caused a decision to the decision, and from there to the changes;
a recording has no decisions, so there they lead from change to change.
Counters show the numbers of pods, claims and devices by state.

Times are microseconds of the cluster's time since the first slice; `args.time` has the full time.
Slices of one track never overlap: shares of a device that are held side by side have separate
tracks, and decisions of one instant are put one microsecond apart.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from app.analysis import spans
from app.analysis.chronicle import Chronicle
from app.analysis.navigation import TROUBLES
from app.analysis.spans import Span
from app.analysis.traces.recorded_links import RecordedLinks
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from projections.timeline import Entry
from projections.timeline_kinds import DECISION

PROCESSES: tuple[tuple[str, tuple[str, str]], ...] = (
    ("Pods", api_resources.PODS),
    ("Claims", api_resources.RESOURCE_CLAIMS),
    ("Devices", spans.DEVICES),
    ("Nodes", api_resources.NODES),
)
"""The groups of tracks, in order; controllers, other objects and counters follow."""

_CONTROLLERS, _OTHERS, _COUNTERS = (len(PROCESSES) + number for number in (1, 2, 3))

_MOMENT = 1
"""The drawn duration of an instant in microseconds: arrows need slices at both ends."""


class ViewerTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The trace: `traceEvents` sorted by time, names of tracks first.

    `otherData` has the history, revisions and times, and the number of entries left out beyond the
    bound, which are the oldest ones.
    """

    traceEvents: tuple[JsonObject, ...]  # noqa: N815 - the format's own name
    otherData: JsonObject  # noqa: N815
    displayTimeUnit: str = "ms"  # noqa: N815


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceBounds:
    """The bounds of a trace: `entries_max` entries of the timeline, and as many states."""

    entries_max: int = 200_000


def of(
    history: str,
    chronicle: Chronicle,
    until: Revision,
    now: Instant,
    visible: Callable[[Entry], bool],
    bounds: TraceBounds = TraceBounds(),
    *,
    is_recorded: bool = False,
) -> ViewerTrace:
    """The trace up to a revision at the instant `now`, without entries that are not `visible`.

    In a recording (`is_recorded`) arrows lead to a change from the one on which it rests.
    """
    shown = [entry for entry in chronicle.entries[: chronicle.until(until)] if visible(entry)]
    entries = shown[-bounds.entries_max :]
    states = sorted(
        (
            (span, key)
            for _, place in PROCESSES
            for key in chronicle.spans.began.get(place, ())
            for span in spans.up_to(chronicle.spans.lanes[key], until)
        ),
        key=lambda state: state[0].begin,
    )
    kept = states[-bounds.entries_max :]
    instants = [span.begin[1] for span, _ in kept] + [Instant(one.time) for one in entries]
    tracks = _Tracks(min(instants, default=now), now)
    tracks.add_states(kept)
    links = RecordedLinks(chronicle.spans, chronicle.evictors) if is_recorded else None
    tracks.add_entries(entries, links)
    tracks.add_counters(states)
    return ViewerTrace(
        traceEvents=tuple(tracks.sorted()),
        otherData={
            "history": history,
            "revision": until,
            "examined": min(chronicle.revision, until),
            "begin": timestamps.micro_text(tracks.begin),
            "end": timestamps.micro_text(max(now, tracks.begin)),
            "omittedEntries": len(shown) - len(entries),
            "omittedStates": len(states) - len(kept),
        },
    )


class _Tracks:
    """Collects slices, arrows and counters."""

    def __init__(self, begin: Instant, now: Instant) -> None:
        self.begin = begin
        self._now = max(now, begin)
        self._events: list[JsonObject] = []
        self._names: list[JsonObject] = []
        self._threads: dict[tuple[int, str, int], int] = {}
        self._ends: dict[tuple[int, int], int] = {}
        self._slices: dict[int, JsonObject] = {}
        self._times: dict[int, int] = {}
        self._arrows = 0
        names = [name for name, _ in PROCESSES] + ["Controllers", "Other objects", "Counters"]
        for number, name in enumerate(names, start=1):
            self._name("process_name", number, 0, name=name)
            self._name("process_sort_index", number, 0, sort_index=number)

    def add_states(self, states: Iterable[tuple[Span, ObjectKey]]) -> None:
        """A slice for each state, from its first event to the next one."""
        processes = {place: number for number, (_, place) in enumerate(PROCESSES, start=1)}
        for span, key in states:
            begin = self._place(span.begin[1])
            end = self._place(span.end[1] if span.end is not None else self._now)
            label = f" {span.label}" if span.label else ""
            args: JsonObject = {
                "revision": span.begin[0],
                "time": timestamps.micro_text(span.begin[1]),
                "lasts": span.end is None,
            }
            pid = processes[key[:2]]
            thread = self._free_thread(pid, key.namespaced_name, begin, last=max(begin, end))
            self._slice(pid, thread, begin, max(0, end - begin), f"{span.state}{label}", args)

    def add_entries(self, entries: Iterable[Entry], links: RecordedLinks | None) -> None:
        """A slice for each event, with arrows from the causes of decisions to their effects.

        `links` has the arrows of a recording.
        """
        processes = {place: number for number, (_, place) in enumerate(PROCESSES, start=1)}
        decided: Entry | None = None
        for entry in entries:
            if entry.kind == DECISION:
                decided = entry
                controller, _, outcome = entry.text.partition(" decided ")
                self._add_entry(entry, _CONTROLLERS, controller, outcome or entry.text, entry.cause)
                continue
            pid = processes.get(entry.subject[:2], _OTHERS)
            is_effect = decided is not None and _is_effect(entry, decided)
            cause = decided.revision if decided is not None and is_effect else entry.cause
            if links is not None:
                cause = links.source(entry) or cause
            self._add_entry(
                entry, pid, f"{entry.subject.namespaced_name}: events", entry.kind, cause
            )

    def add_counters(self, states: Iterable[tuple[Span, ObjectKey]]) -> None:
        """The numbers of objects in each state, and of held devices per driver."""
        changes: dict[str, dict[int, int]] = {}
        for counter, began, ended in _counted(states):
            deltas = changes.setdefault(counter, {})
            begin = max(0, self._place(began))
            deltas[begin] = deltas.get(begin, 0) + 1
            if ended is not None:
                # Clocks of a recording may disagree; nothing ends before it begins.
                end = max(begin, self._place(ended))
                deltas[end] = deltas.get(end, 0) - 1
        for counter, deltas in changes.items():
            count = 0
            for place in sorted(deltas):
                count += deltas[place]
                args: JsonObject = {"count": count}
                event: JsonObject = {"ph": "C", "pid": _COUNTERS, "tid": 0, "ts": place}
                self._events.append({**event, "name": counter, "args": args})

    def sorted(self) -> Iterator[JsonObject]:
        """Names first, then everything by time; an enclosing slice comes before the inner ones."""
        yield from self._names
        yield from sorted(self._events, key=_order)

    def _add_entry(self, entry: Entry, pid: int, track: str, name: str, cause: int) -> None:
        time = begin = self._place(Instant(entry.time))
        thread = self._thread(pid, track)
        begin = max(begin, self._ends.get((pid, thread), begin))
        source = self._slices.get(cause)
        # Clocks of a recording may disagree; viewers draw no arrows back in time, so skip those.
        is_later = source is not None and self._times[cause] <= time
        if source is not None and is_later:
            begin = max(begin, source["ts"])
        self._ends[pid, thread] = begin + _MOMENT
        args: JsonObject = {
            "revision": entry.revision,
            "time": timestamps.micro_text(Instant(entry.time)),
            "object": f"{entry.subject.resource} {entry.subject.namespaced_name}",
            "text": entry.text,
            "actor": entry.actor,
        }
        kind = "trouble" if entry.kind in TROUBLES else "event"
        category = "decision" if entry.kind == DECISION else kind
        made = self._slice(pid, thread, begin, _MOMENT, name, args, category)
        self._slices[entry.revision], self._times[entry.revision] = made, time
        if source is not None and is_later:
            self._arrow(source, made)

    def _slice(
        self,
        pid: int,
        tid: int,
        begin: int,
        duration: int,
        name: str,
        args: JsonObject,
        category: str = "state",
    ) -> JsonObject:
        made: JsonObject = {
            "ph": "X",
            "pid": pid,
            "tid": tid,
            "ts": begin,
            "dur": duration,
            "name": name,
            "cat": category,
            "args": args,
        }
        self._events.append(made)
        return made

    def _arrow(self, source: JsonObject, target: JsonObject) -> None:
        self._arrows += 1
        common: JsonObject = {"cat": "because", "name": "because", "id": self._arrows}
        for phase, end in (("s", source), ("f", target)):
            place = {name: end[name] for name in ("pid", "tid", "ts")}
            binding: JsonObject = {"bp": "e"} if phase == "f" else {}
            self._events.append({"ph": phase, **place, **common, **binding})

    def _free_thread(self, pid: int, track: str, begin: int, last: int) -> int:
        """The first free track of that name at `begin`; its new end is noted."""
        layer = 0
        while True:
            thread = self._thread(pid, track, layer)
            if self._ends.get((pid, thread), begin) <= begin:
                self._ends[pid, thread] = last
                return thread
            layer += 1

    def _thread(self, pid: int, track: str, layer: int = 0) -> int:
        place = (pid, track, layer)
        thread = self._threads.get(place)
        if thread is None:
            thread = self._threads[place] = len(self._threads) + 1
            name = track if not layer else f"{track} ({layer + 1})"
            self._name("thread_name", pid, thread, name=name)
            self._name("thread_sort_index", pid, thread, sort_index=thread)
        return thread

    def _name(self, what: str, pid: int, tid: int, **args: object) -> None:
        self._names.append(
            {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": what, "args": {**args}}
        )

    def _place(self, time: Instant) -> int:
        return time - self.begin


def _is_effect(entry: Entry, decided: Entry) -> bool:
    """Whether a change was appended together with a decision."""
    return (entry.actor, entry.time, entry.cause) == (decided.actor, decided.time, decided.cause)


def _counted(
    states: Iterable[tuple[Span, ObjectKey]],
) -> Iterator[tuple[str, Instant, Instant | None]]:
    """The counter, begin and end of each state; a device that several claims hold is one device."""
    held: dict[ObjectKey, tuple[Instant, Instant | None]] = {}
    for span, key in states:
        begin, end = span.begin[1], None if span.end is None else span.end[1]
        if key[:2] != spans.DEVICES:
            yield _counter(span, key), begin, end
            continue
        first, last = held.get(key, (begin, begin))
        if last is not None and last < begin:
            yield _counter(span, key), first, last
            first, last = begin, begin
        held[key] = first, None if last is None or end is None else max(last, end)
    for key, (first, last) in held.items():
        yield _counter_of_devices(key), first, last


def _counter_of_devices(key: ObjectKey) -> str:
    return f"devices held of {key.name.partition('/')[0]}"


def _counter(span: Span, key: ObjectKey) -> str:
    """The counter for a state."""
    match key[:2]:
        case api_resources.PODS:
            return f"pods {span.state}"
        case api_resources.RESOURCE_CLAIMS:
            return f"claims {span.state}"
        case spans.DEVICES:
            return _counter_of_devices(key)
        case _:
            return f"nodes {span.state}"


_PHASES = ("X", "s", "f", "C")


def _order(event: JsonObject) -> tuple[int, int, int]:
    duration: int = event.get("dur", 0)
    return event["ts"], _PHASES.index(event["ph"]), -duration
