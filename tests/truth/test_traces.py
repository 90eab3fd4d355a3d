"""The trace of a history has the states, arrows and counts of its raw events."""

from collections import Counter
from datetime import datetime, timedelta

import pytest

from tests import draws
from tests.api.serving import serving
from tests.truth import courses, histories
from tests.truth.facts import device_of, results
from tests.truth.histories import lines_of

BELOW = "/redra/v1/histories/default"
CASES = [
    *((histories.of_world, seed) for seed in draws.seeds(4)),
    *((histories.of_fleet, seed) for seed in draws.seeds(4)),
]


def states_of(events: list[dict]) -> Counter:
    """The bars of all tracks: what they say, and the revision with which they begin."""
    bars = (one for one in events if one.get("cat") == "state")
    return Counter((one["name"], one["args"]["revision"]) for one in bars)


def counted(known: courses.Lives) -> Counter:
    """The states of pods, claims and nodes, and who held each device."""
    lanes = [courses.states(own) for key, own in known.items() if key[0] in courses.LANES]
    stretches = [one for lane in (*lanes, *courses.held(known).values()) for one in lane]
    return Counter((f"{one[0]} {one[1]}".strip(), one[2]) for one in stretches)


def shown(events: list[dict]) -> dict[str, dict[int, int]]:
    """What each counter shows, by its instants."""
    counters: dict[str, dict[int, int]] = {}
    for one in events:
        if one["ph"] == "C":
            counters.setdefault(one["name"], {})[one["ts"]] = one["args"]["count"]
    return counters


def numbers(lines: list[dict], begin: datetime) -> dict[int, Counter]:
    """How many objects are in each state, and devices held, after all that an instant brings."""
    states: dict[tuple, str] = {}
    held: dict[tuple, set] = {}
    counted: dict[int, Counter] = {}
    for line in lines:
        if not line["type"].startswith("Object"):
            continue
        kind, *name = line["resource"], line["namespace"], line["name"]
        tree = None if line["type"] == "ObjectDeleted" else line["object"]
        if kind in courses.LANES:
            states.pop((kind, *name), None)
            if tree:
                states[(kind, *name)] = courses.state_of(kind, tree)
        if kind == "resourceclaims":
            held[tuple(name)] = {device_of(one) for one in results(tree or {})}
        now = Counter(f"{TITLES[key[0]]} {state}" for key, state in states.items())
        devices = set().union(*held.values()) if held else set()
        now.update(f"devices held of {driver}" for driver, _, _ in devices)
        counted[(courses.time_of(line) - begin) // timedelta(microseconds=1)] = now
    return counted


TITLES = {"pods": "pods", "resourceclaims": "claims", "nodes": "nodes"}


def differing(events: list[dict], lines: list[dict], begin: datetime) -> list[str]:
    """The counters that show another number than is counted, with the first such instant."""
    counters, counted = shown(events), numbers(lines, begin)
    wrong = []
    for name in sorted({*counters, *(one for now in counted.values() for one in now)}):
        value, own = 0, counters.get(name, {})
        for instant in sorted(counted.keys() | own.keys()):
            value = own.get(instant, value)
            if instant in counted and value != counted[instant][name]:
                wrong.append(f"{name} at {instant}: {value}, counted {counted[instant][name]}")
                break
    return wrong


@draws.BY_DAY
@pytest.mark.parametrize(("make", "seed"), CASES, ids=[f"{m.__name__}-{s}" for m, s in CASES])
async def test_traces_have_the_states_of_the_raw_events_and_arrows_between_them(make, seed):
    history = await make(seed)
    async with serving(store=history.store) as server:
        lines = lines_of((await server.raw("GET", f"{BELOW}/events?limit=100000")).text)
        trace = (await server.raw("GET", f"{BELOW}/trace")).json()
    assert trace["otherData"]["omittedStates"] == trace["otherData"]["omittedEntries"] == 0
    events = trace["traceEvents"]
    assert states_of(events) == counted(courses.lives(lines))
    begin = datetime.fromisoformat(trace["otherData"]["begin"])
    assert differing(events, lines, begin) == []
    # The judge is not blind: a number that is one more is noticed.
    last = next(one for one in reversed(events) if one["ph"] == "C")
    last["args"]["count"] += 1
    assert len(differing(events, lines, begin)) == 1
    begins = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert all(begins[number]["ts"] <= ends[number]["ts"] for number in begins)
    bars = {(one["pid"], one["tid"], one["ts"]) for one in events if one["ph"] == "X"}
    ends_of_arrows = {(e["pid"], e["tid"], e["ts"]) for e in (*begins.values(), *ends.values())}
    assert ends_of_arrows <= bars
