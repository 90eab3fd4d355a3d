"""Why a decide replay differs from what was recorded: the classes, and how one is found."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.service.deciding_traces import Trace


class Reason(StrEnum):
    """The classes of differences."""

    IN_FLIGHT = "in flight"
    RACE = "race"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One difference before it is judged: the two lists of one aspect of one object."""

    aspect: str
    uid: str
    recorded: list[Any]
    again: list[Any]


class Classes:
    """Finds the class of a difference from both traces."""

    def __init__(self, recorded: Trace, again: Trace) -> None:
        self._recorded = recorded
        self._again = again

    def of(self, found: Found) -> tuple[Reason, str]:
        """The class and what is behind it."""
        return Reason.UNEXPLAINED, ""
