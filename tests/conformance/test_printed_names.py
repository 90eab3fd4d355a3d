"""What an answer prints is accepted as a question: each object that it is about, and each time."""

import random
import re
from urllib.parse import urlencode

import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.cli.explaining import page, parts
from app.domain.log import Revision
from tests import draws
from tests.api.serving import serving
from tests.conformance.recordings import RECORDINGS
from tests.imports import import_once
from tests.shared_data import shared_path

HISTORY = "/redra/v1/histories/default"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
OBJECTS_MAX = 120 if draws.WHOLE else 12
NO_OBJECTS = ("imports", "redra")
"""The kind and group of entries about an import, which is no object."""


async def imported(name):
    """A recording as the history of a server, and the objects in it."""
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    result = await import_once(log, [shared_path("histories", name)], name="default")
    events = await log.read(result.history.id, after=Revision(0), limit=1_000_000)
    return store, sorted({event.key for event in events if event.is_about_object}), len(events)


def abouts(tree):
    """The objects that reasons are about."""
    if isinstance(tree, dict):
        if isinstance(about := tree.get("about"), dict):
            yield about["resource"], about["namespace"], about["name"]
        for value in tree.values():
            yield from abouts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from abouts(value)


@pytest.mark.parametrize(
    "name", ["j-api-versions", *(draws.repeated(name) for name in RECORDINGS if name[0] != "j")]
)
async def test_what_answers_print_is_accepted_as_a_question(name):
    store, keys, last = await imported(name)
    random.Random(7).shuffle(keys)
    named, times = set(), set()
    async with serving(store=store) as server:

        async def why(resource, namespace, of, **more):
            about = {"kind": resource, "namespace": namespace, "name": of, **more}
            return await server.raw("GET", f"{HISTORY}/why?{urlencode(about)}")

        for key in keys[:OBJECTS_MAX]:
            for moment in ({}, {"at": str(last // 2)}):
                answer = await why(key.resource, key.namespace, key.name, **moment)
                if answer.status_code == 200:
                    named.update(abouts(answer.json()))
                    times.update(TIME.findall("\n".join(page(*parts(answer.json()), 100))))
        refusals = set()
        for item in (await server.get(f"{HISTORY}/findings"))["items"]:
            objects = {(one["resource"], one["namespace"], one["name"]) for one in item["objects"]}
            (refusals if item["kind"] == "RefusedWrites" else named).update(objects)
        for item in (await server.get(f"{HISTORY}/timeline?limit=100"))["items"]:
            times.add(item["time"])
            # A warning may be about an object that was not recorded, and a refused write about
            # one that was never stored or named: no question finds these. Of the refused ones
            # with a name, the answer says why they are not there.
            may_be_absent = item["kind"] in ("Warning", "WriteRefused")
            if (item["resource"], item["api_group"]) != NO_OBJECTS and not may_be_absent:
                named.add((item["resource"], item["namespace"], item["name"]))
        assert min(len(named), len(times)) > 20
        unknown = [about for about in sorted(named) if (await why(*about)).status_code != 200]
        for about in sorted(refusals - named):
            answer = await why(*about)
            if answer.status_code != 200 and not re.search(r"Invalid|Forbidden", answer.text):
                unknown.append(about)
        refused = [
            time
            for time in sorted(times)
            if (await server.raw("GET", f"{HISTORY}/map?at={time}")).status_code != 200
        ]
    assert (unknown, refused) == ([], [])
