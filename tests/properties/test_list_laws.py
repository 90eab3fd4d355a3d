"""The law of reads: any interleaving of lists, pages, selectors, watches and writes gives each
answer that a fresh server would give. The judge is a plain dictionary (`plain_lists`)."""

from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.memory import MemoryStore
from app.api.server.limits import ApiLimits
from tests import draws
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.properties.plain_lists import Dictionary, Walk, walks

LIMITS = [ApiLimits(), ApiLimits(snapshots_max=1, frames_max=1), ApiLimits(retained_revisions=500)]
"""What is kept and let go differs; the answers must not."""


async def walk(plan, limits, restarts=()):
    """Takes the steps on one server, or in turns on several servers over one store."""
    before, steps = plan
    store = MemoryStore()
    model, pages, marks = None, [], 0
    parts = [0, *sorted(restarts), len(steps)]
    for start, end in pairwise(parts):
        async with serving(limits=limits, store=store) as server:
            if model is None:
                listed = await server.get("/api/v1/configmaps")
                model = Dictionary(int(listed["metadata"]["resourceVersion"]))
            course = Walk([(server.client, server.watch)], model)
            course.pages, course.count = pages, marks
            if start == 0:
                for step in before:
                    await course.take(step, 0)
            for step, _ in steps[start:end]:
                await course.take(step, 0)
            await course.end()
            pages, marks = course.pages, course.count


@settings(max_examples=draws.examples(60), deadline=None)
@given(plan=walks(), limits=st.sampled_from(LIMITS))
def test_every_answer_is_that_of_a_fresh_server(plan, limits):
    anyio.run(walk, plan, limits)


@pytest.mark.slow
@settings(max_examples=draws.examples(25), deadline=None)
@given(plan=walks(), limits=st.sampled_from(LIMITS), data=st.data())
def test_every_answer_is_that_of_a_fresh_server_over_restarts(plan, limits, data):
    last = len(plan[1])
    restarts = data.draw(st.lists(st.integers(0, last), min_size=1, max_size=3))
    anyio.run(walk, plan, limits, restarts)


async def test_list_after_pages_is_whole():
    async with serving() as server:
        for name in "abcdefg":
            await server.post(CONFIG_MAPS, config_map(name))
        for _ in range(3):
            token, sizes = "", []
            while token is not None:
                page = await server.get(f"{CONFIG_MAPS}?limit=2&continue={token}")
                sizes.append(len(page["items"]))
                token = page["metadata"].get("continue")
            assert sizes == [2, 2, 2, 1]
            assert len((await server.get(CONFIG_MAPS))["items"]) == 7
