"""Events that components other than scheduler and kubelet wrote about a waiting pod.

An autoscaler says that no node group has the devices, a queue that its quota is used up. These
words are shown as they were recorded; nothing is computed from them.
"""

from collections.abc import Iterator

from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.domain.log import Event
from app.domain.values import api_resources, event_reasons
from app.domain.values.fields import core, entries, meta
from app.domain.values.fields.core import EventObject
from app.domain.values.json_tree import JsonView
from projections.objects import ObjectsProjection

_SAID_ELSEWHERE = frozenset(
    (event_reasons.FAILED_SCHEDULING, event_reasons.SCHEDULED, event_reasons.FAILED_CLAIM_CREATION)
)
"""Reasons of Events whose words stand in other lines of an explanation."""

_KUBELET = "kubelet"


def about(objects: ObjectsProjection, pod: JsonView) -> Iterator[Reason]:
    """The newest Event of each component and reason about a pod, the newest first."""
    newest: dict[tuple[str, str], tuple[Event, EventObject]] = {}
    for event in objects.events(*api_resources.EVENTS, meta.namespace(pod)):
        event_object = core.event_object(event.object)
        reporter = _reporter(event_object)
        if (
            event_object.reason in _SAID_ELSEWHERE
            or reporter in ("", _KUBELET)
            or not event_object.text
        ):
            continue
        subject = event_object.subject
        is_named = subject.kind == "Pod" and subject.name == meta.name(pod)
        if not is_named or subject.uid not in ("", meta.uid(pod)):
            continue
        known = newest.get((reporter, event_object.reason))
        if known is None or event.revision > known[0].revision:
            newest[reporter, event_object.reason] = event, event_object
    latest = sorted(newest.values(), key=lambda one: -one[0].revision)
    for event, event_object in latest[:NAMES_MAX]:
        count = event_object.occurrences
        times = f", {count} times" if count > 1 else ""
        reason = f"{event_object.reason}: " if event_object.reason else ""
        yield Reason(
            text=f"{_reporter(event_object)} said{times}: {reason}{event_object.text}",
            revision=event.revision,
            about=event.key,
            is_kept=True,
        )


def _reporter(event_object: EventObject) -> str:
    return (
        event_object.source.component
        or event_object.reporting_controller
        or event_object.reporting_component
    )


def of_gates(pod: JsonView) -> Iterator[Reason]:
    """The labels of a gated pod that are of the domain of a gate: they say who removes the gate."""
    for name in map(entries.name, core.scheduling_gates(pod)):
        domain, slash, _ = name.partition("/")
        labels = [
            f"{label}={value}"
            for label, value in sorted(meta.labels(pod).items())
            if slash and label.partition("/")[0] == domain
        ]
        if labels:
            text = f"who set gate {name} has to remove it; labels of the pod of the same domain: "
            yield Reason(text=text + ", ".join(labels[:NAMES_MAX]), is_kept=True)
