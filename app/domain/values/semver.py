"""Semantic versions 2.0.0 as device attributes and CEL use them.

Precedence ignores build metadata. Parity: allocator.md 11.5.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

_UINT64_MAX = 2**64 - 1
_SHAPE = re.compile(r"([^.]*)\.([^.]*)\.([^-+]*)(?:-([^+]*))?(?:\+(.*))?", re.ASCII | re.DOTALL)
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_NUMBER = re.compile(r"[0-9]+", re.ASCII)

Identifier: TypeAlias = tuple[int, int, str]
"""One pre-release field as a sort key: (0, number, "") before (1, 0, text)."""


class SemverError(ValueError):
    """A text that is not a semantic version; the message names the wrong part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Semver:
    """A parsed version. `key` orders versions by precedence; `text` is the canonical spelling."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...]
    build: tuple[str, ...]
    key: tuple[int, int, int, int, tuple[Identifier, ...]]

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        if self.build:
            text += "+" + ".".join(self.build)
        return text


@lru_cache(maxsize=16_384)
def parse(text: str) -> Semver:
    """The version in `text`, parsed strictly. Raises SemverError for anything else."""
    if not text:
        raise SemverError("Version string empty")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor, patch, prerelease, build = shape.groups()
    fields = () if prerelease is None else tuple(prerelease.split("."))
    identifiers = tuple(_identifier(field) for field in fields)
    metadata = () if build is None else tuple(build.split("."))
    for field in metadata:
        if not _IDENTIFIER.fullmatch(field):
            raise SemverError(f"Build meta data {field!r} is empty or has invalid character(s)")
    core = (_core("Major", major), _core("Minor", minor), _core("Patch", patch))
    return Semver(
        major=core[0],
        minor=core[1],
        patch=core[2],
        prerelease=fields,
        build=metadata,
        key=(*core, 0 if fields else 1, identifiers),
    )


def parse_normalised(text: str) -> Semver:
    """Like `parse`, after dropping one leading `v` and leading zeros and adding missing parts.

    Raises SemverError also for a short version with `+` or `-`.
    """
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(_without_leading_zeros(part) for part in parts))


def compare(left: Semver, right: Semver) -> int:
    """Compares by precedence, ignoring build metadata: -1, 0 or 1."""
    return (left.key > right.key) - (left.key < right.key)


def _core(name: str, digits: str) -> int:
    if not _NUMBER.fullmatch(digits):
        raise SemverError(f"Invalid character(s) found in {name.lower()} number {digits!r}")
    if len(digits) > 1 and digits[0] == "0":
        raise SemverError(f"{name} number must not contain leading zeroes {digits!r}")
    return _uint64(digits)


def _uint64(digits: str) -> int:
    if len(digits) > 20 or int(digits) > _UINT64_MAX:
        raise SemverError(f"number {digits[:24]!r} is out of range")
    return int(digits)


def _identifier(field: str) -> Identifier:
    if not _IDENTIFIER.fullmatch(field):
        raise SemverError(f"Prerelease {field!r} is empty or has invalid character(s)")
    if not _NUMBER.fullmatch(field):
        return (1, 0, field)
    if len(field) > 1 and field[0] == "0":
        raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {field!r}")
    return (0, _uint64(field), "")


def _without_leading_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isascii() and stripped[:1].isdigit() else "0" + stripped
