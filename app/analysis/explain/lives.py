"""The life of an object: who created it, who requested its deletion, and what still keeps it.

For pods also what their termination waits for, and what keeps a pod with a node from starting.
Events are those of the object, newest first.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers import pods
from app.domain.controllers.kubelet import annotations
from app.domain.controllers.resources import claim_key
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, condition_types, counts, timestamps, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND, Instant

_KUBELET = "kubelet"

SILENT_AFTER = 60 * SECOND
"""The time after which a kubelet that has reported nothing about a pod is worth a word."""

FAILED_PREPARE = "FailedPrepareDynamicResources"
"""The reason of the Event with which a kubelet reports that a driver did not prepare devices."""

_REASONS_OF_KUBELETS = frozenset(
    (
        FAILED_PREPARE,
        "ErrImageNeverPull",
        "FailedCreatePodContainer",
        "FailedCreatePodSandBox",
        "FailedKillPod",
        "FailedMapVolume",
        "FailedMount",
        "FailedPodSandBoxStatus",
        "FailedSync",
        "InspectFailed",
        "NetworkNotReady",
    )
)
"""Reasons that only kubelets give, and only for warnings about pods.

The log of a component shows its Events without the component, end-to-end tests without the type.
"""

_ORDINARY_WAITS = frozenset(("", "ContainerCreating", "PodInitializing"))
"""Reasons of waiting containers that say no more than that the pod has not started."""

_KEEPS = {
    well_known.CLAIM_PROTECTION: "kept while the claim is reserved for a pod",
    "foregroundDeletion": "kept until its dependents are gone",
    "orphan": "kept until its dependents have no owner",
}


def of_object(events: Sequence[Event], tree: JsonView) -> Iterator[Reason]:
    """Reasons about creation, the last change, what keeps a deleted object, and the conditions."""
    yield from origin(events)
    last = events[0] if events else None
    if last is not None and last is not sources.creation(events):
        yield sources.made(last, "last changed")
    yield from ending(events, tree)
    for condition in meta.conditions(tree):
        kind = condition.type
        since = sources.since(events, partial(_has, kind))
        why = ": ".join(part for part in (condition.reason, condition.message) if part)
        text = f"condition {kind} is {condition.status}{f' ({why})' if why else ''}"
        yield Reason(text=text, revision=0 if since is None else since.revision)


def origin(events: Sequence[Event]) -> Iterator[Reason]:
    """The creator of the object, and the owners for which it was created."""
    created = sources.creation(events)
    if created is None:
        return
    owners = [f"{owner.kind} {owner.name}" for owner in meta.owners(created.object)]
    owned = f" for {listed(owners, len(owners))}" if owners else ""
    yield sources.made(created, f"created{owned}")


def ending(events: Sequence[Event], tree: JsonView) -> Iterator[Reason]:
    """The request for the deletion, and the finalizers that keep the object, if there are any."""
    if not meta.is_deleting(tree):
        return
    yield from deletion_request(events)
    for finalizer in meta.finalizers(tree):
        since = sources.since(events, partial(keeps, finalizer))
        text = keeping(finalizer)
        yield Reason(
            text=text + ("" if since is None else f"; set {sources.by(since)}"),
            revision=0 if since is None else since.revision,
            is_kept=True,
        )


def keeping(finalizer: str) -> str:
    """The reason that a finalizer keeps an object, and until when."""
    until = _KEEPS.get(finalizer, "the client that set it must remove it")
    return f"finalizer {finalizer} keeps it: {until}"


def deletion_request(events: Sequence[Event]) -> Iterator[Reason]:
    """The users who requested the deletion and who shortened its grace period later."""
    since = sources.since(events, meta.is_deleting)
    if since is None:
        return
    is_pod = since.key.resource == "pods"
    grace = _grace(since.object)
    how = ""
    if is_pod:
        until = meta.known_deletion_timestamp(since.object)
        if until:
            how = f" with {grace} s of grace until {until}" if grace else _graceless(since.object)
    text = f"deletion was asked for {sources.asked_by(since)}{how}"
    yield Reason(text=text, revision=since.revision, about=since.key, is_kept=True)
    newer = [event for event in events if event.revision > since.revision and is_pod]
    for event in reversed(newer):
        if (shorter := _grace(event.object)) < grace:
            grace = shorter
            text = f"the grace period became {grace} s {sources.asked_by(event)}"
            # A kubelet ends each deletion so, when the pod's containers have ended.
            is_forced = not grace and not event.stamp.actor.user.startswith(sources.USERS_OF_NODES)
            text += " (forced)" if is_forced else ""
            yield Reason(text=text, revision=event.revision, is_kept=True)


def _graceless(tree: JsonView) -> str:
    """The reason why a deleted pod got no grace period.

    The API gives none to pods that have no node or have finished, however the request asks.
    """
    if not core.has_node(tree):
        return " (no grace period: it had no node)"
    if core.is_finished(tree):
        return " (no grace period: it had finished)"
    return " (forced: no grace period)"


def of_pod(
    views: LiveViews, events: Sequence[Event], tree: JsonView, unseen: Collection[str] = ()
) -> Iterator[Reason]:
    """The reasons why a pod terminates and still waits, how it ended, or why it does not start.

    `unseen` are its claims whose allocation a recording does not show.
    """
    node = core.node_name(tree)
    if core.is_finished(tree):
        yield from _finished(events, tree)
    if meta.is_deleting(tree):
        yield from ending(events, tree)
        yield from awaited(views, tree, node)
    elif node and not core.is_finished(tree) and meta.phase(tree) != "Running":
        yield from unready(views, events, tree, unseen)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletWarning:
    """A warning of a kubelet about a pod: an Event object, and the event of the log that has it.

    `gone` is when the Event was deleted; it is empty while the Event exists.
    """

    event: Event
    reason: str
    message: str
    count: int
    gone: str = ""

    @property
    def text(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


def is_starting(tree: JsonView) -> bool:
    """Whether a pod has a node and containers of it were not started there.

    False while an init container runs and the others wait for their turn: nothing holds it up.
    """
    phase = meta.phase(tree)
    is_pending = phase == "Pending" or (not phase and bool(core.node_name(tree)))
    return is_pending and core.has_node(tree) and not is_initialising(tree)


def is_failing(tree: JsonView) -> bool:
    """Whether a container of a pod that has started waits to be started again."""
    is_running = meta.phase(tree) == "Running" and core.has_node(tree)
    return is_running and not meta.is_deleting(tree) and any(waiting_containers(tree))


def is_initialising(tree: JsonView) -> bool:
    """Whether an init container of a pending pod runs and all others wait for their turn."""
    runs = any(each.state.running is not None for each in core.init_container_statuses(tree))
    return runs and meta.phase(tree) == "Pending" and not [*waiting_containers(tree)]


def warnings(events: Iterable[Event]) -> dict[str, KubeletWarning]:
    """The newest warning of a kubelet, among Event objects, about each pod: by uid or by name.

    An Event without a uid counts for the pod of its name. One that names no component is of a
    kubelet if only kubelets give its reason.
    """
    newest: dict[str, KubeletWarning] = {}
    for event in events:
        event_object = core.event_object(event.object)
        by = {
            event_object.source.component,
            event_object.reporting_component,
            event_object.reporting_controller,
        }
        about = event_object.subject
        is_known = event_object.reason in _REASONS_OF_KUBELETS
        is_kubelets = _KUBELET in by or (is_known and not any(by))
        is_warning = event_object.type == "Warning" or (is_known and not event_object.type)
        if not is_kubelets or not is_warning or about.kind != "Pod":
            continue
        key = about.uid or f"{about.namespace}/{about.name}"
        if key not in newest or event.revision > newest[key].event.revision:
            count = event_object.occurrences
            newest[key] = KubeletWarning(
                event=event, reason=event_object.reason, message=event_object.text, count=count
            )
    return newest


def warning_about(warnings: Mapping[str, KubeletWarning], tree: JsonView) -> KubeletWarning | None:
    """The newest warning about a pod.

    None if it says that devices were not prepared and a container was started: they were prepared
    in the end.
    """
    named = warnings.get(f"{meta.namespace(tree)}/{meta.name(tree)}")
    by_uid = warnings.get(meta.uid(tree))
    both = [one for one in (named, by_uid) if one is not None]
    newest = max(both, key=lambda one: one.event.revision, default=None)
    if newest is not None and newest.reason == FAILED_PREPARE and _was_started(tree):
        return None
    return newest


def _was_started(tree: JsonView) -> bool:
    """Whether any container of a pod was ever started."""
    return any(
        each.restart_count or each.state.running is not None or each.state.terminated is not None
        for each in (*core.init_container_statuses(tree), *core.container_statuses(tree))
    )


def is_ending(tree: JsonView) -> bool:
    """Whether a kubelet has to stop the containers of a pod that is being deleted."""
    return meta.is_deleting(tree) and core.has_node(tree) and not core.is_finished(tree)


def warning_of_end(warnings: Mapping[str, KubeletWarning], tree: JsonView) -> KubeletWarning | None:
    """The newest warning about a pod that is being deleted, if it came after the request."""
    until = timestamps.instant_of(meta.known_deletion_timestamp(tree))
    warning = warning_about(warnings, tree) if is_ending(tree) else None
    if warning is None or until is None:
        return None
    requested = until - _grace(tree) * SECOND
    return warning if warning.event.stamp.time >= requested else None


def warning_reason(warning: KubeletWarning, tree: JsonView) -> Reason:
    """The warning of the kubelet of a pod's node about the pod."""
    times = f", {warning.count} times" if warning.count > 1 else ""
    return Reason(
        text=f"the kubelet of node {core.node_name(tree)} said{times}: {warning.text}"
        + (f"; its Event was deleted at {warning.gone}" if warning.gone else ""),
        revision=warning.event.revision,
        about=warning.event.key,
        is_kept=True,
    )


def held_up(warning: KubeletWarning | None, tree: JsonView) -> Iterator[Reason]:
    """The last words of the kubelet about a pod that does not run, and of its containers."""
    if not is_starting(tree) and not is_failing(tree):
        return
    if warning is not None:
        yield warning_reason(warning, tree)
    for text in container_waits(tree):
        yield Reason(text=text, is_kept=True)


def container_waits(tree: JsonView) -> Iterator[str]:
    """The waits of the containers of `waiting_containers`, with messages, ends and restarts."""
    for container in (*core.init_container_statuses(tree), *core.container_statuses(tree)):
        waiting, last = container.state.waiting, container.last_state.terminated
        if waiting.reason in _ORDINARY_WAITS:
            continue
        text = f"{_name_of(container)} waits: {waiting.reason}"
        text += f": {waiting.message}" if waiting.message else ""
        if last is not None:
            text += f"; it ended before with exit code {last.exit_code}{last.why}"
        if container.restart_count:
            text += f" and was restarted {counts.of(container.restart_count, 'time')}"
        yield text


def silence(views: LiveViews, tree: JsonView, now: Instant, newest: Callable[[], Instant]) -> str:
    """The note that a kubelet has long reported nothing about a pod of its node; empty if it has.

    Empty, too, where a recording may lack the reports of kubelets: it shows no later state of the
    pod, and `newest`, the `newest_report`, is not younger than the pod's place.
    """
    placed = meta.condition(tree, condition_types.POD_SCHEDULED)
    since = None if placed is None else timestamps.instant_of(placed.last_transition_time)
    if not is_starting(tree) or has_report(tree) or since is None or now - since < SILENT_AFTER:
        return ""
    name = core.node_name(tree)
    node = views.objects.get(ObjectKey(*api_resources.NODES, "", name))
    if node is None or not (_is_seen_since(views, tree, since) or newest() > since):
        return ""
    text = f"the kubelet of node {name} has reported nothing about it"
    if meta.annotation(node, annotations.KUBELET) == "off":
        text += (
            f"; the node's annotation {annotations.KUBELET}=off leaves its pods to a real kubelet"
        )
    if unready := not_ready(node):
        text += f"; the node {unready}"
    return text


def not_ready(node: JsonView) -> str:
    """The words that a node is not ready, since when and why; empty if it is, or says nothing."""
    ready = meta.condition(node, condition_types.READY)
    if ready is None or ready.status == "True":
        return ""
    why = ": ".join(part for part in (ready.reason, ready.message) if part)
    since = ready.last_transition_time or "an unknown time"
    return f"is not ready since {since}{f' ({why})' if why else ''}"


def newest_report(views: LiveViews) -> Instant:
    """The newest instant at which a kubelet began with a pod that is there; 0 without one."""
    trees = (views.objects.get(key) or {} for key in views.objects.keys(*api_resources.PODS))
    starts = (timestamps.instant_of(core.start_time(tree)) for tree in trees)
    return max((start for start in starts if start is not None), default=Instant(0))


def _is_seen_since(views: LiveViews, pod: JsonView, placed: Instant) -> bool:
    """Whether every report about a pod is in the log, or its state was recorded long afterwards."""
    key = ObjectKey(*api_resources.PODS, meta.namespace(pod), meta.name(pod))
    event = views.objects.event(key)
    if event is None or not sources.is_recorded([event]):
        return True
    return event.stamp.time - placed >= SILENT_AFTER


def has_report(tree: JsonView) -> bool:
    """Whether a kubelet has written a part of the pod's status."""
    return bool(core.start_time(tree) or core.container_statuses(tree))


def waiting_containers(tree: JsonView) -> Iterator[str]:
    """The containers of a pod that wait for something else than their turn."""
    for container in (*core.init_container_statuses(tree), *core.container_statuses(tree)):
        why = container.state.waiting.reason
        if why not in _ORDINARY_WAITS:
            yield f"{_name_of(container)} waits: {why}"


def _name_of(container: core.ContainerStatus) -> str:
    """The container by its name; what was printed of a pod may not show which one it is."""
    return f"container {container.name}" if container.name else "a container"


def unready(
    views: LiveViews, events: Sequence[Event], tree: JsonView, unseen: Collection[str] = ()
) -> Iterator[Reason]:
    """The claims of a bound pod that its kubelet refuses to prepare, and who set the node."""
    lacking = [*_lacking(views, tree, unseen)]
    if not lacking:
        return
    yield from lacking
    since = sources.since(events, lambda state: bool(core.node_name(state)))
    if since is not None and since is sources.creation(events):
        text = f"spec.nodeName was set when the pod was created {sources.by(since)}"
        text += ", so no scheduler chose devices for it"
        yield Reason(text=text, revision=since.revision, about=since.key, is_kept=True)
    elif since is not None:
        yield sources.made(since, "bound to its node")


def _lacking(views: LiveViews, tree: JsonView, unseen: Collection[str]) -> Iterator[Reason]:
    pod = pods.facts(tree)
    for entry in pod.entries:
        named = pods.entry_claim(pod, entry)
        if named.problem:
            yield Reason(text=f"entry {entry.name}: {named.problem}", is_kept=True)
            continue
        if named.name is None or named.name in unseen:
            continue
        key = claim_key(pod.namespace, named.name)
        claim = views.objects.get(key)
        refused = "so the kubelet refuses to prepare it"
        if claim is None:
            text = f"claim {named.name} does not exist, {refused}"
        elif not pods.is_allocated(claim):
            text = f"claim {named.name} is not allocated and not reserved for the pod, {refused}"
        elif not pods.is_reserved_for(claim, pod.uid, pod.group):
            names = [consumer.name for consumer in dra.consumers(claim)]
            users = f"; it is reserved for {listed(names, len(names))}" if names else ""
            text = f"claim {named.name} is allocated but not reserved for the pod, {refused}{users}"
        else:
            continue
        yield Reason(
            text=text, revision=sources.revision_of(views.objects, key), about=key, is_kept=True
        )


_WORK_OF_KUBELETS = "stop the containers and give the devices back"


def awaited(views: LiveViews, tree: JsonView, node: str) -> Iterator[Reason]:
    """The component that has to confirm the termination of a pod."""
    if not node:
        if not meta.finalizers(tree):
            yield Reason(text="it has no node, so nothing has to be stopped")
        return
    if core.is_finished(tree):
        yield Reason(text="its containers have ended, so it uses no devices any more")
        if meta.finalizers(tree) and _grace(tree) == 0:
            return
    key = ObjectKey(*api_resources.NODES, "", node)
    event = views.objects.event(key)
    if event is None:
        text = (
            f"node {node} is gone, so no kubelet confirms; PodGC removes the pod after 40 to 60 s"
        )
        if _may_be_unseen(views, tree):
            text = f"waits for the kubelet of node {node}, which is not among the recorded nodes"
        yield Reason(text=text, about=key, is_kept=True)
        return
    text = f"waits for the kubelet of node {node} to "
    text += "confirm its end" if core.is_finished(tree) else _WORK_OF_KUBELETS
    if unready := not_ready(event.object):
        text += f"; the node {unready}"
    lost = meta.annotation(event.object, well_known.LOST_DRIVERS)
    if lost:
        text += f"; drivers {lost} do not answer there"
    yield Reason(text=text, about=key, is_kept=True)


def _may_be_unseen(views: LiveViews, pod: JsonView) -> bool:
    """Whether the node of a pod may be there: no node was recorded, or only what was printed."""
    namespace, name = meta.namespace(pod), meta.name(pod)
    event = views.objects.event(ObjectKey(*api_resources.PODS, namespace, name))
    nodes = [views.objects.event(key) for key in views.objects.keys(*api_resources.NODES)]
    shown = [event for event in (event, *nodes[:1]) if event is not None]
    is_recorded = event is not None and sources.is_recorded([event])
    return is_recorded and (not nodes or any(sources.is_printed([each]) for each in shown))


def kept_by(views: LiveViews, tree: JsonView) -> str:
    """The finalizers or components that a terminating pod waits for, without its name."""
    finalizers = meta.finalizers(tree)
    if finalizers:
        noun = counts.plural(len(finalizers), "finalizer")
        return f"{noun} {listed(finalizers, len(finalizers))}"
    lines = [reason.text for reason in awaited(views, tree, core.node_name(tree))]
    return lines[0] if lines else "nothing is known to keep it"


def _finished(events: Sequence[Event], tree: JsonView) -> Iterator[Reason]:
    since = sources.since(events, core.is_finished)
    why = core.status_reason(tree)
    message = core.status_message(tree)
    details = ": ".join(part for part in (why, message) if part)
    text = f"ended as {meta.phase(tree)}{f' ({details})' if details else ''}"
    lines = tuple(_containers(tree))
    yield sources.made(since, text, *lines)


def _containers(tree: JsonView) -> Iterator[Reason]:
    for container in (*core.init_container_statuses(tree), *core.container_statuses(tree)):
        end = container.state.terminated
        if end is not None:
            signal = f", signal {end.signal}" if end.signal else ""
            text = f"{_name_of(container)}: exit code {end.exit_code}{signal}{end.why}"
            yield Reason(text=text)


def _grace(tree: JsonView) -> int:
    return meta.deletion_grace_seconds(tree) or 0


def keeps(finalizer: str, tree: JsonView) -> bool:
    """Whether an object has a finalizer."""
    return finalizer in meta.finalizers(tree)


def _has(kind: str, tree: JsonView) -> bool:
    return meta.condition(tree, kind) is not None
