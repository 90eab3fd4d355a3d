"""Verdicts about altered recordings: what verify and decide say of lines that were changed."""

import json
import random

from app.bootstrap import process_settings, replays, stores
from tests.conformance import tampering
from tests.conformance import test_subtle_tampering as subtly


async def judged(name, alter, folder):
    """The reports of verify and decide on an altered recording, and what the alteration did."""
    lines = subtly.read(name)
    told = alter(lines, random.Random(f"{name} 0"))
    return *await judged_lines(name, lines, folder), told


async def judged_lines(name, lines, folder, judges=(replays.verify, replays.decide)):
    """The reports of the judges on one import of the lines, which they only read."""
    path = tampering.write(lines, folder / "audit.jsonl")
    settings = process_settings.settings(profile=subtly.PROFILES[name], verify_processes=1)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    return [await judge(store, settings, history, "", subtly.silent) for judge in judges]


def names_one(report, told):
    """Whether a report names one of the objects that the alteration is about."""
    text = json.dumps(report.to_json())
    return any(name in text for name in told.about)
