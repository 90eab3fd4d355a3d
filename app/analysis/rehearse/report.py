"""The report of a rehearsal, as values and as JSON."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.analysis.diff.causes import PodDifference, Proof
from app.analysis.diff.report import DiffReport, rewritten_json
from app.analysis.rehearse.admission import FieldsKept, RefusedWrite
from app.analysis.rehearse.attribution import Finding
from app.analysis.rehearse.contents import Contents
from app.analysis.rehearse.defects import Defects, Incidence
from app.analysis.rehearse.versions import VersionUse
from app.analysis.replay.unapplied import Unapplied
from app.domain.log import ObjectKey, Revision, doubts
from app.domain.log.doubts import Doubt
from app.domain.values.json_tree import JsonObject

LISTED_MAX = 1_000
"""The number of entries of one list in the JSON; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A history under another release.

    In `diff`, A is the world as it was, and B as it would be; it has the decisions that differ
    because of the release. `aside` are differences that follow from pods whose decisions differ
    from the recording even without a change; `unlike` are those pods and claims, whose behaviour
    shows nothing. `compared` counts, by aspect, the decisions that are the same in the recording
    and in A, out of the number in `decided`.

    `recorded_with` are switches that the recorded control plane was found to have had, which the
    cluster keeps. `unapplied` are inputs that apply in A but not in B, except those in `refused`.
    `doubtful` are objects that both APIs refuse here although they were recorded, `placed` those
    that a scheduler from outside placed, with its name. `absent` are the controllers that were not
    at work in the recording, and are in neither world. `proofs` has the
    settings that runs have shown to cause changes; `trials` counts these runs. `unattributed`
    counts the changes whose settings were not found or not narrowed down; with `is_cut_short`, no
    more runs were permitted.
    """

    history: str
    revision: Revision
    source: str
    target: str
    diff: DiffReport
    aside: Sequence[PodDifference]
    unlike: Sequence[ObjectKey]
    compared: Mapping[str, int]
    decided: Mapping[str, int]
    recorded_with: Sequence[str]
    refused: Sequence[RefusedWrite]
    dropped: Sequence[FieldsKept]
    begins: Sequence[FieldsKept]
    doubtful: Mapping[ObjectKey, str]
    placed: Mapping[ObjectKey, str]
    absent: Collection[str]
    versions: Sequence[VersionUse]
    contents: Contents
    defects: Defects
    unapplied: Sequence[Unapplied]
    doubts: Sequence[Doubt]
    proofs: Mapping[Finding, Proof] = field(default_factory=dict)
    trials: int = 0
    unattributed: int = 0
    is_cut_short: bool = False

    @property
    def is_quiet(self) -> bool:
        """Whether nothing changes with the release, as far as known."""
        return self.changes_texts_only and not self.contents.texts

    @property
    def changes_texts_only(self) -> bool:
        """Whether at most texts change: all pods have the same outcome, all writes are accepted.

        An input that does not apply only in B is a change. So is a pod with a different outcome
        there, even if that is unsure.
        """
        return self.diff.is_same and not (
            self.refused
            or self.dropped
            or self.begins
            or self.versions
            or self.contents.fields
            or self.contents.loses_rules
            or self.defects.changing
            or self.unapplied
            or self.aside
        )

    @property
    def is_blind(self) -> bool:
        """Whether nothing was compared that could have changed.

        Nothing has happened yet, or no recorded decision has the same result here, as for a
        recording that begins in the middle.
        """
        if any(self.compared.values()):
            return False
        return not self.revision or any(self.decided.values())

    @property
    def outcome(self) -> str:
        """The result in a few words."""
        if self.is_quiet and self.is_blind:
            return "nothing could be compared"
        if self.is_quiet:
            return "nothing changes"
        if self.changes_texts_only:
            return "no pod has another outcome; only texts change"
        return "something changes"

    def proof(self, finding: Finding) -> Proof | None:
        """The settings that were shown to cause a change, if any."""
        return self.proofs.get(finding)

    def dropped_before(self, write: RefusedWrite) -> list[FieldsKept]:
        """The fields that a refused write loses before its object is judged."""
        place = (write.key, write.revision)
        return [each for each in self.dropped if (each.key, each.revision) == place]

    @property
    def dropped_only(self) -> list[FieldsKept]:
        """The fields that are no longer kept of accepted writes."""
        refused = {(each.key, each.revision) for each in self.refused}
        return [each for each in self.dropped if (each.key, each.revision) not in refused]

    @property
    def shown_defects(self) -> frozenset[str]:
        """The numbers of the repaired and introduced defects from which a change here follows."""
        numbers = {each.number.lower() for each in self.defects.incidents}
        for proof in self.proofs.values():
            for setting in proof.settings:
                kind, _, rest = setting.partition(" ")
                if kind == "quirk":
                    numbers.add(rest.partition(":")[0])
        return frozenset(numbers)

    @property
    def over_limit(self) -> list[RefusedWrite]:
        """The objects with a list that is too long there: slices that must be split, and others."""
        return [each for each in self.refused if each.is_over_limit]

    def to_json(self) -> JsonObject:
        """The report as JSON for programs. A is the world as it was, B as it would be."""
        accepted = self.dropped_only
        shown = self.shown_defects
        return {
            "history": self.history,
            "revision": self.revision,
            "from": self.source,
            "to": self.target,
            "outcome": self.outcome,
            "settings": list(self.diff.switches),
            "refused": [
                {
                    **_write(each),
                    "text": each.text,
                    "version": each.version,
                    **self._proof(each.finding),
                }
                for each in self.refused[:LISTED_MAX]
            ],
            "overLimit": [str(each.key) for each in self.over_limit[:LISTED_MAX]],
            "mustBeSplit": [
                str(each.key) for each in self.over_limit[:LISTED_MAX] if each.must_be_split
            ],
            "fieldsDropped": [
                {
                    **_kept(each),
                    "refused": each not in accepted,
                    **self._proof(each.findings[0]),
                }
                for each in self.dropped[:LISTED_MAX]
            ],
            "fieldsBeginToBeKept": [_kept(each) for each in self.begins[:LISTED_MAX]],
            "versions": [msgspec.to_builtins(each) for each in self.versions],
            "decisions": self.diff.to_json(),
            "texts": [
                {**rewritten_json(each), **self._proof(("text", *each.words))}
                for each in self.contents.texts[:LISTED_MAX]
            ],
            "fields": [
                {**rewritten_json(each), **self._proof(("field", *each.words))}
                for each in self.contents.fields[:LISTED_MAX]
            ],
            "trials": self.trials,
            "unattributed": self.unattributed,
            "followFromDecisions": len(self.contents.following),
            "defects": {
                "repaired": list(self.defects.repaired),
                "introduced": list(self.defects.introduced),
                "changing": [
                    number
                    for number in (*self.defects.repaired, *self.defects.introduced)
                    if number in shown
                ],
                "shown": [_incidence(each) for each in self.defects.incidents],
            },
            "compared": dict(self.compared),
            "decided": dict(self.decided),
            "recordedWith": list(self.recorded_with),
            "unsure": {
                "unlikeWithoutChange": [str(key) for key in self.unlike],
                "differences": [f"pods/{each.pair.name}" for each in self.aside],
                "refusedByBoth": {str(key): text for key, text in self.doubtful.items()},
                "placedFromOutside": {str(key): name for key, name in self.placed.items()},
                "notAtWork": sorted(self.absent),
                "inputsLeftOut": [each.to_json() for each in self.unapplied],
                "certainty": doubts.certainty(tuple(self.doubts)),
                "doubts": msgspec.to_builtins(tuple(self.doubts)),
            },
        }

    def _proof(self, finding: Finding) -> JsonObject:
        """The settings of a change as a field, if any were found."""
        proof = self.proof(finding)
        return {} if proof is None else {"proof": proof.to_json()}


def _write(write: RefusedWrite) -> JsonObject:
    return {
        "object": str(write.key),
        "revision": write.revision,
        "author": write.author,
        "change": write.change,
    }


def _kept(entry: FieldsKept) -> JsonObject:
    return {
        "object": str(entry.key),
        "revision": entry.revision,
        "author": entry.author,
        "texts": list(entry.texts),
    }


def _incidence(incidence: Incidence) -> JsonObject:
    return {
        "incident": incidence.incident,
        "number": incidence.number,
        "title": incidence.title,
        "shows": incidence.shows.value,
        "before": None if incidence.before is None else incidence.before.to_json(),
        "after": None if incidence.after is None else incidence.after.to_json(),
    }
