"""The named formats of Kubernetes: `format.dns1123Label().validate(text)`.

`validate` returns none for a text that has the format, else the list of errors. Parity:
allocator.md 11.3 for the names, cel.md 5.3 for the costs.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from app.domain.cel.library import network
from app.domain.cel.values import conversions
from app.domain.cel.values.value import NONE, OptionalValue, Value, register_type

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = "(?i)^[0-9A-F]{8}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{4}-?[0-9A-F]{12}$"


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format; `pattern_size` is the size of its pattern in the cost of `validate`."""

    name: str
    pattern_size: int


register_type(NamedFormat, name="kubernetes.NamedFormat", go_type="*cel.Format")


def _regex_error(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {shown}, regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


_LABEL_MESSAGE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character"
)
_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character"
)
_LABEL_1035_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character"
)
_QUALIFIED_MESSAGE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character"
)
_LABEL_VALUE_MESSAGE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or"
    " '.', and must start and end with an alphanumeric character"
)


def _pattern_check(
    pattern: str, message: str, limit: int, *examples: str, prefix: bool = False
) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> list[str]:
        # A prefix may end with a dash, because a suffix follows.
        label = text[:-1] + "a" if prefix and len(text) > 1 and text.endswith("-") else text
        problems = [] if len(text.encode()) <= limit else [_too_long(limit)]
        if not compiled.fullmatch(label):
            problems.append(_regex_error(message, pattern, *examples))
        return problems

    return check


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    problems: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {error}" for error in _CHECKS["dns1123Subdomain"](parts[0])]
    elif len(parts) > 2:
        message = _regex_error(
            "a qualified name " + _QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc"
        )
        return [
            f"{message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append(f"name part {_too_long(63)}")
    if not re.fullmatch(_QUALIFIED, name, re.ASCII):
        error = _regex_error(_QUALIFIED_MESSAGE, _QUALIFIED, "MyName", "my.name", "123-abc")
        problems.append(f"name part {error}")
    return problems


def _uri(text: str) -> list[str]:
    url = network.url(text)
    return [] if isinstance(url, network.Url) else [getattr(url, "message", "invalid URI")]


def _uuid(text: str) -> list[str]:
    return [] if re.fullmatch(_UUID, text, re.ASCII) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        try:
            date.fromisoformat(text)
        except ValueError:
            pass
        else:
            return []
    return ["invalid date"]


def _datetime(text: str) -> list[str]:
    return [] if conversions.parse_timestamp(text) is not None else ["invalid datetime"]


_CHECKS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": _pattern_check(_LABEL, _LABEL_MESSAGE, 63, "my-name", "123-abc"),
    "dns1123LabelPrefix": _pattern_check(
        _LABEL, _LABEL_MESSAGE, 63, "my-name", "123-abc", prefix=True
    ),
    "dns1123Subdomain": _pattern_check(_SUBDOMAIN, _SUBDOMAIN_MESSAGE, 253, "example.com"),
    "dns1123SubdomainPrefix": _pattern_check(
        _SUBDOMAIN, _SUBDOMAIN_MESSAGE, 253, "example.com", prefix=True
    ),
    "dns1035Label": _pattern_check(_LABEL_1035, _LABEL_1035_MESSAGE, 63, "my-name", "abc-123"),
    "dns1035LabelPrefix": _pattern_check(
        _LABEL_1035, _LABEL_1035_MESSAGE, 63, "my-name", "abc-123", prefix=True
    ),
    "qualifiedName": _qualified_name,
    "labelValue": _pattern_check(
        f"({_QUALIFIED})?", _LABEL_VALUE_MESSAGE, 63, "MyValue", "my_value", "12345"
    ),
    "uri": _uri,
    "uuid": _uuid,
    "byte": _byte,
    "date": _date,
    "datetime": _datetime,
}
_PATTERN_SIZES: Final = {
    **dict.fromkeys(("dns1123Label", "dns1123LabelPrefix"), 30),
    **dict.fromkeys(("dns1035Label", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uuid": len(_UUID),
}

FORMATS: Final = {name: NamedFormat(name, _PATTERN_SIZES.get(name, 0)) for name in _CHECKS}


def named(name: str) -> Value:
    """`format.named(name)`."""
    named_format = FORMATS.get(name)
    return NONE if named_format is None else OptionalValue(named_format)


def validate(wanted: NamedFormat, text: str) -> Value:
    """`format.validate(text)`."""
    errors = _CHECKS[wanted.name](text)
    return OptionalValue(tuple(errors)) if errors else NONE
