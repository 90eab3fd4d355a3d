"""Errors of single fields, and the refusal (Invalid) that is made from a list of them.

Parity: objects.md 3. `FieldError` prints as `<path>: <type>: <value>: <detail>`. As a cause of a
Status it has a reason that depends on its type, and the text without the path.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from app.domain.errors import Invalid, StatusCause
from app.domain.values.texts import go_text


class FieldErrorType(Enum):
    """The types of field errors: the printed name, and the reason of the cause."""

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

    def cause(self) -> StatusCause:
        """The error as a cause of a Status."""
        return StatusCause(reason=self.type.value[1], message=self.text, field=self.path)


def printed(value: Any) -> str:
    """The value as messages print it: text is quoted, every other value is JSON."""
    if isinstance(value, str):
        return go_text.quoted(value)
    return msgspec.json.encode(value).decode()


def required(path: str, detail: str = "") -> FieldError:
    """The error of a missing value."""
    return FieldError(path=path, type=FieldErrorType.REQUIRED, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """The error of a value that breaks the rule stated in `detail`."""
    return FieldError(path=path, type=FieldErrorType.INVALID, value=value, detail=detail)


def immutable(path: str, value: Any) -> FieldError:
    """The error of a changed immutable field; `value` is the new value."""
    return invalid(path, value, "field is immutable")


def not_supported(path: str, value: str, supported: Sequence[str]) -> FieldError:
    """The error of a value outside a fixed set; the message lists the set in the given order."""
    listed = ", ".join(printed(item) for item in supported)
    return FieldError(
        path=path,
        type=FieldErrorType.NOT_SUPPORTED,
        value=value,
        detail=f"supported values: {listed}",
    )


def duplicate(path: str, value: Any) -> FieldError:
    """The error of a value that occurs more than once in a set."""
    return FieldError(path=path, type=FieldErrorType.DUPLICATE, value=value)


def forbidden(path: str, detail: str) -> FieldError:
    """The error of a field that may not be set here."""
    return FieldError(path=path, type=FieldErrorType.FORBIDDEN, detail=detail)


def too_long(path: str, bytes_max: int) -> FieldError:
    """The error of a text of more than `bytes_max` bytes."""
    detail = f"may not be more than {bytes_max} bytes"
    return FieldError(path=path, type=FieldErrorType.TOO_LONG, detail=detail)


def too_many(path: str, count: int, items_max: int) -> FieldError:
    """The error of a list or map of `count` items where at most `items_max` are allowed."""
    return FieldError(
        path=path,
        type=FieldErrorType.TOO_MANY,
        value=count,
        detail=f"must have at most {items_max} items",
    )


def not_found(path: str, value: Any) -> FieldError:
    """The error of a reference to something that does not exist."""
    return FieldError(path=path, type=FieldErrorType.NOT_FOUND, value=value)


def rejection(kind: str, group: str, name: str, errors: Iterable[FieldError]) -> Invalid:
    """The refusal of an object of `kind`.

    The message is `<Kind>.<group> "<name>" is invalid: <error>`, with several errors as
    `[e1, e2]`. The message contains equal errors once; the causes contain each of them.
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
