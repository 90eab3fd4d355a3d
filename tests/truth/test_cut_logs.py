"""What is answered about a past moment is what a log says that ends there.

Both logs have one event more, so that the moment is past in both: at the end of a history that
goes on, it is the present that is asked about, and time passes. Rows come by day.
"""

import random
from urllib.parse import urlencode

import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.domain.log import Revision, chain
from tests import draws
from tests.api.serving import serving
from tests.truth import histories
from tests.truth.courses import KINDS
from tests.truth.histories import lines_of

BELOW = "/redra/v1/histories/default"
WHOLE = ("findings", "lanes", "pace", "trace", "map", "timeline", "scan")
"""Questions about all objects. `capacity` goes on to count after its answer."""

OBJECTS_MAX = 2
CASES = [
    *((histories.of_world, seed) for seed in draws.seeds(4)),
    *((histories.of_fleet, seed) for seed in draws.seeds(4)),
]


async def cut(store: MemoryStore, until: int) -> MemoryStore:
    """The history up to a revision, in a store of its own."""
    log, other = MemoryLog(store), MemoryStore()
    info = await log.find_history("default")
    events = await log.read(info.id, after=Revision(0), limit=until)
    made = MemoryLog(other, MemoryWakeUp().grown)
    settings = {"seed": info.seed, "settings": info.settings, "created": info.created}
    history = await made.create_history("default", **settings, hash=chain.genesis_of(info))
    await made.append(history.id, expected=await made.head(history.id), events=events)
    return other


def questions(lines: list[dict], pick: random.Random) -> list[tuple[str, dict[str, str]]]:
    """The questions about everything, and those about drawn objects of each kind."""
    asked: list[tuple[str, dict[str, str]]] = [(question, {}) for question in WHOLE]
    keys = {
        (line["resource"], line["namespace"], line["name"])
        for line in lines
        if line["type"].startswith("Object")
    }
    for kind in KINDS:
        own = sorted(key for key in keys if key[0] == kind)
        for _, namespace, name in pick.sample(own, min(OBJECTS_MAX, len(own))):
            about = {"kind": kind, "namespace": namespace or "default", "name": name}
            asked += [("why", about), ("object", about)]
            asked += [("attempts", about)] if kind == "pods" else []
    return asked


@draws.BY_DAY
@pytest.mark.parametrize(("make", "seed"), CASES, ids=[f"{m.__name__}-{s}" for m, s in CASES])
async def test_past_moments_are_answered_as_by_a_log_that_ends_there(make, seed):
    history, pick = await make(seed), random.Random(f"cut {make.__name__} {seed}")
    async with serving(store=history.store) as whole:
        lines = lines_of((await whole.raw("GET", f"{BELOW}/events?limit=100000")).text)
        until = pick.randrange(len(lines) // 4, len(lines) - 1)
        async with serving(store=await cut(history.store, until + 1)) as ended:
            for question, about in questions(lines[:until], pick):
                place = f"{BELOW}/{question}?{urlencode({**about, 'at': until})}"
                answers = [await server.raw("GET", place) for server in (whole, ended)]
                assert answers[0].status_code == answers[1].status_code == 200, place
                assert answers[0].json() == answers[1].json(), place
