"""Findings about nodes: not ready with devices in use, or cordoned with pods that budgets keep."""

from collections import Counter
from collections.abc import Iterator

from app.analysis.explain.workloads import budgets
from app.analysis.findings.report import OBJECTS_SHOWN_MAX, Finding, FindingKind, Severity, Subject
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources, condition_types, counts
from app.domain.values.fields import core, dra, meta


def troubled(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """All findings of this module."""
    yield from not_ready(views, namespace)
    yield from kept_by_budgets(views, namespace)


def not_ready(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """Nodes that are not ready and have pods with claims, grouped by their reason."""
    claims, pods = _kept(views, namespace)
    groups: dict[str, list[tuple[ObjectKey, Revision]]] = {}
    for key in views.objects.keys(*api_resources.NODES):
        tree = views.objects.get(key) or {}
        ready = meta.condition(tree, condition_types.READY)
        if ready is None or ready.status == "True" or not claims[key.name]:
            continue
        event = views.objects.event(key)
        revision = Revision(0) if event is None else event.revision
        why = ": ".join(part for part in (ready.reason, ready.message.rstrip(".")) if part)
        groups.setdefault(why, []).append((key, revision))
    for why, nodes in groups.items():
        names = [key.name for key, _ in nodes]
        revisions = [revision for _, revision in nodes]
        held = sum(claims[name] for name in names)
        users = sum(pods[name] for name in names)
        are = counts.verb(len(nodes), "is")
        has = counts.verb(users, "has")
        yield Finding(
            kind=FindingKind.UNREADY_NODES,
            severity=Severity.WARNING,
            text=f"{counts.of(len(nodes), 'node')} {are} not ready{f' ({why})' if why else ''}: "
            f"{counts.of(users, 'pod')} there still {has} {counts.of(held, 'claim')}",
            count=len(nodes),
            present=len(nodes),
            first=min(revisions),
            last=max(revisions),
            objects=tuple(Subject.of(*each) for each in nodes[:OBJECTS_SHOWN_MAX]),
        )


def kept_by_budgets(views: LiveViews, namespace: str = "") -> Iterator[Finding]:
    """Cordoned nodes with pods that a drain leaves there, one finding for each budget."""
    cordoned = {
        event.key.name: event
        for key in views.objects.keys(*api_resources.NODES)
        if (event := views.objects.event(key)) is not None and core.unschedulable(event.object)
    }
    for budget, kept in budgets.keeping(views, cordoned.keys(), namespace or None):
        pods = sum(len(each) for each in kept.values())
        nodes = sorted((cordoned[name] for name in kept), key=lambda event: -event.revision)
        has = "have" if len(nodes) > 1 else "has"
        yield Finding(
            kind=FindingKind.KEPT_NODES,
            severity=Severity.WARNING,
            text=f"{counts.of(len(nodes), 'cordoned node')} {has} {counts.of(pods, 'pod')} that a "
            f"drain leaves there: PodDisruptionBudget {budget.namespace}/{budget.name} allows no "
            "eviction now",
            count=len(nodes),
            present=len(nodes),
            first=nodes[-1].revision,
            last=nodes[0].revision,
            objects=tuple(
                Subject.of(each.key, each.revision) for each in nodes[:OBJECTS_SHOWN_MAX]
            ),
        )


def _kept(views: LiveViews, namespace: str) -> tuple[Counter[str], Counter[str]]:
    """The numbers of allocated claims and of their pods on each node."""
    claims: Counter[str] = Counter()
    users: dict[str, str] = {}
    for key in views.objects.keys(*api_resources.PODS, namespace or None):
        tree = views.objects.get(key) or {}
        if core.node_name(tree) and not core.is_finished(tree):
            users[meta.uid(tree)] = core.node_name(tree)
    with_claims: set[str] = set()
    for key in views.objects.keys(*api_resources.RESOURCE_CLAIMS, namespace or None):
        tree = views.objects.get(key) or {}
        own = {each.uid for each in dra.consumers(tree)} & users.keys()
        if dra.allocation(tree) is not None:
            claims.update({users[uid] for uid in own})
            with_claims |= own
    return claims, Counter(users[uid] for uid in with_claims)
