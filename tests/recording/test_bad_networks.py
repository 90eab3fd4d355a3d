"""A recorder behind a proxy that delays, cuts, stalls, repeats and loses."""

import random
import socket
from dataclasses import replace

import pytest

from app.bootstrap.recording import recorders
from app.domain.errors import InputError
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


@draws.in_turn("ways")
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


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_lines_that_are_lost_are_a_gap_and_what_exists_is_recorded(tmp_path, seed):
    """The protocol does not show a line that never came: a comparison with the cluster does."""
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


def impatient(monkeypatch):
    """The pauses between the tries of a first request, which do not take their time."""
    bounds = recorders.recording_bounds

    def quick(settings):
        made = bounds(settings)
        return replace(made, snapshot=replace(made.snapshot, pause_seconds=0.001))

    monkeypatch.setattr(recorders, "recording_bounds", quick)


async def test_first_connections_that_break_are_tried_again_within_a_bound(tmp_path, monkeypatch):
    impatient(monkeypatch)
    async with serving_source(tmp_path) as source, proxying(source) as proxy:
        kubeconfig = source.kubeconfig(port=proxy.port)
        recording = recording_of(source, kubeconfig=kubeconfig)
        proxy.broken_next = 1_000
        with pytest.raises(InputError, match=r"tried 5 times.*try the same with kubectl"):
            await recording.once()
        assert recording.notes.pop(0) == f"connecting to the cluster ({kubeconfig})"
        assert [note.rpartition("; ")[2] for note in recording.notes] == ["trying again"] * 4
        assert await recording.info() is None
        proxy.broken_next = 3  # The client library asks twice each time.
        recording.notes.clear()
        await recording.once()
        assert proxy.broken_next == 0
        assert recording.notes[1].endswith("; trying again")
        assert "; reading " in recording.notes[2]
        assert "trying again" not in recording.notes[2]
        with socket.create_server(("127.0.0.1", 0)) as left:
            port = left.getsockname()[1]
        recording = recording_of(source, kubeconfig=source.kubeconfig(port=port))
        with pytest.raises(InputError, match=f"no connection to 127.0.0.1:{port}: Connection"):
            await recording.once()
        assert len(recording.notes) == 1
