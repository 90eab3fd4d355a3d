"""Violated invariants in findings: the writes with which they began, and their authors."""

from msgspec.structs import replace

from app.analysis.explain import sources
from app.analysis.findings.report import Finding, FindingKind, Findings
from app.domain.log import Event, EventType, Revision
from app.service.explaining.evidence import ExplainedMoment

BEGINNINGS_MAX = 3
"""The writes that are named for one rule, the newest ones."""

_VIOLATED = frozenset(
    (FindingKind.BROKEN_INVARIANT, FindingKind.DOUBTED_INVARIANT, FindingKind.KNOWN_ISSUE)
)
_VERBS = {
    EventType.OBJECT_CREATED: "was created",
    EventType.OBJECT_UPDATED: "was changed",
    EventType.OBJECT_DELETED: "was deleted",
}


async def with_authors(evidence: ExplainedMoment, answer: Findings) -> Findings:
    """The findings; those about violated invariants say with which writes the violations began."""
    items = [await _with_authors(evidence, item) for item in answer.items]
    return replace(answer, items=tuple(items))


async def _with_authors(evidence: ExplainedMoment, item: Finding) -> Finding:
    if item.kind not in _VIOLATED or item.causes:
        return item
    lines = []
    for revision in item.begins[:BEGINNINGS_MAX]:
        page = await evidence.log.read(
            evidence.info.id, after=Revision(revision - 1), until=revision, limit=1
        )
        lines += [_line(event) for event in page if evidence.sight.sees(event)]
    return replace(item, causes=tuple(line for line in lines if line))


def _line(event: Event) -> str:
    """The write, in a sentence; empty for an event that is none."""
    verb = _VERBS.get(event.type, "")
    if not verb:
        return ""
    return f"it began when {event.key} {verb} {sources.by(event)} (revision {event.revision})"
