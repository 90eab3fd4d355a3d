"""Validation of ports: numbers, and names of at most 15 characters."""

from typing import Any

from app.domain.objects.field_errors import FieldError, invalid
from app.domain.values import names

PORT_MAX = 65_535
RANGE_TEXT = f"must be between 1 and {PORT_MAX}, inclusive"


def number(value: Any, path: str) -> list[FieldError]:
    """Checks the number of a port."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= PORT_MAX:
        return []
    return [invalid(path, value, RANGE_TEXT)]


def number_or_name(value: Any, path: str) -> list[FieldError]:
    """Checks the number of a port, or the name that a container gives it."""
    if not isinstance(value, str):
        return number(value, path)
    return [invalid(path, value, detail) for detail in names.port_name(value)]
