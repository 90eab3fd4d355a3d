"""The containers on a page of `kubectl describe pod`, and what a kubelet reported of them.

    Containers:
      main:
        Image:          registry.example.com/app:1
        State:          Waiting
          Reason:       CrashLoopBackOff
        Last State:     Terminated
          Exit Code:    137
        Ready:          False
        Restart Count:  16

Names are indented by two spaces, fields by four, and the fields of a state by six. kubectl prints
the state of a container only where a kubelet has reported one.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from app.adapters.history.printouts import parts
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject

_NAME = re.compile(r" {2}(?P<name>[a-z0-9-]+):")
_FIELD = re.compile(r"(?P<blank> {4,6})(?P<name>[A-Z][\w ]*):(?:\s+(?P<value>\S.*))?")
_LEVEL = 4
_STATES = {"Waiting": "waiting", "Running": "running", "Terminated": "terminated"}
_TEXTS = {"Reason": "reason", "Message": "message"}
_NUMBERS = {"Exit Code": "exitCode", "Signal": "signal"}
_TIMES = {"Started": "startedAt", "Finished": "finishedAt"}
_OF_STATES = {
    "waiting": {"Reason", "Message"},
    "running": {"Started"},
    "terminated": {"Reason", "Message", "Exit Code", "Signal", "Started", "Finished"},
}
"""The fields of each state as kubectl prints them."""

_SECTIONS = {
    "Init Containers": ("initContainers", "initContainerStatuses"),
    "Containers": ("containers", "containerStatuses"),
}


def fill(tree: JsonObject, fields: Mapping[str, Sequence[str]]) -> None:
    """Adds to a pod its containers and their states, from the sections of its page."""
    for section, (of_spec, of_status) in _SECTIONS.items():
        containers = [_container(name, lines) for name, lines in _named(fields.get(section, ()))]
        if containers:
            tree.setdefault("spec", {})[of_spec] = [spec for spec, _ in containers]
        reported = [status for _, status in containers if "state" in status]
        if reported:
            tree.setdefault("status", {})[of_status] = reported


def instant(text: str) -> str:
    """The time in a field of a page, as objects write it; empty for year 1, which is no time."""
    try:
        seconds = int(datetime.strptime(text, "%a, %d %b %Y %H:%M:%S %z").timestamp())
    except ValueError:
        return ""
    if seconds < 0:
        return ""
    return timestamps.seconds_text(timestamps.Instant(seconds * timestamps.SECOND))


def _named(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The lines of each container, with its name."""
    containers: list[tuple[str, list[str]]] = []
    for line in lines:
        if (name := _NAME.fullmatch(line.rstrip())) is not None:
            containers.append((name["name"], []))
        elif containers:
            containers[-1][1].append(line.rstrip())
    return containers


def _container(name: str, lines: Sequence[str]) -> tuple[JsonObject, JsonObject]:
    """The specification and the status of a container, from its lines."""
    spec: JsonObject = {"name": name}
    status: JsonObject = {"name": name}
    state = ""
    shown: JsonObject = {}
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            # A message of several lines is not shown as it is.
            shown.pop("message", None)
            continue
        field, text = match["name"], (match["value"] or "").strip()
        if len(match["blank"]) > _LEVEL:
            _add(shown, state, field, text)
            continue
        state, shown = "", {}
        if field == "Image" and text:
            spec["image"] = text
        elif field in ("State", "Last State") and text in _STATES:
            state = _STATES[text]
            status["state" if field == "State" else "lastState"] = {state: shown}
        elif field == "Ready" and text in ("True", "False"):
            status["ready"] = text == "True"
        elif field == "Restart Count" and text.isdecimal():
            status["restartCount"] = int(text)
        elif field in ("Container ID", "Image ID") and text not in parts.NOT_SHOWN:
            status["containerID" if field == "Container ID" else "imageID"] = text
    return spec, status


def _add(shown: JsonObject, state: str, field: str, text: str) -> None:
    """Adds a field of a state, if the state has it."""
    if not text or field not in _OF_STATES.get(state, ()):
        return
    if field in _TEXTS:
        shown[_TEXTS[field]] = text
    elif field in _NUMBERS and text.isdecimal():
        shown[_NUMBERS[field]] = int(text)
    elif field in _TIMES and (moment := instant(text)):
        shown[_TIMES[field]] = moment
