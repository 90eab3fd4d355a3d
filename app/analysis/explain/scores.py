"""The scores of nodes, computed again: why the scheduler chose one of several feasible nodes."""

from collections.abc import Generator, Iterator, Sequence

from app.analysis.explain import node_answers
from app.analysis.explain.reasons import Reason
from app.analysis.explain.tallies import nodes_text
from app.domain.controllers.plan import MergingViews
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeInfo
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources.pod_claims import ClaimsNotReady
from app.domain.controllers.scheduling.scheduling_cycle import attempt
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.controllers.scheduling.scheduling_cycle.cycle import Aborted
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

SHOWN_MAX = 5
"""The number of nodes shown with their totals, the best ones; always includes the chosen one."""


def reasons(
    rules: SchedulerRules,
    views: MergingViews,
    pod: JsonObject,
    chosen: str,
    *,
    now: Instant,
    start: int,
) -> Generator[None, None, list[Reason]]:
    """The totals of the nodes that fitted, the best first; `views` are those of the decision.

    Empty when the repeated attempt does not find the chosen node, or finds no other node.
    """
    totals = yield from by_node(rules, views, pod, now=now, start=start)
    if chosen not in totals or len(totals) < 2:
        return []
    return [*_compared(list(totals), list(totals.values()), chosen)]


def by_node(
    rules: SchedulerRules, views: MergingViews, pod: JsonObject, *, now: Instant, start: int = 0
) -> Generator[None, None, dict[str, int]]:
    """The total score of each node that fits, in the order in which nodes are asked."""
    nodes = yield from node_answers.indexing(rules, views)
    spec = pod_spec.read(pod)
    try:
        claims = pod_claims.resolve(views.objects, spec.facts)
    except ClaimsNotReady:
        return {}
    cycle = attempt.begin(rules, views, nodes, Verdicts(), spec, claims, now)
    order = nodes.order()
    if not order:
        return {}
    first = start % len(order)
    wanted = attempt.nodes_to_find(len(order))
    feasible: list[NodeInfo] = []
    for info in (*order[first:], *order[:first]):
        yield
        try:
            if cycle.check(info, cycle.verdict(info)) is None:
                feasible.append(info)
        except Aborted:
            return {}
        if len(feasible) >= wanted:
            break
    names = [info.name for info in feasible]
    return dict(zip(names, attempt.scores(cycle, feasible), strict=True)) if names else {}


def _compared(names: Sequence[str], totals: Sequence[int], chosen: str) -> Iterator[Reason]:
    ranked = sorted(zip(names, totals, strict=True), key=lambda one: (-one[1], one[0] != chosen))
    own = dict(ranked)[chosen]
    better = sum(total > own for _, total in ranked)
    equal = sum(total == own for _, total in ranked) - 1
    fitted = nodes_text(len(names))
    if better:
        text = f"{chosen} was taken with a score of {own}, though {nodes_text(better)} had more"
        issues: tuple[str, ...] = ()
    elif equal:
        text = f"{chosen} and {counts.of(equal, 'other node')} have the highest score of {fitted} "
        text += "that fitted; the order of upstream's heap decides between them"
        issues = ("C17",)
    else:
        text = f"{chosen} has the highest score of {fitted} that fitted"
        issues = ()
    shown = [one for one in ranked[:SHOWN_MAX] if one[0] != chosen][: SHOWN_MAX - 1]
    lines = [Reason(text=f"{chosen}: score {own}", is_kept=True)]
    lines += [Reason(text=f"{name}: score {total}") for name, total in shown]
    if (rest := len(ranked) - len(lines)) > 0:
        lines.append(Reason(text=f"{nodes_text(rest)} more with less"))
    yield Reason(text=text, children=tuple(lines), issues=issues)
