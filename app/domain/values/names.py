"""Formats of names. Each check returns the messages of the violated rules, or an empty tuple.

Parity: objects.md 2.1. Lengths of labels and subdomains are part of the format; other limits
belong to a field and are checked together with that field.
"""

import ipaddress
import re
from functools import lru_cache

LABEL_MAX = 63
PORT_NAME_MAX = 15
SUBDOMAIN_MAX = 253

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated suffixes: no vowels, so that suffixes do not form words."""

SUFFIX_LENGTH = 5
"""The number of characters of a generated suffix."""

GENERATED_BASE_MAX = 58
"""The length to which a generateName is cut before the suffix is added."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_c_identifier = re.compile(_C_IDENTIFIER).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_of_ports = re.compile("[-a-z0-9]+").fullmatch
_is_config_key = re.compile("[-._a-zA-Z0-9]+").fullmatch
_is_uid = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch

LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
LABEL_1035_MESSAGE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    rf"for validation is '{_SUBDOMAIN}')"
)
C_IDENTIFIER_MESSAGE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    f"validation is '{_C_IDENTIFIER}')"
)
QUALIFIED_MESSAGE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED}')"
)
ENVIRONMENT_MESSAGE = (
    "a valid environment variable name must consist only of printable ASCII characters other than "
    "'='"
)
CONFIG_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '({_QUALIFIED})?')"
)


@lru_cache(maxsize=65_536)
def label(text: str) -> tuple[str, ...]:
    """DNS-1123 label: at most 63 of `[a-z0-9-]`, a letter or digit at both ends."""
    problems = [] if len(text) <= LABEL_MAX else [_too_many_bytes(LABEL_MAX)]
    if not _is_label(text):
        problems.append(LABEL_MESSAGE)
    return tuple(problems)


@lru_cache(maxsize=4_096)
def label_1035(text: str) -> tuple[str, ...]:
    """DNS-1035 label: like `label`, but it begins with a letter."""
    problems = [] if len(text) <= LABEL_MAX else [_too_long(LABEL_MAX)]
    if not _is_label(text) or text[0].isdigit():
        problems.append(LABEL_1035_MESSAGE)
    return tuple(problems)


@lru_cache(maxsize=65_536)
def subdomain(text: str) -> tuple[str, ...]:
    """DNS-1123 subdomain: labels joined by dots, at most 253 characters."""
    problems = [] if len(text) <= SUBDOMAIN_MAX else [_too_many_bytes(SUBDOMAIN_MAX)]
    if not _is_subdomain(text):
        problems.append(SUBDOMAIN_MESSAGE)
    return tuple(problems)


@lru_cache(maxsize=65_536)
def c_identifier(text: str) -> tuple[str, ...]:
    """A C identifier: `[A-Za-z_][A-Za-z0-9_]*`; the field sets the length limit."""
    return () if _is_c_identifier(text) else (C_IDENTIFIER_MESSAGE,)


@lru_cache(maxsize=65_536)
def label_name(text: str) -> tuple[str, ...]:
    """A label key: an optional subdomain and `/`, then up to 63 letters, digits, `-`, `_`, `.`."""
    parts = text.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        return (
            f"a valid label key {QUALIFIED_MESSAGE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems.extend(f"prefix part {problem}" for problem in subdomain(parts[0]))
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > LABEL_MAX:
        problems.append(f"name part {_too_many_bytes(LABEL_MAX)}")
    if not _is_qualified(name):
        problems.append(f"name part {QUALIFIED_MESSAGE}")
    return tuple(problems)


@lru_cache(maxsize=65_536)
def label_value(text: str) -> tuple[str, ...]:
    """A label value: empty, or up to 63 of `[A-Za-z0-9._-]` with a letter or digit at both ends."""
    problems = [] if len(text) <= LABEL_MAX else [_too_many_bytes(LABEL_MAX)]
    if text and not _is_qualified(text):
        problems.append(LABEL_VALUE_MESSAGE)
    return tuple(problems)


@lru_cache(maxsize=4_096)
def port_name(text: str) -> tuple[str, ...]:
    """The name of a port: 1 to 15 of `[a-z0-9-]` with a letter; hyphens single, not at an end."""
    problems = [] if len(text) <= PORT_NAME_MAX else [_too_long(PORT_NAME_MAX)]
    if not _is_of_ports(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= char <= "z" for char in text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


@lru_cache(maxsize=4_096)
def environment_name(text: str) -> tuple[str, ...]:
    """The name of an environment variable: printable ASCII without `=`."""
    if text and all(" " <= char <= "~" and char != "=" for char in text):
        return ()
    return (ENVIRONMENT_MESSAGE,)


@lru_cache(maxsize=4_096)
def config_key(text: str) -> tuple[str, ...]:
    """The key of an item of a ConfigMap or Secret, which can be used as a file name."""
    problems = [] if len(text) <= SUBDOMAIN_MAX else [_too_long(SUBDOMAIN_MAX)]
    if not _is_config_key(text):
        problems.append(CONFIG_KEY_MESSAGE)
    if text == ".":
        problems.append("must not be '.'")
    elif text == "..":
        problems.append("must not be '..'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


@lru_cache(maxsize=65_536)
def path_segment(text: str) -> tuple[str, ...]:
    """A name that is valid as one segment of a path; the rule for RBAC objects."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{char}'" for char in "/%" if char in text)


@lru_cache(maxsize=65_536)
def address(text: str) -> tuple[str, ...]:
    """An IP address of either family, in its canonical form."""
    try:
        plain = str(ipaddress.ip_address(text))
    except ValueError:
        return (f'ParseAddr("{text}"): unable to parse IP',)
    return () if plain == text else ("must be a canonical format IP address",)


def is_uid(text: str) -> bool:
    """Whether the text is a uid: 36 characters, lower case, RFC 4122."""
    return _is_uid(text) is not None


def generated(base: str, uid: str, attempt: int) -> str:
    """The name for a generateName: the base, cut to size, and five characters derived from the uid.

    The same uid and attempt give the same name, also in a replay.
    """
    number = int.from_bytes(uid.encode(), "big") % _PRIME
    number = (number * 1_000_003 + attempt * 7_919 + 12_345) % _PRIME
    suffix = []
    for _ in range(5):
        number, digit = divmod(number, len(SUFFIX_ALPHABET))
        suffix.append(SUFFIX_ALPHABET[digit])
    return base[:GENERATED_BASE_MAX] + "".join(suffix)


_PRIME = 2**61 - 1


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _too_many_bytes(limit: int) -> str:
    """The message for the formats of DNS names and labels, for which upstream counts bytes."""
    return f"must be no more than {limit} bytes"
