"""The recorded pace of each variant, learned once for all runs with it."""

from collections.abc import Mapping, Sequence, Set

from app.analysis.replay.attempts import leave_under_way
from app.analysis.replay.pace import RecordedPace
from app.analysis.replay.recording import Recording
from app.analysis.replay.variants import Variant


class Paces:
    """The paces of one recording. `names` maps user names to controllers."""

    def __init__(self, recording: Recording, names: Mapping[str, Sequence[str]]) -> None:
        self._recording = recording
        self._names = names
        self._learned: dict[tuple[Set[str], Set[str]], RecordedPace] = {}

    def of(self, variant: Variant) -> RecordedPace:
        """The pace of a variant, at its beginning."""
        waited = frozenset(self._recording.trace.keys) if variant.is_limited else variant.waited
        learned = self._learned.get((variant.apart, waited))
        if learned is None:
            learned = self._learn(variant.apart, waited)
            self._learned[variant.apart, waited] = learned
        return learned.afresh()

    def _learn(self, apart: Set[str], waited: Set[str]) -> RecordedPace:
        recording = self._recording
        pace = RecordedPace(recording.node_reasons)
        pace.learn(
            recording.acts,
            self._names,
            recording.removed,
            apart=apart,
            waited=waited,
            skew=recording.skew,
            decided=recording.attempted,
        )
        if not recording.is_over:
            leave_under_way(map(pace.attempts, recording.trace.keys), recording.last)
        return pace
