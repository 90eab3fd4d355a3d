"""The conditions of custom objects that were made for a workload or a pod which is held back.

A queue that admits workloads keeps an object for each, which says why it is not admitted.
"""

from collections.abc import Iterator

from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView
from app.domain.values.texts import kind_words


def reasons(views: LiveViews, tree: JsonView) -> Iterator[Reason]:
    """The conditions with status False of the custom objects that a held back object owns."""
    for key in _owned(views, tree):
        event = views.objects.event(key)
        said = [
            f"{each.type} is False ({each.reason}: {each.message})"
            for each in meta.conditions(event.object if event is not None else {})
            if each.status == "False" and each.message
        ]
        if event is None or not said:
            continue
        kind = kind_words.in_sentence(str(event.object.get("kind", key.resource)))
        yield Reason(
            text=f"{kind} {key.name} says: {'; '.join(said[:NAMES_MAX])}",
            revision=event.revision,
            about=key,
            is_kept=True,
            rests_on=(key,),
        )


def _owned(views: LiveViews, tree: JsonView) -> Iterator[ObjectKey]:
    """The objects of custom kinds with an object among their owners, in its namespace."""
    uid = meta.uid(tree)
    for place in views.objects.resources():
        if not uid or registry.find(*place) is not None:
            continue
        for key in views.objects.keys(*place, meta.namespace(tree)):
            if any(owner.uid == uid for owner in meta.owners(views.objects.get(key) or {})):
                yield key
