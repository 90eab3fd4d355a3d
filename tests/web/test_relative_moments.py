"""A moment that counts from the end: answers, pages and commands name its instant."""

import msgspec
import pytest

from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import CONFIG_MAPS, claim, config_map, serving
from tests.virtual_clock import VirtualClock
from tests.web.reading import read

BEGIN = timestamps.parse("2026-03-10T12:00:00Z")
HOUR = 3_600 * SECOND
HISTORY = "/redra/v1/histories/default"
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"pods": "1"}},
}


@pytest.mark.parametrize("part", ["why?kind=cm&name=m", "findings", "timeline", "lanes"])
async def test_answers_name_the_instant_of_a_relative_moment(part):
    clock = VirtualClock(BEGIN)
    async with serving(clock=clock) as server:
        await server.post(CONFIG_MAPS, config_map())
        clock.advance_to(Instant(BEGIN + HOUR))
        path = f"{HISTORY}/{part}{'&' if '?' in part else '?'}at="
        answer = await server.get(f"{path}0s")
        assert answer["asOf"] == ("0s before now, 2026-03-10T13:00:00Z, is 2026-03-10T13:00:00Z")
        for moment in ("", str(answer["revision"])):
            assert "asOf" not in await server.get(f"{path}{moment}")


async def test_lanes_name_the_instants_of_a_relative_stretch():
    async with serving(clock=VirtualClock(BEGIN)) as server:
        await server.post(CONFIG_MAPS, config_map())
        answer = await server.get(f"{HISTORY}/lanes?since=10m&until=0s")
        assert answer["asOf"] == (
            "10m before now, 2026-03-10T12:00:00Z, is 2026-03-10T11:50:00Z; "
            "0s before now, 2026-03-10T12:00:00Z, is 2026-03-10T12:00:00Z"
        )


async def test_objects_at_a_relative_moment_are_those_of_its_instant():
    clock = VirtualClock(BEGIN)
    async with serving(clock=clock) as server:
        clock.advance_to(Instant(BEGIN + HOUR))
        await server.post(CONFIG_MAPS, config_map("m"))
        clock.advance_to(Instant(BEGIN + 2 * HOUR))
        for moment, names in (("10m", ["m"]), ("30m", ["m"]), ("90m", []), ("13:30", ["m"])):
            items = (await server.get(f"/h/default@{moment}{CONFIG_MAPS}"))["items"]
            assert [one["metadata"]["name"] for one in items] == names, moment
        refused = await server.raw("GET", f"/h/default@yesterday{CONFIG_MAPS}")
        assert refused.status_code == 400
        assert "neither a revision nor an instant" in refused.json()["message"]


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("blast", {"objects": [QUOTA]}),
        ("fit", {"objects": [claim()]}),
        ("diff?with=default&", None),
    ],
)
async def test_answers_to_proposals_name_the_instant_too(part, body):
    clock = VirtualClock(BEGIN)
    async with serving(clock=clock) as server:
        await server.post(CONFIG_MAPS, config_map())
        path = f"{HISTORY}/{part}{'' if '?' in part else '?'}at=0s"
        answer = await (server.get(path) if body is None else server.post(path, body, 200))
        assert answer["asOf"].startswith("0s before now, 2026-03-10T12:00:00Z, is ")


async def test_moment_of_a_live_history_whose_last_event_is_long_ago_counts_from_now():
    """As with kubectl: ten minutes ago nothing was there any more that was deleted an hour ago."""
    clock = VirtualClock(BEGIN)
    async with serving(clock=clock) as server:
        await server.post(CONFIG_MAPS, config_map())
        last = (await server.get(HISTORY))["revision"]
        clock.advance_to(Instant(BEGIN + HOUR))
        facts = await server.get(HISTORY)
        assert facts["moments_end_now"]
        assert facts["moments_end"] == "2026-03-10T13:00:00.000000Z"
        assert facts["time"] == "2026-03-10T12:00:00.000000Z"
        for moment, revision in (("10m", last), ("61m", 0)):
            assert (await server.get(f"{HISTORY}/timeline?at={moment}"))["revision"] == revision
        entries = [
            (await server.raw("GET", f"{HISTORY}/entries?since={since}")).text.splitlines()
            for since in ("10m", "61m")
        ]
        assert len(entries[0]) == 2 < len(entries[1])
        assert msgspec.json.decode(entries[0][0])["asOf"].startswith("10m before now, ")


async def test_moment_of_a_fork_counts_from_its_last_event():
    """Its time is its own: the events of its parent may be years ago."""
    clock = VirtualClock(BEGIN)
    async with serving(clock=clock) as server:
        await server.post(CONFIG_MAPS, config_map())
        clock.advance_to(Instant(BEGIN + HOUR))
        await server.post(f"{HISTORY}/fork", {"name": "fork"})
        answer = await server.get("/redra/v1/histories/fork/findings?at=10m")
        assert answer["asOf"].startswith("10m before the last event at 2026-03-10T12:00:00")


async def test_pages_name_the_instant_of_a_relative_moment():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map())
        said = [
            read((await server.raw("GET", f"/ui/h/default{moment}/")).text)
            .one("span", "shown")
            .text
            for moment in ("@0s", "")
        ]
    assert "(0s before now, " in said[0]
    assert "before" not in said[1]
