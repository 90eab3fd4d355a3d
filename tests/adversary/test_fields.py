"""Recordings, worlds and scenes in which one field of one object has another value in every line.

The verdict of each value was fixed before any run, from the specification: see `fields`.
"""

import json
from pathlib import Path

import pytest

from tests import draws
from tests.adversary import values_of_claims, values_of_others
from tests.adversary.catalogue import (
    AGREES,
    FAILS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    PART,
    QUICKSTART,
    TAINTS,
    TPU,
    VERSIONS,
)
from tests.adversary.fields import FIELDS, altered
from tests.adversary.log import Log
from tests.adversary.running import Answer, ask, recording
from tests.conformance.fleet_recordings import record
from tests.conformance.handwritten import pools, scenes
from tests.run_folder import made_once

assert values_of_claims
assert values_of_others

SCENES = scenes.SCENES | pools.SCENES

FLEETS = {"fleet-33": 60, "fleet-34": 25, "fleet-36": 25, "fleet-58": 80, "fleet-81": 40}
"""Fleet worlds of these seeds, with so many acts."""

RECORDINGS = (VERSIONS, TPU, QUICKSTART, TAINTS, MIG)

PUBLISHED = ("ResourceSlice",)
"""Kinds of which a wrong value makes decisions wrong: the answer names a pod or a claim."""

COMMON = ("devices_are_made_ready", VERSIONS, "fleet-34", QUICKSTART)
GENERATED = ("shares_of_capacity", VERSIONS, "fleet-36", TPU)
SHARES = ("shares_of_capacity", "fleet-33")
AWAITED = ("shares_that_a_driver_names", "fleet-81")
EXTENDED = ("extended_resources", "fleet-34")
RULED = (VERSIONS, "fleet-33", TAINTS)
EVICTED = (TAINTS, "fleet-58")
TOLERATING = (TAINTS, "fleet-36")

WHERE = {
    "allocated_in_the_future": COMMON,
    "selector_names_its_node_twice": COMMON,
    "selector_has_another_operator": COMMON,
    "selector_is_by_label": COMMON,
    "configuration_has_another_source": (VERSIONS,),
    "configuration_is_for_all_requests": (VERSIONS,),
    "toleration_of_a_result_is_shorter": TOLERATING,
    "toleration_of_a_result_is_for_another_effect": TOLERATING,
    "reserved_for_another_resource": COMMON,
    "reserved_in_another_group": COMMON,
    "reserved_under_another_name": COMMON,
    "share_without_an_identifier": SHARES,
    "share_without_its_consumption": SHARES,
    "share_consumes_another_capacity_too": SHARES,
    "share_consumes_a_little_more": SHARES,
    "result_without_failure_conditions": AWAITED,
    "result_with_conditions_of_its_own": GENERATED,
    "result_with_another_failure_condition": AWAITED,
    "finalizer_of_another_name": COMMON,
    "device_reported_twice": AWAITED,
    "device_reported_with_a_share": ("device_is_late", "fleet-81"),
    "owner_does_not_control": GENERATED,
    "owner_of_another_kind": GENERATED,
    "owner_of_another_name": GENERATED,
    "claim_of_another_entry": GENERATED,
    "generated_from_another_prefix": GENERATED,
    "label_of_the_template_is_another": (VERSIONS,),
    "generated_claim_with_a_generation": GENERATED,
    "claim_ends_before_it_is_made": (VERSIONS, "fleet-36", QUICKSTART),
    "claim_made_before_its_pod": GENERATED,
    "data_of_a_driver": AWAITED,
    "claim_status_of_another_entry": GENERATED,
    "claim_status_twice": GENERATED,
    "extended_claim_of_another_container": EXTENDED,
    "extended_claim_of_another_resource": EXTENDED,
    "extended_claim_of_another_name": EXTENDED,
    "nominated_to_another_node": COMMON,
    "never_nominated": COMMON,
    "eviction_is_denied": EVICTED,
    "eviction_for_another_reason": EVICTED,
    "eviction_without_a_time": EVICTED,
    "priority_of_no_class": COMMON,
    "preempts_nobody_without_a_class": COMMON,
    "grace_period_below_zero": (VERSIONS, "fleet-36", TPU),
    "grace_period_unlike_the_end": ("fleet-81", QUICKSTART),
    "slice_without_a_generation": COMMON,
    "rule_without_a_generation": RULED,
    "rule_without_a_time": RULED,
    "taint_of_a_slice_without_a_time": ("alternative_that_tolerates", "fleet-81", TAINTS),
    "rule_reports_another_condition": RULED,
    "slice_of_an_absent_owner": ("fleet-34", "fleet-36"),
    "pool_with_one_more_slice": COMMON,
    "slice_for_all_nodes": ("shares_of_capacity", VERSIONS, "fleet-36"),
    "device_of_a_slice_for_another_node": (TPU,),
    "device_draws_on_no_counter": ("fleet-34", MIG),
    "class_for_another_extended_resource": EXTENDED,
    "slice_of_another_driver": COMMON,
    "slice_in_another_pool": COMMON,
    "devices_with_a_taint_that_nobody_tolerates": COMMON,
    "refused_for_another_reason": ("device_fails", VERSIONS, TAINTS),
    "refusal_of_a_later_generation": ("device_fails", VERSIONS, TAINTS),
    "pool_status_counts_more": ("fleet-58",),
    "attribute_that_nothing_reads": ("prioritized_lists", "fleet-34", QUICKSTART),
    "address_of_a_pod": (VERSIONS, "fleet-34", TPU),
    "longer_grace_of_a_pod_that_stays": ("devices_are_made_ready", VERSIONS),
}
"""Where each alteration has an occasion."""


def rows() -> list[tuple[str, str]]:
    """Each alteration at its first place, and with more draws at the others, too."""
    return [
        (name, place)
        for name, places in WHERE.items()
        for place in (places if draws.WHOLE else places[:1])
    ]


def _log(place: str) -> Log:
    if place in RECORDINGS:
        return recording(place)

    def make(path: Path) -> None:
        if place in FLEETS:
            record(path.parent / "fleet", int(place.removeprefix("fleet-")), FLEETS[place])
            (path.parent / "fleet" / "audit.jsonl").rename(path)
        else:
            SCENES[place]().write(path)

    lines = made_once(f"fields-{place}.jsonl", make).read_text().splitlines()
    return Log([json.loads(line) for line in lines])


def _ask(path: Path, place: str, mode: str) -> Answer:
    is_fleet = place in FLEETS
    switches = ("--profile", "1.37", "--gate", "DRAResourcePoolStatus=true") if is_fleet else ()
    return ask(path, place, mode, *switches)


@draws.BY_DAY
@pytest.mark.parametrize(("name", "place"), rows())
def test_another_value_in_every_line_gets_its_verdict(
    name: str, place: str, tmp_path: Path
) -> None:
    field = FIELDS[name]
    log, about = altered(_log(place), name)
    path = tmp_path / "audit.jsonl"
    path.write_text(log.text())
    answers = []
    for mode in ("verify", "decide"):
        answers.append(_ask(path, place, mode))
        is_named = field.kind in PUBLISHED or about in json.dumps(answers[-1].body)
        if field.verdict == FAILS and answers[-1].verdict == FAILS and is_named:
            return
    verdicts = {each.verdict for each in answers}
    assert verdicts <= {AGREES, PART, FAILS}
    expected = {
        FAILS: False,
        NOT_PASSED: verdicts != {AGREES},
        NOT_BLAMED: FAILS not in verdicts,
    }
    assert expected[field.verdict], verdicts


def test_each_value_has_its_places() -> None:
    assert WHERE.keys() == FIELDS.keys()
