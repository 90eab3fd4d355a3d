"""Pods whose containers do not get the devices of their claims, or get devices that are not well.

Nobody waits in such a pod, and no controller reports it.
"""

from collections.abc import Iterator, Sequence

from app.analysis.explain.observed import containers
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import Event
from app.domain.values import api_resources, counts
from app.domain.values.fields import core

_Case = tuple[Event, str]
"""The last event of a pod, and what is wrong in it."""


def of_pods(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
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


def _finding(
    views: LiveViews, kind: FindingKind, severity: Severity, sentence: str, cases: Sequence[_Case]
) -> Iterator[Finding]:
    """One finding about all these pods, with the words about the one that changed last."""
    if not cases:
        return
    newest = sorted(cases, key=lambda one: -one[0].revision)
    keys = list(dict.fromkeys(event.key for event, _ in newest))
    count = len(keys)
    text = sentence.format(f"{counts.of(count, 'pod')} {counts.plural(count, 'has')}")
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
