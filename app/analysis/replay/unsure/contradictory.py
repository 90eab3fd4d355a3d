"""Recorded writes of controllers whose own content is impossible, whatever else was recorded.

A lost line changes what a controller saw, and so what it decided. It does not change what each of
its writes is made of: a claim for a pod names that pod and its entry, and the Event of a placement
names the pod that it is about and its node. So such a write needs no run to be judged.
"""

from collections.abc import Iterator, Mapping

from app.analysis.replay.authors import CLAIMS, SCHEDULER
from app.analysis.replay.facts import SCHEDULED
from app.domain.controllers.claims.templates import generate_name
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, EventType, ObjectKey, doubts
from app.domain.values import api_resources, well_known
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

    def note(self, event: Event, author: str) -> None:
        """Processes an event; `author` is the controller that surely wrote it, or empty."""
        if doubts.of_event(event) or event.type is EventType.OBJECT_DELETED:
            return
        if event.key[:2] == api_resources.PODS:
            if node := core.node_name(event.object):
                self._nodes.setdefault(event.uid, node)
        elif event.type is not EventType.OBJECT_CREATED or event.stamp.verb != _CREATE:
            return
        elif author == CLAIMS and event.key[:2] == api_resources.RESOURCE_CLAIMS:
            if problem := next(_of_claim(event.object), ""):
                self._made[event.key] = problem
        elif author == SCHEDULER and event.key.resource == "events":
            said = core.event_object(event.object)
            if said.reason == SCHEDULED and said.subject.uid:
                pod = ObjectKey(*api_resources.PODS, said.subject.namespace, said.subject.name)
                self._assigned[said.subject.uid] = pod, said.text

    def found(self) -> Mapping[ObjectKey, str]:
        """The objects that such writes are about, each with a text; call it after the last event.

        A pod gets its node once. Parity: controllers.md 4.6.
        """
        said = {
            pod: f"its Event says `{text}`, and it is on {self._nodes[uid]}"
            for uid, (pod, text) in self._assigned.items()
            if uid in self._nodes
            and text != messages.assigned(pod.namespace, pod.name, self._nodes[uid])
        }
        return {**self._made, **said}


def _of_claim(claim: JsonView) -> Iterator[str]:
    """What a claim lacks that each one for a pod is made with. Parity: controllers.md 2.2."""
    owner = meta.controller(claim)
    entry = meta.annotation(claim, well_known.POD_CLAIM_NAME)
    if owner is None or (owner.api_version, owner.kind) != _POD:
        yield "it was made by the claim controller, and no pod controls it"
    elif not entry:
        yield f"it was made by the claim controller without {well_known.POD_CLAIM_NAME}"
    elif meta.generate_name(claim) not in ("", generate_name(owner.name, entry)):
        yield f"it was made by the claim controller under a name that is not of {owner.name}"
