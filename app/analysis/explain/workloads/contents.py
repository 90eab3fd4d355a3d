"""The objects that keep a namespace that is being deleted, and what each of them waits for."""

from collections.abc import Callable, Iterator

from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView

SHOWN_MAX = 8
"""The objects that are named, those that cannot go before others; the rest is counted."""


def remaining(
    views: LiveViews, name: str, tree: JsonView, sees: Callable[[ObjectKey], bool]
) -> Iterator[Reason]:
    """The objects in a namespace that is being deleted, each with what it waits for."""
    if not meta.is_deleting(tree):
        return
    held: list[Reason] = []
    going: list[ObjectKey] = []
    for group, resource in views.objects.resources():
        for key in views.objects.keys(group, resource, name):
            event = views.objects.event(key)
            if event is None or not sees(key):
                continue
            why = _waits_for(key, event.object)
            if not why:
                going.append(key)
                continue
            text = f"{_NOUNS.get(key[:2], resource)} {key.name} is still there: {why}"
            held.append(Reason(text=text, revision=event.revision, about=key, is_kept=True))
    yield from held[:SHOWN_MAX]
    if (left := len(held) - SHOWN_MAX) > 0:
        waits = counts.verb(left, "waits")
        text = f"{counts.of(left, 'more object')} {waits} for something"
        yield Reason(text=text, is_kept=True)
    if going:
        names = [f"{_NOUNS.get(key[:2], key.resource)} {key.name}" for key in going]
        yield Reason(text=f"still to be deleted: {listed(names, len(names))}", is_kept=True)


_NOUNS = {
    api_resources.PODS: "pod",
    api_resources.RESOURCE_CLAIMS: "claim",
    api_resources.RESOURCE_CLAIM_TEMPLATES: "template",
}


def _waits_for(key: ObjectKey, tree: JsonView) -> str:
    """The reason why a deleted object still exists; empty if nothing keeps it."""
    names = meta.finalizers(tree)
    parts = (
        [f"{counts.plural(len(names), 'finalizer')} {listed(names, len(names))}"] if names else []
    )
    if key[:2] == api_resources.RESOURCE_CLAIMS:
        users = [each.name for each in dra.consumers(tree)]
        parts += [f"reserved for {listed(users, len(users))}"] if users else []
    if key[:2] == api_resources.PODS and core.node_name(tree) and not core.is_finished(tree):
        parts.append(f"the kubelet of node {core.node_name(tree)} has not ended it")
    return ", ".join(parts)
