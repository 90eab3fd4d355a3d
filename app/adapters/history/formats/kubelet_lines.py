"""Lines of a kubelet about a pod, apart from Events.

    I0102 03:04:05.000006  222 kubelet.go:2433] "SyncLoop ADD" source="api" pods=["ns/a"]
    E0102 03:04:06.000006  222 pod_workers.go:1301] "Error syncing pod, skipping" err="…" pod="ns/a"
    E0102 03:04:07.000006  222 kuberuntime_manager.go:1212] container &Container{…} start failed in
        pod a_ns(uid): CreateContainerError: …
    {"ts":1700000000000.1,"msg":"Failed to prepare dynamic resources","pod":{…},"err":"…"}

A line shows neither a state of the pod nor an Event: it is a failure or a report of the kubelet
about the pod, recorded as an observed request.
"""

import re
from collections.abc import Mapping
from typing import Any

from app.domain.log.event import Actor
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT

KUBELET = Actor(user="kubelet")
"""The component; a line does not show the user as which it writes."""

_FAILURES = frozenset(
    (
        "Error syncing pod, skipping",
        "Error syncing pod",
        "Failed to prepare dynamic resources",
        "Unable to attach or mount volumes for pod; skipping pod",
    )
)
_CONTAINERS = "SyncLoop (PLEG): event for pod"
_LISTS = frozenset(("SyncLoop ADD", "SyncLoop DELETE", "SyncLoop REMOVE"))
_KILLED = "Killing container with a grace period"
_STARTED = "Observed pod startup duration"
_MESSAGES = _FAILURES | _LISTS | {_CONTAINERS, _KILLED, _STARTED}
_ENCODED = [f'"{text}'.encode() for text in _MESSAGES]
"""The messages as a line quotes them; Events have some of the same words without quotes."""

_UNHANDLED = "Unhandled Error"
"""The message around errors without fields of their own, since 1.31."""
_START_FAILED = b" start failed in pod "

_FAILED_START = re.compile(
    r"(?:init |ephemeral )?container &Container\{Name:(?P<container>[a-z0-9-]+),"
    r".* start failed in pod (?P<name>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)\([^()]+\): (?P<why>.+)"
)
_TYPE = re.compile(r'\bType"?: ?"?(?P<type>Container\w+)')
_POD = re.compile(r"(?<![a-z0-9-])[a-z0-9-]+/[a-z0-9.-]+")
_FIELDS = {_KILLED: ("containerName",), _STARTED: ("podStartE2EDuration",)}

Report = tuple[str, str, str, str]
"""Verb, namespace, name and message."""


def mentioned_in(content: bytes) -> bool:
    """True for a text with the words of such a line."""
    return _START_FAILED in content or any(text in content for text in _ENCODED)


def of_failed_start(text: str) -> list[Report]:
    """The report of an error about a container that did not start; empty for other texts.

    Such errors show the whole container, and have no fields.
    """
    failed = _FAILED_START.match(text)
    if failed is None:
        return []
    message = f"container {failed['container']} did not start: {failed['why']}"
    return [(KUBELET_FAILURE, failed["namespace"], failed["name"], message)]


def field_of_pods(text: str) -> str:
    """The field that names the pods of a message; empty for other messages."""
    return "" if text not in _MESSAGES else "pods" if text in _LISTS else "pod"


def of_fields(text: str, fields: Mapping[str, Any], rest: str = "") -> list[Report]:
    """The reports of a line with this message and these fields, one for each pod.

    `rest` is the line behind its head, in which values without quotes are whole.
    """
    if text == _UNHANDLED:
        return of_failed_start(_texts(fields.get("err")))
    if text not in _MESSAGES:
        return []
    names = _POD.findall(_texts(fields.get(field_of_pods(text))))
    verb = KUBELET_FAILURE if text in _FAILURES else KUBELET_REPORT
    message = text
    if text in _FAILURES and isinstance(why := fields.get("err"), str):
        message = f"{text}: {why}"
    elif text == _CONTAINERS:
        kind = _TYPE.search(rest) or _TYPE.search(str(fields.get("event", "")).replace("'", '"'))
        message = text if kind is None else f"{text}: {kind['type']}"
    for name in _FIELDS.get(text, ()):
        if isinstance(value := fields.get(name), str):
            message = f"{message}: {value}"
    return [(verb, *_split(name), message) for name in names]


def _texts(value: Any) -> str:
    """The pods of a field: `ns/a`, a list of such, or a reference."""
    if isinstance(value, Mapping):
        return f"{value.get('namespace', '')}/{value.get('name', '')}"
    if isinstance(value, list):
        return " ".join(_texts(each) for each in value)
    return value if isinstance(value, str) else ""


def _split(name: str) -> tuple[str, str]:
    namespace, _, name = name.partition("/")
    return namespace, name
