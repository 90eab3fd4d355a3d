"""Semantic versions with their precedence, an independent implementation (allocator.md 11.5)."""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_FIELD: Final = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_FORM: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-(?P<before>{_FIELD}(?:\.{_FIELD})*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_NUMBER_MAX: Final = 2**64 - 1


class UnreadableVersion(ValueError):
    """The text is not a semantic version."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version. Build metadata does not affect its order."""

    core: tuple[int, int, int]
    before: tuple[str, ...]

    @property
    def _place(self) -> tuple[object, ...]:
        fields = tuple(
            (0, int(field), "") if field.isdigit() else (1, 0, field) for field in self.before
        )
        return self.core, not self.before, fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._place == other._place

    def __lt__(self, other: "Version") -> bool:
        return self._place < other._place

    def __hash__(self) -> int:
        return hash(self._place)


def parse(text: str) -> Version:
    """Parses a version. Raises UnreadableVersion."""
    form = _FORM.fullmatch(text)
    if form is None or not text.isascii():
        raise UnreadableVersion(text)
    major, minor, patch = (int(form[place]) for place in (1, 2, 3))
    if max(major, minor, patch) > _NUMBER_MAX:
        raise UnreadableVersion(text)
    return Version(
        (major, minor, patch), tuple((form["before"] or "").split(".")) if form["before"] else ()
    )


def parse_loosely(text: str) -> Version:
    """Parses a version such as `v1.02`: adds missing numbers and removes leading zeros."""
    rest = text.removeprefix("v")
    core = re.split(r"[-+]", rest, maxsplit=1)[0]
    tail = rest[len(core) :]
    numbers = core.split(".")
    if len(numbers) < 3 and tail:
        raise UnreadableVersion(text)
    stripped = [number.lstrip("0") or ("0" if number else "") for number in numbers]
    return parse(".".join(stripped + ["0"] * (3 - len(stripped))) + tail)
