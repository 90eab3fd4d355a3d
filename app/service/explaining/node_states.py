"""The node of a pod that does not run there: its state, its reboots, what its kubelet said."""

from dataclasses import replace
from functools import partial

from app.analysis.explain import choices, lives, sources
from app.analysis.explain.lives import KubeletWarning
from app.analysis.explain.reasons import Reason
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.event import KeyFilter
from app.domain.values import api_resources, event_reasons, timestamps
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant
from app.service.explaining.evidence import ExplainedMoment


def unready(evidence: ExplainedMoment, tree: JsonObject) -> list[Reason]:
    """The reason of a node that is not ready, for a pod on it; empty if it is ready."""
    key = _node_of(tree)
    event = evidence.views.objects.event(key)
    text = "" if event is None else lives.not_ready(event.object)
    if event is None or not text:
        return []
    said = f"node {key.name} {text}"
    return [Reason(text=said, revision=event.revision, about=key, is_kept=True)]


async def reboots(evidence: ExplainedMoment, pod: ObjectKey, tree: JsonObject) -> list[Reason]:
    """The last reboot of a pod's node since the pod is there; empty without one.

    What a driver prepared for the pod may be lost with it: the kubelet does not prepare claims
    again that it knows as prepared.
    """
    key = _node_of(tree)
    changes = await evidence.changes(key)
    boot = core.boot_id(changes[0].object) if changes else ""
    since = sources.since(changes, partial(_has_booted, boot)) if boot else None
    placed = choices.first_with(await evidence.changes(pod), "spec", "nodeName")
    if since is None or placed is None or since.revision < placed.revision:
        return _announced(evidence, tree, placed)
    earlier = next((each for each in changes if each.revision < since.revision), None)
    if earlier is None or not core.boot_id(earlier.object) or not evidence.sight.sees(since):
        return _announced(evidence, tree, placed)
    said = f"node {key.name} was rebooted while the pod was there"
    text = f"{said}: its bootID changed, {sources.by(since)}"
    return [Reason(text=text, revision=since.revision, about=key, is_kept=True)]


async def expired_warning(
    evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject
) -> KubeletWarning | None:
    """The last warning of a kubelet about a pod in Events that are gone; None if there is none."""
    if not evidence.sight.reads_events:
        return None
    objects, last = evidence.views.objects, evidence.views.revision
    wanted = KeyFilter(*api_resources.EVENTS, namespace=key.namespace, about=key.name)
    limit = evidence.bounds.places_max
    keys = await evidence.log.keys(evidence.info.id, wanted, until=last, limit=limit)
    said: list[Event] = []
    ended: dict[ObjectKey, Instant] = {}
    for place in keys:
        if objects.event(place) is not None or not evidence.sight.sees_key(place):
            continue
        states = await evidence.changes(place)
        if len(states) > 1 and states[0].type is EventType.OBJECT_DELETED:
            said.append(states[1])
            ended[place] = states[0].stamp.time
    warning = lives.warning_about(lives.warnings(said), tree)
    if warning is None:
        return None
    return replace(warning, gone=sources.when(ended[warning.event.key]))


def _announced(evidence: ExplainedMoment, pod: JsonObject, placed: Event | None) -> list[Reason]:
    """The last reboot of a pod's node since the pod is there that an Event of a kubelet names."""
    begun = timestamps.instant_of(core.start_time(pod))
    if begun is None and placed is not None:
        begun = placed.stamp.time
    if begun is None or not evidence.sight.reads_events:
        return []
    node = _node_of(pod)
    last: tuple[Instant, Event] | None = None
    for event in evidence.views.objects.events(*api_resources.EVENTS):
        # A long history keeps many Events: others are not decoded.
        if _REBOOTED not in event.body or not evidence.sight.sees(event):
            continue
        about = core.event_object(event.object)
        is_of_node = about.subject.kind == "Node" and about.subject.name == node.name
        time = about.last_timestamp or about.event_time or about.first_timestamp or ""
        instant = timestamps.instant_of(time)
        if about.reason != event_reasons.REBOOTED or not is_of_node or instant is None:
            continue
        if instant >= begun and (last is None or instant > last[0]):
            last = instant, event
    if last is None:
        return []
    said = f"node {node.name} was rebooted while the pod was there: its kubelet said so at "
    text = said + sources.when(last[0])
    return [Reason(text=text, revision=last[1].revision, about=last[1].key, is_kept=True)]


_REBOOTED = f'"{event_reasons.REBOOTED}"'.encode()


def _node_of(pod: JsonView) -> ObjectKey:
    return ObjectKey(*api_resources.NODES, "", core.node_name(pod))


def _has_booted(boot: str, node: JsonView) -> bool:
    return core.boot_id(node) == boot
