"""Findings as lines of text and as SARIF."""

from collections import Counter
from collections.abc import Iterator

from app.analysis.lint.findings import FindingPlace, LintFinding
from app.analysis.lint.linting import RULES, LintReport
from app.domain.values import counts as counts_text
from app.domain.values.json_tree import JsonObject

SHOWN_MAX = 5
"""Findings of one rule that a text lists; the rest is counted."""

SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def lines(report: LintReport) -> Iterator[str]:
    """The report for a terminal: each finding, its cure once a rule, the sums."""
    shown: Counter[str] = Counter()
    of_rule = Counter(finding.rule.id for finding in report.findings)
    for finding in report.findings:
        rule = finding.rule
        shown[rule.id] += 1
        if shown[rule.id] > SHOWN_MAX:
            continue
        yield f"{finding.severity.value} {rule.id}: {finding.place}: {finding.message}"
        if shown[rule.id] == min(SHOWN_MAX, of_rule[rule.id]):
            if of_rule[rule.id] > SHOWN_MAX:
                yield f"  … {of_rule[rule.id] - SHOWN_MAX} more; -o json has them"
            yield f"  means: {rule.means}"
            yield f"  cure: {rule.cure}"
    for sentence in report.not_checked:
        yield f"not checked: {sentence}"
    counts = report.counts()
    listed = ", ".join(
        f"{count} {severity.value}{'' if count == 1 else 's'}" for severity, count in counts.items()
    )
    yield f"{counts_text.of(report.objects, 'object')}: {listed}"


def sarif(report: LintReport) -> JsonObject:
    """The report as a SARIF log of one run."""
    numbers = {name: index for index, name in enumerate(RULES)}
    return {
        "$schema": SARIF_SCHEMA,
        "version": SARIF_VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "redra",
                        "rules": [
                            {
                                "id": rule.id,
                                "shortDescription": {"text": rule.means},
                                "help": {"text": f"{rule.cure} ({rule.reference})"},
                                "defaultConfiguration": {"level": rule.severity.value},
                            }
                            for rule in RULES.values()
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "warning", "message": {"text": f"not checked: {sentence}"}}
                            for sentence in report.not_checked
                        ],
                    }
                ],
                "results": [_result(finding, numbers) for finding in report.findings],
            }
        ],
    }


def _result(finding: LintFinding, numbers: dict[str, int]) -> JsonObject:
    result: JsonObject = {
        "ruleId": finding.rule.id,
        "ruleIndex": numbers[finding.rule.id],
        "level": finding.severity.value,
        "message": {"text": f"{finding.place.object}: {finding.message}. {finding.rule.cure}"},
        "locations": [_location(finding.place)],
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, **_location(place)} for number, place in enumerate(finding.related, 1)
        ]
    return result


def _location(place: FindingPlace) -> JsonObject:
    name = f"{place.object} {place.field}".strip()
    if place.revision:
        name = f"{name} at revision {place.revision}"
    location: JsonObject = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "member"}]}
    if place.source:
        physical: JsonObject = {"artifactLocation": {"uri": place.source.replace(" ", "%20")}}
        if place.line:
            physical["region"] = {"startLine": place.line}
        location["physicalLocation"] = physical
    return location
