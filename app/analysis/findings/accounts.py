"""Pods that name a ServiceAccount which is not there."""

from collections.abc import Iterator

from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta


def missing(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """The pods of each account that is missing from a namespace with other accounts.

    Where no account of a namespace is known, a recording left them out.
    """
    known: dict[str, set[str]] = {}
    for key in views.objects.keys(*api_resources.SERVICE_ACCOUNTS, namespace or None):
        known.setdefault(key.namespace, set()).add(key.name)
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.PODS, namespace or None) if known else ():
        event = views.objects.event(key)
        if event is None or core.is_finished(event.object) or meta.is_deleting(event.object):
            continue
        name = core.service_account_name(event.object)
        if name and name not in known.get(key.namespace, {name}):
            pods = groups.setdefault(f"{key.namespace}/{name}", [])
            pods.append((key, event.revision))
    for account, pods in groups.items():
        pods.sort(key=lambda one: -one[1])
        names = counts.verb(len(pods), "names")
        yield Finding(
            kind=FindingKind.MISSING_ACCOUNTS,
            severity=Severity.NOTICE,
            text=f"{counts.of(len(pods), 'pod')} {names} ServiceAccount {account}, which does not "
            "exist: an API server with the admission plug-in ServiceAccount refuses such pods",
            count=len(pods),
            present=len(pods),
            first=min(revision for _, revision in pods),
            last=max(revision for _, revision in pods),
            objects=tuple(Subject.of(key, views.revision) for key, _ in pods[:OBJECTS_SHOWN_MAX]),
        )
