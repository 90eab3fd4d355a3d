"""The rules of a Job's podFailurePolicy: which of them decides about a failed pod.

Parity: controllers.md 5.5.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.fields import core, meta
from app.domain.values.fields.core import ContainerStatus
from app.domain.values.json_tree import JsonView

IGNORE = "Ignore"
"""The action of a rule whose failed pods do not count."""

FAIL_JOB = "FailJob"
"""The action of a rule whose failed pods end the Job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingRule:
    """The rule of a podFailurePolicy that decides about a failed pod.

    `matched` describes the part of the pod that it matches.
    """

    number: int
    action: str
    matched: str


def has_failure_policy(spec: JsonView) -> bool:
    """Whether a Job judges the failures of its pods by rules of its own."""
    return isinstance(spec.get("podFailurePolicy"), dict)


def deciding_rule(spec: JsonView, pod: JsonView) -> DecidingRule | None:
    """The first rule of a Job's podFailurePolicy that a failed pod matches; None without one."""
    for number, rule in enumerate(json_tree.objects(spec, "podFailurePolicy", "rules")):
        if matched := _matching_part(rule, pod):
            action = json_tree.text(rule, "action")
            return DecidingRule(number=number, action=action, matched=matched)
    return None


def _matching_part(rule: JsonView, pod: JsonView) -> str:
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
