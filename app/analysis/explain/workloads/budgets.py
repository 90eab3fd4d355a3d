"""A PodDisruptionBudget: the pods that it protects, and how many more may be evicted."""

from collections.abc import Iterator

from app.analysis.explain.reasons import Reason, listed
from app.domain.controllers.plan import Views
from app.domain.log import ObjectKey
from app.domain.objects.kinds import disruption_budgets
from app.domain.values import api_resources, counts, json_tree
from app.domain.values.fields import meta
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
