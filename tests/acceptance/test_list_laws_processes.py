"""The law of reads over two servers of one history, which end and start again in between."""

import json
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.patience import PATIENCE_SECONDS
from tests.properties.plain_lists import Dictionary, Walk, walks

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]

COLLECTIONS = ("/api/v1/{}/configmaps", "/apis/resource.k8s.io/v1/{}/resourceclaims")


@pytest.fixture
def servers(tmp_path, database_url):
    """Two servers without controllers: nothing but the walk writes."""
    both = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        both.append(ServerProcess(tmp_path / name, "--no-workers", REDRA_DATABASE_URL=database_url))
    try:
        for server in both:
            server.start()
        with both[0].client() as client:
            for name in ("default", "kube-system"):
                made = client.post("/api/v1/namespaces", json={"metadata": {"name": name}})
                assert made.status_code in (201, 409), made.text
        yield both
    finally:
        for server in both:
            server.end()


class Lines:
    """The lines of a watch over HTTP."""

    def __init__(self, answer):
        assert answer.status_code == 200
        self._lines = answer.aiter_lines()

    async def line(self):
        with anyio.fail_after(PATIENCE_SECONDS):
            return json.loads(await anext(self._lines))


def watches(client):
    """What opens a watch with a client."""

    @asynccontextmanager
    async def watch(path, **headers):
        async with client.stream("GET", path, headers=headers, timeout=60) as answer:
            yield Lines(answer)

    return watch


async def empty(client):
    """Remove what earlier walks left; the revision after that."""
    for path in COLLECTIONS:
        for namespace in ("default", "kube-system"):
            answer = await client.delete(path.format(f"namespaces/{namespace}"))
            assert answer.status_code == 200, answer.text
    listed = (await client.get("/api/v1/configmaps")).json()
    assert listed["items"] == []
    return int(listed["metadata"]["resourceVersion"])


async def walk(servers, plan, restart):
    """Take the steps; after `restart` of them one server starts anew, and tokens stay good."""
    before, steps = plan
    model, pages, marks = None, [], 0
    for part in (steps[:restart], steps[restart:]):
        async with (
            httpx.AsyncClient(base_url=servers[0].url, timeout=PATIENCE_SECONDS) as first,
            httpx.AsyncClient(base_url=servers[1].url, timeout=PATIENCE_SECONDS) as second,
        ):
            if model is None:
                model = Dictionary(await empty(first))
                start = [(step, 0) for step in before]
            course = Walk([(client, watches(client)) for client in (first, second)], model)
            course.pages, course.count = pages, marks
            for step, which in (*start, *part):
                await course.take(step, which)
            await course.end()
            pages, marks, start = course.pages, course.count, []
        servers[restart % 2].restart()


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(plan=walks(), restart=st.integers(0, 40))
def test_two_servers_answer_as_fresh_ones(servers, plan, restart):
    anyio.run(walk, servers, plan, restart)
