"""Forks with recorded inputs: inputs that did not apply, and decisions that differ there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis.diff.report import DiffReport
from app.analysis.diff.text import counts_text, order_notes
from app.analysis.replay.unapplied import Unapplied
from app.domain.log import ObjectKey
from app.domain.values import counts, timestamps
from app.domain.values.json_tree import JsonObject

LINES_MAX = 50
"""The number of inapplicable inputs, and of objects, that the text names; the JSON has all."""


class ComparedFork(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a fork with its parent: as JSON, its counts as a sentence, and notes."""

    is_same: bool
    counts: str
    report: JsonObject
    notes: list[str] = []


def compared_of(diff: DiffReport) -> ComparedFork:
    """The comparison in the form that forks are reported with."""
    return ComparedFork(
        is_same=diff.is_same,
        counts=counts_text(diff),
        report=diff.to_json(),
        notes=order_notes(diff),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkReport:
    """The outcome of a fork with recorded inputs.

    `inputs` is the number of inputs, `unapplied` those that were left out. `unlike` are the pods
    and claims that are decided differently here even without a change, so that they show nothing
    about it. `switches` are those that the recorded control plane was found to have had, as text.
    Without a `diff`, `problem` says why the histories were not compared.
    """

    source: str
    fork: str
    inputs: int
    unapplied: Sequence[Unapplied]
    unlike: Sequence[ObjectKey]
    switches: Sequence[str] = ()
    diff: ComparedFork | None = None
    problem: str = ""

    def to_json(self) -> JsonObject:
        """The report as JSON for the command line and the API."""
        return {
            "inputs": self.inputs,
            "inputsLeftOut": [each.to_json() for each in self.unapplied],
            "unlikeWithoutChange": [str(key) for key in self.unlike],
            "recordedWith": list(self.switches),
            "diff": None if self.diff is None else self.diff.report,
            "notCompared": self.problem,
        }

    def lines(self) -> Iterator[str]:
        """The report as lines for people."""
        if self.switches:
            yield f"the recording shows these switches, and the fork has them: {self._switches}"
        left = len(self.unapplied)
        used = f"{counts.of(self.inputs, 'recorded input')} {counts.verb(self.inputs, 'was')} used"
        yield f"{used}, {left} of them {counts.verb(left, 'does')} not apply there" + (
            ":" if left else ""
        )
        for each in self.unapplied[:LINES_MAX]:
            author = f" by {each.author}" if each.author else ""
            time = timestamps.micro_text(each.time)
            yield f"  revision {each.revision}, {time}, {each.key}{author}: {each.why}"
        if left > LINES_MAX:
            yield f"  and {left - LINES_MAX} more: -o json"
        if self.unlike:
            yield (
                "these are decided differently from the recording even without a change, so "
                "they show nothing about the change:"
            )
            yield from (f"  {key}" for key in self.unlike[:LINES_MAX])
            if len(self.unlike) > LINES_MAX:
                yield f"  and {len(self.unlike) - LINES_MAX} more: -o json"
        if self.diff is None:
            yield f"not compared with {self.source}: {self.problem}"
        else:
            yield f"compared with {self.source}: {self.diff.counts}"
            yield from self.diff.notes
            if not self.diff.is_same:
                yield f"`redra diff {self.source} {self.fork}` shows why"

    @property
    def _switches(self) -> str:
        return ", ".join(self.switches)
