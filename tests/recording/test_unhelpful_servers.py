"""A cluster that is slow, busy, or leaves out what a server may leave out: nothing is lost."""

import json
from functools import partial

import anyio
import pytest

from tests import draws
from tests.patience import PATIENCE_SECONDS
from tests.recording.recording import check_same, recording_of
from tests.recording.source import Writer, serving_source
from tests.recording.test_following import last_version

BUSY = json.dumps({"kind": "Status", "code": 429, "message": "too many requests"}).encode()
BUSY_HEADERS = [(b"retry-after", b"1"), (b"content-type", b"application/json")]
BUSY_EVERY = 20
PAGE_SECONDS = 0.05
GROUPS = 200
LOOKS = 4


def late_lists(app):
    """The application with each page of a list late."""

    async def answer(scope, receive, send):
        query = scope.get("query_string", b"")
        if b"limit=" in query and b"watch=" not in query:
            await anyio.sleep(PAGE_SECONDS)  # waits: a late page is what the test is about
        await app(scope, receive, send)

    return answer


def busy(app):
    """The application, which answers some readings with 429."""
    count = 0

    async def answer(scope, receive, send):
        nonlocal count
        count += scope["type"] == "http" and scope["method"] == "GET"
        if scope["type"] != "http" or scope["method"] != "GET" or count % BUSY_EVERY:
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 429, "headers": BUSY_HEADERS})
        await send({"type": "http.response.body", "body": BUSY})

    return answer


def without_bookmarks(app):
    """The application, which never tells a watcher how far it is."""

    async def answer(scope, receive, send):
        if scope["type"] == "http":
            query = scope["query_string"].replace(b"allowWatchBookmarks=true", b"")
            scope = {**scope, "query_string": query}
        await app(scope, receive, send)

    return answer


def with_many_groups(app, looked):
    """The application with the groups of many definitions; `looked` is set at the fourth look."""
    looks = 0

    async def answer(scope, receive, send):
        if scope["type"] != "http" or scope["path"] != "/apis":
            await app(scope, receive, send)
            return
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            looked.set()
        parts = []

        async def gather(message):
            parts.append(message.get("body", b""))

        scope = {**scope, "headers": [each for each in scope["headers"] if each[0] != b"accept"]}
        await app(scope, receive, gather)
        tree = json.loads(b"".join(parts))
        for number in range(GROUPS):
            name = f"g{number}.example.com"
            version = {"groupVersion": f"{name}/v1", "version": "v1"}
            tree["groups"].append(
                {"name": name, "versions": [version], "preferredVersion": version}
            )
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(tree).encode()})

    return answer


@draws.in_turn("ways")
@pytest.mark.parametrize("way", [late_lists, busy, without_bookmarks])
async def test_server_that_does_no_more_than_it_must_loses_nothing(tmp_path, way):
    async with serving_source(tmp_path, around=way) as source:
        writer = Writer(source, 7)
        await writer.write(20)
        recording = recording_of(source)
        async with recording.going():
            for _ in range(4):
                await writer.write(10)
            await recording.wait_for_version(await last_version(source))
        assert not check_same(await source.events(), await recording.log(), may_be_late=True)


async def test_groups_that_are_not_recorded_are_never_asked_for(tmp_path):
    looked = anyio.Event()
    around = partial(with_many_groups, looked=looked)
    async with serving_source(tmp_path, around=around) as source:
        recording = recording_of(source)
        async with recording.going():
            with anyio.fail_after(PATIENCE_SECONDS):
                await looked.wait()
        asked = {path for _, path in source.requests if path.startswith("/apis/")}
        assert not [path for path in asked if ".example.com" in path]
        assert any(path.startswith("/apis/resource.k8s.io/") for path in asked)
