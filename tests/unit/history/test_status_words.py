"""What is read from the STATUS of pods holds for each pod for which kubectl prints the word."""

from itertools import product

import pytest

from app.adapters.history.printouts import pod_words
from app.domain.objects.printing import pods
from app.domain.values.fields import core, meta

WAITING = ("ContainerCreating", "CrashLoopBackOff", "ErrImagePull", "RunContainerError")
ENDED = ((0, "Completed"), (1, "Error"), (137, "OOMKilled"), (3, ""))
NOW = 1_700_000_000_000_000


def states():
    """States of a container, with whether it has ended before."""
    for reason, has_ended in product(WAITING, (False, True)):
        if (reason == "CrashLoopBackOff") <= has_ended:
            yield {"waiting": {"reason": reason}}, has_ended
    for has_ended in (False, True):
        yield {"running": {}}, has_ended
        for code, reason in ENDED:
            yield {"terminated": {"exitCode": code, "reason": reason}}, has_ended


def phase_of(policy, containers):
    """The phase that a kubelet computes from the containers of a pod.

    A container that was never started makes the pod pending; one that runs, or will be started
    again, keeps it running.
    """
    if any("waiting" in state and not has_ended for state, has_ended in containers):
        return "Pending"
    if any("running" in state for state, _ in containers) or policy == "Always":
        return "Running"
    codes = [state["terminated"]["exitCode"] for state, _ in containers if "terminated" in state]
    if len(codes) < len(containers):
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def pod_with(policy, containers, **metadata):
    statuses = [
        {"name": f"c{number}", "state": state, "ready": "running" in state}
        | ({"restartCount": 2, "lastState": {"terminated": {"exitCode": 1}}} if has_ended else {})
        for number, (state, has_ended) in enumerate(containers)
    ]
    return {
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "spec": {
            "nodeName": "n1",
            "restartPolicy": policy,
            "containers": [{"name": each["name"]} for each in statuses],
        },
        "status": {"phase": phase_of(policy, containers), "containerStatuses": statuses},
    }


def worlds():
    for policy, count in product(("Always", "Never"), (1, 2)):
        for containers in product(states(), repeat=count):
            if policy == "Never" and any(has_ended for _, has_ended in containers):
                continue
            # A container that has ended for the moment is about to be started again.
            is_between = policy == "Always" and any("terminated" in each for each, _ in containers)
            if is_between and count == 1:
                continue
            yield pod_with(policy, containers)
    yield pod_with("Always", [({"running": {}}, False)], deletionTimestamp="2026-01-01T00:00:00Z")
    yield {"metadata": {"name": "web"}, "spec": {}, "status": {"phase": "Pending"}}
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    yield {"metadata": {}, "spec": {}, "status": {"phase": "Pending", "conditions": [gated]}}
    for reason in ("Evicted", "UnexpectedAdmissionError", "OutOfcpu", "NodeAffinity"):
        yield {"metadata": {}, "spec": {}, "status": {"phase": "Failed", "reason": reason}}


def test_what_a_word_tells_of_a_pod_holds_for_it():
    words = set()
    for pod in worlds():
        _, ready, word, restarts, *_ = pods.TABLE.cells(pod, NOW)
        words.add(word)
        row = {"metadata": {"name": "web"}}
        pod_words.fill(row, word, ready, restarts)
        where = f"{word} {ready} {restarts}: {row} of {pod}"
        assert meta.phase(row) in ("", meta.phase(pod)), where
        assert meta.is_deleting(row) <= meta.is_deleting(pod), where
        assert core.has_node(row) <= bool(core.node_name(pod)), where
        assert core.status_reason(row) in ("", core.status_reason(pod)), where
        for shown in core.container_statuses(row):
            assert any(_is_of(shown, one) for one in core.container_statuses(pod)), where
    assert {"Running", "Completed", "CrashLoopBackOff", "Evicted", "ExitCode:3"} <= words


def _is_of(shown, whole):
    """Whether each shown field is that of the container."""
    ended, other = shown.state.terminated, whole.state.terminated
    if ended is not None:
        return other is not None and ended.reason == other.reason
    is_same = shown.state.waiting == whole.state.waiting
    return is_same and shown.restart_count in (0, whole.restart_count)


@pytest.mark.parametrize(
    ("word", "ready", "phase", "has_node"),
    [
        ("Pending", "0/1", "Pending", False),
        ("ContainerCreating", "0/2", "Pending", True),
        ("Init:1/2", "0/1", "Pending", True),
        ("Init:CrashLoopBackOff", "0/1", "Pending", True),
        ("CrashLoopBackOff", "0/1", "Running", True),
        ("CrashLoopBackOff", "1/2", "", True),
        ("ImagePullBackOff", "0/1", "Pending", True),
        ("Completed", "0/1", "Succeeded", True),
        ("Error", "0/1", "", True),
        ("Evicted", "0/1", "Failed", False),
        ("Terminating", "1/1", "", False),
        ("Unknown", "1/1", "", True),
    ],
)
def test_words_tell_as_much_as_they_can(word, ready, phase, has_node):
    row = {"metadata": {"name": "web"}}
    pod_words.fill(row, word, ready, "0")
    assert (meta.phase(row), core.has_node(row)) == (phase, has_node)
    assert meta.is_deleting(row) is (word == "Terminating")
