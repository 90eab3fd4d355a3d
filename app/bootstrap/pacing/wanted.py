"""What of a history is to be played, and how."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayWanted:
    """A replay as the command line names it; empty moments are the beginning and the end.

    `speed` is 0 for one that goes step by step. `ends` tells that the server is to end with the
    replay, `has_keys` that the terminal's keys change the pace.
    """

    history: str
    speed: float = 1.0
    begin: str = ""
    end: str = ""
    shifts: bool = False
    ends: bool = False
    has_keys: bool = False
