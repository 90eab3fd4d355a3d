"""An honest fleet world accuses nobody, whichever way it takes into a history.

Rows come by day.
"""

import pytest

from app.bootstrap import process_settings, replays, stores
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import ways_in
from tests.conformance.fleet_recordings import record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

ACTS = 20


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("seed", "way"),
    [(30, "requests"), (31, "requests")],
)
async def test_way_into_a_history_accuses_nobody(seed, way, tmp_path):
    profile = record(tmp_path, seed, ACTS)
    folder = tmp_path / "way"
    folder.mkdir()
    ways_in.WAYS[way](tmp_path, folder)
    settings = process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (folder,))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    assert verified.outcome is not VerifyOutcome.FAILED
    assert (await replays.decide(store, settings, history, "", lambda *_: None)).explained
