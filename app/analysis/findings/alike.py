"""Waiting pods that ask for the same: one of them tells the causes of all."""

from collections.abc import Mapping

from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision, chain
from app.domain.values.fields import core, meta


def subjects(views: LiveViews, pods: Mapping[ObjectKey, Revision]) -> tuple[Subject, ...]:
    """The newest waiting pod of each kind, and then the newest of all, at their revisions.

    Pods of a kind have a namespace, and an owner or a spec, in common.
    """
    # Of those with one revision, such as all that wait still, the last was noted last.
    newest_first = sorted(pods.items(), key=lambda one: one[1])[::-1]
    kinds: dict[tuple[str, str | bytes], list[ObjectKey]] = {}
    for pod, _ in newest_first:
        tree = views.objects.get(pod)
        if tree is not None and not core.needs_no_node(tree):
            owner = meta.controller(tree)
            same = chain.canonical_json(meta.spec(tree)) if owner is None else owner.uid
            kinds.setdefault((pod.namespace, same), []).append(pod)
    alike: dict[ObjectKey, int | None] = {}
    for first, *others in kinds.values():
        alike |= {first: len(others), **dict.fromkeys(others)}
    # Those that wait no more come last.
    newest_first.sort(key=lambda one: (alike.get(one[0], 0) is None, one[0] not in alike))
    return tuple(
        Subject.of(pod, revision, alike.get(pod, 0))
        for pod, revision in newest_first[:OBJECTS_SHOWN_MAX]
    )
