"""The scheduler's message about a pod that it cannot place: one sentence, with counts of nodes.

Example: `Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims.
preemption: …`. Parity: controllers.md 4.
"""

import json
import re
from collections.abc import Iterator

_DECODER = json.JSONDecoder()
_AVAILABLE = re.compile(r"^\d+/\d+ nodes are available: ")
_NODES = re.compile(r"\b\d+/(\d+) nodes are available")
_AFTERWARDS = re.compile(
    r"[.,]?(?: no new claims to deallocate[.,]?| still not schedulable[.,]?)*(?: preemption: .*)?$",
    re.DOTALL,
)
_QUOTED = re.compile(r'"[^"]*"')
_COUNTS = re.compile(r"(?:(?<=^)|(?<=, ))\d+ ")
_REASON = re.compile(r"(\d+) (.+)$", re.DOTALL)
_TAINTS = re.compile(r"\{[^}]*\}")
_VOLUMES_OF_NODES = re.compile(r"node.*(?:volume|pvc|free storage|available disk)", re.IGNORECASE)
_VALUE = re.compile(r"Invalid value: (?=[{\[])")
_TOO_LITTLE = "Insufficient "
_VOLUMES_OF_POD = re.compile(r"persistentvolumeclaim", re.IGNORECASE)


def first_cause(message: str) -> str:
    """The cause that keeps a pod from being scheduled, without the numbers of nodes.

    Example: `Unschedulable: 0/3 nodes are available: 3 cannot allocate all claims. preemption: …`
    gives `cannot allocate all claims`. Objects and lists that the API refused are left out.
    """
    text, is_counted = _stripped(_without_values(message))
    if is_counted:
        text = _COUNTS.sub("", text)
    return text.rstrip(". ") or message


def of_nodes(message: str) -> str:
    """The answers of the nodes with their numbers, without what preemption came to."""
    return _AFTERWARDS.sub("", message) or message


def counted_nodes(message: str) -> int:
    """The number of nodes that a scheduler knew when it refused a pod; 0 if it does not say."""
    match = _NODES.search(message)
    return 0 if match is None else int(match[1])


def _without_values(message: str) -> str:
    """The message with `…` for each object and list that follows `Invalid value: `."""
    parts, end = [], 0
    for match in _VALUE.finditer(message):
        if match.end() < end:
            continue
        try:
            _, length = _DECODER.raw_decode(message[match.end() :])
        except ValueError:
            continue
        parts += [message[end : match.end()], "…"]
        end = match.end() + length
    return "".join((*parts, message[end:]))


def names_lack_of(refusal: str, resource: str) -> bool:
    """Whether one of the reasons of a node is that it has too little of a resource."""
    return resource in lacking(refusal)


def lacking(refusal: str) -> list[str]:
    """The resources of which a node has too little, in the order of its reasons."""
    return [
        reason.removeprefix(_TOO_LITTLE)
        for reason in refusal.split(", ")
        if reason.startswith(_TOO_LITTLE)
    ]


def without_names(cause: str) -> str:
    """A cause with its quoted names left out; causes that differ in nothing else are of a kind."""
    return _QUOTED.sub('"…"', cause)


def reasons(message: str) -> Iterator[tuple[str, int]]:
    """Each reason with the number of nodes that gave it; none for a message without counts."""
    text, is_counted = _stripped(message)
    if not is_counted:
        return
    for part in re.split(r", (?=\d+ )", text.rstrip(". ")):
        reason = _REASON.match(part)
        if reason is not None:
            yield reason[2].rstrip(". "), int(reason[1])


def about_volumes(message: str) -> list[tuple[str, int]]:
    """The reasons that lie in the volumes of the pod, with their numbers of nodes.

    A reason for which no node was looked at has no number (0), as in `0/3 nodes are available: pod
    has unbound immediate PersistentVolumeClaims.`
    """
    counted = [*reasons(message)]
    if counted:
        return [each for each in counted if _VOLUMES_OF_NODES.match(_TAINTS.sub("", each[0]))]
    text, is_counted = _stripped(message)
    is_of_pod = is_counted and _VOLUMES_OF_POD.search(_QUOTED.sub("", text))
    return [(text.rstrip(". "), 0)] if is_of_pod else []


def _stripped(message: str) -> tuple[str, int]:
    """The reasons alone, and whether a count of nodes preceded them."""
    text = message.removeprefix("Unschedulable: ").removeprefix("SchedulerError: ")
    return _AVAILABLE.subn("", _AFTERWARDS.sub("", text))
