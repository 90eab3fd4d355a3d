"""The table row of a pod: which of its many states is the one to show. Parity: api.md 6."""

from app.domain.objects.printing.durations import age_text
from app.domain.objects.printing.tables import NONE, Cells, Printer, columns
from app.domain.values import condition_types, json_tree
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant


def _cells(tree: JsonObject, now: Instant) -> Cells:
    """One row."""
    spec, status = meta.spec(tree), meta.status(tree)
    sidecars = _sidecar_names(spec)
    containers = json_tree.objects(status, "containerStatuses")
    init = json_tree.objects(status, "initContainerStatuses")
    total = len(json_tree.objects(spec, "containers")) + len(sidecars)
    ready = sum(1 for one in containers if one.get("ready") is True)
    ready += sum(1 for one in init if one.get("name") in sidecars and one.get("ready") is True)
    counted = containers + [one for one in init if one.get("name") in sidecars]
    reason, initializing = _init_reason(spec, init, sidecars, _phase_reason(status))
    if initializing:
        counted = init
    else:
        reason = _container_reason(containers, reason, status)
    if meta.deletion_timestamp(tree):
        if json_tree.text(status, "reason") == "NodeLost":
            reason = "Unknown"
        elif not core.is_finished(tree):
            reason = "Terminating"
    return [
        meta.name(tree),
        f"{ready}/{total}",
        reason,
        _restarts(counted, now),
        age_text(meta.creation_timestamp(tree), now),
        json_tree.text(status, "podIP") or NONE,
        json_tree.text(spec, "nodeName") or NONE,
        json_tree.text(status, "nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]


def _phase_reason(status: JsonView) -> str:
    for condition in json_tree.objects(status, "conditions"):
        if (
            condition.get("type") == condition_types.POD_SCHEDULED
            and condition.get("reason") == "SchedulingGated"
        ):
            return "SchedulingGated"
    return json_tree.text(status, "reason") or json_tree.text(status, "phase")


def _sidecar_names(spec: JsonView) -> set[str]:
    """Init containers that keep running beside the others."""
    return {
        json_tree.text(container, "name")
        for container in json_tree.objects(spec, "initContainers")
        if container.get("restartPolicy") == "Always"
    }


def _init_reason(
    spec: JsonView, init: list[JsonObject], sidecars: set[str], reason: str
) -> tuple[str, bool]:
    """The reason while init containers run, and whether they still do."""
    total = len(json_tree.objects(spec, "initContainers"))
    for number, one in enumerate(init):
        terminated = json_tree.get(one, "state", "terminated")
        waiting = json_tree.text(one, "state", "waiting", "reason")
        if isinstance(terminated, dict) and terminated.get("exitCode", 0) == 0:
            continue
        if one.get("name") in sidecars and one.get("started") is True:
            continue
        if isinstance(terminated, dict):
            return f"Init:{_ended(terminated)}", True
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}", True
        return f"Init:{number}/{total}", True
    return reason, False


def _container_reason(containers: list[JsonObject], reason: str, status: JsonView) -> str:
    """The last container in trouble names the state; the first of the list wins."""
    running = False
    for one in reversed(containers):
        state = json_tree.mapping(one, "state")
        waiting = json_tree.text(state, "waiting", "reason")
        terminated = state.get("terminated")
        if waiting:
            reason = waiting
        elif isinstance(terminated, dict):
            reason = _ended(terminated)
        elif one.get("ready") is True and state.get("running") is not None:
            running = True
    if reason == "Completed" and running:
        return "Running" if _is_ready(status) else "NotReady"
    return reason


def _ended(terminated: JsonView) -> str:
    reason = json_tree.text(terminated, "reason")
    if reason:
        return reason
    signal = json_tree.integer(terminated, "signal")
    if signal:
        return f"Signal:{signal}"
    return f"ExitCode:{json_tree.integer(terminated, 'exitCode') or 0}"


def _is_ready(status: JsonView) -> bool:
    return any(
        condition.get("type") == condition_types.READY and condition.get("status") == "True"
        for condition in json_tree.objects(status, "conditions")
    )


def _restarts(statuses: list[JsonObject], now: Instant) -> str:
    count = sum(json_tree.integer(one, "restartCount") or 0 for one in statuses)
    last = max(
        (json_tree.text(one, "lastState", "terminated", "finishedAt") for one in statuses),
        default="",
    )
    return f"{count} ({age_text(last, now)} ago)" if count and last else str(count)


def _readiness_gates(spec: JsonView, status: JsonView) -> str:
    gates = json_tree.objects(spec, "readinessGates")
    if not gates:
        return NONE
    met = {
        json_tree.text(condition, "type")
        for condition in json_tree.objects(status, "conditions")
        if condition.get("status") == "True"
    }
    done = sum(1 for gate in gates if json_tree.text(gate, "conditionType") in met)
    return f"{done}/{len(gates)}"


TABLE = Printer(
    columns=columns(
        "Name, Ready, Status, Restarts, Age [IP, Node, Nominated Node, Readiness Gates]"
    ),
    cells=_cells,
)
