"""Nodes that are closed to a pod: the taint or the cordon, and the user who set it.

The message of the scheduler does not name the taint that is not tolerated.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from app.analysis.explain import sources
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.explain.trees import NodeReason
from app.domain.controllers.eviction.taints import NO_EXECUTE
from app.domain.controllers.scheduling.framework import filters, pod_spec
from app.domain.devices.taints import taint_of
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.explaining import former_circumstances
from app.service.explaining.evidence import ExplainedMoment

_CLOSED = frozenset((*filters.TAINTED.reasons, *filters.UNSCHEDULABLE.reasons))
_CORDON = "cordoned"


async def reasons(
    evidence: ExplainedMoment, pod: JsonObject, nodes: Sequence[NodeReason]
) -> list[Reason]:
    """The taints and cordons that close nodes to the pod, with the write that set each."""
    spec = pod_spec.read(pod)
    groups: dict[tuple[str, str], list[tuple[ObjectKey, str]]] = {}
    for name in (one.node for one in nodes if one.text in _CLOSED):
        key = ObjectKey(*api_resources.NODES, "", name)
        for kind, text in _closings(spec, evidence.views.objects.get(key) or {}):
            groups.setdefault(kind, []).append((key, text))
    reasons: list[Reason] = []
    for kind, closed in [*groups.items()][:NAMES_MAX]:
        key, text = closed[0]
        names = [each.name for each, _ in closed]
        since = sources.since(await evidence.changes(key), partial(_has, kind))
        is_seen = since is not None and evidence.sight.sees(since)
        by = sources.by(since) if since is not None and is_seen else ""
        if len(names) == 1:
            said = f"node {key.name} is {text}" + (f", {by}" if by else "")
        else:
            said = f"nodes {listed(names, len(names))} are {' '.join(kind).strip()}"
            said += f", node {key.name} {by}" if by else ""
        reasons.append(
            Reason(
                text=said,
                count=len(names),
                revision=since.revision if since is not None and is_seen else 0,
                about=key,
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

    `since` is the pod's event with the eviction. Whoever drains a node cordons it first.
    """
    name = core.node_name(since.object)
    if not name:
        return []
    key = ObjectKey(*api_resources.NODES, "", name)
    earlier = [each for each in await evidence.changes(key) if each.revision < since.revision]
    if not earlier or earlier[0].type is EventType.OBJECT_DELETED:
        return []
    node = earlier[0].object
    kinds = [((_CORDON, ""), _CORDON)] if core.unschedulable(node) else []
    if not is_drain:
        kinds = [
            (("tainted", _kind(taint)), f"tainted {taint_of(taint).text}")
            for taint in core.taints(node)
            if taint.get("effect") == NO_EXECUTE
        ]
    reasons = []
    for kind, text in kinds:
        set_by = sources.since(earlier, partial(_has, kind))
        is_seen = set_by is not None and evidence.sight.sees(set_by)
        by = f", {sources.by(set_by)}" if set_by is not None and is_seen else ""
        reasons.append(
            Reason(
                text=f"its node {name} was {text}{by}",
                revision=set_by.revision if set_by is not None and is_seen else 0,
                about=key,
                is_kept=True,
            )
        )
    return reasons


def _closings(spec: pod_spec.PodSpec, node: JsonView) -> Iterator[tuple[tuple[str, str], str]]:
    """The taints or the cordon that close a node: the kind, equal for many nodes, and a text."""
    is_cordon_tolerated = filters.is_tolerated(spec, filters.UNSCHEDULABLE_TAINT)
    if core.unschedulable(node) and not is_cordon_tolerated:
        yield (_CORDON, ""), _CORDON
        return
    for taint in core.taints(node):
        if taint.get("effect") in filters.HARD_EFFECTS and not filters.is_tolerated(spec, taint):
            yield ("tainted", _kind(taint)), f"tainted {taint_of(taint).text}"


def _kind(taint: JsonView) -> str:
    """The taint without its value, which may differ from node to node."""
    return f"{taint.get('key')}:{taint.get('effect')}"


def _has(kind: tuple[str, str], node: JsonView) -> bool:
    if kind[0] == _CORDON:
        return core.unschedulable(node)
    return any(_kind(taint) == kind[1] for taint in core.taints(node))
