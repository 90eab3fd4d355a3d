"""The search for settings against an exhaustive one over worlds that a machine made up.

A made-up world says of each finding, for each set of settings switched back, whether it shows. The
model tries all sets; the search may try few of them.
"""

import itertools
import random
from collections.abc import Callable

import pytest

from app.analysis.rehearse import attribution
from app.analysis.rehearse.attribution import UNKNOWN, Attribution, Finding, SettingsSearch
from tests import draws
from tests.together import together

NAMES = ("quirk a", "quirk b", "rule c", "gate d", "gate e", "gate f", "profile")

Needs = dict[Finding, list[frozenset[str]]]
"""The sets each of which, as it was, is enough for a finding not to show; none: it always does."""


def searched(needs: Needs, names: tuple[str, ...], runs_max: int = 10_000) -> SettingsSearch:
    return driven(
        SettingsSearch(settings=names, findings=tuple(needs), runs_max=runs_max),
        lambda finding, back: shows(needs[finding], back),
    )[0]


def driven(
    search: SettingsSearch, shows_in: Callable[[Finding, frozenset[str]], bool]
) -> tuple[SettingsSearch, set[frozenset[str]]]:
    """The search after its end, and the settings of each trial that it made."""
    steps = search.steps()
    tried: set[frozenset[str]] = set()
    try:
        back = next(steps)
        while True:
            assert back not in tried, "a world is run once"
            assert back, "the world to be explained is known"
            tried.add(back)
            back = steps.send(frozenset(f for f in search.findings if shows_in(f, back)))
    except StopIteration:
        assert search.runs == len(tried)
        return search, tried


def shows(sets: list[frozenset[str]], back: frozenset[str]) -> bool:
    return not any(each <= back for each in sets)


def smallest(sets: list[frozenset[str]], names: tuple[str, ...]) -> int:
    """The size of the smallest set that is enough, by trying all."""
    for size in range(len(names) + 1):
        for back in itertools.combinations(names, size):
            if not shows(sets, frozenset(back)):
                return size
    raise AssertionError("all of them are enough")


@together(range(200 if draws.WHOLE else 30), str)
def test_search_finds_minimal_sets_and_every_single_setting(seed: int) -> None:
    drawn = random.Random(seed)
    names = NAMES[: drawn.randrange(1, len(NAMES) + 1)]
    needs: Needs = {
        ("pod", str(number)): [
            frozenset(drawn.sample(names, drawn.randrange(1, min(4, len(names)) + 1)))
            for _ in range(drawn.randrange(1, 3))
        ]
        for number in range(drawn.randrange(1, 6))
    }
    search = searched(needs, names)
    assert search.attributions.keys() == needs.keys()
    for finding, found in search.attributions.items():
        back = frozenset(found.settings)
        assert found.is_minimal
        assert not shows(needs[finding], back)
        for each in back:
            assert shows(needs[finding], back - {each}), "none can be left out"
        least = smallest(needs[finding], names)
        assert (least == 1) is (len(back) == 1)
        assert not found.is_smallest or len(back) == 1 or least > 1


@together(range(200 if draws.WHOLE else 40), str)
def test_set_is_called_smallest_only_after_each_setting_was_tried_alone(seed: int) -> None:
    """In these worlds more settings switched back may bring a finding back that fewer removed."""
    drawn = random.Random(seed)
    names = NAMES[: drawn.randrange(2, len(NAMES) + 1)]
    findings = tuple(("pod", str(number)) for number in range(drawn.randrange(1, 4)))
    likely = drawn.random()
    gone = {
        (finding, frozenset(back))
        for finding in findings
        for size in range(1, len(names) + 1)
        for back in itertools.combinations(names, size)
        if size == len(names) or drawn.random() < likely
    }
    search, tried = driven(
        SettingsSearch(settings=names, findings=findings, runs_max=10_000),
        lambda finding, back: (finding, back) not in gone,
    )
    for finding, found in search.attributions.items():
        assert (finding, frozenset(found.settings)) in gone
        if found.is_smallest and len(found.settings) > 1:
            assert all(
                {name} in tried and (finding, frozenset((name,))) not in gone for name in names
            )


@pytest.mark.parametrize("runs_max", range(8))
def test_search_claims_nothing_that_was_not_tried(runs_max: int) -> None:
    needs: Needs = {
        ("pod", "one"): [frozenset(("gate f",))],
        ("pod", "both"): [frozenset(("quirk a", "profile"))],
    }
    search = searched(needs, NAMES, runs_max)
    assert search.runs <= runs_max
    for finding, found in search.attributions.items():
        assert not shows(needs[finding], frozenset(found.settings))
        if found.is_minimal and len(found.settings) < len(NAMES):
            assert frozenset(found.settings) in needs[finding]
    if runs_max == 0:
        assert not search.attributions
    if runs_max == 1:
        some = Attribution(settings=NAMES, is_minimal=False, is_smallest=False)
        assert set(search.attributions.values()) == {some}


def test_the_only_setting_is_named_after_a_run_without_it() -> None:
    theirs: Finding = ("pod", "theirs")
    always: Finding = ("pod", "always")
    search = searched({theirs: [frozenset(("quirk r5",))], always: []}, ("quirk r5",))
    assert search.runs == 1
    assert search.attributions == {theirs: Attribution(settings=("quirk r5",)), always: UNKNOWN}


@pytest.mark.parametrize("count", range(len(NAMES) + 1))
def test_what_shows_whatever_is_switched_back_comes_from_no_setting(count: int) -> None:
    names = NAMES[:count]
    always: Finding = ("text", "always")
    search = searched({always: []}, names)
    assert search.attributions == {always: UNKNOWN}
    assert search.runs == min(count, 1), "one trial with all of them tells"
    assert not UNKNOWN.is_minimal
    assert not UNKNOWN.is_smallest


@pytest.mark.parametrize("seed", range(20))
def test_what_always_shows_is_kept_apart_from_the_rest(seed: int) -> None:
    drawn = random.Random(seed)
    needs: Needs = {
        ("pod", str(number)): [frozenset(drawn.sample(NAMES, 2))] if drawn.random() < 0.5 else []
        for number in range(8)
    }
    search = searched(needs, NAMES)
    for finding, sets in needs.items():
        expected = {frozenset(search.attributions[finding].settings)}
        assert expected == ({frozenset()} if not sets else set(sets))
        assert (search.attributions[finding] == UNKNOWN) is (not sets)


def test_nothing_is_run_where_nothing_is_found() -> None:
    assert searched({}, NAMES).runs == 0


def test_one_setting_among_many_takes_few_runs() -> None:
    names = tuple(f"gate {number}" for number in range(64))
    needs: Needs = {("pod", str(n)): [frozenset(("gate 41",))] for n in range(1_000)}
    search = searched(needs, names)
    assert set(search.attributions.values()) == {Attribution(settings=("gate 41",))}
    assert search.runs <= 12


@pytest.mark.parametrize("seed", range(20))
def test_settings_that_change_nothing_take_few_runs(seed: int) -> None:
    """As for a long recording: hundreds of findings, and four of ten settings behind them."""
    drawn = random.Random(seed)
    names = tuple(f"gate {number}" for number in range(10))
    active = drawn.sample(names, 4)
    needs: Needs = {
        ("pod", str(number)): [frozenset(drawn.sample(active, drawn.choice((1, 1, 2, 3))))]
        for number in range(200)
    }
    search = searched(needs, names)
    for finding, (wanted,) in needs.items():
        cause = search.attributions[finding]
        assert cause.settings == tuple(name for name in names if name in wanted)
        assert cause.is_minimal
    # All of them, up to two for each setting, and the sets of two and three of the four.
    assert search.runs <= 1 + 18 + 10
    assert not search.unattributed


@pytest.mark.parametrize("seed", range(20))
def test_settings_that_matter_only_beside_others_take_few_runs(seed: int) -> None:
    """As where a release refuses a rule: a switch about rules matters only where it is accepted."""
    drawn = random.Random(seed)
    names = tuple(f"gate {number}" for number in range(16))
    refusal, beside, own, *_ = drawn.sample(names, 4)
    needs: Needs = {("pod", str(n)): [frozenset((refusal, beside, own))] for n in range(50)}
    needs |= {("pod", "refused"): [frozenset((refusal,))], ("pod", "own"): [frozenset((own,))]}
    search = searched(needs, names)
    for finding, (wanted,) in needs.items():
        assert frozenset(search.attributions[finding].settings) == wanted
    assert search.runs <= 35


@pytest.mark.parametrize("runs_max", range(12))
def test_findings_without_a_minimal_set_are_counted(runs_max: int) -> None:
    needs: Needs = {
        ("pod", "one"): [frozenset(("gate f",))],
        ("pod", "both"): [frozenset(("quirk a", "profile"))],
        ("pod", "always"): [],
    }
    search = searched(needs, NAMES, runs_max)
    assert search.runs <= runs_max
    for finding, sets in needs.items():
        found = search.attributions.get(finding)
        is_known = found == UNKNOWN or (
            found is not None and found.is_minimal and frozenset(found.settings) in sets
        )
        assert (finding in search.unattributed) is not is_known


def test_set_is_not_called_minimal_where_the_finding_cannot_be_seen_with_fewer() -> None:
    finding: Finding = ("field", "of a claim whose pod moves with either setting alone")
    names = ("quirk a", "gate d")
    search = SettingsSearch(settings=names, findings=(finding,), runs_max=100)
    steps = search.steps()
    try:
        back = next(steps)
        while True:
            is_seen = len(back) == 2
            search.hidden[back] = frozenset() if is_seen else frozenset((finding,))
            back = steps.send(frozenset() if is_seen else frozenset((finding,)))
    except StopIteration:
        pass
    some = Attribution(settings=names, is_minimal=False, is_smallest=False)
    assert search.attributions == {finding: some}
    assert (search.unattributed, search.is_cut_short) == ([finding], False)


def test_what_differs_are_quirks_rules_gates_and_another_minor_release() -> None:
    before = {"profile": "1.36.2", "quirk c24": "on", "gate X": "true", "rule y": "off"}
    after = {"profile": "1.37", "quirk c24": "off", "gate X": "true", "rule y": "on"}
    assert attribution.differing(before, after) == ("quirk c24", "rule y", "profile")
    patched = {**before, "profile": "1.36", "quirk c24": "off"}
    assert attribution.differing(before, patched) == ("quirk c24",)
    assert attribution.mixed(before, after, ("rule y",)) == {**after, "rule y": "off"}
