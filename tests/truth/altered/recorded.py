"""Recordings up to a moment, and the moments at which the scheduler refused a pod."""

from tests.adversary.log import Json, Log
from tests.adversary.running import recording

READS = ("get", "list", "watch")


def until(name: str, number: int) -> Log:
    """The lines of a recording up to a line, without those that only read; not to be changed."""
    return Log([line for line in recording(name).lines[: number + 1] if line["verb"] not in READS])


def condition_of(line: Json) -> str:
    """What the scheduler wrote of a pod that it refused; empty for another line."""
    about, answer = line["objectRef"], line.get("responseObject") or {}
    if about["resource"] != "pods" or answer.get("kind") != "Pod":
        return ""
    if "kube-scheduler" not in line["user"]["username"]:
        return ""
    for one in answer["status"].get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one["message"])
    return ""


def refusals(name: str) -> list[int]:
    """The lines of a recording in which the scheduler refused a pod."""
    return [number for number, line in enumerate(recording(name).lines) if condition_of(line)]
