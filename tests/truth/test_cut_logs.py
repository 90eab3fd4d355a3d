"""What is answered about a past moment is what a log says that ends there.

Both logs have one event more, so that the moment is past in both: at the end of a history that
goes on, it is the present that is asked about, and time passes. Rows come by day.
"""

import random
from urllib.parse import urlencode

import pytest
from msgspec import structs

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.domain.log import Revision, chain
from tests import draws
from tests.api.serving import Server, serving
from tests.conformance.recordings import RECORDINGS
from tests.truth import histories
from tests.truth.courses import KINDS
from tests.truth.histories import TrueHistory, lines_of

BELOW = "/redra/v1/histories/default"
WHOLE = ("findings", "lanes", "pace", "trace", "map", "timeline", "scan", "fit", "capacity")
"""Questions about all objects."""

FORM = {"apiVersion", "kind", "spec"}
"""The fields of a manifest; the events of a recording may lack them, those of a deletion do."""

COURSE_MAX = 50
"""How often `capacity` is asked until it has counted all its moments."""

OBJECTS_MAX = 2
CASES = [
    *((histories.of_world, seed) for seed in draws.seeds(4)),
    *((histories.of_fleet, seed) for seed in draws.seeds(4)),
]


async def cut(store: MemoryStore, until: int) -> MemoryStore:
    """The history up to a revision, in a store of its own.

    The report of an import, its last event, follows in both: it says what the recording lacks.
    """
    log, other = MemoryLog(store), MemoryStore()
    info = await log.find_history("default")
    events = list(await log.read(info.id, after=Revision(0), limit=until))
    head = await log.head(info.id)
    (last,) = await log.read(info.id, after=Revision(head.revision - 1), limit=1)
    if last.key == events[0].key and last is not events[-1]:
        following = structs.replace(last, revision=Revision(until + 1))
        events.append(chain.relinked(following, last.body, events[-1].hash))
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


async def answered(server: Server, place: str) -> object:
    """The whole answer of a server; `capacity` counts some of its moments with each question."""
    for _ in range(COURSE_MAX):
        answer = await server.raw("GET", place)
        assert answer.status_code == 200, (place, answer.text)
        if not answer.json().get("missing"):
            return answer.json()
    raise AssertionError(f"{place} does not end")


async def compare(history: TrueHistory, pick: random.Random) -> None:
    """Asks the same of a drawn past moment in the whole history and in one that ends soon after."""
    async with serving(store=history.store) as whole:
        lines = lines_of((await whole.raw("GET", f"{BELOW}/events?limit=100000")).text)
        until = pick.randrange(len(lines) // 4, len(lines) - 1)
        async with serving(store=await cut(history.store, until + 1)) as ended:
            for question, about in questions(lines[:until], pick):
                place = f"{BELOW}/{question}?{urlencode({**about, 'at': until})}"
                assert await answered(whole, place) == await answered(ended, place), place
            for namespace, wanted in templates(lines[:until], pick):
                place = f"{BELOW}/fit?{urlencode({'namespace': namespace, 'at': until})}"
                answers = [await one.raw("POST", place, wanted) for one in (whole, ended)]
                codes = [one.status_code for one in answers]
                message = answers[0].json().get("message", "")
                is_ending = "is being terminated" in message  # its namespace
                assert codes == ([400, 400] if is_ending else [200, 200]), (place, wanted)
                assert answers[0].json() == answers[1].json(), wanted


def templates(lines: list[dict], pick: random.Random) -> list[tuple[str, dict]]:
    """A drawn claim and a drawn pod of the past, each in its namespace, of which more may fit."""
    made = []
    for resource in ("resourceclaims", "pods"):
        own = [
            line
            for line in lines
            if line["resource"] == resource and (line.get("object") or {}).keys() >= FORM
        ]
        for line in pick.sample(own, min(1, len(own))):
            tree = {key: line["object"][key] for key in FORM}
            tree["spec"] = {key: tree["spec"][key] for key in tree["spec"] if key != "nodeName"}
            wanted = {"objects": [{**tree, "metadata": {"name": "wanted"}}]}
            made.append((line["namespace"], wanted))
    return made


@draws.BY_DAY
@pytest.mark.parametrize(("make", "seed"), CASES, ids=[f"{m.__name__}-{s}" for m, s in CASES])
async def test_past_moments_are_answered_as_by_a_log_that_ends_there(make, seed):
    await compare(await make(seed), random.Random(f"cut {make.__name__} {seed}"))


@draws.BY_DAY
@pytest.mark.parametrize("number", [0, draws.repeated(1), draws.repeated(2)])
@pytest.mark.parametrize("name", RECORDINGS)
async def test_past_moments_of_recordings_are_answered_as_by_a_log_that_ends_there(name, number):
    await compare(await histories.of_recording(name), random.Random(f"cut {name} {number}"))
