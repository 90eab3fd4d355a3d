"""Answers about altered recordings have the numbers and names of the altered lines.

What `why` of a waiting pod says is compared elsewhere; here, what is said of everything, and of
devices, pools, slices, rules, classes and nodes. Rows come by day.
"""

import json
import random

import pytest

from tests import draws
from tests.adversary.running import recording
from tests.truth import answers, changes
from tests.truth.altered.drawing import ROWS, altered
from tests.truth.altered.lines import state
from tests.truth.altered.recorded import until
from tests.truth.altered.served import served
from tests.truth.facts import Facts
from tests.truth.raw import Key

ABOUT_ALL = (answers.views, answers.device_map, answers.capacity, answers.findings)
ABOUT_ONE = ("resourceslices", "devicetaintrules", "deviceclasses", "nodes", "resourceclaims")
NAMING = ("map", "findings", "lanes", "capacity", "views/claims", "views/taints")
"""Answers in which nothing may be named that is no longer in any line."""

CASES = [(title, name) for title, names in ROWS.items() for name in names]


def objects(facts: Facts) -> list[Key]:
    """Every device, pool and object about which something is counted."""
    keys = [("device", "", "/".join(id)) for id in facts.devices]
    keys += [("pool", "", "/".join(place)) for place in facts.pools]
    return sorted([*keys, *(key for key in facts.state if key[0] in ABOUT_ONE)])


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(1))
@pytest.mark.parametrize(("title", "name"), CASES)
async def test_answers_have_the_numbers_of_the_altered_lines(title, name, seed, tmp_path):
    log, _, _, gone = altered(name, title, seed)
    facts = Facts(state(log.lines))
    pick = random.Random(f"answers {title} {name} {seed}")
    wrong: list[str] = []
    async with served(log, tmp_path) as history:
        for compare in ABOUT_ALL:
            wrong += await compare(facts, history.ask)
        wrong += await changes.blasts(facts, history.propose, pick)
        keys = objects(facts)
        for key in pick.sample(keys, min(12, len(keys))):
            wrong += await answers.why(facts, history.ask, key)
        for question in NAMING:
            said = json.dumps(await history.ask(question))
            wrong += [f"{question} names {one}" for one in gone if f'"{one}"' in said]
    assert wrong == []


@draws.BY_DAY
@pytest.mark.parametrize("title", ["without_rule", "freed", "raised", "with_node"])
async def test_answers_about_the_unaltered_recording_are_noticed(title, tmp_path):
    """The comparison with the altered lines is not blind to what the alteration changes."""
    name = ROWS[title][0]
    log, line, _, _ = altered(name, title, 0)
    facts = Facts(state(log.lines))
    wrong: list[str] = []
    unaltered = until(name, recording(name).lines.index(line))
    async with served(unaltered, tmp_path) as history:
        for compare in ABOUT_ALL:
            wrong += await compare(facts, history.ask)
    assert wrong
