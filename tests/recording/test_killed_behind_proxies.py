"""Either side dies at random moments behind a bad network, while clients write."""

import random
from contextlib import suppress

import anyio
import httpx
import msgspec
import pytest

from app.domain.log.chain import event_json
from tests import draws
from tests.recording import judge
from tests.recording.proxy import proxying
from tests.recording.recording import recording_of
from tests.recording.source import NODES, Writer, node, serving_source
from tests.recording.test_following import last_version

DEATHS = 10 if draws.WHOLE else 2


def lines(events):
    """Events as lines of `redra log`."""
    return [msgspec.json.encode(event_json(event)) for event in events]


class Client(Writer):
    """A client that writes on, whatever becomes of its requests."""

    async def write_on(self):
        while True:
            # What came of the last request is in the log of the cluster.
            with suppress(httpx.TransportError, AssertionError):
                await self.write(1)
            await anyio.sleep(0.02)  # waits: is the pace of a client


async def live(folder, seed, *, loses):
    """A story of deaths; returns the log of the cluster and that of the recording, as lines."""
    chance = random.Random(seed)
    async with serving_source(folder) as source, proxying(source, seed) as proxy:
        await Writer(source, seed, "first").write(10)
        recording = recording_of(
            source,
            kubeconfig=source.kubeconfig(port=proxy.port),
            record_silence_seconds=1,
            record_answer_seconds=5,
            record_audit_seconds=1,
        )
        async with anyio.create_task_group() as clients:
            for number in range(2):
                clients.start_soon(Client(source, chance.random(), f"c{number}").write_on)
            for _ in range(DEATHS):
                proxy.calm()
                await _live_once(source, recording, proxy, chance, loses=loses)
            proxy.calm()
            clients.cancel_scope.cancel()
        async with recording.going(), source.client() as client:
            made = await client.post(NODES, json=node("last"))
            assert made.status_code == 201
            await recording.wait_for_version(await last_version(source))
        return lines(await source.events()), lines(await recording.log())


async def _live_once(source, recording, proxy, chance, *, loses):
    """One life of the recorder, in which the cluster may die, too."""
    async with recording.going(is_killed=chance.random() < 0.8):
        if chance.random() < 0.67:
            proxy.delay_seconds = chance.choice((0.0, 0.02, 0.1))
            proxy.cut, proxy.silent = chance.choice((0.0, 0.05)), chance.choice((0.0, 0.02))
            proxy.repeat = chance.choice((0.0, 0.3))
            proxy.lose = chance.choice((0.0, 0.1, 0.3)) if loses else 0.0
        await anyio.sleep(chance.uniform(0, 0.4))  # waits: is a life
        if chance.random() < 0.5:
            await source.restart()
            await anyio.sleep(chance.uniform(0, 0.4))  # waits: is a life
        if chance.random() < 0.2:
            proxy.close()
        # A recorder must find the cluster when it begins.
        proxy.calm()


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_recording_is_the_log_of_the_cluster_whoever_dies(tmp_path, seed):
    happened, recorded = await live(tmp_path, seed, loses=False)
    verdict = judge.compare(happened, recorded)
    assert not verdict.wrong
    assert not verdict.gaps
    assert not verdict.missing
    assert verdict.shown > 20
    chance = random.Random(seed)
    for alter in (_without_one, _with_one_twice, _with_two_exchanged, _with_one_changed):
        altered = judge.compare(happened, alter(recorded, chance))
        assert altered.wrong or altered.missing, alter


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(1, first=1_000))
async def test_changes_that_a_network_loses_are_in_a_gap_whoever_dies(tmp_path, seed):
    verdict = judge.compare(*await live(tmp_path, seed, loses=True))
    assert not verdict.wrong
    assert verdict.shown > 20


def _watched(recorded):
    return [number for number, line in enumerate(recorded) if b'"position":"watch"' in line]


def _renumbered(recorded):
    """The lines with revisions that have no holes: the alteration shows elsewhere."""
    trees = [msgspec.json.decode(line) for line in recorded]
    return [msgspec.json.encode({**tree, "revision": at}) for at, tree in enumerate(trees, 1)]


def _without_one(recorded, chance):
    # Without the last one, the recording would end earlier.
    gone = chance.choice(_watched(recorded)[:-1])
    return _renumbered(recorded[:gone] + recorded[gone + 1 :])


def _with_one_twice(recorded, chance):
    again = chance.choice(_watched(recorded))
    return _renumbered(recorded[: again + 1] + recorded[again:])


def _with_two_exchanged(recorded, chance):
    one, other = sorted(chance.sample(_watched(recorded), 2))
    trees = [msgspec.json.decode(line) for line in recorded]
    trees[one]["stamp"], trees[other]["stamp"] = trees[other]["stamp"], trees[one]["stamp"]
    trees[one]["payload"], trees[other]["payload"] = trees[other]["payload"], trees[one]["payload"]
    return [msgspec.json.encode(tree) for tree in trees]


def _with_one_changed(recorded, chance):
    at = chance.choice(_watched(recorded))
    tree = msgspec.json.decode(recorded[at])
    tree["payload"]["object"]["metadata"].setdefault("labels", {})["altered"] = "yes"
    return [*recorded[:at], msgspec.json.encode(tree), *recorded[at + 1 :]]
