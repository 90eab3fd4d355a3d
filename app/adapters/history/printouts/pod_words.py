"""The meaning of the STATUS of a pod, the word that kubectl prints for people.

kubectl prints one word for a pod: its phase, the reason of its status, or what a container waits
for or ended with, and `Terminating` for a pod that is being deleted.

    STATUS              phase     placed   a container
    Pending             Pending   unknown
    Init:0/2            Pending   yes
    CrashLoopBackOff    Running   yes      waits: CrashLoopBackOff
    ErrImagePull        Pending   yes      waits: ErrImagePull
    OOMKilled           unknown   yes      ended: OOMKilled
    Evicted             Failed    unknown
    Terminating         unknown   unknown
    Unknown             unknown   yes

Where a pod has several containers, or was restarted, the phase of some words is unknown, too.

Only a kubelet reports containers, so a pod with such a word was placed, also where the table shows
no node.
"""

import re

from app.adapters.history.printouts import parts
from app.domain.values import condition_types
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_PHASES = {
    "Pending": "Pending",
    "Running": "Running",
    "NotReady": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Completed": "Succeeded",
    "ContainerCreating": "Pending",
    "PodInitializing": "Pending",
    "SchedulingGated": "Pending",
}
"""Phases by the words that are a phase, or that only pods of this phase have."""

_AT_FIRST = frozenset(("ContainerCreating", "PodInitializing"))
"""Words of a pod that has not started, unless containers of it were started again."""

_UNPLACED = frozenset(("", "Pending", "SchedulingGated", "Terminating", "Succeeded"))
"""Words that do not tell whether the pod was placed."""

_REFUSED = re.compile(
    r"Failed|Evicted|Preempting|DeadlineExceeded|UnexpectedAdmissionError|NodeAffinity|NodePorts"
    r"|NodeShutdown|TopologyAffinityError|OutOf[a-z/.-]+"
)
"""Reasons of the status of a pod that has failed as a whole. Parity: history-formats.md 6."""

_OF_INIT = re.compile(r"Init:(?P<rest>.+)")
_IN_TURN = re.compile(r"\d+/\d+")
_ENDED = re.compile(
    r"Error|OOMKilled|StartError|ContainerCannotRun|ContainerStatusUnknown"
    r"|(?P<how>ExitCode|Signal):(?P<number>\d+)"
)
_RESTARTS = re.compile(r"\d{1,9}")


def fill(tree: JsonObject, word: str, ready: str = "", restarts: str = "") -> None:
    """Adds to a pod what the word in its column STATUS tells.

    `ready` and `restarts` are the cells of those columns, such as `0/1` and `3 (2m ago)`.
    """
    is_alone = ready.endswith("/1")
    word = word.partition(" ")[0]
    initial = _OF_INIT.fullmatch(word)
    phase = "Pending" if initial is not None else _PHASES.get(word, "")
    if (word == "Completed" and not is_alone) or (word in _AT_FIRST and _count(restarts)):
        # The word may be about one of the containers, and others wait to be started again.
        phase = ""
    is_refused = _REFUSED.fullmatch(word) is not None
    parts.fill(tree, "status", phase="Failed" if is_refused else phase)
    if is_refused and word != "Failed":
        parts.fill(tree, "status", reason=word)
    if word == "Terminating":
        tree["metadata"]["deletionTimestamp"] = meta.UNKNOWN_TIME
    if word == "SchedulingGated":
        gated = {"type": condition_types.POD_SCHEDULED, "status": "False", "reason": word}
        tree["status"]["conditions"] = [gated]
    if is_refused or word in _UNPLACED or not word[:1].isupper():
        return
    placed = {"type": condition_types.POD_SCHEDULED, "status": "True"}
    tree.setdefault("status", {}).setdefault("conditions", [placed])
    reason = word if initial is None else initial["rest"]
    if word not in (*_PHASES, "Unknown") and not _IN_TURN.fullmatch(reason):
        name = "containerStatuses" if initial is None else "initContainerStatuses"
        # The number is the sum over all containers.
        shown = _container(reason, restarts if initial is None and is_alone else "")
        tree["status"][name] = [shown]
        # A pod runs once its only container has been started, and is pending before.
        if initial is None and "waiting" in shown["state"] and "restartCount" in shown:
            is_started = reason == "CrashLoopBackOff" or shown["restartCount"] > 0
            tree["status"]["phase"] = "Running" if is_started else "Pending"


def _container(reason: str, restarts: str) -> JsonObject:
    """The container that the word is about; kubectl does not print which one it is."""
    container: JsonObject = {"name": "", "state": {"waiting": {"reason": reason}}}
    ended = _ENDED.fullmatch(reason)
    if ended is not None:
        state: JsonObject = {} if ended["how"] else {"reason": reason}
        if ended["how"] == "ExitCode":
            state["exitCode"] = int(ended["number"])
        elif ended["how"]:
            state["signal"] = int(ended["number"])
        container["state"] = {"terminated": state}
    if restarts:
        container["restartCount"] = _count(restarts)
    return container


def _count(restarts: str) -> int:
    """The number of restarts; 0 where the cell shows none."""
    count = _RESTARTS.match(restarts)
    return 0 if count is None else int(count.group())
