"""Minimises each recording by each kind of predicate, and exports the results as tests.

A pair is a recording and a kind of predicate. Of the predicates of a pair, in a drawn order, the
first that the recording shows is minimised and judged as in `minimal_recordings`. The result then
becomes a pytest file. It must fail if redra's controllers still make the history break a rule, and
pass otherwise. A rule that the whole history does not break is a false alarm.
"""

import random
import runpy
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from app.bootstrap.handover import stories
from tests.command_line import redra
from tests.fuzz import minimal_recordings, minimals
from tests.fuzz.minimal_recordings import KINDS, RECORDINGS
from tests.simulation import one_minimal
from tests.simulation.own_runs import OwnRuns

PAIRS = [*product((*RECORDINGS, "maintenance"), KINDS)]


def check_exported(whole: Path, small: Path, file: Path) -> str:
    """Exports what is left of a history as a pytest file and runs it; says how it ends.

    Raises AssertionError.
    """
    code, out, error = redra("export", small, "--as", "pytest", "-o", file)
    assert code == 0, error
    names = runpy.run_path(str(file))
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    try:
        test(partial(stories.run, changes=None))
        outcome = "passes"
    except AssertionError:
        outcome = "fails"
    broken = one_minimal.violation("")
    rules = broken(OwnRuns(small).whole)
    assert (outcome == "fails") == bool(rules), (outcome, rules, out)
    if rules:
        sides = [OwnRuns(whole).whole, OwnRuns(whole, is_recorded=True).whole]
        assert rules <= frozenset[str]().union(*map(broken, sides)), (rules, "a false alarm")
    return outcome


def check(name: str, kind: str, chance: random.Random) -> str:
    """Minimises by the first predicate of a kind that a recording shows, and says the outcome."""
    with TemporaryDirectory() as folder:
        path = minimal_recordings.path_of(name, Path(folder))
        cases = minimal_recordings.shown_by(path).cases(kind)
        for number, case in enumerate(chance.sample(cases, len(cases))):
            small = Path(folder) / f"small-{number}.zip"
            said = minimals.check(case, path, small)
            if said != "not shown":
                test = check_exported(path, small, Path(folder) / "test_small.py")
                return f"{case.predicate.partition(' -c ')[0]}: {said}, its test {test}"
        return f"none of {len(cases)} is shown"


def run(*, cases: int, seed: int) -> list[str]:
    """Checks that many pairs; prints a line for each, and returns what came of each.

    Each seed begins with the pairs after those of the seed before.
    """
    outcomes = []
    for number in range(cases):
        name, kind = PAIRS[(seed * cases + number) % len(PAIRS)]
        chance = random.Random(f"minimal pairs {seed} {number}")
        said = check(name, kind, chance)
        outcomes.append(said)
        print(f"{seed} {number} {name}, {kind}: {said}", flush=True)
    return outcomes
