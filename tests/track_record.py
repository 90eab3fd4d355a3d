"""The tests and rows that the track record names: each holds a found defect.

It begins in `docs/testing.md` and goes on in `docs/testing/track-record`, a page for each area.

Names stand there between backticks. `…` stands for any part of a name, `_N_` for a number, and a
name that begins with `_` is the end of several names. Both mean rows and alterations, never a test:
words such as "without" stand in the names of many tests.
"""

import re
from collections.abc import Set as AbstractSet
from functools import cache

import pytest

from tests.shared_data import REPOSITORY

_NAME = re.compile(r"[\w…]*_[\w…]*(?:\[[^\]`]+\])?")
"""Names of tests, of alterations and of rows have an underscore; other words in backticks do not
tell which row is meant."""


_HEADING = "\n## Track record\n"


class Names:
    """What the track record names."""

    def __init__(self, names: AbstractSet[str]) -> None:
        parts = {name for name in names if "…" in name or "_N_" in name or name[0] == "_"}
        self._whole = frozenset(names) - parts
        # Of several names: hundreds that are whole, in one pattern, take 0.1 ms for each row.
        self._parts = re.compile("|".join(sorted(map(_pattern, parts))) or r"(?!)")

    def fullmatch(self, name: str) -> bool:
        """Whether a test, an alteration or a row is named."""
        return name in self._whole or bool(self._parts.fullmatch(name))


@cache
def named() -> Names:
    """The names that the track record has."""
    return names_of(text())


def text() -> str:
    """The track record as one text, from its heading on."""
    docs = REPOSITORY / "docs"
    _, heading, first = (docs / "testing.md").read_text().partition(_HEADING)
    pages = sorted((docs / "testing" / "track-record").glob("*.md"))
    return "\n".join([heading + first, *(page.read_text() for page in pages)])


def names_of(text: str) -> Names:
    """The names that the track record of a text has."""
    spans = re.findall(r"`([^`\n]+)`", text.partition(_HEADING)[2])
    return Names({name for span in spans for name in _NAME.findall(span) if name.strip("_…")})


def _pattern(name: str) -> str:
    pattern = re.escape(name).replace("…", ".*").replace("_N_", r"_\d+_")
    several = f".*{pattern}" if name.startswith("_") else pattern
    return several if name.startswith("test_") else f"(?!test_){several}"


def names(item: pytest.Item) -> bool:
    """Whether the track record names a test, or a row of it."""
    return bool(named().fullmatch(item.name.partition("[")[0]) or defect_of(item))


def defect_of(item: pytest.Item) -> str:
    """The name by which the track record means a row: its own, or that of what is altered.

    Of the rows of a test that comes by day it names single ones: `test_draws` holds that. An
    alteration that is a function is named for all its rows, of which one holds the defect.
    """
    row = getattr(item, "callspec", None)
    values = list(row.params.values()) if row else []
    for name in (item.name, *(value for value in values if isinstance(value, str))):
        if named().fullmatch(name):
            return item.name
    for name in (getattr(value, "__name__", "") for value in values):
        if name and named().fullmatch(name):
            return name
    return ""
