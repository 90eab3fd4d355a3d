"""The pod status that a kubelet writes: for a pod that runs, restarts or has ended.

Parity: controllers.md 5.3. Addresses are derived from uids, images have no digests.
"""

import zlib
from dataclasses import dataclass

from app.domain.controllers.kubelet import annotations
from app.domain.controllers.resources import pod_key
from app.domain.objects.write.commands import PatchObject, PatchType, WriteOptions
from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import core, entries, meta
from app.domain.values.fields.core import ContainerStatus
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

KUBELET = WriteOptions(field_manager="kubelet")

KILLED = 137
"""The exit code of a container that was killed."""

_RUNNING = (
    condition_types.POD_READY_TO_START_CONTAINERS,
    condition_types.INITIALIZED,
    condition_types.READY,
    condition_types.CONTAINERS_READY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The exit of containers. `reason` and `message` are the pod's and usually empty."""

    code: int
    reason: str = ""
    message: str = ""

    @property
    def phase(self) -> str:
        """The pod's phase when no container is restarted."""
        return "Succeeded" if self.code == 0 else "Failed"


def running(pod: JsonView, node: JsonView, now: Instant) -> PatchObject:
    """The status patch of a pod whose containers all run and are ready."""
    text = timestamps.seconds_text(now)
    address = _address(meta.uid(pod))
    host = host_of(node)
    status: JsonObject = {
        "observedGeneration": meta.generation(pod) or 1,
        "phase": "Running",
        "startTime": text,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [_condition(pod, kind, "True", text) for kind in _RUNNING],
        "containerStatuses": [
            _container(container, {"running": {"startedAt": text}}, restarts=0, is_ready=True)
            for container in core.containers(pod)
        ],
    }
    initial = core.init_containers(pod)
    if initial:
        status["initContainerStatuses"] = [
            _initial(container_tree, text) for container_tree in initial
        ]
    return _patch(pod, status)


def restarted(pod: JsonView, exit_: Exit, now: Instant) -> PatchObject:
    """The status patch of a pod whose containers ended and were restarted at once."""
    text = timestamps.seconds_text(now)
    statuses = []
    for container in core.containers(pod):
        old = _status_of(pod, container)
        state = {"running": {"startedAt": text}}
        status = _container(container, state, restarts=old.restart_count + 1, is_ready=True)
        status["lastState"] = {"terminated": _terminated(old, exit_, text)}
        statuses.append(status)
    return _patch(pod, {"containerStatuses": statuses})


def ended(pod: JsonView, exit_: Exit, now: Instant) -> PatchObject:
    """The status patch of a pod that has reached its last phase."""
    text = timestamps.seconds_text(now)
    reason = "PodCompleted" if exit_.code == 0 else "PodFailed"
    has_run = bool(core.container_statuses(pod))
    conditions = [
        _condition(pod, condition_types.POD_READY_TO_START_CONTAINERS, "False", text),
        _condition(pod, condition_types.READY, "False", text, reason),
        _condition(pod, condition_types.CONTAINERS_READY, "False", text, reason),
    ]
    if exit_.code == 0:
        conditions.append(_condition(pod, condition_types.INITIALIZED, "True", text, reason))
    status: JsonObject = {
        "observedGeneration": meta.generation(pod) or 1,
        "phase": exit_.phase,
        "conditions": conditions,
    }
    if has_run:
        status["containerStatuses"] = [
            _container(
                container,
                {"terminated": _terminated(_status_of(pod, container), exit_, text)},
                restarts=_status_of(pod, container).restart_count,
                is_ready=False,
            )
            for container in core.containers(pod)
        ]
    if exit_.reason:
        status |= {"reason": exit_.reason, "message": exit_.message}
    return _patch(pod, status)


def exit_of(pod: JsonView, otherwise: int) -> Exit:
    """The exit of the containers: with the code of the annotation, or else with `otherwise`."""
    code = annotations.exit_code(pod)
    return Exit(code=otherwise if code is None else code)


def restart_count(pod: JsonView) -> int:
    """The highest restart count of the pod's containers."""
    return max((status.restart_count for status in core.container_statuses(pod)), default=0)


def _patch(pod: JsonView, status: JsonObject) -> PatchObject:
    metadata = meta.metadata(pod)
    return PatchObject(
        key=pod_key(metadata["namespace"], metadata["name"]),
        version="v1",
        type=PatchType.STRATEGIC,
        body={"metadata": meta.same_object(pod), "status": status},
        subresource="status",
        options=KUBELET,
    )


def _condition(pod: JsonView, kind: str, status: str, text: str, reason: str = "") -> JsonObject:
    since = text
    for present in meta.conditions(pod):
        if (present.type, present.status) == (kind, status):
            since = present.last_transition_time or text
    condition: JsonObject = {
        "type": kind,
        "status": status,
        "observedGeneration": meta.generation(pod) or 1,
        "lastProbeTime": None,
        "lastTransitionTime": since,
    }
    if reason:
        condition["reason"] = reason
    return condition


def _container(
    container: JsonView, state: JsonObject, *, restarts: int, is_ready: bool
) -> JsonObject:
    return {
        "name": entries.name(container),
        "state": state,
        "lastState": {},
        "ready": is_ready,
        "restartCount": restarts,
        "image": json_tree.text(container, "image"),
        "imageID": "",
        "started": is_ready,
    }


def _initial(container: JsonView, text: str) -> JsonObject:
    if container.get("restartPolicy") == "Always":
        return _container(container, {"running": {"startedAt": text}}, restarts=0, is_ready=True)
    done = {"exitCode": 0, "reason": "Completed", "startedAt": text, "finishedAt": text}
    status = _container(container, {"terminated": done}, restarts=0, is_ready=True)
    return status | {"started": False}


def _terminated(old: ContainerStatus, exit_: Exit, text: str) -> JsonObject:
    running = old.state.running
    return {
        "exitCode": exit_.code,
        "reason": "Completed" if exit_.code == 0 else "Error",
        "startedAt": (running.started_at if running else "") or text,
        "finishedAt": text,
    }


def _status_of(pod: JsonView, container: JsonView) -> ContainerStatus:
    for status in core.container_statuses(pod):
        if status.name == container.get("name"):
            return status
    return ContainerStatus()


def host_of(node: JsonView) -> str:
    """The address of a node; a derived one if it names none."""
    for address in json_tree.objects(node, "status", "addresses"):
        if address.get("type") == "InternalIP":
            return json_tree.text(address, "address")
    return _address(meta.uid(node))


def _address(uid: str) -> str:
    """An address in 10.0.0.0/8 that is derived from the uid."""
    number = zlib.crc32(uid.encode())
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
