"""Cordoned nodes: the waiting pods that such a node would take if it were not cordoned."""

from app.analysis.explain import node_answers, untried, waits
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.values import api_resources, counts
from app.domain.values.fields import core, meta
from app.domain.values.timestamps import Instant


def kept_out(
    rules: SchedulerRules, views: LiveViews, name: str, pods_max: int, now: Instant
) -> Steps[tuple[Reason, ...]]:
    """The pods that wait for a node to be uncordoned; the newest `pods_max` are looked at."""
    pods = {
        key: tree
        for key in views.objects.keys(*api_resources.PODS)
        if (tree := views.objects.get(key)) is not None
        and not core.needs_no_node(tree)
        and not meta.is_deleting(tree)
    }
    if not pods:
        return ()
    nodes = yield from node_answers.indexing(rules, views)
    newest = sorted(pods, key=lambda key: -views.objects.created(key))
    opening = node_answers.uncordoning(name), ""
    kept: list[str] = []
    for key in newest[:pods_max]:
        yield
        tree = pods[key]
        if (
            untried.cause(views, tree, rules)
            or waits.cause(views, tree, now, rules.binding_timeout)[0]
        ):
            continue
        answers = node_answers.answers(rules, views, nodes, tree, now=now, node=name, opened_max=1)
        opened = [one.opened for one in answers if one.opened is not None]
        if any((one.change, one.text) == opening for one in opened):
            kept.append(f"{key.namespace}/{key.name}")
    reasons: list[Reason] = []
    if kept:
        fit = "would fit" if len(kept) == 1 else "would each fit"
        text = f"but for that, {counts.of(len(kept), 'waiting pod')} {fit} here: "
        text += listed(kept, len(kept))
        reasons.append(Reason(text=text, count=len(kept), is_kept=True))
    if (rest := len(pods) - pods_max) > 0:
        was = counts.verb(rest, "was")
        text = f"{counts.of(rest, 'more waiting pod')} {was} not looked at"
        reasons.append(Reason(text=text, count=rest))
    return tuple(reasons)
