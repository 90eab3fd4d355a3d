"""The attempts of pods are those of the raw events, with the nodes and messages that pods show."""

import re
from datetime import datetime
from urllib.parse import urlencode

import pytest

from tests import draws
from tests.api.serving import serving
from tests.truth import attempts, courses, histories
from tests.truth.histories import lines_of

BELOW = "/redra/v1/histories/default"
CASES = [
    *((histories.of_world, seed) for seed in draws.seeds(4)),
    *((histories.of_fleet, seed) for seed in draws.seeds(4)),
    *((histories.of_alternatives, seed) for seed in draws.seeds(4)),
    *((histories.of_bindings, seed) for seed in draws.seeds(4)),
    *((histories.of_preemption, seed) for seed in draws.seeds(4)),
]


async def judged(make, seed: int) -> list[str]:
    """The differences for all pods of a history."""
    history, wrong = await make(seed), []
    async with serving(store=history.store) as server:

        async def ask(question: str, **about: str) -> dict:
            return (await server.raw("GET", f"{BELOW}/{question}?{urlencode(about)}")).json()

        lines = lines_of((await server.raw("GET", f"{BELOW}/events?limit=100000")).text)
        known = courses.lives(lines)
        for kind, *name in known:
            if kind == "pods":
                said = await attempts.attempts(lines, known, ask, tuple(name))
                wrong += [f"{name}: {one}" for one in said]
    return wrong


@draws.BY_DAY
@pytest.mark.parametrize(("make", "seed"), CASES, ids=[f"{m.__name__}-{s}" for m, s in CASES])
async def test_attempts_are_those_of_the_raw_events(make, seed):
    assert await judged(make, seed) == []


@pytest.mark.parametrize("seed", [7, 47])
async def test_attempts_are_those_of_the_last_pod_of_a_name(seed):
    """In the first world that pod is there, in the second one it is gone."""
    assert await judged(histories.of_bindings, seed) == []


async def test_attempts_that_wrote_nothing_are_counted():
    assert await judged(histories.of_fleet, 3) == []


async def test_next_try_is_counted_from_the_last_attempt_also_if_it_wrote_nothing():
    history = await histories.of_fleet(3)
    async with serving(store=history.store) as server:
        about = urlencode({"kind": "pods", "namespace": "default", "name": "pod-11"})
        answer = (await server.raw("GET", f"{BELOW}/attempts?{about}")).json()
        text = (await server.raw("GET", f"{BELOW}/why?{about}")).text
    last = answer["items"][-1]
    assert last["repeated"] == 14
    flush = re.search(r"at the latest after ([0-9TZ:.-]+)", text)
    assert flush is not None
    times = (datetime.fromisoformat(one) for one in (last["repeated_until"], flush[1]))
    waits = [(b - a).total_seconds() for a, b in [tuple(times)]]
    assert waits[0] >= 300
    assert "17 attempts are recorded" in text
    assert "14 of which repeat the one before" in text
