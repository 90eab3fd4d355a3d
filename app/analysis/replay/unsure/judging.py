"""Which differences the recording leaves unsure: for what it lacks, or for times that are wrong."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from app.analysis.replay.differences import Sides
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Trace
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.times import Clocks
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubting:
    """Tells why a difference between the recording and a run cannot be judged; empty when it can.

    `impossible` names pods and claims about which something was recorded that no lack and no wrong
    clock can have caused: what differs about these is never unsure. The recording ends at `end`.
    """

    recorded: Trace
    end: Instant
    lacks: Lacks
    impossible: Mapping[ObjectKey, str]
    races: Races

    def lack(self, sides: Sides, again: Trace) -> str:
        """What it rests on that was not recorded: no run can tell anything about it."""
        if self.impossibility(sides, again):
            return ""
        related = self.races.related(sides.uid, again)
        first, last = self.races.since(sides, again), self.races.settled_by(sides, again)
        return self.lacks.about(related, self._keys(related, again), first, last)

    def gap(self, sides: Sides, again: Trace) -> str:
        """What was not recorded of its own object, its pods and their claims."""
        if self.impossibility(sides, again):
            return ""
        related = self.races.related(sides.uid, again)
        first, last = self.races.since(sides, again), self.races.settled_by(sides, again)
        return self.lacks.of(related, self._keys(related, again), first, last)

    def times(self, sides: Sides, again: Trace) -> str:
        """Times that may be wrong: what a run proves all the same is proved."""
        clocks = Clocks(recorded=self.recorded, again=again, end=self.end)
        is_possible = not self.impossibility(sides, again) and clocks.may_have_caused(sides)
        if not self.lacks.times or not is_possible:
            return ""
        return f"{self.lacks.times}: when it was done is not known"

    def impossibility(self, sides: Sides, again: Trace) -> str:
        """What was recorded about its pods and claims that cannot have come about."""
        if not self.impossible:
            return ""
        keys = self._keys(self.races.related(sides.uid, again), again)
        return next((self.impossible[key] for key in sorted(keys & self.impossible.keys())), "")

    def _keys(self, uids: Set[str], again: Trace) -> set[ObjectKey]:
        traces = (self.recorded, again)
        return {trace.keys[uid] for trace in traces for uid in uids & trace.keys.keys()}
