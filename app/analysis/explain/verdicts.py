"""The recorded verdict on a waiting pod, shown beside the reasons that are computed again.

The recorded scheduler left its verdict in the pod's condition, in Events about the pod and in its
own log. A recording may contain any of these without the inputs of the decision. So the verdict is
shown beside the recomputed reasons, with a line that states whether they agree. Parity:
controllers.md 4.3.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.analysis.explain import sources
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import Reason
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, EventType
from app.domain.values import api_resources, condition_types, event_reasons, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from projections.objects import ObjectsProjection

REFUSED = "unschedulable"
"""The verb of a failed attempt that was read from a scheduler's log."""
ALONE = "refused by the recorded scheduler; no node was recorded to try again"
NO_CLAIMS = (
    "refused by the recorded scheduler for its claims; which these are was not printed, so it is "
    "not tried again"
)
NO_NODE_RECORDED = "no node was recorded to try it on"
_GATED = "SchedulingGated"


@dataclass(frozen=True, slots=True)
class SchedulerMessage:
    """A message of the recorded scheduler, where it was found, and the event that brought it."""

    message: str
    place: str
    event: Event


def last(
    objects: ObjectsProjection | None,
    pod: JsonView,
    states: Sequence[Event],
    requests: Sequence[Event],
) -> SchedulerMessage | None:
    """The newest refusal in a recording; None when there is none.

    `states` are the events of the pod and `requests` the observed requests about it, newest first.
    Without `objects`, Events are not searched.
    """
    reported = () if objects is None else _reported(objects, pod)
    logs = logged(requests)
    verdicts = (*_condition(pod, states), *reported, *(() if logs is None else (logs,)))
    return max(verdicts, key=lambda verdict: verdict.event.revision, default=None)


def reason(verdict: SchedulerMessage, nodes: Sequence[NodeReason], *causes: Reason) -> Reason:
    """The verdict, and whether the nodes give the same answer when they are tried again.

    `causes` say why they do not.
    """
    event = verdict.event
    at = f" at {sources.when(event.stamp.time)}" if _has_time(event) else ""
    children = (Reason(text=_compared(verdict, nodes)), *causes) if nodes else ()
    return Reason(
        text=f"the recorded scheduler said{at} ({verdict.place}): {verdict.message}",
        children=children,
        revision=event.revision,
        about=event.key,
    )


def to_json(verdict: SchedulerMessage, nodes: Sequence[NodeReason]) -> JsonObject:
    """The verdict for machines; `agrees` is null when no node was asked."""
    return {
        "message": verdict.message,
        "place": verdict.place,
        "revision": verdict.event.revision,
        "agrees": agrees(verdict, nodes) if nodes else None,
    }


def _condition(pod: JsonView, states: Sequence[Event]) -> Iterator[SchedulerMessage]:
    message = _refusal(pod)
    if message:
        event = sources.since(states, lambda tree: _refusal(tree) == message)
        event = event or next((each for each in states), None)
        if event is not None:
            yield SchedulerMessage(message, "condition PodScheduled", event)


def _refusal(pod: JsonView) -> str:
    for condition in meta.conditions(pod):
        is_refusal = condition.type == condition_types.POD_SCHEDULED and condition.status == "False"
        # For a pod with gates the API writes the condition, and no scheduler has looked at it.
        if is_refusal and condition.reason != _GATED:
            return condition.message
    return ""


def _reported(objects: ObjectsProjection, pod: JsonView) -> Iterator[SchedulerMessage]:
    name, uid = meta.name(pod), meta.uid(pod)
    for event in objects.events(*api_resources.EVENTS, meta.namespace(pod)):
        if not event.key.name.startswith(f"{name}."):
            continue  # a component names its Events after the object
        event_object = core.event_object(event.object)
        is_same = event_object.subject.name == name and event_object.subject.uid in ("", uid)
        if event_object.reason == event_reasons.FAILED_SCHEDULING and is_same and event_object.text:
            yield SchedulerMessage(
                event_object.text, f"Event {event_reasons.FAILED_SCHEDULING}", event
            )


def logged(requests: Sequence[Event]) -> SchedulerMessage | None:
    """The newest refusal in a scheduler's log; `requests` are newest first."""
    for event in requests:
        is_request = event.type is EventType.REQUEST_OBSERVED
        if is_request and json_tree.text(event.object, "verb") == REFUSED:
            message = json_tree.text(event.object, "message")
            return SchedulerMessage(without_head(message), "its log", event)
    return None


def without_head(message: str) -> str:
    """`Unable to schedule pod; no fit; waiting: 0/1 nodes …` without its common head."""
    head, colon, rest = message.partition(": ")
    return rest if colon and not head.startswith("0/") else message


def _has_time(event: Event) -> bool:
    origin = event.stamp.origin
    return origin is None or origin.time_quality != "none"


def _detail(nodes: Sequence[NodeReason]) -> str:
    return messages.counted(Counter(node.text for node in nodes if node.text))


def agrees(verdict: SchedulerMessage, nodes: Sequence[NodeReason]) -> bool:
    """Whether the nodes refuse a pod as the recorded scheduler said.

    An error on any node ends an attempt and is its message, whatever the others say (known issue
    C16).
    """
    if _is_same_error(verdict, nodes):
        return True
    if any(not node.text for node in nodes):
        return False
    return verdict.message.startswith(messages.unfit(len(nodes), _detail(nodes), ()))


def _is_same_error(verdict: SchedulerMessage, nodes: Sequence[NodeReason]) -> bool:
    return any(verdict.message == messages.filter_error(node.text) for node in nodes if node.text)


def _compared(verdict: SchedulerMessage, nodes: Sequence[NodeReason]) -> str:
    if _is_same_error(verdict, nodes):
        return "tried again, a node gives the same error"
    if agrees(verdict, nodes):
        return "tried again, the nodes give the same answer"
    fits = sum(not node.text for node in nodes)
    detail = _detail(nodes)
    if fits:
        detail = f"{fits} would take it" + (f", {detail}" if detail else "")
    return f"tried again now, the nodes give another answer: {detail}"
