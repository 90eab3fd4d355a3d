"""`make conformance`: counts the reproduced vectors of the reference, by gate and theme.

Allocations are compared including order, apart from shareID; errors by presence, scope and text up
to what is cel-go's own. Exit code 1 when anything differs, 2 when the vectors are not there.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.domain import cel
from app.domain.allocation import Quirks, scenarios
from app.domain.devices.cel_selectors import CelCompiler
from tests.shared_data import shared_is_present, shared_root

LEFT_TO_CEL = ("CEL compile error:", "CEL runtime error:")
IGNORED = {"shareID", "allocateOneInvocations", "steps", "elapsedMs"}


@dataclass
class Score:
    """The number of agreeing cases and of all cases, by group."""

    good: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, name: str, is_good: bool, groups: Iterable[str]) -> None:
        for group in groups:
            self.all[group] += 1
            self.good[group] += is_good
        if not is_good:
            self.wrong.append(name)


def comparable(tree: Any) -> Any:
    if isinstance(tree, dict):
        kept = {key: comparable(value) for key, value in tree.items() if key not in IGNORED}
        if isinstance(kept.get("error"), str):
            for mark in LEFT_TO_CEL:
                head, found, _ = kept["error"].partition(mark)
                kept["error"] = head + found
        return kept
    if isinstance(tree, list):
        return [comparable(item) for item in tree]
    return tree


def lines(*path: str) -> Iterator[dict[str, Any]]:
    with (shared_root() / "conformance").joinpath(*path).open() as opened:
        for line in opened:
            yield json.loads(line)


def agrees(scenario: dict[str, Any], expected: dict[str, Any], quirks: Quirks) -> bool:
    settings = scenarios.ScenarioSettings(compiler=CelCompiler(detailed_errors=True), quirks=quirks)
    answer = comparable(scenarios.run(scenario, settings))
    return all(answer.get(key) == value for key, value in comparable(expected).items())


def allocator_scenarios() -> tuple[Score, Score]:
    themes, gates = Score(), Score()
    for scenario in lines("oracle", "allocator-random.jsonl"):
        is_good = agrees(scenario, scenario["expected"], Quirks())
        themes.add(scenario["name"], is_good, ["total", scenario["theme"]])
        gates.add(scenario["name"], is_good, scenario["input"]["features"] or ["no gate"])
    return themes, gates


def repaired_scenarios() -> Score:
    by_name = {row["name"]: row for row in lines("oracle", "allocator-random.jsonl")}
    score = Score()
    for row in lines("oracle", "allocator-quirk-repaired.jsonl"):
        quirks = Quirks.named(row["repaired"])
        is_good = agrees(by_name[row["name"]], row["expected"], quirks)
        score.add(f"{row['name']} without {row['repaired']}", is_good, ["total", row["repaired"]])
    return score


def cel_agrees(case: dict[str, Any]) -> bool:
    expected = case["expected"]
    try:
        program = cel.compile_expression(case["expression"], environment=cel.STORED)
    except cel.CompileError:
        return "compileError" in expected
    if "compileError" in expected or program.max_cost != expected.get("maxCost", 0):
        return False
    for device, wanted in zip(case["devices"], expected["devices"], strict=True):
        outcome = program.evaluate(
            cel.DeviceInput(
                driver=case["driver"],
                attributes=device.get("attributes") or {},
                capacity=device.get("capacity") or {},
                allow_multiple_allocations=device.get("allowMultipleAllocations", False),
            )
        )
        is_same = (
            outcome.match == wanted.get("match")
            and (outcome.error is None) == ("error" not in wanted)
            and outcome.cost == wanted.get("cost", outcome.cost)
        )
        if not is_same:
            return False
    return True


def cel_scenarios() -> Score:
    score = Score()
    for case in lines("oracle", "cel-random.jsonl"):
        kind = "compile errors" if "compileError" in case["expected"] else "evaluations"
        score.add(case["name"], cel_agrees(case), ["total", kind])
    return score


def show(title: str, score: Score) -> bool:
    print(f"\n{title}")
    width = max(len(group) for group in score.all)
    for group in sorted(score.all, key=lambda name: (name != "total", name)):
        print(f"  {group.ljust(width)}  {score.good[group]:4}/{score.all[group]}")
    for name in score.wrong[:10]:
        print(f"  differs: {name}")
    return not score.wrong


def main() -> int:
    if not shared_is_present("conformance"):
        print("the conformance vectors are not beside this checkout; set REDRA_CONFORMANCE")
        return 2
    themes, gates = allocator_scenarios()
    results = [
        show("Allocator, random scenarios by theme", themes),
        show("Allocator, random scenarios by gate in use", gates),
        show("Allocator, one defect of upstream repaired", repaired_scenarios()),
        show("CEL, random selectors", cel_scenarios()),
    ]
    print("\nUpstream's own tables follow as tests:")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
