"""A PodDisruptionBudget: the pods that it protects, and how many more may be evicted.

A drain waits for as long as a budget allows no eviction, and only its client sees that.
"""

from collections.abc import Collection, Iterator

from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.values import api_resources, counts, json_tree, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView


def of_budget(views: Views, key: ObjectKey, tree: JsonObject) -> Iterator[Reason]:
    """The protected pods, those of them that are not ready, and what the status allows."""
    selector = disruption_budgets.selector_of(tree)
    pods = {
        each.name: pod
        for each in views.objects.keys(*api_resources.PODS, namespace=key.namespace)
        if (pod := views.objects.get(each)) is not None
        and selector is not None
        and selector.matches(meta.labels(pod))
    }
    if not pods:
        yield Reason(text="it selects no pod, so it protects none", is_kept=True)
        return
    unready = [name for name, pod in pods.items() if not disruption_budgets.is_ready(pod)]
    noun, verb = ("pod", "is") if len(unready) == 1 else ("pods", "are")
    reason = Reason(text=f"{noun} {listed(unready, len(unready))} {verb} not ready", is_kept=True)
    text = f"it protects {counts.of(len(pods), 'pod')}: {listed([*pods], len(pods))}"
    yield Reason(text=text, children=(reason,) if unready else (), count=len(pods), is_kept=True)
    status = meta.status(tree)
    if "observedGeneration" not in status:
        return
    healthy, wanted, allowed = (
        json_tree.integer(status, name) or 0
        for name in ("currentHealthy", "desiredHealthy", "disruptionsAllowed")
    )
    text = f"{counts.of(healthy, 'pod')} healthy, {wanted} wanted: "
    if healthy < wanted:
        text += f"{counts.of(wanted - healthy, 'pod')} missing, so no eviction is allowed"
    elif allowed:
        text += f"{counts.of(allowed, 'pod')} may be evicted now"
    else:
        text += "no pod may be evicted now"
    yield Reason(text=text, is_kept=True)


def passed_over(before: Views, pod: ObjectKey, tree: JsonView) -> Iterator[Reason]:
    """The budgets of a pod that allowed no eviction when it was evicted for a taint.

    Parity: controllers.md 1.5.
    """
    for key in before.objects.keys(*api_resources.POD_DISRUPTION_BUDGETS, pod.namespace):
        if allows_none(before.objects.get(key) or {}, tree):
            text = f"PodDisruptionBudget {key.namespace}/{key.name} allowed no eviction then; who "
            text += "evicts for taints of devices and nodes asks no budget"
            yield Reason(text=text, about=key, is_kept=True, rests_on=(key,))


def allows_none(budget: JsonView, pod: JsonView) -> bool:
    """Whether a budget protects a pod and allows no eviction, as its status says."""
    status, selector = meta.status(budget), disruption_budgets.selector_of(budget)
    if "observedGeneration" not in status or json_tree.integer(status, "disruptionsAllowed"):
        return False
    return selector is not None and selector.matches(meta.labels(pod))


def on_node(views: Views, node: str) -> Iterator[Reason]:
    """The budgets that allow no eviction now, with the pods on a node that a drain leaves there."""
    for key, kept in keeping(views, {node}):
        pods = [pod.name for pod in kept[node]]
        text = f"PodDisruptionBudget {key.namespace}/{key.name} allows no eviction now, so a "
        text += f"drain leaves {counts.plural(len(pods), 'pod')} {listed(pods, len(pods))} here"
        yield Reason(text=text, count=len(pods), about=key, is_kept=True, rests_on=(key,))


def keeping(
    views: Views, nodes: Collection[str], namespace: str | None = None
) -> Iterator[tuple[ObjectKey, dict[str, list[ObjectKey]]]]:
    """The budgets that allow no eviction now, with the pods that they keep on these nodes, by node.

    The API evicts pods that are not ready or have ended without asking their budget, or may do so.
    A drain does not evict mirror pods and those of DaemonSets, whatever their budget allows.
    """
    running: dict[str, list[tuple[ObjectKey, JsonObject]]] = {}
    for key in views.objects.keys(*api_resources.PODS, namespace) if nodes else ():
        pod = views.objects.get(key) or {}
        is_here = core.node_name(pod) in nodes and not core.is_finished(pod)
        if is_here and disruption_budgets.is_ready(pod) and not _is_left_anyway(pod):
            running.setdefault(key.namespace, []).append((key, pod))
    for key in views.objects.keys(*api_resources.POD_DISRUPTION_BUDGETS) if running else ():
        tree = views.objects.get(key) or {}
        status = meta.status(tree)
        allowed = json_tree.integer(status, "disruptionsAllowed")
        selector = disruption_budgets.selector_of(tree)
        if "observedGeneration" not in status or allowed or selector is None:
            continue
        kept: dict[str, list[ObjectKey]] = {}
        for place, pod in running.get(key.namespace, ()):
            if selector.matches(meta.labels(pod)):
                kept.setdefault(core.node_name(pod), []).append(place)
        if kept:
            yield key, kept


def _is_left_anyway(pod: JsonObject) -> bool:
    owner = meta.controller(pod)
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return meta.is_deleting(pod) or is_daemon or bool(meta.annotation(pod, well_known.MIRROR_POD))
