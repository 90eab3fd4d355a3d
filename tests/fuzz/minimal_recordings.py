"""Fuzzes `redra minimise` with recordings, and predicates drawn from what they show.

Each recording is read twice by `tests/simulation/own_runs.py`: as it was recorded, and decided
again. From the raw objects of both come the pods that wait or were evicted, the causes that their
attempts count, the broken rules and the classes of differences. As for drawn histories,
`tests/simulation/one_minimal.py` judges the result.
"""

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from app.analysis.verify.invariants.watch import InvariantWatch
from tests.fuzz import minimals
from tests.fuzz.minimals import SWITCHES, Case
from tests.shared_data import shared_path
from tests.simulation import one_minimal, own_runs
from tests.simulation.own_runs import OwnRun, OwnRuns

RECORDINGS = ("a-quickstart", "c-multihost-tpu", "e-taints", "j-api-versions")
KINDS = ("unschedulable", "because", "evicted", "violation", "differs", "difference")
NO_CLASSES = ("not comparable", "not emulated", "after end")
"""Classes of differences that tell nothing about what the recording shows."""


class Shown:
    """What a recording shows, as recorded and when it is decided again."""

    def __init__(self, path: Path) -> None:
        self.sides = [OwnRuns(path).whole, OwnRuns(path, is_recorded=True).whole]
        self._path = path

    def pods(self, sort: str, status: str) -> list[str]:
        """The pods that have had a condition."""
        return sorted({
            event.key.name
            for side in self.sides
            for event in side.events
            if next(one_minimal.conditions([event], "", sort, status), None) is not None
        })  # fmt: skip

    def waiting(self) -> list[tuple[str, str]]:
        """The pods that wait, each with a cause that its attempts count."""
        ways = {
            (pod, cause.partition(":")[0])
            for pod in self.pods("PodScheduled", "False")
            for cause in one_minimal.counted(self.sides[0], pod)
        }
        return sorted(ways)

    def rules(self) -> list[str]:
        """The broken rules."""
        return sorted({rule for side in self.sides for rule in _broken(side)})

    def classes(self) -> list[str]:
        """The classes of what a decide replay finds."""
        report = own_runs.decide(self.sides[1])
        return sorted({each.reason for each in report.differences} - {*NO_CLASSES})


def _broken(side: OwnRun) -> set[str]:
    watch = InvariantWatch(side.switches)
    watch.follow(side.events)
    return {each.rule for each in watch.violations()}


@cache
def shown_by(name: str) -> Shown:
    """What a recording shows, read once."""
    return Shown(shared_path("histories", name))


def predicate(chance: random.Random, name: str) -> Case | None:
    """A predicate that the recording may show; None where it shows nothing of the drawn kind."""
    shown, kind = shown_by(name), chance.choice(KINDS)
    match kind:
        case "unschedulable" if pods := shown.pods("PodScheduled", "False"):
            pod = chance.choice(pods)
            return Case(f"unschedulable {pod}", kind, pod)
        case "because" if pairs := shown.waiting():
            pod, cause = chance.choice(pairs)
            words = f"{pod} because {cause}"
            return Case(f"unschedulable {words}", "unschedulable", words)
        case "evicted" if pods := shown.pods("DisruptionTarget", "True"):
            pod = chance.choice(pods)
            return Case(f"evicted {pod}", kind, pod)
        case "violation" if rules := shown.rules():
            rule = chance.choice(rules)
            return Case(f"violation {rule}", kind, rule)
        case "differs":
            switch = chance.choice(SWITCHES)
            return Case(f"differs {switch}", kind, switch.removeprefix("profile="))
        case "difference" if classes := shown.classes():
            reason = chance.choice(classes)
            return Case(f"difference '{reason}'", kind, reason)
    return None


def run(*, cases: int, seed: int) -> list[str]:
    """Draws and checks; prints a line for each case, and returns what came of each."""
    outcomes = []
    for number in range(cases):
        chance = random.Random(f"minimal recordings {seed} {number}")
        name, case = "", None
        while case is None:
            name = chance.choice(RECORDINGS)
            case = predicate(chance, name)
        with TemporaryDirectory() as folder:
            path = shared_path("histories", name)
            said = minimals.check(case, path, Path(folder) / "small.zip")
        outcomes.append(said)
        print(f"{seed} {number} {name}, {case.predicate}: {said}", flush=True)
    return outcomes
