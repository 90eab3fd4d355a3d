"""The pods of a workload: the states of those that are there, and the ends of those that are gone.

Pods with the same state, or the same end, are listed together.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from app.analysis import scheduler_messages
from app.analysis.explain import lives, sources
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed, only_node
from app.analysis.views import LiveViews
from app.domain.controllers import daemon_nodes
from app.domain.log import Event, ObjectKey
from app.domain.objects import registry
from app.domain.values import api_resources, condition_types, counts, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

UNTOLD = "no scheduler has said why"
_NOT_STARTED = "not started on its node"

_ORDINAL = re.compile(r"[1-9][0-9]{0,9}")
"""The number of a pod of a StatefulSet that is made after another one, as its name has it."""

_KINDS_WITH_REPLICAS = frozenset(("deployments", "replicasets", "statefulsets"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods with the same state, newest first; `is_held_up` is whether they do not run yet."""

    state: str
    pods: tuple[ObjectKey, ...]
    is_held_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPod:
    """A pod that is gone: the event of its deletion, and the description of what ended it.

    `events` are those of its life, newest first.
    """

    end: Event
    words: str
    events: Sequence[Event]


def groups(
    views: LiveViews,
    pods: Iterable[ObjectKey],
    unasked: Callable[[JsonObject], str],
    now: Instant,
    *,
    reads_events: bool,
) -> list[PodGroup]:
    """The pods by state, those that are held up first.

    `unasked` says why no node is asked about a pod, or nothing.
    """
    states: dict[tuple[bool, str], list[ObjectKey]] = {}
    warnings: dict[str, lives.KubeletWarning] | None = None
    newest = cache(partial(lives.newest_report, views))
    for key in pods:
        tree = views.objects.get(key)
        if tree is None:
            continue
        if warnings is None:
            events = views.objects.unusual_events(key.namespace) if reads_events else ()
            warnings = lives.warnings(events)
        states.setdefault(_state(views, tree, unasked, warnings, now, newest), []).append(key)
    ordered = sorted(states.items(), key=lambda one: (not one[0][0], one[0][1]))
    return [
        PodGroup(
            state=state,
            pods=tuple(sorted(keys, key=lambda key: -views.objects.created(key))),
            is_held_up=is_held_up,
        )
        for (is_held_up, state), keys in ordered
    ]


def _state(
    views: LiveViews,
    tree: JsonObject,
    unasked: Callable[[JsonObject], str],
    warnings: Mapping[str, lives.KubeletWarning],
    now: Instant,
    newest: Callable[[], Instant],
) -> tuple[bool, str]:
    """Whether a pod is held up, and its state after `1 pod`: what it waits for, or that it runs."""
    if meta.is_deleting(tree):  # its own end makes a pod fail
        return False, f"being deleted: {lives.kept_by(views, tree)}"
    if core.is_finished(tree):
        if meta.phase(tree) != "Failed":
            return False, "finished"
        return True, f"failed: {failure(tree)}"
    if not core.has_node(tree):
        refused = meta.condition(tree, condition_types.POD_SCHEDULED)
        message = "" if refused is None or refused.status != "False" else refused.message
        cause = unasked(tree) or (message and scheduler_messages.first_cause(message)) or UNTOLD
        return True, f"waiting: {cause}"
    waits = next(lives.waiting_containers(tree), "")
    if lives.is_starting(tree):
        warning = lives.warning_about(warnings, tree)
        message = "" if warning is None else warning.text
        why = message or waits or lives.silence(views, tree, now, newest)
        return True, f"{_NOT_STARTED}{f': {why}' if why else ''}"
    return (True, f"running, but {waits}") if waits else (False, "running")


def failure(tree: JsonView) -> str:
    """The cause of a pod's failure: its reason and message, or the exit code of a container."""
    text = ": ".join(part for part in (core.status_reason(tree), core.status_message(tree)) if part)
    if text:
        return text
    for container in (*core.init_container_statuses(tree), *core.container_statuses(tree)):
        end = container.state.terminated
        if end is not None and end.exit_code:
            why = f" ({end.reason})" if end.reason else ""
            return f"exit code {end.exit_code}{why}"
    return "for a reason that its status does not show"


def restarts(views: LiveViews, pods: Iterable[ObjectKey]) -> Iterator[Reason]:
    """The containers that were restarted most, with how they ended before."""
    restarted: list[tuple[int, ObjectKey, core.ContainerStatus]] = []
    for key in pods:
        tree = views.objects.get(key) or {}
        for container in (*core.init_container_statuses(tree), *core.container_statuses(tree)):
            if container.restart_count:
                restarted.append((container.restart_count, key, container))
    restarted.sort(key=lambda one: (-one[0], one[1]))
    for count, key, container in restarted[:NAMES_MAX]:
        end = container.last_state.terminated
        why = "" if end is None else f", last after exit code {end.exit_code}{end.why}"
        text = f"container {container.name} of pod {key.namespace}/{key.name} was restarted "
        yield Reason(text=f"{text}{counts.of(count, 'time')}{why}", about=key, is_kept=True)
    if len(restarted) > NAMES_MAX:
        left = len(restarted) - NAMES_MAX
        was = counts.verb(left, "was")
        yield Reason(text=f"{counts.of(left, 'more container')} {was} restarted")


def group_reason(group: PodGroup, children: Sequence[Reason] = ()) -> Reason:
    """The state of pods, with the first names of them."""
    count = len(group.pods)
    names = [f"{key.namespace}/{key.name}" for key in group.pods]
    state = group.state
    if count > 1 and state.startswith(_NOT_STARTED):
        state = f"not started on their nodes{state.removeprefix(_NOT_STARTED)}"
    text = f"{counts.of(count, 'pod')} {counts.verb(count, 'is')} {state}: "
    return Reason(
        text=text + listed(names, count),
        children=tuple(children),
        count=count,
        about=group.pods[0] if count == 1 else None,
        is_kept=group.is_held_up,
    )


def ended(events: Sequence[Event]) -> EndedPod:
    """The end of a pod from the events of its life, newest first; the first is its deletion."""
    end = events[0]
    disrupted = meta.condition(end.object, condition_types.DISRUPTION_TARGET)
    since = sources.since(events[1:], meta.is_deleting)
    author = sources.by(since or end).partition(" at ")[0]
    before = next((one.object for one in events[1:] if not meta.is_deleting(one.object)), {})
    if disrupted is not None and disrupted.status == "True":
        words = f"evicted: {disrupted.reason}: {disrupted.message}"
    elif meta.phase(before) == "Failed":  # after the request, its own end makes a pod fail
        words = f"deleted {author} after they had failed: {failure(before)}"
    elif core.is_finished(before):
        words = f"deleted {author} after they had finished"
    else:
        words = f"deleted {author}"
    return EndedPod(end=end, words=words, events=events)


def together(pods: Iterable[EndedPod]) -> list[list[EndedPod]]:
    """The pods that ended alike, newest first, evictions before others."""
    alike: dict[str, list[EndedPod]] = {}
    for pod in sorted(pods, key=lambda one: -one.end.revision):
        alike.setdefault(pod.words, []).append(pod)
    return sorted(alike.values(), key=lambda one: not one[0].words.startswith("evicted"))


def ended_reason(pods: Sequence[EndedPod], children: Sequence[Reason] = ()) -> Reason:
    """The end of pods that are gone, with the first names and the newest instant."""
    count, newest = len(pods), pods[0].end
    names = [f"{pod.end.key.namespace}/{pod.end.key.name}" for pod in pods]
    words = pods[0].words.replace("after they", "after it") if count == 1 else pods[0].words
    last = "" if count == 1 else "the last "
    when = f"{last}{'gone ' if count == 1 else ''}at {sources.when(newest.stamp.time)}"
    was = counts.verb(count, "was")
    return Reason(
        text=f"{counts.of(count, 'pod')} {was} {words}: {listed(names, count)}, {when}",
        children=tuple(children),
        count=count,
        revision=newest.revision,
        about=newest.key if count == 1 else None,
        is_kept=words.startswith("evicted"),
    )


def summary(views: LiveViews, key: ObjectKey, tree: JsonView, shown: Sequence[PodGroup]) -> str:
    """The number of wanted pods that run, as text after the workload's name; empty without pods.

    Those with an older template are told apart: they run, and the rollout has not reached them.
    """
    pods = [pod for group in shown if group.state == "running" for pod in group.pods]
    running = len(pods)
    present = sum(len(group.pods) for group in shown)
    wanted, noun = present, "pod"
    if key.resource in _KINDS_WITH_REPLICAS:
        replicas = core.replicas(tree)
        wanted, noun = 1 if replicas is None else replicas, "wanted pod"
    if not wanted and not present:
        return "no pod is wanted" if key.resource in _KINDS_WITH_REPLICAS else ""
    text = f"{running} of {counts.of(wanted, noun)} {counts.verb(running or wanted, 'runs')}"
    older = sum(_has_older_template(views, key, tree, pod) for pod in pods)
    if not older:
        return text
    which = "all" if older == running > 2 else "both" if older == running == 2 else f"{older}"
    return f"{text}, {'' if running == 1 else f'{which} of them '}with an older template"


def _has_older_template(views: LiveViews, key: ObjectKey, tree: JsonView, pod: ObjectKey) -> bool:
    """Whether a pod was made from a template that its workload had before, as far as is known."""
    made = views.objects.get(pod) or {}
    if key.resource == "statefulsets":
        present = core.update_revision(tree)
        own = meta.labels(made).get(well_known.CONTROLLER_REVISION, "")
        return bool(present and own) and own != present
    if key.resource != "deployments":
        return False
    owner = views.objects.by_uid(meta.controller_uid(made))
    present = meta.annotation(tree, well_known.DEPLOYMENT_REVISION)
    own = (
        ""
        if owner is None
        else meta.annotation(views.objects.get(owner) or {}, well_known.DEPLOYMENT_REVISION)
    )
    return bool(present and own) and own != present


def outcome(key: ObjectKey, tree: JsonView) -> str:
    """The state of an object in one word: how a Job has ended, or that it is suspended."""
    states = _STATES_OF_JOBS if key[:2] == api_resources.JOBS else ()
    return next((state for state in states if meta.is_true(tree, state)), "Present")


_STATES_OF_JOBS = ("Failed", "Complete", "Suspended")
"""The conditions of Jobs that say that no pod runs."""


def held_back(key: ObjectKey, tree: JsonView) -> Iterator[Reason]:
    """The switches of a workload that keep its controller from making pods."""
    spec = meta.spec(tree)
    if spec.get("paused") is True:
        yield Reason(
            text="spec.paused is true: no rollout goes on",
            about=key,
            holds=lambda state: meta.spec(state).get("paused") is True,
            is_kept=True,
        )
    if spec.get("suspend") is True:
        made = "jobs" if key[:2] == api_resources.CRON_JOBS else "pods"
        yield Reason(
            text=f"spec.suspend is true: its controller makes no {made}{queue_of(tree)}",
            about=key,
            holds=lambda state: meta.spec(state).get("suspend") is True,
            is_kept=True,
        )


def queue_of(tree: JsonView) -> str:
    """The labels of a suspended workload that name a queue: it may wait until that admits it."""
    labels = [
        f"{label}={value}"
        for label, value in sorted(meta.labels(tree).items())
        if label.endswith("queue-name")
    ]
    return f"; it may wait for its queue: {', '.join(labels[:NAMES_MAX])}" if labels else ""


def in_turn(key: ObjectKey, tree: JsonView, shown: Sequence[PodGroup]) -> str:
    """The note that a StatefulSet makes its next pod when the present ones are ready, or empty."""
    spec = meta.spec(tree)
    if key.resource != "statefulsets" or spec.get("podManagementPolicy") == "Parallel":
        return ""
    wanted = core.replicas(tree)
    held_up = [pod for group in shown if group.is_held_up for pod in group.pods]
    lacking = (1 if wanted is None else wanted) - sum(len(group.pods) for group in shown)
    if lacking <= 0 or not held_up:
        return ""
    names = [f"{pod.namespace}/{pod.name}" for pod in held_up]
    text = f"{counts.of(lacking, 'pod')} {counts.verb(lacking, 'is')} made only when "
    return f"{text}{listed(names, len(names))} {counts.verb(len(names), 'is')} ready: one by one"


def not_made_yet(views: LiveViews, key: ObjectKey) -> tuple[ObjectKey, str] | None:
    """The StatefulSet that makes a pod of this name later, in its order, with a note; or None."""
    name, _, number = key.name.rpartition("-")
    owner = ObjectKey(*api_resources.STATEFUL_SETS, key.namespace, name)
    tree = views.objects.get(owner) if _ORDINAL.fullmatch(number) else None
    if tree is None or key.resource != "pods":
        return None
    spec = meta.spec(tree)
    wanted = core.replicas(tree)
    is_parallel = spec.get("podManagementPolicy") == "Parallel"
    if is_parallel or "ordinals" in spec or int(number) >= (1 if wanted is None else wanted):
        return None
    before = f"{name}-{int(number) - 1}"
    note = f"; StatefulSet {name} makes its pods one by one: {key.name} only when {before} is ready"
    return owner, note


def left_out(views: LiveViews, key: ObjectKey, tree: JsonView) -> Iterator[Reason]:
    """The nodes on which a DaemonSet wants no pod, by the cause."""
    if key[:2] != api_resources.DAEMON_SETS:
        return
    causes: dict[str, list[str]] = {}
    template = core.template(tree)
    for place in views.objects.keys(*api_resources.NODES):
        cause = daemon_nodes.refusal(template, views.objects.get(place) or {})
        if cause:
            causes.setdefault(cause, []).append(place.name)
    for cause, names in sorted(causes.items()):
        noun = counts.plural(len(names), "node")
        yield Reason(
            text=f"it wants no pod on {noun} {listed(names, len(names))}: {cause}",
            count=len(names),
            about=only_node(names),
            is_kept=cause != daemon_nodes.OTHER_LABELS,
        )


def prefix_of(key: ObjectKey) -> str:
    """The beginning of the names of a workload's pods; empty for custom kinds.

    Names of pods begin with that of what they were made for, cut where it is long. Controllers of
    custom kinds name their pods as they like.
    """
    return key.name[:_SHARED_CHARACTERS] if registry.find(*key[:2]) is not None else ""


_SHARED_CHARACTERS = 40
"""The characters of a workload's name with which the names of its pods begin at least."""


def generates_names(key: ObjectKey) -> bool:
    """Whether a workload gives each pod a name of its own, not that of a pod before it."""
    return key.resource != "statefulsets" and registry.find(*key[:2]) is not None


def not_looked_at(key: ObjectKey, count: int, *, is_cut: bool) -> Iterator[Reason]:
    """The pods that may be gone and were not looked at; with `is_cut` there may be more names."""
    which = "whose names begin alike" if prefix_of(key) else f"of namespace {key.namespace}"
    if count:
        least = "at least " if is_cut else ""
        was = counts.verb(count, "was")
        text = f"{least}{counts.of(count, 'more pod')} {which} {was} not looked at"
        yield Reason(text=text, is_kept=True)
    elif is_cut:
        yield Reason(text=f"there may be more pods {which}: not all were looked at", is_kept=True)


def in_part(names: Sequence[str], events_max: int) -> Iterator[Reason]:
    """The pods of which only the last events were looked at."""
    if names:
        noun, shown = counts.plural(len(names), "pod"), listed(names, len(names))
        text = f"only the last {events_max} events of {noun} {shown} were looked at"
        yield Reason(text=text, count=len(names), is_kept=True)
