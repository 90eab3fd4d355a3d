"""What is wrong with one field, and the refusal that a list of such errors becomes.

Parity: objects.md 3. `FieldError` prints as `<path>: <type>: <value>: <detail>`; as a cause of a
Status it has a reason per type and the text without the path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from app.domain.errors import Cause, Invalid
from app.domain.values import go_text


class FieldErrorType(Enum):
    """The types: printed name, and the reason of the cause."""

    REQUIRED = ("Required value", "FieldValueRequired")
    INVALID = ("Invalid value", "FieldValueInvalid")
    NOT_SUPPORTED = ("Unsupported value", "FieldValueNotSupported")
    DUPLICATE = ("Duplicate value", "FieldValueDuplicate")
    FORBIDDEN = ("Forbidden", "FieldValueForbidden")
    TOO_LONG = ("Too long", "FieldValueTooLong")
    TOO_MANY = ("Too many", "FieldValueTooMany")
    NOT_FOUND = ("Not found", "FieldValueNotFound")
    TYPE_INVALID = ("Invalid value", "FieldValueTypeInvalid")
    INTERNAL = ("Internal error", "InternalError")


_WITHOUT_VALUE = frozenset(
    {
        FieldErrorType.REQUIRED,
        FieldErrorType.FORBIDDEN,
        FieldErrorType.TOO_LONG,
        FieldErrorType.INTERNAL,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One broken rule. `path` is in the form of the storage version."""

    path: str
    type: FieldErrorType
    value: Any = None
    detail: str = ""

    @property
    def text(self) -> str:
        """The message without the path."""
        name = self.type.value[0]
        if self.type not in _WITHOUT_VALUE:
            name = f"{name}: {printed(self.value)}"
        return f"{name}: {self.detail}" if self.detail else name

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"

    def cause(self) -> Cause:
        """The error as a cause of a Status."""
        return Cause(reason=self.type.value[1], message=self.text, field=self.path)


def printed(value: Any) -> str:
    """A value as messages show it: text quoted, numbers and booleans plain, others as JSON."""
    if isinstance(value, str):
        return go_text.quoted(value)
    return msgspec.json.encode(value).decode()


def required(path: str, detail: str = "") -> FieldError:
    """A value is missing."""
    return FieldError(path=path, type=FieldErrorType.REQUIRED, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value breaks a rule that `detail` states."""
    return FieldError(path=path, type=FieldErrorType.INVALID, value=value, detail=detail)


def immutable(path: str, value: Any) -> FieldError:
    """A value was changed that may not change; `value` is the new one."""
    return invalid(path, value, "field is immutable")


def not_supported(path: str, value: str, supported: Sequence[str]) -> FieldError:
    """A value outside a fixed set, whose members are listed in the order given."""
    listed = ", ".join(printed(item) for item in supported)
    return FieldError(
        path=path,
        type=FieldErrorType.NOT_SUPPORTED,
        value=value,
        detail=f"supported values: {listed}",
    )


def duplicate(path: str, value: Any) -> FieldError:
    """A value that occurs twice where each may occur once."""
    return FieldError(path=path, type=FieldErrorType.DUPLICATE, value=value)


def forbidden(path: str, detail: str) -> FieldError:
    """A field that may not be set here."""
    return FieldError(path=path, type=FieldErrorType.FORBIDDEN, detail=detail)


def too_long(path: str, bytes_max: int) -> FieldError:
    """A text of more than `bytes_max` bytes."""
    detail = f"may not be more than {bytes_max} bytes"
    return FieldError(path=path, type=FieldErrorType.TOO_LONG, detail=detail)


def too_many(path: str, count: int, items_max: int) -> FieldError:
    """A list or map of `count` items where `items_max` are allowed."""
    return FieldError(
        path=path,
        type=FieldErrorType.TOO_MANY,
        value=count,
        detail=f"must have at most {items_max} items",
    )


def not_found(path: str, value: Any) -> FieldError:
    """A reference to something that does not exist."""
    return FieldError(path=path, type=FieldErrorType.NOT_FOUND, value=value)


def rejection(kind: str, group: str, name: str, errors: Iterable[FieldError]) -> Invalid:
    """The refusal of an object of `kind`.

    The message is `<Kind>.<group> "<name>" is invalid: <error>`, several as `[e1, e2]`; equal
    errors stand in it once, and in the causes each time.
    """
    every = tuple(errors)
    texts = list(dict.fromkeys(str(error) for error in every))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {listed}',
        group=group,
        resource=kind,
        name=name,
        causes=tuple(error.cause() for error in every),
    )
