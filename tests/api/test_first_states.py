"""The first states of many watches that begin at once: shared, and sent in turns."""

from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest

from app.api.kubernetes.first_states import PAGE_BYTES
from tests.api.serving import CLAIMS, CONFIG_MAPS, Following, claim, config_map, serving
from tests.patience import PATIENCE_SECONDS

WATCHES = 12
OBJECTS = 30
OBJECT_BYTES = 30_000
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
FIRST_VERSION = "?watch=true"
STREAMED = (
    "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)


class Chunks(Following):
    """A client that keeps the chunks of an answer as they were sent."""

    def __init__(self):
        super().__init__()
        self.chunks = []

    async def send(self, message):
        if message.get("body"):
            self.chunks.append(message["body"])
        await super().send(message)

    @property
    def added(self):
        return sum(chunk.count(b'{"type":"ADDED"') for chunk in self.chunks)


async def fill(server):
    for number in range(OBJECTS):
        await server.post(CONFIG_MAPS, config_map(f"m{number:02}", x="x" * OBJECT_BYTES))


async def begin(server, stack, paths, accept="application/json"):
    """Watches that begin in the same turn of the event loop."""
    clients = [Chunks() for _ in paths]
    for client, path in zip(clients, paths, strict=True):
        await stack.enter_async_context(server.watch(path, client, accept=accept))
    return clients


async def turns(clients, count):
    """The bytes that all clients got in each turn of the event loop, until each has its objects."""
    sizes, before = [], 0
    with anyio.fail_after(PATIENCE_SECONDS):
        while any(client.added < count for client in clients):
            await anyio.lowlevel.checkpoint()
            after = sum(len(chunk) for client in clients for chunk in client.chunks)
            sizes.append(after - before)
            before = after
    return sizes


@pytest.mark.parametrize("query", [FIRST_VERSION, STREAMED, f"{FIRST_VERSION}&labelSelector=!a"])
async def test_first_states_take_turns_page_by_page(query):
    async with serving() as server, AsyncExitStack() as stack:
        await fill(server)
        clients = await begin(server, stack, [CONFIG_MAPS + query] * WATCHES)
        sizes = await turns(clients, OBJECTS)
    assert sum(sizes) > WATCHES * OBJECTS * OBJECT_BYTES
    assert max(sizes) < PAGE_BYTES + 2 * OBJECT_BYTES


@pytest.mark.parametrize("accept", ["application/json", PARTIAL])
async def test_watches_of_one_representation_are_sent_the_same_bytes(accept):
    async with serving() as server, AsyncExitStack() as stack:
        for number in range(3):
            await server.post(CLAIMS, claim(f"c{number}"))
        paths = [CLAIMS, CLAIMS.replace("/v1/", "/v1beta1/"), CLAIMS, CLAIMS]
        paths = [path + FIRST_VERSION for path in paths]
        first, beta, *others = await begin(server, stack, paths, accept)
        await turns([first, beta, *others], 3)
    assert all(other.chunks[0] is first.chunks[0] for other in others)
    assert beta.chunks[0] is not first.chunks[0]
