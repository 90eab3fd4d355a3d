"""Each rule is broken by machine at a drawn place: the linter names that rule there, and no other.

A clean garden is linted before and after; what differs is the finding. Of changes that look alike
and break no rule nothing is said. `planting` and `twins` share no code with the rules.
"""

import random
from collections.abc import Iterable
from functools import cache

import pytest

from app.analysis.lint import linting, revisions
from app.analysis.lint.findings import LintFinding, LintSeverity
from app.analysis.lint.linting import RULES, LintReport
from app.analysis.lint.subjects import LintedObject, Subjects
from app.analysis.views import features_of
from app.bootstrap.rules import rules_for
from app.domain.objects import profile as profiles
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from tests import draws
from tests.unit.analysis.lint import clean
from tests.unit.analysis.lint.further_twins import TWINS
from tests.unit.analysis.lint.planting import PLANTERS, Garden, NothingToPlant, Planter

SEEDS = range(4)
TRIES = 40
RULES_OF_API = rules_for(profiles.from_settings({"profile": "1.37"}))


def lint(trees: Iterable[JsonObject]) -> LintReport:
    written = [LintedObject(kind=tree["kind"], tree=tree) for tree in trees]
    subjects, hidden, refusals = linting.admit(written, RULES_OF_API, Instant(0))
    return linting.lint(
        Subjects.of(subjects, hidden), features=features_of(RULES_OF_API.profile), before=refusals
    )


def places(findings: Iterable[LintFinding]) -> set[tuple[str, str, str]]:
    return {(each.rule.id, each.place.object, each.place.field) for each in findings}


def test_every_rule_about_objects_is_planted() -> None:
    of_time = {rule.id for rule in revisions.RULES}
    assert set(PLANTERS) == set(RULES) - of_time


@pytest.mark.parametrize("profile", clean.PROFILES)
def test_clean_objects_have_notes_at_most(profile: str) -> None:
    for seed in SEEDS:
        report = lint(clean.objects(random.Random(seed), profile))
        grave = [each for each in report.findings if each.severity is not LintSeverity.NOTE]
        assert grave == [], seed


@draws.in_turn("rows of defects")
@pytest.mark.parametrize("rule", sorted(PLANTERS))
def test_planted_defect_is_the_only_new_finding(rule: str) -> None:
    planted = 0
    for seed in SEEDS:
        garden, before = grow(rule, PLANTERS[rule], seed)
        if garden is None:
            continue
        planted += 1
        after = places(lint(garden.trees).findings)
        expected = {(rule, *place) for place in garden.planted} | {*garden.implied}
        assert after - before == expected, f"seed {seed}"
    assert planted >= len(SEEDS) // 2


def test_each_planted_defect_has_a_harmless_twin() -> None:
    assert set(TWINS) == set(PLANTERS)


@draws.BY_DAY
@pytest.mark.parametrize("rule", sorted(TWINS))
def test_harmless_twin_of_a_defect_is_not_found(rule: str) -> None:
    planted = 0
    for seed in SEEDS:
        garden, before = grow(f"twin of {rule}", TWINS[rule], seed)
        if garden is None:
            continue
        planted += 1
        new = places(lint(garden.trees).findings) - before
        assert new == {*garden.implied}, f"seed {seed}"
        assert rule not in {name for name, *_ in new}
    assert planted >= len(SEEDS) // 2


def grow(name: str, planter: Planter, seed: int) -> tuple[Garden | None, set[tuple[str, str, str]]]:
    """A garden with the defect in it, and the findings of the garden without."""
    rng = random.Random(f"{name} {seed}")
    for _ in range(TRIES):
        trees, before = cleared(rng.choice(clean.PROFILES), rng.choice(SEEDS))
        garden = Garden(rng=rng, trees=json_tree.copy(trees))
        try:
            planter(garden)
        except NothingToPlant:
            continue
        return garden, before
    return None, set()


@cache
def cleared(profile: str, seed: int) -> tuple[list[JsonObject], set[tuple[str, str, str]]]:
    """Clean objects, and what the linter notes about them."""
    trees = clean.objects(random.Random(seed), profile)
    return trees, places(lint(trees).findings)
