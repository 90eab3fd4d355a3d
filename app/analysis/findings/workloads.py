"""Workloads whose pods the API refuses, so that there is no pod to ask about."""

import re
from collections.abc import Iterator, Sequence

from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, condition_types, counts
from app.domain.values.fields import meta

_OF_POD = re.compile(r'^.*?pods "[^"]*" is (?:forbidden|invalid): ')
"""The part of a refusal with the generated name of a pod, which differs at each try."""


def refused(
    views: LiveViews, kinds: Sequence[tuple[str, str]], namespace: str = ""
) -> Iterator[Finding]:
    """Workloads of these kinds with the condition ReplicaFailure, by message.

    ReplicaSets of Deployments are left out where these are among the kinds: a Deployment takes the
    condition over. An owner of another kind does not.
    """
    left_out = "Deployment" if api_resources.DEPLOYMENTS in kinds else ""
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for kind in kinds:
        for key in views.objects.keys(*kind, namespace or None):
            event = views.objects.event(key)
            if event is None or meta.is_deleting(event.object):
                continue
            if left_out and any(each.kind == left_out for each in meta.owners(event.object)):
                continue
            failure = meta.condition(event.object, condition_types.REPLICA_FAILURE)
            if failure is not None and failure.status == "True":
                said = _OF_POD.sub("", failure.message)
                groups.setdefault(said, []).append((key, event.revision))
    for text, workloads in groups.items():
        workloads.sort(key=lambda one: -one[1])
        yield Finding(
            kind=FindingKind.REFUSED_PODS,
            severity=Severity.ERROR,
            text=f"{counts.of(len(workloads), 'workload')} cannot make pods: {text}",
            count=len(workloads),
            present=len(workloads),
            first=min(revision for _, revision in workloads),
            last=max(revision for _, revision in workloads),
            objects=tuple(
                Subject.of(key, views.revision) for key, _ in workloads[:OBJECTS_SHOWN_MAX]
            ),
        )
