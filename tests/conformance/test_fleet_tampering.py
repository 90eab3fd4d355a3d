"""Wrong decisions in recordings of fleet worlds are accused by name, by `verify` or by `decide`.

The verdict follows from each alteration and was fixed before any run. Fleets have partitions that
draw on counters, shares of a capacity, devices with binding conditions and extended resources.
Rows come in turn.
"""

import json
import random
import re
from dataclasses import replace

import pytest

from app.analysis.replay.classes import DifferenceClass
from app.analysis.replay.report import Agreement
from app.bootstrap import process_settings, replays, stores
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance import fleet_tampering, wrongs_of_fleets
from tests.conformance.fleet_recordings import record

pytestmark = pytest.mark.timeout(0)
"""Runs are bounded in number; how long they take is a matter of the machine."""

ACCUSING = (Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE)
AGAIN = tuple(
    draws.repeated(alter, seed, 40)
    for alter, seeds in (
        (wrongs_of_fleets.place_again_otherwise, (37, 38, 39, 40, 42, 43, 44, 45)),
        (wrongs_of_fleets.leave_untried_under_a_lease, (31, 32, 33, 34, 36, 37, 38, 40)),
        (wrongs_of_fleets.leave_attempts_out, (37, 40, 41, 42, 44, 45, 50)),
    )
    for seed in seeds
)
"""Wrongs that look most like what `decide` excuses: they are named in each such world."""

ROWS = (
    (fleet_tampering.give_held_device, 33, 60),
    (fleet_tampering.give_held_device_elsewhere, 37, 60),
    (fleet_tampering.give_next_device, 33, 60),
    (fleet_tampering.give_larger_partition, 33, 60),
    (fleet_tampering.give_less_capacity, 33, 60),
    (fleet_tampering.bind_elsewhere, 33, 60),
    (fleet_tampering.bind_to_cordoned_node, 33, 60),
    (fleet_tampering.bind_before_conditions, 81, 40),
    (fleet_tampering.allocate_tainted_device, 33, 60),
    (fleet_tampering.evict_despite_toleration, 33, 60),
    (fleet_tampering.evict_too_early, 58, 80),
    (fleet_tampering.leave_eviction_out, 33, 60),
    (fleet_tampering.keep_claim, 33, 60),
    (fleet_tampering.keep_claim, 52, 60),
    (fleet_tampering.collect_living_pod, 39, 60),
    (fleet_tampering.exceed_quota, 33, 60),
    (fleet_tampering.end_nomination, 10, 25),
    draws.repeated(fleet_tampering.keep_nomination, 12, 25),
    (wrongs_of_fleets.overdraw_counters, 36, 25),
    (wrongs_of_fleets.take_later_alternative, 34, 25),
    (wrongs_of_fleets.bind_before_allocation, 36, 25),
    (wrongs_of_fleets.take_devices_from_running_pod, 36, 25),
    (wrongs_of_fleets.generate_claim_twice, 36, 25),
    (wrongs_of_fleets.leave_deletion_out, 36, 25),
    (wrongs_of_fleets.leave_untried_at_the_end, 42, 25),
    (wrongs_of_fleets.leave_refusal_out, 23, 60),
    (wrongs_of_fleets.place_again_otherwise, 41, 40),
    (wrongs_of_fleets.leave_untried_under_a_lease, 30, 40),
    (wrongs_of_fleets.leave_attempts_out, 39, 40),
    (wrongs_of_fleets.leave_attempts_out, 47, 40),
    draws.repeated(wrongs_of_fleets.leave_attempts_out, 32, 60),
    *AGAIN,
    draws.repeated(wrongs_of_fleets.leave_deletion_out, 62, 60),
    draws.repeated(wrongs_of_fleets.overfill_share, 36, 25),
    draws.repeated(wrongs_of_fleets.reserve_for_too_many, 36, 25),
    draws.repeated(wrongs_of_fleets.allocate_from_older_generation, 36, 25),
    draws.repeated(wrongs_of_fleets.configure_otherwise, 36, 25),
    draws.repeated(wrongs_of_fleets.map_extended_resource_wrongly, 34, 25),
    draws.repeated(wrongs_of_fleets.make_no_claim, 36, 25),
    draws.repeated(wrongs_of_fleets.administer_without_label, 58, 80),
    draws.repeated(wrongs_of_fleets.count_wrongly, 58, 80),
)
"""Each alteration with the seed and the acts of a world that has an occasion for it."""


NAMED = re.compile(r"\b(?:pod|job|shared)-[a-z0-9-]+")
"""The pods and claims in the words about a change; others are about a node, a device, a quota."""


async def accused(path, profile):
    """The objects that `verify` accuses, or else those that `decide` does; None for nothing."""
    settings = process_settings.settings(
        profile=profile.version, gates=[f"{name}=true" for name in profile.gates]
    )
    settings = replace(settings, decide_runs_max=8, verify_processes=1)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    verified = await replays.verify(store, settings, history, "", lambda *_: None)
    if verified.outcome is VerifyOutcome.FAILED:
        broken = [each.objects for each in verified.violations if each.kind.is_failure]
        return f"{broken} {verified.to_json()['allocations']['differences']}"
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    if report.agreement not in ACCUSING:
        return None
    different = [each for each in report.differences if each.reason == DifferenceClass.UNEXPLAINED]
    return f"{[each.subject for each in different]} {report.violations}"


@draws.in_turn("wrongs")
@pytest.mark.parametrize(("alter", "seed", "acts"), ROWS)
async def test_wrong_decision_in_a_fleet_is_accused(alter, seed, acts, tmp_path):
    profile = record(tmp_path, seed, acts)
    path = tmp_path / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = alter(lines, random.Random(f"{seed}-{acts} {alter.__name__} 0"))
    assert changed, "the world has no occasion"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    objects = await accused(path, profile)
    assert objects is not None, changed
    names = NAMED.findall(changed)
    assert not names or any(name in objects for name in names), f"{changed}: {objects}"
