"""Recorded writes of controllers and kubelets whose own content is impossible in any case.

A lost line changes what a controller saw, and so what it decided. It does not change what each of
its writes is made of: a claim for a pod names that pod and its entry, and the Event of a placement
names the pod that it is about and its node. A kubelet that reports the end of a pod reports that it
is not ready. So such a write needs no run to be judged.
"""

from collections.abc import Iterator, Mapping

from app.analysis.replay.authors import CLAIMS, SCHEDULER
from app.analysis.replay.inputs import KUBELET_PREFIX
from app.domain.controllers.claims.templates import generate_name
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, EventType, ObjectKey, doubts
from app.domain.values import api_resources, condition_types, event_reasons, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonView

_CREATE = "create"
_POD = ("v1", "Pod")


class Contradictory:
    """Follows a recording event by event; `found` has the writes that contradict themselves."""

    def __init__(self) -> None:
        self._made: dict[ObjectKey, str] = {}
        self._assigned: dict[str, tuple[ObjectKey, str]] = {}
        self._nodes: dict[str, str] = {}
        # The pods whose last state is known and not their end, each with its uid.
        self._living: dict[ObjectKey, str] = {}

    def note_gap(self, event: Event) -> None:
        """Processes an event about no object: what a gap is about, somebody may have changed."""
        if event.type is not EventType.GAP_OBSERVED:
            return
        if event.key.name:
            self._living.pop(event.key, None)
        else:
            self._living.clear()

    def note(self, event: Event, author: str) -> None:
        """Processes an event; `author` is the controller that surely wrote it, or empty."""
        living = self._living.pop(event.key, "")
        if doubts.of_event(event) or event.type is EventType.OBJECT_DELETED:
            return
        if event.key[:2] == api_resources.PODS:
            if not core.is_finished(event.object):
                self._living[event.key] = event.uid
            elif living == event.uid and _is_ready_for_its_kubelet(event):
                self._made[event.key] = (
                    "its kubelet reported that it had ended, and that it is ready"
                )
            if node := core.node_name(event.object):
                self._nodes.setdefault(event.uid, node)
        elif event.type is not EventType.OBJECT_CREATED or event.stamp.verb != _CREATE:
            return
        elif author == CLAIMS and event.key[:2] == api_resources.RESOURCE_CLAIMS:
            if problem := next(_of_claim(event.object), ""):
                self._made[event.key] = problem
        elif author == SCHEDULER and event.key.resource == "events":
            reported = core.event_object(event.object)
            if reported.reason == event_reasons.SCHEDULED and reported.subject.uid:
                pod = ObjectKey(
                    *api_resources.PODS, reported.subject.namespace, reported.subject.name
                )
                self._assigned[reported.subject.uid] = pod, reported.text

    def problems(self) -> Mapping[ObjectKey, str]:
        """The objects that such writes are about, each with a text; call it after the last event.

        A pod gets its node once. Parity: controllers.md 4.6.
        """
        elsewhere = {
            pod: f"its Event says `{text}`, and it is on {self._nodes[uid]}"
            for uid, (pod, text) in self._assigned.items()
            if uid in self._nodes
            and text != messages.assigned(pod.namespace, pod.name, self._nodes[uid])
        }
        return {**self._made, **elsewhere}


def _of_claim(claim: JsonView) -> Iterator[str]:
    """The parts that a claim for a pod is made with and lacks. Parity: controllers.md 2.2."""
    owner = meta.controller(claim)
    entry = meta.annotation(claim, well_known.POD_CLAIM_NAME)
    if owner is None or (owner.api_version, owner.kind) != _POD:
        yield "it was made by the claim controller, and no pod controls it"
    elif not entry:
        yield f"it was made by the claim controller without {well_known.POD_CLAIM_NAME}"
    elif meta.generate_name(claim) not in ("", generate_name(owner.name, entry)):
        yield f"it was made by the claim controller under a name that is not of {owner.name}"


def _is_ready_for_its_kubelet(event: Event) -> bool:
    """Whether the kubelet of a pod wrote that it is ready. Parity: controllers.md 5.3."""
    is_of_kubelet = event.stamp.actor.user == KUBELET_PREFIX + core.node_name(event.object)
    return is_of_kubelet and meta.is_true(event.object, condition_types.READY)
