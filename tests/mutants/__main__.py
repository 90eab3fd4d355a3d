"""Mutants of the core, by area: `python -m tests.mutants eviction --mutants 200 --seed 1`.

The seed draws the mutants, so that a run fits the available time; without `--mutants` all of them
run. The score is the share of killed mutants (a timeout kills), with the interval of 95 % (Wilson)
that a sample of this size leaves open; survivors are printed as differences, for review one by one.
`--part 2/4` runs a quarter of the sample, `--only NAME …` some mutants again, and `--tests PATH …`
judges by other tests than those of the area, such as its quick ones first.
"""

import argparse
import hashlib
import os
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests import draws
from tests.mutants import making
from tests.mutants.areas import AREAS, Area
from tests.mutants.intervals import interval
from tests.mutants.judging import (
    KILLED,
    SURVIVED,
    TIMED_OUT,
    UNREACHED,
    UNUSABLE,
    EachDay,
    Judge,
    Verdict,
)
from tests.shared_data import REPOSITORY


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("area", choices=sorted(AREAS))
    parser.add_argument("--mutants", type=int, default=0, help="how many; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="a part of the sample, such as 2/4")
    parser.add_argument("--only", nargs="*", default=[], help="names of mutants to run instead")
    parser.add_argument("--tests", nargs="*", default=[], help="judge by these tests instead")
    parser.add_argument("--seconds", type=float, default=60, help="of tests for each mutant")
    parser.add_argument(
        "--each-day", action="store_true", help="judge by those tests alone that every run has"
    )
    parser.add_argument("--all", action="store_true", help="print killed mutants, too")
    chosen = parser.parse_args(arguments)
    os.chdir(REPOSITORY)
    area = AREAS[chosen.area]
    if chosen.tests:
        area = replace(area, tests=tuple(chosen.tests))
    sources = [
        path.relative_to(REPOSITORY)
        for pattern in area.sources
        for path in sorted(REPOSITORY.glob(pattern))
    ]
    every = [mutant for path in sources for mutant in making.mutants(REPOSITORY, path)]
    by_name = {mutant.name: mutant for mutant in every}
    drawn = sorted(by_name)
    if 0 < chosen.mutants < len(drawn):
        drawn = random.Random(chosen.seed).sample(drawn, chosen.mutants)
    part, parts = map(int, chosen.part.split("/"))
    drawn = chosen.only or drawn[part - 1 :: parts]
    verdicts: list[Verdict] = []

    def tell(verdict: Verdict) -> None:
        verdicts.append(verdict)
        if chosen.all or verdict.outcome not in (KILLED, TIMED_OUT):
            _print(verdict)

    judge = Judge(
        REPOSITORY,
        sources,
        [by_name[name] for name in drawn],
        _kept(chosen.area, area, chosen.each_day),
        chosen.seconds,
        tell,
    )
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=0"]
    plugins: list[object] = [judge, EachDay()] if chosen.each_day else [judge]
    code = pytest.main([*options, *area.tests], plugins=plugins)
    if len(verdicts) < len(drawn):
        print(f"the tests ended with {code} before all mutants were tried")
        return 2
    if judge.survey.failed:
        print("these tests fail without any change and judged nothing:", *judge.survey.failed)
    print(summary([verdict.outcome for verdict in verdicts], len(every)))
    return 0


def _kept(name: str, area: Area, each_day: bool) -> Path:
    """The file of what the tests of an area reach, as long as no code changes."""
    digest = hashlib.sha256(repr((area, each_day, draws.DAY)).encode())
    for folder in ("app", "projections", "tests"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return REPOSITORY / ".cache" / "mutants" / f"{name}-{digest.hexdigest()[:16]}.json"


def _print(verdict: Verdict) -> None:
    mutant = verdict.mutant
    left_out = f" ({verdict.left_out} dear tests left out)" if verdict.left_out else ""
    print(f"\n{verdict.outcome}{left_out}: {mutant.name}, line {mutant.lines.start}", flush=True)
    print("\n".join(f"    {line}" for line in mutant.difference()), flush=True)
    if verdict.test:
        print(f"    by {verdict.test}", flush=True)


def summary(outcomes: list[str], made: int) -> str:
    """The score of a sample of mutants, with its interval of 95 %."""
    counts = Counter(outcomes)
    tried = len(outcomes) - counts[UNUSABLE]
    killed = counts[KILLED] + counts[TIMED_OUT]
    low, high = interval(killed, tried)
    return (
        f"\n{killed} of {tried} killed ({100 * killed / max(tried, 1):.0f} %, 95 % interval "
        f"{100 * low:.0f} to {100 * high:.0f} %), {counts[TIMED_OUT]} of them by a timeout; "
        f"{counts[SURVIVED]} survived, {counts[UNREACHED]} reached by no test, "
        f"{counts[UNUSABLE]} not applicable; {made} mutants in all"
    )


if __name__ == "__main__":
    sys.exit(main())
