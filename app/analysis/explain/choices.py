"""The choice of a claim's devices: why these and no others, by allocating again at its revision.

Also the alternatives of a prioritized list that it did not get, while another node had them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.analysis.explain import node_answers
from app.analysis.explain.pods import PodFindings, Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.trees import claim_reasons
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.plugins.dynamic_resources.extended_resources import (
    PSEUDO_NAME,
)
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.log import Event, EventType, ObjectKey, Revision
from app.domain.objects.kinds import extended_resources
from app.domain.values import counts, json_tree
from app.domain.values.fields import core, decision_body, dra, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The reasons of a choice; `details` lists every device."""

    children: tuple[Reason, ...]
    details: JsonObject = field(default_factory=dict)


def moment_of(events: Sequence[Event], claim: JsonView) -> Revision | None:
    """The revision that wrote the claim's allocation; `events` are the claim's, newest first.

    None when the events do not reach back that far.
    """
    wanted = dra.allocation(claim)
    moment: Revision | None = None
    for event in events:
        if dra.allocation(event.object) != wanted:
            return moment
        moment = event.revision
    # All known events have the allocation: it dates from the first one, if that is the creation.
    return moment if events and events[-1].type is EventType.OBJECT_CREATED else None


def first_with(events: Sequence[Event], *path: str) -> Event | None:
    """The first event of the current run in which the object has a value at a path.

    `events` are newest first. None when the object has no value there, or when the events do not
    reach back that far.
    """
    first: Event | None = None
    for event in events:
        if not json_tree.get(event.object, *path):
            return first
        first = event
    return first if first is not None and first.type is EventType.OBJECT_CREATED else None


def revision_before(decisions: Sequence[Event], moment: Revision) -> Revision:
    """The revision at which the choice was made.

    The claims of a pod are written one after the other behind their decision. So if the newest
    successful decision covers `moment`, this is the revision before the decision; else it is the
    one before `moment`.
    """
    for event in decisions:
        decision = decision_body.read(event.object)
        if decision.resource == "pods" and decision.outcome in SUCCESSES:
            first = event.revision
            if first < moment <= first + decision.commands:
                return Revision(first - 1)
            break
    return Revision(moment - 1)


def node_of(views: LiveViews, namespace: str, pod: str, claim: JsonView) -> str:
    """The node where the devices were chosen: the pod's node, or the allocation's node."""
    tree = views.objects.get(ObjectKey("", "pods", namespace, pod))
    if tree is not None and (node := core.node_name(tree)):
        return node
    terms = json_tree.objects(claim, "status", "allocation", "nodeSelector", "nodeSelectorTerms")
    for term in terms:
        for wanted in core.field_requirements(term):
            if wanted.key == "metadata.name":
                return next(iter(wanted.values), "")
    return ""


def compared(findings: PodFindings, key: ObjectKey, claim: JsonView, revision: Revision) -> Choice:
    """The reasons if allocating again gives the recorded devices; else what it gives instead."""
    name = f"{key.namespace}/{key.name}"
    if meta.annotation(claim, extended_resources.ANNOTATION) == "true":
        # When it was allocated, the claim of extended resources had no name.
        name = f"{key.namespace}/{PSEUDO_NAME}"
    reason = next(iter(findings.nodes), None)
    explained = None if reason is None else reason.explained
    explained_claim = (
        next((one for one in explained.claims if one.claim == name), None) if explained else None
    )
    if reason is None or explained_claim is None:
        text = reason.text if reason is not None and reason.text else "the claim was not asked for"
        text = f"allocating again as of revision {revision} does not lead here: {text}"
        return Choice(children=(Reason(text=text),))
    recorded = [result.text for result in dra.results(claim)]
    again = [
        device.device
        for request in explained_claim.requests
        for device in request.devices
        if device.chosen
    ]
    details: JsonObject = {**findings.to_json(), "decidedAt": revision}
    if sorted(again) != sorted(recorded):
        result = ", ".join(again) if again else (reason.text or "nothing")
        text = (
            f"allocating again on {reason.node} as of revision {revision} gives {result}: what was "
            "recorded cannot be explained from this history alone"
        )
        return Choice(children=(Reason(text=text),), details=details)
    text = f"why these and no others, on {reason.node} as of revision {revision}"
    children = claim_reasons(reason, name)
    return Choice(children=(Reason(text=text, children=children),), details=details)


SUCCESSES = ("Scheduled", "WaitingForBinding")


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
