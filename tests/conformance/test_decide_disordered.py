"""Recorded audit logs told as servers have them: what is decided is the same to the letter."""

import random

import pytest

from app.bootstrap import choices, replays, stores
from tests.conformance import disordered_logs as logs
from tests.shared_data import shared_path

NAMES = ("a-quickstart", "e-taints", "c-multihost-tpu")


async def decide(path):
    settings = choices.settings(profile="1.36")
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    found = await replays.decide(store, settings, history, "", lambda *_: None)
    return found.to_json()


def judged(report):
    """What does not depend on the number of lines."""
    differences = [{**found, "revision": 0} for found in report["differences"]]
    return report["aspects"], differences, report["inputs"]


async def check(name, folder, lines, **more):
    straight = await decide(shared_path("histories", name, "audit.jsonl.gz"))
    found = await decide(logs.write(lines, folder, **more))
    assert judged(found) == judged(straight)
    assert found["explained"]
    gaps = [why for why in found["notComparable"] if "gap" in why or "gone here" in why]
    assert gaps == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
async def test_order_of_lines_does_not_matter(name, seed, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    await check(name, tmp_path, logs.shuffled(lines, random.Random(seed)))


@pytest.mark.parametrize("name", NAMES)
async def test_rotated_files_are_one_log(name, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    await check(name, tmp_path, lines, rotated=True)


@pytest.mark.parametrize("name", NAMES)
async def test_noise_stages_and_a_line_that_is_cut_off_change_nothing(name, tmp_path):
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    lines = list(logs.noisy(list(logs.staged(lines)), random.Random(3)))
    await check(name, tmp_path, lines, cut_off=True)


@pytest.mark.parametrize("name", NAMES)
async def test_all_of_it_together(name, tmp_path):
    chance = random.Random(4)
    lines = logs.read(shared_path("histories", name, "audit.jsonl.gz"))
    lines = list(logs.noisy(list(logs.staged(lines)), chance))
    await check(name, tmp_path, logs.shuffled(lines, chance), rotated=True, cut_off=True)
