"""Placements that stood still between two of their writes, without an explanation in the recording.

The scheduler nominates a node, writes allocation and reservation of each claim, and binds the pod.
A run makes these writes at their recorded instants. Nothing but the limit of its client lies
between them, apart from what others do: they make volumes and devices ready, answer a refused
request anew, or belong to the group of the pod. A scheduler that took over tries the pod at once.
Pods that were refused before are left out: a nomination may have been made for one that displaces
others, which takes as long as these need to end.
Parity: controllers.md 3.7 and 4.6.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, RefusedRequest, refusal_of
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.facts import consumers
from app.analysis.replay.instants import is_derived
from app.analysis.replay.lags import Waits
from app.analysis.replay.lateness import Delay, Process, Silences
from app.analysis.replay.traces import is_event_object
from app.analysis.verify.invariants.violations import IN_FLIGHT, LATE_AFTER
from app.domain.controllers.scheduling.framework.pod_spec import volume_claims
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.log import EventType, ObjectKey
from app.domain.values import api_resources, event_reasons, json_tree
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant


@dataclass(slots=True)
class _Placement:
    """A placement that is not bound: its last write, and whether others may delay the next one."""

    last: Act
    waits: bool = False


class StalledBindings:
    """Follows the scheduler's acts of a recording, in order."""

    def __init__(
        self,
        acts: Iterable[Act],
        refusals: Iterable[RefusedRequest],
        waits: Waits,
        silences: Silences,
    ) -> None:
        self._acts = [act for act in acts if act.user == SCHEDULER]
        self._process = Process(act.requested for act in self._acts)
        self._waits, self._silences = waits, silences
        self._refused: dict[ObjectKey, list[Instant]] = defaultdict(list)
        for each in refusals:
            if each.user == SCHEDULER:
                self._refused[each.key].append(each.at)
        self._placements: dict[str, _Placement] = {}

    def delays(self) -> Iterator[Delay]:
        """The writes that came too late. Acts whose author or instant is a guess are not judged."""
        for act in self._acts:
            if act.is_guessed or act.seen is not None or is_derived(act.event):
                continue
            key = act.event.key
            if key[:2] == api_resources.PODS:
                yield from self._of_pod(act)
            elif key[:2] == api_resources.RESOURCE_CLAIMS:
                yield from self._of_claim(act)
            elif is_event_object(key):
                self._note_report(act)

    def _of_pod(self, act: Act) -> Iterator[Delay]:
        uid, before, after = act.event.uid, act.before or {}, act.event.object
        is_ended = act.event.type is EventType.OBJECT_DELETED or bool(
            meta.deletion_timestamp(after)
        )
        if core.node_name(after) and not core.node_name(before) and not is_ended:
            yield from self._judge(uid, act)
            self._placements.pop(uid, None)
        elif is_ended or refusal_of(after) is not None or not core.nominated_node_name(after):
            self._placements.pop(uid, None)
        elif not core.node_name(after):
            self._placements[uid] = _Placement(act, _may_wait(after))

    def _of_claim(self, act: Act) -> Iterator[Delay]:
        claim = act.event.object
        for uid in consumers(claim).keys() - consumers(act.before).keys():
            placement = self._placements.get(uid)
            if placement is not None:
                yield from self._judge(uid, act)
                placement.last = act
                placement.waits |= binding_conditions.has_conditions(dra.allocation(claim) or {})

    def _note_report(self, act: Act) -> None:
        event_object = core.event_object(act.event.object)
        if event_object.reason == event_reasons.FAILED_SCHEDULING:
            self._placements.pop(event_object.subject.uid, None)

    def _judge(self, uid: str, act: Act) -> Iterator[Delay]:
        placement = self._placements.get(uid)
        if placement is None or placement.waits:
            return
        last, came = placement.last.answered, act.requested
        keys = {act.event.key, placement.last.event.key}
        if any(last <= at <= came for key in keys for at in self._refused.get(key, ())):
            return
        made = self._waits.longest(came)
        since = self._process.back_at(last, made)
        proof, is_sure = "", True
        if made - since > IN_FLIGHT and self._process.is_seen(
            Instant(since + tolerances.TABLE.sure_after), Instant(made - IN_FLIGHT)
        ):
            proof = "the scheduler was at work"
        elif made - last > LATE_AFTER:
            proof = "no scheduler stands still for so long"
            is_sure = made - last - self._silences.longest(last, made) > LATE_AFTER
        if proof:
            yield Delay(
                key=act.event.key,
                uid=act.event.uid,
                due=last,
                came=came,
                proof=proof,
                is_sure=is_sure,
                act="was written" if act.event.key[:2] != api_resources.PODS else "was bound",
            )


def _may_wait(pod: JsonView) -> bool:
    """Whether its volumes or its group may delay the placement of a pod."""
    return any(volume_claims(pod)) or bool(json_tree.get(pod, "spec", "schedulingGroup"))
