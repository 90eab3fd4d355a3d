"""Streams of pages that follow a history: their messages, their number, and their end."""

from contextlib import asynccontextmanager

import anyio
import pytest

from app.api.server.limits import ApiLimits, LiveBounds
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.api.test_readers import filled, headers
from tests.patience import PATIENCE_SECONDS
from tests.web.reading import read

UI = "/ui/h/default"
QUICK = LiveBounds(streams_max=2, pace_seconds=0.001, beat_seconds=0.01, seconds_max=60)


@asynccontextmanager
async def following(server, path=f"{UI}/live"):
    """A stream that is open, whose messages come by `message`."""
    async with server.watch(path) as stream:
        yield stream


async def message(stream):
    """The next message that is no comment."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            while b"\n\n" not in stream._pending:
                assert not stream.ended
                await stream._grown.wait()
            part, _, stream._pending = stream._pending.partition(b"\n\n")
            if not part.startswith(b":"):
                return part


async def head(server):
    return (await server.get("/redra/v1/histories/default"))["revision"]


async def test_stream_tells_each_time_how_far_the_history_has_come():
    async with serving(limits=ApiLimits(live=QUICK)) as server, following(server) as stream:
        assert await message(stream) == b"event: head\ndata: %d" % await head(server)
        assert stream.headers["content-type"] == "text/event-stream"
        await server.post(CONFIG_MAPS, config_map("one"))
        assert await message(stream) == b"event: head\ndata: %d" % await head(server)


async def test_many_changes_are_told_as_one():
    slow = LiveBounds(pace_seconds=0.2, beat_seconds=5)
    async with serving(limits=ApiLimits(live=slow)) as server, following(server) as stream:
        await message(stream)
        for number in range(10):
            await server.post(CONFIG_MAPS, config_map(f"m-{number}"))
        last = await head(server)
        told = [await message(stream)]
        while told[-1] != b"event: head\ndata: %d" % last:
            told.append(await message(stream))
        assert len(told) < 10


async def test_quiet_history_is_not_silent():
    async with serving(limits=ApiLimits(live=QUICK)) as server, following(server) as stream:
        await message(stream)
        with anyio.fail_after(PATIENCE_SECONDS):
            while b": nothing happened\n\n" not in stream._pending:
                await stream._grown.wait()


async def test_number_of_streams_is_bounded_and_a_closed_one_counts_no_more():
    async with serving(limits=ApiLimits(live=QUICK)) as server:
        async with following(server) as one:
            await message(one)
            async with following(server) as two:
                await message(two)
                refused = await server.raw("GET", f"{UI}/live")
                assert refused.status_code == 429, refused.text
        async with following(server) as three:
            await message(three)


async def test_streams_end_when_the_server_stops():
    slow = LiveBounds(pace_seconds=0.001, beat_seconds=1_000)
    async with serving(limits=ApiLimits(live=slow)) as server, following(server) as stream:
        await message(stream)
        server.app.end_watches()
        with anyio.fail_after(PATIENCE_SECONDS):
            while not stream.ended:
                await stream._grown.wait()


async def test_stream_ends_with_the_runtime_that_it_follows():
    async with serving(limits=ApiLimits(live=QUICK)) as server, following(server) as stream:
        await message(stream)
        await server.histories.close("default")
        with anyio.fail_after(PATIENCE_SECONDS):
            while not stream.ended:
                await stream._grown.wait()


async def test_history_is_in_use_while_a_page_follows_it():
    async with serving(limits=ApiLimits(live=QUICK)) as server:
        runtime = await server.histories.open("default")
        async with following(server) as stream:
            await message(stream)
            assert runtime.is_busy
        assert not runtime.is_busy


@pytest.mark.parametrize(
    ("path", "code"), [(f"{UI}@2/live", 400), ("/ui/h/none/live", 404), (f"{UI}/live/x", 404)]
)
async def test_stream_without_a_growing_history_is_refused(path, code):
    async with serving() as server:
        assert (await server.raw("GET", path)).status_code == code


@pytest.mark.parametrize("reader", ["gus", "dan"])
async def test_stream_is_answered_only_to_readers_of_the_history(reader):
    async with filled() as server:
        page = await server.raw("GET", "/ui/h/one@2/live", **headers(reader))
        answer = await server.raw("GET", "/redra/v1/histories/one/live", **headers(reader))
        assert page.status_code == (400 if answer.status_code == 404 else answer.status_code)


async def test_pages_of_the_present_say_where_they_are_followed():
    async with serving() as server:
        for part in ("", "lanes", "map", "timeline", "pace"):
            root = read((await server.raw("GET", f"{UI}/{part}")).text)
            (mark,) = root.all("span", "live")
            assert mark.attributes["data-live"] == f"{UI}/live"
            assert int(mark.attributes["data-revision"]) == await head(server)
            past = read((await server.raw("GET", f"{UI}@2/{part}")).text)
            assert not past.all("span", "live")
        for part in ("blast", "capacity", "compare", "scan"):
            root = read((await server.raw("GET", f"{UI}/{part}")).text)
            assert not root.all("span", "live"), part
