"""The history of a recorded audit log does not depend on the order of its lines."""

import random

import pytest

from app.bootstrap import process_settings, replays, stores
from app.domain.log import EventType, Revision
from tests import draws
from tests.conformance import tampering
from tests.conformance import test_subtle_tampering as subtly

NAMES = tuple(subtly.PROFILES) if draws.WHOLE else ("a-quickstart", "e-taints", "j-api-versions")


def reverse(lines, draw):
    lines.reverse()


def shuffle(lines, draw):
    draw.shuffle(lines)


def turn(lines, draw):
    """The end first, as when files are given in another order."""
    place = draw.randrange(1, len(lines))
    lines[:] = lines[place:] + lines[:place]


async def story(lines, name, folder):
    """The content of the history without the positions of lines."""
    store = stores.memory_store()
    settings = process_settings.settings(profile=subtly.PROFILES[name])
    path = tampering.write(lines, folder / "audit.jsonl")
    await replays.load_files(store, settings, (path,))
    info = await stores.find_history(store, replays.REPLAYED)
    events = await store.log.read(info.id, after=Revision(0), limit=100_000)
    return [
        (
            event.type,
            event.key,
            event.uid,
            event.stamp.time,
            event.stamp.verb,
            event.stamp.actor,
            event.stamp.request_id,
            event.stamp.origin.losses,
            bytes(event.body),
        )
        for event in events
        if event.type not in (EventType.HISTORY_IMPORTED,)
    ]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "disorder"),
    draws.by_turns([(name, disorder) for name in NAMES] for disorder in (reverse, shuffle, turn)),
)
@pytest.mark.parametrize("seed", draws.seeds(1))
async def test_any_order_of_lines_is_the_same_history(name, disorder, seed, tmp_path):
    lines = subtly.read(name)
    straight = await story(lines, name, tmp_path)
    disorder(lines, random.Random(f"{name} {seed}"))
    assert await story(lines, name, tmp_path) == straight
    assert len(straight) > 50
