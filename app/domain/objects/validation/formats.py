"""Formats of names and values, with the server's texts. Parity: objects.md 2.1.

Each function returns the details of what is wrong, empty when the text is fine.
"""

import re

LABEL_MAX = 63
SUBDOMAIN_MAX = 253
IDENTIFIER_MAX = 32
DOMAIN_MAX = 63
DRIVER_MAX = 63
POOL_MAX = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_name = re.compile(_NAME)
_value = re.compile(_VALUE)
_identifier = re.compile(_IDENTIFIER)
_uuid = re.compile(_UUID)

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    rf"for validation is '{_SUBDOMAIN}')"
)
IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    f"validation is '{_IDENTIFIER}')"
)
NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME}')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '{_VALUE}')"
)


def no_more_than(characters: int) -> str:
    """The text for a part that is too long."""
    return f"must be no more than {characters} characters"


def label(text: str) -> list[str]:
    """A DNS label."""
    details = [no_more_than(LABEL_MAX)] if len(text.encode()) > LABEL_MAX else []
    return details if _label.fullmatch(text) else [*details, LABEL_TEXT]


def subdomain(text: str) -> list[str]:
    """A DNS subdomain."""
    details = [no_more_than(SUBDOMAIN_MAX)] if len(text.encode()) > SUBDOMAIN_MAX else []
    return details if _subdomain.fullmatch(text) else [*details, SUBDOMAIN_TEXT]


def identifier(text: str) -> list[str]:
    """A C identifier, any length."""
    return [] if _identifier.fullmatch(text) else [IDENTIFIER_TEXT]


def label_name(text: str) -> list[str]:
    """A label key: an optional DNS subdomain and `/`, then a name."""
    parts = text.split("/")
    if len(parts) > 2:
        return [
            f"a qualified name {NAME_TEXT} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    details: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            details.append("prefix part must be non-empty")
        else:
            details += [f"prefix part {detail}" for detail in subdomain(prefix)]
    name = parts[-1]
    if not name:
        details.append("name part must be non-empty")
    elif len(name) > LABEL_MAX:
        details.append(f"name part {no_more_than(LABEL_MAX)}")
    if not _name.fullmatch(name):
        details.append(f"name part {NAME_TEXT}")
    return details


def label_value(text: str) -> list[str]:
    """The value of a label or taint."""
    details = [no_more_than(LABEL_MAX)] if len(text) > LABEL_MAX else []
    return details if _value.fullmatch(text) else [*details, VALUE_TEXT]


def uid(text: str) -> list[str]:
    """A share id."""
    return [] if _uuid.fullmatch(text) else ["must be a lowercase UUID in RFC 4122 format"]
