"""Objects of the cluster that are being deleted, and that a finalizer keeps: they count on."""

from collections.abc import Iterator

from app.analysis.explain.reasons import listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import meta

_GO_ON = {
    api_resources.RESOURCE_SLICES: ("ResourceSlice", "devices of {it} can still be allocated"),
    api_resources.DEVICE_CLASSES: ("DeviceClass", "claims can still get devices of {it}"),
    api_resources.DEVICE_TAINT_RULES: ("DeviceTaintRule", "devices are still tainted by {it}"),
    api_resources.RESOURCE_SLICE_PATCHES: (
        "ResourceSlicePatch",
        "devices are still changed by {it}",
    ),
    api_resources.NODES: ("Node", "pods can still be placed on {it}"),
}
"""The kinds, and the effect that objects of them have until they are gone."""


def objects(views: LiveViews) -> Iterator[Finding]:
    """One finding for each kind and finalizers."""
    for kind, (noun, effect) in _GO_ON.items():
        groups: dict[tuple[str, ...], list[tuple[ObjectKey, Event]]] = {}
        for key in views.objects.keys(*kind):
            event = views.objects.event(key)
            if event is not None and meta.is_deleting(event.object):
                groups.setdefault(tuple(meta.finalizers(event.object)), []).append((key, event))
        for names, kept in groups.items():
            if names:
                yield _finding(views, noun, effect, names, kept)


def _finding(
    views: LiveViews,
    noun: str,
    effect: str,
    names: tuple[str, ...],
    kept: list[tuple[ObjectKey, Event]],
) -> Finding:
    count = len(kept)
    text = f"{counts.of(count, noun)} {counts.plural(count, 'is')} being deleted and kept by "
    text += f"{counts.plural(len(names), 'finalizer')} {listed(names, len(names))}: "
    text += effect.format(it="it" if count == 1 else "them")
    revisions = [event.revision for _, event in kept]
    newest = sorted(kept, key=lambda one: -one[1].revision)[:OBJECTS_SHOWN_MAX]
    return Finding(
        kind=FindingKind.KEPT_OBJECTS,
        severity=Severity.WARNING,
        text=text,
        count=count,
        present=count,
        first=min(revisions),
        last=max(revisions),
        objects=tuple(Subject.of(key, views.revision) for key, _ in newest),
    )
