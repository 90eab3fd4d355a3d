"""A recorder follows a cluster completely, in the cluster's order, over the death of either."""

import random

import anyio
import pytest

from app.domain.errors import InputError, LogUnavailable
from app.domain.log import EventType, Head
from app.domain.log.recorded_cluster import ClusterIdentity
from app.domain.values.identifiers import Uid
from app.service.recording.journal import RecordingProgress
from app.service.recording.resuming import Resumed, check_same_cluster
from tests import draws
from tests.patience import PATIENCE_SECONDS
from tests.recording.recording import check_same, recording_of
from tests.recording.source import NODES, Writer, node, serving_source


async def last_version(source):
    return (await source.events())[-1].revision


@draws.in_turn("ways")
async def test_snapshot_is_the_whole_cluster_at_one_version(tmp_path):
    async with serving_source(tmp_path) as source:
        await Writer(source, 1).write(60)
        recording = recording_of(source)
        await recording.once()
        events = await recording.log()
        assert not check_same(await source.events(), events)
        positions = events[-1].object["positions"]
        assert set(positions.values()) == {str(await last_version(source))}
        assert events[-1].object["phase"] == "finished"
        info = await recording.info()
        assert info.is_recorded
        with pytest.raises(InputError, match="already exists"):
            await recording.once()


@draws.in_turn("ways")
async def test_changes_follow_the_snapshot_in_the_order_of_the_cluster(tmp_path):
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 2)
        await writer.write(20)
        recording = recording_of(source)
        async with recording.going():
            await writer.write(150)
            await recording.wait_for_version(await last_version(source))
        events = await recording.log()
        assert not check_same(await source.events(), events)
        assert events[-1].object["phase"] == "stopped"
        assert not await recording.gaps()


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_either_side_dies_again_and_again(tmp_path, seed):
    chance = random.Random(seed)
    async with serving_source(tmp_path) as source:
        writer = Writer(source, seed)
        await writer.write(10)
        recording = recording_of(source)
        for _ in range(10):
            async with recording.going(is_killed=chance.random() < 0.8):
                await writer.write(chance.randrange(12))
                if chance.random() < 0.5:
                    await source.restart()
                await writer.write(chance.randrange(12))
                if chance.random() < 0.3:
                    await recording.wait_for_version(await last_version(source))
            await writer.write(chance.randrange(8))
        async with recording.going():
            await writer.write(1)
            await recording.wait_for_version(await last_version(source))
        assert not check_same(await source.events(), await recording.log())


async def test_second_recorder_of_a_history_waits_and_is_refused(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        async with recording.going():
            with pytest.raises(BaseExceptionGroup) as caught:
                async with recording.going():
                    pass
            assert caught.group_contains(InputError, match="another process records 'prod'")


async def test_history_of_another_cluster_is_not_gone_on_with(tmp_path):
    async with serving_source(tmp_path) as source:
        recording = recording_of(source)
        await recording.once()
    async with serving_source(tmp_path) as other:
        recording.wanted = recording_of(other).wanted
        before = await recording.log()
        with pytest.raises(BaseExceptionGroup) as caught:
            async with recording.going():
                pass
        assert caught.group_contains(InputError, match="records another cluster")
        assert await recording.log() == before


def test_another_cluster_at_the_same_address_is_said_to_be_one() -> None:
    source = {"uid": "b7a5", "server": "https://prod"}
    resumed = Resumed(
        head=Head(),
        progress=RecordingProgress(),
        opening={"sources": [source]},
    )
    other = ClusterIdentity(server="https://prod", release="v1.37.0", uid=Uid("09cd"))
    with pytest.raises(InputError, match="https://prod; this one has its address now"):
        check_same_cluster(resumed, other, "prod")


@draws.in_turn("ways")
async def test_positions_of_quiet_kinds_rise_by_bookmarks(tmp_path):
    """A kind in which nothing happens goes on from where the cluster is, not from long ago."""
    from app.api.server.limits import ApiLimits

    async with serving_source(tmp_path, limits=ApiLimits(bookmark_seconds=0.05)) as source:
        recording = recording_of(source, record_report_seconds=0.05)
        writer = Writer(source, 5)
        async with recording.going():
            async with source.client() as client:
                for number in range(20):
                    await client.post(NODES, json=node(f"n{number}"))
            version = await last_version(source)
            await recording.wait_for_version(version)

            def is_reported(events):
                reports = [e for e in events if e.type is EventType.HISTORY_IMPORTED]
                return int(reports[-1].object["positions"]["pods"]) > version - 20

            while not is_reported(await recording.log()):
                await writer.write(1)


async def test_recorder_that_begins_while_the_disk_is_full_says_so_and_begins_when_there_is_room(
    tmp_path, monkeypatch
):
    async with serving_source(tmp_path) as source:
        await Writer(source, 7).write(10)
        recording = recording_of(source)
        append, refusals = recording.store.log.append, iter(range(3))

        async def refuse_at_first(*arguments, **options):
            if next(refusals, None) is not None:
                raise LogUnavailable("the disk of the database is full")
            return await append(*arguments, **options)

        monkeypatch.setattr(recording.store.log, "append", refuse_at_first)
        await recording.once()
        waiting = "prod: not begun yet: the disk of the database is full"
        assert recording.notes[2:] == [waiting]
        assert not check_same(await source.events(), await recording.log())


@draws.in_turn("ends")
@pytest.mark.parametrize("writes", [0, 5])
async def test_recorder_stops_also_while_the_store_is_away_and_the_next_one_goes_on(
    tmp_path, monkeypatch, writes
):
    async def refuse(*_, **__):
        raise LogUnavailable("the disk of the database is full")

    async with serving_source(tmp_path) as source:
        writer = Writer(source, 7)
        await writer.write(10)
        recording = recording_of(source, record_stop_seconds=0.3)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with recording.going():
                await recording.wait_for_version(await last_version(source))
                monkeypatch.setattr(recording.store.log, "append", refuse)
                await writer.write(writes)
        assert any("stopped before everything was stored" in note for note in recording.notes)
        assert any("the disk of the database is full" in note for note in recording.notes)
        monkeypatch.undo()
        async with recording.going():
            await writer.write(1)
            await recording.wait_for_version(await last_version(source))
        assert not check_same(await source.events(), await recording.log())
