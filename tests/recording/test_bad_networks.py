"""A recorder behind a proxy that delays, cuts, stalls, repeats and loses."""

import random

import pytest

from tests import draws
from tests.recording.proxy import proxying
from tests.recording.recording import (
    check_same,
    of_recorded_kinds,
    recording_of,
    state_of,
)
from tests.recording.source import Writer, serving_source
from tests.recording.test_following import last_version


@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_connections_that_are_slow_cut_silent_and_repeat_lose_nothing(tmp_path, seed):
    chance = random.Random(seed)
    async with serving_source(tmp_path) as source, proxying(source, seed) as proxy:
        writer = Writer(source, seed)
        await writer.write(20)
        recording = recording_of(
            source,
            kubeconfig=source.kubeconfig(port=proxy.port),
            record_silence_seconds=0.5,
            record_answer_seconds=0.5,
        )
        async with recording.going():
            proxy.delay_seconds, proxy.cut, proxy.silent, proxy.repeat = 0.02, 0.05, 0.02, 0.2
            for _ in range(8):
                await writer.write(chance.randrange(25))
                if chance.random() < 0.3:
                    proxy.close()
            while not proxy.acts["cut"]:
                await writer.write(5)
            proxy.cut = proxy.silent = 0.0
            proxy.repeat = 1.0
            await writer.write(1)
            await recording.wait_for_version(await last_version(source))
        # A connection that is silent for longer than the window shows its changes late.
        events = await recording.log()
        assert not check_same(await source.events(), events, may_be_late=True)
        assert proxy.acts["cut"]
        assert proxy.acts["repeat"]


@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_lines_that_are_lost_are_a_gap_and_what_exists_is_recorded(tmp_path, seed):
    """Nothing in the protocol tells of a line that never came: comparing with the cluster does."""
    async with serving_source(tmp_path) as source, proxying(source, seed) as proxy:
        writer = Writer(source, seed)
        recording = recording_of(
            source, kubeconfig=source.kubeconfig(port=proxy.port), record_audit_seconds=1
        )
        async with recording.going():
            await writer.write(20)
            await recording.wait_for_version(await last_version(source))
            proxy.lose = 0.3
            await writer.write(40)
            proxy.lose = 0.0
            # The last line of a kind is missed when a later one of the kind, or a bookmark, comes.
            await writer.write(40)
            # The comparison at the end has its time; on a slow machine an earlier one finds it.
            wanted = state_of(of_recorded_kinds(await source.events()))
            await recording.wait_for(lambda events: state_of(of_recorded_kinds(events)) == wanted)
        assert proxy.acts["lose"]
        gaps = check_same(await source.events(), await recording.log(), may_be_late=True)
        assert gaps
        assert all("a watch lost changes" in gap.object["message"] for gap in gaps)
