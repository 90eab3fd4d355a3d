"""The page of the linter: what is wrong with the published objects of a history."""

from collections.abc import Sequence

from app.analysis.lint.findings import LintFinding
from app.analysis.lint.linting import LintReport
from app.analysis.lint.texts import SHOWN_MAX
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.values import counts
from app.web.frame import Frame, render


def page(frame: Frame, report: LintReport, ignored: Sequence[str] = ()) -> bytes:
    """The page: the findings by rule, the gravest first, each with its place and its cure."""
    rules: dict[str, list[LintFinding]] = {}
    for finding in report.findings:
        rules.setdefault(finding.rule.id, []).append(finding)
    totals = [
        counts.of(count, severity.value) for severity, count in report.counts().items() if count
    ]
    return render(
        "lint.html",
        frame=frame,
        report=report,
        rules=list(rules.values()),
        totals=totals,
        ignored=ignored,
        shown_max=SHOWN_MAX,
        key_of=_key_of,
    )


def _key_of(finding: LintFinding) -> ObjectKey | None:
    """The object of a finding, `KIND/NAME` or `KIND/NAMESPACE/NAME`; None if it is no object."""
    word, _, place = finding.place.object.partition("/")
    kind = next((one for one in registry.find_name(word) if one.kind == word), None)
    if kind is None or not place:
        return None
    namespace, _, name = place.rpartition("/")
    if bool(namespace) != kind.namespaced:
        return None
    return ObjectKey(kind.group, kind.plural, namespace, name)
