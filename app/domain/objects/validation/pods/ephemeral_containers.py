"""Validation of ephemeral containers, which are added to a running pod to debug it.

Parity: objects.md 15.1; the messages are upstream's.
"""

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    not_found,
    required,
)
from app.domain.objects.validation import shared
from app.domain.values import json_tree, names
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView

PATH = "spec.ephemeralContainers"
_WITHOUT = ("lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "startupProbe")


def update(spec: JsonView, stored: JsonView) -> list[FieldError]:
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
        at = f"{PATH}[{index}]"
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
        errors += [forbidden(f"{at}.{field}", detail) for field in _WITHOUT if container.get(field)]
    by_name = {entries.name(container): container for container in containers}
    for container in json_tree.objects(stored, "ephemeralContainers"):
        name = entries.name(container)
        if name not in by_name:
            detail = f'existing ephemeral containers "{name}" may not be removed'
            errors.append(forbidden(PATH, detail))
        elif by_name[name] != container:
            detail = f'existing ephemeral containers "{name}" may not be changed'
            errors.append(forbidden(PATH, detail))
    return errors
