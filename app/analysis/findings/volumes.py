"""Pods on nodes on which the scheduler of a cluster would not place them, for their volumes."""

from collections.abc import Iterator

from app.analysis.explain.nearby import volumes
from app.analysis.explain.reasons import listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta

KINDS = (
    api_resources.PERSISTENT_VOLUME_CLAIMS,
    api_resources.PERSISTENT_VOLUMES,
    api_resources.STORAGE_CLASSES,
)
"""The kinds that decide where a pod with volumes can be."""


def unjudged(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """The pods that redra's scheduler placed although their volume claims do not allow it.

    A pod whose last state is of a recording was placed by another scheduler.
    """
    obstacles: dict[ObjectKey, str] = {}
    pods: list[tuple[ObjectKey, Revision]] = []
    for key in views.objects.keys(*api_resources.PODS, namespace or None):
        event = views.objects.event(key)
        if event is None or event.stamp.origin is not None:
            continue
        pod = event.object
        if not core.volumes(pod) or not core.has_node(pod):
            continue
        if core.is_finished(pod) or meta.is_deleting(pod):
            continue
        own = {
            claim: why
            for claim in volumes.claims(pod)
            if (why := volumes.obstacle(views, pod, claim, core.node_name(pod)))
        }
        if own:
            obstacles |= own
            pods.append((key, event.revision))
    if not pods:
        return
    pods.sort(key=lambda one: -one[1])
    lines = [f"{claim.namespace}/{claim.name} {why}" for claim, why in sorted(obstacles.items())]
    noun = counts.plural(len(obstacles), "PersistentVolumeClaim")
    are, of_these, these = ("was", "its", "it") if len(pods) == 1 else ("were", "their", "them")
    yield Finding(
        kind=FindingKind.UNJUDGED_VOLUMES,
        severity=Severity.NOTICE,
        text=f"{counts.of(len(pods), 'pod')} {are} placed without regard to {of_these} volumes "
        f"(A18), and a real scheduler would refuse {these}: {noun} {listed(lines, len(lines))}",
        count=len(pods),
        present=len(pods),
        first=min(revision for _, revision in pods),
        last=max(revision for _, revision in pods),
        objects=tuple(Subject.of(key, views.revision) for key, _ in pods[:OBJECTS_SHOWN_MAX]),
    )
