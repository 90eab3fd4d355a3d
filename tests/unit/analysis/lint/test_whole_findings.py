"""What the linter says of each planted defect, as a line and as SARIF, kept as text."""

import json
from pathlib import Path

import pytest

from app.analysis.lint import linting, texts
from app.analysis.lint.linting import RULES, LintReport
from tests.unit.analysis import kept_texts
from tests.unit.analysis.lint import planting
from tests.unit.analysis.lint.test_planted_defects import grow, lint

FILE = Path(__file__).with_name("whole_findings.txt")
TOOL = "the rules in SARIF"
NAMES = [*sorted(planting.PLANTERS), TOOL]
SEED = 1


@pytest.mark.parametrize("rule", sorted(planting.PLANTERS))
def test_finding_reads_as_it_was_read(rule: str) -> None:
    garden, _ = grow(rule, planting.PLANTERS[rule], SEED)
    assert garden is not None
    report = lint(garden.trees)
    run = texts.sarif(report)["runs"][0]
    shown = [
        f"{finding.severity.value}: {finding.place}: {finding.message}\n"
        + "\n".join(
            f"    {path}: {json.dumps(value, ensure_ascii=False)}"
            for path, value in result.items()
            if path not in ("level", "ruleIndex")
        )
        for finding, result in zip(report.findings, run["results"], strict=True)
        if finding.rule.id == rule
    ]
    kept_texts.check(FILE, rule, "\n".join(shown), NAMES)


def test_rules_are_told_to_who_reads_sarif_as_they_were_read() -> None:
    report = LintReport(objects=0, findings=(), not_checked=("what is not there",))
    whole = texts.sarif(report)
    rules = whole["runs"][0]["tool"]["driver"].pop("rules")
    assert [each["id"] for each in rules] == list(RULES)
    text = "\n".join(json.dumps(each, ensure_ascii=False) for each in (whole, *rules))
    kept_texts.check(FILE, TOOL, text, NAMES)


@pytest.mark.parametrize(
    ("count", "shown", "more"),
    [
        (1, 1, []),
        (5, 5, []),
        (6, 5, ["  … 1 more; -o json has them"]),
        (12, 5, ["  … 7 more; -o json has them"]),
    ],
)
def test_first_findings_of_a_rule_are_listed_and_the_others_counted(count, shown, more) -> None:
    garden, _ = grow("class-missing", planting.PLANTERS["class-missing"], SEED)
    assert garden is not None
    (finding,) = (each for each in lint(garden.trees).findings if each.rule.id == "class-missing")
    listed, rest = [], []
    for line in texts.lines(LintReport(objects=count, findings=(finding,) * count)):
        (listed if line.startswith("warning class-missing: ") else rest).append(line)
    assert len(listed) == shown
    *middle, means, cure, last = rest
    assert middle == more
    assert (means, cure) == (f"  means: {finding.rule.means}", f"  cure: {finding.rule.cure}")
    assert last.startswith(f"{count} object{'s' if count > 1 else ''}: ")


def test_report_is_read_as_it_was_written() -> None:
    rules = ("attribute-type-differs", "class-missing", "counter-never-enough")
    for rule in (each for each in rules if each in planting.PLANTERS):
        garden, _ = grow(rule, planting.PLANTERS[rule], SEED)
        assert garden is not None
        report = lint(garden.trees)
        assert report.findings
        assert linting.of_json(report.to_json()) == report


def test_each_kept_finding_is_of_a_rule() -> None:
    assert list(kept_texts.kept(FILE)) == NAMES
