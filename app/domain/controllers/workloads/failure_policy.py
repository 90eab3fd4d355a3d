"""The podFailurePolicy of a Job: whether a failed pod counts, and whether it ends the Job.

The first matching rule decides; without one the pod counts. An evicted pod has the condition
DisruptionTarget, so that a Job can ignore evictions. Parity: controllers.md 5.5; upstream's job
controller, texts included; FailIndex counts like Count, as without a limit for each index.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.fields.core import ContainerStatus
from app.domain.values.json_tree import JsonView

REASON = "PodFailurePolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFailure:
    """The verdict on a failed pod: whether it counts; with a `message` the Job has failed."""

    counts: bool = True
    message: str = ""


def judge(spec: JsonView, pod: JsonView) -> PodFailure:
    """The verdict of the Job's policy on a failed pod."""
    for number, rule in enumerate(json_tree.objects(spec, "podFailurePolicy", "rules")):
        what = _fitting(rule, pod)
        if not what:
            continue
        action = json_tree.text(rule, "action")
        if action == "Ignore":
            return PodFailure(counts=False)
        if action == "FailJob":
            return PodFailure(message=f"{what} matching {action} rule at index {number}")
        return PodFailure()
    return PodFailure()


def _fitting(rule: JsonView, pod: JsonView) -> str:
    """The text of the part of the pod that matches the rule; empty when nothing matches."""
    namespace = meta.namespace(pod)
    place = f"{namespace}/{meta.name(pod)}"
    codes = rule.get("onExitCodes")
    if isinstance(codes, dict):
        for status, code in _exits(pod):
            name = json_tree.text(codes, "containerName")
            container = status.name
            if name and name != container:
                continue
            if (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
                return f"Container {container} for pod {place} failed with exit code {code}"
        return ""
    for pattern in json_tree.objects(rule, "onPodConditions"):
        for condition in meta.condition_trees(pod):
            wanted = (pattern.get("type"), pattern.get("status") or "True")
            if (condition.get("type"), condition.get("status")) == wanted:
                return f"Pod {place} has condition {condition['type']}"
    return ""


def _exits(pod: JsonView) -> Iterator[tuple[ContainerStatus, int]]:
    """The containers that have exited with an error, regular ones first."""
    for status in (*core.container_statuses(pod), *core.init_container_statuses(pod)):
        terminated = status.state.terminated
        if terminated is not None and terminated.exit_code:
            yield status, terminated.exit_code
