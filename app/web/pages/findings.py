"""The landing page of a history: its findings, ranked."""

from app.analysis.findings.defects import KnownDefects
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, FindingKind, Findings, Severity
from app.domain.values import api_resources, counts
from app.web.frame import Frame, render
from projections import timeline_kinds

KINDS = {
    FindingKind.BROKEN_INVARIANT: "invariant",
    FindingKind.WAITING_PODS: "waiting pods",
    FindingKind.REQUESTED_PODS: "pods known from requests",
    FindingKind.UNSTARTED_PODS: "pods that do not start",
    FindingKind.REFUSED_PODS: "pods that cannot be made",
    FindingKind.REFUSED_WRITES: "refused writes",
    FindingKind.FAILED_JOBS: "failed jobs",
    FindingKind.SUSPENDED_JOBS: "suspended jobs",
    FindingKind.FAILED_PODS: "failed pods",
    FindingKind.STUCK_CLAIMS: "stuck claims",
    FindingKind.KEPT_OBJECTS: "objects that do not go",
    FindingKind.OVERDUE_PODS: "pods that do not end",
    FindingKind.EVICTED_PODS: "evicted pods",
    FindingKind.EXCEEDED_QUOTAS: "quotas",
    FindingKind.UNREADY_NODES: "nodes that are not ready",
    FindingKind.KEPT_NODES: "nodes that a drain does not empty",
    FindingKind.UNUSABLE_POOLS: "pools",
    FindingKind.TAINTED_DEVICES: "tainted devices in use",
    FindingKind.CHANGED_DEVICES: "changed devices in use",
    FindingKind.UNHEALTHY_DEVICES: "unhealthy devices",
    FindingKind.UNREACHED_DEVICES: "devices out of reach",
    FindingKind.UNREAD_CONFIGURATIONS: "configurations that no driver reads",
    FindingKind.IDLE_PATCHES: "patches",
    FindingKind.IDLE_RULES: "rules",
    FindingKind.KNOWN_ISSUE: "known issue",
    FindingKind.UNREADABLE_OBJECTS: "unreadable objects",
    FindingKind.LATER_ALTERNATIVES: "alternatives",
    FindingKind.MISSING_ACCOUNTS: "missing accounts",
    FindingKind.UNJUDGED_VOLUMES: "volumes that are not judged",
    FindingKind.UNUSED_CLAIMS: "unused claims",
    FindingKind.REQUESTED_CLAIMS: "claims known from requests",
    FindingKind.DOUBTED_INVARIANT: "doubted invariant",
    FindingKind.LOSSES: "losses of the recording",
    FindingKind.NOTHING_KNOWN: "before the history",
}

EVENTS = {
    FindingKind.EVICTED_PODS: "PodEvicted",
    FindingKind.REFUSED_WRITES: timeline_kinds.WRITE_REFUSED,
}
"""Kinds of findings of which the timeline has an entry for each object."""

EXPLAINED = frozenset(
    (
        api_resources.PODS[1],
        api_resources.RESOURCE_CLAIMS[1],
        api_resources.DEVICE_TAINT_RULES[1],
        api_resources.NODES[1],
        api_resources.DEPLOYMENTS[1],
        api_resources.REPLICA_SETS[1],
        api_resources.STATEFUL_SETS[1],
        api_resources.DAEMON_SETS[1],
        api_resources.JOBS[1],
        api_resources.RESOURCE_SLICES[1],
        api_resources.DEVICE_CLASSES[1],
        api_resources.RESOURCE_SLICE_PATCHES[1],
        api_resources.RESOURCE_QUOTAS[1],
    )
)
"""Resources whose objects have a page with reasons."""


def page(
    frame: Frame,
    answer: Findings,
    namespace: str = "",
    defects: KnownDefects = KnownDefects(),
    *,
    is_empty: bool = False,
) -> bytes:
    """The page, limited to `namespace` unless it is empty.

    `is_empty` is whether no object is there that findings are about.
    """
    return render(
        "findings.html",
        frame=frame,
        answer=answer,
        defects=defects,
        severities=tuple(Severity),
        shown_max=OBJECTS_SHOWN_MAX,
        kinds=KINDS,
        explained=EXPLAINED,
        events=EVENTS,
        namespace=namespace,
        is_empty=is_empty,
        summary=_summary(answer, defects),
    )


def _summary(answer: Findings, defects: KnownDefects) -> str:
    """The number of cards of the page per severity, known defects among them, as a sentence."""
    severities = [
        *(item.severity for item in answer.items),
        *(one.severity for one in defects.items),
    ]
    parts = []
    for severity in Severity:
        if count := severities.count(severity):
            parts.append(f"{count} {severity.value}{'' if count == 1 else 's'}")
    listed = ", ".join(parts) or "No findings"
    if defects.items:
        listed += f", of which {counts.of(len(defects.items), 'known defect')},"
    return f"{listed} up to revision {answer.revision}."
