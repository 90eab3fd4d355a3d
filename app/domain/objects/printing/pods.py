"""The table row of a pod, with the rules for the state to show. Parity: api.md 6."""

from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import NONE, Cells, Printer, columns
from app.domain.values import condition_types, json_tree
from app.domain.values.fields import core, entries, meta
from app.domain.values.fields.core import ContainerStatus, Terminated
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def _cells(tree: JsonObject, now: Instant) -> Cells:
    """The cells of the row."""
    sidecars = _sidecar_names(tree)
    containers, init = core.container_statuses(tree), core.init_container_statuses(tree)
    total = len(core.containers(tree)) + len(sidecars)
    counted = containers + [one for one in init if one.name in sidecars]
    ready = sum(1 for one in counted if one.ready)
    reason, initializing = _init_reason(tree, init, sidecars, _phase_reason(tree))
    if initializing:
        counted = init
    else:
        reason = _container_reason(containers, reason, tree)
    if meta.deletion_timestamp(tree):
        if core.status_reason(tree) == "NodeLost":
            reason = "Unknown"
        elif not core.is_finished(tree):
            reason = "Terminating"
    return [
        meta.name(tree),
        f"{ready}/{total}",
        reason,
        _restarts(counted, now),
        age_text(meta.creation_timestamp(tree), now),
        json_tree.text(tree, "status", "podIP") or NONE,
        core.node_name(tree) or NONE,
        core.nominated_node_name(tree) or NONE,
        _readiness_gates(tree),
    ]


def _phase_reason(pod: JsonView) -> str:
    gated = (condition_types.POD_SCHEDULED, "SchedulingGated")
    if any((condition.type, condition.reason) == gated for condition in meta.conditions(pod)):
        return "SchedulingGated"
    return core.status_reason(pod) or meta.phase(pod)


def _sidecar_names(pod: JsonView) -> set[str]:
    """The names of sidecars: init containers with restartPolicy Always."""
    return {
        entries.name(container)
        for container in core.init_containers(pod)
        if container.get("restartPolicy") == "Always"
    }


def _init_reason(
    pod: JsonView, init: list[ContainerStatus], sidecars: set[str], reason: str
) -> tuple[str, bool]:
    """The reason to show, and whether init containers are still running."""
    total = len(core.init_containers(pod))
    for number, one in enumerate(init):
        terminated, waiting = one.state.terminated, one.state.waiting.reason
        if terminated is not None and terminated.exit_code == 0:
            continue
        if one.name in sidecars and one.started:
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}", True
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", True
        return f"Init:{number}/{total}", True
    return reason, False


def _container_reason(containers: list[ContainerStatus], reason: str, pod: JsonView) -> str:
    """The reason of the first container, in their order, that is waiting or terminated.

    Without such a container the given reason stays. Completed becomes Running, or NotReady if the
    pod is not ready, while another ready container runs.
    """
    running = False
    for one in reversed(containers):
        if one.state.waiting.reason:
            reason = one.state.waiting.reason
        elif one.state.terminated is not None:
            reason = _ended(one.state.terminated)
        elif one.ready and one.state.running is not None:
            running = True
    if reason == "Completed" and running:
        return "Running" if meta.is_true(pod, condition_types.READY) else "NotReady"
    return reason


def _ended(terminated: Terminated) -> str:
    if terminated.reason:
        return terminated.reason
    if terminated.signal:
        return f"Signal:{terminated.signal}"
    return f"ExitCode:{terminated.exit_code}"


def _restarts(statuses: list[ContainerStatus], now: Instant) -> str:
    count = sum(one.restart_count for one in statuses)
    ends = (one.last_state.terminated for one in statuses)
    last = max((end.finished_at for end in ends if end is not None), default="")
    return f"{count} ({age_text(last, now)} ago)" if count and last else str(count)


def _readiness_gates(pod: JsonView) -> str:
    gates = json_tree.objects(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    met = {condition.type for condition in meta.conditions(pod) if condition.status == "True"}
    done = sum(1 for gate in gates if json_tree.text(gate, "conditionType") in met)
    return f"{done}/{len(gates)}"


TABLE = Printer(
    columns=columns(
        "Name, Ready, Status, Restarts, Age [IP, Node, Nominated Node, Readiness Gates]"
    ),
    cells=_cells,
)
