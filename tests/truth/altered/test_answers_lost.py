"""Answers about recordings with a lost line, or with authors of other names, say what lines say.

With one line less, what is said is what the other lines show, or it is unsure. Who did something is
whom the line names. Rows come by day.
"""

import json
import random

import pytest

from tests import draws
from tests.adversary.catalogue import MIG, QUICKSTART, TAINTS, TPU
from tests.adversary.log import Log
from tests.adversary.running import recording
from tests.truth import answers, changes
from tests.truth.altered.lines import is_write, state
from tests.truth.altered.recorded import until
from tests.truth.altered.served import served
from tests.truth.facts import Facts

ABOUT_ALL = (answers.device_map, answers.capacity, answers.findings)
KINDS = ("pods", "resourceclaims", "resourceslices", "devicetaintrules", "deviceclasses", "nodes")
LAST = 330
"""The last line that a row may end with: the longer the log, the more work."""


def moment(name: str, pick: random.Random) -> Log:
    """A recording up to a drawn line."""
    last = min(LAST, len(recording(name).lines) - 1)
    return until(name, pick.randrange(last // 2, last))


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(3))
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS, TPU, MIG])
async def test_answers_are_those_of_the_lines_that_are_left_or_unsure(name, seed, tmp_path):
    pick = random.Random(f"{name} lost {seed}")
    whole = moment(name, pick)
    numbers = [
        number
        for number, line in enumerate(whole.lines)
        if is_write(line) and line["objectRef"]["resource"] in KINDS
    ]
    gone = pick.choice(numbers)
    log = Log([line for number, line in enumerate(whole.lines) if number != gone])
    facts, wrong = Facts(state(log.lines)), []
    async with served(log, tmp_path) as history:
        for compare in ABOUT_ALL:
            wrong += await compare(facts, history.ask)
        wrong += await changes.blasts(facts, history.propose, pick)
        certainty = (await history.ask("map"))["certainty"]
    assert wrong == [] or certainty == "unsure", (whole.lines[gone]["auditID"], wrong)


@draws.BY_DAY
@pytest.mark.parametrize("name", [QUICKSTART, TAINTS, TPU, MIG])
async def test_authors_of_other_names_are_those_of_all_answers(name, tmp_path):
    log = moment(name, random.Random(f"{name} authors")).copy()
    names = {line["user"]["username"] for line in log.lines if is_write(line)}
    others = {one: f"x{one[::-1]}" for one in names if not one.startswith("system:node:")}
    for line in log.lines:
        line["user"]["username"] = others.get(line["user"]["username"], line["user"]["username"])
    facts, wrong = Facts(state(log.lines)), []
    async with served(log, tmp_path) as history:
        for compare in ABOUT_ALL:
            wrong += await compare(facts, history.ask)
        rows = (await history.ask("timeline", limit=5000))["items"]
        said = json.dumps([rows, await history.ask("findings"), await history.ask("lanes")])
    assert wrong == []
    assert {row["actor"] for row in rows} & set(others.values())
    assert [one for one in others if f'"{one}"' in said or f"by {one}" in said] == []
