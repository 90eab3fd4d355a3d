"""The watch and brute force agree about recordings, as they are and altered by machine.

The model recomputes every rule at every revision from plain dictionaries, and shares no code with
the watch; see `tests/unit/analysis/invariants/model.py`.

Logs come by day: watch and model are compared in the same way on each.
"""

import random

import pytest

from app.analysis.verify.invariants import InvariantWatch, Switches
from app.bootstrap import process_settings, replays, stores
from app.domain.log import Revision
from tests import draws
from tests.conformance import tampering
from tests.shared_data import shared_path
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.test_against_model import told

NAMES = ("a-quickstart", "c-multihost-tpu", "e-taints", "e-taints-rules-ignored")

ALTERATIONS = (
    tampering.nothing,
    tampering.give_device_twice,
    tampering.reserve_for_a_ghost,
    tampering.reserve_for_a_stranger,
    tampering.change_a_spec,
    tampering.allocate_what_is_being_deleted,
    tampering.bind_again,
    tampering.remove_finalizer,
    tampering.drop_bodies,
)
PLAIN = [(name, tampering.nothing) for name in NAMES]
ALTERED = [("a-quickstart", alter) for alter in ALTERATIONS[1:]]
LACKING = frozenset(("pods", "resourceclaims"))
CASES = [
    *((case, frozenset()) for case in (*PLAIN, *ALTERED)),
    *((case, LACKING) for case in draws.by_turns([[*PLAIN, *ALTERED]])),
]


async def events_of(lines, path):
    store = stores.memory_store()
    name = await replays.load_files(
        store, process_settings.settings(profile="1.36"), (tampering.write(lines, path),)
    )
    info = await store.log.find_history(name)
    return await store.log.read(info.id, after=Revision(0), limit=100_000)


@draws.BY_DAY
@pytest.mark.parametrize(("case", "lacking"), CASES)
async def test_recordings(case, lacking, tmp_path):
    name, alter = case
    lines = tampering.read(shared_path("histories", name, "audit.jsonl.gz"))
    alter(lines, random.Random(name))
    events = await events_of(lines, tmp_path / "audit.jsonl")
    for switches in (Switches(), Switches(rules=False), Switches(rules_unseen=True)):
        watch = InvariantWatch(switches, lacking)
        for event in events:
            watch.note(event)
        assert told(watch) == model.expected(events, switches, lacking)
