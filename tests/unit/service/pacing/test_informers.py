"""Whatever is done to a replay, who lists and watches it ends with what it shows.

Informers list, watch from there, and list anew when they are told 410. The worlds are drawn from a
seed: recordings of random writes, clients that write in between, pauses, speeds and moves.
"""

import random

import pytest

from app.domain.errors import Expired, Rejected
from app.domain.log import EventType, Revision
from app.domain.values.json_tree import JsonObject
from app.service.pacing.player import Player
from app.service.pacing.script import StopRule
from app.service.runtime import HistoryRuntime
from tests import draws
from tests.unit.service.pacing.world import World, create, delete, patch, world

NAMES = ("a", "b", "c", "d")


class Informer:
    """Keeps what it is told, as client-go's reflector does. Checks that nothing comes twice."""

    def __init__(self, runtime: HistoryRuntime) -> None:
        self._runtime = runtime
        self.lists = 0
        self.known: dict[str, JsonObject] = {}
        self._list()

    def _list(self) -> None:
        self.lists += 1
        views = self._runtime.views
        self.known = {
            event.key.name: event.object for event in views.objects.events("", "configmaps")
        }
        self._last = views.revision
        self._watch()

    def _watch(self) -> None:
        self._followed = self._runtime.subscribe(
            after=Revision(self._last), group="", resource="configmaps"
        )

    async def follow(self, *, anew: bool) -> None:
        """Take what there is; `anew` watches again from the last revision, as after a timeout."""
        if anew:
            self._followed.close()
            self._watch()
        try:
            while events := await self._followed.catch_up() or self._followed.take():
                for event in events:
                    assert event.revision > self._last
                    self._last = event.revision
                    self._fold(event)
        except Expired:
            self._followed.close()
            self._list()

    def _fold(self, event) -> None:
        if event.type is EventType.OBJECT_DELETED:
            assert event.key.name in self.known
            del self.known[event.key.name]
            return
        assert (event.key.name in self.known) == (event.type is EventType.OBJECT_UPDATED)
        self.known[event.key.name] = event.object


def recording(draw: random.Random) -> list:
    """Random writes that a server accepts, some seconds apart."""
    steps, there, seconds = [], set(), 0.0
    for number in range(draw.randrange(5, 40)):
        seconds += draw.choice((0, 0.001, 0.5, 1, 7))
        name = draw.choice(NAMES)
        if name not in there:
            there.add(name)
            steps.append((seconds, create(name, {"n": str(number)})))
        elif draw.random() < 0.3:
            there.remove(name)
            steps.append((seconds, delete(name)))
        else:
            steps.append((seconds, patch(name, {"data": {draw.choice("nxy"): str(number)}})))
    return steps


async def do_something(draw: random.Random, here: World, player: Player) -> bool:
    """One thing that a client or somebody at the keys does; True for a client's write."""
    last = player.span.end.revision
    match draw.randrange(9):
        case 0 | 1 | 2:
            await here.wait(draw.choice((0.01, 1, 5)))
        case 3:
            await player.set_pace(speed=draw.choice((0.5, 1.0, 10.0, float("inf"))))
        case 4:
            await player.set_pace(paused=draw.random() < 0.5)
        case 5:
            first = player.span.begin.revision
            await player.seek(str(draw.randrange(first, last + 1)))
        case 6:
            await player.step(StopRule())
        case _:
            name = draw.choice((*NAMES, "mine"))
            command = draw.choice(
                (
                    create(name, {"of": "client"}),
                    patch(name, {"data": {draw.choice("xyz"): "client"}}),
                    patch(name, {"metadata": {"finalizers": draw.choice((["x.io/f"], None))}}),
                    delete(name),
                )
            )
            try:
                await here.write(player, command)
            except Rejected:
                return False
            return True
    return False


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
async def test_informers_end_with_what_is_shown(seed: int) -> None:
    draw = random.Random(seed)
    async with world() as here:
        parent = await here.record(*recording(draw))
        player = await here.play(
            parent, speed=draw.choice((0, 1, 100)), shifts=draw.random() < 0.3, batch_max=3
        )
        runtime = await here.runtime(player.info)
        informers = [Informer(runtime) for _ in range(2)]
        for _ in range(60):
            await do_something(draw, here, player)
            for informer in informers:
                if draw.random() < 0.4:
                    await informer.follow(anew=draw.random() < 0.3)
        for informer in informers:
            await informer.follow(anew=False)
            assert informer.known == await here.trees(player.info), seed
        times = [event.stamp.time for event in await here.events(player.info)]
        assert times == sorted(times), seed


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
async def test_replay_that_nobody_writes_to_ends_as_it_was_recorded(seed: int) -> None:
    draw = random.Random(seed)
    async with world() as here:
        parent = await here.record(*recording(draw))
        player = await here.play(parent, speed=draw.choice((0, 1, 100)), batch_max=3)
        runtime = await here.runtime(player.info)
        informer = Informer(runtime)
        for _ in range(20):
            if draw.random() < 0.5:
                await here.wait(draw.choice((0.01, 1, 5)))
            else:
                first, last = player.span.begin.revision, player.span.end.revision
                await player.seek(str(draw.randrange(first, last + 1)))
            assert await here.is_as_recorded(player, player.revision), seed
            await informer.follow(anew=draw.random() < 0.3)
        await player.seek(str(player.span.end.revision))
        await informer.follow(anew=False)
        assert await here.is_as_recorded(player), seed
        assert informer.known == await here.trees(player.info), seed


@draws.BY_DAY
@pytest.mark.parametrize("seed", range(12))
async def test_every_recorded_event_is_shown_or_told_as_a_conflict(seed: int) -> None:
    draw = random.Random(seed)
    async with world() as here:
        parent = await here.record(*recording(draw))
        player = await here.play(parent, speed=0, batch_max=3)
        touched: set[str] = set()
        for _ in range(40):
            name = draw.choice(NAMES)
            command = draw.choice(
                (create(name), patch(name, {"data": {"x": "client"}}), delete(name))
            )
            try:
                await here.write(player, command)
                touched.add(name)
            except Rejected:
                pass
            await player.step(StopRule())
        await player.seek(str(player.span.end.revision))
        replayed: set[int] = set()
        for event in await here.events(player.info):
            if event.stamp.origin is not None:
                replayed.add(event.stamp.origin.replayed)
        after = player.span.begin.revision
        for event in await here.log.read(parent.id, after=after, limit=1_000):
            if event.revision not in replayed:
                # It brought nothing: the object was so already, or is gone here too.
                assert event.key.name in touched, seed
                assert await _is_so_already(here, player, event), seed


async def _is_so_already(here: World, player: Player, recorded) -> bool:
    """Whether a deletion, or a state that clients had made, is what was shown at that moment."""
    if recorded.type is EventType.OBJECT_DELETED:
        return True
    shown = [
        event
        for event in await here.events(player.info)
        if event.key == recorded.key and event.is_about_object
    ]
    return any(event.object.get("data") == recorded.object.get("data") for event in shown)
