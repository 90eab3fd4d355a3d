"""Reads Chrome's JSON trace-event format as a viewer does, and complains of what one cannot draw.

Knows the format alone: nothing here comes from the program.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field

PHASES = {"X": {"ts", "dur"}, "M": set(), "C": {"ts"}, "s": {"ts", "id"}, "f": {"ts", "id"}}


@dataclass
class Viewed:
    """What the viewer shows: tracks by name with their slices, arrows, counters over time."""

    tracks: dict = field(default_factory=lambda: defaultdict(list))
    arrows: list = field(default_factory=list)
    counters: dict = field(default_factory=lambda: defaultdict(list))


def view(text):
    """The trace as tracks. Raises AssertionError for what no viewer can draw."""
    trace = json.loads(text)
    events = trace["traceEvents"]
    names = {}
    for event in events:
        assert event["ph"] in PHASES, event
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        missing = PHASES[event["ph"]] - set(event)
        assert not missing, (event, missing)
        for number in ("ts", "dur"):
            assert event.get(number, 0) >= 0, event
        if event["ph"] == "M":
            place = (event["pid"], event["tid"] if event["name"].startswith("thread") else None)
            assert (event["name"], place) not in names, "named twice"
            names[event["name"], place] = event["args"].get("name")
    timed = [event["ts"] for event in events if event["ph"] != "M"]
    assert timed == sorted(timed), "not sorted by time"
    viewed = Viewed()
    slices = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append(event)
        elif event["ph"] == "C":
            viewed.counters[event["name"]].append((event["ts"], event["args"]["count"]))
    for (pid, tid), of_track in slices.items():
        check_nesting(of_track)
        title = (names["process_name", (pid, None)], names["thread_name", (pid, tid)])
        assert all(title), (pid, tid)
        assert title not in viewed.tracks, "two tracks of one name"
        viewed.tracks[title] = of_track
    viewed.arrows = arrows(events, slices)
    return viewed


def check_nesting(slices):
    """Slices of one track lie beside or within each other."""
    open_ends = []
    for one in slices:
        begin, end = one["ts"], one["ts"] + one["dur"]
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (one, open_ends)
        open_ends.append(end)


def arrows(events, slices):
    """Arrows as pairs of slices: each has one begin and one end, in slices that are there."""
    ends = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            around = [
                one
                for one in slices[event["pid"], event["tid"]]
                if one["ts"] <= event["ts"] <= one["ts"] + one["dur"]
            ]
            assert around, (event, "hits no slice")
            begins = [one for one in around if one["ts"] == event["ts"]]
            ends[event["cat"], event["id"]].append((event["ph"], event["ts"], begins[-1]))
    pairs = []
    for arrow, two in ends.items():
        assert [phase for phase, _, _ in two] == ["s", "f"], (arrow, two)
        (_, begin, source), (_, end, target) = two
        assert begin <= end, arrow
        pairs.append((source, target))
    return pairs
