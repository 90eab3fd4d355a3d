"""The time for which a lost line matters after the line that shows it.

What a lost line led to, a run does at another instant than the recorded control plane. Until both
have done it, the object differs, and so may what others did by its state: pods compete for devices.

What is published differs until the line that shows the loss. That line changes something else in a
run than it did there, though: it lets other pods be tried, which other pods have kept waiting.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.analysis.replay.races import Races
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure.dependence import TAINTS
from app.analysis.replay.unsure.lacks import Lacks
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant


@dataclass(slots=True, kw_only=True)
class Aftermath:
    """Compares a recording with lost lines to runs; the answer about the last run is kept."""

    recorded: Trace
    lacks: Lacks
    races: Races
    _last: tuple[Trace, Mapping[ObjectKey, Instant]] | None = field(default=None, init=False)

    def of(self, again: Trace) -> Mapping[ObjectKey, Instant]:
        """Until when each object with a lost line differed, with its pods and claims."""
        if self._last is None or self._last[0] is not again:
            self._last = again, self._unlike(again)
        return self._last[1]

    def _unlike(self, again: Trace) -> Mapping[ObjectKey, Instant]:
        unlike: dict[ObjectKey, Instant] = {}
        uids: dict[ObjectKey, set[str]] = defaultdict(set)
        lines = list(self.lacks.lines())
        for trace in (self.recorded, again) if lines else ():
            for uid, key in trace.keys.items():
                uids[key].add(uid)
        for key, since, settled in lines:
            if key[:2] in TAINTS:
                unlike[key] = settled
                continue
            related = {each for uid in uids[key] for each in self.races.related(uid, again)}
            times = (
                step.time
                for uid in related
                for step in _differing(self.recorded.writes.get(uid, ()), again.writes.get(uid, ()))
            )
            during = (time for time in times if since <= time <= settled)
            unlike[key] = max(during, default=since)
        return unlike


def _differing(there: Sequence[Step], here: Sequence[Step]) -> Iterator[Step]:
    """The steps of each side that the other side does not have."""
    for steps, others in ((there, here), (here, there)):
        left = Counter(step.facts for step in others)
        for step in steps:
            if left[step.facts] > 0:
                left[step.facts] -= 1
            else:
                yield step
