"""Findings about pods, by cause: those that wait, were evicted, do not start or do not end."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter

from app.analysis.chronicle import Chronicle
from app.analysis.explain import lives, sources, verdicts
from app.analysis.findings import alike, taints
from app.analysis.findings.outgrown import FormerState
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.scheduler_messages import first_cause, without_names
from app.analysis.views import LiveViews
from app.domain.controllers.kubelet.annotations import KUBELET
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, condition_types, counts, event_reasons, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from projections.timeline_kinds import ATTEMPT_FAILED, ATTEMPT_SUCCEEDED

POD_CREATED = "PodCreated"
"""The kind of the entry of the timeline about a new pod."""

POD_DELETED = "PodDeleted"
"""The kind of the entry of the timeline about the end of a pod."""

_OF_OBJECTS = frozenset((POD_CREATED, POD_DELETED))
_PLACED = f'"reason":"{event_reasons.SCHEDULED}"'.encode()
_FAILED_SCHEDULING = f"{event_reasons.FAILED_SCHEDULING}: "

FORMER_CAUSES_MAX = 8
"""The former causes of pods that still wait which are told."""

UNTOLD = "no scheduler has said why"
_CHOSEN = "a node is chosen, the binding is under way"
_UNREAD = "the log is not read far enough to say why"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCauses:
    """The sources of the causes why pods wait or do not start, and claims have other devices.

    `unasked` gives the cause why no node is asked about a pod, or nothing. Without `reads_events`
    no cause rests on Event objects, which the reader may not see. `workloads` are the kinds of
    workloads that the reader may see, `former` the states of patches and classes that ended last.
    With `reads_accounts` the reader may see ServiceAccounts. With `judges_volumes` the pods were
    placed here, and the reader may see their volumes. `sees` is whether the reader may see an
    object: findings about others are left out.
    """

    unasked: Callable[[JsonObject], str]
    reads_events: bool = True
    workloads: Sequence[tuple[str, str]] = ()
    former: Sequence[FormerState] = ()
    reads_accounts: bool = True
    judges_volumes: bool = True
    sees: Callable[[ObjectKey], bool] = lambda _: True


@dataclass(slots=True)
class _PodsOfCause:
    """Pods with the same cause, with the first and the last revision at which it showed."""

    first: Revision
    last: Revision
    pods: dict[ObjectKey, Revision] = field(default_factory=dict)

    def note(self, pod: ObjectKey, revision: Revision) -> None:
        self.pods.pop(pod, None)
        self.pods[pod] = revision
        self.first, self.last = min(self.first, revision), max(self.last, revision)

    def add(self, other: "_PodsOfCause") -> None:
        """Takes in the pods of a group with a cause of the same kind."""
        together = {**self.pods, **other.pods}
        self.pods = dict(sorted(together.items(), key=lambda one: one[1]))
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)


def waiting(
    chronicle: Chronicle,
    views: LiveViews,
    until: Revision,
    unasked: Callable[[JsonObject], str],
    namespace: str = "",
    *,
    reads_events: bool = True,
) -> Iterator[Finding]:
    """Pods that wait or waited, by first cause; of one namespace unless it is empty.

    `unasked` says why no node is asked about a pod, or nothing. Where the condition of a pod was
    not recorded, the cause is in a scheduler's Event or log; Events only with `reads_events`. While
    the log is not read to the end, what a pod shows itself is newer than what was read about it.
    """
    is_whole = chronicle.revision >= until
    groups: dict[str, _PodsOfCause] = {}
    latest: dict[ObjectKey, str] = {}
    for entry in chronicle.of_kind("PodUnschedulable", until=until):
        if namespace not in ("", entry.subject.namespace):
            continue
        cause = first_cause(entry.text)
        _note(groups, cause, entry.subject, entry.revision)
        latest[entry.subject] = cause
    present: dict[str, int] = {}
    requested: dict[ObjectKey, Revision] = {}
    waiting_now = dict(_waiting_now(views, namespace))
    for pod, tree in waiting_now.items():
        refusal = latest.get(pod, "") if is_whole else _refusal(tree)
        message = refusal or _reported(chronicle, pod, until, reads_events=reads_events)
        event = views.objects.event(pod)
        assert event is not None, "it was listed"
        if not message and sources.is_only_requested(event):
            requested[pod] = event.revision
            continue
        untold = UNTOLD if is_whole else _UNREAD
        # Schedulers name the node before they write claims, and write the reason of a refusal.
        untold = _CHOSEN if core.nominated_node_name(tree) else untold
        cause = unasked(tree) or message or untold
        if pod not in groups.get(cause, _EMPTY).pods:
            _note(groups, cause, pod, _created(chronicle, views, pod, until))
        groups[cause].last = max(groups[cause].last, event.revision)
        # It shows now: the cause may have been reported after the pod's last change.
        groups[cause].pods[pod] = until
        present[cause] = present.get(cause, 0) + 1
    if requested:
        yield _requested(requested)
    before: dict[str, _PodsOfCause] = {}
    for causes in _of_a_kind(sorted(groups, key=lambda cause: -groups[cause].last)):
        cause, group = causes[0], groups[causes[0]]
        for other in causes[1:]:
            group.add(groups[other])
            cause = f"{causes[0]}, and the like for {len(causes) - 1} more"
        still = sum(present.get(one, 0) for one in causes)
        if not still and waiting_now.keys() >= group.pods.keys():
            before[cause] = group
            continue
        yield Finding(
            kind=FindingKind.WAITING_PODS,
            severity=Severity.ERROR if still else Severity.WARNING,
            text=_waiting_text(len(group.pods), still, cause),
            count=len(group.pods),
            present=still,
            first=group.first,
            last=group.last,
            objects=alike.subjects(views, group.pods) if still else _newest(group),
        )
    if before:
        yield _refused_before(before)


def _refused_before(groups: Mapping[str, _PodsOfCause]) -> Finding:
    """The finding about other causes for which pods that still wait were refused before.

    Each change of a node or of another pod may give another one: they are told together, after what
    keeps these pods waiting now.
    """
    pods: dict[ObjectKey, Revision] = {}
    for group in groups.values():
        for pod, revision in group.pods.items():
            pods[pod] = max(revision, pods.get(pod, revision))
    together = _PodsOfCause(
        min(group.first for group in groups.values()),
        max(group.last for group in groups.values()),
        pods,
    )
    lines = [f"{_pods(len(group.pods))}: {cause}" for cause, group in groups.items()]
    if (left := len(lines) - FORMER_CAUSES_MAX) > 0:
        lines[FORMER_CAUSES_MAX:] = [counts.of(left, "other cause")]
    refused = "still waits was" if len(pods) == 1 else "still wait were"
    causes = "another cause" if len(groups) == 1 else "other causes"
    return Finding(
        kind=FindingKind.WAITING_PODS,
        severity=Severity.NOTICE,
        text=f"{_pods(len(pods))} that {refused} refused for {causes} before",
        count=len(pods),
        present=0,
        first=together.first,
        last=together.last,
        objects=_newest(together),
        causes=tuple(lines),
    )


def _requested(pods: Mapping[ObjectKey, Revision]) -> Finding:
    """The finding about pods of which only the request that created them was recorded.

    Whether they got a node is not known: a cluster writes that with other requests.
    """
    one = len(pods) == 1
    group = _PodsOfCause(min(pods.values()), max(pods.values()), dict(pods))
    return Finding(
        kind=FindingKind.REQUESTED_PODS,
        severity=Severity.NOTICE,
        text=f"{_pods(len(pods))} {'is' if one else 'are'} known only from the "
        f"{'request' if one else 'requests'} that created {'it' if one else 'them'}: the "
        f"recording does not show whether {'it' if one else 'they'} got a node",
        count=len(pods),
        present=len(pods),
        first=group.first,
        last=group.last,
        objects=_newest(group),
    )


def unrecorded(
    chronicle: Chronicle,
    views: LiveViews,
    until: Revision,
    namespace: str = "",
    *,
    reads_events: bool = True,
) -> Iterator[Finding]:
    """Pods known only from logs and Events as not placed, or as not started.

    Their state at the end is not known, unless a later line says that they were placed.
    """
    troubles = _last_attempts(chronicle, until)
    if reads_events:
        troubles = {**_warned_of(chronicle, views, until), **troubles}
    groups: dict[str, _PodsOfCause] = {}
    for pod, (cause, revision) in troubles.items():
        if cause and namespace in ("", pod.namespace) and not _is_recorded(chronicle, pod, until):
            _note(groups, cause, pod, revision)
    for cause, group in groups.items():
        count = len(group.pods)
        whom = "it is" if count == 1 else "they are"
        yield Finding(
            kind=FindingKind.WAITING_PODS,
            severity=Severity.WARNING,
            text=f"{_pods(count)} waited or did not start when last heard of, and nothing shows "
            f"how {whom} now: {cause}",
            count=count,
            present=count,
            first=group.first,
            last=group.last,
            objects=_newest(group),
        )


def evicted(
    chronicle: Chronicle, views: LiveViews, until: Revision, namespace: str = ""
) -> Iterator[Finding]:
    """Pods that were chosen for disruption, by the condition's reason, with the taints.

    Behind them are those of which only the requests of the eviction controller were recorded.
    """
    groups: dict[str, _PodsOfCause] = {}
    evictions: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for text, pod, revision in taints.evictions(chronicle, until):
        if namespace in ("", pod.namespace):
            _note(groups, text, pod, revision)
            evictions.setdefault(text, []).append((pod, revision))
    for text, group in groups.items():
        there = sum(views.objects.event(pod) is not None for pod in group.pods)
        count = len(group.pods)
        yield Finding(
            kind=FindingKind.EVICTED_PODS,
            severity=Severity.WARNING,
            text=f"{_pods(count)} {counts.verb(count, 'was')} evicted: {text}",
            count=count,
            present=there,
            first=group.first,
            last=group.last,
            objects=_newest(group),
            causes=taints.evictor_lines(chronicle, text, evictions[text]),
        )
    yield from taints.unseen_evictions(chronicle, views, until, namespace)


def unstarted(
    views: LiveViews, causes: PodCauses, now: Instant, namespace: str = ""
) -> Iterator[Finding]:
    """Pods with a node that do not run there, by the last words of the kubelet or containers.

    Parts of the words that name the pod or its claims differ; those after the last colon are
    compared. A kubelet that says nothing counts where others report, or where it is switched off or
    its node not ready.
    """
    reports = cache(lambda: _has_reports(views))
    newest = cache(lambda: lives.newest_report(views))
    starting = [
        (key, event)
        for key in views.objects.keys(*api_resources.PODS, namespace or None)
        if (event := views.objects.event(key)) is not None
        and (lives.is_starting(event.object) or lives.is_failing(event.object))
        and not meta.is_deleting(event.object)
    ]
    if not starting:
        return
    events = views.objects.unusual_events(namespace or None) if causes.reads_events else ()
    warnings = lives.warnings(events)
    groups: dict[tuple[str, str, str], list[tuple[ObjectKey, Revision, str]]] = {}
    for key, event in starting:
        state = "runs no more" if lives.is_failing(event.object) else "did not start"
        warning = lives.warning_about(warnings, event.object)
        # Messages name pods, and counts of restarts differ: pods are compared without them.
        waits = next(lives.waiting_containers(event.object), "")
        details = next(lives.container_waits(event.object), "")
        if warning is not None:
            group = (state, warning.reason, warning.message.rpartition(": ")[2])
            groups.setdefault(group, []).append((key, warning.event.revision, warning.text))
        elif waits:
            groups.setdefault((state, waits, ""), []).append((key, event.revision, details))
        elif (reports() or _is_on_unready(views, event.object)) and (
            silent := lives.silence(views, event.object, now, newest)
        ):
            groups.setdefault((state, silent, ""), []).append((key, event.revision, silent))
    for (state, *_), refused in groups.items():
        refused.sort(key=lambda one: -one[1])
        have, why = "has", refused[0][2]
        if len(refused) > 1:
            have, why = "have", why.replace("nothing about it", "nothing about them")
            state = state.replace("runs", "run")
        yield Finding(
            kind=FindingKind.UNSTARTED_PODS,
            severity=Severity.ERROR,
            text=f"{_pods(len(refused))} {have} a node and {state} there: {why}",
            count=len(refused),
            present=len(refused),
            first=min(revision for _, revision, _ in refused),
            last=max(revision for _, revision, _ in refused),
            objects=tuple(
                Subject.of(key, views.revision) for key, _, _ in refused[:OBJECTS_SHOWN_MAX]
            ),
        )


def _is_on_unready(views: LiveViews, pod: JsonObject) -> bool:
    """Whether the node of a pod is not ready: evidence about its kubelet, as a report is."""
    key = ObjectKey(*api_resources.NODES, "", core.node_name(pod))
    return bool(lives.not_ready(views.objects.get(key) or {}))


def _has_reports(views: LiveViews) -> bool:
    """Whether the history shows what kubelets do: a pod of a node has a report, or one is off."""
    trees = map(views.objects.get, views.objects.keys(*api_resources.PODS))
    if any(lives.has_report(tree) for tree in trees if tree is not None):
        return True
    nodes = map(views.objects.get, views.objects.keys(*api_resources.NODES))
    return any(meta.annotation(node or {}, KUBELET) == "off" for node in nodes)


def overdue(
    views: LiveViews, causes: PodCauses, now: Instant, namespace: str = ""
) -> Iterator[Finding]:
    """Pods that are still there after their grace period, by what they wait for."""
    warnings = cache(lambda: lives.warnings(views.objects.unusual_events(namespace or None)))
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.PODS, namespace or None):
        event = views.objects.event(key)
        if event is None or not meta.is_deleting(event.object):
            continue
        until = timestamps.instant_of(meta.known_deletion_timestamp(event.object))
        if until is not None and until < now:
            waits = lives.kept_by(views, event.object)
            last = lives.warning_of_end(warnings(), event.object) if causes.reads_events else None
            waits += f"; it said {last.text}" if last is not None else ""
            groups.setdefault(waits, []).append((key, event.revision))
    for cause, ending in groups.items():
        ending.sort(key=lambda one: -one[1])
        is_one = len(ending) == 1
        yield Finding(
            kind=FindingKind.OVERDUE_PODS,
            severity=Severity.WARNING,
            text=f"{_pods(len(ending))} should have ended and {'is' if is_one else 'are'} still "
            f"there: {cause}",
            count=len(ending),
            present=len(ending),
            first=min(revision for _, revision in ending),
            last=max(revision for _, revision in ending),
            objects=tuple(Subject.of(key, views.revision) for key, _ in ending[:OBJECTS_SHOWN_MAX]),
        )


def _reported(chronicle: Chronicle, pod: ObjectKey, until: Revision, *, reads_events: bool) -> str:
    """The newest cause in Events and logs of a scheduler about a pod, or nothing.

    A pod may have had a namesake, so what was said before a deletion is not about it.
    """
    # Only entries about the pod are read: those of a kind are as many as the history is long.
    for entry in chronicle.newest(chronicle.numbers(subject=pod), until=until):
        if entry.kind == POD_DELETED:
            return ""
        is_warning = entry.kind == "Warning" and entry.text.startswith(_FAILED_SCHEDULING)
        if entry.kind == ATTEMPT_FAILED or (reads_events and is_warning):
            return first_cause(verdicts.without_head(entry.text))
    return ""


def _last_attempts(chronicle: Chronicle, until: Revision) -> dict[ObjectKey, tuple[str, Revision]]:
    """The cause of the last logged attempt of each pod; empty for one that succeeded."""
    tried = [*chronicle.of_kind(ATTEMPT_FAILED, until=until)]
    tried += chronicle.of_kind(ATTEMPT_SUCCEEDED, until=until)
    last: dict[ObjectKey, tuple[str, Revision]] = {}
    for entry in sorted(tried, key=attrgetter("revision")):
        is_failed = entry.kind == ATTEMPT_FAILED
        cause = first_cause(verdicts.without_head(entry.text)) if is_failed else ""
        last[entry.subject] = cause, entry.revision
    return last


def _warned_of(
    chronicle: Chronicle, views: LiveViews, until: Revision
) -> dict[ObjectKey, tuple[str, Revision]]:
    """The messages of Events about unrecorded pods that were not placed or did not start.

    The order of Events is not known, so for a placed pod only Events of its kubelet count.
    """
    refused: dict[ObjectKey, tuple[str, Revision]] = {}
    held_up: dict[ObjectKey, tuple[str, Revision]] = {}
    for entry in chronicle.of_kind("Warning", until=until):
        if entry.subject[:2] != api_resources.PODS:
            continue
        if entry.text.startswith(lives.FAILED_PREPARE):
            held_up[entry.subject] = entry.text, entry.revision
        elif entry.text.startswith(_FAILED_SCHEDULING):
            cause = first_cause(verdicts.without_head(entry.text))
            refused[entry.subject] = cause, entry.revision
    alone = {pod for pod in (*refused, *held_up) if not _is_recorded(chronicle, pod, until)}
    placed = _placed(views) if alone else set()
    waiting = {pod: trouble for pod, trouble in refused.items() if pod not in placed}
    return {pod: trouble for pod, trouble in {**waiting, **held_up}.items() if pod in alone}


def _placed(views: LiveViews) -> set[ObjectKey]:
    """The pods that a scheduler's Events call placed."""
    placed: set[ObjectKey] = set()
    for event in views.objects.events(*api_resources.EVENTS):
        # A long history keeps many Events: others are not decoded.
        if _PLACED in event.body:
            about = core.event_object(event.object).subject
            placed.add(ObjectKey(*api_resources.PODS, about.namespace, about.name))
    return placed


def _is_recorded(chronicle: Chronicle, pod: ObjectKey, until: Revision) -> bool:
    """Whether the pod itself was ever recorded."""
    return any(each.kind in _OF_OBJECTS for each in chronicle.about(pod, until=until))


def _waiting_now(views: LiveViews, namespace: str) -> Iterator[tuple[ObjectKey, JsonObject]]:
    for pod in views.objects.keys(*api_resources.PODS, namespace or None):
        tree = views.objects.get(pod)
        if tree is None or core.needs_no_node(tree):
            continue
        if not meta.is_deleting(tree):
            yield pod, tree


def _refusal(pod: JsonObject) -> str:
    """The first cause in the condition in which the scheduler refuses a pod, or nothing."""
    placed = meta.condition(pod, condition_types.POD_SCHEDULED)
    if placed is None or placed.status != "False":
        return ""
    return first_cause(f"{placed.reason}: {placed.message}")


def _created(chronicle: Chronicle, views: LiveViews, pod: ObjectKey, until: Revision) -> Revision:
    """The revision at which a pod was created; the views of a past moment know its last event."""
    made = [each for each in chronicle.about(pod, until=until) if each.kind == POD_CREATED]
    return made[-1].revision if made else views.objects.created(pod)


def _note(groups: dict[str, _PodsOfCause], cause: str, pod: ObjectKey, revision: Revision) -> None:
    group = groups.get(cause)
    if group is None:
        group = groups[cause] = _PodsOfCause(revision, revision)
    group.note(pod, revision)


def _of_a_kind(groups: Iterable[str]) -> Iterator[list[str]]:
    """The causes that differ only in quoted names, such as that of a claim, together."""
    kinds: dict[str, list[str]] = {}
    for cause in groups:
        kinds.setdefault(without_names(cause), []).append(cause)
    yield from kinds.values()


def _newest(group: _PodsOfCause) -> tuple[Subject, ...]:
    """The newest pods of a group; those that still wait were last seen now."""
    pods = sorted(group.pods.items(), key=lambda one: one[1])[-OBJECTS_SHOWN_MAX:]
    return tuple(Subject.of(pod, revision) for pod, revision in reversed(pods))


def _waiting_text(count: int, still: int, cause: str) -> str:
    if still == count:
        return f"{_pods(count)} {counts.verb(count, 'waits')}: {cause}"
    more = f", {still} still {counts.verb(still, 'waits')}" if still else ""
    return f"{_pods(count)} waited{more}: {cause}"


def _pods(count: int) -> str:
    return counts.of(count, "pod")


_EMPTY = _PodsOfCause(Revision(0), Revision(0))
