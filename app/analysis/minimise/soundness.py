"""Soundness: what is impossible in a candidate must be so in the whole history.

Parts are left out without regard to what they mean. What is left may be a state that no cluster
comes to: a claim with devices, but without the finalizer that protects it. What shows there then
says nothing about the history.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.analysis.minimise.predicates import Trial
from app.analysis.replay.report import DecideReport
from app.analysis.verify.invariants.watch import InvariantWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The impossible states in a history.

    `rules` are the invariants that do not hold, `objects` those about which a decide replay says
    that their recorded states are impossible.
    """

    rules: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()

    def are_within(self, whole: "Faults") -> bool:
        """Whether the whole history has them all."""
        return self.rules <= whole.rules and self.objects <= whole.objects


def faults_of(trial: Trial, reports: Iterable[DecideReport] = ()) -> Faults:
    """The faults of a history that was run, with those that decide replays of it report."""
    watch = InvariantWatch(trial.switches)
    watch.follow(trial.events)
    return Faults(
        rules=frozenset(each.rule for each in watch.violations() if each.kind.is_failure),
        objects=frozenset(name for report in reports for name in report.violations),
    )
