"""A PodDisruptionBudget: the pods that it protects, and how many more may be evicted.

A drain waits for as long as a budget allows no eviction, and only its client is told so.
"""

from collections.abc import Iterator

from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.values import api_resources, counts, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject


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


def on_node(views: Views, node: str) -> Iterator[Reason]:
    """The budgets that allow no eviction now, with the pods on a node that a drain leaves there.

    The API evicts pods that are not ready or have ended without asking their budget, or may do so.
    """
    running: dict[str, dict[str, JsonObject]] = {}
    for key in views.objects.keys(*api_resources.PODS):
        pod = views.objects.get(key) or {}
        is_here = core.node_name(pod) == node and not core.is_finished(pod)
        if is_here and not meta.is_deleting(pod) and disruption_budgets.is_ready(pod):
            running.setdefault(key.namespace, {})[key.name] = pod
    for key in views.objects.keys(*api_resources.POD_DISRUPTION_BUDGETS) if running else ():
        tree = views.objects.get(key) or {}
        status = meta.status(tree)
        allowed = json_tree.integer(status, "disruptionsAllowed")
        selector = disruption_budgets.selector_of(tree)
        if "observedGeneration" not in status or allowed or selector is None:
            continue
        pods = running.get(key.namespace, {})
        kept = [name for name, pod in pods.items() if selector.matches(meta.labels(pod))]
        if kept:
            text = f"poddisruptionbudget {key.namespace}/{key.name} allows no eviction now, so a "
            text += f"drain leaves {counts.plural(len(kept), 'pod')} {listed(kept, len(kept))} here"
            yield Reason(text=text, count=len(kept), about=key, is_kept=True, rests_on=(key,))
