"""Formats of strings in schemas of custom kinds; every string has an unknown format."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date

from app.domain.values import timestamps


def fits(name: str, value: str) -> bool:
    """Whether the string has the format; True for unknown formats."""
    test = _TESTS.get(name)
    return test is None or test(value)


def _raises_no(error: type[Exception], call: Callable[[str], object]) -> Callable[[str], bool]:
    def test(value: str) -> bool:
        try:
            call(value)
        except error:
            return False
        return True

    return test


_HEX = "[0-9a-fA-F]"
_UUID = re.compile(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}")
_MAC = re.compile(f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}([:-]{_HEX}{{2}}){{0,2}}")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_HOST = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[-A-Za-z0-9]{1,63})*\.?")
_DURATION = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))+|0|\d+ *[a-z]+")

_TESTS: Mapping[str, Callable[[str], bool]] = {
    "byte": _raises_no(binascii.Error, lambda value: base64.b64decode(value, validate=True)),
    "cidr": _raises_no(ValueError, lambda value: ipaddress.ip_network(value, strict=False)),
    "date": _raises_no(ValueError, date.fromisoformat),
    "date-time": _raises_no(timestamps.TimestampError, timestamps.parse),
    "datetime": _raises_no(timestamps.TimestampError, timestamps.parse),
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "email": lambda value: _EMAIL.fullmatch(value) is not None,
    "hostname": lambda value: _HOST.fullmatch(value) is not None,
    "ipv4": _raises_no(ValueError, ipaddress.IPv4Address),
    "ipv6": _raises_no(ValueError, ipaddress.IPv6Address),
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uuid": lambda value: _UUID.fullmatch(value) is not None,
}
