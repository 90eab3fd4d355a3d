"""The answer of a comparison, as values and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from app.analysis.diff import words
from app.analysis.diff.causes import PodDifference, Root
from app.analysis.diff.classes import Class, messages_of
from app.analysis.diff.courses import Course
from app.analysis.diff.endings import AfterEnd
from app.analysis.diff.inputs import InputDifference
from app.analysis.diff.refusals import RefusedCreation
from app.analysis.diff.rivals import Contest
from app.analysis.diff.sides import Side
from app.analysis.diff.words import Rewritten
from app.domain.log import ObjectKey, doubts
from app.domain.log.doubts import Doubt
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_SAID = "conditions and Events"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffReport:
    """The differences, and which follow from which.

    `same` counts the pods without any difference, `counts` the others by their gravest class.
    `switches` and `changes` are the different settings and inputs of the two histories.
    `unexplained` counts the differences without a cause. `not_done` counts the inputs of A that
    could not be applied in B, where B is A decided again. `after_end` is what the longer of two
    recordings has after the end of the other one. `contests` are placements in a fork that follow
    from an order of attempts which is not known.
    """

    a: Side
    b: Side
    same: int
    counts: Mapping[str, int]
    switches: tuple[str, ...]
    changes: tuple[InputDifference, ...]
    differences: tuple[PodDifference, ...]
    unexplained: int
    listed_max: int
    not_done: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[ObjectKey, RefusedCreation] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    after_end: AfterEnd | None = None
    contests: tuple[Contest, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether no decision differs."""
        return not self.differences

    def roots(self) -> list[tuple[Root, list[PodDifference]]]:
        """The roots with the differences directly below each, in the order of time.

        Changes and switches without consequences are left out, and those from which only texts
        follow (`texts`).
        """
        by_root: dict[Root, list[PodDifference]] = {}
        for difference in self.differences:
            if difference.roots and not difference.is_about_words:
                by_root.setdefault(difference.roots[0], []).append(difference)
        return sorted(by_root.items(), key=lambda item: item[1][0].parted.time)

    def texts(self) -> list[tuple[Root, list[Rewritten]]]:
        """The changed messages of pods with the same outcome, by root and changed words."""
        by_root: dict[Root, dict[tuple[str, ...], Rewritten]] = {}
        for each in self.differences:
            if not each.is_about_words or each.pair.a is None or each.pair.b is None:
                continue
            entries = by_root.setdefault(each.root, {})
            mine, other = messages_of(each.pair.a.refusals), messages_of(each.pair.b.refusals)
            left = [text for text in mine if text not in other]
            right = [text for text in other if text not in mine]
            changes = {
                words.parts(before, after): after or before
                for before, after in zip_longest(left, right, fillvalue="")
            }
            # Without changed words, the texts are the same in another order, or repeated.
            for (before, after), whole in (changes or {("", ""): ""}).items():
                words.add(entries, _SAID, before, after, each.pair.a.key, whole)
        return [(root, list(entries.values())) for root, entries in by_root.items()]

    def idle(self) -> list[InputDifference]:
        """The changes without consequences."""
        roots = {root.name for difference in self.differences for root in difference.roots}
        roots |= {str(each.by) for each in self.refused.values()}
        return [
            change
            for change in self.changes
            if str(change.key) not in roots and change.key not in self.refused
        ]

    def refusing(self) -> list[InputDifference]:
        """The changes that refuse objects, and from which no difference of pods follows."""
        roots = {root.name for root, _ in (*self.roots(), *self.texts())}
        by = {each.by for each in self.refused.values()}
        return [each for each in self.changes if each.key in by and str(each.key) not in roots]

    def to_json(self) -> JsonObject:
        """The complete answer as JSON; each difference names those from which it follows."""
        return {
            **head_json(self.a, self.b, self.after_end, self.listed_max),
            "outcome": "same" if self.is_same else "different",
            "pods": {
                "same": self.same,
                "different": len(self.differences),
                "classes": {each.value: self.counts[each] for each in Class if self.counts[each]},
            },
            "unexplained": self.unexplained,
            "notDone": dict(sorted(self.not_done.items())),
            "settings": list(self.switches),
            "changes": [_change(change) for change in self.changes[: self.listed_max]],
            "refused": [
                {
                    "object": str(key),
                    "by": str(each.by),
                    "side": each.side,
                    "text": each.text,
                }
                for key, each in self.refused.items()
            ][: self.listed_max],
            "differences": [_difference(each) for each in self.differences[: self.listed_max]],
            "leftOut": max(0, len(self.differences) - self.listed_max),
            "texts": [
                {**rewritten_json(each), "root": root.name}
                for root, entries in self.texts()
                for each in entries[: self.listed_max]
            ],
            "orderNotKnown": [each.to_json() for each in self.contests[: self.listed_max]],
            "certainty": doubts.certainty(self.doubts),
            "doubts": msgspec.to_builtins(self.doubts),
        }


def head_json(a: Side, b: Side, after_end: AfterEnd | None, listed_max: int) -> JsonObject:
    """The two histories, their last and common revisions, and what only one of them has."""
    after = {} if after_end is None else {"afterEnd": after_end.to_json(listed_max)}
    return {
        "a": _side(a),
        "b": _side(b),
        "common": a.common,
        "shiftSeconds": b.shift / 1_000_000,
        **after,
    }


def _side(side: Side) -> JsonObject:
    return {
        "history": side.name,
        "revision": side.revision,
        "time": _time(side.until),
        "eventsAfter": side.left_out,
    }


def rewritten_json(change: Rewritten) -> JsonObject:
    """A change of a text as JSON."""
    return {
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "whole": change.whole,
        "count": change.count,
        "examples": [str(key) for key in change.examples],
    }


def devices_text(course: Course) -> str:
    """The devices of a pod, as text."""
    if course.placed is None:
        return ""
    return ", ".join(given.device for given in course.placed.devices)


def place_text(course: Course | None) -> str:
    """The outcome of a pod in a few words."""
    if course is None:
        return "does not exist"
    if course.placed is None:
        last = course.refusals[-1].message if course.refusals else ""
        return f"{course.outcome}{f': {last}' if last else ''}"
    devices = devices_text(course)
    with_devices = f" with {devices}" if devices else ""
    return f"{course.outcome} on {course.placed.node}{with_devices}"


def course_json(course: Course | None) -> JsonObject | None:
    """One side of a difference as JSON."""
    if course is None:
        return None
    placed, evicted, ended = course.placed, course.evicted, course.ended
    return {
        "name": course.key.name,
        "uid": course.uid,
        "outcome": course.outcome,
        "text": place_text(course),
        "createdRevision": course.created.revision,
        "created": _time(course.created.time),
        "node": placed.node if placed is not None else "",
        "devices": [given.device for given in placed.devices] if placed is not None else [],
        "placed": _time(placed.at.time) if placed is not None else "",
        "placedRevision": placed.at.revision if placed is not None else 0,
        "decidedAt": placed.decided if placed is not None else 0,
        "refusals": len(course.refusals),
        "lastRefusal": course.refusals[-1].message if course.refusals else "",
        "evicted": _time(evicted.at.time) if evicted is not None else "",
        "evictedRevision": evicted.at.revision if evicted is not None else 0,
        "evictedFor": f"{evicted.reason}: {evicted.message}" if evicted is not None else "",
        "ended": _time(ended.time) if ended is not None else "",
        "endedAs": course.phase,
    }


def _difference(difference: PodDifference) -> JsonObject:
    pair, parting = difference.pair, difference.parting
    body: JsonObject = {
        "subject": f"pods/{pair.name}",
        "class": difference.classes[0].value,
        "classes": [each.value for each in difference.classes],
        "aspect": difference.parted.aspect.value,
        "time": _time(difference.parted.time),
        "first": difference.parted.side,
        "a": course_json(pair.a),
        "b": course_json(pair.b),
        "root": difference.root.name,
        "rootKind": difference.root.kind.value,
        "causes": [*(root.name for root in difference.roots), *_names(difference.parents)],
        "chain": [*_names(difference.chain), difference.root.name],
        "consequences": list(_names(difference.below)),
    }
    if difference.proof is not None:
        body["proof"] = difference.proof.to_json()
    if parting is not None:
        body["parting"] = {
            "node": parting.node,
            "device": parting.device,
            "a": parting.a,
            "b": parting.b,
        }
    return body


def _names(differences: Sequence[PodDifference]) -> Iterator[str]:
    return (f"pods/{each.pair.name}" for each in differences)


def _change(change: InputDifference) -> JsonObject:
    return {
        "object": str(change.key),
        "change": change.verb.value,
        "text": change.text,
        "time": _time(change.since),
        "revisionA": change.a.at.revision if change.a is not None else 0,
        "revisionB": change.b.at.revision if change.b is not None else 0,
    }


def _time(time: int) -> str:
    return timestamps.micro_text(Instant(time)) if time > 0 else ""
