"""ResourceQuotas that allow less than is in use: whatever they count cannot be made any more.

The API admits no object above a limit, so the limit was lowered, or the quota came later than the
objects. A refused write leaves nothing in a history, except in one from an audit log.
"""

from collections.abc import Iterator

from app.analysis.explain import quota_use
from app.analysis.findings.report import Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.values import api_resources
from app.domain.values.fields import meta


def exceeded(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """One finding for each quota with more in use than it allows, as its status says."""
    for key in views.objects.keys(*api_resources.RESOURCE_QUOTAS, namespace or None):
        event = views.objects.event(key)
        if event is None or meta.is_deleting(event.object):
            continue
        over = [*quota_use.limits_exceeded_now(event.object)]
        if not over:
            continue
        amounts = ", ".join(f"{used} of {limit} {name}" for name, used, limit in over)
        yield Finding(
            kind=FindingKind.EXCEEDED_QUOTAS,
            severity=Severity.WARNING,
            text=f"quota {key.name} of namespace {key.namespace} allows less than is in use: "
            f"{amounts}; nothing is taken away, and no more can be made",
            count=1,
            present=1,
            first=event.revision,
            last=event.revision,
            objects=(Subject.of(key, views.revision),),
        )
