"""Drawn worlds with many faults: redra's findings are those of an own model, no more or fewer.

A world that fails is named by its number.
"""

import random

import pytest

from app.analysis.lint.linting import RULES
from tests import draws
from tests.unit.analysis.lint import drawn_worlds
from tests.unit.analysis.lint.own_model import MODELLED, Model, Said, anchor, text_of
from tests.unit.analysis.lint.test_planted_defects import lint

WORLDS = 60


def both(number: int) -> tuple[set[Said], set[Said]]:
    """What redra and the model say of a drawn world."""
    trees = drawn_worlds.world(random.Random(f"world {number}"))
    by_text = {text_of(tree): tree for tree in trees}
    findings = lint(trees).findings
    refused = [each for each in findings if each.rule.id == "object-invalid"]
    assert refused == [], number
    ours = {
        (
            each.rule.id,
            anchor(each.rule.id, by_text[each.place.object], each.place.field, each.message),
        )
        for each in findings
        if each.rule.id in MODELLED
    }
    return ours, Model(trees).findings()


@draws.in_turn("rows of worlds")
@pytest.mark.parametrize("part", draws.seeds(2))
def test_findings_of_drawn_worlds_are_those_of_the_model(part: int) -> None:
    met: set[str] = set()
    for number in range(part * WORLDS, (part + 1) * WORLDS):
        ours, theirs = both(number)
        assert ours == theirs, f"world {number}"
        met |= {rule for rule, _ in theirs}
    assert len(met) >= len(MODELLED) * 3 // 4


def test_model_knows_rules_that_there_are() -> None:
    assert set(RULES) >= MODELLED
