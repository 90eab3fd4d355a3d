"""Claims that do not end: deleted and still there, or holding devices that nobody uses."""

from collections.abc import Iterator

from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

IN_USE = "deletion waits until the pods that use them end"
UNPROTECTED = "deletion waits for a finalizer, although no pod uses them"
CONSUMER_GONE = "reserved for a pod that does not exist"
CONSUMER_ENDED = "reserved for a pod that has ended"

_SEVERITY = {
    IN_USE: Severity.NOTICE,
    UNPROTECTED: Severity.ERROR,
    CONSUMER_GONE: Severity.WARNING,
    CONSUMER_ENDED: Severity.WARNING,
}


def stuck(views: LiveViews) -> Iterator[Finding]:
    """One finding for each way in which claims are stuck."""
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS):
        tree, event = views.objects.get(key), views.objects.event(key)
        if tree is None or event is None:
            continue
        cause = _cause(views, key, tree)
        if cause:
            groups.setdefault(cause, []).append((key, event.revision))
    for cause, claims in groups.items():
        claims.sort(key=lambda claim: -claim[1])
        revisions = [revision for _, revision in claims]
        count = len(claims)
        noun = counts.of(count, "claim")
        yield Finding(
            kind=FindingKind.STUCK_CLAIMS,
            severity=_SEVERITY[cause],
            text=f"{noun}: {cause}",
            count=count,
            present=count,
            first=min(revisions),
            last=max(revisions),
            objects=tuple(Subject.of(*claim) for claim in claims[:OBJECTS_SHOWN_MAX]),
        )


def _cause(views: LiveViews, key: ObjectKey, tree: JsonObject) -> str:
    """In which way a claim is stuck; empty when it is not."""
    pods = [
        views.objects.get(ObjectKey(*api_resources.PODS, key.namespace, consumer.name))
        for consumer in dra.consumers(tree)
        if consumer.resource == api_resources.PODS[1]
        and consumer.api_group == api_resources.PODS[0]
    ]
    if any(pod is None for pod in pods):
        return CONSUMER_GONE
    if any(pod is not None and core.is_finished(pod) for pod in pods):
        return CONSUMER_ENDED
    if meta.is_deleting(tree):
        return IN_USE if pods else UNPROTECTED
    return ""
