"""Workloads that failed: the API refuses their pods, or a Job has ended without success."""

from collections.abc import Iterator, Mapping, Sequence

from app.analysis.explain.workloads import refused as refusals
from app.analysis.explain.workloads.members import queue_of
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, condition_types, counts
from app.domain.values.fields import meta

KINDS = (
    api_resources.DEPLOYMENTS,
    api_resources.REPLICA_SETS,
    api_resources.STATEFUL_SETS,
    api_resources.DAEMON_SETS,
    api_resources.JOBS,
)
"""The kinds for which refused pods are reported."""


def refused(
    views: LiveViews,
    kinds: Sequence[tuple[str, str]],
    namespace: str = "",
    *,
    reads_events: bool = False,
) -> Iterator[Finding]:
    """Workloads of these kinds with the condition ReplicaFailure, by message.

    Other kinds have no such condition. With `reads_events` those to which no pod was made since the
    Event of a refusal count, too. What a quota refused that allows it by now is apart: the
    controller has not tried it again so far.
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
                message = refusals.message_of(failure.message)
                groups.setdefault(message, []).append((key, event.revision))
    for key, refusal in _of_events(views, kinds, namespace) if reads_events else ():
        groups.setdefault(refusal.message, []).append((key, refusal.event.revision))
    for (message, quota), workloads in _by_quota(views, groups).items():
        workloads.sort(key=lambda one: -one[1])
        state = "cannot make pods"
        if quota:
            state = f"could not make pods, and quota {quota} does not refuse the next try"
        yield Finding(
            kind=FindingKind.REFUSED_PODS,
            severity=Severity.WARNING if quota else Severity.ERROR,
            text=f"{counts.of(len(workloads), 'workload')} {state}: {message}",
            count=len(workloads),
            present=len(workloads),
            first=min(revision for _, revision in workloads),
            last=max(revision for _, revision in workloads),
            objects=tuple(
                Subject.of(key, views.revision) for key, _ in workloads[:OBJECTS_SHOWN_MAX]
            ),
        )


def _by_quota(
    views: LiveViews, groups: Mapping[str, Sequence[tuple[ObjectKey, Revision]]]
) -> dict[tuple[str, str], list[tuple[ObjectKey, Revision]]]:
    """The workloads by message, and by the quota that allows the refused pods by now, or empty."""
    parts: dict[tuple[str, str], list[tuple[ObjectKey, Revision]]] = {}
    for message, workloads in groups.items():
        lifted: dict[str, str] = {}
        for key, revision in workloads:
            if key.namespace not in lifted:
                lifted[key.namespace] = refusals.lifted_quota(views, key.namespace, message)
            parts.setdefault((message, lifted[key.namespace]), []).append((key, revision))
    return parts


def _of_events(
    views: LiveViews, kinds: Sequence[tuple[str, str]], namespace: str
) -> Iterator[tuple[ObjectKey, refusals.PodRefusal]]:
    """The workloads of kinds without the condition to which the last pod was refused."""
    for uid, refusal in refusals.newest(views, namespace).items():
        key = views.objects.by_uid(uid)
        tree = None if key is None else views.objects.get(key)
        if key is None or tree is None or refusal.is_past or meta.is_deleting(tree):
            continue
        if any(meta.is_true(tree, end) for end in _ENDS_OF_JOBS):
            continue
        if key[:2] in kinds and key[:2] not in _WITH_CONDITION:
            yield key, refusal


def jobs(
    views: LiveViews, kinds: Sequence[tuple[str, str]], namespace: str = ""
) -> Iterator[Finding]:
    """Jobs that failed, and those that are suspended."""
    yield from failed_jobs(views, kinds, namespace)
    yield from suspended_jobs(views, kinds, namespace)


def failed_jobs(
    views: LiveViews, kinds: Sequence[tuple[str, str]], namespace: str = ""
) -> Iterator[Finding]:
    """Jobs with the condition Failed, by its reason, if Jobs are among the kinds.

    The message is that of the Job that changed last.
    """
    if api_resources.JOBS not in kinds:
        return
    groups: dict[str, list[tuple[ObjectKey, Revision, str]]] = {}
    for key in views.objects.keys(*api_resources.JOBS, namespace or None):
        event = views.objects.event(key)
        if event is None or meta.is_deleting(event.object):
            continue
        end = meta.condition(event.object, _FAILED)
        if end is not None and end.status == "True":
            groups.setdefault(end.reason, []).append((key, event.revision, end.message))
    for reason, jobs in groups.items():
        jobs.sort(key=lambda one: -one[1])
        message = jobs[0][2]
        if len({details for _, _, details in jobs}) > 1:
            message = f"{message} ({jobs[0][0].name})"
        details = ": ".join(filter(None, (reason, message)))
        text = f"{counts.of(len(jobs), 'job')} failed"
        yield Finding(
            kind=FindingKind.FAILED_JOBS,
            severity=Severity.WARNING,
            text=f"{text}: {details}" if details else text,
            count=len(jobs),
            present=len(jobs),
            first=jobs[-1][1],
            last=jobs[0][1],
            objects=tuple(
                Subject.of(key, views.revision) for key, _, _ in jobs[:OBJECTS_SHOWN_MAX]
            ),
        )


def suspended_jobs(
    views: LiveViews, kinds: Sequence[tuple[str, str]], namespace: str = ""
) -> Iterator[Finding]:
    """Jobs without pods because they are suspended, by the queue for which they may wait."""
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    jobs = views.objects.keys(*api_resources.JOBS, namespace or None)
    for key in jobs if api_resources.JOBS in kinds else ():
        event = views.objects.event(key)
        if event is None or meta.spec(event.object).get("suspend") is not True:
            continue
        if meta.is_deleting(event.object):
            continue
        if not any(meta.is_true(event.object, end) for end in _ENDS_OF_JOBS):
            groups.setdefault(queue_of(event.object), []).append((key, event.revision))
    for queue, group in groups.items():
        group.sort(key=lambda one: -one[1])
        few, many = "it may wait for its queue", "they may wait for their queue"
        wait = queue if len(group) == 1 else queue.replace(few, many)
        yield Finding(
            kind=FindingKind.SUSPENDED_JOBS,
            severity=Severity.NOTICE,
            text=f"{counts.of(len(group), 'job')} {counts.verb(len(group), 'is')} suspended "
            f"(spec.suspend), and no pods are made{wait}",
            count=len(group),
            present=len(group),
            first=group[-1][1],
            last=group[0][1],
            objects=tuple(Subject.of(key, views.revision) for key, _ in group[:OBJECTS_SHOWN_MAX]),
        )


_FAILED = "Failed"
_ENDS_OF_JOBS = ("Complete", _FAILED)
"""The conditions of a Job that has ended."""

_WITH_CONDITION = (api_resources.DEPLOYMENTS, api_resources.REPLICA_SETS)
