"""Random clusters and claims, allocated by the product and by the literal allocator.

Worlds are invented (`tests.worlds.random_worlds`, each with one stressed feature; `trap_worlds`, in
which searches fail late) or combined from recorded scenarios (`recombined_worlds`). Some run on the
two smaller variants, some with one or two defects of upstream repaired, half with every shortcut of
the search active from the first failure. Each world is allocated with pruning, without pruning, and
by the literal allocator: the answers must be equal to the last letter, and so must the steps
without pruning. The checker, which shares no code with the search, must accept every allocation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random

from app.domain.allocation import (
    Allocation,
    AllocatorVariant,
    Answer,
    Quirks,
    checking,
    pruning,
)
from app.domain.allocation.quirks import NUMBERS
from tests.worlds import differences, random_worlds, recombined_worlds, trap_worlds

SHRINK_TRIES_MAX = 4_000
LITERAL_STEPS_MAX = 6_000
SOURCES = {"invented": random_worlds, "recombined": recombined_worlds, "traps": trap_worlds}
EAGER = {"TRACED_AFTER": 0, "MATCHING_AFTER": 0, "SPENT_AFTER": 0, "SPENT_EVERY": 1}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A world, and the options with which it is allocated."""

    seed: int
    kind: str
    world: dict
    variant: AllocatorVariant
    repaired: tuple[str, ...]
    eager: bool

    def difference(self) -> str | None:
        """The first difference; None when there is none."""
        with _shortcuts(eager=self.eager):
            return differences.difference(
                self.world,
                variant=self.variant,
                quirks=Quirks.named(*self.repaired),
                steps_max=LITERAL_STEPS_MAX,
            )


@dataclass(kw_only=True)
class Report:
    """The counts of compared worlds by kind, and of worlds too long for the literal search."""

    worlds: int = 0
    kinds: Counter = field(default_factory=Counter)
    outcomes: Counter = field(default_factory=Counter)
    too_long: int = 0

    def text(self) -> str:
        """The report as one line."""
        kinds = ", ".join(f"{name} {count}" for name, count in sorted(self.kinds.items()))
        seen = ", ".join(f"{name} {count}" for name, count in sorted(self.outcomes.items()))
        return (
            f"worlds: {self.worlds} compared, no difference ({kinds}; "
            f"answers per node: {seen}; {self.too_long} too long for the literal search)"
        )


class Difference(AssertionError):
    """The answers for a world differ; the text holds the minimised world."""


def case_of(seed: int) -> Case:
    """The case of a seed; the same seed gives the same case."""
    rng = Random(f"case-{seed}")
    kind, source = rng.choices(tuple(SOURCES.items()), weights=(2, 3, 6))[0]
    made = source.world(seed)
    variant = rng.choice(
        (*[AllocatorVariant.EXPERIMENTAL] * 6, AllocatorVariant.STABLE, AllocatorVariant.INCUBATING)
    )
    repaired: tuple[str, ...] = ()
    if rng.random() < 0.5:
        repaired = tuple(sorted(set(rng.choices(NUMBERS, k=rng.choice((1, 1, 1, 2))))))
    eager = rng.random() < 0.5
    return Case(seed=seed, kind=kind, world=made, variant=variant, repaired=repaired, eager=eager)


def compare(seeds: range) -> Report:
    """Compares the cases of the seeds. Raises Difference for the first that differs."""
    report = Report()
    for seed in seeds:
        case = case_of(seed)
        found = case.difference()
        if found == differences.TOO_LONG:
            report.too_long += 1
            continue
        if found is not None:
            raise Difference(_told(case, found))
        report.worlds += 1
        report.kinds[case.kind] += 1
        report.kinds[f"on {case.variant.value}"] += 1
        for name in case.repaired:
            report.kinds[f"{name} repaired"] += 1
        _count(case, report)
    return report


def run(cases: int, seed: int) -> None:
    """Compares `cases` cases from `seed` on; exits with 1 and the smallest input that differs."""
    try:
        print(compare(range(seed, seed + cases)).text())
    except Difference as found:
        raise SystemExit(str(found)) from found


def smaller(world: dict, differs: Callable[[dict], bool]) -> dict:
    """The world without the parts that the difference does not need."""
    tries = 0
    best = world
    shrunk = True
    while shrunk:
        shrunk = False
        for path in sorted(_removable(best["input"], ()), key=len):
            if tries >= SHRINK_TRIES_MAX:
                return best
            tries += 1
            made = _without(best, path)
            if made is not None and differs(made):
                best, shrunk = made, True
    return best


def _told(case: Case, found: str) -> str:
    def difference(world: dict) -> str | None:
        told = replace(case, world=world).difference()
        return None if told == differences.TOO_LONG else told

    def differs(world: dict) -> bool:
        try:
            return difference(world) is not None
        except Exception:  # the removed part may be required
            return False

    small = smaller(case.world, differs)
    line = json.dumps(small, separators=(",", ":"))
    how = f"variant {case.variant.value}, repaired {', '.join(case.repaired) or 'nothing'}"
    told = f"seed {case.seed} ({how}, eager {case.eager}): {found}"
    return f"{told}\nmade small: {difference(small)}\n{line}"


def _count(case: Case, report: Report) -> None:
    """Counts the outcomes, and lets the checker judge every allocation.

    Raises Difference for an allocation that breaks a rule without a known quirk as the reason.
    """

    def look(asked: checking.Case, answer: Answer, shown: dict) -> None:
        if not isinstance(answer, Allocation):
            return
        for found in checking.check(asked, shown["allocations"]):
            if not found.quirk:
                world = json.dumps(case.world, separators=(",", ":"))
                raise Difference(f"seed {case.seed}: the checker says {found}\n{world}")

    answer = differences.answers(
        case.world,
        prune=True,
        variant=case.variant,
        quirks=Quirks.named(*case.repaired),
        on_answer=look,
    )
    for node in differences.nodes_of(answer):
        scope = node.get("errorScope")
        report.outcomes[scope or ("allocated" if node["allocations"] is not None else "none")] += 1


@contextmanager
def _shortcuts(*, eager: bool) -> Iterator[None]:
    """With `eager`, makes the search use every shortcut from the first failure on."""
    before = {name: getattr(pruning, name) for name in EAGER}
    try:
        for name, value in EAGER.items() if eager else ():
            setattr(pruning, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(pruning, name, value)


def _removable(tree: object, path: tuple) -> Iterator[tuple]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield (*path, name)
            yield from _removable(value, (*path, name))
    elif isinstance(tree, list):
        for index, value in reversed(list(enumerate(tree))):
            yield (*path, index)
            yield from _removable(value, (*path, index))


def _without(world: dict, path: tuple) -> dict | None:
    made = deepcopy(world)
    place = made["input"]
    try:
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]
    except (KeyError, IndexError, TypeError):
        return None
    return made
