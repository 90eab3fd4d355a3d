"""The request for a paced replay."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWanted:
    """A replay as given on the command line; empty moments mean the beginning and the end.

    `speed` is 0 for step by step. `ends` means that the server ends with the replay, `has_keys`
    that the terminal's keys change the pace. Before the server ends, `on_end` is called with the
    number of conflicts, or with None if the replay cannot go on.
    """

    history: str
    speed: float = 1.0
    begin: str = ""
    end: str = ""
    shifts: bool = False
    ends: bool = False
    has_keys: bool = False
    on_end: Callable[[int | None], None] = lambda conflicts: None
