"""The bounds of a blast, apart from its work: every explanation has them, and few need that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastBounds:
    """The bounds: `changes_max` changes in one proposal, `listed_max` entries in each list of an
    answer, `waiting_max` waiting pods tried with and without the change.
    """

    changes_max: int = 1_000
    listed_max: int = 10_000
    waiting_max: int = 200
