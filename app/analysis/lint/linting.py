"""The run of all lint rules on the objects of some sources."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.analysis.lint import (
    counters,
    devices,
    nodes,
    objects,
    patches,
    placing,
    pools,
    requests,
    revisions,
    selectors,
    sizes,
    taints,
)
from app.analysis.lint.findings import FindingPlace, LintFinding, LintSeverity
from app.analysis.lint.placing import PlacingBounds
from app.analysis.lint.selectors import Choices
from app.analysis.lint.subjects import LintedObject, Subjects
from app.domain.allocation.features import Features
from app.domain.errors import InputError
from app.domain.objects.rules import Rules
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

FAMILIES = {
    "Objects": objects.RULES,
    "Pools": pools.RULES,
    "Counters": counters.RULES,
    "Devices": devices.RULES,
    "Nodes": nodes.RULES,
    "Selectors": selectors.RULES,
    "Requests": (*requests.RULES, *placing.RULES),
    "Taints": taints.RULES,
    "Patches": patches.RULES,
    "Sizes": sizes.RULES,
    "Changes over time": revisions.RULES,
}
"""The rules by family, in the order of the reference page."""

RULES = {rule.id: rule for family in FAMILIES.values() for rule in family}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The findings, the gravest first, and the number of objects examined, refused ones too.

    `not_checked` are sentences about parts of the sources that were left out.
    """

    findings: tuple[LintFinding, ...]
    objects: int
    not_checked: tuple[str, ...] = ()

    def counts(self) -> dict[LintSeverity, int]:
        """Findings by severity."""
        counted = Counter(finding.severity for finding in self.findings)
        return {severity: counted[severity] for severity in LintSeverity}

    def fails_on(self, threshold: LintSeverity) -> bool:
        """Whether a finding is at least as grave as the threshold."""
        return any(finding.severity.rank <= threshold.rank for finding in self.findings)

    def to_json(self) -> JsonObject:
        """The report as JSON for programs."""
        return {
            "objects": self.objects,
            "counts": {severity.value: count for severity, count in self.counts().items()},
            "findings": [finding.to_json() for finding in self.findings],
            "notChecked": [*self.not_checked],
        }


def of_json(tree: JsonObject) -> LintReport:
    """The report that `LintReport.to_json` gives."""
    findings = [
        RULES[each["rule"]].at(
            FindingPlace(**each["place"]),
            each["message"],
            [FindingPlace(**place) for place in each["related"]],
        )
        for each in tree["findings"]
    ]
    return LintReport(
        findings=tuple(findings),
        objects=tree["objects"],
        not_checked=tuple(tree.get("notChecked", ())),
    )


def admit(
    written: Iterable[LintedObject], rules: Rules, now: Instant
) -> tuple[list[LintedObject], list[LintedObject], list[LintFinding]]:
    """The manifests as a server would store them, and the reasons why it would refuse them.

    Refused slices are returned by themselves, because their devices are not visible.
    """
    subjects: list[LintedObject] = []
    refused_slices: list[LintedObject] = []
    findings: list[LintFinding] = []
    for each in written:
        admitted, problems = objects.admit(each, rules, now)
        findings += problems
        is_refused = any(problem.severity is LintSeverity.ERROR for problem in problems)
        is_hidden = is_refused and admitted.kind == "ResourceSlice"
        (refused_slices if is_hidden else subjects).append(admitted)
    return subjects, refused_slices, findings


def lint(
    subjects: Subjects,
    *,
    features: Features,
    before: Iterable[LintFinding] = (),
    ignored: Collection[str] = (),
    bounds: PlacingBounds = PlacingBounds(),
) -> LintReport:
    """Runs all rules on the subjects; `before` are findings made while they were read."""
    choices = Choices(subjects=subjects)
    findings = [
        *before,
        *objects.check(subjects),
        *pools.check(subjects),
        *counters.check(subjects),
        *devices.check(subjects),
        *nodes.check(subjects),
        *selectors.check(subjects, choices),
        *requests.check(subjects, choices),
        *taints.check(subjects),
        *patches.check(subjects),
        *sizes.check(subjects),
    ]
    wrong = {each.place.object for each in findings if each.severity is not LintSeverity.NOTE}
    findings += placing.check(subjects, choices, wrong, features, bounds)
    kept = [finding for finding in findings if finding.rule.id not in ignored]
    kept.sort(key=lambda each: each.severity.rank)
    return LintReport(findings=tuple(kept), objects=len(subjects.objects))


def check_rules(names: Iterable[str]) -> frozenset[str]:
    """The names, unchanged. Raises InputError for a name that no rule has."""
    for name in names:
        if name not in RULES:
            raise InputError(f"there is no rule {name!r}", cure=f"choose from {', '.join(RULES)}")
    return frozenset(names)
