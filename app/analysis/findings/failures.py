"""Pods that failed without their containers: refused or ended by the kubelet of their node."""

from collections.abc import Iterator

from app.analysis.explain.workloads import members
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta


def pods(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """The pods with the phase Failed and a reason in their status, by that reason.

    Such a reason is the kubelet's: it did not admit the pod (`TopologyAffinityError`), or ended it
    (`Evicted`). A controller makes the next pod, which may fail alike. Pods of Jobs are left out:
    these count their failures. The message is that of the pod that changed last.
    """
    groups: dict[str, list[tuple[ObjectKey, Revision, str]]] = {}
    for key in views.objects.keys(*api_resources.PODS, namespace or None):
        event = views.objects.event(key)
        if event is None or meta.phase(event.object) != "Failed" or meta.is_deleting(event.object):
            continue
        owner, reason = meta.controller(event.object), core.status_reason(event.object)
        if reason and (owner is None or owner.kind != "Job"):
            failure = key, event.revision, members.failure(event.object)
            groups.setdefault(reason, []).append(failure)
    for failed in groups.values():
        failed.sort(key=lambda one: -one[1])
        its = "its node" if len(failed) == 1 else "their nodes"
        yield Finding(
            kind=FindingKind.FAILED_PODS,
            severity=Severity.WARNING,
            text=f"{counts.of(len(failed), 'pod')} failed on {its}: {failed[0][2]}",
            count=len(failed),
            present=len(failed),
            first=failed[-1][1],
            last=failed[0][1],
            objects=tuple(
                Subject.of(key, views.revision) for key, _, _ in failed[:OBJECTS_SHOWN_MAX]
            ),
        )
