"""The beginning of a replay that does not start with the first event: the objects at a moment."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from app.analysis.replay import tolerances
from app.analysis.replay.acts import Act, FailedAttempt, refusal_of, report_of
from app.analysis.replay.authors import SCHEDULER
from app.analysis.replay.facts import consumers
from app.analysis.replay.traces import is_event_object
from app.domain.controllers.scheduling import planning
from app.domain.controllers.scheduling.binding_cycle import waiting_binding
from app.domain.controllers.scheduling.plugins.dynamic_resources import binding_conditions
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import DECISION, Actor, Event, EventType, Head, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds import extended_resources
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The state of a history at `head`, which equals that of a recording `after` a revision.

    `state` is a snapshot of its objects. `objects` are their last events in the order of the log;
    controllers see them as upstream's controllers see a list when they start. `removed_nodes` are
    the removals of nodes that pods still name: PodGC counts from these on. `bindings` are the
    scheduler's decisions about pods whose bindings are under way: those of the log, and in a
    recording, which has none, those that its objects show (`waits_for_devices`).
    """

    head: Head
    after: Revision
    state: bytes
    objects: Sequence[Event]
    removed_nodes: Sequence[Event] = ()
    bindings: Sequence[Event] = ()

    @property
    def shows_work(self) -> bool:
        """Whether a pod has a node or a claim has devices, so that the control plane is up."""
        return any(_shows_work(event) for event in self.objects)


def waits_for_devices(objects: Iterable[Event]) -> list[Event]:
    """The decisions after which pods wait for the binding conditions of their devices.

    `objects` are the last events of all objects at a moment of a recording. Such a pod has a
    nominated node and no binding, and a claim with conditions that is reserved for it.
    """
    unbound: dict[str, Event] = {}
    began: dict[str, Instant] = {}
    for event in objects:
        if event.key[:2] == api_resources.PODS and _may_wait(event.object):
            unbound[event.uid] = event
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS:
            allocation = dra.allocation(event.object)
            if allocation is not None and binding_conditions.has_conditions(allocation):
                at = _allocated_at(event, allocation)
                for uid in consumers(event.object):
                    began[uid] = max(at, began.get(uid, at))
    waits = [_wait(unbound[uid], at) for uid, at in began.items() if uid in unbound]
    return sorted(waits, key=lambda event: (event.stamp.time, event.key))


def end_of_placement(before: Iterable[Event], after: Iterable[Event]) -> Revision | None:
    """The revision with which the pods are bound whose claims for extended resources are made.

    `before` are the last events before a moment of a recording, `after` those that follow. The
    scheduler makes such a claim, protects it, allocates it, has the pod name it, and binds the pod.
    Another scheduler would not finish what one has begun. None if nothing is begun, or where it
    does not end. A pod whose device has binding conditions goes on waiting (`waits_for_devices`).
    """
    begun: set[str] = set()
    for event in before:
        _follow_extended(begun, event)
    if begun:
        for event in after:
            _follow_extended(begun, event)
            if not begun:
                return event.revision
    return None


def _follow_extended(begun: set[str], event: Event) -> None:
    """Keep the pods (their uids) for whose extended resources a placement is begun."""
    tree, is_gone = event.object, event.type is EventType.OBJECT_DELETED
    match event.key[:2]:
        case api_resources.RESOURCE_CLAIMS if meta.annotation(tree, extended_resources.ANNOTATION):
            owners = {owner.uid for owner in meta.owners(tree)}
            allocation = dra.allocation(tree)
            if event.type is EventType.OBJECT_CREATED:
                begun |= owners
            elif is_gone or (allocation and binding_conditions.has_conditions(allocation)):
                begun -= owners
        case api_resources.PODS if is_gone or core.has_node(tree):
            begun.discard(event.uid)
        case _:
            pass


def under_way(
    acts: Iterable[Act], beginning: Beginning, skew: int, pods: Iterable[str]
) -> frozenset[Revision]:
    """The scheduler's writes about attempts that it had made before the beginning, by revision.

    `pods` are the uids of the pods of which a write came later. A claim that is written for a pod
    which is gone was allocated before; of a failed attempt there are a report and a condition.

    The Event of such an attempt has its instant, and its condition says the same; a condition
    whose request came by then is of one, too. They were sent or waited to be sent: nothing that
    happens after the beginning changes them. Clocks differ by `skew`.
    """
    tries = [act for act in acts if act.user == SCHEDULER]
    existing = {*pods, *(each.uid for each in beginning.objects if each.key.resource == "pods")}
    until = beginning.head.time - skew
    refused = {
        str(event.uid): messages.note(refusal_of(event.object) or "")
        for event in beginning.objects
        if event.key[:2] == api_resources.PODS
    }
    revisions = set(_for_gone_pods(tries, existing))
    failed: dict[str, list[FailedAttempt]] = defaultdict(list)
    for act, report in _reports(tries):
        if report.instant <= until:
            revisions.add(act.event.revision)
            if not report.note or report.note != refused.get(report.pod):
                failed[report.pod].append(report)
    for act in tries:
        refusal = _new_refusal(act)
        if refusal is None:
            continue
        reports = failed[act.event.uid]
        causes = [each for each in reports if _is_of(each, act, refusal)][:1]
        if causes or act.requested <= until:
            failed[act.event.uid] = [each for each in reports if each not in causes]
            revisions.add(act.event.revision)
    return frozenset(revisions)


def _for_gone_pods(acts: Sequence[Act], existing: Set[str]) -> Iterator[Revision]:
    """The writes of claims for pods that do not exist, with those that prepare them."""
    before: dict[str, list[Revision]] = defaultdict(list)
    for act in acts:
        if act.event.key[:2] != api_resources.RESOURCE_CLAIMS:
            continue
        changed = consumers(act.before).keys() ^ consumers(act.event.object).keys()
        if changed & existing:
            before.pop(act.event.uid, None)
            continue
        # The finalizer of a claim is written before its devices.
        before[act.event.uid].append(act.event.revision)
        if changed:
            yield from before.pop(act.event.uid)


def _reports(acts: Iterable[Act]) -> Iterator[tuple[Act, FailedAttempt]]:
    for act in acts:
        report = report_of(act) if is_event_object(act.event.key) else None
        if report is not None:
            yield act, report


def _new_refusal(act: Act) -> str | None:
    """The message of a condition that the write gave its pod."""
    if act.event.key[:2] != api_resources.PODS:
        return None
    refusal = refusal_of(act.event.object)
    return None if refusal == refusal_of(act.before or {}) else refusal


def _is_of(report: FailedAttempt, act: Act, refusal: str) -> bool:
    """Whether a condition may be that of a reported attempt."""
    waited = act.requested - report.instant
    if not report.note:
        return waited <= tolerances.TABLE.same_attempt
    return report.note == messages.note(refusal) and waited <= tolerances.TABLE.reported_before


def _shows_work(event: Event) -> bool:
    match event.key[:2]:
        case api_resources.PODS:
            return bool(core.node_name(event.object))
        case api_resources.RESOURCE_CLAIMS:
            return dra.allocation(event.object) is not None
        case _:
            return False


def _may_wait(pod: JsonView) -> bool:
    return bool(core.nominated_node_name(pod)) and not (
        core.needs_no_node(pod) or meta.is_deleting(pod)
    )


def _allocated_at(claim: Event, allocation: JsonView) -> Instant:
    """The instant at which the scheduler wrote the allocation, whose own time has whole seconds."""
    written = claim.stamp.time
    try:
        second = timestamps.parse(dra.allocation_time(allocation))
    except TimestampError:
        return written
    # A later write of the claim is that of a driver.
    return written if 0 <= written - second < SECOND else second


def _wait(pod: Event, began: Instant) -> Event:
    """A decision as the scheduler records it when a pod begins to wait."""
    place = {"namespace": pod.key.namespace, "name": pod.key.name}
    body = {
        "controller": planning.NAME,
        "resource": pod.key.resource,
        **place,
        "outcome": waiting_binding.WAITING,
        "inputs": {"now": began, "uid": pod.uid},
        "summary": {"node": core.nominated_node_name(pod.object)},
    }
    return Event(
        revision=pod.revision,
        type=EventType.DECISION_RECORDED,
        key=DECISION._replace(**place),
        uid=NO_UID,
        body=canonical_json(body),
        stamp=Stamp(time=began, actor=Actor(user=SCHEDULER), verb=""),
    )
