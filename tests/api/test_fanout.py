"""Watches over real connections, which get changes together while their clients keep up."""

import json
import socket
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx

from app.api.server.limits import ApiLimits
from tests.api.listening import running
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map
from tests.patience import PATIENCE_SECONDS

WRITES = 40

CLAIMS_BETA = CLAIMS.replace("/v1/", "/v1beta1/")


@asynccontextmanager
async def client_of(server):
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}", timeout=PATIENCE_SECONDS
    ) as client:
        yield client


async def watch(client, path, lines, *, until):
    """Append the decoded lines of a watch until `until` says that they suffice."""
    async with client.stream("GET", path) as answer:
        async for text in answer.aiter_lines():
            lines.append(json.loads(text))
            if until(lines):
                return


async def create(client, path, tree):
    answer = await client.post(path, json=tree)
    assert answer.status_code == 201, answer.text


async def until_guests(server, count):
    """Wait until as many watches are told in channels; they join when they have nothing to say."""
    runtime = await server.histories.open("default")
    with anyio.fail_after(PATIENCE_SECONDS):
        while runtime.watches.guests != count:  # noqa: ASYNC110 - a count, not an event
            await anyio.sleep(0.01)  # waits: for watches to join and to go
    return runtime


async def read_lines(sock, count):
    """So many lines of a watch from a socket whose other end sends chunks."""
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # its pause is over
    rest, found = b"", b""
    with anyio.fail_after(PATIENCE_SECONDS):
        while found.count(b"\n") < count:
            await anyio.wait_readable(sock)
            rest += sock.recv(1 << 20)
            if b"\r\n\r\n" in rest and rest.startswith(b"HTTP/1.1 200"):
                rest = rest.partition(b"\r\n\r\n")[2]
            while (end := rest.find(b"\r\n")) >= 0:
                size = int(rest[:end], 16)
                if len(rest) < end + 2 + size + 2:
                    break
                found += rest[end + 2 : end + 2 + size]
                rest = rest[end + 2 + size + 2 :]
    return found.splitlines()


def changes(lines):
    """What was told, without bookmarks: type, name and version."""
    return [
        (line["type"], line["object"]["metadata"]["name"], version_of(line))
        for line in lines
        if line["type"] != "BOOKMARK"
    ]


def version_of(line):
    return int(line["object"]["metadata"]["resourceVersion"])


async def test_each_watch_hears_everything_once_and_in_order_in_its_own_version():
    paths = {
        "v1": f"{CLAIMS}?watch=true",
        "v1beta1": f"{CLAIMS_BETA}?watch=true",
        "everywhere": "/apis/resource.k8s.io/v1/resourceclaims?watch=true",
        "elsewhere": "/apis/resource.k8s.io/v1/namespaces/other/resourceclaims?watch=true",
        "again": f"{CLAIMS}?watch=true",
    }
    heard = {name: [] for name in paths}
    async with (
        running() as server,
        client_of(server) as client,
        anyio.create_task_group() as tasks,
    ):
        await create(client, "/api/v1/namespaces", {"metadata": {"name": "other"}})
        for name, path in paths.items():
            wanted = {"everywhere": WRITES + 1, "elsewhere": 1}.get(name, WRITES)
            tasks.start_soon(
                lambda n=name, p=path, w=wanted: watch(
                    client, p, heard[n], until=lambda lines: len(lines) == w
                )
            )
        await until_guests(server, len(paths))
        async with anyio.create_task_group() as writers:
            for number in range(WRITES):
                writers.start_soon(create, client, CLAIMS, claim(f"c{number}"))
        other = claim("far")
        other["metadata"].pop("namespace", None)
        await create(client, CLAIMS.replace("default", "other"), other)
    told = changes(heard["v1"])
    assert [version for _, _, version in told] == sorted({version for _, _, version in told})
    assert {name for _, name, _ in told} == {f"c{number}" for number in range(WRITES)}
    assert changes(heard["v1beta1"]) == changes(heard["again"]) == told
    assert changes(heard["everywhere"]) == [*told, *changes(heard["elsewhere"])]
    versions = {name: {line["object"]["apiVersion"] for line in heard[name]} for name in paths}
    assert versions["v1"] == {"resource.k8s.io/v1"}
    assert versions["v1beta1"] == {"resource.k8s.io/v1beta1"}


async def test_bookmarks_of_watches_that_are_told_together_are_never_ahead():
    limits = ApiLimits(bookmark_seconds=0.002)
    lines = []
    async with (
        running(limits=limits) as server,
        client_of(server) as client,
        anyio.create_task_group() as tasks,
    ):
        path = f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true"
        enough = lambda found: len(changes(found)) == WRITES  # noqa: E731
        tasks.start_soon(lambda: watch(client, path, lines, until=enough))
        await until_guests(server, 1)
        for number in range(WRITES):
            await create(client, CONFIG_MAPS, config_map(f"m{number}"))
    versions = [version_of(line) for line in lines]
    assert versions == sorted(versions)
    told = [version for _, _, version in changes(lines)]
    assert len(set(told)) == WRITES
    bookmarks = [at for at, line in enumerate(lines) if line["type"] == "BOOKMARK"]
    assert bookmarks
    for at in bookmarks:
        assert all(
            version_of(line) > versions[at] for line in lines[at + 1 :] if line["type"] == "ADDED"
        )


async def test_client_that_pauses_misses_nothing():
    body = config_map("m", text="x" * 60_000)
    async with running() as server, client_of(server) as client:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.connect(("127.0.0.1", server.port))
            slow.sendall(f"GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\nhost: a\r\n\r\n".encode())
            await until_guests(server, 1)
            await create(client, CONFIG_MAPS, body)
            path = f"{CONFIG_MAPS}/m"
            for number in range(200):  # far more than any socket buffers
                change = {"data": {"n": str(number)}}
                kind = {"content-type": "application/merge-patch+json"}
                assert (await client.patch(path, json=change, headers=kind)).status_code == 200
            await until_guests(server, 0)
            slow.setblocking(False)
            found = await read_lines(slow, 201)
    numbers = [json.loads(line)["object"]["data"].get("n") for line in found]
    assert numbers == [None, *(str(number) for number in range(200))]


async def test_watch_that_ends_or_whose_client_goes_leaves_nothing_behind():
    async with running() as server, client_of(server) as client:
        lines = []
        path = f"{CONFIG_MAPS}?watch=true"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: watch(client, path, lines, until=lambda _: False))
            tasks.start_soon(
                lambda: watch(client, f"{path}&timeoutSeconds=1", [], until=lambda _: False)
            )
            runtime = await until_guests(server, 2)
            await until_guests(server, 1)  # its time was up, and the answer is complete
            before = runtime.watches.count()
            tasks.cancel_scope.cancel()
        await until_guests(server, 0)
        # The channel's own subscription goes with its last member.
        assert runtime.watches.count() == before - 2
        await create(client, CONFIG_MAPS, config_map("late"))
