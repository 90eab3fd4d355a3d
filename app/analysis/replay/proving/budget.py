"""The bounds of the runs that prove the differences of one replay.

The number of runs alone is no bound: a run takes as long as its recording, and that of a busy
cluster takes minutes. So the events of all runs are bounded as well.
"""

from dataclasses import dataclass


class Exhausted(Exception):
    """The budget allows no further run."""


@dataclass(slots=True)
class Budget:
    """The bounds of all runs, and what the runs so far have used.

    `runs` counts the runs, except those that ended at a contradiction. `events` counts the events
    of all of them.
    """

    runs_max: int
    events_max: int
    runs: int = 0
    events: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further run may be made."""
        return self.runs >= self.runs_max or self.events >= self.events_max

    @property
    def is_half_spent(self) -> bool:
        """Whether half of a bound is used."""
        return 2 * self.runs >= self.runs_max or 2 * self.events >= self.events_max

    def note(self, events: int, *, is_whole: bool) -> None:
        """Counts a run with this number of events."""
        self.runs += is_whole
        self.events += events

    def words(self) -> str:
        """The note about untried hypotheses, with the bound of which the larger part is used."""
        if self.events * self.runs_max > self.runs * self.events_max:
            bound, name = f"{self.events_max} events of runs", "REDRA_DECIDE_PROOF_EVENTS_MAX"
        else:
            bound, name = f"{self.runs_max} runs", "REDRA_DECIDE_RUNS_MAX"
        return f"not proved within {bound} ({name})"
