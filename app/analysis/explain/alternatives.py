"""Alternatives of a prioritized list that a claim did not get, while another node had them."""

from collections.abc import Mapping, Sequence

from app.analysis.explain import node_answers
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.values import counts
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def ranks(claim: JsonView, chosen: Sequence[str]) -> dict[str, int]:
    """The position of each chosen alternative in its list; names are `REQUEST/ALTERNATIVE`."""
    places: dict[str, int] = {}
    for request in dra.requests(claim):
        for place, wish in enumerate(request.first_available):
            if f"{request.name}/{wish.name}" in chosen:
                places[request.name] = place
    return places


def elsewhere(
    rules: SchedulerRules,
    views: LiveViews,
    pod: JsonObject,
    claim: JsonView,
    own: Mapping[str, int],
    *,
    name: str,
    node: str,
    nodes_max: int,
) -> Steps[list[Reason]]:
    """Finds the nodes that would have given an earlier alternative.

    `views` are those of the choice. `own` maps each request to the position of the alternative that
    the claim got on `node`. At most `nodes_max` other nodes are asked.
    """
    better: dict[str, list[str]] = {}
    tried = 0
    for answer in node_answers.ask_nodes(rules, views, pod, now=Instant(0)):
        yield
        if answer is None or answer.text or answer.node == node:
            continue
        if tried == nodes_max:
            break
        tried += 1
        explained = answer.explain(effort_steps=0)
        for other in () if explained is None else explained.claims:
            if other.claim != name:
                continue
            got = [
                one.request for one in other.requests if any(each.chosen for each in one.devices)
            ]
            for request, place in ranks(claim, got).items():
                if place < own.get(request, 0):
                    wish = next(each for each in got if each.startswith(f"{request}/"))
                    better.setdefault(wish, []).append(answer.node)
    return [_reason_of(rules, wish, names) for wish, names in better.items()]


def _reason_of(rules: SchedulerRules, wish: str, names: Sequence[str]) -> Reason:
    text = f"alternative {wish} comes before it and could be had on "
    text += f"{counts.plural(len(names), 'node')} {listed(names, len(names))}: "
    if rules.quirks.r1:
        text += "this release chooses among alternatives on a node, not among nodes"
        return Reason(text=text, count=len(names), issues=("R1",), is_kept=True)
    text += "other scores of the nodes weighed more"
    return Reason(text=text, count=len(names), is_kept=True)
