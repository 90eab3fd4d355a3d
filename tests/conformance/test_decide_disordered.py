"""Recorded audit logs in the order that servers write: the decisions are literally the same.

Recordings come by day.
"""

import random

import pytest

from app.analysis.replay.recording import WITHOUT_EFFECT
from app.bootstrap import process_settings, replays, stores
from tests import draws
from tests.conformance import disordered_logs as logs
from tests.kept import Kept
from tests.shared_data import shared_path

pytestmark = pytest.mark.timeout(0)
"""How long a replay takes is a matter of the machine."""

NAMES = ("a-quickstart", "e-taints", "c-multihost-tpu")


async def decide(path):
    settings = process_settings.settings(profile="1.36")
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    found = await replays.decide(store, settings, history, "", lambda *_: None)
    return found.to_json()


def judged(report):
    """What does not depend on the number of lines."""
    differences = [{**found, "revision": 0} for found in report["differences"]]
    inputs = {name: count for name, count in report["inputs"].items() if name != WITHOUT_EFFECT}
    return report["aspects"], differences, inputs


_STRAIGHT = Kept()


async def straight_of(name):
    if name not in _STRAIGHT:
        _STRAIGHT[name] = await decide(shared_path("histories", name, "audit.jsonl.gz"))
    return _STRAIGHT[name]


async def check(name, folder, lines, **more):
    straight = await straight_of(name)
    found = await decide(logs.write(lines, folder, **more))
    assert judged(found) == judged(straight)
    assert found["explained"]
    assert found["notComparable"] == {}
    assert not any("gone here" in why for why in found["notDone"])


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.part(NAMES, len(NAMES)))
async def test_order_of_lines_does_not_matter(name, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    await check(name, tmp_path, logs.shuffled(lines, random.Random(1)))


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.part(NAMES, len(NAMES)))
async def test_rotated_files_are_one_log(name, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    await check(name, tmp_path, lines, rotated=True)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.part(NAMES, len(NAMES)))
async def test_noise_stages_and_a_line_that_is_cut_off_change_nothing(name, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    lines = list(logs.noisy(list(logs.staged(lines)), random.Random(3)))
    await check(name, tmp_path, lines, cut_off=True)


@draws.in_turn("ways")
@pytest.mark.parametrize("name", NAMES)
async def test_all_of_it_together(name, tmp_path):
    chance = random.Random(4)
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    lines = list(logs.noisy(list(logs.staged(lines)), chance))
    await check(name, tmp_path, logs.shuffled(lines, chance), rotated=True, cut_off=True)
