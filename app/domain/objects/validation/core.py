"""Validation of Pods, Nodes and Namespaces: claims, containers, taints, finalizers.

Parity: controllers.md 5.1. The real server checks many more fields of a pod; a field that is not
checked here is stored as it was sent.

Ephemeral containers are added to a running pod to debug it. Parity: objects.md 15.1; the messages
are upstream's.
"""

from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from app.domain.objects.validation import shared
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.pods import placing, specs
from app.domain.objects.write import metadata
from app.domain.values import json_tree, names
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonView

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "PreferNoSchedule")
LIVING_PHASE, DELETED_PHASE = "Active", "Terminating"
"""The phases of a namespace."""

UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
TOLERATION_TEXT = "existing toleration can not be modified except its tolerationSeconds"
MUTABLE = frozenset(
    {
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        "schedulingGates",
    }
)
WHILE_GATED = frozenset({"nodeSelector", "affinity"})
"""Fields that may also change while a pod has scheduling gates; of the affinity, only
`nodeAffinity`."""

_EPHEMERAL_PATH = "spec.ephemeralContainers"
_NOT_IN_EPHEMERAL = (
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "startupProbe",
)


def create_pod(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new pod."""
    spec = meta.spec(tree)
    errors = specs.check_pod(spec, "spec")
    if spec.get("ephemeralContainers"):
        errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return errors + placing.gated(spec, "spec")


def update_pod(
    tree: JsonView, old: JsonView, subresource: str, _context: Context
) -> list[FieldError]:
    """Checks a changed pod: only a few fields of its spec may change."""
    new, stored = meta.spec(tree), meta.spec(old)
    if subresource:
        if subresource == "ephemeralcontainers":
            return _ephemeral_containers(new, stored)
        if subresource != "resize":
            return []
        known = specs.check_pod(stored, "spec")
        return [error for error in specs.check_pod(new, "spec") if error not in known]
    errors: list[FieldError] = []
    if new != stored:
        # Errors that the stored pod already has do not refuse a change.
        known = specs.check_pod(stored, "spec")
        errors += [error for error in specs.check_pod(new, "spec") if error not in known]
    is_gated = bool(stored.get("schedulingGates"))
    parts = [_frozen_part(spec, is_gated=is_gated) for spec in (new, stored)]
    if parts[0] != parts[1] or not _is_same_grace(new, stored):
        errors.append(forbidden("spec", UPDATE_TEXT))
    errors += _gates(new, stored)
    kept = [_without_time(item) for item in core.tolerations_of(new)]
    if any(_without_time(item) not in kept for item in core.tolerations_of(stored)):
        errors.append(forbidden("spec.tolerations", TOLERATION_TEXT))
    return errors


def create_namespace(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new namespace: `spec.finalizers` follow the rules of `metadata.finalizers`."""
    return [
        error
        for name in core.namespace_finalizers(tree)
        for error in metadata.check_finalizer("spec.finalizers", name)
    ]


def update_namespace(
    tree: JsonView, _old: JsonView, subresource: str, _context: Context
) -> list[FieldError]:
    """Checks a changed namespace: its phase follows from its deletion, whoever writes it."""
    if subresource != "status":
        return []
    phase = meta.phase(tree) or LIVING_PHASE
    is_deleted = bool(meta.deletion_timestamp(tree))
    if phase == (DELETED_PHASE if is_deleted else LIVING_PHASE):
        return []
    detail = (
        "may only be 'Terminating' if `deletionTimestamp` is not empty"
        if is_deleted
        else "may only be 'Active' if `deletionTimestamp` is empty"
    )
    return [invalid("status.Phase", phase, detail)]


def create_node(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new node."""
    errors: list[FieldError] = []
    for index, taint in enumerate(core.taints(tree)):
        path = f"spec.taints[{index}]"
        errors += shared.required_name(
            json_tree.text(taint, "key"), f"{path}.key", names.label_name
        )
        effect = json_tree.text(taint, "effect")
        if not effect:
            errors.append(required(f"{path}.effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{path}.effect", effect, TAINT_EFFECTS))
    return errors


def update_node(
    tree: JsonView, _old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed node."""
    return create_node(tree, context)


def _without_time(toleration: JsonView) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _is_same_grace(new: JsonView, stored: JsonView) -> bool:
    """Whether the grace period is unchanged, or was negative and is now 1."""
    seconds, before = (
        json_tree.integer(spec, "terminationGracePeriodSeconds") for spec in (new, stored)
    )
    return seconds == before or (seconds == 1 and before is not None and before < 0)


def _gates(new: JsonView, stored: JsonView) -> list[FieldError]:
    """Checks changes of gates, which can only be removed; until then nodeSelector can only grow."""
    errors: list[FieldError] = []
    before = [entries.name(gate) for gate in json_tree.objects(stored, "schedulingGates")]
    for index, gate in enumerate(json_tree.objects(new, "schedulingGates")):
        name = entries.name(gate)
        if name not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", detail))
    if before:
        selector = core.node_selector_of(new)
        wanted = core.node_selector_of(stored)
        if any(selector.get(key) != value for key, value in wanted.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", selector, detail))
    return errors


def _frozen_part(spec: JsonView, *, is_gated: bool) -> dict[str, Any]:
    open_fields = MUTABLE | WHILE_GATED if is_gated else MUTABLE
    kept = {name: value for name, value in spec.items() if name not in open_fields and value}
    if is_gated:
        affinity = json_tree.mapping(spec, "affinity")
        kept["affinity"] = {name: part for name, part in affinity.items() if name != "nodeAffinity"}
    for field in ("containers", "initContainers"):
        items = json_tree.objects(spec, field)
        if items:
            kept[field] = [
                {name: value for name, value in item.items() if name != "image"} for item in items
            ]
    return kept


def _ephemeral_containers(spec: JsonView, stored: JsonView) -> list[FieldError]:
    """Checks a change: ephemeral containers may be added, but not changed or removed."""
    errors: list[FieldError] = []
    others = {
        entries.name(container)
        for field in ("containers", "initContainers")
        for container in json_tree.objects(spec, field)
    }
    containers = json_tree.objects(spec, "ephemeralContainers")
    seen: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{_EPHEMERAL_PATH}[{index}]"
        name = entries.name(container)
        errors += shared.required_name(name, f"{at}.name", names.label)
        if name in others or name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        target = json_tree.text(container, "targetContainerName")
        if target and target not in others:
            errors.append(not_found(f"{at}.targetContainerName", target))
        if not container.get("image"):
            errors.append(required(f"{at}.image"))
        detail = "cannot be set for an Ephemeral Container"
        errors += [
            forbidden(f"{at}.{field}", detail)
            for field in _NOT_IN_EPHEMERAL
            if container.get(field)
        ]
    by_name = {entries.name(container): container for container in containers}
    for container in json_tree.objects(stored, "ephemeralContainers"):
        name = entries.name(container)
        if name not in by_name:
            detail = f'existing ephemeral containers "{name}" may not be removed'
            errors.append(forbidden(_EPHEMERAL_PATH, detail))
        elif by_name[name] != container:
            detail = f'existing ephemeral containers "{name}" may not be changed'
            errors.append(forbidden(_EPHEMERAL_PATH, detail))
    return errors
