"""Lists of an answer, cut at a bound."""

from collections.abc import Sequence
from typing import TypeVar

_Entry = TypeVar("_Entry")


class ListCut:
    """Cuts lists at a bound and records the number of missing entries."""

    def __init__(self, listed_max: int) -> None:
        self._listed_max = listed_max
        self.left_out: dict[str, int] = {}

    def __call__(self, name: str, entries: Sequence[_Entry]) -> tuple[_Entry, ...]:
        """The first entries; the number of further ones is recorded under the name."""
        if len(entries) > self._listed_max:
            self.left_out[name] = len(entries) - self._listed_max
        return tuple(entries[: self._listed_max])
