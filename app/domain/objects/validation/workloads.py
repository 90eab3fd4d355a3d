"""Validation of Deployments, ReplicaSets, StatefulSets and DaemonSets. Jobs have their own module.

Parity: objects.md 15.1; the messages are upstream's.
"""

from collections.abc import Callable
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.validation import label_selectors
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.pods import specs
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

UNMATCHED = "`selector` does not match template `labels`"
_STATEFUL_MUTABLE = frozenset(
    {
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    }
)
STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)

# A Deployment is checked as the template of its ReplicaSets, so its text says ReplicaSet.
_NAMES_IN_TEXTS = {
    "deployment": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
}


def create_deployment(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Deployment."""
    spec = meta.spec(tree)
    errors = label_selectors.not_negative(spec, "replicas", "spec")
    errors += _selected(spec, "deployment")
    errors += _strategy(json_tree.mapping(spec, "strategy"))
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors += label_selectors.not_negative(spec, name, "spec")
    deadline = json_tree.integer(spec, "progressDeadlineSeconds")
    if deadline is not None and deadline <= (json_tree.integer(spec, "minReadySeconds") or 0):
        detail = "must be greater than minReadySeconds"
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, detail))
    return errors


def create_replica_set(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ReplicaSet."""
    spec = meta.spec(tree)
    errors = label_selectors.not_negative(spec, "replicas", "spec")
    errors += label_selectors.not_negative(spec, "minReadySeconds", "spec")
    # Upstream's text says deployment here too.
    return errors + _selected(spec, "deployment")


def create_stateful_set(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new StatefulSet."""
    spec = meta.spec(tree)
    errors: list[FieldError] = []
    management = json_tree.text(spec, "podManagementPolicy")
    if management not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid("spec.podManagementPolicy", management, detail))
    kind = json_tree.text(spec, "updateStrategy", "type")
    if kind not in ("RollingUpdate", "OnDelete"):
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(invalid("spec.updateStrategy", spec.get("updateStrategy"), detail))
    for name in ("replicas", "minReadySeconds"):
        errors += label_selectors.not_negative(spec, name, "spec")
    return errors + _selected(spec, "statefulset")


def create_daemon_set(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new DaemonSet."""
    spec = meta.spec(tree)
    errors = _selected(spec, "daemonset")
    errors += label_selectors.not_negative(spec, "minReadySeconds", "spec")
    kind = json_tree.text(spec, "updateStrategy", "type")
    if kind not in ("OnDelete", "RollingUpdate"):
        supported = ("OnDelete", "RollingUpdate")
        errors.append(not_supported("spec.updateStrategy.type", kind, supported))
    return errors + label_selectors.not_negative(spec, "revisionHistoryLimit", "spec")


def update(check: Callable[[JsonView, Context], list[FieldError]]) -> Any:
    """Returns the check of changes: that of a new object, and the selector is immutable."""

    def check_change(
        tree: JsonView, old: JsonView, subresource: str, context: Context
    ) -> list[FieldError]:
        if subresource == "status":
            return []
        errors = check(tree, context)
        selector = json_tree.get(tree, "spec", "selector")
        if selector != json_tree.get(old, "spec", "selector"):
            errors.append(immutable("spec.selector", selector))
        return errors

    return check_change


def update_stateful_set(
    tree: JsonView, old: JsonView, subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed StatefulSet: only the fields of `_STATEFUL_MUTABLE` may change."""
    if subresource == "status":
        return []
    errors = create_stateful_set(tree, context)
    new, before = (
        {name: value for name, value in meta.spec(each).items() if name not in _STATEFUL_MUTABLE}
        for each in (tree, old)
    )
    return [*errors, forbidden("spec", STATEFUL_TEXT)] if new != before else errors


def _selected(spec: JsonView, kind: str) -> list[FieldError]:
    """Checks the selector, the template, and that the selector matches the template's labels."""
    template = json_tree.mapping(spec, "template")
    selector = spec.get("selector")
    errors: list[FieldError] = []
    if not isinstance(selector, dict):
        if kind != "daemonset":
            errors.append(required("spec.selector"))
        # A missing selector matches nothing.
        labels = meta.labels(template)
        errors.append(invalid("spec.template.metadata.labels", labels or None, UNMATCHED))
    else:
        problems = label_selectors.check(selector, "spec.selector")
        errors += problems
        labels = meta.labels(template)
        if label_selectors.is_empty(selector):
            detail = f"empty selector is invalid for {kind}"
            errors.append(invalid("spec.selector", selector, detail))
        elif problems:
            errors.append(invalid("spec.selector", selector, "invalid label selector"))
        elif not label_selectors.matches(selector, labels):
            errors.append(invalid("spec.template.metadata.labels", labels or None, UNMATCHED))
    claims = json_tree.objects(spec, "volumeClaimTemplates")
    volumes = [meta.name(claim) for claim in claims]
    errors += specs.check_template(template, "spec.template", volumes=volumes)
    pod = meta.spec(template)
    policy = pod.get("restartPolicy") or ""
    if policy != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {_NAMES_IN_TEXTS[kind]} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def _strategy(strategy: JsonView) -> list[FieldError]:
    path = "spec.strategy"
    match json_tree.text(strategy, "type"):
        case "Recreate":
            if strategy.get("rollingUpdate") is None:
                return []
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden(f"{path}.rollingUpdate", detail)]
        case "RollingUpdate":
            rolling = json_tree.mapping(strategy, "rollingUpdate")
            away, more = rolling.get("maxUnavailable"), rolling.get("maxSurge")
            errors = label_selectors.amount(away, f"{path}.rollingUpdate.maxUnavailable")
            errors += label_selectors.amount(more, f"{path}.rollingUpdate.maxSurge")
            if label_selectors.is_nothing(away) and label_selectors.is_nothing(more):
                detail = "may not be 0 when `maxSurge` is 0"
                errors.append(invalid(f"{path}.rollingUpdate.maxUnavailable", away, detail))
            return errors + label_selectors.at_most_all(
                away, f"{path}.rollingUpdate.maxUnavailable"
            )
        case other:
            return [not_supported(f"{path}.type", other, ("Recreate", "RollingUpdate"))]
