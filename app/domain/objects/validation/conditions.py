"""Validation of standard conditions: `metav1.Condition` in the status of DeviceTaintRules,
ResourcePoolStatusRequests and devices.

Parity: objects.md 5.4 and 8; the shape and its limits are those of the API documentation.
"""

import re
from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    invalid,
    not_supported,
    required,
    too_long,
)
from app.domain.objects.validation import shared
from app.domain.values import json_tree, names

CONDITIONS_MAX = 8
REASON_BYTES_MAX = 1_024
MESSAGE_BYTES_MAX = 32_768
STATUSES = ("False", "True", "Unknown")

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)


def check(items: Any, path: str) -> list[FieldError]:
    """Checks a list of conditions, whose types must be unique."""
    return shared.bounded(
        items,
        path,
        CONDITIONS_MAX,
        _condition,
        key=lambda item: json_tree.text(item, "type"),
        key_path=".type",
    )


def _condition(item: Any, path: str) -> list[FieldError]:
    tree = item if isinstance(item, dict) else {}
    errors = shared.formatted(json_tree.text(tree, "type"), f"{path}.type", names.label_name)
    status = json_tree.text(tree, "status")
    if status not in STATUSES:
        errors.append(not_supported(f"{path}.status", status, STATUSES))
    generation = json_tree.integer(tree, "observedGeneration") or 0
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.observedGeneration", generation, detail))
    if not tree.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    reason = json_tree.text(tree, "reason")
    if not reason:
        errors.append(required(f"{path}.reason"))
    elif not _is_reason(reason):
        errors.append(invalid(f"{path}.reason", reason, REASON_TEXT))
    if len(reason.encode()) > REASON_BYTES_MAX:
        errors.append(too_long(f"{path}.reason", REASON_BYTES_MAX))
    if len(json_tree.text(tree, "message").encode()) > MESSAGE_BYTES_MAX:
        errors.append(too_long(f"{path}.message", MESSAGE_BYTES_MAX))
    return errors
