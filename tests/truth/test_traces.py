"""The trace of a history has the states, arrows and counts of its raw events."""

from collections import Counter

import pytest

from tests import draws
from tests.api.serving import serving
from tests.truth import courses, histories
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
    begins = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert all(begins[number]["ts"] <= ends[number]["ts"] for number in begins)
    bars = {(one["pid"], one["tid"], one["ts"]) for one in events if one["ph"] == "X"}
    ends_of_arrows = {(e["pid"], e["tid"], e["ts"]) for e in (*begins.values(), *ends.values())}
    assert ends_of_arrows <= bars
