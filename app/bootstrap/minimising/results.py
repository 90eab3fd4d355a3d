"""The result of a search for the smallest history, as it is printed and given to programs."""

from dataclasses import dataclass

_DECISIONS = {True: "recorded", False: "made here"}
"""Whose decisions show the predicate: those that were recorded, or those of redra's controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimised:
    """The result of a search.

    `is_minimal` means that no single part of the last level can be left out; if false, the time
    ended before that was known. `represented` is the greatest number of parts that are alike of
    which three were tried by themselves and stand for all; 0 if each part was tried. `is_recorded`
    means that the history is taken as recorded, because it does not show the predicate when the
    controllers here decide it; `was_recorded` means the same for the whole history.
    `is_of_recording` means that the history is a recording.
    """

    predicate: str
    sighting: str
    is_recorded: bool
    was_recorded: bool
    is_of_recording: bool
    is_minimal: bool
    represented: int
    events_before: int
    events: int
    inputs: int
    objects: int
    devices: int
    trials: int
    remembered: int
    seconds: float

    def to_json(self) -> dict[str, object]:
        """The JSON form for programs."""
        return {
            "predicate": self.predicate,
            "sighting": self.sighting,
            "isRecording": self.is_of_recording,
            "decisions": _DECISIONS[self.is_recorded],
            "decisionsBefore": _DECISIONS[self.was_recorded],
            "minimal": self.is_minimal,
            "represented": self.represented,
            "eventsBefore": self.events_before,
            "events": self.events,
            "inputs": self.inputs,
            "objects": self.objects,
            "devices": self.devices,
            "trials": self.trials,
            "remembered": self.remembered,
            "seconds": round(self.seconds, 1),
        }
