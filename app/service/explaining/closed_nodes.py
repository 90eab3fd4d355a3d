"""Nodes that are closed to a pod: the taint or the cordon, and the user who set it.

The message of the scheduler does not name the taint that is not tolerated.
"""

from collections.abc import Sequence

from app.analysis.explain import sources
from app.analysis.explain.nearby import closings
from app.analysis.explain.nearby.closings import Closing
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject
from app.service.explaining import former_circumstances
from app.service.explaining.evidence import ExplainedMoment

_CLOSED = frozenset((*filters.TAINTED.reasons, *filters.UNSCHEDULABLE.reasons))


async def reasons(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> tuple[list[Reason], list[Reason]]:
    """The taints and cordons that close nodes to the pod, with the write that set each.

    The first list has those of nodes that would take the pod if they were open.
    """
    trees = {
        name: evidence.views.objects.get(ObjectKey(*api_resources.NODES, "", name)) or {}
        for name in (one.node for one in nodes if one.text in _CLOSED)
    }
    fitting = {one.node for one in nodes if one.opened is not None and not one.opened.text}
    closed = closings.of_pod(pod_spec.read(pod), trees)
    deciding = [one for one in closed if fitting.intersection(one.nodes)][:NAMES_MAX]
    others = [one for one in closed if one not in deciding][: NAMES_MAX - len(deciding)]
    return await with_authors(evidence, pod, deciding), await with_authors(evidence, pod, others)


async def with_authors(
    evidence: ExplainedMoment, pod: JsonObject, closed: Sequence[Closing]
) -> list[Reason]:
    """The taints and cordons with the write that set each, and the tolerations that do not fit."""
    spec = pod_spec.read(pod)
    reasons: list[Reason] = []
    for closing in closed:
        key = ObjectKey(*api_resources.NODES, "", closing.nodes[0])
        since = sources.since(await evidence.changes(key), closing.is_of)
        is_seen = since is not None and evidence.sight.sees(since)
        by = sources.by(since) if since is not None and is_seen else ""
        sentence = closing.sentence
        if by:
            sentence += f", {by}" if len(closing.nodes) == 1 else f", node {key.name} {by}"
        reasons.append(
            Reason(
                text=sentence,
                count=len(closing.nodes),
                revision=since.revision if since is not None and is_seen else 0,
                about=key,
                children=tuple(
                    Reason(text=text, is_kept=True) for text in closings.misfits(spec, closing)
                ),
                is_kept=True,
            )
        )
    return reasons


async def deleted(evidence: ExplainedMoment, name: str) -> list[Reason]:
    """The deletion of a node that is gone; empty if it is there, or was never recorded."""
    key = ObjectKey(*api_resources.NODES, "", name)
    if not name or evidence.views.objects.event(key) is not None:
        return []
    last = next(iter(await evidence.changes(key)), None)
    if last is None or last.type is not EventType.OBJECT_DELETED or not evidence.sight.sees(last):
        return []
    return [former_circumstances.kept(last, f"node {name} was deleted")]


async def before_eviction(
    evidence: ExplainedMoment, since: Event, *, is_drain: bool
) -> list[Reason]:
    """The cordon (of a drain), or the taints that evict, which the pod's node had before an event.

    `since` is the pod's event with the eviction. A user who drains a node cordons it first.
    """
    name = core.node_name(since.object)
    if not name:
        return []
    key = ObjectKey(*api_resources.NODES, "", name)
    earlier = [each for each in await evidence.changes(key) if each.revision < since.revision]
    if not earlier or earlier[0].type is EventType.OBJECT_DELETED:
        return []
    node = earlier[0].object
    if is_drain:
        closed = [closings.cordon(name)] if core.unschedulable(node) else []
    else:
        tainted = (one for one in core.taints(node) if one.get("effect") == NO_EXECUTE)
        closed = [closings.taint(name, node, one) for one in tainted]
    reasons = []
    for closing in closed:
        set_by = sources.since(earlier, closing.is_of)
        is_seen = set_by is not None and evidence.sight.sees(set_by)
        by = f", {sources.by(set_by)}" if set_by is not None and is_seen else ""
        reasons.append(
            Reason(
                text=f"its node {name} was {closing.text}{by}",
                revision=set_by.revision if set_by is not None and is_seen else 0,
                about=key,
                is_kept=True,
            )
        )
    return reasons
