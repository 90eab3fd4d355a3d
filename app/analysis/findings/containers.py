"""Pods whose containers get no devices of their claims, or get unhealthy devices.

Nobody waits in such a pod, and no controller reports it. The same is true of claims whose drivers
report devices as not ready, and of configurations that no driver reads.
"""

from collections.abc import Iterator, Sequence

from app.analysis.explain import waits
from app.analysis.explain.observed import containers, drivers_reports
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.controllers.resources import pod_key
from app.domain.log import Event
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra

_Case = tuple[Event, str]
"""The last event of a pod or claim, and what is wrong in it."""


def of_devices(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """All findings of this module."""
    yield from _of_pods(views, namespace)
    yield from _of_claims(views, namespace)


def _of_pods(views: LiveViews, namespace: str) -> Iterator[Finding]:
    """Findings about the devices of pods that have a node and have not finished."""
    mistaken: list[_Case] = []
    unnamed: list[_Case] = []
    unhealthy: list[_Case] = []
    for key in views.objects.keys(*api_resources.PODS, namespace or None):
        event = views.objects.event(key)
        if event is None or not containers.concerns(event.object):
            continue
        if not core.node_name(event.object) or core.is_finished(event.object):
            continue
        unhealthy += [(event, text) for text in containers.unhealthy(event.object)][:1]
        for one in containers.unreached(views, event.object):
            (mistaken if one.is_mistake else unnamed).append((event, one.text))
    kind = FindingKind.UNREACHED_DEVICES
    sentence = "{} a container that names a request which its claim does not have"
    yield from _finding(views, kind, Severity.WARNING, sentence, mistaken)
    sentence = "{} a claim that no container names"
    yield from _finding(views, kind, Severity.NOTICE, sentence, unnamed)
    sentence = "{} a device that is not healthy"
    yield from _finding(views, FindingKind.UNHEALTHY_DEVICES, Severity.WARNING, sentence, unhealthy)


def _of_claims(views: LiveViews, namespace: str) -> Iterator[Finding]:
    """Findings about what drivers report of the devices of claims, and about configurations."""
    not_ready: list[_Case] = []
    unread: list[_Case] = []
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        event = views.objects.event(key)
        if event is None:
            continue
        unread += [(event, text) for text in drivers_reports.unread(views, event.object)][:1]
        bad = next(drivers_reports.not_ready(event.object), None)
        # What a pod waits for before it is bound is said of the pod.
        if bad is not None and not _is_awaited(views, event):
            not_ready.append((event, f"{bad[0].text}: {waits.condition_text(bad[1])}"))
    sentence = "{} a device that its driver reports as not ready"
    kind = FindingKind.UNHEALTHY_DEVICES
    yield from _finding(views, kind, Severity.WARNING, sentence, not_ready, noun="claim")
    sentence = "{} a configuration that no driver reads"
    kind = FindingKind.UNREAD_CONFIGURATIONS
    yield from _finding(views, kind, Severity.NOTICE, sentence, unread, noun="claim")


def _is_awaited(views: LiveViews, claim: Event) -> bool:
    """Whether a pod waits for conditions of the claim's devices before it is bound to a node."""
    tree = claim.object
    if not any(result.binding_conditions for result in dra.results(tree)):
        return False
    keys = [pod_key(claim.key.namespace, each.name) for each in dra.consumers(tree)]
    return not any(core.node_name(views.objects.get(key) or {}) for key in keys)


def _finding(
    views: LiveViews,
    kind: FindingKind,
    severity: Severity,
    sentence: str,
    cases: Sequence[_Case],
    noun: str = "pod",
) -> Iterator[Finding]:
    """One finding about all these objects, with the words about the one that changed last."""
    if not cases:
        return
    newest = sorted(cases, key=lambda one: -one[0].revision)
    keys = list(dict.fromkeys(event.key for event, _ in newest))
    count = len(keys)
    text = sentence.format(f"{counts.of(count, noun)} {counts.verb(count, 'has')}")
    yield Finding(
        kind=kind,
        severity=severity,
        text=f"{text}: {newest[0][1]}",
        count=count,
        present=count,
        first=newest[-1][0].revision,
        last=newest[0][0].revision,
        objects=tuple(Subject.of(key, views.revision) for key in keys[:OBJECTS_SHOWN_MAX]),
    )
