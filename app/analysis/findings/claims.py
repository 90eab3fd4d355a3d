"""Claims that are stuck in deletion, are unused, or did not get their first alternative."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from app.analysis.explain import sources
from app.analysis.explain import stuck as stuck_claims
from app.analysis.explain.claims import users_are_shown
from app.analysis.explain.observed import drivers_reports
from app.analysis.explain.reasons import NAMES_MAX, listed
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, dra, meta

_SEVERITY = {
    stuck_claims.IN_USE: Severity.NOTICE,
    stuck_claims.UNPROTECTED: Severity.ERROR,
    stuck_claims.OTHERS: Severity.WARNING,
    stuck_claims.UNSHOWN: Severity.WARNING,
    stuck_claims.CONSUMER_GONE: Severity.WARNING,
    stuck_claims.CONSUMER_ENDED: Severity.WARNING,
}


def stuck(views: LiveViews, namespace: str = "", *, has_pods: bool = True) -> Iterator[Finding]:
    """One finding for each way in which claims are stuck.

    `has_pods` is true if pods were recorded; if not, no pod is known to be gone.
    """
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        tree, event = views.objects.get(key), views.objects.event(key)
        if tree is None or event is None:
            continue
        cause = stuck_claims.cause(views, key, tree)
        if cause == stuck_claims.CONSUMER_GONE and _may_be_unseen(views, key, has_pods=has_pods):
            continue
        if cause:
            groups.setdefault(cause, []).append((key, event.revision))
    for cause, claims in groups.items():
        text = f"{counts.of(len(claims), 'claim')}: {cause}"
        if cause == stuck_claims.UNPROTECTED:
            trees = [views.objects.get(key) or {} for key, _ in claims]
            names = [*dict.fromkeys(name for tree in trees for name in meta.finalizers(tree))]
            text += f": {listed(names, len(names))}"
        if cause == stuck_claims.OTHERS:
            trees = [views.objects.get(key) or {} for key, _ in claims]
            text_of = stuck_claims.consumer_text
            names = [*dict.fromkeys(text_of(one) for tree in trees for one in dra.consumers(tree))]
            text += f", whose controllers have to end it: {listed(names, len(names))}"
        yield _finding(views, FindingKind.STUCK_CLAIMS, _SEVERITY[cause], text, claims)


def unused(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """Claims that only wait for a pod, and those of which only the request is known."""
    yield from _requested(views, namespace)
    waiting: list[tuple[ObjectKey, Revision]] = []
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        tree, event = views.objects.get(key), views.objects.event(key)
        if tree is None or event is None or dra.allocation(tree) is not None:
            continue
        is_shown = not sources.is_only_requested(event)
        if is_shown and not meta.is_deleting(tree) and not meta.owners(tree):
            waiting.append((key, event.revision))
    if not waiting:
        return
    named = set(_named_claims(views, has_ended=False))
    waiting = [claim for claim in waiting if (claim[0].namespace, claim[0].name) not in named]
    waiting = [claim for claim in waiting if _is_known_unused(views, claim[0])]
    by_ended = set(_named_claims(views, has_ended=True)) if waiting else set()
    groups: dict[bool, list[tuple[ObjectKey, Revision]]] = {}
    for claim in waiting:
        has_ended = (claim[0].namespace, claim[0].name) in by_ended
        groups.setdefault(has_ended, []).append(claim)
    for has_ended, claims in groups.items():
        one = len(claims) == 1
        them = "it" if one else "them"
        no_pod = f"each pod that names {them} has ended" if has_ended else f"no pod names {them}"
        text = (
            f"{counts.of(len(claims), 'claim')} {'waits' if one else 'wait'} for a pod: {no_pod}, "
            "and a claim gets its devices only with a pod"
        )
        yield _finding(views, FindingKind.UNUSED_CLAIMS, Severity.NOTICE, text, claims)


def _requested(views: LiveViews, namespace: str) -> Iterator[Finding]:
    """Claims of which only the request that created them was recorded."""
    keys = views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None)
    events = [(key, event) for key in keys if (event := views.objects.event(key)) is not None]
    claims = [(key, event.revision) for key, event in events if sources.is_only_requested(event)]
    if claims:
        one = len(claims) == 1
        text = (
            f"{counts.of(len(claims), 'claim')} {'is' if one else 'are'} known only from the "
            f"{'request' if one else 'requests'} that created {'it' if one else 'them'}: the "
            f"recording does not show whether {'it has' if one else 'they have'} devices"
        )
        yield _finding(views, FindingKind.REQUESTED_CLAIMS, Severity.NOTICE, text, claims)


def _may_be_unseen(views: LiveViews, claim: ObjectKey, *, has_pods: bool) -> bool:
    """Whether the pods of a claim may be there: none was recorded, or only what was printed."""
    event = views.objects.event(claim)
    if event is None or not sources.is_recorded([event]):
        return False
    pods_of = views.objects.keys(*api_resources.PODS, claim.namespace)
    shown = [each for key in pods_of if (each := views.objects.event(key)) is not None]
    return not has_pods or any(sources.is_printed([each]) for each in shown)


def _is_known_unused(views: LiveViews, claim: ObjectKey) -> bool:
    """False where a recording does not show which claims its pods use."""
    event = views.objects.event(claim)
    is_recorded = event is not None and sources.is_recorded([event])
    return not is_recorded or users_are_shown(views, claim.namespace)


def settled_for_less(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """Claims that got a later alternative of a request, by request and alternatives."""
    groups: dict[tuple[str, str, str], list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        tree, event = views.objects.get(key), views.objects.event(key)
        if tree is None or event is None:
            continue
        chosen = {result.request.partition("/")[::2] for result in dra.results(tree)}
        for request in dra.requests(tree) if any(name for _, name in chosen) else ():
            for name in sorted(name for main, name in chosen if main == request.name and name):
                first = next(iter(request.first_available)).name if request.first_available else ""
                if first and name != first:
                    group = groups.setdefault((request.name, first, name), [])
                    group.append((key, event.revision))
    for (request_name, first, name), claims in groups.items():
        text = f"{counts.of(len(claims), 'claim')} got alternative {name} of request {request_name}"
        text += f", not {first}, which comes first"
        trees = [views.objects.get(key) or {} for key, _ in claims]
        lines = dict.fromkeys(text for tree in trees for text in drivers_reports.unconfigured(tree))
        kind = FindingKind.LATER_ALTERNATIVES
        made = _finding(views, kind, Severity.NOTICE, text, claims)
        yield replace(made, causes=tuple(lines)[:NAMES_MAX])


def _finding(
    views: LiveViews,
    kind: FindingKind,
    severity: Severity,
    text: str,
    claims: Sequence[tuple[ObjectKey, Revision]],
) -> Finding:
    """A finding about claims in their present state; names those that changed last."""
    newest = sorted(claims, key=lambda claim: -claim[1])[:OBJECTS_SHOWN_MAX]
    return Finding(
        kind=kind,
        severity=severity,
        text=text,
        count=len(claims),
        present=len(claims),
        first=min(revision for _, revision in claims),
        last=max(revision for _, revision in claims),
        objects=tuple(Subject.of(key, views.revision) for key, _ in newest),
    )


def _named_claims(views: LiveViews, *, has_ended: bool) -> Iterator[tuple[str, str]]:
    """The namespace and name of claims that pods name: finished ones, or the others."""
    for key in views.objects.keys(*api_resources.PODS):
        tree = views.objects.get(key)
        if tree is not None and core.is_finished(tree) == has_ended:
            for named in pods.named_claims(pods.facts(tree)):
                yield key.namespace, named.name or ""
