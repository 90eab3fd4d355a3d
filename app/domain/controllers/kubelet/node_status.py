"""The report of a kubelet about its node when it registers: labels, capacity, conditions.

A node that was created with a Ready condition is left unchanged.
"""

from app.domain.controllers.kubelet.pod_status import KUBELET
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import Command, PatchObject, PatchType
from app.domain.values import api_resources, condition_types, json_tree, timestamps, well_known
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

DEFAULT_RESOURCES = {"cpu": "64", "memory": "256Gi", "pods": "110"}
"""The default resources of a node."""

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "sufficient PID available"),
)


def is_reported(node: JsonView) -> bool:
    """True when the node has a Ready condition."""
    return meta.condition(node, condition_types.READY) is not None


def registration(node: JsonView, now: Instant) -> tuple[Command, ...]:
    """The writes that make a bare node usable."""
    name = meta.name(node)
    key = ObjectKey(*api_resources.NODES, "", name)
    labels = meta.labels(node)
    wanted = {
        well_known.ARCH: "amd64",
        well_known.HOSTNAME: name,
        well_known.OS: "linux",
    }
    missing = {key: value for key, value in wanted.items() if key not in labels}
    commands: list[Command] = []
    if missing:
        body: JsonObject = {"metadata": {"labels": missing}}
        commands.append(_patch(key, body, ""))
    text = timestamps.seconds_text(now)
    conditions = [
        _condition(kind, status, reason, f"kubelet has {message}", text)
        for kind, status, reason, message in _CONDITIONS
    ]
    conditions.append(
        _condition(
            condition_types.READY, "True", "KubeletReady", "kubelet is posting ready status", text
        )
    )
    capacity = DEFAULT_RESOURCES | dict(json_tree.mapping(node, "status", "capacity"))
    allocatable = capacity | dict(core.allocatable(node))
    status = {"capacity": capacity, "allocatable": allocatable, "conditions": conditions}
    commands.append(_patch(key, {"status": status}, "status"))
    return tuple(commands)


def _condition(kind: str, status: str, reason: str, message: str, text: str) -> JsonObject:
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": text,
        "lastTransitionTime": text,
        "reason": reason,
        "message": message,
    }


def _patch(key: ObjectKey, body: JsonObject, subresource: str) -> PatchObject:
    return PatchObject(
        key=key,
        version="v1",
        type=PatchType.STRATEGIC,
        body=body,
        subresource=subresource,
        options=KUBELET,
    )
